//! One list, through the rules alone and through Lua.

use std::collections::{BTreeMap, BTreeSet};

use stockade_core::{
    Action, Change, Changes, Command, Id, LateConfirm, LookedUp, Millis, Position, Reply, Rules, Shard,
    SkuRecord,
};
use stockade_redis::layout::Keys;
use stockade_redis::{
    Absent, Asked, Base, Batch, Chunk, Decided, Fenced, Hot, KeptIds, Marked, Sent, Token, Verdict,
};

use super::generate::{Generator, Step, T0};
use super::ledger::Ledger;
use super::state;

pub(crate) struct List<'a> {
    hot: &'a Hot,
    redis: &'a mut redis::Connection,
    keys: Keys,
    shard: Shard,
    ledger: Ledger,
    late_confirm: LateConfirm,
    now: Millis,
    tag: u64,
    absent: Vec<(Id, Absent)>,
    seen: &'a mut Seen,
}

/// How often each answer was given and each change made: a list that meets nothing shows nothing.
pub(crate) type Seen = BTreeMap<String, u64>;

// `Reply::Refused(Refusal::NotOpen(..` is `Refused NotOpen`.
fn label(debug: &str) -> String {
    let words = debug
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    words
        .take(4)
        .filter(|word| word.starts_with(char::is_uppercase))
        .collect::<Vec<_>>()
        .join(" ")
}

type Checked = Result<(), String>;

fn value<T: std::fmt::Debug>(decided: Decided<T>) -> Result<(Position, T), String> {
    match decided {
        Decided::Done { tip, value, .. } => Ok((tip, value)),
        Decided::Stale(stale) => Err(format!("the shard was {stale:?}")),
    }
}

/// Runs the list of a seed on an empty server; what was different, and where.
pub(crate) async fn run(
    hot: &Hot,
    redis: &mut redis::Connection,
    seed: u64,
    steps: usize,
    seen: &mut Seen,
) -> Checked {
    let () = redis::cmd("FLUSHALL").query(redis).unwrap();
    let mut generator = Generator::new(seed);
    let late_confirm = if generator.late_is_rejected() {
        LateConfirm::Reject
    } else {
        LateConfirm::Revive
    };
    let mut list = List {
        hot,
        redis,
        keys: Keys::new("stockade", 0),
        shard: Shard::new(0, Rules { late_confirm }, seed),
        ledger: Ledger::default(),
        late_confirm,
        now: T0,
        tag: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        absent: Vec::new(),
        seen,
    };
    list.open(1, true)
        .await
        .map_err(|error| format!("opening: {error}"))?;
    let mut first = generator.first().into_iter();
    for number in 0..steps {
        let timed = first.next().unwrap_or_else(|| generator.next());
        list.now += timed.clock;
        let at = format!("step {number}, at {}: {:#?}", list.now - T0, timed.step);
        list.step(timed.step)
            .await
            .map_err(|error| format!("{at}\n{error}"))?;
    }
    Ok(())
}

impl List<'_> {
    fn sent(&self) -> Sent {
        Sent {
            epoch: self.shard.position().epoch,
            tag: self.tag,
            now: Some(self.now),
            late_confirm: self.late_confirm,
        }
    }

    fn saw(&mut self, what: String) {
        *self.seen.entry(what).or_default() += 1;
    }

    async fn step(&mut self, step: Step) -> Checked {
        self.tag = self.tag.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(2) | 1;
        match step {
            Step::Batch(commands) => self.batch(&commands).await?,
            Step::Sweep => self.sweep().await?,
            Step::Forget(keep) => self.forget(keep).await?,
            Step::Rebuild(all) => {
                let epoch = self.shard.position().epoch + 1;
                self.open(epoch, all).await?;
            }
        }
        state::check(self.redis, &self.keys, &self.shard, &self.ledger)
    }

    // Loads the node from the ledger.
    async fn open(&mut self, epoch: u64, all_usage: bool) -> Checked {
        let error = |error: stockade_redis::CallError| error.to_string();
        let Position { seq, tag, .. } = self.shard.position();
        let at = Position { epoch, seq, tag };
        let clock = if seq == 0 { T0 - 1 } else { self.shard.clock() };
        if self.hot.fence(epoch).await.map_err(error)? != Fenced::Closed {
            return Err("not fenced".to_owned());
        }
        let skus: Vec<SkuRecord> = self.shard.skus().collect();
        let limited: BTreeSet<_> = skus
            .iter()
            .filter(|sku| all_usage || sku.settings.limit_per_owner.is_some())
            .map(|sku| (sku.tenant.clone(), sku.sku.clone()))
            .collect();
        let usage = self.shard.usage();
        let chunk = Chunk {
            live: self.shard.live().collect(),
            usage: usage
                .filter(|(tenant, sku, ..)| limited.contains(&(tenant.clone(), sku.clone())))
                .collect(),
            skus,
        };
        let taken = self.hot.base(&Base { at, clock }).await.map_err(error)?
            && self.hot.chunk(epoch, 1, &chunk).await.map_err(error)?
            && self.hot.open(epoch, 1).await.map_err(error)?;
        self.shard.open(at, clock);
        self.shard.forgotten_known();
        self.absent.clear();
        if taken {
            Ok(())
        } else {
            Err("not loaded".to_owned())
        }
    }

    async fn forget(&mut self, keep: u64) -> Checked {
        let tip = self.shard.position();
        self.hot.trim(tip).await.map_err(|error| error.to_string())?;
        let kept = KeptIds {
            recorded: tip.seq,
            older_than: 0,
            keep,
            keep_bytes: 1 << 40,
            limit: 1_000,
        };
        let forgot = self.hot.forget(&self.sent(), &kept).await;
        value(forgot.map_err(|error| error.to_string())?)?;
        Ok(())
    }

    async fn sweep(&mut self) -> Checked {
        let before = self.shard.position();
        let ended = self.shard.sweep(self.now, 1_000);
        let swept = self.hot.sweep(&self.sent(), 1_000).await;
        let (tip, swept) = value(swept.map_err(|error| error.to_string())?)?;
        if (swept.ended, swept.live) != (ended, self.shard.live_count() as u64) {
            return Err(format!("swept {swept:?} and not {ended}"));
        }
        self.entry(before, tip).await
    }

    /// Seals the entry of the rules alone, and compares it with the one in the outbox.
    async fn entry(&mut self, before: Position, tip: Position) -> Checked {
        let entry = self.shard.seal(self.tag);
        let written = tip.seq > before.seq;
        if tip != self.shard.position() {
            return Err(format!(
                "tip is {tip:?} and not {:?}; {entry:#?}",
                self.shard.position()
            ));
        }
        let Some(entry) = entry else { return Ok(()) };
        if !written {
            return Err(format!("no entry, but {entry:#?}"));
        }
        let read = self.hot.read(tip.epoch, tip.seq, 2).await;
        let (_, read) = value(read.map_err(|error| error.to_string())?)?;
        self.ledger.fold(&entry);
        for effect in &entry.effects {
            let what = match &effect.change {
                Change::Reservation { verb, before, .. } => format!("effect {verb:?} {before:?}"),
                Change::Return { .. } => "effect Return".to_owned(),
                Change::Stock { verb, created, .. } => format!("effect {verb:?} {created}"),
            };
            let moves = effect.moves.len().min(3);
            self.saw(format!("{what}, {moves} moves"));
        }
        let (found, entry) = (
            read.into_iter().map(state::ordered).collect::<Vec<_>>(),
            state::ordered(entry),
        );
        if found.as_slice() != [entry.clone()] {
            return Err(format!("entry\n{found:#?}\nand not\n{entry:#?}"));
        }
        Ok(())
    }

    async fn send(&self, commands: &[Command], known: &[Vec<LookedUp>]) -> Result<(Position, Batch), String> {
        let absent: Vec<Vec<Absent>> = commands.iter().map(|command| self.absent_of(command)).collect();
        let asked: Vec<Asked<'_>> = commands
            .iter()
            .zip(known)
            .zip(&absent)
            .map(|((command, known), absent)| Asked {
                command,
                known,
                absent,
            })
            .collect();
        let decided = self.hot.decide(&self.sent(), &asked).await;
        value(decided.map_err(|error| error.to_string())?)
    }

    fn absent_of(&self, command: &Command) -> Vec<Absent> {
        let of_tenant = self.absent.iter().filter(|(tenant, _)| *tenant == command.tenant);
        of_tenant.map(|(_, absent)| absent.clone()).collect()
    }

    async fn batch(&mut self, commands: &[Command]) -> Checked {
        // A SKU that has to be loaded in the middle of a batch would change its order.
        let whole = commands.iter().filter(|command| !sets_a_limit(command)).count() == commands.len();
        if !whole && commands.len() > 1 {
            for command in commands {
                Box::pin(self.batch(std::slice::from_ref(command))).await?;
                self.tag = self.tag.wrapping_add(2);
            }
            return Ok(());
        }
        let before = self.shard.position();
        let alone = commands.len() == 1;
        let mut known: Vec<Vec<LookedUp>> = commands.iter().map(|_| Vec::new()).collect();
        if !alone {
            for command in commands {
                for sku in skus_of(command) {
                    self.say_absent(&command.tenant, &sku).await?;
                }
            }
            for (command, known) in commands.iter().zip(&mut known) {
                *known = self.ledger.words(before.epoch, before.seq, command);
            }
        }
        let mut tries = 0;
        let (tip, batch) = loop {
            let (tip, batch) = self.send(commands, &known).await?;
            if batch.wrote != (tip.tag == self.tag && tip.seq == before.seq + 1) {
                return Err(format!("{batch:?} at {tip:?}"));
            }
            tries += 1;
            let lacks = batch.verdicts.iter().any(|verdict| {
                matches!(
                    verdict,
                    Verdict::Missing(_) | Verdict::Reply(Reply::LookUp { .. } | Reply::Again)
                )
            });
            if !lacks {
                break (tip, batch);
            }
            if !alone || tries > 6 {
                return Err(format!("{:?} at try {tries}", batch.verdicts));
            }
            if batch.wrote {
                // Ends that came were freed before the command stopped: the rules alone do that with the answer.
                self.shard.sweep(self.now, 1_000);
                self.entry(before, tip).await?;
                return Box::pin(self.batch(commands)).await;
            }
            match &batch.verdicts[0] {
                Verdict::Missing(skus) => {
                    self.saw("missing".to_owned());
                    for sku in skus {
                        self.load(&commands[0].tenant, sku).await?;
                    }
                }
                Verdict::Reply(Reply::LookUp { space, id }) => {
                    self.saw(format!("look up {space:?}"));
                    let word = self
                        .ledger
                        .word(before.epoch, before.seq, *space, &commands[0].tenant, id);
                    known[0].push(word);
                }
                other => return Err(format!("{other:?}")),
            }
        };
        for (command, verdict) in commands.iter().zip(&batch.verdicts) {
            let decision = self.shard.apply(self.now, command);
            let kind = label(&format!("{:?}", command.action));
            let kind = kind.split(' ').next().unwrap_or_default();
            self.saw(format!("{kind}: {}", label(&format!("{:?}", decision.reply))));
            if *verdict != Verdict::Reply(decision.reply.clone()) {
                return Err(format!(
                    "{command:#?}\nis answered\n{verdict:#?}\nand not\n{:#?}",
                    decision.reply
                ));
            }
        }
        self.entry(before, tip).await
    }

    fn record(&self, tenant: &Id, sku: &Id) -> Option<SkuRecord> {
        self.shard
            .skus()
            .find(|record| record.tenant == *tenant && record.sku == *sku)
    }

    async fn say_absent(&mut self, tenant: &Id, sku: &Id) -> Checked {
        let has = |(of, absent): &(Id, Absent)| of == tenant && absent.sku == *sku;
        if self.record(tenant, sku).is_some() || self.absent.iter().any(has) {
            return Ok(());
        }
        self.load(tenant, sku).await
    }

    // As an engine does: everything is recorded at once here.
    async fn load(&mut self, tenant: &Id, sku: &Id) -> Checked {
        let error = |error: stockade_redis::CallError| error.to_string();
        let mine = Token(self.tag ^ 0x55);
        let marked = self
            .hot
            .mark(&self.sent(), tenant, sku, mine, false)
            .await
            .map_err(error)?;
        let (_, Marked::Missing(missing)) = value(marked)? else {
            return Err("held, though missing".to_owned());
        };
        let record = self.record(tenant, sku);
        let usage: Vec<(Id, u64)> = self
            .shard
            .usage()
            .filter(|(of, one, ..)| of == tenant && one == sku)
            .map(|(_, _, owner, used)| (owner, used))
            .collect();
        let loaded = self
            .hot
            .load_sku(
                &self.sent(),
                tenant,
                sku,
                missing.token,
                missing.tip,
                record.as_ref(),
                Some(&usage),
            )
            .await;
        if !value(loaded.map_err(error)?)?.1 {
            return Err("not loaded".to_owned());
        }
        if record.is_none() {
            let absent = Absent {
                sku: sku.clone(),
                token: missing.token,
            };
            self.absent.push((tenant.clone(), absent));
        }
        Ok(())
    }
}

fn sets_a_limit(command: &Command) -> bool {
    matches!(&command.action, Action::Configure(configure) if matches!(
        configure.changes,
        Changes { limit_per_owner: Some(Some(_)), .. }
    ))
}

fn skus_of(command: &Command) -> Vec<Id> {
    match &command.action {
        Action::Reserve(reserve) => reserve.lines.iter().map(|line| line.sku.clone()).collect(),
        Action::Confirm(confirm) => {
            let payload = confirm.payload.iter().flat_map(|payload| &payload.lines);
            payload.map(|line| line.sku.clone()).collect()
        }
        Action::Set(set) => vec![set.sku.clone()],
        Action::Adjust(adjust) => vec![adjust.sku.clone()],
        Action::Transfer(transfer) => vec![transfer.sku.clone()],
        Action::Configure(configure) => vec![configure.sku.clone()],
        Action::ShowStock { sku } => vec![sku.clone()],
        Action::Cancel(_) | Action::Extend(_) | Action::Return(_) | Action::ShowReservation { .. } => {
            Vec::new()
        }
    }
}
