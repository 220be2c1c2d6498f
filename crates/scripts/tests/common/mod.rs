//! Connections that tests use: patient, since the machine may be busy.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(dead_code, reason = "each test program uses some of it")]

use std::time::Duration;

use redis::AsyncConnectionConfig;
use redis::aio::{ConnectionManager, MultiplexedConnection};
use stockade_scripts::Scripts;

pub(crate) async fn connect(url: &str) -> Scripts<MultiplexedConnection> {
    with_patience(url, Duration::from_secs(20)).await
}

pub(crate) async fn with_patience(url: &str, patience: Duration) -> Scripts<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(Some(patience))
        .set_connection_timeout(Some(Duration::from_secs(20)));
    let client = redis::Client::open(url).unwrap();
    Scripts::new(
        client
            .get_multiplexed_async_connection_with_config(&config)
            .await
            .unwrap(),
    )
}

/// A connection that comes back by itself after it was lost.
pub(crate) async fn reconnecting(url: &str, patience: Duration) -> Scripts<ConnectionManager> {
    stockade_scripts::connect::single(url, patience).await.unwrap()
}
