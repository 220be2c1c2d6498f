//! The transition table: what each wish about a reservation leads to in each state. Nothing else decides that.

use crate::record::Status;

/// What is wished, as far as the table cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Reserve or deduct, with the payload that the id was granted for.
    Reserve,
    /// Reserve or deduct, with another payload.
    ReserveOther,
    /// Confirm by id alone.
    Confirm,
    /// Confirm with the payload along, the one that the id was granted for.
    ConfirmPayload,
    /// Confirm with another payload along.
    ConfirmOther,
    /// Cancel.
    Cancel,
    /// Extend.
    Extend,
    /// Return.
    Return,
}

/// Where the reservation stands. Pending past its end is `Expired`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Absent,
    Pending,
    Confirmed,
    Cancelled,
    /// Cancelled before it came.
    Sealed,
    Expired,
    Lost,
}

impl State {
    pub(super) const fn of(status: Status, sealed: bool) -> Self {
        match (status, sealed) {
            (Status::Pending, _) => Self::Pending,
            (Status::Confirmed, _) => Self::Confirmed,
            (Status::Cancelled, false) => Self::Cancelled,
            (Status::Cancelled, true) => Self::Sealed,
            (Status::Expired, _) => Self::Expired,
            (Status::Lost, _) => Self::Lost,
        }
    }
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Check everything, then grant or refuse.
    Grant,
    /// The same answer again.
    Replay,
    /// Reserved units become sold ones.
    Confirm,
    /// A replay if the same lines were confirmed.
    Compare,
    /// Confirm after the end, if the service does and the units are there.
    ConfirmLate,
    /// Reserved units go back.
    Release,
    /// Becomes cancelled; no units move.
    CancelEnded,
    /// A cancelled record without lines.
    Seal,
    /// A new end.
    Extend,
    /// Sold units come back.
    GiveBack,
    /// Refused.
    NotFound,
    /// Refused.
    IdReused,
    /// Refused.
    Expired,
    /// Refused.
    AlreadyConfirmed,
    /// Refused.
    AlreadyCancelled,
    /// Refused.
    NotConfirmed,
}

/// The table.
#[expect(
    clippy::match_same_arms,
    reason = "a row a wish: the table reads as in the documentation"
)]
pub(super) const fn next(wish: Wish, state: State) -> Step {
    use State as S;
    use Wish as W;
    match (wish, state) {
        (W::Reserve | W::ReserveOther, S::Absent) | (W::Reserve, S::Lost) => Step::Grant,
        (W::Reserve, S::Pending | S::Confirmed) => Step::Replay,
        (W::Reserve, S::Cancelled | S::Sealed) | (W::ReserveOther, S::Sealed) => Step::AlreadyCancelled,
        (W::Reserve, S::Expired) => Step::Expired,
        (W::ReserveOther, S::Pending | S::Confirmed | S::Cancelled | S::Expired | S::Lost) => Step::IdReused,

        (W::Confirm, S::Absent) => Step::NotFound,
        (W::ConfirmPayload | W::ConfirmOther, S::Absent) => Step::Grant,
        (W::Confirm | W::ConfirmPayload, S::Pending) => Step::Confirm,
        (W::Confirm | W::ConfirmPayload, S::Confirmed) => Step::Compare,
        (W::Confirm | W::ConfirmPayload, S::Cancelled | S::Sealed) | (W::ConfirmOther, S::Sealed) => {
            Step::AlreadyCancelled
        }
        (W::Confirm | W::ConfirmPayload, S::Expired | S::Lost) => Step::ConfirmLate,
        (W::ConfirmOther, S::Pending | S::Confirmed | S::Cancelled | S::Expired | S::Lost) => Step::IdReused,

        (W::Cancel, S::Absent) => Step::Seal,
        (W::Cancel, S::Pending) => Step::Release,
        (W::Cancel, S::Confirmed) => Step::AlreadyConfirmed,
        (W::Cancel, S::Cancelled | S::Sealed) => Step::Replay,
        (W::Cancel, S::Expired | S::Lost) => Step::CancelEnded,

        (W::Extend, S::Absent) => Step::NotFound,
        (W::Extend, S::Pending) => Step::Extend,
        (W::Extend, S::Confirmed) => Step::AlreadyConfirmed,
        (W::Extend, S::Cancelled | S::Sealed) => Step::AlreadyCancelled,
        (W::Extend, S::Expired | S::Lost) => Step::Expired,

        (W::Return, S::Absent) => Step::NotFound,
        (W::Return, S::Confirmed) => Step::GiveBack,
        (W::Return, S::Pending | S::Cancelled | S::Sealed | S::Expired | S::Lost) => Step::NotConfirmed,
    }
}
