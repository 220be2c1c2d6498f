//! What a command does to an id: the rules of the house in small. The same for a node and for the ledger deciding.

use crate::rules::{Look, Rule};
use crate::state::{Cmd, Held, Item, Meta, Op, Sku, Status, Tag, Verdict, World};

/// The verdict, and the state after when something changes.
pub(crate) fn decide(
    cmd: Cmd,
    (status, end): (Status, u8),
    sku: Option<Sku>,
    clock: u8,
) -> (Verdict, Option<(Status, u8)>) {
    use Status::{Absent, Cancelled, Confirmed, Expired, Lost, Pending};
    let sold = Verdict::Sold { replay: false };
    match (cmd, status) {
        (Cmd::Read, Absent | Lost) | (Cmd::Confirm | Cmd::Extend, Absent) => (Verdict::NotFound, None),
        (Cmd::Reserve | Cmd::ReserveHard | Cmd::Deduct, Absent | Lost) => match sku {
            None => (Verdict::MissingSku, None),
            Some(s) if s.on_hand == s.reserved => (Verdict::Short, None),
            Some(_) if cmd == Cmd::Deduct => (sold, Some((Confirmed, 0))),
            Some(_) => (Verdict::Pending, Some((Pending, clock + 1))),
        },
        (Cmd::Confirm | Cmd::Cancel, Pending) if sku.is_none() => (Verdict::MissingSku, None),
        (Cmd::Confirm, Pending) => (sold, Some((Confirmed, 0))),
        (Cmd::Extend, Pending) if end == clock + 2 => (Verdict::Pending, None),
        (Cmd::Extend, Pending) => (Verdict::Pending, Some((Pending, clock + 2))),
        (Cmd::Cancel, Absent | Pending | Expired | Lost) => (Verdict::Ended(Cancelled), Some((Cancelled, 0))),
        (Cmd::Deduct, Pending) => (Verdict::IdReused, None),
        (Cmd::Reserve | Cmd::ReserveHard | Cmd::Read, Pending) => (Verdict::Pending, None),
        (_, Confirmed) => (Verdict::Sold { replay: true }, None),
        (_, Cancelled | Expired | Lost) => (Verdict::Ended(status), None),
    }
}

/// Moves the units that a change of state moves. `None`: a counter would leave its bounds.
pub(crate) fn moved(sku: Sku, before: Status, after: Status) -> Option<Sku> {
    let mut s = sku;
    if before == Status::Pending && after != Status::Pending {
        s.reserved = s.reserved.checked_sub(1)?;
    }
    if before != Status::Pending && after == Status::Pending {
        s.reserved += 1;
    }
    if before != Status::Confirmed && after == Status::Confirmed {
        s.on_hand = s.on_hand.checked_sub(1)?;
        s.sold += 1;
    }
    (s.reserved <= s.on_hand).then_some(s)
}

/// What is written when a script ends: everything is decided on this copy first.
pub(crate) struct Overlay {
    pub(crate) sku: Option<Sku>,
    pub(crate) held: [Option<Held>; crate::state::IDS],
    pub(crate) ops: Vec<Op>,
    /// Goes into what is changed next.
    pub(crate) born: Tag,
}

impl Overlay {
    pub(crate) fn change(&mut self, id: usize, after: (Status, u8)) {
        let before = self.held[id].map_or(Status::Absent, |h| h.status);
        if let Some(sku) = self.sku {
            // A node whose counters cannot follow is caught by the checks after the step.
            self.sku = Some(moved(sku, before, after.0).unwrap_or(sku));
        }
        self.held[id] = Some(Held {
            status: after.0,
            end: after.1,
            seq: 0,
        });
        self.ops.push(Op {
            id,
            before,
            after: after.0,
            end: after.1,
            born: self.born,
        });
    }

    /// Ends what is due, so that when the sweeper runs cannot be observed.
    pub(crate) fn free_due(&mut self, clock: u8) {
        for id in 0..crate::state::IDS {
            let due = self.held[id].is_some_and(|h| h.status == Status::Pending && h.end <= clock);
            if due && self.sku.is_some() {
                self.change(id, (Status::Expired, 0));
            }
        }
    }
}

impl World {
    /// The state of an id on a node, after its look-up; or the verdict that comes first.
    pub(crate) fn look_up(&self, over: &mut Overlay, meta: &Meta, item: &Item) -> Result<Status, Verdict> {
        if let Some(held) = over.held[item.id] {
            return Ok(held.status);
        }
        let spared = match self.look {
            Look::Always => false,
            // That nothing was recorded at the opening does not say that the ledger knows no id: it may have
            // decided itself.
            Look::Forgot => meta.forgot == 0 && (meta.filter == 0 || !self.rules.has(Rule::Whole)),
            Look::Filter => meta.filter & (1 << item.id) == 0,
        };
        if spared || !self.rules.has(Rule::LookUp) {
            return Ok(Status::Absent);
        }
        let known = item.known;
        let of_epoch = known.epoch == meta.epoch || !self.rules.has(Rule::KnownEpoch);
        let late_enough = known.cursor >= meta.forgot || !self.rules.has(Rule::KnownCursor);
        if !of_epoch || !late_enough {
            return Err(Verdict::LookUp);
        }
        match known.status {
            Status::Pending if self.rules.has(Rule::LiveFork) => Err(Verdict::Fork),
            Status::Absent | Status::Pending => Ok(Status::Absent),
            ended => {
                over.held[item.id] = Some(Held {
                    status: ended,
                    end: 0,
                    seq: meta.forgot,
                });
                Ok(ended)
            }
        }
    }
}
