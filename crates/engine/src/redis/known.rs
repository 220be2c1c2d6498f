//! Which entries are known to be recorded, by their tags.

use std::collections::VecDeque;

use stockade_core::Position;

/// As many recorded entries as are remembered; older ones are asked from the ledger.
const REMEMBERED: usize = 65_536;

/// The recorded entries of the present epoch, newest last, without gaps.
#[derive(Debug, Default)]
pub(super) struct Known {
    epoch: u64,
    first: u64,
    tags: VecDeque<u64>,
}

impl Known {
    /// Begins an epoch, or goes on after a gap: this entry is recorded, or is where the epoch starts.
    pub(super) fn restart(&mut self, at: Position) {
        self.epoch = at.epoch;
        self.first = at.seq;
        self.tags.clear();
        self.tags.push_back(at.tag);
    }

    /// Where the ledger stands at least.
    pub(super) fn position(&self) -> Position {
        let ahead = u64::try_from(self.tags.len().saturating_sub(1)).unwrap_or(0);
        Position {
            epoch: self.epoch,
            seq: self.first.saturating_add(ahead),
            tag: self.tags.back().copied().unwrap_or(0),
        }
    }

    /// One more entry is recorded.
    pub(super) fn add(&mut self, at: Position) {
        let last = self.position();
        if at.epoch != self.epoch || at.seq > last.seq.saturating_add(1) || self.tags.is_empty() {
            self.restart(at);
        } else if at.seq == last.seq.saturating_add(1) {
            self.tags.push_back(at.tag);
            if self.tags.len() > REMEMBERED {
                self.tags.pop_front();
                self.first = self.first.saturating_add(1);
            }
        }
    }

    /// Whether an entry is known to be recorded.
    pub(super) fn has(&self, at: Position) -> bool {
        let place = at
            .seq
            .checked_sub(self.first)
            .and_then(|place| usize::try_from(place).ok());
        at.epoch == self.epoch && place.and_then(|place| self.tags.get(place)) == Some(&at.tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(epoch: u64, seq: u64, tag: u64) -> Position {
        Position { epoch, seq, tag }
    }

    #[test]
    fn an_entry_is_known_by_its_tag_and_not_by_the_cursor() {
        let mut known = Known::default();
        known.restart(at(3, 10, 7));
        known.add(at(3, 11, 8));
        assert!(known.has(at(3, 10, 7)));
        assert!(known.has(at(3, 11, 8)));
        assert!(!known.has(at(3, 10, 9)), "another tag");
        assert!(!known.has(at(2, 11, 8)), "another epoch");
        assert!(!known.has(at(3, 9, 1)), "before what is remembered");
        assert_eq!(known.position(), at(3, 11, 8));
    }

    #[test]
    fn a_gap_begins_anew() {
        let mut known = Known::default();
        known.restart(at(1, 1, 1));
        known.add(at(1, 5, 5));
        assert!(!known.has(at(1, 1, 1)));
        assert!(known.has(at(1, 5, 5)));
    }
}
