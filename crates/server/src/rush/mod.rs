//! `stockade rush`: a flash sale over real HTTP, and a verdict that rests on what the buyers were answered.
//!
//! The run goes through five stages: put fresh SKUs into the service; serve every buyer once (`sale`); sell what comes
//! back and wait for the longest end (`settle`); audit, read the final state, ask by id; judge (`account`, `verdict`)
//! and report.
//!
//! Decisions that shape the figures:
//!
//! - A buyer who is refused stands in line: when units come back, those first in line try again with their own id. A
//!   refusal is not remembered by the service, so that this is the ordinary way to buy late; and without it units of
//!   buyers who walk away near the end would be left although there were buyers.
//! - `seconds` and `orders_per_second` are about the rush: from the first request until every buyer had been served
//!   once. Waiting for reservations to run out is not load.
//! - A latency runs from a request's first try to its answer, pauses and further tries included.

mod account;
mod args;
mod history;
mod plan;
mod progress;
mod report;
mod sale;
mod settle;
mod verdict;

use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;

pub(crate) use args::Args;

use account::Account;
use plan::Plan;
use report::Report;
use sale::Sale;
use verdict::Verdict;

use crate::load::caller::{Caller, Patience};
use crate::load::service::Service;
use crate::load::target::Target;
use crate::load::{LoadError, api, fresh_folder, fresh_run_name, interrupt, on_one_thread};

/// The drill found something.
const FAILED: u8 = 1;
/// The flags do not fit together.
const USAGE: u8 = 2;
/// The drill could not be run.
const NOT_RUN: u8 = 3;
/// So many of a kind are printed.
const DETAILS_SHOWN: usize = 20;

/// Runs the drill and prints its report.
pub(crate) fn run(args: &Args) -> ExitCode {
    if let Err(why) = args.check() {
        eprintln!("error: {why}");
        return ExitCode::from(USAGE);
    }
    let run = match on_one_thread(interrupt::until_interrupted(drill(args))) {
        Ok(run) => run,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(if matches!(error, LoadError::Url { .. }) {
                USAGE
            } else {
                NOT_RUN
            });
        }
    };
    if args.json {
        match serde_json::to_string(&run.report) {
            Ok(json) => println!("{json}"),
            Err(error) => {
                eprintln!("error: the report cannot be written as JSON: {error}");
                return ExitCode::from(NOT_RUN);
            }
        }
    } else {
        print!("{}", run.report.page(&run.plan, &run.verdict));
    }
    if run.verdict.is_good() {
        return ExitCode::SUCCESS;
    }
    run.explain();
    ExitCode::from(FAILED)
}

/// A finished run.
struct Run {
    plan: Plan,
    verdict: Verdict,
    report: Report,
    unanswered: Vec<String>,
}

impl Run {
    /// Says on standard error what was found.
    fn explain(&self) {
        for drift in self.verdict.drift.iter().take(DETAILS_SHOWN) {
            eprintln!("drift: {drift}");
        }
        if self.verdict.drift.len() > DETAILS_SHOWN {
            eprintln!("drift: and {} more", self.verdict.drift.len() - DETAILS_SHOWN);
        }
        for why in self.unanswered.iter().take(DETAILS_SHOWN) {
            eprintln!("unanswered: {why}");
        }
        eprintln!("the same choices again: --seed {}", self.plan.seed);
    }
}

async fn drill(args: &Args) -> Result<Run, LoadError> {
    if let Some(url) = &args.url {
        return against(
            args,
            Target::parse(url)?.with_key(args.credentials.key().map_err(LoadError::Key)?.as_ref())?,
        )
        .await;
    }
    let folder = fresh_folder("stockade-rush-", args.json)?;
    // Dropped before the folder, whatever happens: a service is not left behind, nor does it write into a folder that
    // is being removed.
    let (data, log) = (folder.path().join("data"), folder.path().join("service.log"));
    // Keys of its own: nothing else on that Redis is touched, and nothing of another run is in the way.
    let prefix = fresh_run_name();
    let redis = args.redis.as_deref().map(|url| (url, prefix.as_str()));
    let service = Service::start_on(&data, &log, redis).await?;
    let run = against(args, service.target()?).await?;
    service.stop().await?;
    if redis.is_some() && !args.json {
        println!("its keys are still in Redis: redis-cli --scan --pattern '{{{prefix}:0}}:*:sku:*'");
    }
    folder.close().map_err(|source| LoadError::Io {
        what: "removing the temporary folder",
        source,
    })?;
    Ok(run)
}

async fn against(args: &Args, target: Target) -> Result<Run, LoadError> {
    let plan = Plan::draw(args, fresh_run_name());
    let caller = Caller::new(target, args.concurrency, Patience::default())?;
    let workers = args.concurrency.min(args.buyers);
    let sale = Rc::new(Sale::new(plan, caller, args.ttl_seconds, workers));
    for (sku, units) in sale.sku_names().iter().zip(&sale.plan.supply) {
        api::create_sku(&sale.caller, sku, *units).await?;
    }
    // What was measured so far was not buyers' waiting.
    drop(sale.caller.take_latency_us());
    let since = Instant::now();
    sale.serve(0..args.buyers).await?;
    let rush = since.elapsed();
    let latency_us = sale.caller.take_latency_us();
    sale.sell_what_comes_back().await?;
    sale.wait_for_the_longest_end().await?;
    sale.progress.say("auditing");
    let audit = api::audit(&sale.caller).await?;
    let stock = sale.read_stock().await?;
    let by_buyer = sale.history.borrow().by_buyer(sale.plan.orders.len());
    let mut accounts: Vec<Account> = sale
        .plan
        .orders
        .iter()
        .zip(&by_buyer)
        .map(|(order, events)| Account::of(order, events))
        .collect();
    sale.ask_by_id(&mut accounts).await?;
    sale.progress.clear();
    let verdict = Verdict::of(&sale.plan, &accounts, &stock, &audit);
    let report = Report::new(&sale.plan, &verdict, rush, &latency_us);
    let unanswered = sale.history.borrow().unanswered.clone();
    Ok(Run {
        plan: sale.plan.clone(),
        verdict,
        report,
        unanswered,
    })
}
