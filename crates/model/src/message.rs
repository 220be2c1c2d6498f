//! What processes send to nodes and to the ledger, and the requests that they work on.

use crate::state::{Cmd, Entry, Epoch, IDS, Mode, Op, Position, Row, Seq, Sku, Status, Tag};

/// What the ledger said about an id, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Known {
    pub status: Status,
    pub end: u8,
    pub epoch: Epoch,
    pub cursor: Seq,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Item {
    pub serial: u16,
    pub id: usize,
    pub cmd: Cmd,
    pub known: Known,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Reserved, or reserved before.
    Pending,
    Sold {
        replay: bool,
    },
    Ended(Status),
    Short,
    NotFound,
    IdReused,
    LookUp,
    MissingSku,
    /// The ledger has a live record that this node lacks.
    Fork,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Body {
    Batch {
        epoch: Epoch,
        tag: Tag,
        row: Position,
        items: Vec<Item>,
    },
    Trim {
        at: Position,
    },
    Load {
        epoch: Epoch,
        token: Tag,
        sku: Sku,
        row: Position,
    },
    Fence {
        epoch: Epoch,
        token: Tag,
    },
    Base {
        at: Position,
        filter: u8,
        token: Tag,
    },
    Chunk {
        epoch: Epoch,
        number: u8,
        sku: Option<Sku>,
        live: [Option<u8>; IDS],
        token: Tag,
    },
    Rerun {
        epoch: Epoch,
        tag: Tag,
        again: Vec<(Op, Known)>,
        covers: Vec<Tag>,
        token: Tag,
    },
    Open {
        epoch: Epoch,
        chunks: u8,
        token: Tag,
    },
    // To the ledger.
    Record {
        entries: Vec<Entry>,
    },
    Seize {
        from: Row,
        to: Mode,
        token: Tag,
    },
    Hot {
        epoch: Epoch,
        token: Tag,
    },
    Decide {
        epoch: Epoch,
        items: Vec<Item>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    Yes,
    No,
    /// No meta, an older epoch, or closed.
    Behind,
    /// A newer epoch, or another mode.
    Newer,
    /// The tip it was decided on (none: the ledger decided), whether the row the call brought lies on this chain, and
    /// the verdicts.
    Batch {
        tip: Option<Position>,
        on_chain: bool,
        verdicts: Vec<Verdict>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum To {
    Node(usize),
    Ledger,
}

/// A call under way. It reaches the place it was sent to, however late, or nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Msg {
    pub to: To,
    pub from: usize,
    pub life: u8,
    pub body: Body,
    pub reply: Option<Reply>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    Queued,
    Sent,
    /// A hard answer waits until this is recorded.
    Waits(Position, Verdict),
}

/// A request that a process works on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Req {
    pub serial: u16,
    pub id: usize,
    pub cmd: Cmd,
    pub proc: usize,
    pub stage: Stage,
    /// Sent by the process itself for a soft grant that it keeps.
    pub own: bool,
    /// What clients had been told when it arrived, for the checks.
    pub told: [u8; IDS],
}
