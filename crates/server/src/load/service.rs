//! A service of one's own: this same binary as a child process, on a free port and a folder that goes with it.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::LoadError;
use super::target::Target;

const START_WITHIN: Duration = Duration::from_secs(60);
const STOP_WITHIN: Duration = Duration::from_secs(30);
/// How much of the service's log an error shows.
const LOG_LINES_SHOWN: usize = 10;

/// A running service process. Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Service {
    child: Child,
    log: PathBuf,
    url: String,
}

impl Service {
    /// Starts `serve` on `data` and waits until it takes requests. Its log goes into `log`.
    pub(crate) async fn start(data: &Path, log: &Path) -> Result<Self, LoadError> {
        Self::start_on(data, log, None).await
    }

    /// The same with the hot tier on a Redis: its address, and what its keys begin with.
    pub(crate) async fn start_on(
        data: &Path,
        log: &Path,
        redis: Option<(&str, &str)>,
    ) -> Result<Self, LoadError> {
        let io = |what| move |source| LoadError::Io { what, source };
        let program = std::env::current_exe().map_err(io("finding this program's own file"))?;
        let log_file = std::fs::File::options()
            .create(true)
            .append(true)
            .open(log)
            .map_err(io("making the service's log file"))?;
        let mut command = Command::new(program);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data);
        // A drill's service is set up by the drill, not by what is meant for another one.
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("STOCKADE_")) {
                command.env_remove(&name);
            }
        }
        if let Some((url, prefix)) = redis {
            // The address may hold a password, which a command line would show to everybody.
            command
                .env("STOCKADE_REDIS", url)
                .env("STOCKADE_REDIS_PREFIX", prefix);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log_file);
        // Its own process group: Ctrl-C on the terminal reaches the drill alone, which then stops the service in order.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(io("starting the service"))?;
        let stdout = child.stdout.take();
        let mut service = Self {
            child,
            log: log.to_owned(),
            url: String::new(),
        };
        let (tell, told) = oneshot::channel();
        std::thread::spawn(move || {
            let mut tell = Some(tell);
            // Read to the end, or a service that prints more would stand still on a full pipe.
            for line in stdout
                .into_iter()
                .flat_map(|out| BufReader::new(out).lines())
                .map_while(Result::ok)
            {
                if let Some(url) = url_in(&line)
                    && let Some(tell) = tell.take()
                {
                    // Nobody may be left to hear it: the drill was interrupted.
                    drop(tell.send(url));
                }
            }
        });
        match timeout(START_WITHIN, told).await {
            Ok(Ok(url)) => service.url = url,
            Ok(Err(_)) => {
                let why = match service.wait(STOP_WITHIN).await {
                    Ok(Some(status)) => status.to_string(),
                    Ok(None) => "it closed its output and goes on".to_owned(),
                    Err(error) => error.to_string(),
                };
                return Err(service.failed("did not start", why));
            }
            Err(_) => {
                return Err(service.failed("did not start", format!("no address within {START_WITHIN:?}")));
            }
        }
        Ok(service)
    }

    pub(crate) fn target(&self) -> Result<Target, LoadError> {
        Target::parse(&self.url)
    }

    /// Asks the service to stop and waits until it has.
    pub(crate) async fn stop(mut self) -> Result<(), LoadError> {
        let running = self.child.try_wait().map_err(|source| LoadError::Io {
            what: "watching the service",
            source,
        })?;
        if let Some(status) = running {
            return Err(self.failed("ended on its own", status.to_string()));
        }
        if let Err(error) = self.signal(Signal::TERM) {
            return Err(self.failed("did not stop", error.to_string()));
        }
        match self.wait(STOP_WITHIN).await {
            Ok(Some(status)) if status.success() => Ok(()),
            Ok(Some(status)) => Err(self.failed("did not stop in order", status.to_string())),
            Ok(None) => Err(self.failed("did not stop", format!("still there after {STOP_WITHIN:?}"))),
            Err(error) => Err(self.failed("did not stop", error.to_string())),
        }
    }

    /// Ends the process with no warning, as a power cut or the kernel would.
    pub(crate) fn kill(mut self) -> Result<(), LoadError> {
        let ended = self.child.try_wait().and_then(|ended| match ended {
            Some(status) => Ok(Some(status)),
            None => self.child.kill().and_then(|()| self.child.wait()).map(|_| None),
        });
        match ended {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.failed("ended on its own", status.to_string())),
            Err(source) => Err(LoadError::Io {
                what: "killing the service",
                source,
            }),
        }
    }

    fn signal(&self, signal: Signal) -> std::io::Result<()> {
        // The child has not been waited for yet, so its id cannot belong to another process.
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| std::io::Error::other("the service has no process id"))?;
        Ok(kill_process(pid, signal)?)
    }

    async fn wait(&mut self, at_most: Duration) -> std::io::Result<Option<ExitStatus>> {
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            if since.elapsed() > at_most {
                return Ok(None);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn failed(&self, what: &'static str, why: String) -> LoadError {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let shown = lines
            .get(lines.len().saturating_sub(LOG_LINES_SHOWN)..)
            .unwrap_or_default();
        let log = if shown.is_empty() {
            String::new()
        } else {
            format!("\n{}", shown.join("\n"))
        };
        LoadError::Service { what, why, log }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // After `stop` or `kill` there is nothing left to do here, and killing fails, as it should.
        if matches!(self.child.try_wait(), Ok(None)) && self.child.kill().is_ok() {
            drop(self.child.wait());
        }
    }
}

/// The address in what the service says when it is ready.
fn url_in(line: &str) -> Option<String> {
    let from = line.get(line.find("http://")?..)?;
    let end = from
        .find(|c: char| c.is_whitespace() || matches!(c, '"' | ',' | '<' | '>'))
        .unwrap_or(from.len());
    Some(from.get(..end)?.trim_end_matches(['/', '.']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::url_in;

    #[test]
    fn the_address_is_found_in_what_the_service_says() {
        for line in [
            "http://127.0.0.1:1234",
            "listening on http://127.0.0.1:1234/",
            r#"{"url":"http://127.0.0.1:1234","pid":7}"#,
        ] {
            assert_eq!(url_in(line).as_deref(), Some("http://127.0.0.1:1234"), "{line}");
        }
        assert_eq!(url_in("starting"), None);
    }
}
