//! The state in Redis and a view of the ledger that holds everything that was read: for an audit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stockade_ledger::{LedgerError, Recorded, SharedLedger, View};
use stockade_redis::Hot;

use crate::tier::Frozen;

/// How long the outbox may take to be recorded up to where the state was read.
const WITHIN: Duration = Duration::from_secs(20);

/// Reads the node while commands go on, then waits until what was read is recorded.
pub(super) async fn take(
    hot: &Hot,
    ledger: Arc<dyn SharedLedger>,
    shard: u32,
    epoch: u64,
) -> Result<Frozen, String> {
    let state = hot.state(epoch).await.map_err(|error| error.to_string())?;
    let state = state.ok_or("a new epoch was built meanwhile")?;
    let until = Instant::now() + WITHIN;
    loop {
        let (ledger, tip) = (Arc::clone(&ledger), state.tip);
        let looked = tokio::task::spawn_blocking(move || look(&*ledger, shard, tip))
            .await
            .map_err(|error| error.to_string())?
            .map_err(|error| error.to_string())?;
        match looked {
            Some(view) => {
                return Ok(Frozen {
                    at: state.tip,
                    moving: Some(state.tracked.into_iter().collect()),
                    skus: state.skus,
                    live: state.live,
                    usage: state.usage,
                    view,
                });
            }
            None if Instant::now() > until => return Err("the outbox is not recorded in time".into()),
            None => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

fn look(
    ledger: &dyn SharedLedger,
    shard: u32,
    tip: stockade_core::Position,
) -> Result<Option<Box<dyn View>>, LedgerError> {
    let view = ledger.view()?;
    let recorded = view.recorded(shard, std::slice::from_ref(&tip))?;
    Ok((recorded.first() == Some(&Recorded::Yes)).then_some(view))
}
