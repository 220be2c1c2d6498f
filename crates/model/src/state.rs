//! Everything a state of the model consists of: nodes, ledger, processes, messages, and what clients were told.
//!
//! One SKU of two units and three ids of one unit each are enough to run out of stock and to mistake one id for
//! another. Numbers are small so that states are cheap to copy and to compare.

use crate::log::Log;
pub(crate) use crate::message::{Body, Item, Known, Msg, Reply, Req, Stage, To, Verdict};
use crate::rules::{Look, Rules};

pub(crate) const IDS: usize = 3;
pub(crate) const SUPPLY: u8 = 2;
pub(crate) const NODES: usize = 2;
pub(crate) const PROCS: usize = 2;
/// Messages under way and requests open at one time; more adds cost and no stories.
pub(crate) const MESSAGES: usize = 5;
pub(crate) const REQUESTS: usize = 4;
/// The clock stops here; by then every end has passed.
pub(crate) const LAST_TICK: u8 = 4;

pub(crate) type Epoch = u8;
pub(crate) type Seq = u8;
pub(crate) type Tag = u16;

/// A place on a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    pub epoch: Epoch,
    pub seq: Seq,
    pub tag: Tag,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sku {
    pub on_hand: u8,
    pub reserved: u8,
    pub sold: u8,
}

/// What a reservation is. A seal is a cancelled record of an id that never came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    Absent,
    Pending,
    Confirmed,
    Cancelled,
    Expired,
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cmd {
    /// Answered by the hot tier alone.
    Reserve,
    /// Answered when recorded.
    ReserveHard,
    Deduct,
    Confirm,
    Cancel,
    Extend,
    Read,
}

/// What one command did to one id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Op {
    pub id: usize,
    pub before: Status,
    pub after: Status,
    pub end: u8,
    /// For the checks only: when the command was executed first.
    pub born: Tag,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    pub at: Position,
    pub prev: Tag,
    pub ops: Vec<Op>,
    /// Counters after it; absent where the SKU was not held and not touched.
    pub after: Option<Sku>,
}

/// A reservation as a node holds it. `seq` is its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Held {
    pub status: Status,
    pub end: u8,
    pub seq: Seq,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Meta {
    pub epoch: Epoch,
    pub open: bool,
    /// The base was set.
    pub based: bool,
    pub chunks: u8,
    pub seq: Seq,
    pub tag: Tag,
    pub base_seq: Seq,
    pub base_tag: Tag,
    pub forgot: Seq,
    /// Ids that were forgotten (a filter without false positives), one bit each.
    pub filter: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Marker {
    pub token: Tag,
    pub tip: Position,
}

/// One Redis. Copying it is replication; going back to a copy is the loss of a suffix.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Node {
    pub meta: Option<Meta>,
    pub sku: Option<Sku>,
    pub marker: Option<Marker>,
    pub held: [Option<Held>; IDS],
    /// Entries of the present epoch after the base.
    pub stream: Vec<Entry>,
    /// Entries of older epochs.
    pub old: Vec<Entry>,
    /// For the checks only: tags of older entries that a rebuild took into account here.
    pub covered: Vec<Tag>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    Hot,
    Sql,
    Rebuild,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    pub proc: usize,
    pub token: Tag,
}

/// The shard's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    pub at: Position,
    pub mode: Mode,
    pub owner: Owner,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ledger {
    pub row: Row,
    pub entries: Vec<Position>,
    pub sku: Sku,
    pub records: [(Status, u8); IDS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    Seize,
    Fence,
    Survivors,
    Base,
    Chunk1,
    Chunk2,
    Rerun,
    Open,
    Hot,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rebuild {
    pub token: Tag,
    pub epoch: Epoch,
    pub from: Row,
    pub next: Part,
    pub waits: bool,
    pub node: usize,
    /// Ids below it travel in the first chunk.
    pub split: usize,
    pub survivors: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Loading {
    pub epoch: Epoch,
    pub token: Tag,
    pub tip: Position,
    pub node: usize,
}

/// A process. It may stand still at any step (the search simply does not choose it) or die.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proc {
    pub life: u8,
    /// The shard's row as last read.
    pub view: Row,
    pub conn: usize,
    /// Soft grants that are not known to be recorded.
    pub kept: [Option<Position>; IDS],
    pub rebuild: Option<Rebuild>,
    pub loading: Option<Loading>,
    /// The epoch in which it saw something that calls for a rebuild.
    pub suspects: Option<Epoch>,
    pub misses: bool,
}

/// What must not happen, and did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Broken {
    /// Which line of the list in `docs/protocol.md`.
    pub invariant: u8,
    pub what: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub rules: Rules,
    pub look: Look,
    /// Refusals wait until the tip they were decided on is recorded.
    pub refusals_wait: bool,
    pub nodes: [Node; NODES],
    /// The node that Sentinel names.
    pub primary: usize,
    pub ledger: Ledger,
    pub procs: [Proc; PROCS],
    pub reqs: Vec<Req>,
    pub msgs: Vec<Msg>,
    pub clock: u8,
    /// Faults that are still allowed.
    pub faults: u8,
    pub fresh: Tag,
    pub serial: u16,
    /// Per id: what clients were told.
    pub told: [u8; IDS],
    /// Per id: when the recorded extend that counts was executed first.
    pub extended: [Tag; IDS],
    /// Per id: somebody asked for units once.
    pub asked: [bool; IDS],
    /// Per id: reported as lost.
    pub reported: [bool; IDS],
    /// Redis lost something, or was left for the ledger: soft grants may be gone.
    pub lossy: bool,
    pub crashed: bool,
    pub broken: Option<Broken>,
    pub log: Log,
}
