//! Answers for people: tables and sentences.

use std::fmt;
use std::io::Write as _;

use comfy_table::{Table, presets::UTF8_FULL_CONDENSED};
use serde_json::Value;

use super::Failure;
use super::client::Answer;

/// A problem detail as it came.
#[derive(Debug)]
pub(crate) struct Problem {
    status: u16,
    body: Value,
    text: String,
    /// The id of the command, if it has one of its own.
    id: Option<String>,
}

impl Problem {
    pub(crate) fn of(status: u16, body: Value, text: String, id: Option<String>) -> Self {
        Self {
            status,
            body,
            text,
            id,
        }
    }

    /// 1 refused, 3 not known whether it was done.
    pub(crate) fn exit_code(&self) -> u8 {
        if self.status == 504 { 3 } else { 1 }
    }

    /// Whether it may be otherwise in a moment.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self.status, 408 | 429 | 503 | 504)
    }

    /// As it came, for programs.
    pub(crate) fn json(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |name: &str| self.body.get(name).and_then(Value::as_str).unwrap_or_default();
        write!(f, "{} ({}): {}", text("title"), text("code"), text("detail"))?;
        let rows = |name: &str| {
            self.body
                .get(name)
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default()
        };
        for line in rows("lines") {
            write!(f, "\n  line {}", fields(&line))?;
        }
        let errors = rows("errors");
        for error in errors.iter().filter(|_| errors.len() > 1) {
            let part = |name: &str| shown(error.get(name));
            write!(
                f,
                "\n  {}: found {}, allowed {}",
                part("field"),
                part("found"),
                part("allowed")
            )?;
        }
        if self.status == 401 {
            f.write_str("\n  here the key is given in STOCKADE_KEY, or with --key-file or --key")?;
        }
        // Refusals are answers; these are to be sent again.
        if let Some(id) = self.id.as_ref().filter(|_| self.status >= 500) {
            write!(f, "\n  the id was {id}")?;
        }
        Ok(())
    }
}

/// `index 0, sku A/1, asked 3, available 2`: what is there, in this order.
fn fields(line: &Value) -> String {
    const NAMES: [&str; 11] = [
        "index",
        "sku",
        "location",
        "asked",
        "available",
        "used",
        "limit",
        "expected",
        "found",
        "opens_at_ms",
        "closes_at_ms",
    ];
    let given = NAMES.iter().filter_map(|name| Some((name, line.get(name)?)));
    let texts: Vec<String> = given
        .map(|(name, value)| format!("{name} {}", shown(Some(value))))
        .collect();
    texts.join(", ")
}

/// A value in a table's cell. Control characters cannot occur in ids; other texts are shown escaped if they have any.
pub(crate) fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) if text.chars().any(char::is_control) => text.escape_debug().to_string(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| shown(Some(item)))
            .collect::<Vec<_>>()
            .join(", "),
        Some(other) => other.to_string(),
    }
}

/// A moment in a table's cell.
pub(crate) fn moment(value: Option<&Value>) -> String {
    match value
        .and_then(Value::as_i64)
        .map(jiff::Timestamp::from_millisecond)
    {
        Some(Ok(at)) => format!("{at:.3}"),
        _ => shown(value),
    }
}

/// A table with these heads.
pub(crate) fn table(heads: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header(heads);
    table
}

/// Prints the service's JSON, or what `people` makes of it.
pub(crate) fn print(
    json: bool,
    answer: &Answer,
    people: impl FnOnce(&Value) -> String,
) -> Result<(), Failure> {
    if json {
        line(&answer.text)
    } else {
        line(&people(&answer.body))
    }
}

/// Prints a text and a line's end.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush()) {
        // Whoever reads had enough, as `head` does.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::Other(format!("cannot write to stdout: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// For programs a refusal is JSON on stdout too.
pub(crate) fn or_problem(json: bool, answer: Result<Answer, Failure>) -> Result<Answer, Failure> {
    if let Err(Failure::Refused(problem)) = &answer
        && json
    {
        line(problem.json())?;
    }
    answer
}
