//! The kinds of values that a body may hold, each with what it allows in words.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use stockade_core::{Id, IdError, QUANTITY_MAX, Reason};

/// How the text of a JSON value becomes a value.
pub(crate) trait Kind {
    type Out;
    /// The value, or `None` if the text is not one.
    fn parse(&self, text: &str) -> Option<Self::Out>;
    /// What is allowed, for the refusal.
    fn allowed(&self) -> Cow<'static, str>;
}

/// A JSON string as the text it means, borrowed where it has no escapes.
pub(crate) fn string(text: &str) -> Option<Cow<'_, str>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return serde_json::from_str(text).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

/// An id.
#[derive(Debug)]
pub(crate) struct IdText;

impl Kind for IdText {
    type Out = Id;
    fn parse(&self, text: &str) -> Option<Id> {
        Id::new(&string(text)?).ok()
    }
    fn allowed(&self) -> Cow<'static, str> {
        IdError::ALLOWED.into()
    }
}

/// A reason.
#[derive(Debug)]
pub(crate) struct ReasonText;

impl Kind for ReasonText {
    type Out = Reason;
    fn parse(&self, text: &str) -> Option<Reason> {
        Reason::new(&string(text)?).ok()
    }
    fn allowed(&self) -> Cow<'static, str> {
        Reason::ALLOWED.into()
    }
}

/// A whole number, written with digits only.
#[derive(Debug)]
pub(crate) struct Whole(pub(crate) RangeInclusive<u64>);

/// A number of units: 1..=2^53-1.
pub(crate) const QUANTITY: Whole = Whole(1..=QUANTITY_MAX);
/// A figure that may be zero: 0..=2^53-1.
pub(crate) const FIGURE: Whole = Whole(0..=QUANTITY_MAX);

impl Whole {
    /// The number, if the text is digits only and in range. JSON has no leading zeros; other callers may not use them
    /// either, so that one number has one writing.
    pub(crate) fn of(&self, text: &str) -> Option<u64> {
        let plain = !text.is_empty()
            && text.bytes().all(|b| b.is_ascii_digit())
            && (text == "0" || !text.starts_with('0'));
        let number = if plain { text.parse().ok()? } else { return None };
        self.0.contains(&number).then_some(number)
    }
}

impl Kind for Whole {
    type Out = u64;
    fn parse(&self, text: &str) -> Option<u64> {
        self.of(text)
    }
    fn allowed(&self) -> Cow<'static, str> {
        format!("{}..={}", self.0.start(), self.0.end()).into()
    }
}

/// Milliseconds since the epoch.
#[derive(Debug)]
pub(crate) struct Moment;

impl Kind for Moment {
    type Out = i64;
    fn parse(&self, text: &str) -> Option<i64> {
        FIGURE.of(text).and_then(|n| i64::try_from(n).ok())
    }
    fn allowed(&self) -> Cow<'static, str> {
        format!("milliseconds since 1970 in UTC, 0..={QUANTITY_MAX}").into()
    }
}

/// A signed change: not 0.
#[derive(Debug)]
pub(crate) struct Delta;

impl Kind for Delta {
    type Out = i64;
    fn parse(&self, text: &str) -> Option<i64> {
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
        let size = i64::try_from(QUANTITY.of(digits)?).ok()?;
        Some(sign * size)
    }
    fn allowed(&self) -> Cow<'static, str> {
        format!("-{QUANTITY_MAX}..={QUANTITY_MAX}, not 0").into()
    }
}

/// Whatever stands there.
#[derive(Debug)]
pub(crate) struct Anything;

impl Kind for Anything {
    type Out = ();
    fn parse(&self, _: &str) -> Option<()> {
        Some(())
    }
    fn allowed(&self) -> Cow<'static, str> {
        "anything".into()
    }
}

/// `true` or `false`.
#[derive(Debug)]
pub(crate) struct Flag;

impl Kind for Flag {
    type Out = bool;
    fn parse(&self, text: &str) -> Option<bool> {
        match text {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }
    fn allowed(&self) -> Cow<'static, str> {
        "true or false".into()
    }
}

/// One of some words.
#[derive(Debug)]
pub(crate) struct Choice<T: 'static>(pub(crate) &'static [(&'static str, T)]);

impl<T: Copy> Choice<T> {
    pub(crate) fn of(&self, word: &str) -> Option<T> {
        self.0
            .iter()
            .find(|(known, _)| *known == word)
            .map(|(_, value)| *value)
    }
}

impl<T: Copy> Kind for Choice<T> {
    type Out = T;
    fn parse(&self, text: &str) -> Option<T> {
        self.of(&string(text)?)
    }
    fn allowed(&self) -> Cow<'static, str> {
        let words: Vec<&str> = self.0.iter().map(|(word, _)| *word).collect();
        words.join(" or ").into()
    }
}

/// Another kind, or `null`, which takes a setting away.
#[derive(Debug)]
pub(crate) struct OrNull<K>(pub(crate) K);

impl<K: Kind> Kind for OrNull<K> {
    type Out = Option<K::Out>;
    fn parse(&self, text: &str) -> Option<Option<K::Out>> {
        if text == "null" {
            Some(None)
        } else {
            self.0.parse(text).map(Some)
        }
    }
    fn allowed(&self) -> Cow<'static, str> {
        format!("{}, or null", self.0.allowed()).into()
    }
}
