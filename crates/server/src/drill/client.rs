//! A client of a drill: chooses what to do next from its own random numbers, sends it, and keeps its claims.

use super::claim::{Claim, Command, State};
use super::shop::{Delivery, Shop, Tally};
use crate::load::answer::{Answer, Code, StockCode};
use crate::load::caller::{Caller, Outcome};
use crate::load::request::{Ask, OrderLine, Request};

/// Reservations that are to be settled live so long: longer than any campaign.
const LONG_TTL_SECONDS: u64 = 30 * 24 * 3_600;
/// Reservations that are to run out.
const SHORT_TTL_SECONDS: u64 = 1;
/// A client with so many unsettled claims begins no new one.
const OPEN_MAX: usize = 8;
/// Units of an order, at most.
const QUANTITY_MAX: u64 = 3;

/// What a client does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A command on a claim.
    First { claim: usize, command: Command },
    /// The last command of a claim once more.
    Again { claim: usize, command: Command },
}

/// A client.
#[derive(Debug)]
pub(crate) struct Client {
    number: usize,
    pub(crate) random: fastrand::Rng,
    pub(crate) claims: Vec<Claim>,
    pub(crate) deliveries: Vec<Delivery>,
    /// Claims that can go on.
    open: Vec<usize>,
    /// Claims that something was sent about since they were last asked about.
    pub(crate) touched: Vec<usize>,
    pub(crate) tally: Tally,
    pub(crate) findings: Vec<String>,
}

impl Client {
    pub(crate) fn new(number: usize, seed: u64) -> Self {
        Self {
            number,
            // Far apart, so that clients' numbers have nothing in common.
            random: fastrand::Rng::with_seed(seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            claims: Vec::new(),
            deliveries: Vec::new(),
            open: Vec::new(),
            touched: Vec::new(),
            tally: Tally::default(),
            findings: Vec::new(),
        }
    }

    pub(crate) fn id(&self, shop: &Shop, claim: usize) -> String {
        format!("drill-{}-{claim:06}-c{}", shop.name, self.number)
    }

    pub(crate) fn delivery_id(&self, shop: &Shop, delivery: usize) -> String {
        format!("drill-{}-d{delivery:06}-c{}", shop.name, self.number)
    }

    /// Chooses the next step.
    pub(crate) fn choose(&mut self, shop: &Shop) -> Step {
        let dice = self.random.u8(0..100);
        if dice < 10
            && let Some(step) = self.choose_again()
        {
            return step;
        }
        if (dice < 50 || self.open.len() >= OPEN_MAX)
            && let Some(step) = self.choose_open()
        {
            return step;
        }
        let last = shop.supply.len().saturating_sub(1);
        let sku = if self.random.u8(0..8) == 0 {
            last
        } else {
            self.random.usize(0..=last)
        };
        let claim = self.claims.len();
        self.claims
            .push(Claim::new(sku, self.random.u64(1..=QUANTITY_MAX)));
        let command = match self.random.u8(0..100) {
            0..3 => Command::Cancel,
            3..30 => Command::Deduct,
            30..40 if shop.short_ends => Command::Reserve {
                ttl_seconds: SHORT_TTL_SECONDS,
            },
            _ => Command::Reserve {
                ttl_seconds: LONG_TTL_SECONDS,
            },
        };
        Step::First { claim, command }
    }

    fn choose_again(&mut self) -> Option<Step> {
        let claim = self.random.usize(0..self.claims.len().max(1));
        let known = self.claims.get(claim)?;
        // A short reservation may be over by now: then it would not be a replay.
        let lasts = !matches!(
            known.last,
            Some(Command::Reserve {
                ttl_seconds: SHORT_TTL_SECONDS
            })
        );
        let command = known.last.filter(|_| known.doubt.is_none() && lasts)?;
        Some(Step::Again { claim, command })
    }

    fn choose_open(&mut self) -> Option<Step> {
        if self.open.is_empty() {
            return None;
        }
        let claim = self.open.swap_remove(self.random.usize(0..self.open.len()));
        let known = self.claims.get_mut(claim)?;
        let command = match known.state {
            State::Pending if self.random.u8(0..4) > 0 => Command::Confirm,
            State::Pending => Command::Cancel,
            State::Confirmed { returned } if returned < known.quantity => {
                let number = known.returns;
                known.returns += 1;
                Command::Return {
                    units: self.random.u64(1..=known.quantity - returned),
                    number,
                }
            }
            State::Absent | State::Confirmed { .. } | State::Cancelled | State::Sealed | State::Expired => {
                return None;
            }
        };
        Some(Step::First { claim, command })
    }

    /// Writes the request of a command.
    pub(crate) fn write(
        &self,
        shop: &Shop,
        caller: &Caller,
        claim: usize,
        command: Command,
        request: &mut Request,
    ) {
        let Some(known) = self.claims.get(claim) else {
            return;
        };
        let (id, sku) = (self.id(shop, claim), shop.sku(known.sku));
        let target = caller.target();
        let line = OrderLine {
            sku: &sku,
            quantity: known.quantity,
        };
        match command {
            Command::Reserve { ttl_seconds } => {
                request.order(target, &id, &id, Ask::Reserve { ttl_seconds }, line);
            }
            Command::Deduct => request.order(target, &id, &id, Ask::Deduct, line),
            Command::Confirm => request.action(target, &id, "confirm"),
            Command::Cancel => request.action(target, &id, "cancel"),
            Command::Return { units, number } => {
                let line = OrderLine {
                    quantity: units,
                    ..line
                };
                request.give_back(target, &id, &format!("{id}-r{number}"), line);
            }
        }
    }

    /// Sends a step over a caller's connection and takes the answer.
    pub(crate) async fn send(&mut self, shop: &Shop, caller: &Caller, step: Step, request: &mut Request) {
        let (Step::First { claim, command } | Step::Again { claim, command }) = step;
        self.write(shop, caller, claim, command, request);
        let id = self.id(shop, claim);
        let outcome = caller
            .call(request.bytes(), |http, body| Answer::read(http, body, &id))
            .await;
        self.take(shop, step, outcome);
    }

    /// Takes what came back for a step.
    pub(crate) fn take(&mut self, shop: &Shop, step: Step, outcome: Outcome<Answer>) {
        let (Step::First { claim, command } | Step::Again { claim, command }) = step;
        self.tally.sent += 1;
        self.touched.push(claim);
        let Some(known) = self.claims.get_mut(claim) else {
            return;
        };
        let judged = match outcome {
            Outcome::Answered { answer, .. } => {
                self.tally.answered += 1;
                match step {
                    Step::First { .. } => known.first_answer(command, &answer),
                    Step::Again { .. } => known.repeated_answer(command, &answer),
                }
            }
            Outcome::Unanswered { .. } => {
                self.tally.in_doubt += 1;
                if matches!(step, Step::First { .. }) {
                    known.doubt = Some(command);
                }
                Ok(())
            }
            Outcome::Useless { why } => Err(format!("{command:?} on {known:?}: {why}")),
        };
        self.note(shop, claim, judged);
        self.reopen(claim);
    }

    /// Puts a claim back among those that can go on, if it can.
    pub(crate) fn reopen(&mut self, claim: usize) {
        let Some(known) = self.claims.get(claim) else {
            return;
        };
        let goes_on = match known.state {
            State::Pending => {
                known.last
                    == Some(Command::Reserve {
                        ttl_seconds: LONG_TTL_SECONDS,
                    })
            }
            // One sale in four comes back in part.
            State::Confirmed { returned } => returned < known.quantity && self.random.u8(0..4) == 0,
            State::Absent | State::Cancelled | State::Sealed | State::Expired => false,
        };
        if goes_on && known.doubt.is_none() && !self.open.contains(&claim) {
            self.open.push(claim);
        }
    }

    pub(crate) fn note(&mut self, shop: &Shop, claim: usize, judged: Result<(), String>) {
        if let Err(what) = judged {
            self.findings.push(format!("{}: {what}", self.id(shop, claim)));
        }
    }

    /// Brings units, by an adjustment with its own id; `again` sends one that is in doubt.
    pub(crate) async fn deliver(
        &mut self,
        shop: &Shop,
        caller: &Caller,
        again: Option<usize>,
        request: &mut Request,
    ) {
        let index = again.unwrap_or(self.deliveries.len());
        if again.is_none() {
            let sku = self.random.usize(0..shop.supply.len());
            self.deliveries.push(Delivery {
                sku,
                units: self.random.u32(1..=5),
                arrived: false,
            });
            self.tally.sent += 1;
        }
        let id = self.delivery_id(shop, index);
        let Some(delivery) = self.deliveries.get_mut(index) else {
            return;
        };
        let sku = shop.sku(delivery.sku);
        request.adjust_stock(caller.target(), &sku, &id, i64::from(delivery.units));
        match caller.call(request.bytes(), StockCode::read).await {
            Outcome::Answered {
                answer: StockCode(code),
                ..
            } if code == Code::Ok || again.is_some() => {
                delivery.arrived = true;
                self.tally.answered += 1;
                self.tally.happened += u64::from(code == Code::Replayed);
            }
            Outcome::Answered { answer, .. } => {
                self.findings
                    .push(format!("{id}: sent for the first time, was answered {answer:?}"));
            }
            Outcome::Unanswered { .. } => self.tally.in_doubt += 1,
            Outcome::Useless { why } => self.findings.push(format!("{id}: {why}")),
        }
    }
}
