//! Ctrl-C and its kin end a drill early, but not before what it started is stopped and removed.

use std::future::Future;

use tokio::signal::unix::{SignalKind, signal};

use super::LoadError;

/// Runs `work` until it is done or a signal asks to stop; then `work` is dropped where it stands.
pub(crate) async fn until_interrupted<T>(
    work: impl Future<Output = Result<T, LoadError>>,
) -> Result<T, LoadError> {
    let listen = |kind| {
        signal(kind).map_err(|source| LoadError::Io {
            what: "listening for signals",
            source,
        })
    };
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hang_up = listen(SignalKind::hangup())?;
    tokio::select! {
        done = work => done,
        _ = interrupt.recv() => Err(LoadError::Interrupted),
        _ = terminate.recv() => Err(LoadError::Interrupted),
        _ = hang_up.recv() => Err(LoadError::Interrupted),
    }
}
