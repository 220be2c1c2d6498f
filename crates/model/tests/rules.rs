//! Each rule is there for a reason: without it the search finds a run that breaks the promise, and with it the same
//! search finds none.

use stockade_model::{Rule, Scenario, walks};

/// Walks in at most so many steps without the rule, then as many with it, within bounds.
fn needed(rule: Rule, steps: u64) {
    let scenario = Scenario::of(rule);
    let without = walks(&scenario.without(rule), 1, steps);
    let found = without.found.unwrap_or_else(|| {
        panic!(
            "nothing breaks without {} in {} steps",
            rule.name(),
            without.steps
        );
    });
    // What is found can be found again from its seed alone.
    let again = walks(&scenario.without(rule), found.seed, 1)
        .found
        .expect("the seed replays it");
    assert_eq!(again.actions, found.actions);
    let with = walks(&scenario, 1, without.steps.clamp(300_000, 1_500_000));
    if let Some(found) = with.found {
        panic!("with all rules: {}", found.story(&scenario).join("\n"));
    }
}

macro_rules! rules {
    ($($name:ident: $rule:ident within $steps:literal;)*) => {
        $(#[test]
        fn $name() {
            needed(Rule::$rule, $steps);
        })*

        #[test]
        fn every_rule_has_its_test() {
            let tested = [$(Rule::$rule),*];
            for rule in Rule::ALL {
                assert!(tested.contains(&rule), "{} has no test", rule.name());
            }
        }
    };
}

rules! {
    the_tag: Tag within 2_000_000;
    recorded_by_tag_and_not_by_cursor: RecordedByTag within 2_000_000;
    the_inclusive_read: InclusiveRead within 2_000_000;
    the_tag_in_trimming: TrimTag within 2_000_000;
    the_look_up_of_unknown_ids: LookUp within 2_000_000;
    the_check_behind_a_refusal: RefusalCheck within 2_000_000;
    no_unrecorded_sale_in_a_reply: SaleRecorded within 2_000_000;
    fence_before_survivors: FenceFirst within 5_000_000;
    a_new_epoch_for_every_restarted_rebuild: NewEpoch within 5_000_000;
    strict_chunks: StrictChunks within 5_000_000;
    the_load_marker: LoadMarker within 2_000_000;
    the_epoch_check_of_a_sql_decision: SqlEpoch within 2_000_000;
    a_load_waits_for_the_markers_tip: LoadWait within 2_000_000;
    a_load_names_a_place_on_the_chain: LoadOnChain within 10_000_000;
    survivors_are_looked_up: RerunLookUp within 5_000_000;
    a_doubtful_refusal_is_sent_again: RefuseAgain within 2_000_000;
    the_run_of_survivors_counts_as_a_chunk: RerunCounted within 5_000_000;
    cancels_that_go_on_the_chain_are_run_again: RerunFrees within 20_000_000;
    a_missing_sku_abandons_the_rebuild: RerunSku within 10_000_000;
    an_extend_is_not_run_again_over_a_newer_one: RerunExtend within 5_000_000;
    ends_that_passed_free_units_between_survivors: RerunEnds within 5_000_000;
    the_check_is_made_where_the_decision_is: CheckInScript within 20_000_000;
    the_row_is_read_after_the_command_arrived: FreshRow within 5_000_000;
    an_opening_leaves_a_row: OpeningRow within 2_000_000;
    holding_every_id_is_asked_of_the_ledger: Whole within 2_000_000;
    the_cursor_of_a_look_up: KnownCursor within 2_000_000;
    closed_means_closed: Closed within 5_000_000;
}
