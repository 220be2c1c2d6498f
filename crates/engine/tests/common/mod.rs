//! What several of the engine's tests need.
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![expect(unreachable_pub, reason = "a module of a test binary has no other door")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::{Condvar, Mutex};
use stockade::clock::ManualClock;
use stockade::ledger::{Ledger, LedgerError, RecordError, ShardRow, View};
use stockade::rules::{Counters, Entry};
use stockade::{Options, Stockade};

/// A moment to start fake clocks at.
pub const START: i64 = 1_767_000_000_000;

/// A small generator of random numbers, the same on every run with the same seed.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 33) % limit
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Who decides in a test that holds for every tier. A Redis lives as long as this.
#[derive(Debug)]
pub enum Tier {
    Memory,
    Redis(stockade_testkit::redis::Server),
}

impl Tier {
    pub fn redis() -> Self {
        Self::Redis(stockade_testkit::redis::Server::start())
    }

    pub fn options(&self, folder: &Path) -> Options {
        let options = Options::new(folder);
        match self {
            Self::Memory => options,
            Self::Redis(server) => options.redis(server.url()),
        }
    }

    /// The same with a fake clock, whose time then counts in Redis too.
    pub fn options_at(&self, folder: &Path, clock: &ManualClock) -> Options {
        let mut options = self.options(folder);
        options.clock = Arc::new(clock.clone());
        if let Some(redis) = &mut options.redis {
            redis.own_clock = true;
        }
        options
    }

    pub async fn open(&self, folder: &Path) -> Stockade {
        let opened = self.options(folder).open().await;
        opened.unwrap_or_else(|error| panic!("{error}"))
    }

    pub async fn open_at(&self, folder: &Path, clock: &ManualClock) -> Stockade {
        let opened = self.options_at(folder, clock).open().await;
        opened.unwrap_or_else(|error| panic!("{error}"))
    }
}

/// One suite, run over every tier: each function takes the [`Tier`].
#[macro_export]
macro_rules! on_every_tier {
    ($($name:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(super::common::Tier::Memory).await;
            })+
        }
        mod redis {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(super::common::Tier::redis()).await;
            })+
        }
    };
}

/// Opens a store with a fake clock.
pub async fn open_at(folder: &Path, clock: &ManualClock) -> Stockade {
    let mut options = Options::new(folder);
    options.clock = Arc::new(clock.clone());
    options.open().await.unwrap()
}

/// The counters of the default location.
pub async fn counters(store: &Stockade, sku: &str) -> Counters {
    store.stock(sku).await.unwrap().locations[0].counters
}

/// Fails the test with the findings if the audit has any.
pub async fn assert_clean(store: &Stockade) {
    let report = store.audit(20).await.unwrap();
    assert!(report.is_clean(), "{:#?}", report.findings);
}

/// What the switch in front of the ledger does with the next groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fault {
    /// Nothing.
    None = 0,
    /// Says that the disk is full.
    Full = 1,
    /// Records, and says that it is not known whether it did.
    Unknown = 2,
    /// Panics.
    Panic = 3,
    /// Waits until the fault is changed.
    Wait = 4,
    /// Opens no epoch: an earlier write's fate is unknown.
    Broken = 5,
}

/// A switch between the store and its real ledger.
#[derive(Clone, Debug, Default)]
pub struct Switch(Arc<(AtomicU8, Mutex<()>, Condvar)>);

impl Switch {
    pub fn set(&self, fault: Fault) {
        let _guard = self.0.1.lock();
        self.0.0.store(fault as u8, Ordering::SeqCst);
        self.0.2.notify_all();
    }

    fn is(&self, fault: Fault) -> bool {
        self.0.0.load(Ordering::SeqCst) == fault as u8
    }

    fn wait(&self) {
        let mut guard = self.0.1.lock();
        while self.is(Fault::Wait) {
            self.0.2.wait(&mut guard);
        }
    }

    /// Puts the switch into the options.
    pub fn into(&self, options: &mut Options) {
        let switch = self.clone();
        options.wrap_ledger = Some(Arc::new(move |ledger| {
            Arc::new(Switched {
                ledger,
                switch: switch.clone(),
            })
        }));
    }
}

#[derive(Debug)]
struct Switched {
    ledger: Arc<dyn Ledger>,
    switch: Switch,
}

fn full() -> LedgerError {
    LedgerError::Storage {
        path: "ledger.db".into(),
        message: "the disk is full; make room".into(),
        full: true,
    }
}

impl Ledger for Switched {
    fn open_epoch(&self, shard: u32, owner: &str) -> Result<ShardRow, LedgerError> {
        if self.switch.is(Fault::Full) {
            return Err(full());
        }
        if self.switch.is(Fault::Broken) {
            return Err(LedgerError::Broken {
                path: "ledger.db".into(),
            });
        }
        self.ledger.open_epoch(shard, owner)
    }

    fn record(&self, run: &[Entry]) -> Result<(), RecordError> {
        self.switch.wait();
        if self.switch.is(Fault::Full) {
            return Err(RecordError::NotRecorded(full()));
        }
        assert!(!self.switch.is(Fault::Panic), "asked to panic");
        let result = self.ledger.record(run);
        if self.switch.is(Fault::Unknown) {
            return Err(RecordError::Unknown(LedgerError::Database("fsync failed".into())));
        }
        result
    }

    fn view(&self) -> Result<Box<dyn View>, LedgerError> {
        self.ledger.view()
    }
}
