//! A token bucket in one number: the moment at which it would be full again.
//!
//! A refusal costs nothing, so that whoever asks too often still gets what the rate allows.

const SECOND_NS: i64 = 1_000_000_000;

/// How often, and how many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// The time that brings one token.
    step_ns: i64,
    burst: u32,
}

/// What a bucket stands at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    /// Of so many.
    pub(crate) burst: u32,
    /// Which fill up within so many seconds.
    pub(crate) window_s: u64,
    /// Tokens left.
    pub(crate) left: u32,
    /// Until it is full, or after a refusal until there is a token.
    pub(crate) wait_s: u64,
}

impl Rate {
    /// `100/s`, `5/m` or `20/h`, and how many at once: as many as come in a whole second, minute or hour when not given.
    pub(crate) fn of(name: &str, text: &str, burst: Option<u32>) -> Result<Self, String> {
        let refuse = || {
            format!(
                "--{name} {text}: give a whole number from 1 to 1000000 and the time that it is for, such as 100/s, \
                 5/m or 20/h"
            )
        };
        let (count, unit) = text.split_once('/').ok_or_else(refuse)?;
        let plain = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
        let count: u32 = if plain {
            count.parse().map_err(|_| refuse())?
        } else {
            return Err(refuse());
        };
        let window_ns = match unit {
            "s" => SECOND_NS,
            "m" => 60 * SECOND_NS,
            "h" => 3_600 * SECOND_NS,
            _ => return Err(refuse()),
        };
        if !(1..=1_000_000).contains(&count) {
            return Err(refuse());
        }
        match burst.unwrap_or(count) {
            burst @ 1..=1_000_000 => Ok(Self {
                step_ns: window_ns / i64::from(count),
                burst,
            }),
            burst => Err(format!("the burst of --{name} is {burst}: must be 1..=1000000")),
        }
    }

    fn capacity_ns(self) -> i64 {
        self.step_ns * i64::from(self.burst)
    }
}

/// A bucket; a new one is full.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    full_at: i64,
}

impl Bucket {
    /// Takes a token, or says in how many nanoseconds there is one. A clock that steps back locks nobody out: a bucket
    /// is never emptier than empty.
    pub(crate) fn take(&mut self, rate: Rate, now_ns: i64) -> Result<(), i64> {
        let from = self.full_at.clamp(now_ns, now_ns + rate.capacity_ns());
        let after = from + rate.step_ns;
        let over = after - now_ns - rate.capacity_ns();
        if over > 0 {
            return Err(over);
        }
        self.full_at = after;
        Ok(())
    }

    /// What it stands at.
    pub(crate) fn level(self, rate: Rate, now_ns: i64) -> Level {
        let missing = (self.full_at - now_ns).clamp(0, rate.capacity_ns());
        let left = (rate.capacity_ns() - missing) / rate.step_ns;
        let left = u32::try_from(left).unwrap_or(rate.burst);
        let wait = if left == 0 {
            missing - rate.capacity_ns() + rate.step_ns
        } else {
            missing
        };
        Level {
            burst: rate.burst,
            window_s: seconds(rate.capacity_ns()).max(1),
            left,
            wait_s: seconds(wait),
        }
    }

    /// Whether it is as good as a new one.
    pub(crate) fn is_full(self, now_ns: i64) -> bool {
        self.full_at <= now_ns
    }
}

/// Seconds that cover a time.
fn seconds(ns: i64) -> u64 {
    u64::try_from(ns).unwrap_or(0).div_ceil(SECOND_NS.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str, burst: Option<u32>) -> Rate {
        Rate::of("owner-rate", text, burst).unwrap()
    }

    #[test]
    fn refusals_cost_nothing() {
        // An empty bucket of one token a second, asked every half second for a minute.
        let rate = rate("1/s", None);
        let mut bucket = Bucket::default();
        let granted = (0..120)
            .filter(|half| bucket.take(rate, half * SECOND_NS / 2).is_ok())
            .count();
        assert_eq!(granted, 60);
    }

    #[test]
    fn a_clock_that_steps_back_locks_nobody_out() {
        let rate = rate("1/s", Some(3));
        let mut bucket = Bucket::default();
        let start = 100 * SECOND_NS;
        for _ in 0..3 {
            bucket.take(rate, start).unwrap();
        }
        let wait = bucket.take(rate, start - 11 * SECOND_NS).unwrap_err();
        assert!(wait <= SECOND_NS, "{wait}");
        // Stepping forward again fills it once.
        let granted = (0..10)
            .filter(|_| bucket.take(rate, start + 11 * SECOND_NS).is_ok())
            .count();
        assert_eq!(granted, 3);
    }

    #[test]
    fn tokens_come_one_by_one() {
        // Three at once, then one in 15 seconds: after 7 there is none.
        let rate = rate("4/m", Some(3));
        let mut bucket = Bucket::default();
        assert_eq!((0..4).filter(|_| bucket.take(rate, 0).is_ok()).count(), 3);
        assert!(bucket.take(rate, 7 * SECOND_NS).is_err());
        let level = bucket.level(rate, 7 * SECOND_NS);
        assert_eq!(
            level,
            Level {
                burst: 3,
                window_s: 45,
                left: 0,
                wait_s: 8
            }
        );
        assert!(bucket.take(rate, 15 * SECOND_NS).is_ok());
        assert!(!bucket.is_full(15 * SECOND_NS) && bucket.is_full(60 * SECOND_NS));
        assert_eq!(bucket.level(rate, 60 * SECOND_NS).left, 3);
    }

    #[test]
    fn nonsense_is_refused_when_it_is_configured() {
        for text in [
            "0/s",
            "-1/s",
            "1",
            "1/d",
            "/s",
            "1.5/s",
            "NaN/s",
            "inf/s",
            "1000001/s",
            "+1/s",
            "",
        ] {
            let why = Rate::of("owner-rate", text, None).unwrap_err();
            assert!(why.contains("--owner-rate"), "{why}");
        }
        assert!(Rate::of("owner-rate", "1/s", Some(0)).is_err());
    }
}
