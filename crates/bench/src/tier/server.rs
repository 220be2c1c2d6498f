//! What a server says about itself.

use stockade_testkit::redis::Server;

use crate::Failure;

/// A figure of `INFO section`.
pub(super) fn info(server: &Server, section: &str, name: &str) -> Result<f64, Failure> {
    let text = server.run::<String>(&["INFO", section]);
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .ok_or_else(|| format!("INFO {section} has no {name}"))?;
    Ok(value.trim().parse()?)
}

/// Seconds of processor time that the server has used.
pub(super) fn processor_seconds(server: &Server) -> Result<f64, Failure> {
    Ok(info(server, "cpu", "used_cpu_user")? + info(server, "cpu", "used_cpu_sys")?)
}

/// Microseconds within which half and 99 of 100 script calls ended, since the statistics were reset.
pub(super) fn script_us(server: &Server) -> Result<(f64, f64), Failure> {
    let text = server.run::<String>(&["INFO", "latencystats"]);
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("latency_percentiles_usec_evalsha:"))
        .ok_or("no script was called")?;
    let figure = |name: &str| -> Result<f64, Failure> {
        let value = line
            .split(',')
            .find_map(|part| part.trim().strip_prefix(name))
            .ok_or_else(|| format!("no {name} in {line}"))?;
        Ok(value.parse()?)
    };
    Ok((figure("p50=")?, figure("p99=")?))
}
