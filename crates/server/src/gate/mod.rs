//! The gate: how often, how many at once, and when it is too much. It decides before the hot tier is asked, and says
//! nothing about an id: whoever is stopped has the id looked up first, and a replay passes.
//!
//! Confirm, cancel, extend and return are never stopped: they settle what was granted.

mod bucket;
mod look_ups;
mod owners;
mod shed;
mod sold_out;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use stockade_core::{Id, Millis, RefusedLine, Reservation, Reserve, Short};

pub(crate) use bucket::{Level, Rate};
pub(crate) use look_ups::LookUps;
pub(crate) use shed::{Shed, UnderWay};

use bucket::Bucket;
use owners::Owners;
use sold_out::SoldOut;

/// What the gate was told to enforce; everything that is not given is off.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    /// Requests of a key.
    pub(crate) key_rate: Option<Rate>,
    /// Reservations that an owner asks for.
    pub(crate) owner_rate: Option<Rate>,
    /// The least time between two that an owner asks for of one SKU.
    pub(crate) interval_ms: Option<Millis>,
    /// The most live reservations of an owner.
    pub(crate) live_max: Option<usize>,
    pub(crate) cool_down: Option<CoolDown>,
    /// How long "sold out" is said again without asking for it again.
    pub(crate) sold_out_ms: Option<Millis>,
    /// The longest that a reservation may queue before further ones are turned away.
    pub(crate) shed_after_ms: Option<Millis>,
}

/// Owners whose reservations keep ending unpaid have to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoolDown {
    /// After so many within [`CoolDown::for_ms`]...
    pub(crate) after: usize,
    /// ...for so long.
    pub(crate) for_ms: Millis,
}

impl Rules {
    fn watch_live(&self) -> bool {
        self.live_max.is_some() || self.cool_down.is_some()
    }

    fn watch_owners(&self) -> bool {
        self.watch_live() || self.owner_rate.is_some() || self.interval_ms.is_some()
    }
}

/// Which line of defence stopped a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// No key, or not the right one.
    Key,
    /// What was sent is no command.
    Shape,
    KeyRate,
    OwnerRate,
    OwnerInterval,
    OwnerLive,
    CoolDown,
    Shed,
    SoldOut,
    /// Too much waits in the engine.
    Backlog,
    /// It was decided: not this.
    HotTier,
    /// Nothing can be decided, or nobody knows what was.
    Unavailable,
}

impl Line {
    pub(crate) const ALL: [Self; 12] = [
        Self::Key,
        Self::Shape,
        Self::KeyRate,
        Self::OwnerRate,
        Self::OwnerInterval,
        Self::OwnerLive,
        Self::CoolDown,
        Self::Shed,
        Self::SoldOut,
        Self::Backlog,
        Self::HotTier,
        Self::Unavailable,
    ];

    /// As metrics and problems name it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Shape => "shape",
            Self::KeyRate => "key_rate",
            Self::OwnerRate => "owner_rate",
            Self::OwnerInterval => "owner_interval",
            Self::OwnerLive => "owner_live",
            Self::CoolDown => "cool_down",
            Self::Shed => "shed",
            Self::SoldOut => "sold_out",
            Self::Backlog => "backlog",
            Self::HotTier => "hot_tier",
            Self::Unavailable => "unavailable",
        }
    }
}

/// Why a request may not go on.
#[derive(Clone, Debug)]
pub(crate) enum Stop {
    /// Too often, or too many.
    Limit {
        line: Line,
        wait_ms: u64,
        /// Of a rate.
        level: Option<Level>,
    },
    /// It would have been refused a moment ago.
    SoldOut(Vec<RefusedLine<Short>>),
}

impl Stop {
    fn limit(line: Line, wait_ms: Millis, level: Option<Level>) -> Self {
        Self::Limit {
            line,
            wait_ms: u64::try_from(wait_ms).unwrap_or(0),
            level,
        }
    }

    pub(crate) fn line(&self) -> Line {
        match self {
            Self::Limit { line, .. } => *line,
            Self::SoldOut(_) => Line::SoldOut,
        }
    }
}

/// Now, by both clocks: nanoseconds for rates, and the store's milliseconds, in which reservations end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    ns: i64,
    ms: Millis,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Gate {
    rules: Rules,
    since: Instant,
    /// By public id; there are no more of them than keys.
    keys: Mutex<HashMap<String, Bucket>>,
    owners: Owners,
    sold_out: SoldOut,
    pub(crate) shed: Shed,
}

impl Gate {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            since: Instant::now(),
            keys: Mutex::default(),
            owners: Owners::new(),
            sold_out: SoldOut::new(rules.sold_out_ms),
            shed: Shed::new(rules.shed_after_ms),
            rules,
        }
    }

    /// Whether every reservation is let on, unless load is shed.
    pub(crate) fn is_open(&self) -> bool {
        !self.rules.watch_owners() && self.rules.key_rate.is_none() && self.rules.sold_out_ms.is_none()
    }

    pub(crate) fn has_key_rate(&self) -> bool {
        self.rules.key_rate.is_some()
    }

    /// This moment, if the store's clock says `ms`.
    pub(crate) fn moment(&self, ms: Millis) -> Moment {
        Moment {
            ns: i64::try_from(self.since.elapsed().as_nanos()).unwrap_or(i64::MAX),
            ms,
        }
    }

    /// One request of a key.
    pub(crate) fn key(&self, key: &str, now: Moment) -> Result<(), Stop> {
        let Some(rate) = self.rules.key_rate else {
            return Ok(());
        };
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if !keys.contains_key(key) {
            keys.insert(key.to_owned(), Bucket::default());
        }
        let Some(bucket) = keys.get_mut(key) else {
            return Ok(());
        };
        bucket.take(rate, now.ns).map_err(|wait_ns| {
            let level = bucket.level(rate, now.ns);
            Stop::limit(Line::KeyRate, wait_ns / 1_000_000 + 1, Some(level))
        })
    }

    /// What the bucket of a key stands at.
    pub(crate) fn key_level(&self, key: &str, now: Moment) -> Option<Level> {
        let rate = self.rules.key_rate?;
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        Some(keys.get(key).copied().unwrap_or_default().level(rate, now.ns))
    }

    /// Lets a reservation on, or says what stops it.
    pub(crate) fn check(
        &self,
        tenant: &Id,
        key: Option<&str>,
        asked: &Reserve,
        now: Moment,
    ) -> Result<(), Stop> {
        if let Some(key) = key {
            self.key(key, now)?;
        }
        self.sold_out.check(tenant, asked, now.ms)?;
        if self.rules.watch_owners() {
            self.owners.check(&self.rules, tenant, asked, now)?;
        }
        Ok(())
    }

    /// What was let on was refused for want of stock, or for another reason.
    pub(crate) fn refused(
        &self,
        tenant: &Id,
        asked: &Reserve,
        short: Option<&[RefusedLine<Short>]>,
        now: Moment,
    ) {
        if self.rules.watch_live() {
            self.owners.withdraw(tenant, asked);
        }
        if let Some(short) = short {
            self.sold_out.note(tenant, asked, short, now.ms);
        }
    }

    /// Whether it has to be told of reservations that were granted before it was there.
    pub(crate) fn wants_live(&self) -> bool {
        self.rules.watch_live()
    }

    /// What was let on was granted.
    pub(crate) fn granted(&self, tenant: &Id, asked: &Reserve) {
        if self.rules.watch_live() {
            self.owners.superseded(tenant, asked);
        }
    }

    /// How a reservation stands.
    pub(crate) fn note(&self, reservation: &Reservation, now_done: bool, ms: impl FnOnce() -> Millis) {
        if self.rules.watch_live() {
            self.owners
                .note(&self.rules, reservation, now_done, self.moment(ms()));
        }
    }

    /// Units may have come back.
    pub(crate) fn units_came(&self) {
        self.sold_out.clear();
    }
}
