//! SKUs.

use std::collections::BTreeMap;

use stockade_core::{Counters, Id, LocationRecord, QUANTITY_MAX, Settings, SkuRecord};

use super::id;
use crate::layout::number;

/// A SKU as it is held: the record, and whether its owner usage is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The SKU.
    pub record: SkuRecord,
    /// Whether owner usage is kept on the node.
    pub tracked: bool,
}

fn lines(names: &[Id]) -> String {
    names.iter().map(Id::as_str).collect::<Vec<_>>().join("\n")
}

fn names(text: &str) -> Option<Vec<Id>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split('\n').map(id).collect()
}

fn counters_text(counters: &Counters) -> String {
    let Counters {
        on_hand,
        reserved,
        sold,
        safety_stock,
        version,
    } = counters;
    format!("on_hand={on_hand} reserved={reserved} sold={sold} safety_stock={safety_stock} version={version}")
}

/// Counters from their text; `None` also for counters that contradict each other.
pub fn unpack_counters(text: &str) -> Option<Counters> {
    let mut fields = text.split(' ');
    let mut next = |name: &str| {
        let field = fields.next()?.strip_prefix(name)?.strip_prefix('=')?;
        number::<u64>(field).filter(|n| *n <= QUANTITY_MAX)
    };
    let counters = Counters {
        on_hand: next("on_hand")?,
        reserved: next("reserved")?,
        sold: next("sold")?,
        safety_stock: next("safety_stock")?,
        version: next("version")?,
    };
    let sound = counters.reserved <= counters.on_hand && counters.on_hand + counters.sold <= QUANTITY_MAX;
    (fields.next().is_none() && sound).then_some(counters)
}

// What differs from the default, by name.
fn settings_fields(settings: &Settings) -> Vec<(&'static str, String)> {
    let mut fields = Vec::new();
    let mut add = |name, value: Option<String>| {
        if let Some(value) = value {
            fields.push((name, value));
        }
    };
    add("limit_per_owner", settings.limit_per_owner.map(|n| n.to_string()));
    add("opens_at", settings.opens_at.map(|n| n.to_string()));
    add("closes_at", settings.closes_at.map(|n| n.to_string()));
    add("paused", settings.paused.then(|| "1".to_owned()));
    add("split", (!settings.split).then(|| "0".to_owned()));
    add("era", (settings.era > 0).then(|| settings.era.to_string()));
    add(
        "order",
        (!settings.order.is_empty()).then(|| lines(&settings.order)),
    );
    add(
        "group",
        settings.group.as_ref().map(|group| group.as_str().to_owned()),
    );
    fields
}

// Takes one field into settings. `None`: it cannot be read; `Some(false)`: it is none of them.
fn settings_field(settings: &mut Settings, name: &str, value: &str) -> Option<bool> {
    match name {
        "limit_per_owner" => {
            settings.limit_per_owner = Some(number(value).filter(|n| (1..=QUANTITY_MAX).contains(n))?);
        }
        "opens_at" => settings.opens_at = Some(signed(value)?),
        "closes_at" => settings.closes_at = Some(signed(value)?),
        "paused" if value == "1" => settings.paused = true,
        "split" if value == "0" => settings.split = false,
        "era" => settings.era = number(value).filter(|era| *era > 0)?,
        "order" => settings.order = names(value).filter(|order| !order.is_empty())?,
        "group" => settings.group = Some(id(value)?),
        "paused" | "split" => return None,
        _ => return Some(false),
    }
    Some(true)
}

// Times may be set by operators to anything.
fn signed(text: &str) -> Option<i64> {
    match text.strip_prefix('-') {
        Some(digits) => number::<u64>(digits)
            .filter(|n| *n > 0)
            .and_then(|n| 0_i64.checked_sub_unsigned(n)),
        None => number(text),
    }
}

/// Settings as one text: `NAME=VALUE`, one after another with US between; empty for the default.
pub fn settings_text(settings: &Settings) -> String {
    let fields = settings_fields(settings).into_iter();
    let fields: Vec<_> = fields.map(|(name, value)| format!("{name}={value}")).collect();
    fields.join("\u{1f}")
}

/// Settings from their text.
pub fn unpack_settings(text: &str) -> Option<Settings> {
    let mut settings = Settings::default();
    if !text.is_empty() {
        for field in text.split('\u{1f}') {
            let (name, value) = field.split_once('=')?;
            settings_field(&mut settings, name, value).filter(|known| *known)?;
        }
    }
    Some(settings)
}

/// The fields of a SKU's hash.
pub fn pack_sku(record: &SkuRecord, tracked: bool) -> Vec<(String, String)> {
    let places: Vec<Id> = record.locations.iter().map(|l| l.location.clone()).collect();
    let mut fields = vec![
        ("revision".to_owned(), record.revision.to_string()),
        ("locations".to_owned(), lines(&places)),
    ];
    for place in &record.locations {
        fields.push((
            format!("location:{}", place.location),
            counters_text(&place.counters),
        ));
    }
    for (name, value) in settings_fields(&record.settings) {
        fields.push((name.to_owned(), value));
    }
    if tracked {
        fields.push(("tracked".to_owned(), "1".to_owned()));
    }
    fields
}

/// A SKU from the fields of its hash; `None` if they are not what a script would have written.
pub fn unpack_sku(tenant: Id, sku: Id, fields: &[(String, String)]) -> Option<Held> {
    let mut revision = None;
    let mut places = None;
    let mut counters = BTreeMap::new();
    let mut settings = Settings::default();
    let mut tracked = false;
    for (name, value) in fields {
        match name.as_str() {
            "revision" => revision = number(value),
            "locations" => places = names(value),
            "tracked" if value == "1" => tracked = true,
            name => match name.strip_prefix("location:") {
                Some(place) => {
                    counters.insert(place, unpack_counters(value)?);
                }
                None => {
                    settings_field(&mut settings, name, value).filter(|known| *known)?;
                }
            },
        }
    }
    let mut locations = Vec::new();
    for location in places? {
        let counters = counters.remove(location.as_str())?;
        locations.push(LocationRecord { location, counters });
    }
    let known = |name: &Id| locations.iter().any(|l| l.location == *name);
    if !counters.is_empty() || !settings.order.iter().all(known) {
        return None;
    }
    let record = SkuRecord {
        tenant,
        sku,
        revision: revision?,
        settings,
        locations,
    };
    Some(Held { record, tracked })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(text: &str) -> Id {
        Id::new(text).unwrap()
    }

    fn sample() -> SkuRecord {
        let place = |name: &str, on_hand| LocationRecord {
            location: new(name),
            counters: Counters {
                on_hand,
                reserved: 1,
                sold: 2,
                safety_stock: 3,
                version: 4,
            },
        };
        SkuRecord {
            tenant: new("t"),
            sku: new("S"),
            revision: 7,
            settings: Settings {
                limit_per_owner: Some(5),
                opens_at: Some(-1),
                closes_at: Some(2),
                paused: true,
                order: vec![new("W 1"), new("default")],
                split: false,
                group: Some(new("G=1")),
                era: 3,
            },
            locations: vec![place("default", 5), place("W 1", QUANTITY_MAX - 2)],
        }
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        let mut record = sample();
        for tracked in [true, false] {
            let fields = pack_sku(&record, tracked);
            let held = unpack_sku(new("t"), new("S"), &fields).unwrap();
            assert_eq!((held.record, held.tracked), (record.clone(), tracked));
            let text = settings_text(&record.settings);
            assert_eq!(unpack_settings(&text), Some(record.settings.clone()));
            record.settings = Settings::default();
        }
        record.locations.clear();
        let held = unpack_sku(new("t"), new("S"), &pack_sku(&record, false)).unwrap();
        assert_eq!(held.record, record);
        let lean = pack_sku(
            &SkuRecord {
                settings: Settings::default(),
                ..sample()
            },
            false,
        );
        assert_eq!(lean.len(), 4);
    }

    #[test]
    fn what_no_script_writes_is_not_read() {
        let fields = pack_sku(&sample(), true);
        let read = |fields: &[(String, String)]| unpack_sku(new("t"), new("S"), fields);
        for (at, (name, _)) in fields.iter().enumerate() {
            for value in [
                "x",
                "1e3",
                "on_hand=1",
                "on_hand=1 reserved=2 sold=0 safety_stock=0 version=1",
            ] {
                let mut damaged = fields.clone();
                damaged[at].1 = value.to_owned();
                if name != "group" {
                    assert_eq!(read(&damaged), None, "{name} {value}");
                }
            }
        }
        let mut more = fields.clone();
        more.push(("onhand".to_owned(), "1".to_owned()));
        assert_eq!(read(&more), None);
        assert_eq!(read(&fields[1..]), None);
        assert_eq!(read(&[fields[..2].to_vec(), fields[3..].to_vec()].concat()), None);
        assert_eq!(read(&[]), None);
    }
}
