//! After the rush: units that come back find buyers, the longest end passes, and the final state is read.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::account::{Account, End};
use super::sale::Sale;
use crate::load::answer::StockCounters;
use crate::load::{LoadError, api};

/// How often the stock is read while something is waited for.
const POLL_EVERY: Duration = Duration::from_millis(20);
/// Units of reservations that ran out may be reserved so long after the longest end before that counts as drift.
const GRACE: Duration = Duration::from_secs(10);
/// Buyers who were refused wait for units to come back for at most so many times the life of a reservation.
const WAIT_TTLS: u32 = 6;
/// Of refused orders so many are asked about by id.
const REFUSED_ASKED_MAX: usize = 1_000;

impl Sale {
    /// Reads every SKU's counters.
    pub(crate) async fn read_stock(&self) -> Result<Vec<StockCounters>, LoadError> {
        let mut stock = Vec::with_capacity(self.sku_names().len());
        for sku in self.sku_names() {
            stock.push(api::stock(&self.caller, sku).await?);
        }
        Ok(stock)
    }

    /// Units come back when buyers cancel or their reservations run out. Buyers who found it sold out try again, in
    /// their order and with their first id, whenever there is something for them, until everything is sold, nothing
    /// more can come back, or they have waited long enough.
    pub(crate) async fn sell_what_comes_back(self: &Rc<Self>) -> Result<(), LoadError> {
        self.progress.say("selling what comes back");
        let give_up = Instant::now() + Duration::from_secs(u64::from(self.ttl_seconds)) * WAIT_TTLS;
        while !self.waiting.borrow().is_empty() && Instant::now() < give_up {
            let stock = self.read_stock().await?;
            let chosen = self.choose_waiting(&stock);
            if !chosen.is_empty() {
                self.serve(chosen.into_iter()).await?;
            } else if stock.iter().all(|counters| counters.reserved == 0) {
                break;
            } else {
                tokio::time::sleep(POLL_EVERY).await;
            }
        }
        Ok(())
    }

    /// Takes from the waiting buyers those whom the available units can serve, first come, first served.
    fn choose_waiting(&self, stock: &[StockCounters]) -> Vec<u32> {
        let mut left: Vec<u64> = stock.iter().map(|counters| counters.available).collect();
        let mut chosen = Vec::new();
        let mut units_left: u64 = left.iter().sum();
        self.waiting.borrow_mut().retain(|buyer| {
            if units_left == 0 {
                return true;
            }
            let Some(order) = self.plan.order(*buyer as usize) else {
                return false;
            };
            let quantity = u64::from(order.quantity);
            match left.get_mut(order.sku as usize) {
                Some(left) if *left >= quantity => {
                    *left -= quantity;
                    units_left -= quantity;
                    chosen.push(*buyer);
                    false
                }
                _ => true,
            }
        });
        chosen
    }

    /// Waits until every reservation has ended: the service's own clock decides, so it is asked.
    pub(crate) async fn wait_for_the_longest_end(&self) -> Result<Vec<StockCounters>, LoadError> {
        self.progress.say("waiting for the longest end");
        let give_up = Instant::now() + Duration::from_secs(u64::from(self.ttl_seconds)) + GRACE;
        loop {
            let stock = self.read_stock().await?;
            if stock.iter().all(|counters| counters.reserved == 0) || Instant::now() > give_up {
                return Ok(stock);
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    /// Asks by id about every order that was granted or not answered, and about a sample of the refused ones.
    pub(crate) async fn ask_by_id(self: &Rc<Self>, accounts: &mut [Account]) -> Result<(), LoadError> {
        self.progress.say("asking by id");
        let refused: Vec<usize> = ends(accounts, |end| end == End::Refused);
        let every = refused.len().div_ceil(REFUSED_ASKED_MAX).max(1);
        let mut asked: Vec<usize> = ends(accounts, |end| end != End::Refused);
        asked.extend(refused.into_iter().step_by(every));
        let ask = |buyer: usize| {
            let (sale, id) = (Rc::clone(self), self.plan.order_id(buyer));
            async move { (buyer, api::reservation(&sale.caller, &id).await) }
        };
        let mut under_way = tokio::task::JoinSet::new();
        let mut rest = asked.into_iter();
        for buyer in rest.by_ref().take(self.workers as usize) {
            under_way.spawn_local(ask(buyer));
        }
        while let Some(ended) = under_way.join_next().await {
            let (buyer, said) = ended.map_err(|error| LoadError::Request {
                what: "asking by id".to_owned(),
                why: error.to_string(),
            })?;
            if let (Some(account), Some(order)) = (accounts.get_mut(buyer), self.plan.order(buyer)) {
                account.ask(&order, &self.plan.order_id(buyer), &said?);
            }
            if let Some(next) = rest.next() {
                under_way.spawn_local(ask(next));
            }
        }
        Ok(())
    }
}

fn ends(accounts: &[Account], which: impl Fn(End) -> bool) -> Vec<usize> {
    accounts
        .iter()
        .enumerate()
        .filter(|(_, account)| which(account.end))
        .map(|(buyer, _)| buyer)
        .collect()
}
