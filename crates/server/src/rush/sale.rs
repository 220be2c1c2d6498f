//! The rush itself: every buyer once, as many at a time as are allowed to be in flight.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use tokio::task::JoinSet;

use super::history::{Event, History, Verb};
use super::plan::{Intent, Order, Plan};
use super::progress::Progress;
use crate::load::LoadError;
use crate::load::answer::{Answer, Code};
use crate::load::caller::{Caller, Outcome};
use crate::load::request::{Ask, OrderLine, Request};

/// A run under way. Everything happens on one thread.
#[derive(Debug)]
pub(crate) struct Sale {
    pub(crate) plan: Plan,
    pub(crate) caller: Caller,
    pub(crate) ttl_seconds: u32,
    /// Workers, each serving one buyer at a time.
    pub(crate) workers: u32,
    pub(crate) history: RefCell<History>,
    /// Buyers who found it sold out, in the order in which they heard.
    pub(crate) waiting: RefCell<VecDeque<u32>>,
    pub(crate) progress: Progress,
    sku_names: Vec<String>,
}

impl Sale {
    pub(crate) fn new(plan: Plan, caller: Caller, ttl_seconds: u32, workers: u32) -> Self {
        let sku_names = (0..plan.supply.len()).map(|sku| plan.sku_name(sku)).collect();
        let progress = Progress::new(plan.orders.len() as u64);
        Self {
            plan,
            caller,
            ttl_seconds,
            workers,
            history: RefCell::default(),
            waiting: RefCell::default(),
            progress,
            sku_names,
        }
    }

    pub(crate) fn sku_names(&self) -> &[String] {
        &self.sku_names
    }

    /// Serves `buyers` in their order.
    pub(crate) async fn serve(
        self: &Rc<Self>,
        buyers: impl Iterator<Item = u32> + 'static,
    ) -> Result<(), LoadError> {
        let queue = Rc::new(RefCell::new(buyers));
        let mut workers = JoinSet::new();
        for _ in 0..self.workers {
            let (sale, queue) = (Rc::clone(self), Rc::clone(&queue));
            workers.spawn_local(async move {
                let mut request = Request::default();
                loop {
                    let Some(buyer) = queue.borrow_mut().next() else {
                        break;
                    };
                    sale.buy(buyer, &mut request).await;
                    sale.progress.step();
                }
            });
        }
        while let Some(ended) = workers.join_next().await {
            ended.map_err(|error| LoadError::Request {
                what: "serving buyers".to_owned(),
                why: error.to_string(),
            })?;
        }
        Ok(())
    }

    async fn buy(&self, buyer: u32, request: &mut Request) {
        let Some(order) = self.plan.order(buyer as usize) else {
            return;
        };
        let id = self.plan.order_id(buyer as usize);
        match self.reserve(buyer, order, &id, request).await {
            Reserved::Granted => {}
            Reserved::SoldOut => {
                self.waiting.borrow_mut().push_back(buyer);
                return;
            }
            Reserved::NoAnswer => return,
        }
        let (verb, action) = match order.intent {
            Intent::Confirm => (Verb::Confirm, "confirm"),
            Intent::Cancel => (Verb::Cancel, "cancel"),
            Intent::WalkAway => return,
        };
        request.action(self.caller.target(), &id, action);
        self.send(buyer, verb, &id, order.settle_twice, request).await;
    }

    async fn reserve(&self, buyer: u32, order: Order, id: &str, request: &mut Request) -> Reserved {
        let sku = self
            .sku_names
            .get(order.sku as usize)
            .map(String::as_str)
            .unwrap_or_default();
        let line = OrderLine {
            sku,
            quantity: u64::from(order.quantity),
        };
        let ask = Ask::Reserve {
            ttl_seconds: u64::from(self.ttl_seconds),
        };
        request.order(self.caller.target(), id, id, ask, line);
        let answers = self
            .send(buyer, Verb::Reserve, id, order.reserve_twice, request)
            .await;
        let codes = || answers.iter().flatten().map(|answer| answer.code);
        if codes().any(Code::is_done) {
            Reserved::Granted
        } else if answers.iter().all(Option::is_some) && codes().all(|code| code == Code::InsufficientStock) {
            Reserved::SoldOut
        } else {
            Reserved::NoAnswer
        }
    }

    /// Sends a request once, or twice at once, and keeps what came back.
    async fn send(
        &self,
        buyer: u32,
        verb: Verb,
        id: &str,
        twice: bool,
        request: &Request,
    ) -> Vec<Option<Answer>> {
        let read = |http: u16, body: &[u8]| Answer::read(http, body, id);
        let outcomes = if twice {
            let (first, second) = self.caller.call_twice(request.bytes(), read).await;
            vec![first, second]
        } else {
            vec![self.caller.call(request.bytes(), read).await]
        };
        let mut history = self.history.borrow_mut();
        outcomes
            .into_iter()
            .map(|outcome| match outcome {
                Outcome::Answered { answer, resent } => {
                    history.note(Event {
                        buyer,
                        verb,
                        resent,
                        answer: Some(answer),
                    });
                    Some(answer)
                }
                Outcome::Unanswered { why } | Outcome::Useless { why } => {
                    history.note_unanswered(buyer, verb, id, &why);
                    None
                }
            })
            .collect()
    }
}

/// What a buyer does next depends on.
enum Reserved {
    Granted,
    SoldOut,
    NoAnswer,
}
