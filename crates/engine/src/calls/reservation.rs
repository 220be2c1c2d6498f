//! Calls about reservations.

use std::time::Duration;

use smallvec::SmallVec;
use stockade_core::{
    Action, AskLine, Cancel, Confirm, ConfirmPayload, Done, DoneCode, Extend, Id, Millis, Mode, PickLine,
    Reason, Reservation, Reserve, Return, ReturnRecord, Subject, TTL_MS_DEFAULT,
};

use super::{Base, awaitable, common, foreign};
use crate::api::Stockade;
use crate::error::Error;

/// A reservation after a command on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Whether it was done now, had been done before, or sealed the id.
    pub code: DoneCode,
    /// The reservation as it stands after the command.
    pub reservation: Reservation,
}

impl Granted {
    fn of(done: Done) -> Result<Self, Error> {
        let code = done.code;
        match done.subject {
            Subject::Reservation(reservation) => Ok(Self {
                code,
                reservation: *reservation,
            }),
            other @ (Subject::Return(_) | Subject::Stock(_)) => Err(foreign(&other)),
        }
    }
}

/// Units that came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    /// Whether it was done now or had been done before.
    pub code: DoneCode,
    /// The return.
    pub record: ReturnRecord,
    /// The reservation after it.
    pub reservation: Reservation,
}

impl Stockade {
    /// Reserves units for an owner: all lines or none. Add lines with [`ReserveCall::line`], then await.
    ///
    /// The id is the caller's choice and makes the call repeatable: sent again with the same owner and lines it gives
    /// the same answer without a second effect.
    #[must_use = "nothing happens until it is awaited"]
    pub fn reserve(&self, id: &str, owner: &str) -> ReserveCall<'_> {
        ReserveCall::new(self, id, owner, Mode::Reserve)
    }

    /// Sells units at once: reserve and confirm in one step.
    #[must_use = "nothing happens until it is awaited"]
    pub fn deduct(&self, id: &str, owner: &str) -> ReserveCall<'_> {
        ReserveCall::new(self, id, owner, Mode::Deduct)
    }

    /// Turns a reservation's units into sold ones: all of them, or the lines that are added (the rest is released).
    #[must_use = "nothing happens until it is awaited"]
    pub fn confirm(&self, id: &str) -> ConfirmCall<'_> {
        let mut base = Base::new(self);
        let id = base.id("id", id);
        ConfirmCall {
            base,
            id,
            lines: None,
            payload: None,
        }
    }

    /// Gives a reservation's units back. An id that never came is sealed: if its reserve turns up later, it is
    /// refused.
    #[must_use = "nothing happens until it is awaited"]
    pub fn cancel(&self, id: &str) -> CancelCall<'_> {
        let mut base = Base::new(self);
        let id = base.id("id", id);
        CancelCall {
            base,
            id,
            reason: Reason::default(),
        }
    }

    /// Moves the end of a pending reservation to a moment in milliseconds since the Unix epoch: in the future, at
    /// most 30 days away; it may also come nearer.
    #[must_use = "nothing happens until it is awaited"]
    pub fn extend(&self, id: &str, ends_at: Millis) -> ExtendCall<'_> {
        let mut base = Base::new(self);
        let id = base.id("id", id);
        ExtendCall { base, id, ends_at }
    }

    /// Gives sold units of a reservation back to where they came from: all that are not returned yet, or the lines
    /// that are added. The return has an id of its own.
    #[must_use = "nothing happens until it is awaited"]
    pub fn return_units(&self, id: &str, reservation: &str) -> ReturnCall<'_> {
        let mut base = Base::new(self);
        let id = base.id("id", id);
        let reservation = base.id("reservation", reservation);
        ReturnCall {
            base,
            id,
            reservation,
            lines: None,
            reason: Reason::default(),
        }
    }

    /// A reservation as it stands: `not_found` when the id never came.
    pub async fn reservation(&self, id: &str) -> Result<Reservation, Error> {
        let mut base = Base::new(self);
        let id = base.id("id", id);
        let done = base.send(Action::ShowReservation { id }).await?;
        Granted::of(done).map(|granted| granted.reservation)
    }
}

/// A reserve or deduct that is being put together.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct ReserveCall<'a> {
    base: Base<'a>,
    id: Id,
    owner: Id,
    mode: Mode,
    ttl_ms: i64,
    lines: SmallVec<[AskLine; 1]>,
    supersedes: Option<Id>,
}

impl<'a> ReserveCall<'a> {
    common!();

    fn new(store: &'a Stockade, id: &str, owner: &str, mode: Mode) -> Self {
        let mut base = Base::new(store);
        let id = base.id("id", id);
        let owner = base.id("owner", owner);
        Self {
            base,
            id,
            owner,
            mode,
            ttl_ms: TTL_MS_DEFAULT,
            lines: SmallVec::new(),
            supersedes: None,
        }
    }

    /// Asks for units of a SKU, 1..=2^53-1, from wherever its allocation order says. At most 100 lines.
    pub fn line(mut self, sku: &str, quantity: u64) -> Self {
        self.push(sku, quantity, None, None);
        self
    }

    /// Asks for units that lie at one location.
    pub fn line_at(mut self, sku: &str, location: &str, quantity: u64) -> Self {
        self.push(sku, quantity, Some(location), None);
        self
    }

    /// Asks for units if the SKU still has this revision.
    pub fn line_if_revision(mut self, sku: &str, quantity: u64, revision: u64) -> Self {
        self.push(sku, quantity, None, Some(revision));
        self
    }

    /// How long the units are held: 1 second to 30 days, in whole milliseconds; default 30 minutes.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl_ms = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX);
        self
    }

    /// The owner's own pending reservation that this one takes the place of, in the same step.
    pub fn supersedes(mut self, id: &str) -> Self {
        self.supersedes = Some(self.base.id("supersedes", id));
        self
    }

    fn push(&mut self, sku: &str, quantity: u64, location: Option<&str>, if_revision: Option<u64>) {
        let index = self.lines.len();
        let sku = self.base.id(&format!("lines[{index}].sku"), sku);
        let location = location.map(|text| self.base.id(&format!("lines[{index}].location"), text));
        self.lines.push(AskLine {
            sku,
            quantity,
            location,
            if_revision,
        });
    }

    async fn send(self) -> Result<Granted, Error> {
        let action = Action::Reserve(Reserve {
            id: self.id,
            owner: self.owner,
            mode: self.mode,
            ttl_ms: self.ttl_ms,
            lines: self.lines,
            supersedes: self.supersedes,
        });
        Granted::of(self.base.send(action).await?)
    }
}

awaitable!(ReserveCall, Granted);

/// A confirm that is being put together.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct ConfirmCall<'a> {
    base: Base<'a>,
    id: Id,
    lines: Option<Vec<PickLine>>,
    payload: Option<ConfirmPayload>,
}

impl ConfirmCall<'_> {
    common!();

    /// Confirms only the lines that are added like this, so many units of each; the rest is released.
    pub fn line(mut self, sku: &str, quantity: u64) -> Self {
        pick(&mut self.base, &mut self.lines, sku, None, quantity);
        self
    }

    /// The same for a line that asked for a location.
    pub fn line_at(mut self, sku: &str, location: &str, quantity: u64) -> Self {
        pick(&mut self.base, &mut self.lines, sku, Some(location), quantity);
        self
    }

    /// The owner that the reservation was asked for, so that the confirm can stand in for a reserve that was lost.
    /// Add what it asked for with [`ConfirmCall::asked`].
    pub fn owner(mut self, owner: &str) -> Self {
        let owner = self.base.id("payload.owner", owner);
        let lines = self.payload.map(|payload| payload.lines).unwrap_or_default();
        self.payload = Some(ConfirmPayload { owner, lines });
        self
    }

    /// A line that the reservation asked for; after [`ConfirmCall::owner`].
    pub fn asked(mut self, sku: &str, location: Option<&str>, quantity: u64) -> Self {
        let index = self.payload.as_ref().map_or(0, |payload| payload.lines.len());
        let sku = self.base.id(&format!("payload.lines[{index}].sku"), sku);
        let location = location.map(|text| self.base.id(&format!("payload.lines[{index}].location"), text));
        if let Some(payload) = &mut self.payload {
            payload.lines.push(AskLine {
                sku,
                quantity,
                location,
                if_revision: None,
            });
        } else {
            self.base
                .problem("payload.owner", "nothing".into(), "an owner, given first".into());
        }
        self
    }

    async fn send(self) -> Result<Granted, Error> {
        let action = Action::Confirm(Confirm {
            id: self.id,
            lines: self.lines,
            payload: self.payload,
        });
        Granted::of(self.base.send(action).await?)
    }
}

awaitable!(ConfirmCall, Granted);

/// A cancel that is being put together.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct CancelCall<'a> {
    base: Base<'a>,
    id: Id,
    reason: Reason,
}

impl CancelCall<'_> {
    common!();

    /// Why, at most 256 bytes, for the movements.
    pub fn reason(mut self, reason: &str) -> Self {
        self.reason = self.base.reason(reason);
        self
    }

    async fn send(self) -> Result<Granted, Error> {
        let action = Action::Cancel(Cancel {
            id: self.id,
            reason: self.reason,
        });
        Granted::of(self.base.send(action).await?)
    }
}

awaitable!(CancelCall, Granted);

/// An extend that is being put together.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct ExtendCall<'a> {
    base: Base<'a>,
    id: Id,
    ends_at: Millis,
}

impl ExtendCall<'_> {
    common!();

    async fn send(self) -> Result<Granted, Error> {
        let action = Action::Extend(Extend {
            id: self.id,
            ends_at: self.ends_at,
        });
        Granted::of(self.base.send(action).await?)
    }
}

awaitable!(ExtendCall, Granted);

/// A return that is being put together.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct ReturnCall<'a> {
    base: Base<'a>,
    id: Id,
    reservation: Id,
    lines: Option<Vec<PickLine>>,
    reason: Reason,
}

impl ReturnCall<'_> {
    common!();

    /// Returns only the lines that are added like this, so many units of each.
    pub fn line(mut self, sku: &str, quantity: u64) -> Self {
        pick(&mut self.base, &mut self.lines, sku, None, quantity);
        self
    }

    /// The same for a line that asked for a location.
    pub fn line_at(mut self, sku: &str, location: &str, quantity: u64) -> Self {
        pick(&mut self.base, &mut self.lines, sku, Some(location), quantity);
        self
    }

    /// Why, at most 256 bytes, for the movements.
    pub fn reason(mut self, reason: &str) -> Self {
        self.reason = self.base.reason(reason);
        self
    }

    async fn send(self) -> Result<Returned, Error> {
        let action = Action::Return(Return {
            id: self.id,
            reservation: self.reservation,
            lines: self.lines,
            reason: self.reason,
        });
        let done = self.base.send(action).await?;
        match done.subject {
            Subject::Return(both) => Ok(Returned {
                code: done.code,
                record: both.0,
                reservation: both.1,
            }),
            other @ (Subject::Reservation(_) | Subject::Stock(_)) => Err(foreign(&other)),
        }
    }
}

awaitable!(ReturnCall, Returned);

fn pick(
    base: &mut Base<'_>,
    lines: &mut Option<Vec<PickLine>>,
    sku: &str,
    location: Option<&str>,
    quantity: u64,
) {
    let lines = lines.get_or_insert_default();
    let index = lines.len();
    let sku = base.id(&format!("lines[{index}].sku"), sku);
    let location = location.map(|text| base.id(&format!("lines[{index}].location"), text));
    lines.push(PickLine {
        sku,
        quantity,
        location,
    });
}
