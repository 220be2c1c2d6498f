//! Histories that a correct service gives, and histories that none may give.

use super::*;

const END: i64 = 1_000;

fn order(intent: Intent) -> Order {
    Order {
        sku: 0,
        quantity: 2,
        intent,
        reserve_twice: false,
        settle_twice: false,
    }
}

fn shown(code: Code, status: Status, confirmed: u64) -> Answer {
    let standing = Standing {
        status,
        expires_at_ms: END,
        quantity: 2,
        confirmed,
        returned: 0,
    };
    Answer {
        http: 200,
        code,
        standing: Some(standing),
    }
}

fn refusal(code: Code) -> Answer {
    Answer {
        http: 409,
        code,
        standing: None,
    }
}

fn grant(code: Code) -> Answer {
    shown(code, Status::Pending, 0)
}

fn sale(code: Code) -> Answer {
    shown(code, Status::Confirmed, 2)
}

/// (verb, answer, resent)
type Row = (Verb, Option<Answer>, bool);

fn account(intent: Intent, rows: &[Row]) -> Account {
    let event = |(verb, answer, resent): &Row| Event {
        buyer: 0,
        verb: *verb,
        resent: *resent,
        answer: *answer,
    };
    Account::of(&order(intent), &rows.iter().map(event).collect::<Vec<_>>())
}

fn said(verb: Verb, answer: Answer) -> Row {
    (verb, Some(answer), false)
}

#[test]
fn histories_that_are_right() {
    use Code::{Expired, InsufficientStock, Ok, Replayed};
    use Verb::{Cancel, Confirm, Reserve};
    let cancelled = |code| shown(code, Status::Cancelled, 0);
    let cases: &[(&str, Intent, &[Row], End, u64)] = &[
        (
            "sold",
            Intent::Confirm,
            &[said(Reserve, grant(Ok)), said(Confirm, sale(Ok))],
            End::Confirmed,
            0,
        ),
        (
            "cancelled",
            Intent::Cancel,
            &[said(Reserve, grant(Ok)), said(Cancel, cancelled(Ok))],
            End::Cancelled,
            0,
        ),
        (
            "walked away",
            Intent::WalkAway,
            &[said(Reserve, grant(Ok))],
            End::Expired,
            0,
        ),
        (
            "refused",
            Intent::Confirm,
            &[said(Reserve, refusal(InsufficientStock))],
            End::Refused,
            0,
        ),
        (
            "twice at once",
            Intent::Confirm,
            &[
                said(Reserve, grant(Replayed)),
                said(Reserve, grant(Ok)),
                said(Confirm, sale(Ok)),
                said(Confirm, sale(Replayed)),
            ],
            End::Confirmed,
            2,
        ),
        (
            "refused, then a unit came back",
            Intent::Confirm,
            &[
                said(Reserve, refusal(InsufficientStock)),
                said(Reserve, grant(Ok)),
                said(Confirm, sale(Ok)),
            ],
            End::Confirmed,
            0,
        ),
        (
            "the answer was lost, the next try is a replay",
            Intent::Confirm,
            &[
                (Reserve, Some(grant(Replayed)), true),
                (Confirm, Some(sale(Replayed)), true),
            ],
            End::Confirmed,
            2,
        ),
        (
            "the answer was lost until the end",
            Intent::Confirm,
            &[(Reserve, Some(refusal(Expired)), true)],
            End::Expired,
            0,
        ),
        (
            "too late",
            Intent::Confirm,
            &[said(Reserve, grant(Ok)), said(Confirm, refusal(Expired))],
            End::Expired,
            0,
        ),
        (
            "too late on one connection, revived on the other",
            Intent::Confirm,
            &[
                said(Reserve, grant(Ok)),
                said(Confirm, refusal(Expired)),
                said(Confirm, sale(Ok)),
            ],
            End::Confirmed,
            0,
        ),
    ];
    for (name, intent, rows, end, replayed) in cases {
        let account = account(*intent, rows);
        assert_eq!(
            (account.end, account.replayed, account.errors),
            (*end, *replayed, 0),
            "{name}"
        );
        assert_eq!(account.contradictions, Vec::<String>::new(), "{name}");
        assert_eq!(account.granted, *end != End::Refused, "{name}");
    }
}

#[test]
fn histories_that_contradict_themselves() {
    use Code::{AlreadyCancelled, Expired, NotFound, Ok, Replayed};
    use Verb::{Cancel, Confirm, Reserve};
    let mut other_end = grant(Replayed);
    other_end.standing.as_mut().unwrap().expires_at_ms += 1;
    let mut fewer = grant(Ok);
    fewer.standing.as_mut().unwrap().quantity = 1;
    let cases: &[(&str, Intent, &[Row])] = &[
        (
            "granted twice",
            Intent::WalkAway,
            &[said(Reserve, grant(Ok)), said(Reserve, grant(Ok))],
        ),
        (
            "replayed out of nothing",
            Intent::WalkAway,
            &[said(Reserve, grant(Replayed))],
        ),
        (
            "two ends",
            Intent::WalkAway,
            &[said(Reserve, grant(Ok)), said(Reserve, other_end)],
        ),
        (
            "fewer units than asked for",
            Intent::WalkAway,
            &[said(Reserve, fewer)],
        ),
        (
            "over before it began",
            Intent::WalkAway,
            &[said(Reserve, refusal(Expired))],
        ),
        (
            "cancelled before it was cancelled",
            Intent::WalkAway,
            &[said(Reserve, refusal(AlreadyCancelled))],
        ),
        (
            "a grant that is gone",
            Intent::Confirm,
            &[said(Reserve, grant(Ok)), said(Confirm, refusal(NotFound))],
        ),
        (
            "sold twice",
            Intent::Confirm,
            &[
                said(Reserve, grant(Ok)),
                said(Confirm, sale(Ok)),
                said(Confirm, sale(Ok)),
            ],
        ),
        (
            "a sale of one unit of two",
            Intent::Confirm,
            &[
                said(Reserve, grant(Ok)),
                said(Confirm, shown(Ok, Status::Confirmed, 1)),
            ],
        ),
        (
            "a sale that is no sale",
            Intent::Confirm,
            &[said(Reserve, grant(Ok)), said(Confirm, grant(Ok))],
        ),
        (
            "a cancel that came too late",
            Intent::Cancel,
            &[said(Reserve, grant(Ok)), said(Cancel, refusal(Expired))],
        ),
        (
            "a sale without its reservation",
            Intent::Confirm,
            &[
                said(Reserve, grant(Ok)),
                said(
                    Confirm,
                    Answer {
                        http: 200,
                        code: Ok,
                        standing: None,
                    },
                ),
            ],
        ),
    ];
    for (name, intent, rows) in cases {
        assert_ne!(
            account(*intent, rows).contradictions,
            Vec::<String>::new(),
            "{name}"
        );
    }
}

#[test]
fn what_is_not_answered_is_an_error_and_can_be_asked() {
    let lost = account(
        Intent::Confirm,
        &[said(Verb::Reserve, grant(Code::Ok)), (Verb::Confirm, None, true)],
    );
    assert_eq!((lost.end, lost.errors, lost.granted), (End::Unknown, 1, true));
    let mut asked = lost.clone();
    asked.ask(&order(Intent::Confirm), "o", &sale(Code::Ok));
    assert_eq!((asked.end, asked.errors), (End::Confirmed, 1));
    assert_eq!(asked.contradictions, Vec::<String>::new());
    let mut gone = lost;
    gone.ask(&order(Intent::Confirm), "o", &refusal(Code::NotFound));
    assert_ne!(
        gone.contradictions,
        Vec::<String>::new(),
        "an answered grant cannot vanish"
    );

    let mut never = account(Intent::Confirm, &[(Verb::Reserve, None, true)]);
    assert_eq!((never.end, never.errors, never.granted), (End::Unknown, 1, false));
    never.ask(&order(Intent::Confirm), "o", &refusal(Code::NotFound));
    assert_eq!((never.end, never.contradictions), (End::Refused, Vec::new()));
}

#[test]
fn asking_by_id_must_agree() {
    let sold = account(
        Intent::Confirm,
        &[
            said(Verb::Reserve, grant(Code::Ok)),
            said(Verb::Confirm, sale(Code::Ok)),
        ],
    );
    let refused = account(
        Intent::Confirm,
        &[said(Verb::Reserve, refusal(Code::InsufficientStock))],
    );
    let agrees = |account: &Account, said: Answer| {
        let mut account = account.clone();
        account.ask(&order(Intent::Confirm), "o", &said);
        account.contradictions.is_empty()
    };
    assert!(agrees(&sold, sale(Code::Ok)));
    assert!(
        !agrees(&sold, shown(Code::Ok, Status::Expired, 0)),
        "a sale was taken back"
    );
    assert!(!agrees(&sold, shown(Code::Ok, Status::Confirmed, 1)));
    assert!(!agrees(&sold, refusal(Code::NotFound)));
    assert!(agrees(&refused, refusal(Code::NotFound)));
    assert!(!agrees(&refused, grant(Code::Ok)), "a refused order holds units");
}
