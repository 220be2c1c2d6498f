//! With all rules in place the search finds nothing: the short form. The long form is a command, in
//! `docs/protocol.md`.

use stockade_model::{EVERYTHING, Look, Rule, Scenario, exhaust, walks};

fn holds(scenario: Scenario, steps: u64) {
    let out = walks(&scenario, 1, steps);
    if let Some(found) = out.found {
        panic!("seed {}: {}", found.seed, found.story(&scenario).join("\n"));
    }
    assert!(out.steps >= steps);
}

#[test]
fn everything_at_once_with_every_unknown_id_looked_up() {
    holds(EVERYTHING, 3_000_000);
}

#[test]
fn everything_at_once_without_look_ups_while_nothing_was_forgotten() {
    holds(EVERYTHING.looking(Look::Forgot), 1_500_000);
}

#[test]
fn everything_at_once_with_a_filter_of_forgotten_ids() {
    holds(EVERYTHING.looking(Look::Filter), 1_500_000);
}

#[test]
fn everything_at_once_with_refusals_that_wait_for_their_tip() {
    let mut scenario = EVERYTHING.looking(Look::Forgot);
    scenario.refusals_wait = true;
    holds(scenario, 1_500_000);
}

#[test]
fn losses() {
    holds(Scenario::losses().looking(Look::Filter), 1_000_000);
}

#[test]
fn rebuilds() {
    holds(Scenario::rebuilds(), 1_000_000);
}

#[test]
fn failovers() {
    holds(Scenario::failovers(), 1_000_000);
}

#[test]
fn ends_and_extends_in_rebuilds() {
    holds(Scenario::ends(), 1_000_000);
    holds(Scenario::extends(), 1_000_000);
}

#[test]
fn misses() {
    holds(Scenario::misses(), 1_000_000);
}

#[test]
fn fallback() {
    holds(Scenario::fallback().looking(Look::Forgot), 1_000_000);
}

#[test]
fn everything_that_can_happen_in_three_steps() {
    let out = exhaust(&EVERYTHING, 3, u64::MAX);
    if let Some(found) = out.found {
        panic!("{}", found.story(&EVERYTHING).join("\n"));
    }
    assert!(out.complete);
}

/// Rules that stand behind others: the search finds nothing without them, and if that changes, the page that says
/// so must change.
#[test]
fn second_lines() {
    for rule in Rule::SECOND_LINES {
        let scenario = Scenario::of(rule).without(rule);
        assert!(
            walks(&scenario, 1, 500_000).found.is_none(),
            "{} is needed after all",
            rule.name()
        );
    }
}
