//! Connections with settings that suit scripts: small packets are sent at once (`TCP_NODELAY` is off by default), a time-out
//! that the caller names, and no command that is sent a second time behind the caller's back.

use std::time::Duration;

use redis::IntoConnectionInfo;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::io::tcp::TcpSettings;

use crate::error::{ScriptError, ServerState};
use crate::runner::Scripts;

const CONNECT: &str = "connect";

/// A connection to one server, which comes back by itself after it was lost. `patience` is how long an answer may take;
/// after that the outcome of the call is unknown, and a late answer is thrown away.
pub async fn single(url: &str, patience: Duration) -> Result<Scripts<ConnectionManager>, ScriptError> {
    let info = url
        .into_connection_info()
        .map_err(not_connected)?
        .set_tcp_settings(nodelay());
    let client = redis::Client::open(info).map_err(not_connected)?;
    let config = ConnectionManagerConfig::new()
        .set_response_timeout(Some(patience))
        .set_connection_timeout(Some(patience))
        .set_min_delay(Duration::from_millis(10))
        .set_max_delay(Duration::from_secs(1))
        .set_number_of_retries(3);
    let connection = client
        .get_connection_manager_with_config(config)
        .await
        .map_err(not_connected)?;
    Ok(Scripts::new(connection))
}

/// A connection to a cluster. The client's own retries are off, since they also send again what may have been carried out;
/// what did certainly not happen (a slot that moves or has moved, a cluster that is down for a moment) is tried again
/// here, for `patience`.
#[cfg(feature = "cluster")]
pub async fn cluster(
    urls: Vec<String>,
    patience: Duration,
) -> Result<Scripts<redis::cluster_async::ClusterConnection>, ScriptError> {
    let client = redis::cluster::ClusterClient::builder(urls)
        .tcp_settings(nodelay())
        .connection_timeout(patience)
        .response_timeout(patience)
        .retries(0)
        .build()
        .map_err(not_connected)?;
    let connection = client.get_async_connection().await.map_err(not_connected)?;
    Ok(Scripts::new(connection).waiting(patience))
}

/// Whatever goes wrong while connecting (no such host, a mute one, a bad address), no script was sent.
fn not_connected(error: redis::RedisError) -> ScriptError {
    match ScriptError::from_redis(CONNECT, error) {
        ScriptError::Unknown { script, source } => ScriptError::Server {
            script,
            state: ServerState::Unreachable,
            source,
        },
        known => known,
    }
}

/// Sends small packets at once.
pub fn nodelay() -> TcpSettings {
    TcpSettings::default().set_nodelay(true)
}
