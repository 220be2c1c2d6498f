//! Rows as CSV or NDJSON, in the form that an import reads back.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Serialize;
use stockade_core::{Id, SkuRecord};
use stockade_ledger::Movement;

use super::view::Shown as _;

/// How an export is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Format {
    Csv {
        /// Texts that a spreadsheet would compute get a quote before them.
        escape_formulas: bool,
    },
    Ndjson,
}

/// One location of a SKU.
#[derive(Debug, Serialize)]
struct StockRow<'a> {
    sku: &'a str,
    location: &'a str,
    on_hand: u64,
    reserved: u64,
    sold: u64,
    safety_stock: u64,
    available: u64,
    revision: u64,
}

/// Writes rows one below the other.
#[derive(Debug)]
pub(crate) struct Table {
    format: Format,
    text: String,
}

impl Table {
    /// A table of stock, with its header.
    pub(crate) fn of_stock(format: Format) -> Self {
        Self::new(
            format,
            "sku,location,on_hand,reserved,sold,safety_stock,available,revision\n",
        )
    }

    /// A table of movements, with its header.
    pub(crate) fn of_movements(format: Format) -> Self {
        Self::new(
            format,
            "number,at_ms,kind,actor,reason,reservation,owner,command,sku,location,on_hand,reserved,sold,\
             after_on_hand,after_reserved,after_sold,after_safety_stock,after_available\n",
        )
    }

    fn new(format: Format, header: &str) -> Self {
        Self {
            format,
            text: match format {
                Format::Csv { .. } => header.to_owned(),
                Format::Ndjson => String::new(),
            },
        }
    }

    /// What was written since the last time.
    pub(crate) fn take(&mut self) -> String {
        let room = self.text.capacity();
        std::mem::replace(&mut self.text, String::with_capacity(room))
    }

    /// One row for each location.
    pub(crate) fn stock(&mut self, stock: &SkuRecord) {
        for at in &stock.locations {
            let row = StockRow {
                sku: stock.sku.as_str(),
                location: at.location.as_str(),
                on_hand: at.counters.on_hand,
                reserved: at.counters.reserved,
                sold: at.counters.sold,
                safety_stock: at.counters.safety_stock,
                available: at.counters.available(),
                revision: stock.revision,
            };
            match self.format {
                Format::Ndjson => self.json(&row),
                Format::Csv { .. } => {
                    self.cell(row.sku);
                    self.cell(row.location);
                    // Writing to a String does not fail; neither does it below.
                    let _ = writeln!(
                        self.text,
                        "{},{},{},{},{},{}",
                        row.on_hand, row.reserved, row.sold, row.safety_stock, row.available, row.revision
                    );
                }
            }
        }
    }

    /// One row.
    pub(crate) fn movement(&mut self, movement: &Movement) {
        let Format::Csv { .. } = self.format else {
            self.json(&movement.view());
            return;
        };
        let _ = write!(self.text, "{},{},", movement.number, movement.at);
        self.cell(&movement.kind);
        self.cell(movement.actor.as_str());
        self.cell(&movement.reason);
        for id in [
            &movement.reservation,
            &movement.owner,
            &movement.command,
            &movement.sku,
            &movement.location,
        ] {
            self.cell(id.as_ref().map_or("", Id::as_str));
        }
        let _ = write!(
            self.text,
            "{},{},{}",
            movement.on_hand, movement.reserved, movement.sold
        );
        let _ = match &movement.after {
            Some(after) => writeln!(
                self.text,
                ",{},{},{},{},{}",
                after.on_hand,
                after.reserved,
                after.sold,
                after.safety_stock,
                after.available()
            ),
            None => writeln!(self.text, ",,,,,"),
        };
    }

    fn json(&mut self, row: &impl Serialize) {
        // Views hold texts and integers only, which cannot fail; said rather than hidden if it ever does.
        match serde_json::to_string(row) {
            Ok(row) => self.text.push_str(&row),
            Err(error) => tracing::error!(%error, "a row could not be written"),
        }
        self.text.push('\n');
    }

    /// A text and the comma after it.
    fn cell(&mut self, text: &str) {
        let text = match self.format {
            Format::Csv {
                escape_formulas: true,
            } => escaped(text),
            Format::Csv { .. } | Format::Ndjson => Cow::Borrowed(text),
        };
        let is_plain = !text.contains(['"', ',', '\n', '\r']) && text.trim().len() == text.len();
        if is_plain {
            self.text.push_str(&text);
        } else {
            self.text.push('"');
            self.text.push_str(&text.replace('"', "\"\""));
            self.text.push('"');
        }
        self.text.push(',');
    }
}

/// A text that no spreadsheet takes for a formula.
fn escaped(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let rows = [
            ("plain", false, "plain,"),
            ("a,b", false, "\"a,b\","),
            ("a\"b", false, "\"a\"\"b\","),
            (" a", false, "\" a\","),
            ("a\nb", false, "\"a\nb\","),
            ("=1+1", false, "=1+1,"),
            ("=1+1", true, "'=1+1,"),
            ("+1", true, "'+1,"),
            ("-1", true, "'-1,"),
            ("@a", true, "'@a,"),
            ("\ta", true, "'\ta,"),
            ("\ra", true, "\"'\ra\","),
            ("=a,\"b\"", true, "\"'=a,\"\"b\"\"\","),
            ("a=b", true, "a=b,"),
            ("", true, ","),
        ];
        for (text, escape_formulas, expected) in rows {
            let mut table = Table::new(Format::Csv { escape_formulas }, "");
            table.cell(text);
            assert_eq!(table.take(), expected, "{text:?}");
        }
    }
}
