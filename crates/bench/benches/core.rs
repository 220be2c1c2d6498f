//! Nanoseconds per command of the rules alone.
#![expect(clippy::unwrap_used, reason = "a bench may end with a panic")]

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use stockade_core::{
    Action, AskLine, Cancel, Command, Count, Expect, Id, Mode, Position, Reason, Reply, Reserve, Rules, Set,
    Shard,
};

const NOW: i64 = 1_767_000_000_000;
const HELD: u64 = 100_000;

fn command(action: Action) -> Command {
    Command {
        tenant: Id::default_name(),
        actor: Id::new("bench").unwrap(),
        action,
    }
}

fn id(n: u64) -> Id {
    Id::new(&format!("order-{n:018x}")).unwrap()
}

fn reserve(n: u64, sku: &str) -> Command {
    command(Action::Reserve(Reserve {
        id: id(n),
        owner: Id::new(&format!("owner{:07}", n % 10_000_000)).unwrap(),
        mode: Mode::Reserve,
        ttl_ms: 3_600_000,
        lines: [AskLine {
            sku: Id::new(sku).unwrap(),
            quantity: 1,
            location: None,
            if_revision: None,
        }]
        .into(),
        supersedes: None,
    }))
}

fn set(sku: &str, target: u64) -> Command {
    command(Action::Set(Set {
        id: Id::new(&format!("set-{sku}")).unwrap(),
        sku: Id::new(sku).unwrap(),
        location: Id::default_name(),
        target,
        count: Count::Create,
        expect: Expect::Any,
        reason: Reason::default(),
    }))
}

/// A shard that holds 100,000 live reservations; SKU `none` is sold out.
fn shard() -> Shard {
    let mut shard = Shard::new(0, Rules::default(), 7);
    shard.open(
        Position {
            epoch: 1,
            seq: 0,
            tag: 0,
        },
        NOW,
    );
    shard.forgotten_known();
    for set in [set("hot", 1 << 40), set("none", 0)] {
        assert!(matches!(shard.apply(NOW, &set).reply, Reply::Done(_)));
    }
    for n in 0..HELD {
        assert!(matches!(
            shard.apply(NOW, &reserve(n, "hot")).reply,
            Reply::Done(_)
        ));
        if n % 512 == 0 {
            shard.seal(n + 1);
        }
    }
    shard.seal(u64::MAX);
    shard
}

/// Runs `make(n)` for n = 0..512 on a shard and seals the entry, as a group does.
fn group(c: &mut Criterion, name: &str, make: impl Fn(u64) -> Command) {
    const GROUP: u64 = 512;
    let mut shard = shard();
    let mut round = 0;
    let mut group = c.benchmark_group("core");
    group.throughput(criterion::Throughput::Elements(GROUP));
    group.bench_function(name, |b| {
        b.iter_batched(
            || {
                round += 1;
                (round * GROUP..(round + 1) * GROUP)
                    .map(&make)
                    .collect::<Vec<_>>()
            },
            |commands| {
                for command in &commands {
                    std::hint::black_box(shard.apply(NOW, command));
                }
                std::hint::black_box(shard.seal(9))
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn core(c: &mut Criterion) {
    group(c, "reserve", |n| reserve(HELD + n, "hot"));
    group(c, "replay", |n| reserve(n % HELD, "hot"));
    group(c, "sold out", |n| reserve(HELD + n, "none"));
    group(c, "cancel, sealing", |n| {
        command(Action::Cancel(Cancel {
            id: id((1 << 40) + n),
            reason: Reason::default(),
        }))
    });
    group(c, "show stock", |_| {
        command(Action::ShowStock {
            sku: Id::new("hot").unwrap(),
        })
    });
}

criterion_group!(benches, core);
criterion_main!(benches);
