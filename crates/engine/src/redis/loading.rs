//! SKUs that Redis does not hold: loaded from the ledger, once for all who wait.
//!
//! A marker with a random token is set on the node together with the tip that it saw. When that tip is recorded, the
//! ledger's row is read; the load names the token and applies only if it is still there. A fork or a new epoch voids
//! the marker, and then the load begins again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use stockade_core::{Action, Id};
use stockade_redis::{Absent, CallError, Decided, Marked, Token};

use super::conductor::{Chore, Conductor};
use super::desk::{AskSku, Questions, SkuWord};
use super::job::Job;

/// How often one load begins again before those who wait are told.
const TRIES_MAX: u32 = 20;
/// How often the ledger is asked whether the marker's tip is recorded.
const ASK_AGAIN: Duration = Duration::from_millis(2);

type Name = (Id, Id);

/// How setting a marker ended.
#[derive(Debug)]
pub(super) struct MarkEnd {
    name: Name,
    result: Result<Decided<Marked>, CallError>,
}

/// How loading ended.
#[derive(Debug)]
pub(super) struct LoadEnd {
    name: Name,
    token: Token,
    /// Where the ledger stood when the SKU was read.
    cursor: u64,
    is_known: bool,
    result: Result<Decided<bool>, CallError>,
}

#[derive(Debug)]
enum Stage {
    /// A call is under way.
    Calling,
    /// The ledger is to be asked, not before this.
    Ask(AskSku, Instant),
    /// It is being asked.
    Asked,
}

#[derive(Debug)]
struct Load {
    stage: Stage,
    /// The numbers of those who wait.
    jobs: Vec<u64>,
    with_usage: bool,
    /// What is held of it is damaged.
    damaged: bool,
    tries: u32,
}

#[derive(Debug)]
struct Parked {
    job: Job,
    /// SKUs that it still waits for.
    left: usize,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Loads {
    of: HashMap<Name, Load>,
    parked: HashMap<u64, Parked>,
    next: u64,
}

impl Loads {
    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty() && self.parked.is_empty()
    }

    /// What the ledger is to be asked now.
    pub(super) fn ask(&mut self, questions: &mut Questions) {
        let now = Instant::now();
        for load in self.of.values_mut() {
            if let Stage::Ask(ask, not_before) = &load.stage
                && *not_before <= now
            {
                questions.skus.push(ask.clone());
                load.stage = Stage::Asked;
            }
        }
    }

    pub(super) fn take_jobs(&mut self) -> Vec<Job> {
        self.of.clear();
        self.parked.drain().map(|(_, parked)| parked.job).collect()
    }

    pub(super) fn take_late(&mut self, now: Instant) -> Vec<Job> {
        let late: Vec<u64> = self
            .parked
            .iter()
            .filter(|(_, parked)| parked.job.deadline <= now)
            .map(|(number, _)| *number)
            .collect();
        late.into_iter()
            .filter_map(|number| self.parked.remove(&number))
            .map(|parked| parked.job)
            .collect()
    }

    /// The ledger could not be asked: those who waited for it.
    pub(super) fn read_failed(&mut self, asked: &[AskSku]) -> Vec<Job> {
        let names = asked.iter().map(|ask| (ask.tenant.clone(), ask.sku.clone()));
        names.flat_map(|name| self.fail(&name)).collect()
    }

    /// A load is given up: those who waited for it.
    fn fail(&mut self, name: &Name) -> Vec<Job> {
        let Some(load) = self.of.remove(name) else {
            return Vec::new();
        };
        load.jobs
            .into_iter()
            .filter_map(|number| self.parked.remove(&number))
            .map(|parked| parked.job)
            .collect()
    }

    /// A SKU is there, or is known to be unknown: those who can go on.
    fn finish(&mut self, name: &Name, absent: Option<Token>) -> Vec<Job> {
        let Some(load) = self.of.remove(name) else {
            return Vec::new();
        };
        let mut ready = Vec::new();
        for number in load.jobs {
            let Some(parked) = self.parked.get_mut(&number) else {
                continue;
            };
            parked.job.absent.retain(|absent| absent.sku != name.1);
            if let Some(token) = absent {
                parked.job.absent.push(Absent {
                    sku: name.1.clone(),
                    token,
                });
            }
            parked.left = parked.left.saturating_sub(1);
            if parked.left == 0
                && let Some(parked) = self.parked.remove(&number)
            {
                ready.push(parked.job);
            }
        }
        ready
    }
}

impl Conductor {
    /// A command waits for SKUs that are not held.
    pub(super) fn load(&mut self, job: Job, skus: Vec<Id>) {
        self.load_skus(job, skus, false);
    }

    /// A command waits for a SKU of which something damaged is held: it is blocked, and loaded again.
    pub(super) fn load_damaged(&mut self, job: Job, sku: Id) {
        self.load_skus(job, vec![sku], true);
    }

    fn load_skus(&mut self, job: Job, mut skus: Vec<Id>, damaged: bool) {
        skus.sort_unstable();
        skus.dedup();
        let wants_usage = matches!(
            &job.command.action,
            Action::Configure(configure) if matches!(configure.changes.limit_per_owner, Some(Some(_)))
        );
        let tenant = job.command.tenant.clone();
        let number = self.loads.next;
        self.loads.next += 1;
        self.loads.parked.insert(
            number,
            Parked {
                job,
                left: skus.len(),
            },
        );
        for sku in skus {
            let name = (tenant.clone(), sku);
            if let Some(load) = self.loads.of.get_mut(&name)
                && (load.with_usage || !wants_usage)
            {
                load.jobs.push(number);
                continue;
            }
            let earlier = self.loads.of.remove(&name);
            let mut jobs = earlier.map(|load| load.jobs).unwrap_or_default();
            jobs.push(number);
            self.loads.of.insert(
                name.clone(),
                Load {
                    stage: Stage::Calling,
                    jobs,
                    with_usage: wants_usage,
                    damaged,
                    tries: 0,
                },
            );
            self.mark(name);
        }
    }

    /// Reservations that are due cannot be ended, since their SKUs are not held: nobody waits, and yet they are loaded.
    pub(super) fn load_for_sweep(&mut self, missing: Vec<Name>) {
        for name in missing {
            if self.loads.of.contains_key(&name) {
                continue;
            }
            let load = Load {
                stage: Stage::Calling,
                jobs: Vec::new(),
                with_usage: false,
                damaged: false,
                tries: 0,
            };
            self.loads.of.insert(name.clone(), load);
            self.mark(name);
        }
    }

    fn mark(&mut self, name: Name) {
        self.numbers.load();
        let Some(epoch) = self.epoch else {
            return self.load_failed(&name, "commands wait for a new epoch");
        };
        let (sent, token) = (self.sent(epoch), Token(self.tags.next()));
        let hot = self.hot.clone();
        let damaged = self.loads.of.get(&name).is_some_and(|load| load.damaged);
        self.chores.spawn(async move {
            let result = hot.mark(&sent, &name.0, &name.1, token, damaged).await;
            Chore::Marked(MarkEnd { name, result })
        });
    }

    pub(super) fn marked(&mut self, end: MarkEnd) {
        match end.result {
            Ok(Decided::Done { tip, at, value }) => {
                self.note_tip(tip);
                self.hear_clock(at);
                let marker = match value {
                    Marked::Missing(marker) if !marker.absent => marker,
                    Marked::Missing(marker) => return self.load_finished(&end.name, Some(marker.token)),
                    Marked::Held => return self.load_finished(&end.name, None),
                };
                if let Some(load) = self.loads.of.get_mut(&end.name) {
                    let ask = AskSku {
                        tenant: end.name.0,
                        sku: end.name.1,
                        token: marker.token,
                        tip: marker.tip,
                        with_usage: load.with_usage,
                    };
                    load.stage = Stage::Ask(ask, Instant::now());
                }
            }
            Ok(Decided::Stale(stale)) => {
                self.load_failed(&end.name, "the shard in Redis is being built anew");
                self.stale(stale);
            }
            Err(error) => {
                self.pause(&error.to_string());
                self.load_failed(&end.name, &error.to_string());
            }
        }
    }

    /// What the ledger said about SKUs.
    pub(super) fn skus_read(&mut self, words: Vec<(AskSku, SkuWord)>) {
        for (ask, word) in words {
            let name = (ask.tenant.clone(), ask.sku.clone());
            let Some(load) = self.loads.of.get_mut(&name) else {
                continue;
            };
            match word {
                SkuWord::NotYet => load.stage = Stage::Ask(ask, Instant::now() + ASK_AGAIN),
                SkuWord::Never => self.mark_again(name),
                SkuWord::Found(found, with_usage, read_at) => {
                    load.stage = Stage::Calling;
                    let Some(epoch) = self.epoch else {
                        self.load_failed(&name, "commands wait for a new epoch");
                        continue;
                    };
                    let sent = self.sent(epoch);
                    let hot = self.hot.clone();
                    self.chores.spawn(async move {
                        let record = found.record.as_ref();
                        let (tenant, sku) = (&name.0, &name.1);
                        let usage = with_usage.then_some(found.usage.as_slice());
                        let result = hot
                            .load_sku(&sent, tenant, sku, ask.token, read_at, record, usage)
                            .await;
                        Chore::Loaded(LoadEnd {
                            cursor: read_at.seq,
                            is_known: record.is_some(),
                            name,
                            token: ask.token,
                            result,
                        })
                    });
                }
            }
        }
    }

    pub(super) fn loaded(&mut self, end: LoadEnd) {
        match end.result {
            Ok(Decided::Done { tip, at, value }) => {
                self.note_tip(tip);
                self.hear_clock(at);
                if value {
                    let absent = (!end.is_known).then_some(end.token);
                    return self.load_finished(&end.name, absent);
                }
                if tip.seq < end.cursor {
                    // The counters hold entries that this node does not have.
                    self.keeper
                        .suspect("a SKU was read after entries that this node lost", true);
                } else if self.loads.of.get(&end.name).is_some_and(|load| load.tries > 0) {
                    // Another process took the marker, once; twice, this node may be on another chain.
                    self.keeper
                        .suspect("a SKU could not be loaded; another chain?", false);
                }
                self.mark_again(end.name);
            }
            Ok(Decided::Stale(stale)) => {
                self.load_failed(&end.name, "the shard in Redis is being built anew");
                self.stale(stale);
            }
            Err(error) => {
                self.pause(&error.to_string());
                self.load_failed(&end.name, &error.to_string());
            }
        }
    }

    fn load_finished(&mut self, name: &Name, absent: Option<Token>) {
        let ready = self.loads.finish(name, absent);
        self.queues.push_front(ready);
    }

    /// The marker is gone: another one.
    fn mark_again(&mut self, name: Name) {
        let Some(load) = self.loads.of.get_mut(&name) else {
            return;
        };
        load.tries += 1;
        load.stage = Stage::Calling;
        // Whoever took the marker has loaded it: what is there now is another thing.
        load.damaged = false;
        if load.tries > TRIES_MAX {
            return self.load_failed(&name, "the SKU is loaded again and again");
        }
        self.mark(name);
    }

    /// Those who waited are sent again: they will say again what is missing.
    fn load_failed(&mut self, name: &Name, why: &str) {
        tracing::debug!(tenant = %name.0, sku = %name.1, why, "a SKU was not loaded");
        let jobs = self.loads.fail(name);
        self.queues.push_front(jobs);
    }

    /// A new epoch voids every marker.
    pub(super) fn loads_restart(&mut self) {
        let jobs = self.loads.take_jobs();
        self.queues.push_front(jobs);
    }
}
