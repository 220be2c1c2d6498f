//! Turns reservations away before the queue is so long that nobody waits for its end.
//!
//! How long a new one would wait is what is under way, divided by how much is answered in a second. The latter is
//! measured while there is a queue; an idle service has no figure and turns nobody away.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use stockade_core::Millis;

/// How often it is measured.
const MEASURE_EVERY: Duration = Duration::from_millis(100);
/// Fewer than so many under way are no queue.
const QUEUE_MIN: i64 = 64;
/// So many may always be under way.
const ALWAYS: i64 = 256;
/// After so many measurements without a queue the figure is forgotten.
const CALM: u32 = 10;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Shed {
    after_ms: Option<Millis>,
    under_way: AtomicI64,
    answered: AtomicI64,
    /// The most that may be under way.
    most: AtomicI64,
}

/// Reservations under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay<'s> {
    shed: &'s Shed,
    count: i64,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.shed.under_way.fetch_sub(self.count, Ordering::Relaxed);
        self.shed.answered.fetch_add(self.count, Ordering::Relaxed);
    }
}

impl Shed {
    pub(super) fn new(after_ms: Option<Millis>) -> Self {
        Self {
            after_ms,
            under_way: AtomicI64::new(0),
            answered: AtomicI64::new(0),
            most: AtomicI64::new(i64::MAX),
        }
    }

    /// Lets so many reservations on; otherwise says how long to stay away, in milliseconds.
    pub(crate) fn enter(&self, count: usize) -> Result<UnderWay<'_>, u64> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let before = self.under_way.fetch_add(count, Ordering::Relaxed);
        let under_way = UnderWay { shed: self, count };
        if before < self.most.load(Ordering::Relaxed) {
            return Ok(under_way);
        }
        self.under_way.fetch_sub(count, Ordering::Relaxed);
        // It was not answered: it is none of what the service got done.
        std::mem::forget(under_way);
        Err(self
            .after_ms
            .and_then(|ms| u64::try_from(ms).ok())
            .unwrap_or(1_000)
            .max(1_000))
    }

    /// Measures; never comes back.
    pub(crate) async fn watch(&self) {
        let Some(after_ms) = self.after_ms else {
            return std::future::pending().await;
        };
        let mut rate = Measured::default();
        let mut last = Instant::now();
        loop {
            tokio::time::sleep(MEASURE_EVERY).await;
            let now = Instant::now();
            let ms = i64::try_from(now.duration_since(last).as_millis())
                .unwrap_or(1)
                .max(1);
            last = now;
            let answered = self.answered.swap(0, Ordering::Relaxed);
            let most = rate.note(answered, self.under_way.load(Ordering::Relaxed), ms, after_ms);
            self.most.store(most, Ordering::Relaxed);
        }
    }
}

/// What is answered in a second, in thousandths.
#[derive(Debug, Default)]
struct Measured {
    a_second: Option<i64>,
    queue_before: i64,
    calm: u32,
}

impl Measured {
    /// The most that may be under way from now on.
    fn note(&mut self, answered: i64, queue: i64, ms: i64, after_ms: Millis) -> i64 {
        let queued = queue.max(self.queue_before) >= QUEUE_MIN;
        let all_along = queue.min(self.queue_before) >= QUEUE_MIN;
        self.queue_before = queue;
        if !queued {
            self.calm = self.calm.saturating_add(1);
            if self.calm >= CALM {
                self.a_second = None;
            }
        } else if all_along {
            self.calm = 0;
            let sample = answered.saturating_mul(1_000) / ms;
            self.a_second = match self.a_second {
                // A stall before anything was answered says nothing about the rate.
                None if sample == 0 => None,
                None => Some(sample),
                Some(before) => Some((before * 7 + sample * 3) / 10),
            };
        }
        self.a_second.map_or(i64::MAX, |a_second| {
            (a_second.saturating_mul(after_ms) / 1_000).max(ALWAYS)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_service_turns_nobody_away() {
        let mut rate = Measured::default();
        assert_eq!(rate.note(0, 0, 100, 1_000), i64::MAX);
        // A crowd comes at once: nothing is known of how fast it can be served.
        assert_eq!(rate.note(0, 5_000, 100, 1_000), i64::MAX);
        assert_eq!(rate.note(0, 5_000, 100, 1_000), i64::MAX);
        // 10,000 a second: a queue of a second is 10,000 long.
        assert_eq!(rate.note(1_000, 5_000, 100, 1_000), 10_000);
        // Served; after a second of calm the figure is forgotten.
        for _ in 0..11 {
            rate.note(5, 3, 100, 1_000);
        }
        assert_eq!(rate.note(5, 3, 100, 1_000), i64::MAX);
    }

    #[test]
    fn a_queue_that_stops_moving_shortens_what_is_let_on() {
        let mut rate = Measured::default();
        rate.note(0, 5_000, 100, 1_000);
        rate.note(1_000, 5_000, 100, 1_000);
        let mut most = i64::MAX;
        for _ in 0..30 {
            most = rate.note(0, 5_000, 100, 1_000);
        }
        assert_eq!(most, ALWAYS);
        // And lets on again when it moves.
        for _ in 0..30 {
            most = rate.note(1_000, 5_000, 100, 1_000);
        }
        assert!(most > 9_000, "{most}");
    }

    #[test]
    fn what_is_turned_away_is_not_under_way() {
        let shed = Shed::new(Some(500));
        shed.most.store(2, Ordering::Relaxed);
        let one = shed.enter(1).unwrap();
        let two = shed.enter(1).unwrap();
        assert_eq!(shed.enter(1).unwrap_err(), 1_000);
        drop(one);
        let three = shed.enter(1).unwrap();
        drop((two, three));
        assert_eq!(shed.under_way.load(Ordering::Relaxed), 0);
        assert_eq!(shed.answered.load(Ordering::Relaxed), 3);
    }
}
