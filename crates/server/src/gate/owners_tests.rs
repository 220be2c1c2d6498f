//! Owners and their limits, with a clock of the test's own.

use stockade_core::{AskLine, TTL_MS_DEFAULT};

use super::super::CoolDown;
use super::super::bucket::Rate;
use super::*;

fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

fn ask(owner: &str, name: &str, sku: &str) -> Reserve {
    Reserve {
        id: id(name),
        owner: id(owner),
        mode: Mode::Reserve,
        ttl_ms: 1_000,
        lines: [AskLine {
            sku: id(sku),
            quantity: 1,
            location: None,
            if_revision: None,
        }]
        .into_iter()
        .collect(),
        supersedes: None,
    }
}

fn at(ms: Millis) -> Moment {
    Moment {
        ns: ms * 1_000_000,
        ms,
    }
}

fn stands(asked: &Reserve, status: Status, ends_at: Millis) -> Reservation {
    Reservation {
        tenant: Id::default_name(),
        id: asked.id.clone(),
        owner: Some(asked.owner.clone()),
        mode: Mode::Reserve,
        digest: stockade_core::Digest(0),
        status,
        sealed: false,
        noted: false,
        granted_at: 0,
        ends_at,
        lines: [].into_iter().collect(),
    }
}

#[track_caller]
fn stopped(result: Result<(), Stop>, line: Line, wait: u64) {
    match result {
        Err(Stop::Limit {
            line: found, wait_ms, ..
        }) => assert_eq!((found, wait_ms), (line, wait)),
        other => panic!("{other:?}"),
    }
}

fn check(owners: &Owners, rules: &Rules, asked: &Reserve, ms: Millis) -> Result<(), Stop> {
    owners.check(rules, &Id::default_name(), asked, at(ms))
}

#[test]
fn an_interval_is_of_one_owner_and_one_sku() {
    let owners = Owners::new();
    let rules = Rules {
        interval_ms: Some(1_000),
        ..Rules::default()
    };
    check(&owners, &rules, &ask("u", "1", "A"), 0).unwrap();
    stopped(
        check(&owners, &rules, &ask("u", "2", "A"), 400),
        Line::OwnerInterval,
        600,
    );
    // Being stopped does not start it again.
    stopped(
        check(&owners, &rules, &ask("u", "2", "A"), 999),
        Line::OwnerInterval,
        1,
    );
    check(&owners, &rules, &ask("u", "2", "B"), 400).unwrap();
    check(&owners, &rules, &ask("v", "3", "A"), 400).unwrap();
    check(&owners, &rules, &ask("u", "2", "A"), 1_000).unwrap();
    // Names that could be cut in another place are other names.
    owners
        .check(&rules, &id("a"), &ask("bc", "1", "A"), at(0))
        .unwrap();
    owners
        .check(&rules, &id("ab"), &ask("c", "1", "A"), at(0))
        .unwrap();
}

#[test]
fn live_reservations_are_capped_also_while_they_are_under_way() {
    let owners = Owners::new();
    let rules = Rules {
        live_max: Some(2),
        ..Rules::default()
    };
    let (one, two, three) = (ask("u", "1", "A"), ask("u", "2", "A"), ask("u", "3", "A"));
    check(&owners, &rules, &one, 0).unwrap();
    check(&owners, &rules, &two, 0).unwrap();
    stopped(check(&owners, &rules, &three, 0), Line::OwnerLive, 1_000);
    // The same id again is none more.
    check(&owners, &rules, &one, 0).unwrap();
    // One that takes the place of another is none more either.
    let mut instead = three.clone();
    instead.supersedes = Some(id("1"));
    check(&owners, &rules, &instead, 0).unwrap();
    owners.withdraw(&Id::default_name(), &instead);
    // Refused: it is none.
    owners.withdraw(&Id::default_name(), &two);
    check(&owners, &rules, &three, 0).unwrap();
    owners.note(&rules, &stands(&one, Status::Pending, 1_000), true, at(0));
    owners.withdraw(&Id::default_name(), &one);
    stopped(check(&owners, &rules, &two, 0), Line::OwnerLive, 1_000);
    // Confirmed and ended ones are none.
    owners.note(&rules, &stands(&one, Status::Confirmed, 1_000), true, at(0));
    check(&owners, &rules, &two, 0).unwrap();
    check(&owners, &rules, &ask("u", "4", "A"), 1_000).unwrap();
}

#[test]
fn owners_whose_reservations_end_unpaid_cool_down() {
    let owners = Owners::new();
    let rules = Rules {
        cool_down: Some(CoolDown {
            after: 2,
            for_ms: 10_000,
        }),
        ..Rules::default()
    };
    let reserve = |name: &str, ms: Millis| {
        let asked = ask("u", name, "A");
        let result = check(&owners, &rules, &asked, ms);
        if result.is_ok() {
            owners.note(&rules, &stands(&asked, Status::Pending, ms + 1_000), true, at(ms));
        }
        (asked, result)
    };
    let (cancelled, result) = reserve("1", 0);
    result.unwrap();
    owners.note(
        &rules,
        &stands(&cancelled, Status::Cancelled, 1_000),
        true,
        at(500),
    );
    reserve("2", 0).1.unwrap();
    let (late, result) = reserve("3", 2_000);
    result.unwrap();
    // The second one to end; the first was two seconds before.
    stopped(reserve("4", 3_000).1, Line::CoolDown, 10_000);
    stopped(reserve("4", 12_999).1, Line::CoolDown, 1);
    reserve("4", 13_000).1.unwrap();
    // Paid late after all: one less of those to come.
    owners.note(&rules, &stands(&late, Status::Confirmed, 3_000), true, at(14_000));
    reserve("5", 14_500).1.unwrap();
}

#[test]
fn a_rate_is_of_one_owner() {
    let owners = Owners::new();
    let rules = Rules {
        owner_rate: Some(Rate::of("owner-rate", "1/s", Some(2)).unwrap()),
        ..Rules::default()
    };
    for name in ["1", "2"] {
        check(&owners, &rules, &ask("u", name, "A"), 0).unwrap();
    }
    match check(&owners, &rules, &ask("u", "3", "A"), 0) {
        Err(Stop::Limit {
            line: Line::OwnerRate,
            level: Some(level),
            ..
        }) => {
            assert_eq!((level.burst, level.left, level.wait_s), (2, 0, 1));
        }
        other => panic!("{other:?}"),
    }
    check(&owners, &rules, &ask("v", "3", "A"), 0).unwrap();
    check(&owners, &rules, &ask("u", "3", "A"), 1_000).unwrap();
}

#[test]
fn memory_is_bounded() {
    let owners = Owners::new();
    let rules = Rules {
        interval_ms: Some(TTL_MS_DEFAULT),
        ..Rules::default()
    };
    for number in 0..400_000 {
        let asked = ask(&format!("u-{number}"), "1", "A");
        check(&owners, &rules, &asked, number).unwrap();
    }
    assert!(owners.len() <= SHARDS * OWNERS_PER_SHARD);
}
