//! Strict JSON: what a body says is taken exactly, or refused with the field, what was found and what is allowed.
//!
//! `serde_json` does the lexing. The fields of an object are kept as the text that was sent, so that a refusal can show
//! it, a number cannot change on the way (`4.0`, `1e3`), duplicate keys are seen at any depth, and one answer lists
//! every fault of a body instead of the first.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use smallvec::SmallVec;

use super::kind::Kind;
use super::problem::{FieldError, Problem};

/// The most faults that one answer lists.
const FAULTS_MAX: usize = 100;
/// The most fields that an object may have before it is refused unread; the largest body has 15.
const FIELDS_MAX: usize = 64;

/// Where a value stands in the body: `lines[0].quantity`. Costs nothing until it is printed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Path<'p> {
    Root,
    Field(&'p Path<'p>, &'p str),
    Index(&'p Path<'p>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// The faults of one body.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    list: Vec<FieldError>,
}

impl Faults {
    pub(crate) fn push(&mut self, path: &Path<'_>, found: &str, allowed: impl Into<Cow<'static, str>>) {
        if self.list.len() < FAULTS_MAX {
            let field = match path {
                Path::Root => "body".to_owned(),
                Path::Field(..) | Path::Index(..) => path.to_string(),
            };
            self.list.push(FieldError {
                field,
                found: shortened(found),
                allowed: allowed.into(),
            });
        }
    }

    /// Adds a fault of a field at the top.
    pub(crate) fn of(&mut self, field: &'static str, found: &str, allowed: String) {
        self.push(&Path::Field(&Path::Root, field), found, allowed);
    }

    /// The value if there was no fault, otherwise the faults.
    pub(crate) fn all<T>(self, value: Option<T>) -> Result<T, Vec<FieldError>> {
        match value {
            Some(value) if self.list.is_empty() => Ok(value),
            _ => Err(self.list),
        }
    }

    /// The value if there was no fault.
    pub(crate) fn done<T>(self, value: Option<T>) -> Result<T, Problem> {
        self.all(value).map_err(Problem::Invalid)
    }
}

/// At most 128 bytes of a text, with its whole length where it was longer.
pub(crate) fn shortened(text: &str) -> String {
    const SHOWN_MAX: usize = 128;
    if text.len() <= SHOWN_MAX {
        return text.to_owned();
    }
    let mut end = SHOWN_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}... ({} bytes)", &text[..end], text.len())
}

/// Checks that a body is one JSON value and gives its text.
pub(crate) fn text_of(body: &[u8]) -> Result<&str, Problem> {
    let mark = match body {
        [0xEF, 0xBB, 0xBF, ..] => Some("a UTF-8 byte-order mark (EF BB BF)"),
        [0xFE, 0xFF, ..] | [0xFF, 0xFE, ..] => Some("a UTF-16 byte-order mark"),
        _ => None,
    };
    if let Some(mark) = mark {
        let what = format!("the body begins with {mark}; send plain UTF-8 without it");
        return Err(Problem::Malformed {
            line: 1,
            column: 1,
            what,
        });
    }
    let text = std::str::from_utf8(body).map_err(|e| {
        let (line, column) = position(body, e.valid_up_to());
        Problem::Malformed {
            line,
            column,
            what: "the body is not UTF-8".to_owned(),
        }
    })?;
    let value: &RawValue = serde_json::from_str(text).map_err(|e| {
        let full = e.to_string();
        let what = full
            .rsplit_once(" at line ")
            .map_or(full.as_str(), |(what, _)| what);
        Problem::Malformed {
            line: e.line(),
            column: e.column(),
            what: what.to_owned(),
        }
    })?;
    Ok(value.get())
}

/// Line and column, from 1, of a byte.
fn position(body: &[u8], at: usize) -> (usize, usize) {
    let before = body.get(..at).unwrap_or(body);
    let line = before.split(|b| *b == b'\n').count();
    let column = 1 + before.iter().rev().take_while(|b| **b != b'\n').count();
    (line, column)
}

/// Reads a whole body as an object.
pub(crate) fn read<T>(
    body: &[u8],
    reader: impl FnOnce(&mut Object<'_, '_>) -> Option<T>,
) -> Result<T, Problem> {
    let text = text_of(body)?;
    let mut faults = Faults::default();
    let value = Object::read(text, Path::Root, &mut faults, reader);
    faults.done(value)
}

/// An object that is being read: each field is asked for once, then what nobody asked for is a fault.
#[derive(Debug)]
pub(crate) struct Object<'a, 'p> {
    fields: SmallVec<[(Cow<'a, str>, Option<&'a str>); 8]>,
    asked: SmallVec<[&'static str; 16]>,
    path: Path<'p>,
    pub(crate) faults: &'p mut Faults,
}

impl<'a, 'p> Object<'a, 'p> {
    /// Reads a checked text as an object; `None` if there was a fault.
    pub(crate) fn read<T>(
        text: &'a str,
        path: Path<'p>,
        faults: &'p mut Faults,
        reader: impl FnOnce(&mut Object<'a, 'p>) -> Option<T>,
    ) -> Option<T> {
        if !text.starts_with('{') {
            faults.push(&path, text, "an object");
            return None;
        }
        let mut fields = SmallVec::new();
        let collected = serde_json::Deserializer::from_str(text).deserialize_map(Fields(&mut fields));
        if let Err(error) = collected {
            // The syntax was checked, so only a key can be wrong: a lone surrogate.
            faults.push(&path, text, format!("keys that are Unicode text ({error})"));
            return None;
        }
        if fields.len() > FIELDS_MAX {
            faults.push(&path, text, format!("at most {FIELDS_MAX} fields"));
            return None;
        }
        let mut object = Object {
            fields,
            asked: SmallVec::new(),
            path,
            faults,
        };
        let value = reader(&mut object);
        object.finish();
        value
    }

    /// Whether a field is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(key, _)| key == name)
    }

    /// The text of a field, if it is there.
    fn take(&mut self, name: &'static str) -> Option<&'a str> {
        self.asked.push(name);
        let mut texts = self.fields.iter_mut().filter(|(key, _)| key == name);
        let first = texts.next()?.1.take();
        let others: SmallVec<[&str; 1]> = texts.filter_map(|(_, text)| text.take()).collect();
        if let Some(first) = first.filter(|_| !others.is_empty()) {
            let found = format!("{first}, then {}", others.join(", then "));
            self.faults
                .push(&Path::Field(&self.path, name), &found, "the field once");
        }
        first
    }

    fn parse<K: Kind>(&mut self, name: &'static str, text: &str, kind: &K) -> Option<K::Out> {
        let value = kind.parse(text);
        if value.is_none() {
            self.faults
                .push(&Path::Field(&self.path, name), text, kind.allowed());
        }
        value
    }

    /// A field that must be there.
    pub(crate) fn need<K: Kind>(&mut self, name: &'static str, kind: &K) -> Option<K::Out> {
        if let Some(text) = self.take(name) {
            return self.parse(name, text, kind);
        }
        self.faults
            .push(&Path::Field(&self.path, name), "nothing", kind.allowed());
        None
    }

    /// A field that may be left out.
    pub(crate) fn may<K: Kind>(&mut self, name: &'static str, kind: &K) -> Option<K::Out> {
        let text = self.take(name)?;
        self.parse(name, text, kind)
    }

    /// A field that must be there if no other source gave the value.
    pub(crate) fn need_unless<K: Kind>(
        &mut self,
        given: bool,
        name: &'static str,
        kind: &K,
    ) -> Option<K::Out> {
        if given {
            self.may(name, kind)
        } else {
            self.need(name, kind)
        }
    }

    /// A list that must be there; each item is read with its path.
    pub(crate) fn need_list<T>(
        &mut self,
        name: &'static str,
        shape: &ListShape,
        item: impl FnMut(&'a str, Path<'_>, &mut Faults) -> Option<T>,
    ) -> Option<Vec<T>> {
        if let Some(text) = self.take(name) {
            return self.list(name, text, shape, item);
        }
        self.faults
            .push(&Path::Field(&self.path, name), "nothing", shape.allowed());
        None
    }

    /// A list that may be left out.
    pub(crate) fn may_list<T>(
        &mut self,
        name: &'static str,
        shape: &ListShape,
        item: impl FnMut(&'a str, Path<'_>, &mut Faults) -> Option<T>,
    ) -> Option<Vec<T>> {
        let text = self.take(name)?;
        self.list(name, text, shape, item)
    }

    fn list<T>(
        &mut self,
        name: &'static str,
        text: &'a str,
        shape: &ListShape,
        mut item: impl FnMut(&'a str, Path<'_>, &mut Faults) -> Option<T>,
    ) -> Option<Vec<T>> {
        let ListShape { min, max, .. } = *shape;
        let path = Path::Field(&self.path, name);
        let mut items = Items {
            list: Vec::new(),
            max,
            seen: 0,
        };
        let is_list = text.starts_with('[')
            && serde_json::Deserializer::from_str(text)
                .deserialize_seq(&mut items)
                .is_ok();
        if !is_list {
            self.faults.push(&path, text, shape.allowed());
            return None;
        }
        if items.seen < min || items.seen > max {
            self.faults.push(
                &path,
                &format!("{} items", items.seen),
                format!("{min}..={max} items"),
            );
            return None;
        }
        let mut whole = true;
        let mut values = Vec::with_capacity(items.list.len());
        for (index, text) in items.list.into_iter().enumerate() {
            match item(text, Path::Index(&path, index), self.faults) {
                Some(value) => values.push(value),
                None => whole = false,
            }
        }
        whole.then_some(values)
    }

    /// An object that may be left out.
    pub(crate) fn may_object<T>(
        &mut self,
        name: &'static str,
        reader: impl FnOnce(&mut Object<'a, '_>) -> Option<T>,
    ) -> Option<T> {
        let text = self.take(name)?;
        let path = self.path;
        let path = Path::Field(&path, name);
        Object::read(text, path, self.faults, reader)
    }

    /// Adds a fault of a field that was read.
    pub(crate) fn fault(&mut self, name: &'static str, found: &str, allowed: &'static str) {
        self.faults.push(&Path::Field(&self.path, name), found, allowed);
    }

    fn finish(self) {
        for (name, text) in &self.fields {
            if let Some(text) = text {
                let allowed = format!("no such field; known are {}", self.asked.join(", "));
                self.faults.push(&Path::Field(&self.path, name), text, allowed);
            }
        }
    }
}

/// What a list looks like: how many items, and one that shows the shape of all.
#[derive(Debug)]
pub(crate) struct ListShape {
    pub(crate) min: usize,
    pub(crate) max: usize,
    pub(crate) like: &'static str,
}

impl ListShape {
    fn allowed(&self) -> String {
        format!("a list of {}..={}, such as [{}]", self.min, self.max, self.like)
    }
}

/// Collects the fields of an object, one more than may be at most.
struct Fields<'f, 'a>(&'f mut SmallVec<[(Cow<'a, str>, Option<&'a str>); 8]>);

impl<'a> Visitor<'a> for Fields<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Key(key)) = map.next_key()? {
            if self.0.len() > FIELDS_MAX {
                map.next_value::<IgnoredAny>()?;
            } else {
                let value: &'a RawValue = map.next_value()?;
                self.0.push((key, Some(value.get())));
            }
        }
        Ok(())
    }
}

/// A key, borrowed where it has no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'a> serde::Deserialize<'a> for Key<'a> {
    fn deserialize<D: serde::Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'a> Visitor<'a> for KeyVisitor {
            type Value = Key<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E>(self, text: &'a str) -> Result<Key<'a>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Key<'a>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// Collects the items of a list, and counts those past the most allowed without keeping them.
struct Items<'a> {
    list: Vec<&'a str>,
    max: usize,
    seen: usize,
}

impl<'a> Visitor<'a> for &mut Items<'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<(), A::Error> {
        loop {
            if self.seen < self.max {
                let Some(item) = seq.next_element::<&'a RawValue>()? else {
                    break;
                };
                self.list.push(item.get());
            } else if seq.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
            self.seen += 1;
        }
        Ok(())
    }
}
