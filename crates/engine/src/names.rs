//! The names of all metrics, in one place. All begin with `stockade_`.
//!
//! They go through the `metrics` facade. A store takes its handles when it is opened, so install the recorder first.

/// Counter, by `kind` and `outcome`: commands answered.
pub const COMMANDS: &str = "stockade_commands_total";
/// Histogram: effects per commit: one for each accepted command (two if it supersedes another), and one for each
/// reservation that was ended in it.
pub const GROUP_COMMANDS: &str = "stockade_group_commands";
/// Histogram: seconds that one commit took.
pub const COMMIT_SECONDS: &str = "stockade_commit_seconds";
/// Counter, by `outcome` (`recorded`, `not_recorded`, `fenced`, `mismatch`, `unknown`): commits.
pub const COMMITS: &str = "stockade_commits_total";
/// Gauge: commands that wait for a decision or for the disk.
pub const WAITING_COMMANDS: &str = "stockade_waiting_commands";
/// Gauge: live reservations.
pub const LIVE_RESERVATIONS: &str = "stockade_live_reservations";
/// Gauge: seconds since the end of the oldest reservation that is due and not yet swept; 0 when none is.
pub const SWEEP_LAG_SECONDS: &str = "stockade_sweep_lag_seconds";
/// Counter: reservations ended by the sweeper.
pub const SWEPT: &str = "stockade_swept_reservations_total";
/// Counter: ended ids that the memory forgot.
pub const FORGOTTEN: &str = "stockade_forgotten_ids_total";
/// Counter: ids looked up in the ledger because the memory may have forgotten them.
pub const LOOK_UPS: &str = "stockade_forgotten_look_ups_total";
/// Gauge: how often the hot state was rebuilt since the store was made.
pub const EPOCH: &str = "stockade_epoch";
/// Gauge: 1 when the store takes commands, else 0.
pub const READY: &str = "stockade_ready";
/// Counter: jumps of the wall clock.
pub const CLOCK_JUMPS: &str = "stockade_clock_jumps_total";

/// Histogram: commands that went to Redis in one call.
pub const BATCH_COMMANDS: &str = "stockade_redis_batch_commands";
/// Histogram, by `script`: seconds that a call to Redis took, the way there and back and waiting included.
pub const CALL_SECONDS: &str = "stockade_redis_call_seconds";
/// Counter, by `kind`: calls to Redis that failed.
pub const REDIS_ERRORS: &str = "stockade_redis_errors_total";
/// Counter: scripts that Redis did not have any more and was given again.
pub const NOSCRIPT: &str = "stockade_redis_noscript_total";
/// Gauge: commands of this process that were decided and are not recorded yet.
pub const OUTBOX_ORDERS: &str = "stockade_outbox_orders";
/// Gauge: seconds since the oldest of them was decided.
pub const OUTBOX_SECONDS: &str = "stockade_outbox_seconds";
/// Gauge: entries in the outbox, of all processes; only where the recorder is.
pub const OUTBOX_ENTRIES: &str = "stockade_outbox_entries";
/// Gauge: the memory that the outbox takes, as Redis estimates it.
pub const OUTBOX_BYTES: &str = "stockade_outbox_bytes";
/// Counter: epochs that this process began to build.
pub const REBUILDS: &str = "stockade_rebuilds_total";
/// Counter: reservations that were answered before they were recorded, and could not be kept.
pub const LOST: &str = "stockade_lost_reservations_total";
/// Counter: commands that were sent to Redis again after it lost what they were decided on.
pub const ASKED_AGAIN: &str = "stockade_asked_again_total";
/// Counter: SKUs loaded into Redis from the ledger because they were missing there.
pub const SKU_LOADS: &str = "stockade_sku_loads_total";
/// Counter: values in Redis that were damaged from outside.
pub const DAMAGED: &str = "stockade_redis_damaged_total";
/// Counter: reservations that were removed from the ledger because they ended long ago.
pub const REMOVED_RESERVATIONS: &str = "stockade_removed_reservations_total";
/// Counter: movements that were removed with them.
pub const REMOVED_MOVEMENTS: &str = "stockade_removed_movements_total";

/// A count as metrics want it.
#[expect(
    clippy::cast_precision_loss,
    reason = "metrics are floating point; counts stay far below 2^53"
)]
pub(crate) fn count(number: usize) -> f64 {
    number as f64
}
