//! Random commands over few ids, owners, SKUs and locations, so that they meet; supplies are small and times lie near
//! the ends. The same seed gives the same list.

use fastrand::Rng;
use stockade_core::{
    Action, Adjust, AskLine, Cancel, Changes, Command, Configure, Confirm, ConfirmPayload, Count, Expect,
    Extend, Id, Millis, Mode, PickLine, QUANTITY_MAX, Reason, Reserve, Return, Set, Transfer,
};
use stockade_redis::ScriptKind;

pub(crate) const T0: Millis = 1_767_000_000_000;
const SECOND: Millis = 1_000;

pub(crate) fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

/// What happens next.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A merged batch of one kind.
    Batch(Vec<Command>),
    /// A sweep of everything that is due.
    Sweep,
    /// Everything so far is recorded and trimmed, and ended ids are forgotten, all but so many.
    Forget(u64),
    /// The node is fenced and loaded from the ledger, with the owner usage of every SKU or only where there is a limit.
    Rebuild(bool),
}

/// A step, and how the clock moves before it: also backwards.
#[derive(Clone, Debug)]
pub(crate) struct Timed {
    pub(crate) clock: Millis,
    pub(crate) step: Step,
}

/// How much of everything a list may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub(crate) limits: bool,
    pub(crate) locations: bool,
    pub(crate) rebuilds: bool,
    pub(crate) tenants: bool,
}

pub(crate) struct Generator {
    rng: Rng,
    scope: Scope,
    now: Millis,
    commands: u32,
    came: Vec<u32>,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        // Half of the lists stay on the short ways, where most of a rush goes.
        let scope = Scope {
            limits: rng.u8(..4) > 1,
            locations: rng.u8(..4) > 1,
            rebuilds: rng.u8(..4) == 0,
            tenants: rng.u8(..5) == 0,
        };
        Self {
            rng,
            scope,
            now: T0,
            commands: 0,
            came: Vec::new(),
        }
    }

    pub(crate) fn late_is_rejected(&mut self) -> bool {
        self.rng.u8(..10) < 3
    }

    fn within(&mut self, range: std::ops::Range<i64>) -> i64 {
        range.start + self.rng.u64(..range.start.abs_diff(range.end)).cast_signed()
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.rng.u32(..n) == 0
    }

    fn name(&mut self, prefix: &str, count: u32) -> Id {
        let number = self.rng.u32(..count);
        id(&format!("{prefix}{number}"))
    }

    fn sku(&mut self) -> Id {
        id(match self.rng.u8(..10) {
            0..=5 => "S",
            6..=8 => "T {x}:y",
            _ => "U",
        })
    }

    fn location(&mut self) -> Id {
        if !self.scope.locations {
            return id(if self.one_in(30) { "W1" } else { "default" });
        }
        id(match self.rng.u8(..6) {
            0..=2 => "default",
            3..=4 => "W1",
            _ => "W2",
        })
    }

    fn pin(&mut self) -> Option<Id> {
        let often = if self.scope.locations { 4 } else { 40 };
        if self.one_in(often) {
            Some(self.location())
        } else {
            None
        }
    }

    fn quantity(&mut self, most: u64) -> u64 {
        match self.rng.u32(..60) {
            0 => 0,
            1 => QUANTITY_MAX,
            2 => QUANTITY_MAX + self.rng.u64(1..3),
            _ => self.rng.u64(1..most),
        }
    }

    fn ask(&mut self) -> AskLine {
        AskLine {
            sku: self.sku(),
            quantity: self.quantity(5),
            location: self.pin(),
            if_revision: if self.one_in(20) {
                Some(self.rng.u64(..4))
            } else {
                None
            },
        }
    }

    fn pick(&mut self) -> PickLine {
        PickLine {
            sku: self.sku(),
            quantity: self.quantity(4),
            location: self.pin(),
        }
    }

    fn picks(&mut self) -> Vec<PickLine> {
        let number = self.rng.usize(..3);
        (0..number).map(|_| self.pick()).collect()
    }

    // Most reservations of one id ask for the same, so that there are replays.
    fn usual(&self, number: u32) -> (Id, Mode, Vec<AskLine>) {
        let line = |sku: &str, location: Option<&str>, quantity| AskLine {
            sku: id(sku),
            quantity,
            location: location.map(id),
            if_revision: None,
        };
        let owner = id(["a", "b"][number as usize % 2]);
        let mode = if number % 4 == 3 {
            Mode::Deduct
        } else {
            Mode::Reserve
        };
        let mut lines = vec![line("S", None, 1 + u64::from(number) % 3)];
        if number % 3 == 1 && self.scope.locations {
            lines.push(line("T {x}:y", None, 2));
            lines.push(line("S", Some("W1"), 1));
        }
        (owner, mode, lines)
    }

    // Mostly one that came lately.
    fn reservation_number(&mut self) -> u32 {
        if self.came.is_empty() || self.one_in(12) {
            return self.rng.u32(..30);
        }
        let lately = self.came.len().saturating_sub(9);
        self.came[self.rng.usize(lately..self.came.len())]
    }

    fn new_number(&mut self) -> u32 {
        let number = if self.one_in(4) {
            self.reservation_number()
        } else {
            self.rng.u32(..30)
        };
        self.came.push(number);
        number
    }

    fn reserve(&mut self) -> Action {
        let number = self.new_number();
        let (mut owner, mut mode, mut lines) = self.usual(number);
        if self.one_in(4) {
            let count = self.rng.usize(..4);
            lines = (0..count).map(|_| self.ask()).collect();
            mode = if self.rng.bool() {
                Mode::Deduct
            } else {
                Mode::Reserve
            };
        }
        if self.one_in(8) {
            owner = id("c");
        }
        let ttl_ms = [SECOND, SECOND + 500, 3 * SECOND, 30 * SECOND, 120 * SECOND, 10][self.rng.usize(..6)];
        let ttl_ms = if ttl_ms == 10 && !self.one_in(5) {
            2 * SECOND
        } else {
            ttl_ms
        };
        let supersedes = if self.one_in(8) {
            let old = self.reservation_number();
            Some(id(&format!("r{old}")))
        } else {
            None
        };
        Action::Reserve(Reserve {
            id: id(&format!("r{number}")),
            owner,
            mode,
            ttl_ms,
            lines: lines.into(),
            supersedes,
        })
    }

    fn confirm(&mut self) -> Action {
        let number = self.reservation_number();
        let (owner, _, lines) = self.usual(number);
        let picks = if self.one_in(3) { Some(self.picks()) } else { None };
        let payload = self.one_in(4).then(|| ConfirmPayload {
            owner,
            lines: lines.into(),
        });
        let payload = if self.one_in(25) {
            let count = self.rng.usize(..3);
            Some(ConfirmPayload {
                owner: id("a"),
                lines: (0..count).map(|_| self.ask()).collect(),
            })
        } else {
            payload
        };
        Action::Confirm(Confirm {
            id: id(&format!("r{number}")),
            lines: picks,
            payload,
        })
    }

    fn reason(&mut self) -> Reason {
        Reason::new(["", "because", "damaged: yes"][self.rng.usize(..3)]).unwrap()
    }

    fn own(&mut self) -> Id {
        // Now and then one that was used.
        if self.commands > 0 && self.one_in(8) {
            let number = self.rng.u32(..self.commands);
            return id(&format!("c{number}"));
        }
        self.commands += 1;
        id(&format!("c{}", self.commands))
    }

    fn expect(&mut self) -> Expect {
        match self.rng.u8(..12) {
            0 => Expect::Revision(self.rng.u64(..6)),
            1 => Expect::Absent,
            _ => Expect::Any,
        }
    }

    fn stock(&mut self) -> Action {
        let (own, sku, location, expect) = (self.own(), self.sku(), self.location(), self.expect());
        let reason = self.reason();
        let most = if self.scope.limits { 9 } else { 7 };
        match self.rng.u8(..most) {
            0..=3 => {
                let count = match self.rng.u8(..4) {
                    0 => Count::Create,
                    1 | 2 => Count::Seen {
                        sold_seen: self.rng.u64(..4),
                    },
                    _ => Count::Force,
                };
                let target = match self.rng.u32(..40) {
                    0 => QUANTITY_MAX,
                    1 => QUANTITY_MAX + 1,
                    2 => QUANTITY_MAX - 1,
                    _ => self.rng.u64(..14),
                };
                Action::Set(Set {
                    id: own,
                    sku,
                    location,
                    target,
                    count,
                    expect,
                    reason,
                })
            }
            4 | 5 => {
                let delta = match self.rng.u32(..40) {
                    0 => QUANTITY_MAX.cast_signed(),
                    1 => -QUANTITY_MAX.cast_signed(),
                    _ => self.within(-4..7),
                };
                Action::Adjust(Adjust {
                    id: own,
                    sku,
                    location,
                    delta,
                    expect,
                    reason,
                })
            }
            6 => Action::Transfer(Transfer {
                id: own,
                sku,
                from: location,
                to: self.location(),
                quantity: self.quantity(4),
                expect,
                reason,
            }),
            _ => Action::Configure(Configure {
                id: own,
                sku,
                changes: self.changes(),
                expect,
                reason,
            }),
        }
    }

    fn time(&mut self) -> Option<Millis> {
        (!self.one_in(3)).then(|| self.now + self.within(-10..40) * SECOND)
    }

    fn changes(&mut self) -> Changes {
        let mut changes = Changes::default();
        match self.rng.u8(..14) {
            0 | 1 => {
                let count = self.rng.usize(1..3);
                changes.safety_stock = (0..count).map(|_| (self.location(), self.rng.u64(..4))).collect();
            }
            2..=4 => {
                changes.limit_per_owner = Some((!self.one_in(5)).then(|| self.rng.u64(..6)));
                changes.reset_usage = self.one_in(6);
            }
            5 => changes.opens_at = Some(self.time()),
            6 => changes.closes_at = Some(self.time()),
            7 => changes.paused = Some(self.one_in(3)),
            8 | 9 => {
                let count = self.rng.usize(..3);
                changes.order = Some((0..count).map(|_| self.location()).collect());
            }
            10 => changes.split = Some(self.rng.bool()),
            11 => changes.reset_usage = true,
            12 => changes.limit_per_owner = Some(Some(self.rng.u64(1..8))),
            _ => changes.group = Some(self.rng.bool().then(|| id("G"))),
        }
        changes
    }

    fn action(&mut self, kind: ScriptKind) -> Action {
        let own = |number: u32| id(&format!("r{number}"));
        match kind {
            ScriptKind::Reserve => self.reserve(),
            ScriptKind::Confirm => self.confirm(),
            ScriptKind::Cancel => Action::Cancel(Cancel {
                id: own(self.reservation_number()),
                reason: self.reason(),
            }),
            ScriptKind::Extend => Action::Extend(Extend {
                id: own(self.reservation_number()),
                ends_at: if self.one_in(8) {
                    self.now + 30 * SECOND
                } else {
                    self.now + self.within(-2..70) * SECOND / 2
                },
            }),
            ScriptKind::Return => Action::Return(Return {
                id: self.name("x", 8),
                reservation: own(self.reservation_number()),
                lines: if self.rng.bool() { Some(self.picks()) } else { None },
                reason: self.reason(),
            }),
            ScriptKind::Stock => self.stock(),
            ScriptKind::Show => {
                if self.rng.bool() {
                    Action::ShowReservation {
                        id: own(self.reservation_number()),
                    }
                } else {
                    Action::ShowStock { sku: self.sku() }
                }
            }
        }
    }

    fn command(&mut self, kind: ScriptKind) -> Command {
        let tenant = if self.scope.tenants && self.one_in(2) {
            "t2"
        } else {
            "default"
        };
        Command {
            tenant: id(tenant),
            actor: id(if self.one_in(4) { "cli" } else { "test" }),
            action: self.action(kind),
        }
    }

    fn batch(&mut self) -> Step {
        let kind = match self.rng.u8(..24) {
            0..=8 => ScriptKind::Reserve,
            9..=12 => ScriptKind::Confirm,
            13..=15 => ScriptKind::Cancel,
            16 => ScriptKind::Extend,
            17 | 18 => ScriptKind::Return,
            19..=21 => ScriptKind::Stock,
            _ => ScriptKind::Show,
        };
        let size = match self.rng.u8(..6) {
            0..=2 => 1,
            3 => 2,
            _ => self.rng.usize(2..7),
        };
        Step::Batch((0..size).map(|_| self.command(kind)).collect())
    }

    /// The counts that every list begins with.
    pub(crate) fn first(&mut self) -> Vec<Timed> {
        let mut rows = vec![("S", "default", 7), ("T {x}:y", "default", 5)];
        if self.scope.locations {
            rows.push(("S", "W1", 3));
        }
        let commands = rows
            .into_iter()
            .map(|(sku, location, target)| Command {
                tenant: id("default"),
                actor: id("test"),
                action: Action::Set(Set {
                    id: id(&format!("first-{sku}-{location}")),
                    sku: id(sku),
                    location: id(location),
                    target,
                    count: Count::Create,
                    expect: Expect::Any,
                    reason: Reason::default(),
                }),
            })
            .collect();
        vec![Timed {
            clock: 0,
            step: Step::Batch(commands),
        }]
    }

    pub(crate) fn next(&mut self) -> Timed {
        let clock = match self.rng.u8(..12) {
            0..=4 => 0,
            5..=7 => self.within(0..2 * SECOND),
            8 | 9 => SECOND,
            10 => self.within(20 * SECOND..60 * SECOND),
            _ => self.within(-20 * SECOND..0),
        };
        self.now += clock;
        let step = match self.rng.u8(..40) {
            0 | 1 => Step::Sweep,
            2 if self.scope.rebuilds => Step::Rebuild(self.rng.bool()),
            3 | 4 if self.scope.rebuilds => Step::Forget(self.rng.u64(..5)),
            _ => self.batch(),
        };
        Timed { clock, step }
    }
}
