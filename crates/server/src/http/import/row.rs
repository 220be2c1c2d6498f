//! One row of an import, whichever way it was written: which columns there are, and what a cell may hold.

use stockade_core::{Id, Reason};

use crate::http::json::Faults;
use crate::http::kind::{FIGURE, IdText, Kind, QUANTITY, ReasonText, Whole};
use crate::http::problem::FieldError;

/// What a figure in the file means. It must be said: a file of deliveries taken for a count empties the shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// What is on hand, reserved units included.
    Target,
    /// What came in, and is added.
    Delivery,
}

impl Meaning {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Delivery => "delivery",
        }
    }
}

/// What every row of an import shares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) meaning: Meaning,
    /// Counts hold whatever was sold meanwhile.
    pub(super) force: bool,
}

/// A column that a file may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Sku,
    Location,
    Units,
    SoldSeen,
    IfRevision,
    Id,
    Reason,
    /// Of an export, and not looked at.
    Ignored,
}

/// How many columns are looked at.
pub(super) const READ: usize = 7;

const COUNTS: &[(&str, Column)] = &[
    ("sku", Column::Sku),
    ("location", Column::Location),
    ("on_hand", Column::Units),
    ("quantity", Column::Units),
    ("sold_seen", Column::SoldSeen),
    // An export says how many had been sold when it was made: just what a count made from it has seen.
    ("sold", Column::SoldSeen),
    ("if_revision", Column::IfRevision),
    ("id", Column::Id),
    ("reason", Column::Reason),
    ("reserved", Column::Ignored),
    ("safety_stock", Column::Ignored),
    ("available", Column::Ignored),
    ("revision", Column::Ignored),
];

// Columns of an export are not taken here: a count that is added by mistake would double the stock.
const DELIVERIES: &[(&str, Column)] = &[
    ("sku", Column::Sku),
    ("location", Column::Location),
    ("quantity", Column::Units),
    ("if_revision", Column::IfRevision),
    ("id", Column::Id),
    ("reason", Column::Reason),
];

/// The name of a column in a refusal.
pub(super) const fn name_of(column: Column, rules: Rules) -> &'static str {
    match column {
        Column::Sku => "sku",
        Column::Location => "location",
        Column::Units => match rules.meaning {
            Meaning::Target => "on_hand",
            Meaning::Delivery => "quantity",
        },
        Column::SoldSeen => "sold_seen",
        Column::IfRevision => "if_revision",
        Column::Id => "id",
        Column::Reason => "reason",
        Column::Ignored => "",
    }
}

impl Rules {
    /// The columns that a file may have.
    pub(super) const fn columns(self) -> &'static [(&'static str, Column)] {
        match self.meaning {
            Meaning::Target => COUNTS,
            Meaning::Delivery => DELIVERIES,
        }
    }

    pub(super) fn column(self, name: &str) -> Option<(&'static str, Column)> {
        self.columns().iter().find(|(known, _)| *known == name).copied()
    }

    /// The columns, for a refusal.
    pub(super) fn known(self) -> String {
        let names: Vec<&str> = self.columns().iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    /// The range of the figure: a delivery of nothing is a mistake, a count of nothing is not.
    pub(super) const fn units(self) -> &'static Whole {
        match self.meaning {
            Meaning::Target => &FIGURE,
            Meaning::Delivery => &QUANTITY,
        }
    }
}

/// A row that can be read.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Counted from 1, without the header and blank lines.
    pub(super) number: u64,
    /// Where it ends in the file, from 1.
    pub(super) line: u64,
    pub(super) sku: Id,
    pub(super) location: Id,
    pub(super) units: u64,
    pub(super) sold_seen: Option<u64>,
    pub(super) if_revision: Option<u64>,
    pub(super) id: Option<Id>,
    pub(super) reason: Option<Reason>,
}

/// A row that cannot.
#[derive(Debug)]
pub(super) struct BadRow {
    pub(super) number: u64,
    pub(super) line: u64,
    /// As it stands there, if it does.
    pub(super) sku: Option<String>,
    pub(super) errors: Vec<FieldError>,
}

/// A row as it was found.
pub(super) type Found = Result<Row, BadRow>;

/// Cells of a row by column; `None`: empty, or there is no such column.
pub(super) type Cells<'a> = [Option<&'a str>; READ];

/// Puts a row together from plain texts.
pub(super) fn from_cells(
    number: u64,
    line: u64,
    cells: &Cells<'_>,
    rules: Rules,
    mut faults: Faults,
) -> Found {
    let mut of = Reading {
        cells,
        rules,
        faults: &mut faults,
    };
    let sku = of.need(Column::Sku, |text| Id::new(text).ok(), &IdText.allowed());
    let location = of.may(Column::Location, |text| Id::new(text).ok(), &IdText.allowed());
    let range = rules.units();
    let units = of.need(Column::Units, |text| range.of(text), &range.allowed());
    let sold_seen = of.may(Column::SoldSeen, |text| FIGURE.of(text), &FIGURE.allowed());
    let if_revision = of.may(Column::IfRevision, |text| FIGURE.of(text), &FIGURE.allowed());
    let id = of.may(Column::Id, |text| Id::new(text).ok(), &IdText.allowed());
    let reason = of.may(
        Column::Reason,
        |text| Reason::new(text).ok(),
        &ReasonText.allowed(),
    );
    let row = sku.zip(units).map(|(sku, units)| Row {
        number,
        line,
        sku,
        location: location.unwrap_or_else(Id::default_name),
        units,
        sold_seen: sold_seen.filter(|_| !rules.force),
        if_revision,
        id,
        reason,
    });
    faults.all(row).map_err(|errors| BadRow {
        number,
        line,
        sku: cells[Column::Sku as usize].map(crate::http::json::shortened),
        errors,
    })
}

struct Reading<'a, 'f> {
    cells: &'a Cells<'a>,
    rules: Rules,
    faults: &'f mut Faults,
}

impl Reading<'_, '_> {
    fn may<T>(&mut self, column: Column, read: impl Fn(&str) -> Option<T>, allowed: &str) -> Option<T> {
        let text = self.cells.get(column as usize).copied().flatten()?;
        let value = read(text);
        if value.is_none() {
            self.faults
                .of(name_of(column, self.rules), text, allowed.to_owned());
        }
        value
    }

    fn need<T>(&mut self, column: Column, read: impl Fn(&str) -> Option<T>, allowed: &str) -> Option<T> {
        if self.cells.get(column as usize).copied().flatten().is_none() {
            self.faults
                .of(name_of(column, self.rules), "nothing", allowed.to_owned());
            return None;
        }
        self.may(column, read, allowed)
    }
}
