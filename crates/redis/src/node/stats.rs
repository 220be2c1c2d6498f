//! What a node's connections count: for metrics, and for choosing how many orders go into one call.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::error::Kind;

/// Counters since the connections were made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeStats {
    /// How often the server did not have a script and got its text.
    pub reloads: u64,
    /// How often a connection was made.
    pub connects: u64,
    /// Connections that stand now.
    pub up: usize,
    /// Calls that failed, by kind; kinds that never came are left out.
    pub errors: Vec<(Kind, u64)>,
    /// Calls by script that came back with a reply.
    pub scripts: Vec<ScriptStats>,
}

/// Calls of one script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptStats {
    /// The script, as its file is named.
    pub script: &'static str,
    /// Calls that came back with a reply.
    pub calls: u64,
    /// What they took from here, way and waiting included, in microseconds.
    pub micros: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    reloads: AtomicU64,
    connects: AtomicU64,
    errors: [AtomicU64; Kind::ALL.len()],
    // One short lock a call of many orders.
    scripts: Mutex<BTreeMap<&'static str, (u64, u64)>>,
}

impl Counters {
    pub(crate) fn reloaded(&self) {
        self.reloads.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn connected(&self) {
        self.connects.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self, kind: Kind) {
        if let Some(at) = Kind::ALL.iter().position(|one| *one == kind)
            && let Some(count) = self.errors.get(at)
        {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn called(&self, script: &'static str, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let mut scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        let row = scripts.entry(script).or_default();
        row.0 = row.0.saturating_add(1);
        row.1 = row.1.saturating_add(micros);
    }

    pub(crate) fn snapshot(&self, up: usize) -> NodeStats {
        let scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        NodeStats {
            reloads: self.reloads.load(Ordering::Relaxed),
            connects: self.connects.load(Ordering::Relaxed),
            up,
            errors: Kind::ALL
                .iter()
                .zip(&self.errors)
                .map(|(kind, count)| (*kind, count.load(Ordering::Relaxed)))
                .filter(|(_, count)| *count > 0)
                .collect(),
            scripts: scripts
                .iter()
                .map(|(script, (calls, micros))| ScriptStats {
                    script,
                    calls: *calls,
                    micros: *micros,
                })
                .collect(),
        }
    }
}
