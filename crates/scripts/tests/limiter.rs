//! The limiter by the server's own clock, and policies that make no sense.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::time::{Duration, Instant};

use common::connect;
use stockade_scripts::limiter::{LimiterError, Policy, RateLimiter};
use stockade_scripts::scripts::{LimitReply, TokenBucket};
use stockade_testkit::redis::Server;

#[tokio::test]
async fn rate_15_burst_10_a_call_every_60_ms_1000_calls_pass_909() {
    let server = Server::start();
    let scripts = connect(&server.url()).await;
    let mut passed = 0;
    for call in 0..1000_u64 {
        let ask = TokenBucket {
            bucket: "bucket:a",
            capacity: 10,
            refill: 15,
            period_ms: 1000,
            cost: 1,
            now_ms: Some(1_000_000 + call * 60),
        };
        passed += u64::from(scripts.run(&ask).await.unwrap().is_allowed());
    }
    // 10 at first, and 15 a second for 59.94 seconds.
    assert_eq!(passed, 909);
}

#[tokio::test]
async fn sixty_four_at_once_get_exactly_the_limit_and_the_key_goes_by_itself() {
    let server = Server::start();
    let scripts = connect(&server.url()).await;
    for (name, policy) in [
        (
            "interval",
            Policy::Interval {
                limit: 5,
                interval: Duration::from_secs(30),
            },
        ),
        (
            "bucket",
            Policy::Bucket {
                capacity: 5,
                refill: 1,
                period: Duration::from_secs(30),
            },
        ),
    ] {
        let limiter = RateLimiter::new(scripts.clone(), name, policy).unwrap();
        let mut calls = Vec::new();
        for _ in 0..64 {
            let limiter = limiter.clone();
            calls.push(tokio::spawn(async move { limiter.check("u-1").await.unwrap() }));
        }
        let mut allowed = 0;
        for call in calls {
            match call.await.unwrap() {
                LimitReply::Allowed { .. } => allowed += 1,
                LimitReply::Refused {
                    remaining,
                    retry_after_ms,
                } => {
                    assert_eq!(remaining, 0);
                    assert!(retry_after_ms.is_some_and(|ms| (1..=30_000).contains(&ms)));
                }
            }
        }
        assert_eq!(allowed, 5, "{name}");
        let ends: i64 = server.run(&["PTTL", &format!("{name}:u-1")]);
        let fill = if name == "bucket" { 150_000 } else { 30_000 };
        assert!(
            ends > fill - 10_000 && ends <= fill + 1000,
            "{name} ends in {ends} ms"
        );
    }
}

#[tokio::test]
async fn a_refused_caller_who_waits_as_told_is_let_in() {
    let server = Server::start();
    let scripts = connect(&server.url()).await;
    for (name, policy) in [
        (
            "interval",
            Policy::Interval {
                limit: 1,
                interval: Duration::from_millis(300),
            },
        ),
        (
            "bucket",
            Policy::Bucket {
                capacity: 1,
                refill: 1,
                period: Duration::from_millis(300),
            },
        ),
    ] {
        let limiter = RateLimiter::new(scripts.clone(), name, policy).unwrap();
        assert!(limiter.check("u").await.unwrap().is_allowed());
        let start = Instant::now();
        let LimitReply::Refused {
            retry_after_ms: Some(wait),
            ..
        } = limiter.check("u").await.unwrap()
        else {
            assert!(
                start.elapsed() > Duration::from_millis(250),
                "refused unless the machine stood still"
            );
            continue;
        };
        tokio::time::sleep(Duration::from_millis(wait)).await;
        assert!(limiter.check("u").await.unwrap().is_allowed(), "{name}");
    }
}

#[tokio::test]
async fn nonsense_is_refused_at_the_start_and_strange_subjects_stay_apart() {
    let server = Server::start();
    let scripts = connect(&server.url()).await;
    let bucket = |capacity, refill, ms| Policy::Bucket {
        capacity,
        refill,
        period: Duration::from_millis(ms),
    };
    for policy in [
        bucket(0, 1, 1000),
        bucket(5, 1, 0),
        bucket(1_000_000_001, 1, 1),
        bucket(1_000_000, 1, 86_400_000),
        Policy::Interval {
            limit: 0,
            interval: Duration::from_secs(1),
        },
        Policy::Interval {
            limit: 1,
            interval: Duration::ZERO,
        },
    ] {
        let refused = RateLimiter::new(scripts.clone(), "limit", policy).unwrap_err();
        assert!(matches!(refused, LimiterError::Policy(_)), "{policy:?}");
    }
    let limiter = RateLimiter::new(scripts.clone(), "limit", bucket(5, 0, 1000)).unwrap();
    for subject in [
        "Jane Doe",
        "Jane  Doe",
        "tab\t",
        "tab\n",
        "nul\0",
        "😀",
        "{a}",
        "a:b",
    ] {
        assert_eq!(
            limiter.check(subject).await.unwrap(),
            LimitReply::Allowed { remaining: 4 },
            "{subject:?}"
        );
    }
    assert!(matches!(
        limiter.check("").await.unwrap_err(),
        LimiterError::Subject(0)
    ));
    let long = "x".repeat(10_000);
    assert!(matches!(
        limiter.check(&long).await.unwrap_err(),
        LimiterError::Subject(10_000)
    ));
    assert!(matches!(
        limiter.check_cost("u", 6).await.unwrap_err(),
        LimiterError::Cost { cost: 6, most: 5 }
    ));
    // Without refill: five, then never.
    for remaining in (0..5).rev() {
        assert_eq!(
            limiter.check("u").await.unwrap(),
            LimitReply::Allowed { remaining }
        );
    }
    let never = LimitReply::Refused {
        remaining: 0,
        retry_after_ms: None,
    };
    assert_eq!(limiter.check("u").await.unwrap(), never);
}

#[tokio::test]
async fn an_emptied_bucket_is_still_empty_after_half_a_tokens_time_and_its_key_is_still_there() {
    let server = Server::start();
    let scripts = connect(&server.url()).await;
    let ask = |now| TokenBucket {
        bucket: "bucket:a",
        capacity: 3,
        refill: 1,
        period_ms: 15_000,
        cost: 1,
        now_ms: Some(now),
    };
    for _ in 0..3 {
        assert!(scripts.run(&ask(1_000_000)).await.unwrap().is_allowed());
    }
    let ends: i64 = server.run(&["PTTL", "bucket:a"]);
    assert!(
        ends > 40_000,
        "the time to fill is 45 s, the key ends in {ends} ms"
    );
    for _ in 0..3 {
        assert!(!scripts.run(&ask(1_007_000)).await.unwrap().is_allowed());
    }
}
