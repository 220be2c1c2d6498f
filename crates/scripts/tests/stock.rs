//! Many callers at once on one stock: never oversold, never undersold, and every retry safe.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::collections::BTreeSet;

use common::connect;
use redis::aio::MultiplexedConnection;
use stockade_scripts::Scripts;
use stockade_scripts::scripts::{
    Confirm, ConfirmReply, DeductOnce, HoldKeys, OnceReply, Release, ReleaseDue, ReleaseReply, Reserve,
    ReserveReply, SaleKeys, Seckill, SeckillReply, SeckillRestore,
};
use stockade_scripts::segments::{Segments, Spread, Taken, start_segment};
use stockade_testkit::redis::Server;

type Plain = Scripts<MultiplexedConnection>;

#[tokio::test]
async fn sixty_four_claims_of_one_user_at_once_give_one() {
    let server = Server::start();
    server.run::<()>(&["SET", "stock:1", "1000"]);
    let scripts = connect(&server.url()).await;
    let mut calls = Vec::new();
    for order in 0..64 {
        let scripts = scripts.clone();
        calls.push(tokio::spawn(async move {
            let keys = SaleKeys::of("stock:1").unwrap();
            let order = format!("o-{order}");
            let call = Seckill {
                keys: &keys,
                order: &order,
                user: "u-1",
                limit: 1,
            };
            match scripts.run(&call).await.unwrap() {
                SeckillReply::Bought { times: 1, .. } => Some(order),
                SeckillReply::Duplicate { times: 1 } => None,
                other => panic!("{other:?}"),
            }
        }));
    }
    let mut bought = Vec::new();
    for call in calls {
        bought.extend(call.await.unwrap());
    }
    assert_eq!(bought.len(), 1);
    assert_eq!(
        server.run::<i64>(&["GET", "stock:1"]),
        999,
        "refused clicks cost nothing"
    );
    // Given back twice, the right comes back once.
    let keys = SaleKeys::of("stock:1").unwrap();
    for _ in 0..2 {
        scripts
            .run(&SeckillRestore {
                keys: &keys,
                order: &bought[0],
            })
            .await
            .unwrap();
    }
    assert_eq!(server.run::<i64>(&["GET", "stock:1"]), 1000);
    let again = Seckill {
        keys: &keys,
        order: "o-again",
        user: "u-1",
        limit: 1,
    };
    assert!(matches!(
        scripts.run(&again).await.unwrap(),
        SeckillReply::Bought { times: 1, .. }
    ));
    let too_much = Seckill {
        order: "o-more",
        ..again
    };
    assert_eq!(
        scripts.run(&too_much).await.unwrap(),
        SeckillReply::Duplicate { times: 1 }
    );
}

#[tokio::test]
async fn twelve_hundred_users_on_a_thousand_units_each_order_sent_twice() {
    let server = Server::start();
    server.run::<()>(&["SET", "stock:1", "1000"]);
    let scripts = connect(&server.url()).await;
    let mut calls = Vec::new();
    for order in 0..1200 {
        let scripts = scripts.clone();
        calls.push(tokio::spawn(async move {
            let key = format!("{{stock:1}}:order:{order}");
            let call = DeductOnce {
                stock: "stock:1",
                order: &key,
                quantity: 1,
                keep_ms: 60_000,
            };
            let first = scripts.run(&call).await.unwrap();
            let second = scripts.run(&call).await.unwrap();
            match (first, second) {
                (
                    OnceReply::Done {
                        left,
                        replayed: false,
                    },
                    OnceReply::Done {
                        left: same,
                        replayed: true,
                    },
                ) => {
                    assert_eq!(left, same);
                    Some(left)
                }
                (OnceReply::Short, OnceReply::Short) => None,
                other => panic!("{other:?}"),
            }
        }));
    }
    let mut left = BTreeSet::new();
    for call in calls {
        left.extend(call.await.unwrap());
    }
    assert_eq!(left, (0..1000).collect(), "every unit once");
    assert_eq!(server.run::<i64>(&["GET", "stock:1"]), 0);
}

/// Small generator with a fixed seed, so that a failure can be run again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

#[tokio::test]
async fn random_reservations_keep_the_counters_true_at_every_step() {
    let server = Server::start();
    server.run::<()>(&["SET", "stock:1", "20"]);
    let scripts = connect(&server.url()).await;
    let keys = HoldKeys::of("stock:1").unwrap();
    let mut dice = Dice(7);
    let (mut now, mut sold) = (1_000_000_u64, 0_u64);
    for step in 0..1500 {
        now += dice.roll(40);
        let order = format!("o-{}", dice.roll(60));
        let keys = &keys;
        match dice.roll(8) {
            0..=3 => {
                let quantity = 1 + dice.roll(3);
                let ttl_ms = 50 + dice.roll(500);
                let call = Reserve {
                    keys,
                    order: &order,
                    quantity,
                    ttl_ms,
                    keep_ms: 400,
                    now_ms: Some(now),
                };
                if let ReserveReply::Held {
                    ends_at_ms,
                    replayed: false,
                    ..
                } = scripts.run(&call).await.unwrap()
                {
                    assert_eq!(ends_at_ms, now + ttl_ms);
                }
            }
            4 | 5 => {
                let call = Confirm {
                    keys,
                    order: &order,
                    now_ms: Some(now),
                };
                if let ConfirmReply::Sold {
                    quantity,
                    replayed: false,
                } = scripts.run(&call).await.unwrap()
                {
                    sold += quantity;
                }
            }
            6 => {
                let reply = scripts
                    .run(&Release {
                        keys,
                        order: &order,
                        now_ms: Some(now),
                    })
                    .await
                    .unwrap();
                assert!(!matches!(reply, ReleaseReply::Released { quantity: 0, .. }));
            }
            _ => {
                scripts
                    .run(&ReleaseDue {
                        keys,
                        limit: 5,
                        now_ms: Some(now),
                    })
                    .await
                    .unwrap();
            }
        }
        check_counters(&scripts, keys, 20, sold, step).await;
    }
    assert!(sold > 5, "{sold}");
    // When all is over, nothing is held and nothing is remembered.
    for _ in 0..100 {
        scripts
            .run(&ReleaseDue {
                keys: &keys,
                limit: 10,
                now_ms: Some(now + 10_000),
            })
            .await
            .unwrap();
        now += 1000;
    }
    assert_eq!(server.run::<i64>(&["GET", "{stock:1}:reserved"]), 0);
    assert_eq!(
        server.run::<i64>(&["EXISTS", "{stock:1}:orders", "{stock:1}:ends"]),
        0
    );
    assert_eq!(server.run::<u64>(&["GET", "stock:1"]), 20 - sold);
}

async fn check_counters(scripts: &Plain, keys: &HoldKeys, supply: u64, sold: u64, step: u32) {
    let mut connection = scripts.connection();
    let (total, reserved, orders): (u64, Option<u64>, Vec<(String, String)>) = redis::pipe()
        .cmd("GET")
        .arg(&keys.stock)
        .cmd("GET")
        .arg(&keys.reserved)
        .cmd("HGETALL")
        .arg(&keys.orders)
        .query_async(&mut connection)
        .await
        .unwrap();
    let held: u64 = orders
        .iter()
        .filter_map(|(_, record)| record.strip_prefix("held:"))
        .map(|rest| rest.split(':').next().unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(total + sold, supply, "step {step}");
    assert_eq!(
        reserved.unwrap_or(0),
        held,
        "step {step}: reserved is the sum of what is held"
    );
    assert!(held <= total, "step {step}");
}

#[tokio::test]
async fn with_n_units_left_in_segments_n_single_buyers_succeed_whatever_their_start() {
    let server = Server::start();
    for spread in [Spread::OneSlot, Spread::ManySlots] {
        let stock = if spread == Spread::OneSlot {
            "stock:1"
        } else {
            "stock:2"
        };
        let scripts = connect(&server.url()).await;
        let segments = Segments::new(scripts, stock, 8, spread, 60_000).unwrap();
        assert!(segments.init(8).await.unwrap());
        assert!(!segments.init(8).await.unwrap(), "set once");
        let mut calls = Vec::new();
        for order in 0..20 {
            let segments = segments.clone();
            calls.push(tokio::spawn(async move {
                segments.deduct(&format!("o-{order}"), 1).await.unwrap()
            }));
        }
        let mut done = 0;
        for call in calls {
            match call.await.unwrap() {
                Taken::Done { replayed: false, .. } => done += 1,
                Taken::Short => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(done, 8, "{spread:?}");
    }
}

#[tokio::test]
async fn an_order_over_several_segments_is_taken_once_and_given_back_once() {
    let server = Server::start();
    for spread in [Spread::OneSlot, Spread::ManySlots] {
        let stock = if spread == Spread::OneSlot {
            "stock:1"
        } else {
            "stock:2"
        };
        let segments = Segments::new(connect(&server.url()).await, stock, 8, spread, 60_000).unwrap();
        segments.init(8).await.unwrap();
        let Taken::Done {
            parts,
            replayed: false,
        } = segments.deduct("o-1", 3).await.unwrap()
        else {
            panic!("{spread:?}: 8 segments with one unit each have 3")
        };
        assert_eq!(parts.len(), 3);
        assert_eq!(
            parts[0].segment,
            start_segment("o-1", 8) as u64 + 1,
            "where the id points"
        );
        let Taken::Done {
            parts: same,
            replayed: true,
        } = segments.deduct("o-1", 3).await.unwrap()
        else {
            panic!("{spread:?}: a retry")
        };
        assert_eq!(same, parts);
        assert_eq!(
            segments.deduct("o-2", 6).await.unwrap(),
            Taken::Short,
            "five are left"
        );
        let all: Vec<i64> = segments
            .keys()
            .iter()
            .map(|key| server.run::<i64>(&["GET", key]))
            .collect();
        assert_eq!(
            all.iter().sum::<i64>(),
            5,
            "{spread:?}: what was taken for the short order is back: {all:?}"
        );
        assert!(segments.restore("o-1").await.unwrap());
        assert!(!segments.restore("o-1").await.unwrap());
        assert_eq!(segments.deduct("o-1", 3).await.unwrap(), Taken::GivenBack);
        let all: Vec<i64> = segments
            .keys()
            .iter()
            .map(|key| server.run::<i64>(&["GET", key]))
            .collect();
        assert_eq!(all, [1; 8], "{spread:?}");
    }
}

#[tokio::test]
async fn a_hundred_holds_that_ran_out_unseen_are_all_found() {
    let server = Server::start();
    server.run::<()>(&["SET", "stock:1", "100"]);
    let scripts = connect(&server.url()).await;
    let keys = HoldKeys::of("stock:1").unwrap();
    for order in 0..100 {
        let order = format!("o-{order}");
        let (ttl_ms, keep_ms) = (1000, 60_000);
        let call = Reserve {
            keys: &keys,
            order: &order,
            quantity: 1,
            ttl_ms,
            keep_ms,
            now_ms: Some(1000),
        };
        scripts.run(&call).await.unwrap();
    }
    // Nobody listened to any event for a minute.
    let mut released = 0;
    loop {
        let reply = scripts
            .run(&ReleaseDue {
                keys: &keys,
                limit: 30,
                now_ms: Some(62_000),
            })
            .await
            .unwrap();
        released += reply.released;
        if !reply.more {
            break;
        }
    }
    assert_eq!(released, 100);
    assert_eq!(server.run::<i64>(&["GET", "{stock:1}:reserved"]), 0);
}

#[tokio::test]
async fn a_caller_who_hangs_up_at_any_moment_finds_out_by_asking_again() {
    let server = Server::start();
    server.run::<()>(&["SET", "stock:1", "1000"]);
    let scripts = connect(&server.url()).await;
    let mut dice = Dice(11);
    for order in 0..300 {
        let key = format!("{{stock:1}}:order:{order}");
        let call = DeductOnce {
            stock: "stock:1",
            order: &key,
            quantity: 1,
            keep_ms: 60_000,
        };
        // Dropped before, while or after it is on its way.
        let patience = std::time::Duration::from_micros(dice.roll(300));
        drop(tokio::time::timeout(patience, scripts.run(&call)).await);
    }
    for order in 0..300 {
        let key = format!("{{stock:1}}:order:{order}");
        let call = DeductOnce {
            stock: "stock:1",
            order: &key,
            quantity: 1,
            keep_ms: 60_000,
        };
        assert!(matches!(
            scripts.run(&call).await.unwrap(),
            OnceReply::Done { .. }
        ));
    }
    assert_eq!(server.run::<i64>(&["GET", "stock:1"]), 700, "each order once");
}
