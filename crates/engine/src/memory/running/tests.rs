//! What cannot be brought about from outside: a shard that contradicts itself.

use stockade_core::{Action, Cancel, Command, Id, LookedUp, Reason, Rules, Shard, Space};
use tokio::sync::oneshot;

use super::*;

fn cancel(id: &str) -> Command {
    Command {
        tenant: Id::default_name(),
        actor: Id::new("test").unwrap(),
        action: Action::Cancel(Cancel {
            id: Id::new(id).unwrap(),
            reason: Reason::default(),
        }),
    }
}

/// Nothing is decided on a shard that contradicted itself: neither what comes back from a look-up nor the rest of a
/// batch. Everybody is told that it did not happen.
#[test]
fn nothing_is_decided_after_a_contradiction() {
    let mut out = Out {
        tally: Tally::new(),
        room: Arc::new(Mailbox::new(16)),
        look_ups: 0,
    };
    let mut shard = Shard::new(0, Rules::default(), 1);
    // From here on every id is looked up.
    shard.open(Position::default(), 0);
    let mut running = Running::new(shard, 0, None);
    let (answer, mut one) = oneshot::channel();
    let command = cancel("one");
    running.begin(super::one(command, answer), 1, &mut out);
    let (answer, mut many) = oneshot::channel();
    let commands = vec![cancel("two"), cancel("three")];
    running.begin(
        Submission::Many(Box::new(Batch::new(commands, Durability::Ledger, answer))),
        1,
        &mut out,
    );
    let keys: Vec<_> = running
        .jobs
        .drain(..)
        .map(|job| (job.key, job.space, job.id))
        .collect();
    assert_eq!(keys.len(), 2);

    running.corrupt = Some("a test says so");
    for (key, space, id) in keys {
        assert_eq!(space, Space::Reservation);
        let known = Ok(LookedUp {
            epoch: 0,
            cursor: 0,
            space,
            id,
            record: None,
        });
        running.looked_up(Found { key, known }, 1, &mut out);
    }
    assert_eq!(running.shard.unsealed(), 0);
    let mut answers = many.try_recv().unwrap();
    answers.push(one.try_recv().unwrap());
    assert_eq!(answers.len(), 3);
    for answer in answers {
        assert_eq!(answer.unwrap_err().code(), "unavailable");
    }
}
