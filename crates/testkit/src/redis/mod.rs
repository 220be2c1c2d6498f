//! Private Redis (or Valkey) processes. A script that was only tried on a stand-in has not been tried, so every test
//! starts a server of its own: its own folder, a free port of the loopback, ended by its process id when the test ends.
//!
//! `STOCKADE_TEST_REDIS` names the server program, so that the same suite runs on Valkey.

mod cluster;
mod server;

pub use cluster::Cluster;
pub use server::{Options, Server};

use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

/// How long a server may take to do what a test waits for. Generous: the machine may be building other things.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Asks again and again until `probe` answers, or fails loudly with `what`.
pub fn until<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A port that was free a moment ago. Another process may take it before it is used: whoever uses it looks whether the
/// server there is its own, and tries another one if not.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback gives a port");
    listener
        .local_addr()
        .expect("a bound socket has an address")
        .port()
}
