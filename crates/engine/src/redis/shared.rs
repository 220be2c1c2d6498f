//! What callers and the tier's threads share: the way in, the door, and how the tier is.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use stockade_core::Position;
use tokio::sync::{mpsc, watch};

use super::Message;
use crate::api::{Health, Readiness};
use crate::error::Error;
use crate::tally::{Kind, TurnedAway};

/// The way into the conductor.
#[derive(Clone, Debug)]
pub(super) struct Sender(mpsc::UnboundedSender<Message>);

impl Sender {
    pub(super) const fn new(sender: mpsc::UnboundedSender<Message>) -> Self {
        Self(sender)
    }

    /// Once the conductor has ended nobody takes messages: then dropping one tells whoever waits for its answer.
    pub(super) fn send(&self, message: Message) {
        let _ = self.0.send(message);
    }
}

#[derive(Debug)]
struct Board {
    readiness: Readiness,
    decided: Position,
    recorded: u64,
    live: usize,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) sender: Sender,
    board: Mutex<Board>,
    closing: AtomicBool,
    waiting: AtomicUsize,
    limit: usize,
    /// Whether so much is not recorded that no further reservation is taken.
    crowded: AtomicBool,
    /// Orders that are not recorded, for messages.
    unrecorded: AtomicUsize,
    pub(super) turned_away: TurnedAway,
    /// Nanoseconds that recording one order took lately, for `retry_after_ms`.
    pace_ns: AtomicU64,
    pub(super) ended: watch::Sender<bool>,
}

impl Shared {
    pub(super) fn new(sender: Sender, limit: usize) -> Self {
        Self {
            sender,
            board: Mutex::new(Board {
                readiness: Readiness::Recovering {
                    why: "being opened".into(),
                },
                decided: Position::default(),
                recorded: 0,
                live: 0,
            }),
            closing: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            limit: limit.max(1),
            crowded: AtomicBool::new(false),
            unrecorded: AtomicUsize::new(0),
            turned_away: TurnedAway::default(),
            pace_ns: AtomicU64::new(20_000),
            ended: watch::Sender::new(false),
        }
    }

    /// Lets in one command, or says why not.
    pub(super) fn admit(&self, kind: Kind) -> Result<(), Error> {
        if self.is_closing() {
            return Err(closed());
        }
        let limit = if kind.is_growing() {
            self.limit - self.limit / 5
        } else {
            self.limit
        };
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let crowded = kind.is_growing() && self.crowded.load(Ordering::Relaxed);
        if before < limit && !crowded {
            return Ok(());
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        let waiting = before.max(self.unrecorded.load(Ordering::Relaxed));
        Err(Error::Overloaded {
            waiting,
            limit,
            retry_after_ms: self.retry_after_ms(waiting),
        })
    }

    /// The time in which half of what waits is done.
    fn retry_after_ms(&self, waiting: usize) -> u64 {
        let waiting = u64::try_from(waiting).unwrap_or(u64::MAX);
        let half = waiting.saturating_mul(self.pace_ns.load(Ordering::Relaxed)) / 2_000_000;
        half.clamp(50, 5_000)
    }

    /// So many commands that were let in are answered.
    pub(super) fn answered(&self, commands: usize) {
        self.waiting.fetch_sub(commands, Ordering::Relaxed);
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(super) const fn limit(&self) -> usize {
        self.limit
    }

    pub(super) fn set_backlog(&self, crowded: bool, unrecorded: usize) {
        self.crowded.store(crowded, Ordering::Relaxed);
        self.unrecorded.store(unrecorded, Ordering::Relaxed);
    }

    pub(super) fn set_pace(&self, took: std::time::Duration, orders: usize) {
        let each = took.as_nanos() / u128::try_from(orders.max(1)).unwrap_or(1);
        self.pace_ns
            .store(u64::try_from(each).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    pub(super) fn close(&self) {
        self.set_readiness(Readiness::Closing);
        self.closing.store(true, Ordering::Release);
        self.sender.send(Message::Wake);
    }

    pub(super) fn readiness(&self) -> Readiness {
        self.board.lock().readiness.clone()
    }

    /// Poisoned stays; closing gives way only to poisoned.
    pub(super) fn set_readiness(&self, readiness: Readiness) {
        let mut board = self.board.lock();
        match (&board.readiness, &readiness) {
            (Readiness::Poisoned { .. }, _)
            | (Readiness::Closing, Readiness::Ready | Readiness::Recovering { .. }) => {}
            _ => board.readiness = readiness,
        }
    }

    pub(super) fn set_numbers(&self, decided: Position, recorded: u64, live: usize) {
        let mut board = self.board.lock();
        board.decided = decided;
        board.recorded = recorded;
        board.live = live;
    }

    pub(super) fn health(&self) -> Health {
        let board = self.board.lock();
        Health {
            readiness: board.readiness.clone(),
            decided: board.decided,
            recorded: board.recorded,
            waiting: self.waiting(),
            live: board.live,
        }
    }
}

pub(super) fn closed() -> Error {
    Error::Unavailable {
        why: "the store is being closed; nothing was changed".into(),
    }
}
