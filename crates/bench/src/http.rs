//! Orders over HTTP, against the same stack answering a constant after parsing the same body.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::Failure;
use crate::drive::runtime;
use crate::rounds::Figures;
use crate::wire::Connection;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Requests a run.
    #[arg(long, default_value_t = 100_000)]
    requests: u64,
    /// Keep-alive connections, one request in flight on each.
    #[arg(long, default_value_t = 64)]
    connections: u64,
    /// Rounds, in alternation.
    #[arg(long, default_value_t = 5)]
    rounds: u64,
}

/// A server process that says its address on its first line and is killed at the end.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(command: &mut Command) -> Result<Self, Failure> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = child.stdout.take().ok_or("no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let at = line
            .find("127.0.0.1:")
            .ok_or_else(|| format!("no address in {line:?}"))?;
        let address: String = line[at..]
            .chars()
            .take_while(|c| c.is_ascii_digit() || matches!(c, '.' | ':'))
            .collect();
        Ok(Self { child, address })
    }

    fn stop(mut self) -> Result<(), Failure> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let this = std::env::current_exe()?;
    let stockade = this.with_file_name("stockade");
    if !stockade.exists() {
        return Err("build the service first: cargo build --release".into());
    }
    let (mut service, mut constant, mut ratio) = (Figures::new(), Figures::new(), Figures::new());
    for round in 0..args.rounds {
        let folder = tempfile::Builder::new().prefix("stockade-bench-").tempdir()?;
        let ours = Server::start(
            Command::new(&stockade)
                .args(["serve", "--listen", "127.0.0.1:0", "--data"])
                .arg(folder.path().join("data")),
        )?;
        put_stock(&ours.address)?;
        let rate = load(&ours.address, args, round)?;
        ours.stop()?;
        let theirs = Server::start(Command::new(&this).arg("constant"))?;
        let base = load(&theirs.address, args, round)?;
        theirs.stop()?;
        service.push(rate);
        constant.push(base);
        ratio.push(rate / base);
    }
    println!(
        "http: {} keep-alive connections; requests/s, median (lowest..highest)",
        args.connections
    );
    println!("  POST /v1/reservations, on disk: {service}");
    println!("  a constant after parsing:       {constant}");
    println!("  ratio:                          {ratio}");
    Ok(())
}

fn put_stock(address: &str) -> Result<(), Failure> {
    let body = r#"{"id":"supply","location":"default","on_hand":1000000000}"#;
    let mut stream = std::net::TcpStream::connect(address)?;
    let head = format!(
        "PUT /v1/stock/sku-000000 HTTP/1.1\r\nhost: bench\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    std::io::Write::write_all(&mut stream, head.as_bytes())?;
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer)?;
    if answer.starts_with("HTTP/1.1 201") {
        Ok(())
    } else {
        Err(format!("no stock: {answer}").into())
    }
}

fn load(address: &str, args: &Args, round: u64) -> Result<f64, Failure> {
    let runtime = runtime()?;
    let next = Arc::new(AtomicU64::new(0));
    let started = Instant::now();
    let workers: Vec<_> = (0..args.connections)
        .map(|_| {
            let (next, address, requests) = (Arc::clone(&next), address.to_owned(), args.requests);
            runtime.spawn(async move {
                let mut connection = Connection::open(&address).await?;
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= requests {
                        return Ok::<_, Failure>(());
                    }
                    let number = round << 32 | n;
                    let body = format!(
                        r#"{{"id":"order-{number:018x}","owner":"owner{:07}","mode":"reserve","ttl_seconds":3600,"lines":[{{"sku":"sku-000000","quantity":1}}]}}"#,
                        crate::orders::spread(n) % 10_000_000
                    );
                    let status = connection.post("/v1/reservations", &body).await?;
                    if status != 201 {
                        return Err(format!("answered {status}").into());
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        runtime.block_on(worker)??;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    let requests = args.requests as f64;
    Ok(requests / started.elapsed().as_secs_f64())
}
