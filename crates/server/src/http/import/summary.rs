//! What came of an import: counts, and a report for each row that was not done.

use std::collections::BTreeMap;

use serde::Serialize;
use stockade_core::{Done, DoneCode, Refusal, Subject};
use utoipa::ToSchema;

use super::Import;
use super::row::{BadRow, Meaning, Row};
use super::scratch::Decrease;
use super::work::Worked;
use crate::http::code::Code;
use crate::http::problem::{FieldError, Problem};

/// The most rows that are reported one by one; all are counted.
pub(crate) const REPORTS_MAX: usize = 1_000;

/// What came of an import.
#[derive(Debug)]
pub(crate) struct Summary {
    id: Option<String>,
    meaning: Meaning,
    dry_run: bool,
    pub(super) rows: u64,
    created: u64,
    changed: u64,
    replayed: u64,
    refused: BTreeMap<&'static str, u64>,
    reports: Vec<Report>,
    less: u64,
    decreases: Vec<DecreaseView>,
    pub(super) ignored: Vec<&'static str>,
}

/// A row that was not done.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ImportRow)]
pub(crate) struct Report {
    /// Counted from 1, without the header and blank lines.
    row: u64,
    /// Where the row ends in the file, from 1.
    line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sku: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    /// `invalid`, `below_reserved`, `revision_conflict` ...
    code: &'static str,
    /// For people; may change.
    detail: String,
    /// Of `invalid`: what was wrong with which field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldError>,
}

/// A row after which there would be less on hand than now.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ImportDecrease)]
pub(crate) struct DecreaseView {
    row: u64,
    sku: String,
    location: String,
    on_hand_before: u64,
    on_hand_after: u64,
}

impl Summary {
    pub(super) fn new(import: &Import) -> Self {
        Self {
            id: import.id.as_ref().map(ToString::to_string),
            meaning: import.meaning,
            dry_run: import.dry_run,
            rows: 0,
            created: 0,
            changed: 0,
            replayed: 0,
            refused: BTreeMap::new(),
            reports: Vec::new(),
            less: 0,
            decreases: Vec::new(),
            ignored: Vec::new(),
        }
    }

    pub(super) fn unreadable(&mut self, bad: BadRow) {
        let BadRow {
            number,
            line,
            sku,
            errors,
        } = bad;
        let problem = Problem::Invalid(errors);
        self.refuse(&problem, |code, detail| Report {
            row: number,
            line,
            sku,
            location: None,
            code,
            detail,
            errors: Vec::new(),
        });
    }

    fn refuse(&mut self, problem: &Problem, report: impl FnOnce(&'static str, String) -> Report) {
        let code = problem.code().as_str();
        *self.refused.entry(code).or_default() += 1;
        if self.reports.len() < REPORTS_MAX {
            let view = problem.view();
            let mut report = report(code, view.detail().to_owned());
            report.errors = view.errors().to_vec();
            self.reports.push(report);
        }
    }

    /// Adds what came of a group; an error is why it went no further.
    pub(super) fn add(&mut self, worked: Worked) -> Result<(), Problem> {
        for (row, answer) in worked.answers {
            match answer {
                Ok(done) => self.done(&done),
                Err(refusal) => self.refused(&row, refusal),
            }
        }
        self.less += worked.decreases.len() as u64;
        let room = REPORTS_MAX.saturating_sub(self.decreases.len());
        self.decreases.extend(
            worked
                .decreases
                .into_iter()
                .take(room)
                .map(|less: Decrease| DecreaseView {
                    row: less.row,
                    sku: less.sku.to_string(),
                    location: less.location.to_string(),
                    on_hand_before: less.before,
                    on_hand_after: less.after,
                }),
        );
        worked.stopped.map_or(Ok(()), Err)
    }

    fn done(&mut self, done: &Done) {
        match (done.code, &done.subject) {
            (DoneCode::Replayed, _) => self.replayed += 1,
            (_, Subject::Stock(subject)) if subject.created => self.created += 1,
            _ => self.changed += 1,
        }
    }

    fn refused(&mut self, row: &Row, mut refusal: Refusal) {
        if let (Meaning::Delivery, Refusal::Invalid(fields)) = (self.meaning, &mut refusal) {
            // What the command calls so is the row's quantity.
            for field in fields
                .iter_mut()
                .filter(|field| field.field == "delta" || field.field == "on_hand")
            {
                "quantity".clone_into(&mut field.field);
            }
        }
        self.refuse(&Problem::Refused(refusal), |code, detail| Report {
            row: row.number,
            line: row.line,
            sku: Some(row.sku.to_string()),
            location: Some(row.location.to_string()),
            code,
            detail,
            errors: Vec::new(),
        });
    }

    /// Why an import ended before its file did.
    pub(super) fn stopped(self, cause: Problem) -> Problem {
        let refused: u64 = self.refused.values().sum();
        Problem::ImportStopped {
            cause: Box::new(cause),
            rows: self.created + self.changed + self.replayed + refused,
            dry_run: self.dry_run,
        }
    }

    /// The codes to count.
    pub(crate) fn codes(&self) -> impl Iterator<Item = (Code, u64)> + '_ {
        let refused = Code::ALL
            .into_iter()
            .filter_map(|code| Some((code, *self.refused.get(code.as_str())?)));
        [
            (Code::Ok, self.created + self.changed),
            (Code::Replayed, self.replayed),
        ]
        .into_iter()
        .chain(refused)
    }

    pub(crate) fn view(&self) -> ImportView<'_> {
        let refused: u64 = self.refused.values().sum();
        ImportView {
            id: self.id.as_deref(),
            r#as: self.meaning.as_str(),
            dry_run: self.dry_run,
            rows: self.rows,
            created: self.created,
            changed: self.changed,
            replayed: self.replayed,
            refused: &self.refused,
            reports: &self.reports,
            reports_truncated: refused > self.reports.len() as u64,
            decreased: self.dry_run.then_some(self.less),
            decreases: self.dry_run.then_some(&self.decreases),
            ignored_columns: &self.ignored,
        }
    }
}

/// What came of an import. Of a dry run: what would.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ImportAnswer)]
pub(crate) struct ImportView<'a> {
    /// The import's id: sent again with it, rows that were done are replayed.
    id: Option<&'a str>,
    /// `target` or `delivery`.
    r#as: &'static str,
    dry_run: bool,
    /// Rows read: the sum of the four below.
    rows: u64,
    /// Rows that created a SKU.
    created: u64,
    /// Rows that changed one.
    changed: u64,
    /// Rows that had been done before, by an import with the same id.
    replayed: u64,
    /// Rows that were refused, by code.
    #[schema(value_type = BTreeMap<String, u64>)]
    refused: &'a BTreeMap<&'static str, u64>,
    /// The first 1,000 rows that were refused.
    #[schema(value_type = Vec<Report>)]
    reports: &'a [Report],
    /// There were more.
    reports_truncated: bool,
    /// Of a dry run: rows after which there would be less on hand than now.
    #[serde(skip_serializing_if = "Option::is_none")]
    decreased: Option<u64>,
    /// Of a dry run: the first 1,000 of those.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<DecreaseView>>)]
    decreases: Option<&'a Vec<DecreaseView>>,
    /// Columns of an export that an import does not look at.
    #[schema(value_type = Vec<String>)]
    ignored_columns: &'a [&'static str],
}
