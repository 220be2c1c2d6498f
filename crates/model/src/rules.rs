//! The rules that can be taken away, one at a time, and the ways an unknown id may be decided.

/// A rule of the protocol. `docs/protocol.md` tells each one's story.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    Tag,
    RecordedByTag,
    InclusiveRead,
    TrimTag,
    LookUp,
    RefusalCheck,
    SaleRecorded,
    FenceFirst,
    NewEpoch,
    StrictChunks,
    LoadMarker,
    SqlEpoch,
    LoadWait,
    RerunLookUp,
    RefuseAgain,
    RerunCounted,
    LoadOnChain,
    RerunFrees,
    RerunSku,
    RerunExtend,
    RerunEnds,
    CheckInScript,
    FreshRow,
    OpeningRow,
    Whole,
    KnownCursor,
    KnownEpoch,
    ForgetBase,
    LiveFork,
    Closed,
    HotOnly,
}

impl Rule {
    /// Those without which something breaks.
    pub const ALL: [Self; 27] = [
        Self::Tag,
        Self::RecordedByTag,
        Self::InclusiveRead,
        Self::TrimTag,
        Self::LookUp,
        Self::RefusalCheck,
        Self::SaleRecorded,
        Self::FenceFirst,
        Self::NewEpoch,
        Self::StrictChunks,
        Self::LoadMarker,
        Self::SqlEpoch,
        Self::LoadWait,
        Self::RerunLookUp,
        Self::RefuseAgain,
        Self::RerunCounted,
        Self::LoadOnChain,
        Self::RerunFrees,
        Self::RerunSku,
        Self::RerunExtend,
        Self::RerunEnds,
        Self::CheckInScript,
        Self::FreshRow,
        Self::OpeningRow,
        Self::Whole,
        Self::KnownCursor,
        Self::Closed,
    ];

    /// Those that stand behind others: without one of them the search finds nothing.
    pub const SECOND_LINES: [Self; 4] = [Self::KnownEpoch, Self::ForgetBase, Self::LiveFork, Self::HotOnly];

    /// As written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tag => "tag",
            Self::RecordedByTag => "recorded-by-tag",
            Self::InclusiveRead => "inclusive-read",
            Self::TrimTag => "trim-tag",
            Self::LookUp => "look-up",
            Self::RefusalCheck => "refusal-check",
            Self::SaleRecorded => "sale-recorded",
            Self::FenceFirst => "fence-first",
            Self::NewEpoch => "new-epoch",
            Self::StrictChunks => "strict-chunks",
            Self::LoadMarker => "load-marker",
            Self::SqlEpoch => "sql-epoch",
            Self::LoadWait => "load-wait",
            Self::RerunLookUp => "rerun-look-up",
            Self::RefuseAgain => "refuse-again",
            Self::RerunCounted => "rerun-counted",
            Self::LoadOnChain => "load-on-chain",
            Self::RerunFrees => "rerun-frees",
            Self::RerunSku => "rerun-sku",
            Self::RerunExtend => "rerun-extend",
            Self::RerunEnds => "rerun-ends",
            Self::CheckInScript => "check-in-script",
            Self::FreshRow => "fresh-row",
            Self::OpeningRow => "opening-row",
            Self::Whole => "whole",
            Self::KnownCursor => "known-cursor",
            Self::KnownEpoch => "known-epoch",
            Self::ForgetBase => "forget-base",
            Self::LiveFork => "live-fork",
            Self::Closed => "closed",
            Self::HotOnly => "hot-only",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .chain(Self::SECOND_LINES)
            .find(|r| r.name() == name)
    }

    fn bit(self) -> u32 {
        1 << (self as u32)
    }
}

/// The rules in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules(u32);

impl Rules {
    pub const ALL: Self = Self(u32::MAX);

    #[must_use]
    pub fn without(self, rule: Rule) -> Self {
        Self(self.0 & !rule.bit())
    }

    pub fn has(self, rule: Rule) -> bool {
        self.0 & rule.bit() != 0
    }
}

/// When the ledger's word about an unknown id is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Look {
    /// Always.
    Always,
    /// Not while this epoch holds every id there ever was.
    Forgot,
    /// Only for ids in the filter of forgotten ids.
    Filter,
}

impl Look {
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "always" => Some(Self::Always),
            "forgot" => Some(Self::Forgot),
            "filter" => Some(Self::Filter),
            _ => None,
        }
    }
}
