//! Reservations.

use std::fmt::Write as _;

use smallvec::{SmallVec, smallvec};
use stockade_core::{Allocation, Id, Line, Mode, Reservation, Status};

use super::{id, id_or_none, split_digest};
use crate::layout::{DEFAULT, GS, RS, US, number};

const fn status_byte(status: Status) -> u8 {
    match status {
        Status::Pending => b'p',
        Status::Confirmed => b'c',
        Status::Cancelled => b'x',
        Status::Expired => b'e',
        Status::Lost => b'l',
    }
}

pub(crate) const fn status_of(byte: u8) -> Option<Status> {
    Some(match byte {
        b'p' => Status::Pending,
        b'c' => Status::Confirmed,
        b'x' => Status::Cancelled,
        b'e' => Status::Expired,
        b'l' => Status::Lost,
        _ => return None,
    })
}

/// A reservation as it is stored; `seq` is the entry of its last change, which only ended ones keep.
pub fn pack_reservation(reservation: &Reservation, seq: u64) -> Vec<u8> {
    let r = reservation;
    let flags = u8::from(r.mode == Mode::Deduct) + 2 * u8::from(r.sealed) + 4 * u8::from(r.noted);
    let mut packed = vec![status_byte(r.status), b'@' + flags];
    packed.extend_from_slice(&r.digest.0.to_be_bytes());
    let mut text = format!("{}{US}{}{US}", r.granted_at, r.ends_at);
    // Writing to a String cannot fail.
    if r.status != Status::Pending {
        let _ = write!(text, "{seq}");
    }
    text.push(US);
    text.push_str(r.owner.as_ref().map_or("", Id::as_str));
    if let Some((sku, quantity)) = plain(r) {
        let _ = write!(text, "{US}{sku}{US}{quantity}");
    } else {
        for line in &r.lines {
            let asked = line.location.as_ref().map_or("", Id::as_str);
            let _ = write!(text, "{RS}{}{US}{asked}{US}{}", line.sku, line.era);
            for a in &line.allocations {
                let (quantity, confirmed, returned) = (a.quantity, a.confirmed, a.returned);
                let _ = write!(
                    text,
                    "{GS}{}{US}{quantity}{US}{confirmed}{US}{returned}",
                    a.location
                );
            }
        }
    }
    packed.extend_from_slice(text.as_bytes());
    packed
}

fn whole(status: Status, quantity: u64) -> u64 {
    if status == Status::Confirmed { quantity } else { 0 }
}

fn plain(r: &Reservation) -> Option<(&Id, u64)> {
    let [line] = r.lines.as_slice() else { return None };
    let [a] = line.allocations.as_slice() else {
        return None;
    };
    let is = line.location.is_none()
        && line.era == 0
        && a.location.as_str() == DEFAULT
        && a.confirmed == whole(r.status, a.quantity)
        && a.returned == 0;
    is.then_some((&line.sku, a.quantity))
}

/// A stored reservation and the entry of its last change (0 while pending).
pub fn unpack_reservation(tenant: Id, own: Id, packed: &[u8]) -> Option<(Reservation, u64)> {
    let (&[status, flags], rest) = packed.split_first_chunk::<2>()?;
    let status = status_of(status)?;
    let flags = flags.checked_sub(b'@').filter(|flags| *flags < 8)?;
    let (digest, text) = split_digest(rest)?;
    let (head, lines) = match text.find(RS) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let mut fields = head.split(US);
    let granted_at = number(fields.next()?)?;
    let ends_at = number(fields.next()?)?;
    let seq = match fields.next()? {
        "" if status == Status::Pending => 0,
        text if status != Status::Pending => number(text)?,
        _ => return None,
    };
    let owner = id_or_none(fields.next()?)?;
    let lines = match (fields.next(), fields.next(), fields.next()) {
        (None, ..) => unpack_lines(lines)?,
        (Some(sku), Some(quantity), None) if lines.is_empty() => {
            let quantity = number(quantity)?;
            smallvec![Line {
                sku: id(sku)?,
                location: None,
                era: 0,
                allocations: smallvec![Allocation {
                    location: Id::default_name(),
                    quantity,
                    confirmed: whole(status, quantity),
                    returned: 0,
                }],
            }]
        }
        _ => return None,
    };
    let reservation = Reservation {
        tenant,
        id: own,
        owner,
        mode: if flags & 1 == 1 {
            Mode::Deduct
        } else {
            Mode::Reserve
        },
        digest,
        status,
        sealed: flags & 2 == 2,
        noted: flags & 4 == 4,
        granted_at,
        ends_at,
        lines,
    };
    Some((reservation, seq))
}

fn unpack_lines(text: &str) -> Option<SmallVec<[Line; 1]>> {
    text.split(RS).skip(1).map(unpack_line).collect()
}

fn unpack_line(text: &str) -> Option<Line> {
    let mut groups = text.split(GS);
    let mut head = groups.next()?.split(US);
    let (sku, asked, era) = (head.next()?, head.next()?, head.next()?);
    if head.next().is_some() {
        return None;
    }
    let allocations = groups.map(unpack_allocation).collect::<Option<_>>()?;
    Some(Line {
        sku: id(sku)?,
        location: id_or_none(asked)?,
        era: number(era)?,
        allocations,
    })
}

fn unpack_allocation(text: &str) -> Option<Allocation> {
    let mut fields = text.split(US);
    let allocation = Allocation {
        location: id(fields.next()?)?,
        quantity: number(fields.next()?)?,
        confirmed: number(fields.next()?)?,
        returned: number(fields.next()?)?,
    };
    fields.next().is_none().then_some(allocation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stockade_core::Digest;

    fn new(text: &str) -> Id {
        Id::new(text).unwrap()
    }

    fn sample(status: Status) -> Reservation {
        let part = |location: &str, quantity, confirmed, returned| Allocation {
            location: new(location),
            quantity,
            confirmed,
            returned,
        };
        Reservation {
            tenant: new("default"),
            id: new("r1"),
            owner: Some(new("u 1")),
            mode: Mode::Deduct,
            digest: Digest(0x1c1d_1e1f_0000_0000_0000_0000_0000_000a),
            status,
            sealed: false,
            noted: true,
            granted_at: 1_767_000_000_000,
            ends_at: 1_767_000_900_001,
            lines: smallvec![
                Line {
                    sku: new("S"),
                    location: None,
                    era: 2,
                    allocations: smallvec![part("default", 3, 2, 1), part("W1", 9_007_199_254_740_991, 0, 0)],
                },
                Line {
                    sku: new("T"),
                    location: Some(new("W1")),
                    era: 0,
                    allocations: smallvec![part("W1", 1, 1, 0)],
                },
            ],
        }
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        for status in Status::ALL {
            let mut reservation = sample(status);
            let seq = if status == Status::Pending { 0 } else { 77 };
            let there = |r: &Reservation| {
                let packed = pack_reservation(r, seq);
                assert_eq!(
                    unpack_reservation(r.tenant.clone(), r.id.clone(), &packed),
                    Some((r.clone(), seq))
                );
                packed.len()
            };
            there(&reservation);
            reservation.lines.truncate(1);
            there(&reservation);
            reservation.lines[0].era = 0;
            reservation.lines[0].allocations = smallvec![Allocation {
                location: new("default"),
                quantity: 3,
                confirmed: whole(status, 3),
                returned: 0,
            }];
            let plain = there(&reservation);
            reservation.lines[0].allocations[0].confirmed = 3 - whole(status, 3);
            assert!(there(&reservation) > plain);
            reservation.lines.clear();
            (reservation.owner, reservation.sealed) = (None, true);
            there(&reservation);
        }
    }

    #[test]
    fn what_no_script_writes_is_not_read() {
        let packed = pack_reservation(&sample(Status::Pending), 0);
        let read = |bytes: &[u8]| unpack_reservation(new("default"), new("r1"), bytes);
        assert!(read(&packed).is_some());
        for cut in 0..packed.len() - 1 {
            let _ = read(&packed[..cut]);
        }
        assert_eq!(read(b""), None);
        assert_eq!(read(b"held:1:2"), None);
        let mut other = packed.clone();
        other[0] = b'z';
        assert_eq!(read(&other), None);
        let text = String::from_utf8_lossy(&packed[18..]).replace("\u{1f}3\u{1f}", "\u{1f}03\u{1f}");
        assert_eq!(read(&[&packed[..18], text.as_bytes()].concat()), None);
    }
}
