//! What clients are told, held against what clients were told before and against the ledger.

use crate::state::{Broken, Cmd, IDS, Req, SUPPLY, Stage, Status, Verdict, World};

/// Told that it is sold.
pub(crate) const SOLD: u8 = 1;
/// Told that it has ended: cancelled, sealed or expired.
pub(crate) const ENDED: u8 = 2;
/// Told that it is cancelled or sealed.
pub(crate) const CANCELLED: u8 = 4;
/// Told that it is reserved and recorded.
pub(crate) const HARD: u8 = 8;
/// Told that it is reserved.
pub(crate) const SOFT: u8 = 16;

impl World {
    pub(crate) fn fail(&mut self, invariant: u8, what: &'static str) {
        if self.broken.is_none() {
            self.broken = Some(Broken { invariant, what });
            self.log.say(|| format!("        BROKEN ({invariant}): {what}"));
        }
    }

    /// A client asks; it may ask again for the same id whenever it likes.
    pub(crate) fn ask(&mut self, id: usize, cmd: Cmd, proc: usize, own: bool) {
        self.serial += 1;
        if matches!(cmd, Cmd::Reserve | Cmd::ReserveHard | Cmd::Deduct) {
            self.asked[id] = true;
        }
        self.reqs.push(Req {
            serial: self.serial,
            id,
            cmd,
            proc,
            stage: Stage::Queued,
            own,
            told: self.told,
        });
    }

    /// Gives an answer to the client of a request, and checks it.
    pub(crate) fn answer(&mut self, index: usize, verdict: Verdict) {
        let req = self.reqs.remove(index);
        let (id, told) = (req.id, req.told[req.id]);
        self.log.say(|| {
            let who = if req.own { "process's own" } else { "client's" };
            format!(
                "        answer to the {who} {:?} of id {id}: {verdict:?}",
                req.cmd
            )
        });
        let status = self.ledger.records[id].0;
        match verdict {
            Verdict::Sold { .. } => {
                if status != Status::Confirmed {
                    self.fail(6, "a reply shows a sale that is not recorded");
                }
                self.told[id] |= SOLD;
            }
            Verdict::Ended(Status::Lost) => self.reported[id] = true,
            Verdict::Ended(end) => {
                if !matches!(status, Status::Cancelled | Status::Expired) {
                    self.fail(6, "a reply shows an end that is not recorded");
                }
                self.told[id] |= ENDED | if end == Status::Cancelled { CANCELLED } else { 0 };
            }
            Verdict::Pending => self.answer_pending(&req, told, status),
            Verdict::Short | Verdict::NotFound => self.answer_refused(&req, told, verdict),
            Verdict::IdReused | Verdict::LookUp | Verdict::MissingSku | Verdict::Fork => {}
        }
    }

    fn answer_pending(&mut self, req: &Req, told: u8, status: Status) {
        if told & (SOLD | ENDED) != 0 && !self.lossy {
            self.fail(
                5,
                "granted anew after the client was told that it was sold or had ended, and nothing was lost",
            );
        }
        if req.cmd == Cmd::ReserveHard {
            if matches!(status, Status::Absent | Status::Lost) {
                self.fail(
                    4,
                    "a grant was answered as recorded, and the ledger does not have it",
                );
            }
            self.told[req.id] |= HARD | SOFT;
        } else if req.cmd != Cmd::Read {
            self.told[req.id] |= SOFT;
        }
    }

    fn answer_refused(&mut self, req: &Req, told: u8, verdict: Verdict) {
        let id = req.id;
        if req.own {
            // The process that kept the grant reports that it is gone.
            self.reported[id] = true;
        }
        if told & (SOLD | ENDED | HARD) != 0 {
            self.fail(5, "refused after the client was told of a recorded grant or end");
        }
        if told & SOFT != 0 && !self.lossy {
            self.fail(5, "refused after a grant was answered, and nothing was lost");
        }
        if verdict == Verdict::Short {
            let taken = (0..IDS).filter(|j| *j != id && self.asked[*j] && req.told[*j] & ENDED == 0);
            if taken.count() < usize::from(SUPPLY) {
                self.fail(5, "refused as sold out although clients know that a unit is free");
            }
        }
    }
}
