//! The stock as it must be: the sums of what the clients know.

use super::claim::{Claim, State};
use super::client::Client;
use super::shop::Shop;
use crate::load::answer::StockCounters;

/// Ends nearer than this to the moment of a check may fall on either side of it.
const END_MARGIN_MS: i64 = 2_000;

/// The counters as the clients know them, per SKU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sums {
    rows: Vec<Row>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Row {
    supply: u64,
    sold: u64,
    /// Reserved, ends that are near not counted...
    reserved_min: u64,
    /// ...and counted.
    reserved_max: u64,
}

impl Sums {
    pub(crate) fn of(shop: &Shop, clients: &[Client], now_ms: i64) -> Self {
        let mut rows: Vec<Row> = shop
            .supply
            .iter()
            .map(|supply| Row {
                supply: *supply,
                ..Row::default()
            })
            .collect();
        for client in clients {
            for delivery in client.deliveries.iter().filter(|delivery| delivery.arrived) {
                if let Some(row) = rows.get_mut(delivery.sku) {
                    row.supply += u64::from(delivery.units);
                }
            }
            for claim in &client.claims {
                if let Some(row) = rows.get_mut(claim.sku) {
                    row.add(claim, now_ms);
                }
            }
        }
        Self { rows }
    }

    /// What differs from the stock as shown.
    pub(crate) fn compare(&self, shop: &Shop, stock: &[StockCounters]) -> Vec<String> {
        let differs = |(row, shown): (&Row, &StockCounters)| {
            shown.sold != row.sold
                || shown.on_hand + shown.sold != row.supply
                || !(row.reserved_min..=row.reserved_max).contains(&shown.reserved)
                || shown.available != shown.on_hand.saturating_sub(shown.reserved)
        };
        self.rows
            .iter()
            .zip(stock)
            .enumerate()
            .filter(|(_, pair)| differs(*pair))
            .map(|(sku, (row, shown))| {
                format!("{}: by its clients {row:?}, is shown as {shown:?}", shop.sku(sku))
            })
            .collect()
    }
}

impl Row {
    fn add(&mut self, claim: &Claim, now_ms: i64) {
        match claim.state {
            State::Confirmed { returned } => self.sold += claim.quantity - returned,
            State::Pending => {
                if claim.expires_at_ms > now_ms + END_MARGIN_MS {
                    self.reserved_min += claim.quantity;
                }
                if claim.expires_at_ms > now_ms - END_MARGIN_MS {
                    self.reserved_max += claim.quantity;
                }
            }
            State::Absent | State::Cancelled | State::Sealed | State::Expired => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(claims: &[(State, u64, i64)]) -> Sums {
        let shop = Shop {
            name: "x".to_owned(),
            supply: vec![10],
            short_ends: true,
        };
        let mut client = Client::new(0, 1);
        client.claims = claims
            .iter()
            .map(|(state, quantity, expires_at_ms)| Claim {
                state: *state,
                expires_at_ms: *expires_at_ms,
                ..Claim::new(0, *quantity)
            })
            .collect();
        Sums::of(&shop, &[client], 100_000)
    }

    #[test]
    fn counters_must_be_the_sums_of_the_claims() {
        let shop = Shop {
            name: "x".to_owned(),
            supply: vec![10],
            short_ends: true,
        };
        let sums = sums(&[
            (State::Confirmed { returned: 1 }, 3, 0),
            (State::Pending, 2, 200_000),
            (State::Pending, 1, 100_500),
            (State::Expired, 3, 50_000),
            (State::Cancelled, 3, 200_000),
        ]);
        let good = |on_hand, reserved, sold| {
            let shown = StockCounters {
                on_hand,
                reserved,
                sold,
                available: on_hand - reserved,
            };
            sums.compare(&shop, &[shown]).is_empty()
        };
        assert!(good(8, 2, 2), "the near end has passed");
        assert!(good(8, 3, 2), "the near end is still to come");
        assert!(!good(8, 4, 2), "a leak");
        assert!(!good(8, 1, 2), "a live reservation holds nothing");
        assert!(!good(7, 2, 3), "a second effect");
        assert!(!good(9, 2, 1), "a sale that is gone");
        assert!(!good(9, 2, 2), "a unit out of nothing");
    }
}
