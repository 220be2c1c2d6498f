//! A lock on one Redis.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use redis::aio::ConnectionLike;
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

use super::{jittered, millis, new_owner};
use crate::error::{Happened, ScriptError};
use crate::keys::{KeyError, companion};
use crate::runner::Scripts;
use crate::scripts::{Extend, Lock as LockCall, LockReply, Unlock};

#[derive(Clone, Copy, Debug)]
pub struct LockOptions {
    /// How long the lock lasts without a sign of life from its holder.
    pub ttl: Duration,
    /// How often the watchdog renews it. Without one, the lock ends after `ttl`.
    pub renew_every: Option<Duration>,
    /// The first and the longest pause between two tries of a caller that waits.
    pub wait_min: Duration,
    pub wait_max: Duration,
}

impl Default for LockOptions {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(30),
            renew_every: Some(Duration::from_secs(10)),
            wait_min: Duration::from_millis(20),
            wait_max: Duration::from_secs(1),
        }
    }
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum LockError {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Script(#[from] ScriptError),
}

/// Takes locks by name.
#[derive(Clone, Debug)]
pub struct Locks<C> {
    scripts: Scripts<C>,
    options: LockOptions,
}

/// A held lock. Clones are handles to the same holding, for code that enters again; the last one to be dropped lets the
/// lock go, in the background.
#[derive(Clone, Debug)]
pub struct Lock {
    inner: Arc<Inner>,
}

/// What became of a [`Lock::release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    Released,
    /// It had run out, or somebody else has it. Nothing was changed.
    NotHeld,
    /// Another handle still holds it.
    StillUsed,
}

type Answer = oneshot::Sender<Result<bool, ScriptError>>;

#[derive(Debug)]
struct Inner {
    fence: u64,
    until: Arc<Mutex<Instant>>,
    lost: watch::Receiver<bool>,
    /// Dropping it tells the watchdog to release.
    stop: oneshot::Sender<Answer>,
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> Locks<C> {
    pub fn new(scripts: Scripts<C>, options: LockOptions) -> Self {
        Self { scripts, options }
    }

    /// Tries once. `None`: somebody else holds it.
    pub async fn try_lock(&self, name: &str) -> Result<Option<Lock>, LockError> {
        self.lock_within(name, Duration::ZERO).await
    }

    /// Tries until it has the lock or `patience` is over (`None`). States that pass, such as a failover, are waited out
    /// too.
    pub async fn lock_within(&self, name: &str, patience: Duration) -> Result<Option<Lock>, LockError> {
        let fence = companion(name, "fence")?;
        let owner = new_owner();
        let start = Instant::now();
        let mut pause = self.options.wait_min;
        let mut unsure = false;
        loop {
            let sent = Instant::now();
            let ttl_ms = millis(self.options.ttl);
            let call = LockCall {
                lock: name,
                fence: &fence,
                owner: &owner,
                ttl_ms,
            };
            let mut wait = jittered(pause);
            let problem = match self.scripts.run(&call).await {
                Ok(LockReply::Held { fence, .. }) => {
                    return Ok(Some(self.hold(name.to_owned(), owner, fence, sent)));
                }
                Ok(LockReply::Taken { remains_ms }) => {
                    if let Some(remains) = remains_ms {
                        // No use in sleeping far past its end.
                        wait = wait.min(Duration::from_millis(remains + 1));
                    }
                    None
                }
                Err(error) => {
                    // The same owner asks again, so an acquisition whose answer was lost is found again.
                    unsure |= error.happened() == Happened::Unknown;
                    Some(error)
                }
            };
            let left = patience.saturating_sub(start.elapsed());
            let hopeless = problem
                .as_ref()
                .is_some_and(|one| one.happened() == Happened::Nothing && !one.is_passing());
            if left.is_zero() || hopeless {
                if unsure {
                    let (scripts, lock) = (self.scripts.clone(), name.to_owned());
                    // It may be ours without our knowing; otherwise it ends by itself.
                    tokio::spawn(async move {
                        let call = Unlock {
                            lock: &lock,
                            owner: &owner,
                        };
                        drop(scripts.run(&call).await);
                    });
                }
                return problem.map_or(Ok(None), |error| Err(error.into()));
            }
            sleep(wait.min(left)).await;
            pause = (pause * 2).min(self.options.wait_max);
        }
    }

    fn hold(&self, name: String, owner: String, fence: u64, sent: Instant) -> Lock {
        let until = Arc::new(Mutex::new(sent + self.options.ttl));
        let (lost_sender, lost) = watch::channel(false);
        let (stop, stopped) = oneshot::channel();
        let watchdog = Watchdog {
            scripts: self.scripts.clone(),
            name,
            owner,
            options: self.options,
            until: Arc::clone(&until),
            lost: lost_sender,
        };
        tokio::spawn(watchdog.run(stopped));
        Lock {
            inner: Arc::new(Inner {
                fence,
                until,
                lost,
                stop,
            }),
        }
    }
}

impl Lock {
    /// Grows with every acquisition of this lock. Pass it along with what is written.
    pub fn fence(&self) -> u64 {
        self.inner.fence
    }

    /// Whether the lock is certain to be still held. A holder that was stopped for too long sees `false` at once, before
    /// any answer comes.
    pub fn is_held(&self) -> bool {
        !*self.inner.lost.borrow() && Instant::now() < self.until()
    }

    fn until(&self) -> Instant {
        *self.inner.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when the lock is lost: run out, taken by somebody else, or not renewable in time.
    pub async fn lost(&self) {
        let mut lost = self.inner.lost.clone();
        loop {
            let until = self.until();
            if *lost.borrow_and_update() || Instant::now() >= until {
                return;
            }
            tokio::select! {
                changed = lost.changed() => if changed.is_err() { return },
                () = tokio::time::sleep_until(until.into()) => {}
            }
        }
    }

    /// Lets the lock go, if this is the last handle.
    pub async fn release(self) -> Result<Release, ScriptError> {
        let Some(inner) = Arc::into_inner(self.inner) else {
            return Ok(Release::StillUsed);
        };
        let (answer, answered) = oneshot::channel();
        if inner.stop.send(answer).is_err() {
            return Ok(Release::NotHeld);
        }
        match answered.await {
            Ok(Ok(true)) => Ok(Release::Released),
            Ok(Err(error)) => Err(error),
            Ok(Ok(false)) | Err(_) => Ok(Release::NotHeld),
        }
    }
}

/// Renews the lock while handles live, says when it is lost, and releases it at the end.
struct Watchdog<C> {
    scripts: Scripts<C>,
    name: String,
    owner: String,
    options: LockOptions,
    until: Arc<Mutex<Instant>>,
    lost: watch::Sender<bool>,
}

impl<C: ConnectionLike + Clone> Watchdog<C> {
    async fn run(self, mut stopped: oneshot::Receiver<Answer>) {
        let mut pause = self.options.renew_every;
        loop {
            let end = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
            let left = end.saturating_duration_since(Instant::now());
            tokio::select! {
                biased;
                answer = &mut stopped => return self.release(answer.ok()).await,
                () = sleep(pause.unwrap_or(left).min(left)) => {}
            }
            let now = Instant::now();
            if now >= end {
                self.lost.send_replace(true);
                return;
            }
            let Some(every) = self.options.renew_every else {
                continue;
            };
            let ttl = self.options.ttl;
            let call = Extend {
                lock: &self.name,
                owner: &self.owner,
                ttl_ms: millis(ttl),
            };
            match timeout(end - now, self.scripts.run(&call)).await {
                Ok(Ok(true)) => {
                    // Counted from before it was sent: the server's time cannot end earlier.
                    *self.until.lock().unwrap_or_else(PoisonError::into_inner) = now + ttl;
                    pause = Some(every);
                }
                Ok(Ok(false)) => {
                    self.lost.send_replace(true);
                    return;
                }
                // Not known to be lost: try again soon, until its time is over.
                Ok(Err(_)) | Err(_) => pause = Some(jittered(every / 10)),
            }
        }
    }

    async fn release(self, answer: Option<Answer>) {
        self.lost.send_replace(true);
        let call = Unlock {
            lock: &self.name,
            owner: &self.owner,
        };
        let mut result = self.scripts.run(&call).await;
        // An answer that was lost is asked for once more; "not held" then means that the first try did it, or that its
        // time is over.
        if result
            .as_ref()
            .is_err_and(|error| error.happened() == Happened::Unknown || error.is_passing())
        {
            sleep(Duration::from_millis(20)).await;
            result = self.scripts.run(&call).await;
        }
        if let Some(answer) = answer {
            // Nobody waits any more: the caller gave up.
            drop(answer.send(result));
        }
    }
}
