//! Storage that grows in pieces, so that no command ever pays for moving everything, and indexes of slots that are
//! split into parts for the same reason.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use hashbrown::HashTable;

use super::stop::{Stop, Try};

const CHUNK_BITS: u32 = 10;
const CHUNK: usize = 1 << CHUNK_BITS;
const PARTS: usize = 64;

/// A vector in pieces: never moved, never doubled.
pub(super) struct Chunked<T> {
    chunks: Vec<Vec<T>>,
    len: usize,
}

impl<T> Chunked<T> {
    pub(super) const fn new() -> Self {
        Self {
            chunks: Vec::new(),
            len: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.chunks.get(at >> CHUNK_BITS)?.get(at & (CHUNK - 1))
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.chunks.get_mut(at >> CHUNK_BITS)?.get_mut(at & (CHUNK - 1))
    }

    pub(super) fn push(&mut self, value: T) {
        if self.len & (CHUNK - 1) == 0 {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        if let Some(last) = self.chunks.last_mut() {
            last.push(value);
            self.len = self.len.saturating_add(1);
        }
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let last = self.chunks.last_mut()?;
        let value = last.pop()?;
        if last.is_empty() {
            self.chunks.pop();
        }
        self.len = self.len.saturating_sub(1);
        Some(value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }
}

/// A queue in pieces.
pub(super) struct Fifo<T> {
    chunks: VecDeque<Vec<T>>,
    head: usize,
}

impl<T> Fifo<T> {
    pub(super) const fn new() -> Self {
        Self {
            chunks: VecDeque::new(),
            head: 0,
        }
    }

    pub(super) fn push(&mut self, value: T) {
        match self.chunks.back_mut() {
            Some(last) if last.len() < CHUNK => last.push(value),
            Some(_) | None => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(value);
                self.chunks.push_back(chunk);
            }
        }
    }

    pub(super) fn front(&self) -> Option<&T> {
        self.chunks.front()?.get(self.head)
    }

    pub(super) fn drop_front(&mut self) {
        let Some(first) = self.chunks.front() else { return };
        self.head = self.head.saturating_add(1);
        if self.head >= first.len() {
            self.chunks.pop_front();
            self.head = 0;
        }
    }
}

/// Values at slots that stay the same while the value lives.
pub(super) struct Slab<T> {
    cells: Chunked<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Self {
            cells: Chunked::new(),
            free: Vec::new(),
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.cells.len().saturating_sub(self.free.len())
    }

    pub(super) const fn span(&self) -> usize {
        self.cells.len()
    }

    pub(super) fn get(&self, slot: u32) -> Option<&T> {
        self.cells.get(slot as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.cells.get_mut(slot as usize)?.as_mut()
    }

    pub(super) fn insert(&mut self, value: T) -> Try<u32> {
        if let Some(slot) = self.free.pop() {
            let cell = self
                .cells
                .get_mut(slot as usize)
                .ok_or(Stop::Corrupt("free list"))?;
            *cell = Some(value);
            return Ok(slot);
        }
        let slot = u32::try_from(self.cells.len()).map_err(|_| Stop::Corrupt("more than 2^32 records"))?;
        self.cells.push(Some(value));
        Ok(slot)
    }

    pub(super) fn remove(&mut self, slot: u32) -> Option<T> {
        let value = self.cells.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        Some(value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.cells.iter().flatten()
    }
}

/// Slots by hash. Parts grow one at a time, so that a growing index pauses for a small part of it only.
pub(super) struct Index {
    parts: Vec<HashTable<u32>>,
}

impl Index {
    pub(super) fn new() -> Self {
        let mut parts = Vec::with_capacity(PARTS);
        parts.resize_with(PARTS, HashTable::new);
        Self { parts }
    }

    // The table itself uses the lowest and the highest bits.
    const fn part(hash: u64) -> usize {
        (hash >> 40) as usize & (PARTS - 1)
    }

    pub(super) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        self.parts
            .get(Self::part(hash))?
            .find(hash, |&slot| is_it(slot))
            .copied()
    }

    pub(super) fn insert(&mut self, hash: u64, slot: u32, hash_of: impl Fn(u32) -> u64) {
        if let Some(part) = self.parts.get_mut(Self::part(hash)) {
            part.insert_unique(hash, slot, |&slot| hash_of(slot));
        }
    }

    pub(super) fn remove(&mut self, hash: u64, slot: u32) {
        if let Some(part) = self.parts.get_mut(Self::part(hash))
            && let Ok(entry) = part.find_entry(hash, |&found| found == slot)
        {
            entry.remove();
        }
    }
}

/// A slab with an index over it.
pub(super) struct Store<T> {
    slab: Slab<T>,
    index: Index,
}

impl<T> Store<T> {
    pub(super) fn new() -> Self {
        Self {
            slab: Slab::new(),
            index: Index::new(),
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.slab.len()
    }

    /// Slots ever used: every slot is below it.
    pub(super) const fn span(&self) -> usize {
        self.slab.span()
    }

    pub(super) fn get(&self, slot: u32) -> Option<&T> {
        self.slab.get(slot)
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.slab.get_mut(slot)
    }

    pub(super) fn find(&self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<u32> {
        self.index
            .find(hash, |slot| self.slab.get(slot).is_some_and(&is_it))
    }

    /// `hash_of` must give for each value the hash that it was inserted with.
    pub(super) fn insert(&mut self, hash: u64, value: T, hash_of: impl Fn(&T) -> u64) -> Try<u32> {
        let slot = self.slab.insert(value)?;
        let slab = &self.slab;
        self.index
            .insert(hash, slot, |other| slab.get(other).map_or(0, &hash_of));
        Ok(slot)
    }

    pub(super) fn remove(&mut self, hash: u64, slot: u32) -> Option<T> {
        self.index.remove(hash, slot);
        self.slab.remove(slot)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slab.iter()
    }
}
