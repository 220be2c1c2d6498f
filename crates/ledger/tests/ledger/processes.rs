//! Several processes on one file: they record alternately and race, are killed and come back; each entry is recorded by
//! exactly one of them.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use stockade_core::Entry;
use stockade_ledger::{Leasing, Ledger, RecordError, SharedLedger, Sqlite};

use crate::crash;
use crate::support::{Book, find, fresh};

const FOLDER: &str = "STOCKADE_TEST_PROCESSES_FOLDER";
const NAME: &str = "STOCKADE_TEST_PROCESSES_NAME";

/// A racer: follows the ledger, tries to add the next entry under a tag of its own, and says when it was the one.
struct Racer {
    ledger: Arc<Sqlite>,
    book: Book,
    tags: RandomState,
}

impl Racer {
    fn new(folder: &Path) -> Self {
        let ledger = Arc::new(Sqlite::open(folder).unwrap());
        let mut row = ledger.row(0).unwrap().unwrap();
        (row.cursor, row.tag, row.at) = (0, 0, 0);
        Self {
            ledger,
            book: Book::new(&row),
            tags: RandomState::new(),
        }
    }

    /// Follows what others recorded. The history is the same in every process; only tags differ.
    fn follow(&mut self) {
        let row = self.ledger.row(0).unwrap().unwrap();
        while self.book.seq < row.cursor {
            crash::next(&mut self.book);
        }
        self.book.tag = row.tag;
    }

    fn propose(&mut self) -> Entry {
        let mut entry = crash::next(&mut self.book);
        entry.tag = self.tags.hash_one(entry.seq);
        self.book.tag = entry.tag;
        entry
    }

    /// Tries to record the next entry; the tag if it was recorded.
    fn race(&mut self) -> Option<(u64, u64)> {
        self.follow();
        let entry = self.propose();
        match self.ledger.record(std::slice::from_ref(&entry)) {
            Ok(()) => Some((entry.seq, entry.tag)),
            Err(RecordError::Fenced { .. }) => None,
            Err(RecordError::NotRecorded(error)) if error.is_transient() => None,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Not a test of its own: a process that races until it is killed. Without the variable it does nothing.
#[test]
fn racing_child() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let name = std::env::var(NAME).unwrap();
    let mut racer = Racer::new(Path::new(&folder));
    loop {
        if let Some((seq, tag)) = racer.race() {
            println!("won {seq} {tag}");
        }
        // The lease goes round as well; it guards nothing.
        if let Leasing::Mine(lease) = racer.ledger.take_lease(0, &name, 1_000).unwrap() {
            assert_eq!(lease.owner, name);
            racer.ledger.release_lease(0, &name).unwrap();
        }
    }
}

struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(folder: &Path, name: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::racing_child", "--nocapture"])
            .env(FOLDER, folder)
            .env(NAME, name)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Hears of `wins` more wins.
    fn hear(&mut self, wins: usize, all: &mut BTreeMap<u64, u64>) {
        for _ in 0..wins {
            let heard = self.lines.by_ref().map(Result::unwrap).find_map(|line| {
                let (_, win) = line.split_once("won ")?;
                let (seq, tag) = win.split_once(' ')?;
                Some((seq.parse().unwrap(), tag.parse().unwrap()))
            });
            let (seq, tag): (u64, u64) = heard.expect("the child goes on until it is killed");
            assert_eq!(all.insert(seq, tag), None, "entry {seq} was won twice");
        }
    }

    /// Kills it and hears what it said before.
    fn kill(mut self, all: &mut BTreeMap<u64, u64>) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        for line in self.lines.map_while(Result::ok) {
            // The last line may be cut.
            let Some((seq, tag)) = line.split_once("won ").and_then(|(_, win)| win.split_once(' ')) else {
                continue;
            };
            let (Ok(seq), Ok(tag)) = (seq.parse(), tag.parse::<u64>()) else {
                continue;
            };
            let first = all.insert(seq, tag);
            assert_eq!(first, None, "entry {seq} was won twice");
        }
    }
}

#[test]
fn processes_that_race_record_each_entry_once() {
    let (folder, ledger, _row) = fresh();
    let mut wins = BTreeMap::new();
    let mut mine = Racer::new(folder.path());
    let mut others: Vec<Running> = (0..2)
        .map(|n| Running::start(folder.path(), &format!("racer-{n}")))
        .collect();
    for round in 0..6 {
        for other in &mut others {
            other.hear(4, &mut wins);
        }
        for _ in 0..10 {
            if let Some((seq, tag)) = mine.race() {
                assert_eq!(wins.insert(seq, tag), None);
            }
        }
        // One dies wherever it is; the others go on, and a new one comes.
        others.remove(round % 2).kill(&mut wins);
        others.push(Running::start(folder.path(), &format!("racer-{}", round + 2)));
    }
    for other in others {
        other.kill(&mut wins);
    }
    mine.follow();
    mine.book.check(&*ledger.view().unwrap());
    mine.book.check(&*mine.ledger.view().unwrap());
    let conn = rusqlite::Connection::open(crate::support::file(&folder)).unwrap();
    let entries: BTreeMap<u64, u64> = conn
        .prepare("SELECT seq, tag FROM entries")
        .unwrap()
        .query_map([], |row| {
            Ok((
                row.get::<_, i64>(0)?.cast_unsigned(),
                row.get::<_, i64>(1)?.cast_unsigned(),
            ))
        })
        .unwrap()
        .map(Result::unwrap)
        .collect();
    // What a killed process had recorded and could not say any more is missing in what was heard, nothing else.
    let unheard = entries
        .iter()
        .filter(|(seq, tag)| wins.get(seq) != Some(tag))
        .count();
    assert!(unheard <= 8, "{unheard}");
    assert!(wins.iter().all(|(seq, tag)| entries.get(seq) == Some(tag)));
    assert_eq!(entries.len() as u64, mine.book.seq);
}

#[test]
fn views_beside_racing_openings_know_exactly_what_is_recorded() {
    const ENTRIES: u64 = 120;
    let (folder, _ledger, _row) = fresh();
    let mut racers: Vec<Racer> = (0..2).map(|_| Racer::new(folder.path())).collect();
    // One that only reads, and both that also record.
    let mut readers = vec![Arc::new(Sqlite::open(folder.path()).unwrap())];
    readers.extend(racers.iter().map(|racer| Arc::clone(&racer.ledger)));
    let ask = |ledger: &Sqlite| {
        let mut asked = 0_u64;
        loop {
            let view = ledger.view().unwrap();
            let cursor = view.shard(0).unwrap().unwrap().cursor;
            // The entry after n grants `r-n-*`.
            for n in [
                0,
                asked % cursor.max(1),
                cursor.saturating_sub(2),
                cursor.saturating_sub(1),
                cursor,
            ] {
                for k in [0, 35, 49] {
                    let found = find(&*view, &format!("r-{n}-{k}")).is_some();
                    assert_eq!(found, n < cursor, "r-{n}-{k} at {cursor}");
                }
            }
            asked += 1;
            if cursor >= ENTRIES {
                return asked;
            }
        }
    };
    std::thread::scope(|scope| {
        for racer in &mut racers {
            scope.spawn(move || {
                while racer.ledger.row(0).unwrap().unwrap().cursor < ENTRIES {
                    racer.race();
                }
            });
        }
        // Two threads on each opening; one more opens and closes, which fills the deferred tables.
        let mut asking = Vec::new();
        for ledger in readers.iter().chain(&readers) {
            asking.push(scope.spawn(move || ask(ledger)));
        }
        asking.push(scope.spawn(|| {
            let mut opened = 0;
            loop {
                let ledger = Sqlite::open(folder.path()).unwrap();
                opened += 1;
                if ledger.row(0).unwrap().unwrap().cursor >= ENTRIES {
                    return opened;
                }
            }
        }));
        for one in asking {
            assert!(one.join().unwrap() > 2);
        }
    });
    for racer in &mut racers {
        racer.follow();
        racer.book.check(&*racer.ledger.view().unwrap());
    }
}

#[test]
fn a_new_folder_opened_by_many_at_once_is_made_once() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let ledgers: Vec<Sqlite> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| Sqlite::open(folder.path()).unwrap()))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for (n, ledger) in ledgers.iter().enumerate() {
            assert_eq!(ledger.open_epoch(0, "one").unwrap().epoch, n as u64 + 1);
        }
    }
}
