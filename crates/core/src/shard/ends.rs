//! The ends of live reservations, earliest first: a four-way heap that knows where each slot stands.
//!
//! A new end is nearly always the latest, so that an insert seldom moves anything; taking one out of the middle moves
//! few nodes, since most of a heap is at its bottom. It costs 16 bytes a reservation.

use super::slab::Chunked;
use crate::id::Millis;

const ARITY: usize = 4;
const NOWHERE: u32 = u32::MAX;

// Three words of four bytes, so that a node takes 12 bytes and not 16.
#[derive(Clone, Copy)]
struct Node {
    high: u32,
    low: u32,
    slot: u32,
}

impl Node {
    const fn new(end: Millis, slot: u32) -> Self {
        // Order of i64 as order of u64.
        let key = end.cast_unsigned() ^ (1 << 63);
        Self {
            high: (key >> 32) as u32,
            #[expect(clippy::cast_possible_truncation, reason = "the low half is what is wanted")]
            low: key as u32,
            slot,
        }
    }
    const fn key(self) -> u64 {
        ((self.high as u64) << 32) | self.low as u64
    }
    const fn end(self) -> Millis {
        (self.key() ^ (1 << 63)).cast_signed()
    }
    const fn rank(self) -> (u64, u32) {
        (self.key(), self.slot)
    }
}

pub(super) struct Ends {
    nodes: Chunked<Node>,
    // By slot: where its node stands.
    places: Chunked<u32>,
}

impl Ends {
    pub(super) const fn new() -> Self {
        Self {
            nodes: Chunked::new(),
            places: Chunked::new(),
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn first(&self) -> Option<(Millis, u32)> {
        self.nodes.get(0).map(|node| (node.end(), node.slot))
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = u32> {
        self.nodes.iter().map(|node| node.slot)
    }

    pub(super) fn insert(&mut self, slot: u32, end: Millis) {
        self.remove(slot);
        while self.places.len() <= slot as usize {
            self.places.push(NOWHERE);
        }
        let node = Node::new(end, slot);
        let at = self.nodes.len();
        self.nodes.push(node);
        self.rise(at, node);
    }

    pub(super) fn remove(&mut self, slot: u32) {
        let Some(place) = self.places.get_mut(slot as usize) else {
            return;
        };
        let at = core::mem::replace(place, NOWHERE);
        if at == NOWHERE {
            return;
        }
        let at = at as usize;
        let Some(last) = self.nodes.pop() else { return };
        if at == self.nodes.len() {
            return;
        }
        // The last node fills the gap and goes to where it belongs, up or down.
        match self.parent(at) {
            Some((_, parent)) if parent.rank() > last.rank() => self.rise(at, last),
            Some(_) | None => self.fall(at, last),
        }
    }

    fn parent(&self, at: usize) -> Option<(usize, Node)> {
        let parent = at.checked_sub(1)?.checked_div(ARITY)?;
        self.nodes.get(parent).map(|node| (parent, *node))
    }

    fn put(&mut self, at: usize, node: Node) {
        if let Some(cell) = self.nodes.get_mut(at) {
            *cell = node;
        }
        if let Some(place) = self.places.get_mut(node.slot as usize) {
            // Slots are u32, so there are never more nodes than that.
            *place = u32::try_from(at).unwrap_or(NOWHERE);
        }
    }

    fn rise(&mut self, mut at: usize, node: Node) {
        while let Some((up, parent)) = self.parent(at) {
            if parent.rank() <= node.rank() {
                break;
            }
            self.put(at, parent);
            at = up;
        }
        self.put(at, node);
    }

    fn fall(&mut self, mut at: usize, node: Node) {
        loop {
            let first = at.saturating_mul(ARITY).saturating_add(1);
            let least = (first..first.saturating_add(ARITY))
                .filter_map(|child| self.nodes.get(child).map(|found| (child, *found)))
                .min_by_key(|(_, found)| found.rank());
            match least {
                Some((child, found)) if found.rank() < node.rank() => {
                    self.put(at, found);
                    at = child;
                }
                Some(_) | None => break,
            }
        }
        self.put(at, node);
    }
}
