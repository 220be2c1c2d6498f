//! Reservations on their way through the gate: stopped ones have their id looked up first, since a verdict about an id
//! that was granted would be wrong.

use std::collections::BTreeSet;
use std::sync::Arc;

use stockade::{Answered, Durability};
use stockade_core::{Action, DoneCode, Id, Refusal, Reserve, Status, Subject};
use stockade_ledger::ReservationQuery;

use super::access::Caller;
use super::app::App;
use super::problem::Problem;
use crate::gate::Stop;

/// Read in one go.
const LIVE_AT_ONCE: usize = 1_000;

impl App {
    /// Reserves, if the gate lets it on.
    pub(crate) async fn reserve(
        &self,
        caller: &Caller,
        reserve: Reserve,
        durability: Option<Durability>,
    ) -> Result<Answered, Problem> {
        if self.gate.is_open() {
            let _under_way = self.enter(1)?;
            return self
                .submit_with(caller, Action::Reserve(reserve), durability)
                .await;
        }
        self.pass(caller, &reserve).await?;
        let _under_way = self
            .enter(1)
            .inspect_err(|problem| self.not_granted(caller, &reserve, problem))?;
        let result = self
            .submit_with(caller, Action::Reserve(reserve.clone()), durability)
            .await;
        self.after(caller, &reserve, &result);
        result
    }

    /// Reserves many; each is let on or stopped alone.
    pub(crate) async fn reserve_many(
        &self,
        caller: &Caller,
        reserves: Vec<Reserve>,
        durability: Option<Durability>,
    ) -> Result<Vec<Result<Answered, Problem>>, Problem> {
        if self.gate.is_open() {
            let _under_way = self.enter(reserves.len())?;
            let actions = reserves.into_iter().map(Action::Reserve).collect();
            return self.submit_many(caller, actions, durability).await;
        }
        let mut passed = Vec::with_capacity(reserves.len());
        let mut stopped = Vec::new();
        // All are asked about before the first look-up comes back, so that those share one.
        let asked = futures_of(self, caller, &reserves).await;
        for (index, (reserve, result)) in reserves.into_iter().zip(asked).enumerate() {
            match result {
                Ok(()) => passed.push(reserve),
                Err(problem) => stopped.push((index, problem)),
            }
        }
        let mut results = Vec::new();
        if !passed.is_empty() {
            let entered = self.enter(passed.len());
            let _under_way = entered.inspect_err(|problem| {
                for reserve in &passed {
                    self.not_granted(caller, reserve, problem);
                }
            })?;
            let actions = passed.iter().cloned().map(Action::Reserve).collect();
            results = self.submit_many(caller, actions, durability).await?;
            for (reserve, result) in passed.iter().zip(&results) {
                self.after(caller, reserve, result);
            }
        }
        // In rising order, so that each lands where it stood.
        for (index, problem) in stopped {
            results.insert(index.min(results.len()), Err(problem));
        }
        Ok(results)
    }

    /// Tells the gate of the reservations that are live when the service starts, as they are recorded.
    pub(crate) async fn tell_live(self: Arc<Self>, mut tenants: BTreeSet<Id>) {
        if !self.gate.wants_live() {
            return;
        }
        tenants.insert(Id::default_name());
        let mut live = 0_usize;
        for tenant in tenants {
            let mut before = None;
            loop {
                let query = ReservationQuery {
                    tenant: tenant.clone(),
                    owner: None,
                    sku: None,
                    status: Some(Status::Pending),
                    from: None,
                    until: None,
                    before: before.clone(),
                    limit: LIVE_AT_ONCE,
                };
                let page = match self.store.reservations(query).await {
                    Ok(page) => page,
                    Err(error) => {
                        tracing::warn!(%error, "the gate does not know all live reservations of before");
                        return;
                    }
                };
                live += page.len();
                for reservation in &page {
                    self.gate.note(reservation, false, || self.store.now());
                }
                match page.last() {
                    Some(last) if page.len() >= LIVE_AT_ONCE => before = Some(last.id.clone()),
                    _ => break,
                }
            }
        }
        tracing::info!(live, "the gate knows the live reservations");
    }

    /// Lets a reservation on, or says what stopped it. One whose id is known goes on: what it gets is not new.
    async fn pass(&self, caller: &Caller, reserve: &Reserve) -> Result<(), Problem> {
        let key = caller.key.as_ref().map(|key| key.public_id.as_str());
        let now = self.gate.moment(self.store.now());
        let Err(stop) = self.gate.check(&caller.tenant, key, reserve, now) else {
            return Ok(());
        };
        let looking = self
            .look_ups
            .knows(&self.store, &caller.tenant, &caller.actor, &reserve.id);
        match self.within(looking).await {
            Some(true) => Ok(()),
            Some(false) => Err(Problem::Stopped(stop)),
            // Nobody knows whether it was granted: that it is sold out must not be said of it.
            None => match stop {
                Stop::SoldOut(_) => Err(Problem::Unavailable {
                    why: "the id could not be looked up in time".to_owned(),
                }),
                limit @ Stop::Limit { .. } => Err(Problem::Stopped(limit)),
            },
        }
    }

    fn enter(&self, count: usize) -> Result<crate::gate::UnderWay<'_>, Problem> {
        self.gate
            .shed
            .enter(count)
            .map_err(|retry_after_ms| Problem::Shed { retry_after_ms })
    }

    /// Tells the gate what became of a reservation that it let on.
    fn after(&self, caller: &Caller, reserve: &Reserve, result: &Result<Answered, Problem>) {
        match result {
            Ok(_) => self.gate.granted(&caller.tenant, reserve),
            Err(problem) => self.not_granted(caller, reserve, problem),
        }
    }

    fn not_granted(&self, caller: &Caller, reserve: &Reserve, problem: &Problem) {
        // It may have been granted: it counts until its end.
        if matches!(problem, Problem::OutcomeUnknown { .. }) {
            return;
        }
        let short = match problem {
            Problem::Refused(Refusal::InsufficientStock(lines)) => Some(lines.as_slice()),
            _ => None,
        };
        let now = self.gate.moment(self.store.now());
        self.gate.refused(&caller.tenant, reserve, short, now);
    }

    /// Tells the gate what an answer says of a reservation, and that units may have come back.
    pub(super) fn noted(&self, is_reserve: bool, answered: &Answered) {
        if self.gate.is_open() {
            return;
        }
        let done = &answered.done;
        if !is_reserve {
            self.gate.units_came();
        }
        if let Subject::Reservation(reservation) = &done.subject {
            self.gate
                .note(reservation, done.code == DoneCode::Ok, || self.store.now());
        }
    }
}

/// Asks about all at once, in order.
async fn futures_of(app: &App, caller: &Caller, reserves: &[Reserve]) -> Vec<Result<(), Problem>> {
    let mut asking: Vec<_> = reserves
        .iter()
        .map(|reserve| Box::pin(app.pass(caller, reserve)))
        .collect();
    let mut results: Vec<Option<Result<(), Problem>>> = asking.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        let mut waiting = false;
        for (asking, result) in asking.iter_mut().zip(&mut results) {
            if result.is_none() {
                match asking.as_mut().poll(context) {
                    std::task::Poll::Ready(answer) => *result = Some(answer),
                    std::task::Poll::Pending => waiting = true,
                }
            }
        }
        if waiting {
            std::task::Poll::Pending
        } else {
            std::task::Poll::Ready(())
        }
    })
    .await;
    results.into_iter().flatten().collect()
}
