//! Drives a service over real HTTP the way buyers do, for `rush` and `drill`.
//!
//! The load comes from the machine that the service runs on, so it has to be cheap: one thread, raw keep-alive
//! connections, bodies written into reused buffers, answers read by the few fields that matter.

pub(crate) mod answer;
pub(crate) mod api;
pub(crate) mod audit;
pub(crate) mod caller;
pub(crate) mod http;
pub(crate) mod interrupt;
pub(crate) mod request;
pub(crate) mod service;
pub(crate) mod target;

use std::fmt::Write as _;
use std::path::Path;

/// Why a drill could not be run. Its verdict is another matter.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// The address is not one that can be driven.
    #[error("--url {url}: {why}")]
    Url {
        /// As given.
        url: String,
        /// What is wrong and what to give.
        why: String,
    },
    /// The API key cannot be sent.
    #[error("the API key: {0}")]
    Key(String),
    /// The service process did not start, or did not stop.
    #[error("the service {what}: {why}{log}")]
    Service {
        /// What it did not do.
        what: &'static str,
        /// Why.
        why: String,
        /// The end of what it logged, if anything.
        log: String,
    },
    /// A request on which the drill depends was not answered as it must be.
    #[error("{what}: {why}")]
    Request {
        /// Which request.
        what: String,
        /// What came instead.
        why: String,
    },
    /// The machine.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What happened.
        source: std::io::Error,
    },
    /// Interrupted by a signal.
    #[error("interrupted")]
    Interrupted,
}

/// A temporary folder, removed when dropped. For people it is said on stderr if the folder is no disk's; a report as
/// JSON comes without it.
pub(crate) fn fresh_folder(prefix: &str, json: bool) -> Result<tempfile::TempDir, LoadError> {
    let folder = tempfile::Builder::new()
        .prefix(prefix)
        .tempdir()
        .map_err(|source| LoadError::Io {
            what: "making a temporary folder",
            source,
        })?;
    if !json && in_memory(folder.path()) {
        eprintln!(
            "note: {} is in memory (tmpfs): fsync costs nothing there, so the figures flatter; name a folder on a disk \
             with TMPDIR",
            std::env::temp_dir().display()
        );
    }
    Ok(folder)
}

/// Whether a folder is known to lie in memory.
#[cfg(target_os = "linux")]
fn in_memory(folder: &Path) -> bool {
    // linux/magic.h; the type of the field differs between machines.
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    // Not to be told is no reason to stop a drill.
    rustix::fs::statfs(folder)
        .is_ok_and(|about| u64::try_from(about.f_type).is_ok_and(|kind| kind == TMPFS || kind == RAMFS))
}

#[cfg(not(target_os = "linux"))]
fn in_memory(_: &Path) -> bool {
    false
}

/// Runs a drill on this thread alone: the other cores are the service's.
pub(crate) fn on_one_thread<T>(work: impl Future<Output = Result<T, LoadError>>) -> Result<T, LoadError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| LoadError::Io {
            what: "starting the drill's thread",
            source,
        })?;
    tokio::task::LocalSet::new().block_on(&runtime, work)
}

/// A name that no run before had, for SKUs and ids: sorted by time, so that a ledger's B-tree grows at its end.
pub(crate) fn fresh_run_name() -> String {
    let now_ms = crate::load::now_ms();
    let mut name = String::with_capacity(20);
    // Eleven hexadecimal digits of milliseconds reach the year 2527.
    let written = write!(name, "{:011x}{:07x}", now_ms, fastrand::u32(..) & 0x0fff_ffff);
    debug_assert!(written.is_ok(), "writing to a String does not fail");
    name
}

/// Milliseconds since the epoch by this machine's clock.
pub(crate) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn folders_in_memory_are_known() {
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        let shm = mounts.lines().any(|mount| mount.contains(" /dev/shm tmpfs "));
        assert_eq!(in_memory(Path::new("/dev/shm")), shm);
        assert!(!in_memory(Path::new("/proc")));
        assert!(!in_memory(Path::new("/nowhere/at/all")));
    }
}
