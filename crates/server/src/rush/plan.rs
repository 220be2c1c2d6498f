//! What each buyer is going to do, drawn from a seed before the first request is sent, so that a run's choices can be
//! repeated whatever order the answers come in.

use super::args::Args;

/// What a buyer does with a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    Confirm,
    Cancel,
    /// Let it run out.
    WalkAway,
}

/// One buyer's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// Which of the run's SKUs.
    pub(crate) sku: u32,
    pub(crate) quantity: u32,
    pub(crate) intent: Intent,
    /// The reserve is sent twice at once.
    pub(crate) reserve_twice: bool,
    /// The confirm or cancel is sent twice at once.
    pub(crate) settle_twice: bool,
}

/// The whole run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// Begins every SKU and id of this run. Not drawn from the seed: it must be new, or the run would meet its past.
    pub(crate) name: String,
    /// Units of each SKU.
    pub(crate) supply: Vec<u64>,
    /// One per buyer.
    pub(crate) orders: Vec<Order>,
}

impl Plan {
    pub(crate) fn draw(args: &Args, name: String) -> Self {
        let seed = args.seed.unwrap_or_else(|| u64::from(fastrand::u32(..)));
        let mut random = fastrand::Rng::with_seed(seed);
        let orders = (0..args.buyers)
            .map(|_| {
                let choice = random.u8(0..100);
                Order {
                    sku: random.u32(0..args.skus),
                    quantity: random.u32(1..=args.max_quantity),
                    intent: if choice < args.confirm_percent {
                        Intent::Confirm
                    } else if choice < args.confirm_percent + args.cancel_percent {
                        Intent::Cancel
                    } else {
                        Intent::WalkAway
                    },
                    reserve_twice: random.u8(0..100) < args.duplicate_percent,
                    settle_twice: random.u8(0..100) < args.duplicate_percent,
                }
            })
            .collect();
        let skus = u64::from(args.skus);
        // The first few SKUs have one more when it does not come out even.
        let supply = (0..skus)
            .map(|sku| args.units / skus + u64::from(sku < args.units % skus))
            .collect();
        Self {
            seed,
            name,
            supply,
            orders,
        }
    }

    pub(crate) fn sku_name(&self, sku: usize) -> String {
        format!("rush-{}-s{sku}", self.name)
    }

    pub(crate) fn order_id(&self, buyer: usize) -> String {
        format!("rush-{}-{buyer:07}", self.name)
    }

    pub(crate) fn order(&self, buyer: usize) -> Option<Order> {
        self.orders.get(buyer).copied()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn plan(flags: &[&str]) -> Plan {
        let args = Command::parse_from([&["rush"], flags].concat()).args;
        args.check().unwrap();
        Plan::draw(&args, "x".to_owned())
    }

    #[test]
    fn the_same_seed_makes_the_same_choices() {
        let flags = ["--buyers", "1000", "--skus", "7", "--max-quantity", "5", "--seed"];
        let orders = |seed| plan(&[&flags[..], &[seed]].concat()).orders;
        assert_eq!(orders("1"), orders("1"));
        assert_ne!(orders("1"), orders("2"));
    }

    #[test]
    fn percentages_and_ranges_are_kept() {
        let plan = plan(&["--seed", "1", "--skus", "3", "--max-quantity", "4"]);
        let count = |matches: fn(&Order) -> bool| plan.orders.iter().filter(|order| matches(order)).count();
        assert_eq!(plan.orders.len(), 50_000);
        // Four standard deviations of 50,000 draws are less than 360.
        for (found, expected) in [
            (count(|order| order.intent == Intent::Confirm), 40_000),
            (count(|order| order.intent == Intent::Cancel), 5_000),
            (count(|order| order.intent == Intent::WalkAway), 5_000),
            (count(|order| order.reserve_twice), 2_500),
            (count(|order| order.settle_twice), 2_500),
            (count(|order| order.sku == 2), 16_667),
            (count(|order| order.quantity == 4), 12_500),
        ] {
            assert!(found.abs_diff(expected) < 450, "{found} instead of {expected}");
        }
        assert_eq!(
            count(|order| order.sku > 2 || order.quantity == 0 || order.quantity > 4),
            0
        );
    }

    #[test]
    fn the_extremes_leave_nothing_to_chance() {
        let all = |flags: &[&str], matches: fn(&Order) -> bool| plan(flags).orders.iter().all(matches);
        assert!(all(
            &["--confirm-percent", "100", "--cancel-percent", "0"],
            |order| order.intent == Intent::Confirm
        ));
        assert!(all(
            &["--confirm-percent", "0", "--cancel-percent", "100"],
            |order| order.intent == Intent::Cancel
        ));
        assert!(all(
            &["--confirm-percent", "0", "--cancel-percent", "0"],
            |order| order.intent == Intent::WalkAway
        ));
        assert!(all(&["--duplicate-percent", "100"], |order| order.reserve_twice
            && order.settle_twice));
        assert!(all(&["--duplicate-percent", "0"], |order| !order.reserve_twice
            && !order.settle_twice));
    }

    #[test]
    fn units_are_spread_evenly_and_none_is_lost() {
        assert_eq!(plan(&["--units", "10", "--skus", "4"]).supply, [3, 3, 2, 2]);
        assert_eq!(plan(&["--units", "2", "--skus", "3"]).supply, [1, 1, 0]);
    }

    #[test]
    fn percentages_that_do_not_fit() {
        let flags = ["rush", "--confirm-percent", "80", "--cancel-percent", "21"];
        assert!(Command::parse_from(flags).args.check().is_err());
    }
}
