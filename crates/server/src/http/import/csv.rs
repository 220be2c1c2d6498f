//! CSV as it comes in pieces: RFC 4180 with a header, commas, quotes, LF or CRLF.
//!
//! Nothing but the row under way is kept, and a row has a bound, so that a quote that is never closed cannot collect the
//! rest of the file.

use csv_core::{ReadRecordResult, Reader};

use super::row::{BadRow, Cells, Column, Found, READ, Rules, from_cells};
use super::{COLUMNS_MAX, ROW_BYTES_MAX};
use crate::http::json::{Faults, shortened};
use crate::http::problem::{FieldError, Problem};

/// A reader of rows.
pub(super) struct Csv {
    reader: Reader,
    rules: Rules,
    header: Option<Header>,
    /// The text of the row under way, and where its fields end.
    text: Box<[u8; ROW_BYTES_MAX]>,
    ends: [usize; COLUMNS_MAX],
    text_len: usize,
    ends_len: usize,
    /// What the row under way has too much of; the rest of it is passed over.
    over: Option<&'static str>,
    lines: u64,
    rows: u64,
}

/// Which column stands where.
struct Header {
    at: [Option<usize>; READ],
    fields: usize,
}

impl Csv {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            reader: Reader::new(),
            rules,
            header: None,
            text: Box::new([0; ROW_BYTES_MAX]),
            ends: [0; COLUMNS_MAX],
            text_len: 0,
            ends_len: 0,
            over: None,
            lines: 0,
            rows: 0,
        }
    }

    /// Takes a piece; an empty one is the end of the file.
    pub(super) fn take(
        &mut self,
        mut piece: &[u8],
        ignored: &mut Vec<&'static str>,
        found: &mut Vec<Found>,
    ) -> Result<(), Problem> {
        let ending = piece.is_empty();
        loop {
            let (result, read, written, ended) = self.reader.read_record(
                piece,
                self.text.get_mut(self.text_len..).unwrap_or_default(),
                self.ends.get_mut(self.ends_len..).unwrap_or_default(),
            );
            let (taken, rest) = piece.split_at(read);
            self.lines += newlines(taken);
            let ends_line = taken.last() == Some(&b'\n');
            piece = rest;
            self.text_len += written;
            self.ends_len += ended;
            match result {
                ReadRecordResult::InputEmpty if ending => {}
                ReadRecordResult::InputEmpty => return Ok(()),
                ReadRecordResult::OutputFull => {
                    self.over.get_or_insert("bytes");
                    self.text_len = 0;
                }
                ReadRecordResult::OutputEndsFull => {
                    self.over.get_or_insert("columns");
                    self.ends_len = 0;
                }
                ReadRecordResult::Record => {
                    // A row that ends with CR has its LF still to come.
                    let line = if ends_line { self.lines } else { self.lines + 1 };
                    self.record(line, ignored, found)?;
                    (self.text_len, self.ends_len, self.over) = (0, 0, None);
                }
                ReadRecordResult::End => {
                    return match self.header {
                        Some(_) => Ok(()),
                        None => Err(Problem::invalid(
                            "columns",
                            "an empty file",
                            format!("a header; columns are {}", self.rules.known()),
                        )),
                    };
                }
            }
        }
    }

    /// The text of a field, if there are so many.
    fn field(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(..self.ends_len)?.get(index)?;
        let start = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.text.get(start..end)
    }

    fn record(
        &mut self,
        line: u64,
        ignored: &mut Vec<&'static str>,
        found: &mut Vec<Found>,
    ) -> Result<(), Problem> {
        let Some(header) = &self.header else {
            self.header = Some(self.read_header(ignored)?);
            return Ok(());
        };
        self.rows += 1;
        let number = self.rows;
        let bad = |field: &str, found: String, allowed: String| BadRow {
            number,
            line,
            sku: None,
            errors: vec![FieldError {
                field: field.to_owned(),
                found,
                allowed: allowed.into(),
            }],
        };
        if let Some(what) = self.over {
            let allowed =
                format!("at most {ROW_BYTES_MAX} bytes and {COLUMNS_MAX} columns; is a quote not closed?");
            found.push(Err(bad("row", format!("more {what}"), allowed)));
            return Ok(());
        }
        if self.ends_len != header.fields {
            let allowed = format!("{}, as in the header", columns(header.fields));
            found.push(Err(bad("row", columns(self.ends_len), allowed)));
            return Ok(());
        }
        let mut faults = Faults::default();
        let mut cells: Cells<'_> = [None; READ];
        for (column, at) in header.at.iter().enumerate() {
            let Some(bytes) = at.and_then(|at| self.field(at)).filter(|bytes| !bytes.is_empty()) else {
                continue;
            };
            match (std::str::from_utf8(bytes), cells.get_mut(column)) {
                (Ok(text), Some(cell)) => *cell = Some(text),
                _ => faults.of(
                    "row",
                    &shortened(&String::from_utf8_lossy(bytes)),
                    "UTF-8".to_owned(),
                ),
            }
        }
        found.push(from_cells(number, line, &cells, self.rules, faults));
        Ok(())
    }

    fn read_header(&self, ignored: &mut Vec<&'static str>) -> Result<Header, Problem> {
        let mut header = Header {
            at: [None; READ],
            fields: self.ends_len,
        };
        let mut names: [&str; READ] = [""; READ];
        let mut faults = Faults::default();
        if self.over.is_some() {
            let allowed = format!("a header of at most {COLUMNS_MAX} columns and {ROW_BYTES_MAX} bytes");
            return Err(Problem::invalid("columns", "more", allowed));
        }
        for index in 0..self.ends_len {
            let text = String::from_utf8_lossy(self.field(index).unwrap_or_default());
            let Some((name, column)) = self.rules.column(&text) else {
                let hint = if text.contains([';', '\t']) {
                    "; columns are separated by commas"
                } else {
                    ""
                };
                let allowed = format!("no such column; known are {}{hint}", self.rules.known());
                faults.of("columns", &text, allowed);
                continue;
            };
            if column == Column::Ignored {
                ignored.push(name);
                continue;
            }
            let (Some(at), Some(first)) =
                (header.at.get_mut(column as usize), names.get_mut(column as usize))
            else {
                continue;
            };
            if at.is_some() {
                let allowed = if *first == name {
                    format!("the column {name} once")
                } else {
                    format!("only one of {first} and {name}")
                };
                faults.of("columns", name, allowed);
            }
            (*at, *first) = (Some(index), name);
        }
        for column in [Column::Sku, Column::Units] {
            if header.at.get(column as usize).copied().flatten().is_none() {
                let name = super::row::name_of(column, self.rules);
                faults.of(
                    "columns",
                    "nothing",
                    format!("a column {name}; known are {}", self.rules.known()),
                );
            }
        }
        if self.rules.force && names.contains(&"sold_seen") {
            faults.of(
                "columns",
                "sold_seen",
                "only one of force and sold_seen".to_owned(),
            );
        }
        faults.done(Some(header))
    }
}

fn columns(count: usize) -> String {
    format!("{count} column{}", if count == 1 { "" } else { "s" })
}

#[expect(
    clippy::naive_bytecount,
    reason = "pieces are small, and a row costs far more than its bytes"
)]
fn newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}
