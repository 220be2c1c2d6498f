//! What of an older epoch's entries, which were not recorded, is done again in the new one.
//!
//! A grant, since somebody was told of it. An extend or a cancel only where nothing newer about its reservation can be
//! recorded: on the very continuation of what is recorded, or an extend of a grant that is done again itself. Elsewhere it
//! may be older than what is recorded, and would undo that. Other commands are sent again by whoever waits for them.
//!
//! Extends come first: they move no units, and a grant that is short ends whatever is over by then, which what was extended
//! is not.

use std::collections::HashMap;

use stockade_core::{Change, Entry, Id, Status, Verb};
use stockade_redis::Rerun;

type Name = (Id, Id);

/// What to do again of these entries, none of which is recorded, oldest first. `recorded` is the last recorded entry's
/// number and tag, `hot` the epoch that took commands last, if that is known, and `known` is what the ledger has of their
/// reservations.
pub(super) fn again(
    entries: &[&Entry],
    recorded: (u64, u64),
    hot: Option<u64>,
    known: &HashMap<Name, Status>,
) -> Vec<Rerun> {
    let follows =
        |entry: &Entry, tip: (u64, u64)| (entry.seq, entry.prev) == (tip.0.saturating_add(1), tip.1);
    // An epoch that was given up begins where the one before it did, and says nothing older than that one.
    let epoch = hot.or_else(|| {
        let mut first = entries.iter().filter(|entry| follows(entry, recorded));
        first.next_back().map(|entry| entry.epoch)
    });
    let (mut extends, mut again) = (Vec::new(), Vec::new());
    // Where a grant stands that is done again.
    let mut granted: HashMap<Name, usize> = HashMap::new();
    let mut tip = recorded;
    for entry in entries {
        let goes_on = Some(entry.epoch) == epoch && follows(entry, tip);
        if goes_on {
            tip = (entry.seq, entry.tag);
        }
        for effect in &entry.effects {
            let Change::Reservation { verb, before, after } = &effect.change else {
                continue;
            };
            let name = (after.tenant.clone(), after.id.clone());
            let is_live = known.get(&name) == Some(&Status::Pending);
            match verb {
                Verb::Reserve if !granted.contains_key(&name) => {
                    let rerun = match known.get(&name) {
                        None => Rerun::Reserve(after.clone()),
                        // Its caller's own retry was granted. Any other grant of it is older than the loss, which its
                        // caller was told of.
                        Some(Status::Lost) if *before == Some(Status::Lost) => Rerun::Regain(after.clone()),
                        // What the ledger knows wins: it may have ended since.
                        Some(
                            Status::Pending
                            | Status::Confirmed
                            | Status::Cancelled
                            | Status::Expired
                            | Status::Lost,
                        ) => continue,
                    };
                    granted.insert(name, again.len());
                    again.push(rerun);
                }
                Verb::Extend => match granted.get(&name).and_then(|place| again.get_mut(*place)) {
                    // Granted with its last end at once: with an earlier one it might end in between.
                    Some(Rerun::Reserve(grant) | Rerun::Regain(grant)) => grant.ends_at = after.ends_at,
                    _ if goes_on && is_live => extends.push(Rerun::Extend(after.clone())),
                    _ => {}
                },
                // Its units may have been granted to the next one, who was told so.
                Verb::Cancel
                    if goes_on
                        && *before == Some(Status::Pending)
                        && (is_live || granted.contains_key(&name)) =>
                {
                    again.push(Rerun::Cancel(after.clone()));
                }
                Verb::Reserve
                | Verb::Deduct
                | Verb::Confirm
                | Verb::Revive
                | Verb::Cancel
                | Verb::Seal
                | Verb::Expire
                | Verb::Lose
                | Verb::Note => {}
            }
        }
    }
    extends.append(&mut again);
    extends
}

#[cfg(test)]
mod tests {
    use stockade_core::{Digest, Effect, Mode, Reason, Reservation};

    use super::*;

    fn name(id: &str) -> Name {
        (Id::default_name(), Id::new(id).unwrap())
    }

    /// (epoch, seq, tag, prev) and one change of each: verb, id, end.
    fn entry(at: (u64, u64, u64, u64), changes: &[(Verb, &str, i64)]) -> Entry {
        let before = |verb| (verb != Verb::Reserve).then_some(Status::Pending);
        let changes: Vec<_> = changes
            .iter()
            .map(|(verb, id, ends_at)| (*verb, before(*verb), *id, *ends_at))
            .collect();
        entry_of(at, &changes)
    }

    fn entry_of(at: (u64, u64, u64, u64), changes: &[(Verb, Option<Status>, &str, i64)]) -> Entry {
        let effects = changes.iter().map(|(verb, before, id, ends_at)| Effect {
            at: 1,
            actor: Id::default_name(),
            reason: Reason::default(),
            change: Change::Reservation {
                verb: *verb,
                before: *before,
                after: Reservation {
                    tenant: Id::default_name(),
                    id: Id::new(id).unwrap(),
                    digest: Digest(0),
                    owner: None,
                    mode: Mode::Reserve,
                    status: Status::Pending,
                    sealed: false,
                    noted: false,
                    granted_at: 1,
                    ends_at: *ends_at,
                    lines: smallvec::SmallVec::new(),
                },
            },
            moves: smallvec::SmallVec::new(),
        });
        Entry {
            shard: 0,
            epoch: at.0,
            seq: at.1,
            tag: at.2,
            prev: at.3,
            at: 1,
            effects: effects.collect(),
        }
    }

    fn told(entries: &[Entry], hot: Option<u64>, known: &[(&str, Status)]) -> Vec<String> {
        let entries: Vec<&Entry> = entries.iter().collect();
        let known = known.iter().map(|(id, status)| (name(id), *status)).collect();
        let again = again(&entries, (10, 100), hot, &known);
        let told = again.iter().map(|rerun| {
            let verb = match rerun {
                Rerun::Reserve(_) => "reserve",
                Rerun::Regain(_) => "regain",
                Rerun::Extend(_) => "extend",
                Rerun::Cancel(_) => "cancel",
            };
            format!(
                "{verb} {} {}",
                rerun.reservation().id,
                rerun.reservation().ends_at
            )
        });
        told.collect()
    }

    #[test]
    fn an_extend_of_what_is_recorded_only_on_the_continuation_of_what_is_recorded() {
        let known = [("r", Status::Pending)];
        let extend = |at| entry(at, &[(Verb::Extend, "r", 50)]);
        assert_eq!(
            told(&[extend((3, 11, 101, 100))], Some(3), &known),
            ["extend r 50"]
        );
        // A fork of the same epoch, and an epoch before the last one that took commands.
        assert!(told(&[extend((3, 11, 101, 99))], Some(3), &known).is_empty());
        assert!(told(&[extend((2, 11, 101, 100))], Some(3), &known).is_empty());
        // The epoch in between was given up: the newest one that goes on there.
        assert_eq!(told(&[extend((3, 11, 101, 100))], None, &known), ["extend r 50"]);
        let two = [extend((3, 11, 101, 100)), extend((4, 11, 102, 100))];
        assert_eq!(told(&two, None, &known), ["extend r 50"]);
        // A gap ends it.
        let gap = [entry((3, 11, 101, 100), &[]), extend((3, 13, 103, 102))];
        assert!(told(&gap, Some(3), &known).is_empty());
    }

    #[test]
    fn a_grant_takes_its_last_end_and_a_cancel_frees_for_the_next() {
        let chain = [
            entry(
                (3, 11, 101, 100),
                &[(Verb::Reserve, "a", 10), (Verb::Reserve, "old", 10)],
            ),
            entry(
                (3, 12, 102, 101),
                &[(Verb::Extend, "a", 70), (Verb::Cancel, "b", 10)],
            ),
            entry((3, 13, 103, 102), &[(Verb::Reserve, "c", 10)]),
        ];
        let known = [("b", Status::Pending), ("old", Status::Expired)];
        assert_eq!(
            told(&chain, Some(3), &known),
            ["reserve a 70", "cancel b 10", "reserve c 10"]
        );
        // On a fork the grants are all that is done again.
        assert_eq!(told(&chain[1..], Some(3), &known), ["reserve c 10"]);
    }

    #[test]
    fn what_is_recorded_as_lost_stays_lost_but_for_its_callers_retry() {
        let retry = (Verb::Reserve, Some(Status::Lost), "a", 10);
        let chain = [
            entry(
                (2, 11, 99, 98),
                &[(Verb::Reserve, "a", 5), (Verb::Extend, "a", 9)],
            ),
            entry_of((3, 11, 101, 100), &[retry]),
        ];
        assert_eq!(told(&chain, Some(3), &[("a", Status::Lost)]), ["regain a 10"]);
        assert!(told(&chain[..1], Some(3), &[("a", Status::Lost)]).is_empty());
        // Where the loss is not recorded either, it is as if it had not been.
        assert_eq!(told(&chain[1..], Some(3), &[]), ["reserve a 10"]);
    }

    #[test]
    fn what_was_extended_is_so_before_a_grant_ends_what_is_over() {
        let chain = [
            entry((3, 11, 101, 100), &[(Verb::Reserve, "b", 70)]),
            entry(
                (3, 12, 102, 101),
                &[(Verb::Extend, "a", 70), (Verb::Extend, "b", 80)],
            ),
            entry((3, 13, 103, 102), &[(Verb::Extend, "a", 90)]),
        ];
        assert_eq!(
            told(&chain, Some(3), &[("a", Status::Pending)]),
            ["extend a 70", "extend a 90", "reserve b 80"]
        );
    }
}
