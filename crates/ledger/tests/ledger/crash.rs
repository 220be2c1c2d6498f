//! A process killed while it records: what is left is a prefix of its chain, with everything that it had been told was
//! recorded.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use stockade_core::{Entry, Verb};
use stockade_ledger::{Ledger, ShardRow, Sqlite};

use crate::support::{Book, fresh};

const FOLDER: &str = "STOCKADE_TEST_CRASH_FOLDER";

/// The next entry of a history that is the same in every process.
pub(crate) fn next(book: &mut Book) -> Entry {
    let seq = book.seq;
    if seq == 0 {
        book.stock("c-0", "A", "default", 1_000_000);
    }
    for n in 0..50 {
        book.reserve(&format!("r-{seq}-{n}"), &format!("u-{n}"), "A");
    }
    for n in 0..20 {
        book.end(
            &format!("r-{seq}-{n}"),
            if n % 2 == 0 { Verb::Confirm } else { Verb::Cancel },
        );
    }
    if seq > 0 {
        book.end(&format!("r-{}-30", seq - 1), Verb::Expire);
    }
    book.seal()
}

/// The book after the entries that the ledger holds.
fn replay(row: &ShardRow) -> Book {
    let mut book = Book::new(&ShardRow {
        cursor: 0,
        tag: 0,
        at: 0,
        ..row.clone()
    });
    while book.seq < row.cursor {
        next(&mut book);
    }
    book
}

/// Not a test of its own: the process that is killed. Without the variable it does nothing.
#[test]
fn recording_child() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let ledger = Sqlite::open(Path::new(&folder)).unwrap();
    let row = ledger.open_epoch(0, "child").unwrap();
    let mut book = replay(&row);
    loop {
        let run = [next(&mut book), next(&mut book)];
        ledger.record(&run).unwrap();
        println!("recorded {}", book.seq);
    }
}

#[test]
fn a_killed_process_leaves_a_clean_prefix() {
    let (folder, ledger, _row) = fresh();
    drop(ledger);
    let mut told = 0;
    for round in 0..6 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::recording_child", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut heard = 0;
        while heard <= round * 3 {
            let line = lines
                .next()
                .expect("the child goes on until it is killed")
                .unwrap();
            if let Some((_, seq)) = line.split_once("recorded ") {
                told = seq.parse().unwrap();
                heard += 1;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let ledger = Sqlite::open(folder.path()).unwrap();
        let view = ledger.view().unwrap();
        let row = view.shard(0).unwrap().unwrap();
        assert!(
            row.cursor >= told && row.cursor.is_multiple_of(2),
            "{row:?} after {told}"
        );
        replay(&row).check(&*view);
    }
}
