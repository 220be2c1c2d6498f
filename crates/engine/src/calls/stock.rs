//! Calls of operators about SKUs.

use stockade_core::{
    Action, Adjust, Changes, Configure, Count, Done, DoneCode, Expect, Id, Millis, Reason, Set, SkuRecord,
    Subject, Transfer,
};

use super::{Base, awaitable, common, foreign};
use crate::api::Stockade;
use crate::error::Error;

/// A SKU after an operator's command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StockChanged {
    /// Whether it was done now or had been done before.
    pub code: DoneCode,
    /// The SKU as it stands now.
    pub stock: SkuRecord,
    /// The revision that the command made.
    pub revision: u64,
    /// Whether the command created the SKU.
    pub created: bool,
}

impl StockChanged {
    fn of(done: Done) -> Result<Self, Error> {
        let code = done.code;
        match done.subject {
            Subject::Stock(subject) => {
                let subject = *subject;
                Ok(Self {
                    code,
                    stock: subject.stock,
                    revision: subject.revision,
                    created: subject.created,
                })
            }
            other @ (Subject::Reservation(_) | Subject::Return(_)) => Err(foreign(&other)),
        }
    }
}

impl Stockade {
    /// Sets the count of a location, reserved units included: 0..=2^53-1. Creates SKU and location when they do not
    /// exist; for a location that exists, say [`SetCall::sold_seen`] or [`SetCall::force`].
    #[must_use = "nothing happens until it is awaited"]
    pub fn set_stock(&self, id: &str, sku: &str, target: u64) -> SetCall<'_> {
        let mut base = Base::new(self);
        let id = base.id("id", id);
        let sku = base.id("sku", sku);
        let set = Set {
            id,
            sku,
            location: Id::default_name(),
            target,
            count: Count::Create,
            expect: Expect::Any,
            reason: Reason::default(),
        };
        SetCall { base, set }
    }

    /// Changes `on_hand` of a location by a signed number, not 0.
    #[must_use = "nothing happens until it is awaited"]
    pub fn adjust_stock(&self, id: &str, sku: &str, delta: i64) -> AdjustCall<'_> {
        let mut base = Base::new(self);
        let id = base.id("id", id);
        let sku = base.id("sku", sku);
        let adjust = Adjust {
            id,
            sku,
            location: Id::default_name(),
            delta,
            expect: Expect::Any,
            reason: Reason::default(),
        };
        AdjustCall { base, adjust }
    }

    /// Moves `on_hand` units of a SKU from one location to another; both must exist.
    #[must_use = "nothing happens until it is awaited"]
    pub fn transfer_stock(
        &self,
        id: &str,
        sku: &str,
        from: &str,
        to: &str,
        quantity: u64,
    ) -> TransferCall<'_> {
        let mut base = Base::new(self);
        let id = base.id("id", id);
        let sku = base.id("sku", sku);
        let from = base.id("from", from);
        let to = base.id("to", to);
        let transfer = Transfer {
            id,
            sku,
            from,
            to,
            quantity,
            expect: Expect::Any,
            reason: Reason::default(),
        };
        TransferCall { base, transfer }
    }

    /// Changes settings of a SKU; what is not named stays as it is.
    #[must_use = "nothing happens until it is awaited"]
    pub fn configure_stock(&self, id: &str, sku: &str) -> ConfigureCall<'_> {
        let mut base = Base::new(self);
        let id = base.id("id", id);
        let sku = base.id("sku", sku);
        let configure = Configure {
            id,
            sku,
            changes: Changes::default(),
            expect: Expect::Any,
            reason: Reason::default(),
        };
        ConfigureCall { base, configure }
    }

    /// A SKU as it stands: settings, and the counters of each location.
    pub async fn stock(&self, sku: &str) -> Result<SkuRecord, Error> {
        let mut base = Base::new(self);
        let sku = base.id("sku", sku);
        let done = base.send(Action::ShowStock { sku }).await?;
        StockChanged::of(done).map(|changed| changed.stock)
    }
}

/// What every operator's call can be told.
macro_rules! operator {
    ($field:ident) => {
        common!();

        /// Refuse unless the SKU has this revision.
        pub fn if_revision(mut self, revision: u64) -> Self {
            self.$field.expect = Expect::Revision(revision);
            self
        }

        /// Why, at most 256 bytes, for the movements.
        pub fn reason(mut self, reason: &str) -> Self {
            self.$field.reason = self.base.reason(reason);
            self
        }
    };
}

/// A count that is being put together.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct SetCall<'a> {
    base: Base<'a>,
    set: Set,
}

impl SetCall<'_> {
    operator!(set);

    /// Which location was counted; `default` when not named.
    pub fn location(mut self, location: &str) -> Self {
        self.set.location = self.base.id("location", location);
        self
    }

    /// The sold figure that whoever counted saw: what was sold since then is taken off the count.
    pub fn sold_seen(mut self, sold_seen: u64) -> Self {
        self.set.count = Count::Seen { sold_seen };
        self
    }

    /// The count holds whatever was sold meanwhile.
    pub fn force(mut self) -> Self {
        self.set.count = Count::Force;
        self
    }

    /// Refuse if the SKU exists already.
    pub fn if_absent(mut self) -> Self {
        self.set.expect = Expect::Absent;
        self
    }

    async fn send(self) -> Result<StockChanged, Error> {
        StockChanged::of(self.base.send(Action::Set(self.set)).await?)
    }
}

awaitable!(SetCall, StockChanged);

/// A signed change that is being put together.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct AdjustCall<'a> {
    base: Base<'a>,
    adjust: Adjust,
}

impl AdjustCall<'_> {
    operator!(adjust);

    /// Which location; `default` when not named.
    pub fn location(mut self, location: &str) -> Self {
        self.adjust.location = self.base.id("location", location);
        self
    }

    async fn send(self) -> Result<StockChanged, Error> {
        StockChanged::of(self.base.send(Action::Adjust(self.adjust)).await?)
    }
}

awaitable!(AdjustCall, StockChanged);

/// A transfer that is being put together.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct TransferCall<'a> {
    base: Base<'a>,
    transfer: Transfer,
}

impl TransferCall<'_> {
    operator!(transfer);

    async fn send(self) -> Result<StockChanged, Error> {
        StockChanged::of(self.base.send(Action::Transfer(self.transfer)).await?)
    }
}

awaitable!(TransferCall, StockChanged);

/// A change of settings that is being put together.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct ConfigureCall<'a> {
    base: Base<'a>,
    configure: Configure,
}

impl ConfigureCall<'_> {
    operator!(configure);

    /// Units of a location that stay back: 0..=2^53-1.
    pub fn safety_stock(mut self, location: &str, units: u64) -> Self {
        let index = self.configure.changes.safety_stock.len();
        let location = self.base.id(&format!("safety_stock[{index}].location"), location);
        self.configure.changes.safety_stock.push((location, units));
        self
    }

    /// The most units that one owner may hold and have bought; `None` removes the limit.
    pub fn limit_per_owner(mut self, limit: Option<u64>) -> Self {
        self.configure.changes.limit_per_owner = Some(limit);
        self
    }

    /// When the sale opens, in milliseconds since the Unix epoch; `None` removes the setting.
    pub fn opens_at(mut self, at: Option<Millis>) -> Self {
        self.configure.changes.opens_at = Some(at);
        self
    }

    /// When the sale closes; `None` removes the setting.
    pub fn closes_at(mut self, at: Option<Millis>) -> Self {
        self.configure.changes.closes_at = Some(at);
        self
    }

    /// Whether reserves are refused for now.
    pub fn paused(mut self, paused: bool) -> Self {
        self.configure.changes.paused = Some(paused);
        self
    }

    /// The locations in the order in which lines that name none take from them.
    pub fn order(mut self, locations: &[&str]) -> Self {
        let order = locations
            .iter()
            .enumerate()
            .map(|(index, text)| self.base.id(&format!("order[{index}]"), text))
            .collect();
        self.configure.changes.order = Some(order);
        self
    }

    /// Whether one line may take from several locations.
    pub fn split(mut self, split: bool) -> Self {
        self.configure.changes.split = Some(split);
        self
    }

    /// The group of SKUs that shall lie on one shard; `None` removes the setting.
    pub fn group(mut self, group: Option<&str>) -> Self {
        self.configure.changes.group = Some(group.map(|text| self.base.id("group", text)));
        self
    }

    /// Owner usage starts again from zero for everybody.
    pub fn reset_usage(mut self) -> Self {
        self.configure.changes.reset_usage = true;
        self
    }

    async fn send(self) -> Result<StockChanged, Error> {
        StockChanged::of(self.base.send(Action::Configure(self.configure)).await?)
    }
}

awaitable!(ConfigureCall, StockChanged);
