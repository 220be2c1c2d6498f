//! Two processes on one Redis and one ledger against one, with the same number of callers together.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use stockade::rules::Mode;
use stockade_testkit::redis::Server;

use super::{open, options};
use crate::Failure;
use crate::drive::Bench;
use crate::orders::{Ids, Shape};
use crate::rounds::Figures;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Orders a run, all processes together.
    #[arg(long, default_value_t = 200_000)]
    orders: u64,
    /// Callers, all processes together.
    #[arg(long, default_value_t = 256)]
    callers: u64,
    #[arg(long, default_value_t = 7)]
    rounds: u64,
}

/// What a process of the measurement does.
#[derive(clap::Args)]
pub(crate) struct Work {
    #[arg(long)]
    url: String,
    #[arg(long)]
    data: PathBuf,
    #[arg(long)]
    orders: u64,
    #[arg(long)]
    callers: u64,
    #[arg(long)]
    number: u64,
}

impl Work {
    /// Opens, says so, waits for a line, sends its orders, says how long it took.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let bench = Bench::on(options(&self.data, &self.url))?;
        println!("open");
        std::io::stdin().read_line(&mut String::new())?;
        let shape = Shape {
            ids: Ids::Time,
            skus: 1,
            mode: Mode::Reserve,
            round: self.number,
        };
        let run = bench.one_a_call(shape, self.orders, self.callers)?;
        println!("{}", run.took.as_secs_f64());
        std::io::stdin().read_line(&mut String::new())?;
        bench.close()
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (mut one, mut two, mut ratio) = (Figures::new(), Figures::new(), Figures::new());
    for round in 0..args.rounds {
        let mut counts = [1, 2];
        if round % 2 == 1 {
            counts.reverse();
        }
        let mut rates = [0.0; 2];
        for count in counts {
            rates[usize::try_from(count - 1)?] = together(args, count)?;
        }
        one.push(rates[0]);
        two.push(rates[1]);
        ratio.push(rates[1] / rates[0]);
    }
    println!(
        "redis processes: {} callers together; median (lowest..highest)",
        args.callers
    );
    println!("  one process:   {one} orders/s");
    println!("  two processes: {two} orders/s");
    println!("  ratio:         {ratio}");
    Ok(())
}

fn together(args: &Args, processes: u64) -> Result<f64, Failure> {
    let server = Server::start();
    let bench = open(&server.url(), 1)?;
    let data = bench.folder.path().join("data");
    bench.runtime.block_on(bench.store.close())?;
    let mut workers = Vec::new();
    for number in 1..=processes {
        workers.push(
            Command::new(std::env::current_exe()?)
                .args(["worker", "--url", &server.url(), "--number", &number.to_string()])
                .args(["--orders", &(args.orders / processes).to_string()])
                .args(["--callers", &(args.callers / processes).to_string()])
                .arg("--data")
                .arg(&data)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .map(|mut child| (child.stdout.take().map(BufReader::new), child))?,
        );
    }
    for (output, _) in &mut workers {
        said(output.as_mut())?;
    }
    for (_, worker) in &mut workers {
        tell(worker)?;
    }
    let mut longest = 0.0_f64;
    for (output, _) in &mut workers {
        longest = longest.max(said(output.as_mut())?.parse()?);
    }
    for (_, worker) in &mut workers {
        tell(worker)?;
        worker.wait()?;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    let orders = (args.orders / processes * processes) as f64;
    Ok(orders / longest)
}

fn said(output: Option<&mut BufReader<std::process::ChildStdout>>) -> Result<String, Failure> {
    let mut line = String::new();
    output.ok_or("no output")?.read_line(&mut line)?;
    if line.is_empty() {
        return Err("a process of the measurement ended early".into());
    }
    Ok(line.trim().to_owned())
}

fn tell(worker: &mut Child) -> Result<(), Failure> {
    worker.stdin.as_mut().ok_or("no input")?.write_all(b"go\n")?;
    Ok(())
}
