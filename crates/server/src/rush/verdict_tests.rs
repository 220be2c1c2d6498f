//! The verdict must be able to fail, and only for a reason.

use super::super::plan::{Intent, Order};
use super::*;

fn plan(supply: &[u64], orders: &[(u32, u32)]) -> Plan {
    let order = |(sku, quantity): &(u32, u32)| Order {
        sku: *sku,
        quantity: *quantity,
        intent: Intent::Confirm,
        reserve_twice: false,
        settle_twice: false,
    };
    Plan {
        seed: 1,
        name: "x".to_owned(),
        supply: supply.to_vec(),
        orders: orders.iter().map(order).collect(),
    }
}

fn account(end: End) -> Account {
    Account {
        end,
        granted: end != End::Refused,
        replayed: 0,
        errors: 0,
        expires_at_ms: None,
        contradictions: Vec::new(),
    }
}

fn stock(on_hand: u64, reserved: u64, sold: u64) -> StockCounters {
    StockCounters {
        on_hand,
        reserved,
        sold,
        available: on_hand - reserved,
    }
}

#[test]
fn the_two_formulas() {
    let units = |supply, confirmed, returned, available| {
        let units = SkuUnits {
            supply,
            confirmed,
            returned,
            available,
        };
        (units.oversold(), units.undersold())
    };
    assert_eq!(units(10, 10, 0, 0), (0, 0), "sold out");
    assert_eq!(units(10, 7, 0, 3), (0, 0), "some are left");
    assert_eq!(units(10, 11, 0, 0), (1, 0), "one too many");
    assert_eq!(units(10, 9, 0, 0), (0, 1), "one leaked");
    assert_eq!(units(10, 11, 1, 0), (0, 0), "one came back and was sold again");
    assert_eq!(units(10, 10, 1, 0), (0, 1), "one came back and leaked");
    assert_eq!(
        units(10, 10, 0, 1),
        (0, 0),
        "a unit too many on the shelf is for the audit to find"
    );
    assert_eq!(units(0, 0, 0, 0), (0, 0), "nothing for sale");
}

#[test]
fn a_good_run() {
    let ends = [
        End::Confirmed,
        End::Cancelled,
        End::Expired,
        End::Refused,
        End::Confirmed,
    ];
    let plan = plan(&[5], &[(0, 2), (0, 1), (0, 1), (0, 1), (0, 3)]);
    let verdict = Verdict::of(&plan, &ends.map(account), &[stock(0, 0, 5)], &Audit::default());
    let expected = Verdict {
        granted: 4,
        refused: 1,
        confirmed: 2,
        cancelled: 1,
        expired: 1,
        units_sold: 5,
        ..Verdict::default()
    };
    assert_eq!(verdict, expected);
    assert!(verdict.is_good());
}

#[test]
fn oversold_on_one_sku_is_not_made_up_for_by_another() {
    let plan = plan(&[1, 5], &[(0, 1), (0, 1), (1, 1)]);
    let verdict = Verdict::of(
        &plan,
        &[End::Confirmed; 3].map(account),
        &[stock(0, 0, 2), stock(4, 0, 1)],
        &Audit::default(),
    );
    assert_eq!((verdict.oversold, verdict.undersold), (1, 0));
    assert!(!verdict.is_good());
}

#[test]
fn a_unit_that_nobody_can_buy_is_undersold() {
    let plan = plan(&[3], &[(0, 1), (0, 1)]);
    let verdict = Verdict::of(
        &plan,
        &[End::Confirmed, End::Expired].map(account),
        &[stock(2, 1, 1)],
        &Audit::default(),
    );
    assert_eq!((verdict.oversold, verdict.undersold), (0, 1));
    assert!(!verdict.is_good());
}

#[test]
fn each_kind_of_drift_alone_fails_the_run() {
    let plan = plan(&[2], &[(0, 1)]);
    let sold = || vec![account(End::Confirmed)];
    let good = stock(1, 0, 1);
    let judge = |accounts: &[Account], stock: &[StockCounters], audit: &Audit| {
        let verdict = Verdict::of(&plan, accounts, stock, audit);
        assert_eq!((verdict.oversold, verdict.errors), (0, 0));
        (verdict.drift.len(), verdict.is_good())
    };
    assert_eq!(judge(&sold(), &[good], &Audit::default()), (0, true));
    let finding = Audit {
        findings: vec![serde_json::json!({"sku": "x"})],
        truncated: false,
    };
    assert_eq!(judge(&sold(), &[good], &finding), (1, false), "audit");
    assert_eq!(
        judge(&sold(), &[], &Audit::default()),
        (1, false),
        "no final state"
    );
    assert_eq!(
        judge(&sold(), &[stock(1, 0, 2)], &Audit::default()),
        (2, false),
        "sold more than was bought"
    );
    let mut contradicted = sold();
    contradicted[0].contradictions.push("done twice".to_owned());
    assert_eq!(
        judge(&contradicted, &[good], &Audit::default()),
        (1, false),
        "answers"
    );
}

#[test]
fn an_unanswered_request_fails_the_run() {
    let plan = plan(&[2], &[(0, 1)]);
    let mut unanswered = account(End::Confirmed);
    unanswered.errors = 1;
    let verdict = Verdict::of(&plan, &[unanswered], &[stock(1, 0, 1)], &Audit::default());
    assert_eq!((verdict.errors, verdict.is_good()), (1, false));
}
