//! What the clients of a drill trade in, and how their trade is counted.

/// The SKUs of a drill.
#[derive(Clone, Debug)]
pub(crate) struct Shop {
    /// Begins every SKU and id.
    pub(crate) name: String,
    /// Units first put in, per SKU. The last SKU is the scarce one.
    pub(crate) supply: Vec<u64>,
    /// Some reservations are made to run out. Then the reserved units change on their own.
    pub(crate) short_ends: bool,
}

impl Shop {
    pub(crate) fn sku(&self, index: usize) -> String {
        format!("drill-{}-s{index}", self.name)
    }
}

/// Units brought later by an adjustment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) sku: usize,
    pub(crate) units: u32,
    pub(crate) arrived: bool,
}

/// How often what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) sent: u64,
    pub(crate) answered: u64,
    pub(crate) in_doubt: u64,
    /// Commands in doubt that turned out to have happened.
    pub(crate) happened: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.answered += other.answered;
        self.in_doubt += other.in_doubt;
        self.happened += other.happened;
    }
}
