//! `stockade serve`: opens the store, listens, and stops in order.

mod config;
mod connections;
mod settings;
pub(crate) mod show;
mod tls;

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use stockade::{OpenError, Readiness};
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

pub(crate) use config::{Args, Config};
pub(crate) use connections::allow_open_files;
pub(crate) use tls::certificates;

use crate::http::{AccessLog, App, Metrics, router};
use connections::Connections;
use tls::Tls;

/// How often the metrics are folded and the store's health is looked at.
const TICK: Duration = Duration::from_millis(500);
const TICKS_TO_UPKEEP: u32 = 10;
/// The exit code after a second signal.
const LEFT_AT_ONCE: i32 = 4;
/// Connections that may wait to be accepted; the kernel has a bound of its own.
const UNACCEPTED_MAX: u32 = 4_096;

/// Runs the service until it is told to stop.
pub(crate) async fn run(args: Args, unknown_variables: Vec<String>) -> ExitCode {
    let (config, json) = match args.config() {
        Ok(config) => config,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::from(2);
        }
    };
    start_log(config.log_level, json);
    for variable in unknown_variables {
        tracing::warn!(variable, "is set, and nothing reads it");
    }
    match serve(config, json).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(1)
        }
    }
}

fn start_log(level: tracing::level_filters::LevelFilter, json: bool) {
    let log = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_target(false);
    if json {
        log.json().init();
    } else {
        log.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .init();
    }
}

async fn serve(config: Config, json: bool) -> Result<(), String> {
    connections::allow_open_files(config.connections_max);
    // The port first: when it is taken, nothing of the data folder has been touched.
    let listener = listen(config.listen).map_err(|e| bind_error(config.listen, &e))?;
    let address = listener.local_addr().map_err(|e| bind_error(config.listen, &e))?;
    // Signals are taken before the store is opened, so that one that comes early is not lost.
    let mut terminate = signal(SignalKind::terminate()).map_err(|e| format!("cannot take signals: {e}"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|e| format!("cannot take signals: {e}"))?;

    let tls = config.tls.map(Tls::open).transpose()?;
    let mut watching = Vec::new();
    if let Some(tls) = &tls {
        let told = signal(SignalKind::hangup()).map_err(|e| format!("cannot take signals: {e}"))?;
        watching.push(tokio::spawn(Arc::clone(tls).watch(told)));
    }

    let metrics = Metrics::install()?;
    let store = config.store.open().await.map_err(|e| open_error(&e))?;
    let app = App::new(
        store.clone(),
        metrics,
        config.limits,
        config.keys.clone(),
        config.rules,
    );
    watching.push(tokio::spawn(Arc::clone(&app).watch_queue()));
    let tenants = config
        .keys
        .as_ref()
        .map(|keys| keys.tenants())
        .unwrap_or_default();
    watching.push(tokio::spawn(Arc::clone(&app).tell_live(tenants)));
    if let Some(every) = config.audit_every {
        watching.push(tokio::spawn(Arc::clone(&app).audit_every(every)));
    }
    if let Some(keys) = config.keys {
        tracing::info!(keys = keys.good(store.now()), "API keys are needed");
        watching.push(tokio::spawn(keys.watch()));
    }
    let (stop, stopped) = watch::channel(false);
    let show_peers = config.limits.access_log != AccessLog::Off;
    let connections = Connections::new(
        config.connections_max,
        config.head_within,
        show_peers,
        tls.clone(),
        stopped,
    );
    let accepting = tokio::spawn(Arc::clone(&connections).accept(listener, router(Arc::clone(&app))));

    let scheme = if tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{address}");
    if tls.is_none() && !address.ip().is_loopback() {
        tracing::warn!(
            "keys and orders travel in clear: give --tls-cert and --tls-key, or put a proxy with TLS before it"
        );
    }
    say_ready(&url, json)?;
    tracing::info!(%url, "listening");
    let failed = tokio::select! {
        _ = terminate.recv() => None,
        _ = interrupt.recv() => None,
        why = watch_store(&app) => Some(why),
    };

    tracing::info!(within_ms = config.drain_within.as_millis(), "stopping");
    // Nobody may be left to hear it.
    stop.send_replace(true);
    app.events.stop();
    let ending = async {
        accepting.await.map_err(|e| format!("the listener broke: {e}"))?;
        let cut = connections.drain(config.drain_within).await;
        if cut > 0 {
            tracing::warn!(
                connections = cut,
                "cut off: not done in time; sent again with the same id a command has no second effect"
            );
        }
        Ok::<_, String>(store.close().await)
    };
    // Closing waits for the disk, which may never answer: whoever says it twice does not want to wait.
    let closed = tokio::select! {
        closed = ending => closed?,
        _ = terminate.recv() => leave_at_once(),
        _ = interrupt.recv() => leave_at_once(),
    };
    for watching in watching {
        watching.abort();
    }
    tracing::info!("stopped");
    match (failed, closed) {
        (Some(why), _) => Err(format!("the store cannot go on: {why}; restart the service")),
        (None, Err(error)) => Err(format!("the store did not close well: {error}")),
        (None, Ok(())) => Ok(()),
    }
}

/// Leaves as a kill would: nothing that was answered is lost, and what was under way may or may not have been done.
fn leave_at_once() -> ! {
    tracing::warn!(code = LEFT_AT_ONCE, "told to stop a second time: leaving at once");
    std::process::exit(LEFT_AT_ONCE)
}

/// Comes back when the store can no longer be trusted.
async fn watch_store(app: &App) -> String {
    let mut ticks = 0_u32;
    loop {
        tokio::time::sleep(TICK).await;
        ticks = ticks.wrapping_add(1);
        if ticks.is_multiple_of(TICKS_TO_UPKEEP) {
            app.metrics.upkeep();
        }
        if let Readiness::Poisoned { why } = app.store.health().readiness {
            return why;
        }
    }
}

/// Listens with room for a crowd: with the usual 128, a connection that finds the queue full is tried again by its
/// client's kernel after a whole second.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    // A restart must not wait for the connections of the process before it.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(UNACCEPTED_MAX)
}

/// One line on stdout, for people and for whoever started the process.
fn say_ready(url: &str, json: bool) -> Result<(), String> {
    let line = if json {
        format!("{{\"listening\":\"{url}\"}}")
    } else {
        format!("stockade is listening on {url}")
    };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(|e| format!("cannot write to stdout: {e}"))
}

fn bind_error(address: SocketAddr, error: &std::io::Error) -> String {
    let remedy = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "stop what uses it, or give another port with --listen (0 takes a free one)"
        }
        std::io::ErrorKind::PermissionDenied => "give a port from 1024 on with --listen",
        _ => "give another address with --listen",
    };
    format!("cannot listen on {address}: {error}; {remedy}")
}

fn open_error(error: &OpenError) -> String {
    match error {
        OpenError::Locked { .. } | OpenError::Shared { .. } => format!("{error} (--data)"),
        OpenError::Folder { .. } | OpenError::Redis { .. } => error.to_string(),
        OpenError::Ledger(error) => format!("cannot open the ledger: {error}"),
    }
}
