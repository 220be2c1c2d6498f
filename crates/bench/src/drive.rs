//! Drives a store: many callers, each with one order in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use stockade::rules::Command;
use stockade::{Error, Options, Stockade};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::Failure;
use crate::orders::{Shape, supply};

/// A store on a folder of its own.
pub(crate) struct Bench {
    pub(crate) runtime: Runtime,
    pub(crate) store: Stockade,
    pub(crate) folder: TempDir,
}

/// What became of a run of orders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) granted: u64,
    pub(crate) refused: u64,
    pub(crate) took: Duration,
}

impl Run {
    /// Answers per second.
    pub(crate) fn rate(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
        let answers = (self.granted + self.refused) as f64;
        answers / self.took.as_secs_f64()
    }
}

pub(crate) fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build()
}

impl Bench {
    /// A new store with `skus` SKUs of `units` units each.
    pub(crate) fn open(skus: u64, units: u64) -> Result<Self, Failure> {
        Self::open_with(|folder| Options::new(folder), skus, units)
    }

    /// The same with options of its own, which are told the data folder.
    pub(crate) fn open_with(
        options: impl FnOnce(&std::path::Path) -> Options,
        skus: u64,
        units: u64,
    ) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("stockade-bench-").tempdir()?;
        let runtime = runtime()?;
        let store = runtime.block_on(options(&folder.path().join("data")).open())?;
        let commands = (0..skus)
            .map(|n| supply(n, units))
            .collect::<Result<Vec<_>, _>>()?;
        for answer in runtime.block_on(store.submit_many(commands)) {
            answer?;
        }
        Ok(Self {
            runtime,
            store,
            folder,
        })
    }

    /// A store on a folder that others may have open too.
    pub(crate) fn on(options: Options) -> Result<Self, Failure> {
        let runtime = runtime()?;
        let store = runtime.block_on(options.open())?;
        Ok(Self {
            runtime,
            store,
            // Its own, and empty.
            folder: tempfile::Builder::new().prefix("stockade-bench-").tempdir()?,
        })
    }

    /// Sends `orders` orders from `in_flight` callers, one order a call, and waits for every answer.
    pub(crate) fn one_a_call(&self, shape: Shape, orders: u64, in_flight: u64) -> Result<Run, Failure> {
        let next = Arc::new(AtomicU64::new(0));
        let started = Instant::now();
        let callers: Vec<_> = (0..in_flight)
            .map(|_| {
                let (store, next) = (self.store.clone(), Arc::clone(&next));
                self.runtime.spawn(async move {
                    let (mut granted, mut refused) = (0_u64, 0_u64);
                    loop {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        if n >= orders {
                            return Ok::<_, Failure>((granted, refused));
                        }
                        count(store.submit(shape.order(n)?).await, &mut granted, &mut refused)?;
                    }
                })
            })
            .collect();
        let (mut granted, mut refused) = (0, 0);
        for caller in callers {
            let (g, r) = self.runtime.block_on(caller)??;
            granted += g;
            refused += r;
        }
        Ok(Run {
            granted,
            refused,
            took: started.elapsed(),
        })
    }

    /// Sends `orders` orders in calls of `size`, one call after the other, the next one made while one is under way.
    pub(crate) fn batches(&self, shape: Shape, orders: u64, size: u64) -> Result<Run, Failure> {
        let (mut granted, mut refused) = (0, 0);
        let started = Instant::now();
        let mut under_way = None;
        for first in (0..orders).step_by(usize::try_from(size)?) {
            let commands: Vec<Command> = (first..orders.min(first + size))
                .map(|n| shape.order(n))
                .collect::<Result<_, _>>()?;
            let store = self.store.clone();
            let call = self
                .runtime
                .spawn(async move { store.submit_many(commands).await });
            if let Some(before) = under_way.replace(call) {
                self.collect(before, &mut granted, &mut refused)?;
            }
        }
        if let Some(last) = under_way {
            self.collect(last, &mut granted, &mut refused)?;
        }
        Ok(Run {
            granted,
            refused,
            took: started.elapsed(),
        })
    }

    fn collect(
        &self,
        call: tokio::task::JoinHandle<Vec<Result<stockade::rules::Done, Error>>>,
        granted: &mut u64,
        refused: &mut u64,
    ) -> Result<(), Failure> {
        for answer in self.runtime.block_on(call)? {
            count(answer, granted, refused)?;
        }
        Ok(())
    }

    pub(crate) fn close(self) -> Result<(), Failure> {
        self.runtime.block_on(self.store.close())?;
        Ok(())
    }
}

fn count<T>(answer: Result<T, Error>, granted: &mut u64, refused: &mut u64) -> Result<(), Failure> {
    match answer {
        Ok(_) => *granted += 1,
        Err(Error::Refused(_)) => *refused += 1,
        Err(other) => return Err(other.into()),
    }
    Ok(())
}
