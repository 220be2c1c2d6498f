//! NDJSON as it comes in pieces: one object a line, LF or CRLF, blank lines passed over.

use super::ROW_BYTES_MAX;
use super::row::{BadRow, Column, Found, READ, Row, Rules, name_of};
use crate::http::json::{self, Faults, Object, Path};
use crate::http::kind::{Anything, FIGURE, IdText, ReasonText};
use crate::http::problem::{FieldError, Problem};

use stockade_core::Id;

/// A reader of rows.
pub(super) struct Lines {
    rules: Rules,
    line: Vec<u8>,
    /// The line under way is too long; the rest of it is passed over.
    over: bool,
    ended: u64,
    rows: u64,
}

impl Lines {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            line: Vec::new(),
            over: false,
            ended: 0,
            rows: 0,
        }
    }

    /// Takes a piece; an empty one is the end of the file.
    pub(super) fn take(&mut self, piece: &[u8], ignored: &mut Vec<&'static str>, found: &mut Vec<Found>) {
        if piece.is_empty() {
            if !self.line.is_empty() || self.over {
                self.end(ignored, found);
            }
            return;
        }
        let mut parts = piece.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            if self.line.len() + part.len() > ROW_BYTES_MAX {
                self.over = true;
                self.line.clear();
            } else if !self.over {
                self.line.extend_from_slice(part);
            }
            if parts.peek().is_some() {
                self.end(ignored, found);
            }
        }
    }

    fn end(&mut self, ignored: &mut Vec<&'static str>, found: &mut Vec<Found>) {
        self.ended += 1;
        let line = std::mem::take(&mut self.line);
        let over = std::mem::take(&mut self.over);
        if over || line.iter().any(|byte| !byte.is_ascii_whitespace()) {
            self.rows += 1;
            let read = if over {
                Err((
                    None,
                    vec![FieldError {
                        field: "row".to_owned(),
                        found: "more bytes".to_owned(),
                        allowed: format!("at most {ROW_BYTES_MAX} bytes").into(),
                    }],
                ))
            } else {
                self.row(&line, ignored)
            };
            let (number, line) = (self.rows, self.ended);
            found.push(read.map_err(|(sku, errors)| BadRow {
                number,
                line,
                sku,
                errors,
            }));
        }
        self.line = line;
        self.line.clear();
    }

    fn row(
        &self,
        line: &[u8],
        ignored: &mut Vec<&'static str>,
    ) -> Result<Row, (Option<String>, Vec<FieldError>)> {
        let text = match json::text_of(line) {
            Ok(text) => text,
            Err(problem) => return Err((None, not_json(line, &problem))),
        };
        let mut faults = Faults::default();
        let mut sku_found = None;
        let row = Object::read(text, Path::Root, &mut faults, |object| {
            let row = self.fields(object, ignored);
            if let Some(row) = &row {
                sku_found = Some(row.sku.to_string());
            }
            row
        });
        faults.all(row).map_err(|errors| (sku_found, errors))
    }

    fn fields(&self, object: &mut Object<'_, '_>, ignored: &mut Vec<&'static str>) -> Option<Row> {
        let rules = self.rules;
        let mut units = None;
        let mut sold_seen = None;
        let mut given: [&str; READ] = [""; READ];
        let mut sku = None;
        let mut row = (None, None, None, None);
        for (name, column) in rules.columns() {
            let here = match column {
                Column::Sku => {
                    sku = object.need(name, &IdText);
                    continue;
                }
                Column::Location => {
                    row.0 = object.may(name, &IdText);
                    continue;
                }
                Column::IfRevision => {
                    row.1 = object.may(name, &FIGURE);
                    continue;
                }
                Column::Id => {
                    row.2 = object.may(name, &IdText);
                    continue;
                }
                Column::Reason => {
                    row.3 = object.may(name, &ReasonText);
                    continue;
                }
                Column::Ignored => {
                    if object.may(name, &Anything).is_some() && !ignored.contains(name) {
                        ignored.push(name);
                    }
                    continue;
                }
                Column::Units if object.has(name) => {
                    units = object.may(name, rules.units());
                    true
                }
                Column::SoldSeen if object.has(name) => {
                    sold_seen = object.may(name, &FIGURE);
                    if rules.force && *name == "sold_seen" {
                        object.fault(name, "a figure", "only one of force and sold_seen");
                    }
                    true
                }
                Column::Units | Column::SoldSeen => {
                    // Asked for all the same, so that a refusal lists it among what is known.
                    let _ = object.may(name, &Anything);
                    false
                }
            };
            if let Some(first) = given.get_mut(*column as usize).filter(|_| here) {
                if !first.is_empty() {
                    object.fault(
                        name,
                        "both",
                        if *column == Column::Units {
                            "only one of on_hand and quantity"
                        } else {
                            "only one of sold_seen and sold"
                        },
                    );
                }
                *first = name;
            }
        }
        if given
            .get(Column::Units as usize)
            .is_some_and(|name| name.is_empty())
        {
            object.need(name_of(Column::Units, rules), rules.units());
        }
        let (location, if_revision, id, reason) = row;
        Some(Row {
            number: self.rows,
            line: self.ended,
            sku: sku?,
            location: location.unwrap_or_else(Id::default_name),
            units: units?,
            sold_seen: sold_seen.filter(|_| !rules.force),
            if_revision,
            id,
            reason,
        })
    }
}

/// What is wrong with a line, as a fault of the row.
fn not_json(line: &[u8], problem: &Problem) -> Vec<FieldError> {
    let what = match problem {
        Problem::Malformed { column, what, .. } => format!("an object in JSON; column {column}: {what}"),
        _ => "an object in JSON".to_owned(),
    };
    vec![FieldError {
        field: "row".to_owned(),
        found: json::shortened(&String::from_utf8_lossy(line)),
        allowed: what.into(),
    }]
}
