//! A typed call for every script, by family, and the list of them all.

mod deduct;
mod delay;
mod limits;
mod locks;
mod orders;
mod reserve;
mod seckill;
mod segments;

pub use deduct::*;
pub use delay::*;
pub use limits::*;
pub use locks::*;
pub use orders::*;
pub use reserve::*;
pub use seckill::*;
pub use segments::*;

use redis::Value;

use crate::call::Call;
use crate::source::Script;

/// Declares the script of a file under `lua/`, with its vectors.
macro_rules! script {
    ($name:ident, $file:literal) => {
        pub static $name: crate::source::Script = crate::source::Script::new(
            $file,
            include_str!(concat!("../../lua/", $file, ".lua")),
            include_str!(concat!("../../vectors/", $file, ".json")),
        );
    };
}

/// The plumbing of a typed call: which script, which keys and arguments, and how its reply reads.
macro_rules! call {
    (
        $type:ty, $script:ident => $reply:ty,
        keys [$($key:literal),*] |$call:ident| $keys:expr,
        args [$($arg:literal),*] |$this:ident, $to:ident| $args:expr,
        reply |$value:ident| $parse:expr
    ) => {
        impl crate::call::Call for $type {
            type Reply = $reply;
            const KEYS: &'static [&'static str] = &[$($key),*];
            const ARGS: &'static [&'static str] = &[$($arg),*];

            fn script() -> &'static crate::source::Script {
                &$script
            }

            fn keys(&self) -> Vec<&str> {
                let $call = self;
                $keys
            }

            fn args(&self, $to: &mut crate::call::Args<'_>) {
                let $this = self;
                $args;
            }

            fn parse($value: &redis::Value) -> Option<Self::Reply> {
                $parse
            }
        }
    };
}

pub(crate) use {call, script};

/// A script with what its typed call says about it, so that tools and tests can go through all of them.
#[derive(Debug)]
pub struct Entry {
    pub script: &'static Script,
    pub keys: &'static [&'static str],
    pub args: &'static [&'static str],
    /// Whether the typed call understands this reply.
    pub understands: fn(&Value) -> bool,
}

fn entry<S: Call>() -> Entry {
    Entry {
        script: S::script(),
        keys: S::KEYS,
        args: S::ARGS,
        understands: |reply| S::parse(reply).is_some(),
    }
}

/// Every script, in the order of the table in `docs/scripts.md`.
pub fn all() -> Vec<Entry> {
    vec![
        entry::<Deduct<'_>>(),
        entry::<DeductFloor<'_>>(),
        entry::<DeductCas<'_>>(),
        entry::<DeductSold<'_>>(),
        entry::<DeductMany<'_>>(),
        entry::<DeductOnce<'_>>(),
        entry::<Restore<'_>>(),
        entry::<Reserve<'_>>(),
        entry::<Confirm<'_>>(),
        entry::<Release<'_>>(),
        entry::<ReleaseDue<'_>>(),
        entry::<Seckill<'_>>(),
        entry::<SeckillRestore<'_>>(),
        entry::<SegmentInit<'_>>(),
        entry::<SegmentDeduct<'_>>(),
        entry::<SegmentGather<'_>>(),
        entry::<SegmentRestore<'_>>(),
        entry::<SegmentPart<'_>>(),
        entry::<Warm<'_>>(),
        entry::<IntervalLimit<'_>>(),
        entry::<TokenBucket<'_>>(),
        entry::<Lock<'_>>(),
        entry::<Unlock<'_>>(),
        entry::<Extend<'_>>(),
        entry::<DelayAdd<'_>>(),
        entry::<DelayClaim<'_>>(),
        entry::<DelayAck<'_>>(),
        entry::<DelayRetry<'_>>(),
    ]
}

/// The script of that name.
pub fn named(name: &str) -> Option<&'static Script> {
    all()
        .into_iter()
        .map(|entry| entry.script)
        .find(|script| script.name() == name)
}
