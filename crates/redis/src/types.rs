//! What is said to a shard on Redis, and what it answers.

use std::time::Duration;

use stockade_core::{
    Command, Entry, Id, LateConfirm, LookedUp, Millis, Position, Reply, Reservation, SkuRecord,
};

/// Where Redis is and how it is talked to.
#[derive(Clone)]
pub struct Options {
    /// `redis://[user[:password]@]host[:port][/db]`, or `rediss://` for TLS.
    pub url: String,
    /// First part of every key; default `stockade`.
    pub prefix: String,
    /// The shard; 0.
    pub shard: u32,
    /// How long making a connection may take.
    pub connect_within: Duration,
    /// How long a reply may take before its outcome is unknown.
    pub reply_within: Duration,
    /// How many connections the decisions are spread over; one more serves everything else.
    pub connections: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            url: "redis://127.0.0.1:6379/".to_owned(),
            prefix: "stockade".to_owned(),
            shard: 0,
            connect_within: Duration::from_secs(2),
            reply_within: Duration::from_secs(2),
            connections: 1,
        }
    }
}

/// Without the address, which may hold a password.
impl std::fmt::Debug for Options {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Options")
            .field("prefix", &self.prefix)
            .field("shard", &self.shard)
            .field("connect_within", &self.connect_within)
            .field("reply_within", &self.reply_within)
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

/// What goes with every call.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The epoch as read in the ledger.
    pub epoch: u64,
    /// Random, new for every send, not 0.
    pub tag: u64,
    /// Tests pass a time; otherwise the server's.
    pub now: Option<Millis>,
    /// What a confirm after the end does.
    pub late_confirm: LateConfirm,
}

/// One command, with what the ledger said for it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// What is asked.
    pub command: &'a Command,
    /// What the ledger said about ids that this command needs; empty on the first send.
    pub known: &'a [LookedUp],
    /// SKUs of which the ledger, asked under a load marker, knows nothing.
    pub absent: &'a [Absent],
}

/// A load marker's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token(pub u64);

/// A SKU that the ledger does not know, as of a load marker: valid while the marker is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// Which SKU, in the command's tenant.
    pub sku: Id,
    /// Under which marker the ledger was asked.
    pub token: Token,
}

/// What a call came to.
#[derive(Clone, Debug)]
pub enum Decided<T> {
    /// It was executed.
    Done {
        /// The tip after it: (epoch, seq, tag).
        tip: Position,
        /// The shard's clock.
        at: Millis,
        /// What came of it.
        value: T,
    },
    /// Nothing was executed: the shard is not what the caller takes it for.
    Stale(Stale),
}

/// Why a shard took nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stale {
    /// Nothing is there: a new, emptied or restarted node.
    NoMeta,
    /// Another epoch (older: this node lost a rebuild; newer: the caller did).
    Epoch {
        /// The node's.
        found: u64,
    },
    /// Fenced and being rebuilt.
    Closed {
        /// The node's epoch.
        found: u64,
    },
    /// The number of reservations there is not the one that was counted, or meta is broken: the shard was tampered
    /// with.
    Damaged,
}

/// The verdicts on a merged batch, in its order.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Whether the call made an entry (then the tip is that entry and carries the call's tag).
    pub wrote: bool,
    /// One for each command.
    pub verdicts: Vec<Verdict>,
}

/// What was decided on one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As core says; never `Corrupt`.
    Reply(Reply),
    /// SKUs that are not held here: load each from the ledger, then send the command again.
    Missing(Vec<Id>),
    /// A stored value that cannot be: the SKU is blocked until it is loaded again; `sku: None` is the shard's.
    Corrupt {
        /// The key.
        key: String,
        /// Whose.
        sku: Option<Id>,
        /// What was found.
        message: String,
    },
}

/// What marking a SKU came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marked {
    /// It is held by now: send the command again.
    Held,
    /// It is not, and this is its marker.
    Missing(MissingSku),
}

/// A marker was set, or was there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingSku {
    /// The token to name when loading.
    pub token: Token,
    /// When this entry is recorded the ledger's row may be read.
    pub tip: Position,
    /// The ledger was asked under this marker and did not know the SKU: it need not be asked again.
    pub absent: bool,
}

/// What a sweep did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepReply {
    /// Reservations that were ended.
    pub ended: usize,
    /// Whether more are due.
    pub more: bool,
    /// How long ago the earliest one still due ended, in milliseconds; 0 when none is.
    pub lag_ms: i64,
    /// Live reservations.
    pub live: u64,
    /// SKUs, with their tenants, of reservations that are due but cannot be ended, since the SKU is not held: load them.
    pub missing: Vec<(Id, Id)>,
}

/// The node's meta, whatever its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaState {
    /// Its tip.
    pub tip: Position,
    /// The number of the entry up to which the outbox was trimmed, or where the epoch starts.
    pub base: u64,
    /// Whether commands are taken.
    pub open: bool,
    /// Chunks loaded.
    pub chunks: u64,
    /// Its clock.
    pub clock: Millis,
}

/// What lies in a shard's outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Entries after the base that trimming kept.
    pub entries: u64,
    /// The memory that they take, as the server estimates it.
    pub bytes: u64,
}

/// What fencing found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fenced {
    /// The node is closed under the new epoch.
    Closed,
    /// The node is already at this or a newer epoch.
    Refused {
        /// The node's epoch.
        found: u64,
    },
}

/// Where a new epoch starts from: the ledger's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    /// The new epoch, the ledger's cursor and its tag.
    pub at: Position,
    /// The ledger's time.
    pub clock: Millis,
}

/// A part of the state to load. SKUs before the reservations that name them.
#[derive(Clone, Debug, Default)]
pub struct Chunk {
    /// SKUs. Owner usage is tracked for those with an owner limit, and for those of which `usage` has rows.
    pub skus: Vec<SkuRecord>,
    /// Live reservations; their units are in the SKUs' counters already.
    pub live: Vec<Reservation>,
    /// Owner usage: tenant, SKU, owner, used.
    pub usage: Vec<(Id, Id, Id, u64)>,
}

/// An entry of an older epoch that the fenced node still has.
#[derive(Clone, Debug)]
pub struct Survivor {
    /// The entry, whole.
    pub entry: Entry,
}

/// A surviving change to be done again, as its entry shows it.
#[derive(Clone, Debug)]
pub enum Rerun {
    /// The reservation as it was granted, with its own end. The ledger does not know it.
    Reserve(Reservation),
    /// The same of one that the ledger has as lost: its caller's retry had been granted.
    Regain(Reservation),
    /// The reservation with its new end.
    Extend(Reservation),
    /// The reservation as it was cancelled.
    Cancel(Reservation),
}

impl Rerun {
    /// The reservation as the entry leaves it.
    pub const fn reservation(&self) -> &Reservation {
        let (Self::Reserve(of) | Self::Regain(of) | Self::Extend(of) | Self::Cancel(of)) = self;
        of
    }
}

/// What running survivors again came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reran {
    /// So many were done. The others wait until more of what has ended is freed: send them again, in their order.
    pub done: usize,
    /// Those that did not fit any more.
    pub lost: Vec<Reservation>,
}

/// Which ended ids stay for replays.
#[derive(Clone, Copy, Debug)]
pub struct KeptIds {
    /// Only changes at or below this entry, which is recorded and trimmed to, may be forgotten.
    pub recorded: u64,
    /// Ended before this: may go.
    pub older_than: Millis,
    /// At most so many stay.
    pub keep: u64,
    /// The most memory that they may take, in bytes, as the server estimates it.
    pub keep_bytes: u64,
    /// About how many are looked at in this call.
    pub limit: usize,
}

/// What forgetting came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forgot {
    /// Ids that went.
    pub forgotten: u64,
    /// Ended ids that stay.
    pub ended: u64,
    /// The memory that those take, as the server estimates it.
    pub bytes: u64,
    /// More could go: call again.
    pub more: bool,
}
