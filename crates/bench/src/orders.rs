//! The orders that the measurements send. Shapes are fixed: ids of 24 bytes, owners of 12.

use stockade::rules::{Action, AskLine, Command, Count, Expect, Id, IdError, Mode, Reason, Reserve, Set};

/// How reservation ids follow each other: the database's key order is worth more than anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Ids {
    /// They grow with time, as a version 7 UUID or a snowflake id does.
    Time,
    /// Spread evenly.
    Random,
}

/// What one run of orders is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) ids: Ids,
    pub(crate) skus: u64,
    pub(crate) mode: Mode,
    /// Keeps the ids of different rounds on one store apart.
    pub(crate) round: u64,
}

/// A bijection of u64 that spreads neighbours (the finalizer of `SplitMix64`).
pub(crate) const fn spread(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Shape {
    /// The n-th order.
    pub(crate) fn order(&self, n: u64) -> Result<Command, IdError> {
        let number = self.round << 40 | n;
        let id = match self.ids {
            Ids::Time => format!("order-{number:018x}"),
            Ids::Random => format!("order--{:017x}", u128::from(spread(number))),
        };
        let owner = format!("owner{:07}", spread(n) % 10_000_000);
        Ok(Command {
            tenant: Id::default_name(),
            actor: Id::new("bench")?,
            action: Action::Reserve(Reserve {
                id: Id::new(&id)?,
                owner: Id::new(&owner)?,
                mode: self.mode,
                ttl_ms: 3_600_000,
                lines: [AskLine {
                    sku: sku(n % self.skus)?,
                    quantity: 1,
                    location: None,
                    if_revision: None,
                }]
                .into(),
                supersedes: None,
            }),
        })
    }
}

/// The n-th SKU.
pub(crate) fn sku(n: u64) -> Result<Id, IdError> {
    Id::new(&format!("sku-{n:06}"))
}

/// Sets the n-th SKU to `units`.
pub(crate) fn supply(n: u64, units: u64) -> Result<Command, IdError> {
    Ok(Command {
        tenant: Id::default_name(),
        actor: Id::new("bench")?,
        action: Action::Set(Set {
            id: Id::new(&format!("supply-{n}"))?,
            sku: sku(n)?,
            location: Id::default_name(),
            target: units,
            count: Count::Create,
            expect: Expect::Any,
            reason: Reason::default(),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_as_stated() {
        for ids in [Ids::Time, Ids::Random] {
            let shape = Shape {
                ids,
                skus: 1,
                mode: Mode::Deduct,
                round: 3,
            };
            let Action::Reserve(reserve) = shape.order(999_999).unwrap().action else {
                panic!("not a reserve")
            };
            assert_eq!(reserve.id.as_str().len(), 24);
            assert_eq!(reserve.owner.as_str().len(), 12);
        }
    }
}
