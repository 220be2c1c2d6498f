//! `stockade drill`: faults on purpose, as often as one likes, and a check of every id afterwards.
//!
//! `drill crash` kills the service process at random moments under load and starts it again on the same folder; `drill
//! hang-up` drops connections at random moments, within requests too. In both, clients remember what they were answered
//! and what is in doubt (`claim`); a command in doubt may have happened or not, and nothing else: asked by id, sent
//! again, counted in the stock and audited, it must be the one or the other.
//!
//! A seed repeats what is sent and when faults strike; what is under way at that moment differs from run to run, which
//! is why the campaigns are worth running for long.

mod check;
mod claim;
mod client;
mod crash;
mod hang_up;
mod shop;
mod sums;

use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;

use clap::{Args as ClapArgs, Subcommand};
use serde::Serialize;
use tempfile::TempDir;

use crate::load::caller::{Caller, Patience};
use crate::load::service::Service;
use crate::load::{LoadError, fresh_run_name, interrupt, on_one_thread};
use client::Client;
use shop::{Shop, Tally};

/// Break a service of its own on purpose, and check that nothing answered is lost and nothing happened twice.
///
/// Exit codes: 0 all is well; 1 something was found; 2 wrong flags; 3 the drill could not be run.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Clone, Subcommand)]
enum What {
    /// Kill the service at random moments under load, start it again on the same folder, and go on.
    Crash {
        /// How often.
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
        rounds: u32,
        #[command(flatten)]
        common: Common,
    },
    /// Drop connections 0 to 20 ms after a request was sent, or in the middle of it.
    HangUp {
        /// How often.
        #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
        times: u32,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Clone, ClapArgs)]
struct Common {
    /// Repeat an earlier run's choices.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Clients, each with one request at a time.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    clients: u32,
    /// Print one JSON object and nothing else on standard output.
    #[arg(long)]
    json: bool,
}

/// What a campaign came to.
#[derive(Debug, Serialize)]
struct Report {
    /// Kills or hang-ups.
    faults: u64,
    /// Requests sent, the checks' own not counted.
    sent: u64,
    answered: u64,
    /// Requests whose answer did not come.
    in_doubt: u64,
    /// Of those, as far as they were followed up, so many had happened.
    happened: u64,
    ids: u64,
    seconds: f64,
    seed: u64,
    /// What must not be; empty when all is well.
    findings: Vec<String>,
}

/// A campaign under way.
#[derive(Debug)]
struct Campaign {
    seed: u64,
    shop: Shop,
    clients: Vec<Client>,
    since: Instant,
    faults: u64,
    findings: Vec<String>,
}

/// Findings beyond so many say nothing new.
const FINDINGS_KEPT: usize = 100;
/// Units first put into each ordinary SKU, and into the scarce one.
const UNITS: u64 = 1_000_000_000;
const SCARCE_UNITS: u64 = 25;
const ORDINARY_SKUS: usize = 3;

impl Campaign {
    fn new(common: &Common, short_ends: bool) -> Self {
        let seed = common.seed.unwrap_or_else(|| u64::from(fastrand::u32(..)));
        let mut supply = vec![UNITS; ORDINARY_SKUS];
        supply.push(SCARCE_UNITS);
        Self {
            seed,
            shop: Shop {
                name: fresh_run_name(),
                supply,
                short_ends,
            },
            clients: (0..common.clients as usize)
                .map(|number| Client::new(number, seed))
                .collect(),
            since: Instant::now(),
            faults: 0,
            findings: Vec::new(),
        }
    }

    /// Moves the clients' findings here; tells whether there are any.
    fn gather_findings(&mut self) -> bool {
        for client in &mut self.clients {
            self.findings.append(&mut client.findings);
        }
        self.findings.truncate(FINDINGS_KEPT);
        !self.findings.is_empty()
    }

    /// A caller that goes on until it has its answers.
    fn patient_caller(&self, service: &Service) -> Result<Rc<Caller>, LoadError> {
        let in_flight_max = u32::try_from(self.clients.len()).unwrap_or(u32::MAX);
        Ok(Rc::new(Caller::new(
            service.target()?,
            in_flight_max,
            Patience::default(),
        )?))
    }

    /// Ends the campaign. A service that does not start or does not answer once faults have begun is a finding; the
    /// folder is kept if there are any.
    fn finish(mut self, ran: Result<(), LoadError>, folder: TempDir) -> Result<Report, LoadError> {
        match ran {
            Err(error) if self.faults == 0 => return Err(error),
            Err(error) => self
                .findings
                .push(format!("after {} faults: {error}", self.faults)),
            Ok(()) => {}
        }
        if self.gather_findings() {
            self.findings
                .push(format!("data and log are kept: {}", folder.keep().display()));
        }
        Ok(self.report())
    }

    fn report(self) -> Report {
        let seconds = self.since.elapsed().as_secs_f64();
        let mut tally = Tally::default();
        for client in &self.clients {
            tally += client.tally;
        }
        Report {
            faults: self.faults,
            sent: tally.sent,
            answered: tally.answered,
            in_doubt: tally.in_doubt,
            happened: tally.happened,
            ids: self.clients.iter().map(|client| client.claims.len() as u64).sum(),
            seconds: (seconds * 1_000.0).round() / 1_000.0,
            seed: self.seed,
            findings: self.findings,
        }
    }
}

/// Runs a campaign and prints its report.
pub(crate) fn run(args: &Args) -> ExitCode {
    let (common, ran) = match &args.what {
        What::Crash { rounds, common } => (common, run_campaign(crash::campaign(common, *rounds))),
        What::HangUp { times, common } => (common, run_campaign(hang_up::campaign(common, *times))),
    };
    match ran.and_then(|report| print(&report, common.json).map(|()| report)) {
        Ok(report) if report.findings.is_empty() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(3)
        }
    }
}

fn run_campaign(campaign: impl Future<Output = Result<Report, LoadError>>) -> Result<Report, LoadError> {
    on_one_thread(interrupt::until_interrupted(campaign))
}

fn print(report: &Report, json: bool) -> Result<(), LoadError> {
    if json {
        let text = serde_json::to_string(report).map_err(|error| LoadError::Request {
            what: "writing the report".to_owned(),
            why: error.to_string(),
        })?;
        println!("{text}");
        return Ok(());
    }
    println!("  faults       {:>12}", report.faults);
    println!("  sent         {:>12}", report.sent);
    println!("  answered     {:>12}", report.answered);
    println!("  in doubt     {:>12}", report.in_doubt);
    println!("  ... happened {:>12}", report.happened);
    println!("  ids          {:>12}", report.ids);
    println!("  seconds      {:>12.1}", report.seconds);
    println!("  seed         {:>12}", report.seed);
    for finding in &report.findings {
        println!("  found: {finding}");
    }
    let word = if report.findings.is_empty() {
        "PASSED"
    } else {
        "FAILED"
    };
    println!("\n{word}: {} findings", report.findings.len());
    Ok(())
}
