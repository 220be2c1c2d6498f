//! Random commands with a moving clock, checked after each step: against the fold of the entries, against an oracle
//! written in another way, and against twins that are swept at other moments or rebuilt and forgetful.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod common;

use common::ledger::Ledger;
use common::oracle::{Oracle, plain};
use common::script::{Step, script};
use common::{T0, command};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use stockade_core::{Action, Decision, LateConfirm, Millis, Reply, Rules, Shard};

fn rules(revive: bool) -> Rules {
    let late_confirm = if revive {
        LateConfirm::Revive
    } else {
        LateConfirm::Reject
    };
    Rules { late_confirm }
}

/// A shard that asks its ledger as an engine does.
struct Asking {
    shard: Shard,
    ledger: Ledger,
}

impl Asking {
    fn new(rules: Rules) -> Self {
        Self {
            shard: Shard::new(0, rules, 3),
            ledger: Ledger::default(),
        }
    }

    fn apply(&mut self, now: Millis, action: &Action) -> Decision {
        let command = command(action.clone());
        let mut decision = self.shard.apply(now, &command);
        for _ in 0..4 {
            let Reply::LookUp { space, id } = &decision.reply else {
                break;
            };
            let known = self.ledger.find(*space, id);
            decision = self.shard.apply_known(now, &command, known);
        }
        assert!(
            !matches!(
                decision.reply,
                Reply::LookUp { .. } | Reply::Again | Reply::Corrupt { .. }
            ),
            "{decision:?}"
        );
        self.record();
        decision
    }

    fn record(&mut self) {
        let tag = self.ledger.at.tag.wrapping_mul(31).wrapping_add(7) | 1;
        if let Some(entry) = self.shard.seal(tag) {
            self.ledger.fold(&entry);
        }
    }
}

// A refusal or a replay has no effect but ends that have come and the one note.
fn changes_nothing(decision: &Decision, effects: &[stockade_core::Effect]) -> bool {
    use stockade_core::{Change, DoneCode, Verb};
    let quiet = match &decision.reply {
        Reply::Done(done) => done.code == DoneCode::Replayed,
        Reply::Refused(_) => true,
        Reply::LookUp { .. } | Reply::Again | Reply::Corrupt { .. } => false,
    };
    let silent = effects.iter().all(|effect| match &effect.change {
        Change::Reservation { verb, .. } => matches!(verb, Verb::Expire | Verb::Note),
        Change::Return { .. } | Change::Stock { .. } => false,
    });
    !quiet || silent
}

fn run_all(steps: &[Step], rules: Rules, rebuild_at: &[usize]) {
    let mut ledger = Ledger::default();
    let mut shard = Shard::new(0, rules, 1);
    let mut oracle = Oracle::new(rules);
    let mut swept = Asking::new(rules);
    let mut forgetful = Asking::new(rules);
    let mut now = T0;
    for (number, step) in steps.iter().enumerate() {
        now += step.clock;
        let decision = shard.apply(now, &command(step.action.clone()));
        let next = shard.position().seq + 1;
        let tag = u64::try_from(number).unwrap() + 11;
        let entry = shard.seal(tag);
        let effects = entry.as_ref().map_or(&[][..], |entry| &entry.effects);
        assert!(changes_nothing(&decision, effects), "{decision:?} {effects:?}");
        assert!(decision.needs <= next);
        if let Some(entry) = &entry {
            ledger.fold(entry);
        }
        ledger.check(&shard);
        let answer = plain(&decision);
        assert_eq!(
            answer,
            oracle.apply(now, &step.action),
            "step {number}: {:?}",
            step.action
        );

        if step.sweep {
            swept.shard.sweep(now, 1 + number % 3);
            swept.record();
        }
        let other = swept.apply(now, &step.action);
        assert_eq!(
            decision.reply, other.reply,
            "swept, step {number}: {:?}",
            step.action
        );
        swept.ledger.check(&swept.shard);

        if rebuild_at.contains(&number) {
            forgetful.shard = forgetful.ledger.rebuild(rules, 9);
            // The ledger's clock is its last entry's; this caller's went on.
            forgetful.shard.sweep(shard.clock(), 0);
            forgetful.record();
            if number % 2 == 0 {
                forgetful.ledger.tell_forgotten(&mut forgetful.shard);
            }
        }
        if step.sweep {
            let recorded = forgetful.ledger.at.seq;
            forgetful.shard.forget(recorded, now, number % 5, 3);
        }
        let other = forgetful.apply(now, &step.action);
        assert_eq!(
            decision.reply, other.reply,
            "forgetful, step {number}: {:?}",
            step.action
        );
        forgetful.ledger.check(&forgetful.shard);
        // The very same command again has no second effect.
        if number % 3 == 0 {
            let again = shard.apply(now, &command(step.action.clone()));
            let entry = shard.seal(tag + 1_000_000);
            let effects = entry.as_ref().map_or(&[][..], |entry| &entry.effects);
            assert!(
                effects.iter().all(|effect| effect.moves.is_empty()),
                "{again:?} {effects:?}"
            );
            if let Some(entry) = &entry {
                ledger.fold(entry);
            }
            let repeated = format!("again, step {number}: {:?}", step.action);
            assert_eq!(plain(&again), oracle.apply(now, &step.action), "{repeated}");
            assert_eq!(
                again.reply,
                swept.apply(now, &step.action).reply,
                "swept, {repeated}"
            );
            let other = forgetful.apply(now, &step.action);
            assert_eq!(again.reply, other.reply, "forgetful, {repeated}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_200,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/random.proptest-regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_step_keeps_the_rules(
        steps in script(60),
        revive in prop::bool::weighted(0.7),
        rebuild_at in prop::collection::vec(0..60_usize, 0..3),
    ) {
        run_all(&steps, rules(revive), &rebuild_at);
    }
}
