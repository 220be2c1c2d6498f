//! Sends requests until they are answered: bounded in flight, the same bytes again after a fault, with growing pauses.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::LoadError;
use super::answer::excerpt;
use super::http::{Connection, Head};
use super::target::Target;

/// How long to go on with a request that gets no answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// One try may take so long.
    pub(crate) answer_within: Duration,
    /// So many tries.
    pub(crate) tries: u32,
    /// The pause after the first; each further one is twice as long...
    pub(crate) first_pause: Duration,
    /// ...up to this.
    pub(crate) longest_pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            answer_within: Duration::from_secs(5),
            tries: 10,
            first_pause: Duration::from_millis(20),
            longest_pause: Duration::from_secs(1),
        }
    }
}

/// An hour: longer latencies count as that.
const LATENCY_US_MAX: u64 = 3_600_000_000;

/// What became of a request.
#[derive(Clone, Debug)]
pub(crate) enum Outcome<T> {
    /// Answered.
    Answered {
        answer: T,
        /// An earlier try may have arrived without its answer coming back.
        resent: bool,
    },
    /// Not answered after all tries.
    Unanswered {
        /// What the last try met.
        why: String,
    },
    /// Answered with something that the request must not be answered with; more tries would not change it.
    Useless {
        /// What it was.
        why: String,
    },
}

/// What one try met.
enum Try<T> {
    Answered(T),
    /// Nothing was changed: the service said so, or no connection came about.
    NotDone {
        why: String,
        pause: Option<Duration>,
    },
    /// It may have happened.
    Unknown {
        why: String,
    },
    Useless {
        why: String,
    },
}

/// Sends requests to one service.
#[derive(Debug)]
pub(crate) struct Caller {
    target: Target,
    patience: Patience,
    idle: RefCell<Vec<Connection>>,
    slots: Semaphore,
    in_flight_max: u32,
    latency_us: RefCell<Histogram<u64>>,
}

impl Caller {
    pub(crate) fn new(target: Target, in_flight_max: u32, patience: Patience) -> Result<Self, LoadError> {
        // Each request in flight has a connection, and so an open file, of its own.
        crate::serve::allow_open_files(in_flight_max as usize);
        let latency_us =
            Histogram::new_with_bounds(1, LATENCY_US_MAX, 3).map_err(|error| LoadError::Request {
                what: "counting latencies".to_owned(),
                why: error.to_string(),
            })?;
        Ok(Self {
            target,
            patience,
            idle: RefCell::default(),
            slots: Semaphore::new(in_flight_max as usize),
            in_flight_max,
            latency_us: RefCell::new(latency_us),
        })
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Latencies so far, and starts over.
    pub(crate) fn take_latency_us(&self) -> Histogram<u64> {
        let mut latency_us = self.latency_us.borrow_mut();
        let taken = latency_us.clone();
        latency_us.reset();
        taken
    }

    /// Sends `request` until `read` makes an answer of what comes back.
    pub(crate) async fn call<T>(
        &self,
        request: &[u8],
        read: impl Fn(u16, &[u8]) -> Result<T, String>,
    ) -> Outcome<T> {
        self.call_in(None, self.patience.answer_within, request, &read)
            .await
    }

    /// The same, for what may take longer than an order.
    pub(crate) async fn call_within<T>(
        &self,
        answer_within: Duration,
        request: &[u8],
        read: impl Fn(u16, &[u8]) -> Result<T, String>,
    ) -> Outcome<T> {
        self.call_in(None, answer_within, request, &read).await
    }

    /// Sends the same request twice at once on two connections.
    pub(crate) async fn call_twice<T>(
        &self,
        request: &[u8],
        read: impl Fn(u16, &[u8]) -> Result<T, String>,
    ) -> (Outcome<T>, Outcome<T>) {
        if self.in_flight_max < 2 {
            // Only one may be in flight: one after the other is all that is left.
            let first = self.call(request, &read).await;
            return (first, self.call(request, &read).await);
        }
        // Both slots are taken before anything is sent, or the second would trail behind the first.
        let (first, second) = match self.slots.acquire_many(2).await {
            Ok(mut both) => {
                let one = both.split(1);
                (Some(both), one)
            }
            Err(_) => (None, None),
        };
        let within = self.patience.answer_within;
        tokio::join!(
            self.call_in(first, within, request, &read),
            self.call_in(second, within, request, &read)
        )
    }

    async fn call_in<T>(
        &self,
        mut slot: Option<SemaphorePermit<'_>>,
        answer_within: Duration,
        request: &[u8],
        read: &impl Fn(u16, &[u8]) -> Result<T, String>,
    ) -> Outcome<T> {
        let mut resent = false;
        let mut tries = 1;
        let mut sent_first = None;
        loop {
            let held = match slot.take() {
                Some(slot) => Some(slot),
                None => self.slots.acquire().await.ok(),
            };
            let since = *sent_first.get_or_insert_with(Instant::now);
            let tried = self.one_try(answer_within, request, read).await;
            // The slot is for requests in flight; whoever pauses holds none.
            drop(held);
            let (why, asked) = match tried {
                Try::Answered(answer) => {
                    self.note_latency(since.elapsed());
                    return Outcome::Answered { answer, resent };
                }
                Try::Useless { why } => return Outcome::Useless { why },
                Try::NotDone { why, pause } => (why, pause),
                Try::Unknown { why } => {
                    resent = true;
                    (why, None)
                }
            };
            if tries >= self.patience.tries {
                return Outcome::Unanswered { why };
            }
            self.pause(tries, asked).await;
            tries += 1;
        }
    }

    async fn one_try<T>(
        &self,
        answer_within: Duration,
        request: &[u8],
        read: &impl Fn(u16, &[u8]) -> Result<T, String>,
    ) -> Try<T> {
        let limit = tokio::time::sleep(answer_within);
        tokio::pin!(limit);
        let idle = self.take_idle();
        let opened = if let Some(connection) = idle {
            Ok(connection)
        } else {
            tokio::select! {
                biased;
                opened = Connection::open(&self.target) => opened,
                () = &mut limit => Err(std::io::ErrorKind::TimedOut.into()),
            }
        };
        let mut connection = match opened {
            Ok(connection) => connection,
            Err(error) => {
                return Try::NotDone {
                    why: format!("no connection: {error}; is the service running there?"),
                    pause: None,
                };
            }
        };
        let head = tokio::select! {
            biased;
            head = connection.exchange(request) => head,
            () = &mut limit => return Try::Unknown { why: "no answer in time".to_owned() },
        };
        let head = match head {
            Ok(head) => head,
            Err(error) => {
                return Try::Unknown {
                    why: format!("connection lost: {error}"),
                };
            }
        };
        let tried = judge(head, connection.body(), read);
        // Only a connection whose answer was read to its end is used again.
        if !head.close {
            self.idle.borrow_mut().push(connection);
        }
        tried
    }

    /// A connection that is still open. The service closes those that are silent for long.
    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle.borrow_mut();
        while let Some(connection) = idle.pop() {
            if connection.is_usable() {
                return Some(connection);
            }
        }
        None
    }

    async fn pause(&self, tries: u32, asked: Option<Duration>) {
        let doubled = self
            .patience
            .first_pause
            .saturating_mul(1 << tries.saturating_sub(1).min(16));
        let pause = asked.unwrap_or(doubled).min(self.patience.longest_pause);
        // Up to a half more, so that those who failed together do not come back together.
        tokio::time::sleep(pause.mul_f64(1.0 + fastrand::f64() / 2.0)).await;
    }

    fn note_latency(&self, latency: Duration) {
        let us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.latency_us.borrow_mut().saturating_record(us);
    }
}

/// Whether a status ends the matter, and how.
fn judge<T>(head: Head, body: &[u8], read: &impl Fn(u16, &[u8]) -> Result<T, String>) -> Try<T> {
    match head.status {
        // Documented to have changed nothing.
        429 | 503 => Try::NotDone {
            why: said(head.status, body),
            pause: head.retry_after,
        },
        408 | 500 | 502 | 504 => Try::Unknown {
            why: said(head.status, body),
        },
        status => match read(status, body) {
            Ok(answer) => Try::Answered(answer),
            Err(why) => Try::Useless { why },
        },
    }
}

fn said(status: u16, body: &[u8]) -> String {
    format!("HTTP {status}: {}", excerpt(body))
}
