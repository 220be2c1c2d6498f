//! Stock by the file: counts or deliveries, read while they come, done in groups, reported by row.
//!
//! A row is a stock command like any other. Its id is the import's id and the row's number, or what its own column
//! says, so that a file that is sent again after a cut is replayed as far as it was done and goes on from there. A crash
//! at any point leaves each row done or not begun.

mod csv;
mod lines;
mod row;
mod scratch;
mod summary;
mod work;

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use stockade_core::{Action, Command, Id, Reason};
use tokio::time::timeout;

use self::csv::Csv;
use self::lines::Lines;
use self::row::{Found, Row, Rules};
use self::summary::Summary;
use self::work::{Worked, Worker};
use super::problem::Problem;

pub(crate) use row::Meaning;
pub(crate) use summary::ImportView;

/// The most rows of a file.
pub(crate) const ROWS_MAX: u64 = 10_000_000;
/// The most bytes of a row.
pub(crate) const ROW_BYTES_MAX: usize = 16 << 10;
/// The most columns of a file.
const COLUMNS_MAX: usize = 64;
/// The most bytes of an import's id, so that those of its rows are ids too.
pub(crate) const IMPORT_ID_BYTES_MAX: usize = 112;
/// How many rows are decided together. One group is under way while the next is read.
const GROUP: usize = 1_000;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Csv,
    Ndjson,
}

/// What an import is told beside its file.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) id: Option<Id>,
    pub(crate) meaning: Meaning,
    pub(crate) format: Format,
    pub(crate) dry_run: bool,
    /// Counts hold whatever was sold meanwhile.
    pub(crate) force: bool,
    /// Of rows that have none of their own.
    pub(crate) reason: Reason,
}

/// Who imports, into which store.
pub(crate) struct Importer {
    pub(crate) store: stockade::Stockade,
    pub(crate) tenant: Id,
    pub(crate) actor: Id,
    /// How long a group may take, and how long the file may pause.
    pub(crate) answer_within: Duration,
    pub(crate) idle_within: Duration,
}

impl Importer {
    fn command(&self, action: Action) -> Command {
        Command {
            tenant: self.tenant.clone(),
            actor: self.actor.clone(),
            action,
        }
    }
}

/// Reads a file to its end and does what it says.
pub(crate) async fn run(importer: Importer, import: Import, mut body: Body) -> Result<Summary, Problem> {
    let rules = Rules {
        meaning: import.meaning,
        force: import.force,
    };
    let idle_within = importer.idle_within;
    let mut reader = Reader::new(import.format, rules);
    let mut summary = Summary::new(&import);
    let mut work = Working::Idle(Box::new(Worker::new(importer, import)));
    let mut rows = Vec::with_capacity(GROUP);
    let result = loop {
        let piece = match next_piece(&mut body, idle_within).await {
            Ok(piece) => piece,
            Err(problem) => break Err(problem),
        };
        let ended = piece.is_empty();
        if let Err(problem) = reader.take(&piece) {
            break Err(problem);
        }
        let mut failed = None;
        for found in reader.found.drain(..) {
            summary.rows += 1;
            match found {
                Err(bad) => summary.unreadable(bad),
                Ok(row) => rows.push(row),
            }
            if rows.len() >= GROUP {
                let group = std::mem::replace(&mut rows, Vec::with_capacity(GROUP));
                if let Err(problem) = work.next(group, &mut summary).await {
                    failed = Some(problem);
                    break;
                }
            }
        }
        if let Some(problem) = failed {
            break Err(problem);
        }
        if summary.rows > ROWS_MAX {
            break Err(Problem::invalid(
                "row",
                &format!("row {}", summary.rows),
                format!("at most {ROWS_MAX} rows"),
            ));
        }
        if ended {
            break Ok(());
        }
    };
    // What was read before the fault is done: it has been asked for, and a retry replays it.
    let rest = work.next(rows, &mut summary).await;
    let rest = match rest {
        Ok(()) => work.end(&mut summary).await,
        Err(problem) => Err(problem),
    };
    summary.ignored = std::mem::take(&mut reader.ignored);
    match result.and(rest) {
        Ok(()) => Ok(summary),
        Err(problem) if summary.rows == 0 => {
            // Nobody reads on for nothing, but whoever still sends must get to see the answer.
            super::request::discard(body).await;
            Err(problem)
        }
        Err(problem) => {
            super::request::discard(body).await;
            Err(summary.stopped(problem))
        }
    }
}

/// The next piece of the file; empty at its end.
async fn next_piece(body: &mut Body, within: Duration) -> Result<Bytes, Problem> {
    loop {
        let Ok(frame) = timeout(within, body.frame()).await else {
            let after_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
            return Err(Problem::BodyTimeout { after_ms });
        };
        match frame {
            None => return Ok(Bytes::new()),
            Some(Err(error)) => {
                return Err(Problem::Malformed {
                    line: 1,
                    column: 1,
                    what: format!("the file ended early: {error}"),
                });
            }
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if !data.is_empty() => return Ok(data),
                _ => {}
            },
        }
    }
}

/// Rows out of pieces of either format.
struct Reader {
    /// The first bytes, until it is known whether they are a mark.
    head: Option<Vec<u8>>,
    rows: Rows,
    found: Vec<Found>,
    ignored: Vec<&'static str>,
}

enum Rows {
    Csv(Box<Csv>),
    Lines(Lines),
}

/// Beginnings of files that are something else, and what to do.
const OTHERS: [(&[u8], &str); 4] = [
    (b"\xFE\xFF", "UTF-16; save it as UTF-8"),
    (b"\xFF\xFE", "UTF-16; save it as UTF-8"),
    (b"PK", "a spreadsheet or an archive; save it as CSV in UTF-8"),
    (b"\x1F\x8B", "compressed; send it plain"),
];
const MARK: &[u8] = b"\xEF\xBB\xBF";

impl Reader {
    fn new(format: Format, rules: Rules) -> Self {
        Self {
            head: Some(Vec::new()),
            rows: match format {
                Format::Csv => Rows::Csv(Box::new(Csv::new(rules))),
                Format::Ndjson => Rows::Lines(Lines::new(rules)),
            },
            found: Vec::new(),
            ignored: Vec::new(),
        }
    }

    /// Takes a piece; an empty one is the end of the file.
    fn take(&mut self, piece: &[u8]) -> Result<(), Problem> {
        if let Some(mut head) = self.head.take() {
            head.extend_from_slice(piece);
            if head.len() < MARK.len() && !piece.is_empty() {
                self.head = Some(head);
                return Ok(());
            }
            if let Some((_, what)) = OTHERS.iter().find(|(start, _)| head.starts_with(start)) {
                return Err(Problem::Malformed {
                    line: 1,
                    column: 1,
                    what: format!("the file is {what}"),
                });
            }
            let text = head.strip_prefix(MARK).unwrap_or(&head);
            if !text.is_empty() {
                self.pass(text)?;
            }
            if !piece.is_empty() {
                return Ok(());
            }
        }
        self.pass(piece)
    }

    fn pass(&mut self, piece: &[u8]) -> Result<(), Problem> {
        match &mut self.rows {
            Rows::Csv(csv) => csv.take(piece, &mut self.ignored, &mut self.found),
            Rows::Lines(lines) => {
                lines.take(piece, &mut self.ignored, &mut self.found);
                Ok(())
            }
        }
    }
}

/// The worker, at rest or with a group in hand. A group is a task of its own: when the caller hangs up it is still done
/// whole.
enum Working {
    Idle(Box<Worker>),
    Busy(tokio::task::JoinHandle<(Box<Worker>, Worked)>),
    Broken,
}

impl Working {
    /// Waits for the group under way, then begins the next.
    async fn next(&mut self, group: Vec<Row>, summary: &mut Summary) -> Result<(), Problem> {
        let mut worker = self.rest(summary).await?;
        *self = if group.is_empty() {
            Self::Idle(worker)
        } else {
            Self::Busy(tokio::spawn(async move {
                let worked = worker.work(group).await;
                (worker, worked)
            }))
        };
        Ok(())
    }

    async fn end(&mut self, summary: &mut Summary) -> Result<(), Problem> {
        self.rest(summary).await.map(drop)
    }

    async fn rest(&mut self, summary: &mut Summary) -> Result<Box<Worker>, Problem> {
        match std::mem::replace(self, Self::Broken) {
            Self::Idle(worker) => Ok(worker),
            Self::Busy(task) => match task.await {
                Ok((worker, worked)) => summary.add(worked).map(|()| worker),
                Err(error) => Err(broke(&error)),
            },
            Self::Broken => Err(broke(&"an earlier group was not finished")),
        }
    }
}

fn broke(why: &dyn std::fmt::Display) -> Problem {
    Problem::Unavailable {
        why: format!("the import broke: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a file means, or why it cannot be read, as text.
    fn read(format: Format, file: &[u8], piece: usize) -> String {
        let rules = Rules {
            meaning: Meaning::Target,
            force: false,
        };
        let mut reader = Reader::new(format, rules);
        let pieces = file.chunks(piece).chain([&b""[..]]);
        for piece in pieces {
            if let Err(problem) = reader.take(piece) {
                return problem.view().detail().to_owned();
            }
        }
        format!("{:?} {:?}", reader.found, reader.ignored)
    }

    /// However a file is cut into pieces on its way, it means the same.
    #[test]
    fn where_a_file_is_cut_makes_no_difference() {
        let long = "y".repeat(ROW_BYTES_MAX + 10);
        let csv = [
            "sku,on_hand\r\nA,1\r\n\r\n\"b\"\"c\",2\r\n\"d\ne\",3\nF,x",
            "\u{feff}sku,on_hand,sold,revision\nA,1,0,7\nB,2,,\n",
            "sku,on_hand\n\"never closed,1\nA,2\n",
            "sku;on_hand\nA;1",
            "\u{feff}",
            "PK\u{3}\u{4}",
            "sk",
            &format!(
                "sku,on_hand\n{long},1\nA,1\n\"{long}\",1\nB,{}\nC,1\n",
                ",".repeat(80)
            ),
        ];
        let lines = [
            "{\"sku\":\"A\",\"on_hand\":1}\r\n\n  \n{\"sku\":\"é\",\"on_hand\":2,\"revision\":3}\n{",
            "\u{feff}{\"sku\":\"A\"}",
            "",
            &format!("{long}\n{{\"sku\":\"A\",\"on_hand\":1}}\n{long}{long}\n"),
        ];
        let csv = csv.iter().map(|file| (Format::Csv, file));
        let lines = lines.iter().map(|file| (Format::Ndjson, file));
        for (format, file) in csv.chain(lines) {
            let whole = read(format, file.as_bytes(), usize::MAX);
            for piece in [1, 2, 3, 7, 1_000] {
                assert_eq!(read(format, file.as_bytes(), piece), whole, "{format:?} {piece}");
            }
        }
    }

    /// Any bytes are read to their end: a row, a fault, a refusal.
    #[test]
    fn no_bytes_stop_the_reader() {
        let mut random = fastrand::Rng::with_seed(7);
        let alphabet = b"sku,on_hand\n\r\"'{}:[]\\0123456789.-\xEF\xBB\xBF\xFF\0 \t";
        for _ in 0..3_000 {
            let start: &[u8] = if random.bool() {
                b"sku,on_hand,location\n"
            } else {
                b""
            };
            let mut file = start.to_vec();
            for _ in 0..random.usize(0..200) {
                file.push(alphabet[random.usize(0..alphabet.len())]);
            }
            for format in [Format::Csv, Format::Ndjson] {
                let whole = read(format, &file, usize::MAX);
                assert_eq!(read(format, &file, random.usize(1..20)), whole);
            }
        }
    }
}
