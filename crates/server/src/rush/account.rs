//! What one buyer must believe after what was answered, and which answers contradict each other.

use super::history::{Event, Verb};
use super::plan::{Intent, Order};
use crate::load::answer::{Answer, Code, Standing, Status};

/// How an order ended for its buyer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Refused, and never granted.
    Refused,
    /// Confirmed: the units are the buyer's.
    Confirmed,
    Cancelled,
    /// Ran out: the buyer walked away, or came too late.
    Expired,
    /// A request about it was never answered.
    Unknown,
}

/// What the reserve came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Refused,
    /// Granted, and the buyer may go on with it.
    Open,
    /// Granted, but its end had passed before the buyer heard of it.
    Over,
    Unknown,
}

/// One buyer's account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) end: End,
    pub(crate) granted: bool,
    /// Answers that said `replayed`.
    pub(crate) replayed: u64,
    /// Requests without an answer.
    pub(crate) errors: u64,
    /// The end of the reservation, as last answered.
    pub(crate) expires_at_ms: Option<i64>,
    /// What cannot be true together, in words.
    pub(crate) contradictions: Vec<String>,
}

impl Account {
    /// Folds a buyer's events.
    pub(crate) fn of(order: &Order, events: &[Event]) -> Self {
        let mut account = Self {
            end: End::Unknown,
            granted: false,
            replayed: 0,
            errors: 0,
            expires_at_ms: None,
            contradictions: Vec::new(),
        };
        let asked = |verb| {
            events
                .iter()
                .filter(|event| event.verb == verb)
                .copied()
                .collect::<Vec<_>>()
        };
        let held = account.reserve(order, &asked(Verb::Reserve));
        account.granted = matches!(held, Held::Open | Held::Over);
        account.end = match (held, order.intent) {
            (Held::Refused, _) => End::Refused,
            (Held::Unknown, _) => End::Unknown,
            (Held::Over, _) | (Held::Open, Intent::WalkAway) => End::Expired,
            (Held::Open, Intent::Confirm) => account.settle(order, &asked(Verb::Confirm), End::Confirmed),
            (Held::Open, Intent::Cancel) => account.settle(order, &asked(Verb::Cancel), End::Cancelled),
        };
        account
    }

    /// Takes what the service says about the order afterwards: it settles what was unknown, and must agree with the
    /// rest.
    pub(crate) fn ask(&mut self, order: &Order, id: &str, said: &Answer) {
        let quantity = u64::from(order.quantity);
        match (self.end, said.standing) {
            (End::Unknown, None) if said.code == Code::NotFound && !self.granted => self.end = End::Refused,
            (End::Unknown, Some(shown)) => {
                self.granted = true;
                let ends = [End::Confirmed, End::Cancelled, End::Expired];
                match ends.into_iter().find(|end| fits(*end, quantity, &shown)) {
                    Some(end) => self.end = end,
                    None => self.contradict(format!("{id} was never answered and is now {shown:?}")),
                }
            }
            (End::Refused, None) if said.code == Code::NotFound => {}
            (end, Some(shown)) if fits(end, quantity, &shown) => {}
            (end, _) => self.contradict(format!("{id} was {end:?} for its buyer; asked again: {said:?}")),
        }
    }

    fn reserve(&mut self, order: &Order, events: &[Event]) -> Held {
        let (mut granted, mut over, mut refused) = (false, false, false);
        let quantity = u64::from(order.quantity);
        for Answer { code, standing, .. } in self.answers(events) {
            match (code, standing) {
                (Code::Ok | Code::Replayed, Some(standing)) => {
                    granted = true;
                    if standing.quantity != quantity {
                        self.contradict(format!(
                            "asked for {quantity} units, was granted {}",
                            standing.quantity
                        ));
                    }
                    if self
                        .expires_at_ms
                        .is_some_and(|before| before != standing.expires_at_ms)
                    {
                        self.contradict("two answers about one grant name two ends".to_owned());
                    }
                    self.expires_at_ms = Some(standing.expires_at_ms);
                }
                // The first try arrived, its answer did not, and the end passed before the next try.
                (Code::Expired, _) => over = true,
                (Code::InsufficientStock, _) => refused = true,
                (code, _) => self.contradict(format!("a reserve was answered {code:?}")),
            }
        }
        self.once(events, "reserve");
        if over && !granted && !events.iter().any(|event| event.resent) {
            self.contradict("a reserve was answered as over that had never been granted".to_owned());
        }
        if granted {
            Held::Open
        } else if over {
            Held::Over
        } else if refused && self.errors == 0 {
            Held::Refused
        } else {
            Held::Unknown
        }
    }

    fn settle(&mut self, order: &Order, events: &[Event], settled: End) -> End {
        let mut done = false;
        let mut late = false;
        for Answer { code, standing, .. } in self.answers(events) {
            match (code, standing) {
                (Code::Ok | Code::Replayed, Some(standing)) => {
                    done = true;
                    if !fits(settled, u64::from(order.quantity), &standing) {
                        self.contradict(format!(
                            "a reservation that was {settled:?} is shown as {standing:?}"
                        ));
                    }
                }
                (Code::Expired, _) if settled == End::Confirmed => late = true,
                (code, _) => {
                    self.contradict(format!("a reservation to be {settled:?} was answered {code:?}"));
                }
            }
        }
        self.once(events, "settlement");
        if done {
            settled
        } else if late && events.iter().all(|event| event.answer.is_some()) {
            End::Expired
        } else {
            End::Unknown
        }
    }

    /// The answers among events; counts the missing ones and the replays.
    fn answers(&mut self, events: &[Event]) -> Vec<Answer> {
        let answers: Vec<Answer> = events.iter().filter_map(|event| event.answer).collect();
        self.errors += (events.len() - answers.len()) as u64;
        self.replayed += answers
            .iter()
            .filter(|answer| answer.code == Code::Replayed)
            .count() as u64;
        for answer in answers
            .iter()
            .filter(|answer| answer.code.is_done() && answer.standing.is_none())
        {
            self.contradictions
                .push(format!("{:?} without a reservation", answer.code));
        }
        answers
    }

    /// Of all answers to one command at most one may say "done now", and if none does, an answer must have been lost.
    fn once(&mut self, events: &[Event], what: &str) {
        let said = |code| {
            events
                .iter()
                .filter(|event| event.answer.is_some_and(|answer| answer.code == code))
                .count()
        };
        let (now, before) = (said(Code::Ok), said(Code::Replayed));
        if now > 1 {
            self.contradict(format!("a {what} was done {now} times"));
        }
        if now == 0 && before > 0 && !events.iter().any(|event| event.resent) {
            self.contradict(format!("a {what} was replayed that had never been done"));
        }
    }

    fn contradict(&mut self, what: String) {
        self.contradictions.push(what);
    }
}

/// Whether a reservation as shown is what the buyer believes it to be.
pub(crate) fn fits(end: End, quantity: u64, shown: &Standing) -> bool {
    let (status, confirmed) = match end {
        End::Confirmed => (Status::Confirmed, quantity),
        End::Cancelled => (Status::Cancelled, 0),
        End::Expired => (Status::Expired, 0),
        End::Refused | End::Unknown => return false,
    };
    shown.status == status
        && shown.quantity == quantity
        && shown.confirmed == confirmed
        && shown.returned == 0
}

#[cfg(test)]
#[path = "account_tests.rs"]
mod tests;
