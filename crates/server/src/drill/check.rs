//! What must be true between faults: asked by id, every claim is what its client knows; the counters are the claims'
//! sums; the audit is clean.

use std::rc::Rc;

use super::Campaign;
use super::claim::{Claim, State};
use super::client::Client;
use super::shop::Shop;
use super::sums::Sums;
use crate::load::answer::{Answer, StockCounters};
use crate::load::caller::Caller;
use crate::load::request::Request;
use crate::load::{LoadError, api, now_ms};

/// Which claims to ask about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those of the last round, and so many older ones, drawn at random.
    Touched {
        older: usize,
    },
    All,
}

impl Client {
    /// Asks by id; what is found becomes known, except for claims in doubt. Gives the state of each claim in doubt.
    pub(crate) async fn ask(&mut self, shop: &Shop, caller: &Caller, which: Which) -> Result<(), LoadError> {
        let asked: Vec<usize> = match which {
            Which::All => (0..self.claims.len()).collect(),
            Which::Touched { older } => {
                let mut asked = std::mem::take(&mut self.touched);
                if !self.claims.is_empty() {
                    asked.extend((0..older).map(|_| self.random.usize(0..self.claims.len())));
                }
                asked.sort_unstable();
                asked.dedup();
                asked
            }
        };
        for claim in asked {
            let found = self.ask_one(shop, caller, claim).await?;
            if let (Some(known), Some(State::Expired)) = (self.claims.get_mut(claim), found)
                && known.doubt.is_none()
            {
                known.state = State::Expired;
                known.last = None;
            }
        }
        Ok(())
    }

    /// The state that a claim is found in; `None` when it is one that it cannot be in, which is noted.
    pub(crate) async fn ask_one(
        &mut self,
        shop: &Shop,
        caller: &Caller,
        claim: usize,
    ) -> Result<Option<State>, LoadError> {
        let id = self.id(shop, claim);
        let answer = api::reservation(caller, &id).await?;
        let Some(known) = self.claims.get(claim) else {
            return Ok(None);
        };
        match known.asked(&answer, now_ms()) {
            Ok(state) => Ok(Some(state)),
            Err(what) => {
                self.note(shop, claim, Err(what));
                Ok(None)
            }
        }
    }

    /// Claims with a command in doubt.
    pub(crate) fn in_doubt(&self) -> Vec<usize> {
        let doubtful = |(index, claim): (usize, &Claim)| claim.doubt.map(|_| index);
        self.claims.iter().enumerate().filter_map(doubtful).collect()
    }

    /// Sends everything in doubt once more, with the same ids, and learns what had happened.
    pub(crate) async fn settle_doubts(&mut self, shop: &Shop, caller: &Caller) -> Result<(), LoadError> {
        let mut request = Request::default();
        for claim in self.in_doubt() {
            let found = self.ask_one(shop, caller, claim).await?;
            let Some((found, known)) = found.zip(self.claims.get(claim).copied()) else {
                continue;
            };
            let Some(command) = known.doubt else { continue };
            self.write(shop, caller, claim, command, &mut request);
            let id = self.id(shop, claim);
            let answer = api::must(
                format!("{command:?} on {id}, sent again"),
                caller
                    .call(request.bytes(), |http, body| Answer::read(http, body, &id))
                    .await,
            )?;
            self.tally.happened += u64::from(found != known.state);
            if let Some(known) = self.claims.get_mut(claim) {
                let judged = known.answer_in_doubt(command, found, &answer);
                self.note(shop, claim, judged);
            }
            self.touched.push(claim);
            self.reopen(claim);
        }
        let missing = |delivery: &usize| self.deliveries.get(*delivery).is_some_and(|known| !known.arrived);
        for delivery in (0..self.deliveries.len()).filter(missing).collect::<Vec<_>>() {
            self.deliver(shop, caller, Some(delivery), &mut request).await;
        }
        Ok(())
    }
}

impl Campaign {
    /// Puts the SKUs in.
    pub(crate) async fn open_shop(&self, caller: &Caller) -> Result<(), LoadError> {
        for (sku, units) in self.shop.supply.iter().enumerate() {
            api::create_sku(caller, &self.shop.sku(sku), *units).await?;
        }
        Ok(())
    }

    /// Lets every client do something at once.
    pub(crate) async fn each_client<W>(
        &mut self,
        caller: &Rc<Caller>,
        work: impl Fn(Client, Shop, Rc<Caller>) -> W,
    ) -> Result<(), LoadError>
    where
        W: Future<Output = Result<Client, LoadError>> + 'static,
    {
        let mut under_way = tokio::task::JoinSet::new();
        for client in std::mem::take(&mut self.clients) {
            under_way.spawn_local(work(client, self.shop.clone(), Rc::clone(caller)));
        }
        while let Some(ended) = under_way.join_next().await {
            let failed = |error: tokio::task::JoinError| LoadError::Request {
                what: "a client of the drill".to_owned(),
                why: error.to_string(),
            };
            self.clients.push(ended.map_err(failed)??);
        }
        Ok(())
    }

    /// Settles what is in doubt, asks by id, adds up, audits.
    pub(crate) async fn check(&mut self, caller: &Rc<Caller>, which: Which) -> Result<(), LoadError> {
        self.each_client(caller, move |mut client, shop, caller| async move {
            client.settle_doubts(&shop, &caller).await?;
            client.ask(&shop, &caller, which).await?;
            Ok(client)
        })
        .await?;
        let stock = self.read_stock(caller).await?;
        let sums = Sums::of(&self.shop, &self.clients, now_ms());
        self.findings.extend(sums.compare(&self.shop, &stock));
        let audit = api::audit(caller).await?;
        self.findings
            .extend(audit.findings.iter().map(|finding| format!("audit: {finding}")));
        Ok(())
    }

    pub(crate) async fn read_stock(&self, caller: &Caller) -> Result<Vec<StockCounters>, LoadError> {
        let mut stock = Vec::with_capacity(self.shop.supply.len());
        for sku in 0..self.shop.supply.len() {
            stock.push(api::stock(caller, &self.shop.sku(sku)).await?);
        }
        Ok(stock)
    }
}
