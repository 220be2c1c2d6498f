//! `stockade-model`: searches for a run that breaks the promise, with all rules or without one of them.

use std::process::ExitCode;
use std::time::Instant;

use stockade_model::{Look, Outcome, Rule, Scenario, exhaust, walks};

const USAGE: &str = "\
stockade-model [--rule NAME] [--scenario NAME] [--look always|forgot|filter] [--seed N] [--steps N] [--run-length N]
               [--depth N [--states N]]

  --rule NAME      take this rule away; `--rule list` names them
  --scenario NAME  everything, losses, failovers, rebuilds, calm-rebuilds, ends, extends, misses, fallback
                   (default: that of the rule, else everything)
  --look WHEN      when the ledger's word about an unknown id is needed (default: always)
  --refusals HOW   how a refusal is made sure of: script (default), or wait until its tip is recorded
  --seed N         the first walk's seed (default 1); a counter-example names its own, which replays it
  --steps N        steps of random walks in all (default 10,000,000)
  --run-length N   steps of one walk
  --depth N        instead: everything that can happen in N steps, at most --states states (default 2,000,000)

Exit code 0: nothing found; 1: a counter-example; 2: a wrong option.";

struct Args {
    scenario: Scenario,
    rule: Option<Rule>,
    seed: u64,
    steps: u64,
    depth: Option<usize>,
    states: u64,
}

fn number(value: &str) -> Result<u64, String> {
    value
        .replace(['_', ','], "")
        .parse()
        .map_err(|_| format!("not a number: {value}"))
}

fn size(value: &str) -> Result<usize, String> {
    usize::try_from(number(value)?).map_err(|_| format!("too large: {value}"))
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut rule = None;
    let mut scenario = None;
    let mut look = None;
    let mut run_length = None;
    let mut refusals_wait = false;
    let (mut seed, mut steps, mut depth, mut states) = (1, 10_000_000, None, 2_000_000);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| USAGE.to_owned())?;
        match word.as_str() {
            "--rule" => {
                let names: Vec<_> = Rule::ALL
                    .iter()
                    .chain(&Rule::SECOND_LINES)
                    .map(|r| r.name())
                    .collect();
                rule = Some(Rule::parse(&value).ok_or_else(|| format!("rules: {}", names.join(", ")))?);
            }
            "--scenario" => scenario = Some(Scenario::parse(&value).ok_or_else(|| USAGE.to_owned())?),
            "--look" => look = Some(Look::parse(&value).ok_or_else(|| USAGE.to_owned())?),
            "--refusals" if value == "wait" => refusals_wait = true,
            "--refusals" if value == "script" => refusals_wait = false,
            "--seed" => seed = number(&value)?,
            "--steps" => steps = number(&value)?,
            "--run-length" => run_length = Some(size(&value)?),
            "--depth" => depth = Some(size(&value)?),
            "--states" => states = number(&value)?,
            _ => return Err(USAGE.to_owned()),
        }
    }
    let mut scenario = scenario.unwrap_or_else(|| rule.map_or(stockade_model::EVERYTHING, Scenario::of));
    if let Some(rule) = rule {
        scenario = scenario.without(rule);
    }
    if let Some(look) = look {
        scenario = scenario.looking(look);
    }
    scenario.refusals_wait = refusals_wait;
    scenario.depth = run_length.unwrap_or(scenario.depth);
    Ok(Args {
        scenario,
        rule,
        seed,
        steps,
        depth,
        states,
    })
}

fn report(args: &Args, out: &Outcome, seconds: f64) {
    let without = args
        .rule
        .map_or(String::new(), |r| format!(" without {}", r.name()));
    println!(
        "{}{without}: {} runs, {} steps, {} states, {seconds:.1} s{}",
        args.scenario.name,
        out.runs,
        out.steps,
        out.states,
        if out.complete { ", complete" } else { "" }
    );
    match &out.found {
        None => println!("no counter-example"),
        Some(found) => {
            println!(
                "counter-example, seed {}, {} steps:",
                found.seed,
                found.actions.len()
            );
            for line in found.story(&args.scenario) {
                println!("{line}");
            }
        }
    }
}

fn main() -> ExitCode {
    let args = match parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    let start = Instant::now();
    let out = match args.depth {
        Some(depth) => exhaust(&args.scenario, depth, args.states),
        None => walks(&args.scenario, args.seed, args.steps),
    };
    report(&args, &out, start.elapsed().as_secs_f64());
    ExitCode::from(u8::from(out.found.is_some()))
}
