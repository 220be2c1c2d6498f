//! Where the time comes from.
//!
//! Ends of reservations are moments of wall time, but wall time can be set back or forth by hand, by NTP or by a
//! resumed machine. [`SystemClock`] therefore counts monotonic time from an anchor in wall time and looks at the wall
//! now and then:
//!
//! - It never runs backwards.
//! - The wall less than [`JUMP_MS`] away: monotonic time is kept.
//! - The wall ahead by more: a warning, and the anchor moves forward to the wall, so that ends come when the wall says
//!   (a machine that slept, or a clock that was wrong when the store opened).
//! - The wall behind by more: a warning, and monotonic time is kept: ends come when they would have come. After the
//!   next start the clock starts at the larger of the wall and the last recorded moment, and goes on from there: time
//!   that stood still until the wall caught up would hold units for as long as the clock had once been ahead.
//!
//! No count depends on time being right: an end only decides when units become available again, and every unit of an
//! ended reservation is freed exactly once whenever that is.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use stockade_core::Millis;

use crate::names;

/// How far wall time and monotonic time may drift apart, in milliseconds, before it counts as a jump.
pub const JUMP_MS: i64 = 2_000;

/// What a store calls when its clock is set by hand, so that it looks at the new time at once.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// A source of time. It must not run backwards; if it does, the store keeps the latest time that it saw.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Milliseconds since the Unix epoch.
    fn now(&self) -> Millis;

    /// Says what the latest recorded moment is, when a store opens: time that was recorded cannot be taken back, so a
    /// clock that is behind should go on from there. One that does not keeps everything at that moment until it
    /// arrives there itself.
    fn go_on_from(&self, recorded: Millis) {
        let _ = recorded;
    }

    /// Asks to be told of changes that do not come with the passing of real time. Only a clock that is set by hand
    /// needs it.
    fn on_change(&self, wake: Wake) {
        drop(wake);
    }
}

/// The machine's clock; see the module's text.
#[derive(Debug)]
pub struct SystemClock {
    anchor: Mutex<Anchor>,
}

#[derive(Debug)]
struct Anchor {
    wall_ms: Millis,
    monotonic: Instant,
    last: Millis,
    behind: bool,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl SystemClock {
    /// Anchored at the present wall time.
    pub fn new() -> Self {
        let wall_ms = wall_now();
        Self {
            anchor: Mutex::new(Anchor {
                wall_ms,
                monotonic: Instant::now(),
                last: wall_ms,
                behind: false,
            }),
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let mut anchor = self.anchor.lock();
        let wall = wall_now();
        let elapsed = anchor.monotonic.elapsed();
        anchor.read(wall, elapsed, Instant::now)
    }

    fn go_on_from(&self, recorded: Millis) {
        let now = self.now();
        self.anchor.lock().go_on_from(recorded, now, Instant::now());
    }
}

impl Anchor {
    fn go_on_from(&mut self, recorded: Millis, now: Millis, at: Instant) {
        let ahead = recorded.saturating_sub(now);
        if ahead <= 0 {
            return;
        }
        self.wall_ms = recorded;
        self.monotonic = at;
        self.last = recorded;
        if ahead > JUMP_MS {
            tracing::warn!(
                ahead_ms = ahead,
                "the last recorded moment is later than the wall clock says; going on from it: reservations end later \
                 than the wall says"
            );
            metrics::counter!(names::CLOCK_JUMPS).increment(1);
            self.behind = true;
        }
    }

    fn read(&mut self, wall: Millis, elapsed: Duration, now: impl Fn() -> Instant) -> Millis {
        let steady = self.wall_ms.saturating_add(millis(elapsed));
        let apart = wall.saturating_sub(steady);
        let mut at = steady;
        if apart > JUMP_MS {
            tracing::warn!(
                apart_ms = apart,
                "the wall clock jumped forward; following it: reservations end early"
            );
            metrics::counter!(names::CLOCK_JUMPS).increment(1);
            self.wall_ms = wall;
            self.monotonic = now();
            self.behind = false;
            at = wall;
        } else if apart < -JUMP_MS {
            if !self.behind {
                tracing::warn!(
                    apart_ms = apart,
                    "the wall clock jumped back; not following it: reservations end later than it says"
                );
                metrics::counter!(names::CLOCK_JUMPS).increment(1);
                self.behind = true;
            }
        } else {
            self.behind = false;
        }
        self.last = self.last.max(at);
        self.last
    }
}

fn wall_now() -> Millis {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => millis(since),
        // A wall clock before 1970: the monotonic part still counts.
        Err(_) => 0,
    }
}

fn millis(duration: Duration) -> Millis {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A clock that is set by hand, for tests of programs that use a store.
#[derive(Clone)]
pub struct ManualClock {
    shared: Arc<Mutex<Manual>>,
}

struct Manual {
    now: Millis,
    wakes: Vec<Wake>,
}

impl ManualClock {
    /// Starts at a moment.
    pub fn new(now: Millis) -> Self {
        Self {
            shared: Arc::new(Mutex::new(Manual {
                now,
                wakes: Vec::new(),
            })),
        }
    }

    /// Sets it, forward or back.
    pub fn set(&self, now: Millis) {
        let wakes = {
            let mut manual = self.shared.lock();
            manual.now = now;
            manual.wakes.clone()
        };
        for wake in wakes {
            wake();
        }
    }

    /// Moves it by so many milliseconds.
    pub fn advance(&self, ms: i64) {
        let now = self.shared.lock().now;
        self.set(now.saturating_add(ms));
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualClock")
            .field("now", &self.shared.lock().now)
            .finish_non_exhaustive()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Millis {
        self.shared.lock().now
    }

    fn on_change(&self, wake: Wake) {
        self.shared.lock().wakes.push(wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor() -> Anchor {
        Anchor {
            wall_ms: 1_000_000,
            monotonic: Instant::now(),
            last: 1_000_000,
            behind: false,
        }
    }

    #[test]
    fn small_drift_keeps_monotonic_time() {
        let mut anchor = anchor();
        let second = Duration::from_secs(1);
        assert_eq!(anchor.read(1_001_500, second, Instant::now), 1_001_000);
        assert_eq!(anchor.read(999_500, second, Instant::now), 1_001_000);
    }

    #[test]
    fn a_jump_forward_is_followed() {
        let mut anchor = anchor();
        assert_eq!(
            anchor.read(4_600_000, Duration::from_secs(1), Instant::now),
            4_600_000
        );
        assert_eq!(
            anchor.read(4_601_000, Duration::from_secs(1), Instant::now),
            4_601_000
        );
    }

    #[test]
    fn a_jump_back_is_not_followed_and_time_goes_on() {
        let mut anchor = anchor();
        let first = anchor.read(1_000_000 - 3_600_000, Duration::from_secs(1), Instant::now);
        assert_eq!(first, 1_001_000);
        assert!(anchor.behind);
        let second = anchor.read(1_000_000 - 3_599_000, Duration::from_secs(2), Instant::now);
        assert_eq!(second, 1_002_000);
    }

    #[test]
    fn the_system_clock_never_runs_backwards() {
        let clock = SystemClock::new();
        let mut last = clock.now();
        for _ in 0..1_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }
}
