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
