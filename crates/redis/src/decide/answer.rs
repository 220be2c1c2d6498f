//! From a script's reply to core's. A script says what it decided and the numbers of it; the words of a refusal are
//! core's, so that both tiers say the same.

use redis::Value;
use stockade_core::{
    Action, Conflict, Counters, Done, DoneCode, Id, LateReason, Line, Millis, OverLimit, PickLine, Refusal,
    RefusedLine, Reply, Reservation, Short, SkuRecord, Space, StockSubject, Subject, payload,
};
use stockade_core::{AskLine, Command};
use stockade_scripts::call::bytes;

use super::shapes::payload_picks;
use crate::control::reply::{natural, word};
use crate::layout;
use crate::packed::{unpack_counters, unpack_reservation, unpack_return, unpack_sku};
use crate::types::Verdict;

/// The verdict on a command; `None` for a reply that the contract does not know.
pub(super) fn verdict(command: &Command, at: Millis, value: &Value) -> Option<Verdict> {
    let reading = Reading { command, at };
    match value {
        Value::BulkString(packed) => Some(Verdict::Reply(reading.done(DoneCode::Ok, packed)?)),
        Value::Array(parts) => {
            let (tag, rest) = parts.split_first()?;
            reading.tagged(word(tag)?, rest)
        }
        _ => None,
    }
}

struct Reading<'a> {
    command: &'a Command,
    at: Millis,
}

// What a refusal needs of a line as asked.
type Asked<'a> = payload::SummedLine<'a>;

fn row<T>(asked: &Asked<'_>, detail: T) -> RefusedLine<T> {
    RefusedLine {
        index: asked.index,
        sku: asked.sku.clone(),
        location: asked.location.cloned(),
        detail,
    }
}

fn text(value: &Value) -> Option<String> {
    Some(word(value)?.to_owned())
}

impl Reading<'_> {
    /// The reservation that a command is about.
    fn own(&self) -> Option<&Id> {
        match &self.command.action {
            Action::Reserve(reserve) => Some(&reserve.id),
            Action::Confirm(confirm) => Some(&confirm.id),
            Action::Cancel(cancel) => Some(&cancel.id),
            Action::Extend(extend) => Some(&extend.id),
            Action::Return(give) => Some(&give.reservation),
            Action::ShowReservation { id } => Some(id),
            Action::Set(_)
            | Action::Adjust(_)
            | Action::Transfer(_)
            | Action::Configure(_)
            | Action::ShowStock { .. } => None,
        }
    }

    fn unpack(&self, id: &Id, packed: &[u8]) -> Option<Box<Reservation>> {
        let (reservation, _) = unpack_reservation(self.command.tenant.clone(), id.clone(), packed)?;
        Some(Box::new(reservation))
    }

    fn hold(&self, packed: &Value) -> Option<Box<Reservation>> {
        self.unpack(self.own()?, bytes(packed)?)
    }

    fn done(&self, code: DoneCode, packed: &[u8]) -> Option<Reply> {
        let subject = Subject::Reservation(self.unpack(self.own()?, packed)?);
        Some(Reply::Done(Done { code, subject }))
    }

    fn tagged(&self, tag: &str, rest: &[Value]) -> Option<Verdict> {
        let reply = match (tag, rest) {
            ("replayed", [packed]) => self.done(DoneCode::Replayed, bytes(packed)?)?,
            ("sealed", [packed]) => self.done(DoneCode::Sealed, bytes(packed)?)?,
            ("ok", [back, packed]) => self.returned(DoneCode::Ok, back, packed)?,
            ("replayed", [back, packed]) => self.returned(DoneCode::Replayed, back, packed)?,
            ("stock", [code, revision, fields @ ..]) => self.stock(word(code)?, word(revision)?, fields)?,
            ("again", []) => Reply::Again,
            ("look_up", [kind, name]) => self.look_up(word(kind)?, word(name)?)?,
            ("missing", names) if !names.is_empty() => {
                return Some(Verdict::Missing(names.iter().map(id_of).collect::<Option<_>>()?));
            }
            ("corrupt", [key, sku, message]) => {
                return Some(Verdict::Corrupt {
                    key: text(key)?,
                    sku: match word(sku)? {
                        "" => None,
                        _ => Some(id_of(sku)?),
                    },
                    message: text(message)?,
                });
            }
            _ => Reply::Refused(self.refusal(tag, rest)?),
        };
        Some(Verdict::Reply(reply))
    }

    fn look_up(&self, kind: &str, name: &str) -> Option<Reply> {
        let (tenant, id) = layout::split_name(name)?;
        let space = match kind {
            "r" => Space::Reservation,
            "x" => Space::Return,
            "c" => Space::Stock,
            _ => return None,
        };
        (tenant == self.command.tenant).then_some(Reply::LookUp { space, id })
    }

    fn returned(&self, code: DoneCode, back: &Value, packed: &Value) -> Option<Reply> {
        let Action::Return(give) = &self.command.action else {
            return None;
        };
        let (record, _) = unpack_return(self.command.tenant.clone(), give.id.clone(), bytes(back)?)?;
        // A replay shows the reservation of the first time, which the digest says is the same.
        let reservation = self.unpack(&record.reservation, bytes(packed)?)?;
        let subject = Subject::Return(Box::new((record, *reservation)));
        Some(Reply::Done(Done { code, subject }))
    }

    fn sku(&self) -> Option<&Id> {
        match &self.command.action {
            Action::Set(set) => Some(&set.sku),
            Action::Adjust(adjust) => Some(&adjust.sku),
            Action::Transfer(transfer) => Some(&transfer.sku),
            Action::Configure(configure) => Some(&configure.sku),
            Action::ShowStock { sku } => Some(sku),
            _ => None,
        }
    }

    fn stock(&self, code: &str, revision: &str, fields: &[Value]) -> Option<Reply> {
        let code = match code {
            "ok" => DoneCode::Ok,
            "replayed" => DoneCode::Replayed,
            _ => return None,
        };
        let mut pairs = Vec::with_capacity(fields.len() / 2);
        for pair in fields.chunks(2) {
            let [name, value] = pair else { return None };
            pairs.push((text(name)?, text(value)?));
        }
        let stock: SkuRecord = unpack_sku(self.command.tenant.clone(), self.sku()?.clone(), &pairs)?.record;
        let made = match revision {
            "" => None,
            revision => Some(layout::number(revision)?),
        };
        let subject = StockSubject {
            revision: made.unwrap_or(stock.revision),
            // The first change of a SKU is the count that creates it.
            created: made == Some(1),
            stock,
        };
        Some(Reply::Done(Done {
            code,
            subject: Subject::Stock(Box::new(subject)),
        }))
    }

    fn lines(&self) -> Option<&[AskLine]> {
        match &self.command.action {
            Action::Reserve(reserve) => Some(&reserve.lines),
            Action::Confirm(confirm) => Some(&confirm.payload.as_ref()?.lines),
            _ => None,
        }
    }

    /// Rows of `width` values, the first of which is the place of a summed line, from 1.
    fn rows<T>(
        &self,
        rest: &[Value],
        width: usize,
        detail: impl Fn(&Asked<'_>, &[Value]) -> Option<T>,
    ) -> Option<Vec<RefusedLine<T>>> {
        let asked = payload::sum(self.lines()?);
        let mut rows = Vec::new();
        for part in rest.chunks(width) {
            if part.len() != width {
                return None;
            }
            let (place, numbers) = part.split_first()?;
            let line = asked.get(usize::try_from(natural(place)?).ok()?.checked_sub(1)?)?;
            rows.push(row(line, detail(line, numbers)?));
        }
        rows.sort_by_key(|row| row.index);
        Some(rows)
    }

    // Of a stock command, whose SKU and location are its only line.
    fn only<T>(&self, location: Option<Id>, detail: T) -> Option<Vec<RefusedLine<T>>> {
        Some(vec![RefusedLine {
            index: 0,
            sku: self.sku()?.clone(),
            location,
            detail,
        }])
    }

    fn refusal(&self, tag: &str, rest: &[Value]) -> Option<Refusal> {
        let stock = self.sku().is_some();
        Some(match (tag, rest) {
            ("id_reused", []) => Refusal::IdReused,
            ("not_found", []) => Refusal::NotFound {
                id: self.own()?.clone(),
            },
            ("not_found", [name]) => Refusal::NotFound { id: id_of(name)? },
            ("already_confirmed", [packed]) => Refusal::AlreadyConfirmed(self.hold(packed)?),
            ("already_confirmed", [packed, name]) => {
                Refusal::AlreadyConfirmed(self.unpack(&id_of(name)?, bytes(packed)?)?)
            }
            ("already_cancelled", [packed]) => Refusal::AlreadyCancelled(self.hold(packed)?),
            ("not_confirmed", [packed]) => Refusal::NotConfirmed(self.hold(packed)?),
            ("expired", [packed, why, rows @ ..]) => {
                let reservation = self.hold(packed)?;
                let reason = late(&reservation, word(why)?, rows)?;
                Refusal::Expired { reservation, reason }
            }
            ("unknown_sku", []) if stock => Refusal::UnknownSku(self.only(None, ())?),
            ("unknown_location", [location]) if stock => {
                Refusal::UnknownSku(self.only(Some(Id::new(word(location)?).ok()?), ())?)
            }
            ("revision_conflict", [found]) if stock => {
                let found = match word(found)? {
                    "" => None,
                    found => Some(layout::number(found)?),
                };
                let expected = self.expected();
                Refusal::RevisionConflict(self.only(None, Conflict { expected, found })?)
            }
            ("unknown_sku", rest) => Refusal::UnknownSku(self.rows(rest, 1, |_, _| Some(()))?),
            ("paused", rest) => Refusal::Paused(self.rows(rest, 1, |_, _| Some(()))?),
            ("not_open", rest) => Refusal::NotOpen(self.rows(rest, 2, |_, numbers| time(numbers))?),
            ("closed", rest) => Refusal::Closed(self.rows(rest, 2, |_, numbers| time(numbers))?),
            ("revision_conflict", rest) => Refusal::RevisionConflict(self.rows(rest, 3, conflict)?),
            ("insufficient_stock", rest) => {
                Refusal::InsufficientStock(self.rows(rest, 2, |line, numbers| {
                    let [available] = numbers else { return None };
                    Some(Short {
                        asked: line.quantity,
                        available: natural(available)?,
                    })
                })?)
            }
            ("limit_exceeded", rest) => Refusal::LimitExceeded(self.over_limit(rest)?),
            (tag, rest) => self.invalid(tag, rest)?,
        })
    }

    fn over_limit(&self, rest: &[Value]) -> Option<Vec<RefusedLine<OverLimit>>> {
        let all = payload::sum(self.lines()?);
        self.rows(rest, 3, |line, numbers| {
            let [used, limit] = numbers else { return None };
            let of_sku = all.iter().filter(|one| one.sku == line.sku);
            Some(OverLimit {
                asked: of_sku.fold(0_u64, |sum, one| sum.saturating_add(one.quantity)),
                used: natural(used)?,
                limit: natural(limit)?,
            })
        })
    }

    fn expected(&self) -> Option<u64> {
        let expect = match &self.command.action {
            Action::Set(set) => set.expect,
            Action::Adjust(adjust) => adjust.expect,
            Action::Transfer(transfer) => transfer.expect,
            Action::Configure(configure) => configure.expect,
            _ => return None,
        };
        match expect {
            stockade_core::Expect::Revision(revision) => Some(revision),
            stockade_core::Expect::Any | stockade_core::Expect::Absent => None,
        }
    }

    // The script found something out of its range; core says it in words. `None` where core would have let it pass.
    fn invalid(&self, tag: &str, rest: &[Value]) -> Option<Refusal> {
        match (tag, rest, &self.command.action) {
            ("invalid", [], Action::Reserve(reserve)) => payload::check_reserve(reserve).err(),
            ("invalid", [], Action::Confirm(confirm)) => {
                let asked = confirm.payload.as_ref()?;
                payload::check_payload(asked)
                    .and_then(|()| payload_picks(&asked.lines, confirm.lines.as_deref()))
                    .err()
            }
            ("invalid", [packed], Action::Confirm(confirm)) => {
                let hold = self.hold(packed)?;
                picked(&hold, confirm.lines.as_deref()?, Line::quantity)
            }
            ("invalid", [packed], Action::Return(give)) => match &give.lines {
                None => Some(payload::nothing_left()),
                Some(lines) => {
                    let left = |line: &Line| line.confirmed() - line.returned();
                    picked(&*self.hold(packed)?, lines, left)
                }
            },
            ("invalid", [], Action::Extend(extend)) => Some(payload::bad_end(extend, self.at)),
            ("invalid", [], Action::Set(set)) => payload::check_set(set).err(),
            ("invalid", [], Action::Adjust(adjust)) => payload::check_adjust(adjust).err(),
            ("invalid", [], Action::Transfer(transfer)) => payload::check_transfer(transfer).err(),
            ("invalid", [], Action::Configure(configure)) => payload::check_changes(&configure.changes).err(),
            ("locations_full", [], Action::Set(set)) => Some(payload::no_more_locations(&set.location)),
            ("window", [opens, closes], Action::Configure(_)) => {
                let time = |value| word(value)?.parse::<Millis>().ok();
                payload::check_window(Some(time(opens)?), Some(time(closes)?)).err()
            }
            ("count", [which, exists, counters], action) => {
                let before = unpack_counters(word(counters)?)?;
                counted(action, word(which)?, natural(exists)? == 1, before)
            }
            _ => None,
        }
    }
}

fn counted(action: &Action, which: &str, exists: bool, before: Counters) -> Option<Refusal> {
    match action {
        Action::Set(set) => payload::counted(set, exists, before).err(),
        Action::Adjust(adjust) => payload::adjusted(adjust, before).err(),
        Action::Transfer(transfer) => {
            let location = match which {
                "from" => &transfer.from,
                "to" => &transfer.to,
                _ => return None,
            };
            payload::transferred(transfer, location, before).err()
        }
        _ => None,
    }
}

fn id_of(name: &Value) -> Option<Id> {
    Some(layout::split_name(word(name)?)?.1)
}

fn time(numbers: &[Value]) -> Option<Millis> {
    let [time] = numbers else { return None };
    word(time)?.parse().ok()
}

// Which of the revisions asked for failed, and the one found.
fn conflict(line: &Asked<'_>, numbers: &[Value]) -> Option<Conflict> {
    let [which, found] = numbers else { return None };
    let which = usize::try_from(natural(which)?).ok()?.checked_sub(1)?;
    let expected = line.if_revision.iter().flatten().nth(which)?;
    Some(Conflict {
        expected: Some(*expected),
        found: Some(layout::number(word(found)?)?),
    })
}

fn picked(hold: &Reservation, picks: &[PickLine], room: impl Fn(&Line) -> u64) -> Option<Refusal> {
    let lines: Vec<_> = hold
        .lines
        .iter()
        .map(|line| (&line.sku, line.location.as_ref(), room(line)))
        .collect();
    payload::pick(&lines, picks).err()
}

fn late(hold: &Reservation, why: &str, rest: &[Value]) -> Option<LateReason> {
    fn rows<T>(
        hold: &Reservation,
        rest: &[Value],
        width: usize,
        detail: impl Fn(&[Value]) -> Option<T>,
    ) -> Option<Vec<RefusedLine<T>>> {
        let mut rows = Vec::new();
        for part in rest.chunks(width) {
            let [line, index, numbers @ ..] = part else {
                return None;
            };
            let line = hold
                .lines
                .get(usize::try_from(natural(line)?).ok()?.checked_sub(1)?)?;
            rows.push(RefusedLine {
                index: u32::try_from(natural(index)?).ok()?,
                sku: line.sku.clone(),
                location: line.location.clone(),
                detail: detail(numbers)?,
            });
        }
        rows.sort_by_key(|row| row.index);
        Some(rows)
    }
    Some(match why {
        "over" if rest.is_empty() => LateReason::Over,
        "short" => LateReason::Short(rows(hold, rest, 4, |numbers| match numbers {
            [asked, available] => Some(Short {
                asked: natural(asked)?,
                available: natural(available)?,
            }),
            _ => None,
        })?),
        "limit" => LateReason::Limit(rows(hold, rest, 5, |numbers| match numbers {
            [asked, used, limit] => Some(OverLimit {
                asked: natural(asked)?,
                used: natural(used)?,
                limit: natural(limit)?,
            }),
            _ => None,
        })?),
        _ => return None,
    })
}
