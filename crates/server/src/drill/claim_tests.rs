//! What a claim accepts, and what it does not.

use super::*;

fn answer(code: Code, (status, confirmed, returned): (Status, u64, u64)) -> Answer {
    let standing = Standing {
        status,
        expires_at_ms: 5_000,
        quantity: 2,
        confirmed,
        returned,
    };
    Answer {
        http: 200,
        code,
        standing: Some(standing),
    }
}

const NOT_FOUND: Answer = Answer {
    http: 404,
    code: Code::NotFound,
    standing: None,
};

const RESERVE: Command = Command::Reserve { ttl_seconds: 5 };

fn pending() -> Claim {
    let mut claim = Claim::new(0, 2);
    claim
        .first_answer(RESERVE, &answer(Code::Ok, (Status::Pending, 0, 0)))
        .unwrap();
    claim
}

fn sold() -> Claim {
    let mut claim = pending();
    claim
        .first_answer(Command::Confirm, &answer(Code::Ok, (Status::Confirmed, 2, 0)))
        .unwrap();
    claim
}

#[test]
fn a_life_from_reserve_to_return() {
    let mut claim = sold();
    assert_eq!(claim.state, State::Confirmed { returned: 0 });
    let back = Command::Return { units: 1, number: 0 };
    claim
        .first_answer(back, &answer(Code::Ok, (Status::Confirmed, 2, 1)))
        .unwrap();
    assert_eq!(claim.state, State::Confirmed { returned: 1 });
    claim
        .repeated_answer(back, &answer(Code::Replayed, (Status::Confirmed, 2, 1)))
        .unwrap();
}

#[test]
fn second_effects_are_seen() {
    let ok = answer(Code::Ok, (Status::Confirmed, 2, 0));
    assert!(
        sold().repeated_answer(Command::Confirm, &ok).is_err(),
        "done again"
    );
    assert!(
        sold()
            .first_answer(
                Command::Confirm,
                &Answer {
                    code: Code::Replayed,
                    ..ok
                }
            )
            .is_err(),
        "done before"
    );
    let twice_back = answer(Code::Replayed, (Status::Confirmed, 2, 2));
    assert!(sold().repeated_answer(Command::Confirm, &twice_back).is_err());
}

#[test]
fn a_command_in_doubt_is_whole_or_absent() {
    let mut claim = pending();
    claim.doubt = Some(Command::Confirm);
    let sale = answer(Code::Ok, (Status::Confirmed, 2, 0));
    assert_eq!(
        claim.asked(&answer(Code::Ok, (Status::Pending, 0, 0)), 1_000),
        Ok(State::Pending)
    );
    assert_eq!(claim.asked(&sale, 1_000), Ok(State::Confirmed { returned: 0 }));
    assert!(
        claim
            .asked(&answer(Code::Ok, (Status::Confirmed, 1, 0)), 1_000)
            .is_err(),
        "half of it"
    );
    assert!(
        claim.asked(&NOT_FOUND, 1_000).is_err(),
        "an answered reservation is gone"
    );

    let mut happened = claim;
    assert!(
        happened
            .answer_in_doubt(Command::Confirm, State::Confirmed { returned: 0 }, &sale)
            .is_err(),
        "twice"
    );
    let mut happened = claim;
    let replay = Answer {
        code: Code::Replayed,
        ..sale
    };
    happened
        .answer_in_doubt(Command::Confirm, State::Confirmed { returned: 0 }, &replay)
        .unwrap();
    assert_eq!(
        (happened.state, happened.doubt),
        (State::Confirmed { returned: 0 }, None)
    );
    let mut not = claim;
    assert!(
        not.answer_in_doubt(Command::Confirm, State::Pending, &replay)
            .is_err(),
        "replayed out of nothing"
    );
    let mut not = claim;
    not.answer_in_doubt(Command::Confirm, State::Pending, &sale)
        .unwrap();
    assert_eq!(not.state, State::Confirmed { returned: 0 });
}

#[test]
fn what_was_not_in_doubt_must_be_exact() {
    assert!(
        sold()
            .asked(&answer(Code::Ok, (Status::Pending, 0, 0)), 1_000)
            .is_err()
    );
    assert!(sold().asked(&NOT_FOUND, 1_000).is_err());
    assert!(
        Claim::new(0, 2)
            .asked(&answer(Code::Ok, (Status::Pending, 0, 0)), 1_000)
            .is_err()
    );
    assert_eq!(Claim::new(0, 2).asked(&NOT_FOUND, 1_000), Ok(State::Absent));
}

#[test]
fn ends_are_kept_by_the_clock() {
    let shown_pending = answer(Code::Ok, (Status::Pending, 0, 0));
    let shown_expired = answer(Code::Ok, (Status::Expired, 0, 0));
    assert!(
        pending().asked(&shown_expired, 1_000).is_err(),
        "ran out too early"
    );
    assert_eq!(pending().asked(&shown_expired, 5_000), Ok(State::Expired));
    assert_eq!(pending().asked(&shown_pending, 5_000), Ok(State::Pending));
    assert!(pending().asked(&shown_pending, 9_000).is_err(), "held too long");
}

#[test]
fn sealing() {
    let mut claim = Claim::new(0, 2);
    let empty = Standing {
        status: Status::Cancelled,
        expires_at_ms: 0,
        quantity: 0,
        confirmed: 0,
        returned: 0,
    };
    assert!(
        claim
            .first_answer(
                Command::Cancel,
                &Answer {
                    http: 200,
                    code: Code::Ok,
                    standing: Some(empty)
                }
            )
            .is_err()
    );
    claim
        .first_answer(
            Command::Cancel,
            &Answer {
                http: 200,
                code: Code::Sealed,
                standing: Some(empty),
            },
        )
        .unwrap();
    assert_eq!(claim.state, State::Sealed);
}
