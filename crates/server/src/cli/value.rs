//! Values on the command line: numbers are decimal digits, ids are what the service takes.

use stockade_core::{Id, IdError, QUANTITY_MAX, Reason, TTL_MS_MAX};

use crate::http::Whole;

fn whole(text: &str, min: u64, max: u64) -> Result<u64, String> {
    Whole(min..=max)
        .of(text)
        .ok_or_else(|| format!("must be {min}..={max}, written with digits only"))
}

/// 1..=2^53-1.
pub(crate) fn quantity(text: &str) -> Result<u64, String> {
    whole(text, 1, QUANTITY_MAX)
}

/// 0..=2^53-1.
pub(crate) fn figure(text: &str) -> Result<u64, String> {
    whole(text, 0, QUANTITY_MAX)
}

/// 1..=1,000.
pub(crate) fn page_limit(text: &str) -> Result<u64, String> {
    whole(text, 1, 1_000)
}

/// 1..=10,000.
pub(crate) fn finding_limit(text: &str) -> Result<u64, String> {
    whole(text, 1, 10_000)
}

/// 1 ms to an hour.
pub(crate) fn timeout_ms(text: &str) -> Result<u64, String> {
    whole(text, 1, 3_600_000)
}

/// 1 day to 100 years.
pub(crate) fn days(text: &str) -> Result<u64, String> {
    whole(text, 1, 36_500)
}

/// 1 s to 30 days.
pub(crate) fn ttl_seconds(text: &str) -> Result<u64, String> {
    whole(text, 1, (TTL_MS_MAX / 1_000).cast_unsigned())
}

/// A signed change: `5`, `+5` or `-5`.
pub(crate) fn delta(text: &str) -> Result<i64, String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let size =
        whole(digits, 1, QUANTITY_MAX).map_err(|allowed| format!("with an optional sign, {allowed}"))?;
    i64::try_from(size)
        .map(|size| sign * size)
        .map_err(|e| e.to_string())
}

/// An id.
pub(crate) fn id(text: &str) -> Result<Id, String> {
    Id::new(text).map_err(|e| format!("{e}; must be {}", IdError::ALLOWED))
}

/// Why something is done.
pub(crate) fn reason(text: &str) -> Result<Reason, String> {
    Reason::new(text).map_err(|_| format!("must be {}", Reason::ALLOWED))
}

/// A moment: milliseconds since 1970 in UTC, or RFC 3339 such as `2026-11-27T08:00:00Z`.
pub(crate) fn moment(text: &str) -> Result<i64, String> {
    if let Some(ms) = Whole(0..=QUANTITY_MAX)
        .of(text)
        .and_then(|ms| i64::try_from(ms).ok())
    {
        return Ok(ms);
    }
    let at: jiff::Timestamp = text.parse().map_err(|_| {
        "must be milliseconds since 1970 in UTC, or a time with its zone such as 2026-11-27T08:00:00Z"
            .to_owned()
    })?;
    Ok(at.as_millisecond())
}

/// A value, or `none` to take the setting away.
#[derive(Clone, Debug)]
pub(crate) struct OrNone<T>(pub(crate) Option<T>);

pub(crate) fn quantity_or_none(text: &str) -> Result<OrNone<u64>, String> {
    if text == "none" {
        Ok(OrNone(None))
    } else {
        quantity(text).map(|n| OrNone(Some(n)))
    }
}

pub(crate) fn moment_or_none(text: &str) -> Result<OrNone<i64>, String> {
    if text == "none" {
        Ok(OrNone(None))
    } else {
        moment(text).map(|ms| OrNone(Some(ms)))
    }
}

pub(crate) fn group_or_none(text: &str) -> Result<OrNone<Id>, String> {
    if text == "none" {
        Ok(OrNone(None))
    } else {
        id(text).map(|group| OrNone(Some(group)))
    }
}

/// A name and a number, split at the last `=`, so that names may hold `=` themselves.
fn pair(text: &str, what: &str, min: u64) -> Result<(Id, u64), String> {
    let (name, number) = text.rsplit_once('=').ok_or_else(|| format!("must be {what}"))?;
    Ok((
        id(name)?,
        whole(number, min, QUANTITY_MAX).map_err(|allowed| format!("the number {number} {allowed}"))?,
    ))
}

/// `SKU=QUANTITY`.
pub(crate) fn line(text: &str) -> Result<(Id, u64), String> {
    pair(text, "SKU=QUANTITY, such as B-7=3", 1)
}

/// `LOCATION=UNITS`.
pub(crate) fn floor(text: &str) -> Result<(Id, u64), String> {
    pair(text, "LOCATION=UNITS, such as default=5", 0)
}

/// The id that was given, or a fresh one in the order of time. A fresh one is said on stderr before anything is sent:
/// whoever has to send the command again needs it, also a program that reads JSON from stdout.
pub(crate) fn given_or_fresh(given: Option<&Id>, name: &str) -> String {
    if let Some(id) = given {
        return id.to_string();
    }
    let id = uuid::Uuid::now_v7().to_string();
    eprintln!("{name}: {id}");
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal_digits() {
        for text in [
            "0x10",
            "1e3",
            "0.1",
            "4.0",
            "-5",
            "+5",
            " 5",
            "5 ",
            "",
            "01",
            "9007199254740992",
            "٣",
            "1_000",
        ] {
            assert!(quantity(text).is_err(), "{text:?}");
        }
        assert_eq!(quantity("3000000000"), Ok(3_000_000_000));
        assert_eq!(quantity("9007199254740991"), Ok(QUANTITY_MAX));
    }

    #[test]
    fn deltas_have_a_sign_or_none() {
        assert_eq!((delta("5"), delta("+5"), delta("-5")), (Ok(5), Ok(5), Ok(-5)));
        for text in ["0", "-0", "--5", "+-5", "5.0", "-9007199254740992", ""] {
            assert!(delta(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn lines_split_at_the_last_sign() {
        let (sku, quantity) = line("a=b=3").unwrap();
        assert_eq!((sku.as_str(), quantity), ("a=b", 3));
        for text in ["a", "a=", "=3", "a=0", "a=1.5", "a=-1"] {
            assert!(line(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn moments_are_exact() {
        assert_eq!(moment("1767000000000"), Ok(1_767_000_000_000));
        assert_eq!(moment("2026-11-27T08:00:00Z"), Ok(1_795_766_400_000));
        for text in ["2026-11-27", "tomorrow", "-1", "1e3"] {
            assert!(moment(text).is_err(), "{text:?}");
        }
    }
}
