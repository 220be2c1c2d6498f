//! The delay queue when workers and servers die.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{connect, reconnecting};
use redis::aio::MultiplexedConnection;
use serde::{Deserialize, Serialize};
use stockade_scripts::delay_queue::{DelayQueue, QueueOptions};
use stockade_scripts::scripts::RetryReply;
use stockade_testkit::redis::{Options, Server};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Expiry {
    order: String,
    units: u64,
}

fn expiry(order: &str) -> Expiry {
    Expiry {
        order: order.to_owned(),
        units: 2,
    }
}

fn options(visibility_ms: u64) -> QueueOptions {
    QueueOptions {
        visibility: Duration::from_millis(visibility_ms),
        tries_max: 3,
        retry_after: Duration::from_millis(5),
        poll: Duration::from_millis(20),
        ..QueueOptions::default()
    }
}

async fn queue(server: &Server, visibility_ms: u64) -> DelayQueue<Expiry, MultiplexedConnection> {
    DelayQueue::new(
        connect(&server.url()).await,
        "queue:expiry",
        options(visibility_ms),
    )
    .unwrap()
}

fn now_ms(server: &Server) -> u64 {
    let (seconds, micros): (u64, u64) = server.run(&["TIME"]);
    seconds * 1000 + micros / 1000
}

#[tokio::test]
async fn an_item_of_a_killed_worker_is_handed_out_again_and_the_dead_worker_cannot_acknowledge_it() {
    let server = Server::start();
    let queue = queue(&server, 200).await;
    assert!(queue.add("o-1", now_ms(&server), &expiry("o-1")).await.unwrap());
    assert!(!queue.add("o-1", 0, &expiry("other")).await.unwrap(), "one item");
    let first = queue.claim().await.unwrap().jobs.remove(0);
    assert_eq!((first.attempt, &first.payload), (1, &expiry("o-1")));
    assert!(
        queue.claim().await.unwrap().jobs.is_empty(),
        "in the first worker's hands"
    );
    let second = loop {
        if let Some(job) = queue.claim().await.unwrap().jobs.pop() {
            break job;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(second.attempt, 2);
    assert!(!queue.ack(&first).await.unwrap(), "too late");
    assert!(queue.ack(&second).await.unwrap());
    assert_eq!(queue.claim().await.unwrap().next, None);
}

#[tokio::test]
async fn an_item_tried_too_often_or_unreadable_goes_to_the_dead_letters() {
    let server = Server::start();
    let queue = queue(&server, 60_000).await;
    queue.add("o-1", 0, &expiry("o-1")).await.unwrap();
    for attempt in 1..=3 {
        let job = queue.claim().await.unwrap().jobs.remove(0);
        assert_eq!(job.attempt, attempt);
        let said = queue.retry(&job, Duration::ZERO).await.unwrap();
        assert_eq!(
            said,
            if attempt == 3 {
                RetryReply::GivenUp
            } else {
                RetryReply::Waits
            }
        );
    }
    server.run::<()>(&["HSET", "{queue:expiry}:items", "strange", "not json"]);
    server.run::<()>(&["ZADD", "{queue:expiry}:due", "1", "strange"]);
    let claimed = queue.claim().await.unwrap();
    assert_eq!((claimed.jobs.len(), claimed.dead), (0, 1));
    let mut dead: Vec<Vec<u8>> = queue
        .dead_letters()
        .await
        .unwrap()
        .into_iter()
        .map(|one| one.0)
        .collect();
    dead.sort();
    assert_eq!(dead, [b"o-1".to_vec(), b"strange".to_vec()]);
}

#[tokio::test]
async fn due_times_of_hours_are_safe_and_the_lag_is_known() {
    let server = Server::start();
    let queue = queue(&server, 50).await;
    let now = now_ms(&server);
    queue.add("late", now + 7_200_000, &expiry("late")).await.unwrap();
    for _ in 0..5 {
        assert!(queue.claim().await.unwrap().jobs.is_empty());
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    assert_eq!(queue.lag().await.unwrap(), Duration::ZERO);
    queue
        .add("overdue", now - 5000, &expiry("overdue"))
        .await
        .unwrap();
    assert!(queue.lag().await.unwrap() >= Duration::from_secs(5));
    assert_eq!(
        queue.claim().await.unwrap().jobs[0].payload.order,
        "overdue",
        "not held up by the later one"
    );
}

#[tokio::test]
async fn a_restart_with_a_log_loses_nothing_and_what_fell_due_meanwhile_comes_at_once() {
    let mut server = Server::append_only();
    {
        let queue = queue(&server, 300).await;
        for order in 0..100 {
            let id = format!("o-{order}");
            assert!(queue.add(&id, now_ms(&server) + 200, &expiry(&id)).await.unwrap());
        }
    }
    server.kill();
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.restart();
    let queue = queue(&server, 60_000).await;
    let mut count = 0;
    while count < 100 {
        let jobs = queue.claim().await.unwrap().jobs;
        assert!(!jobs.is_empty(), "only {count} came back");
        count += jobs.len();
    }
}

#[tokio::test]
async fn workers_share_the_work_and_wait_out_a_blocked_and_a_restarted_server() {
    let mut server = Server::with(
        Options {
            append_only: true,
            ..Options::default()
        }
        .set("busy-reply-threshold", "50"),
    );
    let seen: Arc<Mutex<BTreeMap<String, u64>>> = Arc::default();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut workers = Vec::new();
    for _ in 0..3 {
        let scripts = reconnecting(&server.url(), Duration::from_secs(2)).await;
        let queue = DelayQueue::<Expiry, _>::new(scripts, "queue:expiry", options(1000)).unwrap();
        let (seen, mut stopped) = (Arc::clone(&seen), stopped.clone());
        workers.push(tokio::spawn(async move {
            let stop = async move { drop(stopped.wait_for(|over| *over).await) };
            let handle = |job: stockade_scripts::delay_queue::Job<Expiry>| {
                let seen = Arc::clone(&seen);
                async move {
                    *seen.lock().unwrap().entry(job.payload.order).or_default() += 1;
                    Ok::<(), ()>(())
                }
            };
            queue.work(handle, |_| {}, stop).await;
        }));
    }
    let add = async |server: &Server, from: u64, to: u64| {
        let queue = queue(server, 1000).await;
        for order in from..to {
            let id = format!("o-{order}");
            queue
                .add(&id, now_ms(server) + order % 7, &expiry(&id))
                .await
                .unwrap();
        }
    };
    add(&server, 0, 100).await;
    // A script blocks the server for longer than it takes to say BUSY.
    let mut admin = server.admin().unwrap();
    let long = "local e = redis.call('TIME')[1] + 2 while tonumber(redis.call('TIME')[1]) < e do end";
    tokio::task::spawn_blocking(move || {
        redis::cmd("EVAL")
            .arg(long)
            .arg(0)
            .query::<()>(&mut admin)
            .unwrap();
    })
    .await
    .unwrap();
    add(&server, 100, 200).await;
    server.restart();
    add(&server, 200, 300).await;
    let start = std::time::Instant::now();
    while seen.lock().unwrap().len() < 300 {
        assert!(
            start.elapsed() < Duration::from_secs(40),
            "only {} came",
            seen.lock().unwrap().len()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.send_replace(true);
    for worker in workers {
        worker.await.unwrap();
    }
}
