//! Random commands from many clients, torn down and opened again: what every client was answered stays true, units add
//! up, and no command has a second effect.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use common::{Rng, START, Tier, assert_clean, counters};
use parking_lot::Mutex;
use stockade::clock::ManualClock;
use stockade::rules::{DoneCode, Status};
use stockade::{Error, Stockade};
use tokio::task::JoinSet;

const CLIENTS: u64 = 24;
const SKUS: u64 = 3;
const UNITS: u64 = 150;
const ROUNDS: u64 = 8;

/// What a client knows about one of its orders.
#[derive(Clone, Debug, Default)]
struct Order {
    id: String,
    sku: String,
    units: u64,
    granted: bool,
    sold: bool,
    cancelled: bool,
    returned: bool,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Reserve,
    Confirm,
    Cancel,
    Return,
    Look,
}

/// A client: its orders, and the step that it has sent and not heard of.
#[derive(Debug)]
struct Client {
    number: u64,
    rng: Rng,
    orders: Vec<Order>,
    sent: Option<(usize, Step)>,
}

impl Client {
    /// The next step: the one that was not answered, sent again, or a new one.
    fn next(&mut self) -> (usize, Step, Order) {
        let (index, step) = match self.sent {
            Some(sent) => sent,
            None if self.orders.is_empty() || self.rng.one_in(3) => {
                self.orders.push(Order {
                    id: format!("o-{}-{}", self.number, self.orders.len()),
                    sku: format!("S/{}", self.rng.below(SKUS)),
                    units: 1 + self.rng.below(3),
                    ..Order::default()
                });
                (self.orders.len() - 1, Step::Reserve)
            }
            None => {
                // Mostly the latest orders, sometimes old ones that the memory has forgotten.
                let count = self.orders.len() as u64;
                let back = if self.rng.one_in(4) { count } else { count.min(4) };
                let index = usize::try_from(count - 1 - self.rng.below(back)).unwrap();
                let step = match self.rng.below(10) {
                    0..4 => Step::Confirm,
                    4..6 => Step::Cancel,
                    6 => Step::Return,
                    7 => Step::Reserve,
                    _ => Step::Look,
                };
                (index, step)
            }
        };
        self.sent = Some((index, step));
        (index, step, self.orders[index].clone())
    }

    /// Checks an answer against what was known, and remembers it.
    fn learn(&mut self, index: usize, step: Step, resent: bool, answer: &Answer) {
        let order = &mut self.orders[index];
        let told = format!("{step:?} {order:?}: {answer:?}");
        if let Answer::Refused(code) = answer
            && matches!(*code, "unavailable" | "outcome_unknown")
        {
            return;
        }
        self.sent = None;
        match (step, answer) {
            (Step::Reserve, Answer::Done(code, status)) => {
                assert!(
                    !order.granted || *code == DoneCode::Replayed,
                    "second grant: {told}"
                );
                assert!(!order.cancelled, "granted after a cancel: {told}");
                assert!(!order.sold || *status == Status::Confirmed, "{told}");
                order.granted = true;
            }
            (Step::Confirm, Answer::Done(code, status)) => {
                assert!(order.granted && !order.cancelled, "{told}");
                assert!(!order.sold || *code == DoneCode::Replayed, "{told}");
                assert_eq!(*status, Status::Confirmed, "{told}");
                order.sold = true;
            }
            (Step::Cancel, Answer::Done(code, status)) => {
                assert!(!order.sold, "{told}");
                assert_eq!(*status, Status::Cancelled, "{told}");
                assert!(resent || order.cancelled || *code != DoneCode::Replayed, "{told}");
                order.cancelled = true;
            }
            (Step::Return, Answer::Done(code, _)) => {
                assert!(order.sold, "{told}");
                assert!(!order.returned || *code == DoneCode::Replayed, "{told}");
                order.returned = true;
            }
            (Step::Look, Answer::Done(_, status)) => match status {
                Status::Confirmed => assert!(order.sold, "{told}"),
                Status::Cancelled => assert!(order.cancelled, "{told}"),
                Status::Pending | Status::Expired => {
                    assert!(order.granted && !order.sold && !order.cancelled, "{told}");
                }
                Status::Lost => panic!("{told}"),
            },
            (Step::Reserve, Answer::Refused("insufficient_stock")) => assert!(!order.granted, "{told}"),
            (_, Answer::Refused("expired")) => {
                assert!(order.granted && !order.sold && !order.cancelled, "{told}");
            }
            (_, Answer::Refused("already_confirmed")) => assert!(order.sold, "{told}"),
            (_, Answer::Refused("already_cancelled")) => assert!(order.cancelled, "{told}"),
            (_, Answer::Refused("not_found")) => assert!(!order.granted && !order.cancelled, "{told}"),
            (Step::Return, Answer::Refused("not_confirmed")) => assert!(!order.sold, "{told}"),
            (_, Answer::Refused(_)) => panic!("{told}"),
        }
    }
}

#[derive(Debug)]
enum Answer {
    Done(DoneCode, Status),
    Refused(&'static str),
}

async fn send(store: &Stockade, step: Step, order: &Order) -> Answer {
    let granted = |result: Result<stockade::Granted, Error>| match result {
        Ok(granted) => Answer::Done(granted.code, granted.reservation.status),
        Err(error) => Answer::Refused(error.code()),
    };
    match step {
        Step::Reserve => {
            let ttl = Duration::from_millis(1_000 + order.units * 500);
            let call = store
                .reserve(&order.id, "owner")
                .line(&order.sku, order.units)
                .ttl(ttl);
            granted(call.await)
        }
        Step::Confirm => granted(store.confirm(&order.id).await),
        Step::Cancel => granted(store.cancel(&order.id).await),
        Step::Return => match store.return_units(&format!("r-{}", order.id), &order.id).await {
            Ok(back) => Answer::Done(back.code, back.reservation.status),
            Err(error) => Answer::Refused(error.code()),
        },
        Step::Look => match store.reservation(&order.id).await {
            Ok(reservation) => Answer::Done(DoneCode::Ok, reservation.status),
            Err(error) => Answer::Refused(error.code()),
        },
    }
}

async fn steps(store: Stockade, client: Arc<Mutex<Client>>, count: Option<u64>) {
    let mut left = count.unwrap_or(u64::MAX);
    while left > 0 || client.lock().sent.is_some() {
        left = left.saturating_sub(1);
        let (resent, (index, step, order)) = {
            let mut client = client.lock();
            (client.sent.is_some(), client.next())
        };
        let answer = send(&store, step, &order).await;
        client.lock().learn(index, step, resent, &answer);
    }
}

async fn open(tier: &Tier, folder: &Path, clock: &ManualClock) -> Stockade {
    let mut options = tier.options_at(folder, clock);
    options.keep_ended = 40;
    options.keep_below_least = true;
    options.open().await.unwrap_or_else(|error| panic!("{error}"))
}

on_every_tier!(every_answer_stays_true);

async fn every_answer_stays_true(tier: Tier) {
    let seed = std::env::var("STOCKADE_TEST_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_u64);
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START);
    let mut rng = Rng::new(seed);
    let mut store = open(&tier, folder.path(), &clock).await;
    for sku in 0..SKUS {
        store
            .set_stock(&format!("c-{sku}"), &format!("S/{sku}"), UNITS)
            .await
            .unwrap();
    }
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            Arc::new(Mutex::new(Client {
                number,
                rng: Rng::new(seed * 1_000 + number),
                orders: Vec::new(),
                sent: None,
            }))
        })
        .collect();
    for round in 0..ROUNDS {
        let mut tasks = JoinSet::new();
        for client in &clients {
            tasks.spawn(steps(store.clone(), client.clone(), None));
        }
        for _ in 0..6 {
            tokio::time::sleep(Duration::from_millis(1 + rng.below(12))).await;
            clock.advance(i64::try_from(rng.below(700)).unwrap());
        }
        // Clients vanish in the middle of whatever they do; a failed check among them fails the test.
        if round % 3 == 2 {
            assert_clean(&store).await;
        }
        tasks.abort_all();
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        }
        if round % 2 == 0 {
            store.close().await.unwrap();
        }
        drop(store);
        store = open(&tier, folder.path(), &clock).await;
    }
    let mut tasks = JoinSet::new();
    for client in &clients {
        tasks.spawn(steps(store.clone(), client.clone(), Some(5)));
    }
    tasks.join_all().await;
    clock.advance(60_000);
    let mut sold = vec![0; usize::try_from(SKUS).unwrap()];
    let mut orders = 0;
    for client in &clients {
        let known = client.lock().orders.clone();
        for order in &known {
            orders += 1;
            let status = store.reservation(&order.id).await.map(|found| found.status);
            match (order.granted, order.sold, order.cancelled) {
                (_, true, false) => assert_eq!(status, Ok(Status::Confirmed), "{order:?}"),
                (_, false, true) => assert_eq!(status, Ok(Status::Cancelled), "{order:?}"),
                (true, false, false) => assert_eq!(status, Ok(Status::Expired), "{order:?}"),
                (false, false, false) => assert_eq!(status.unwrap_err().code(), "not_found", "{order:?}"),
                (_, true, true) => panic!("{order:?}"),
            }
            if order.sold && !order.returned {
                let sku: usize = order.sku.trim_start_matches("S/").parse().unwrap();
                sold[sku] += order.units;
            }
        }
    }
    for (sku, sold) in sold.into_iter().enumerate() {
        let found = counters(&store, &format!("S/{sku}")).await;
        assert_eq!(
            (found.sold, found.on_hand, found.reserved),
            (sold, UNITS - sold, 0)
        );
        assert!(sold <= UNITS);
    }
    assert!(orders > 100, "only {orders} orders");
    assert_clean(&store).await;
}
