//! From a decision to what becomes of it: the ways of one command and of a batch, beside each other because they must
//! agree.

use stockade_core::{Command, Decision, LookedUp, Millis, Reply};
use tokio::sync::oneshot;

use super::{LOOK_UPS_MAX, Out, Running, Waiter, closing, corrupted, one, too_many_look_ups};
use crate::error::Error;
use crate::memory::look_up::Job;
use crate::tally::Kind;
use crate::tier::{Answer, Answered, Batch, Decided, Submission};

impl Running {
    /// What becomes of one command once it is decided: an answer, a look-up, or another turn.
    pub(super) fn settle(
        &mut self,
        command: Command,
        answer: oneshot::Sender<Answer>,
        decision: Decision,
        look_ups: u32,
        out: &mut Out,
    ) {
        let kind = Kind::of(&command.action);
        let result = match decision.reply {
            Reply::Done(done) => Ok(Answered::recorded(done)),
            Reply::Refused(refusal) => Err(Error::Refused(refusal)),
            Reply::Corrupt { what } => {
                self.corrupt = Some(what);
                Err(corrupted(what))
            }
            Reply::Again if self.closing => Err(closing()),
            Reply::Again => {
                self.parked.push_back(one(command, answer));
                return;
            }
            Reply::LookUp { .. } if look_ups >= LOOK_UPS_MAX => Err(too_many_look_ups()),
            Reply::LookUp { space, id } => {
                let tenant = command.tenant.clone();
                let work = one(command, answer);
                self.pause(
                    work,
                    look_ups,
                    Job {
                        key: 0,
                        space,
                        tenant,
                        id,
                    },
                    out,
                );
                return;
            }
        };
        let waiter = Waiter::One { kind, result, answer };
        self.answer(waiter, decision.needs, out);
    }

    /// Decides the commands of a batch one by one, until one needs a look-up or another turn.
    pub(super) fn go_on(
        &mut self,
        mut batch: Box<Batch>,
        mut known: Option<LookedUp>,
        mut look_ups: u32,
        now: Millis,
        out: &mut Out,
    ) {
        while let Some(command) = batch.next_command() {
            if let Some(what) = self.corrupt {
                batch.decide(Err(corrupted(what)), 0);
                continue;
            }
            let decision = match known.take() {
                Some(known) => self.shard.apply_known(now, command, known),
                None => self.shard.apply(now, command),
            };
            let result = match decision.reply {
                Reply::Done(done) => Ok(Answered::recorded(done)),
                Reply::Refused(refusal) => Err(Error::Refused(refusal)),
                Reply::Corrupt { what } => {
                    self.corrupt = Some(what);
                    Err(corrupted(what))
                }
                Reply::Again if self.closing => Err(closing()),
                Reply::Again => {
                    self.parked.push_back(Submission::Many(batch));
                    return;
                }
                Reply::LookUp { .. } if look_ups >= LOOK_UPS_MAX => Err(too_many_look_ups()),
                Reply::LookUp { space, id } => {
                    let tenant = command.tenant.clone();
                    let job = Job {
                        key: 0,
                        space,
                        tenant,
                        id,
                    };
                    self.pause(Submission::Many(batch), look_ups, job, out);
                    return;
                }
            };
            look_ups = 0;
            batch.decide(result, decision.needs);
        }
        let needs = batch.needs();
        self.answer(Waiter::Many(batch), needs, out);
    }
}

impl Batch {
    /// The next command that has no answer yet.
    pub(super) fn next_command(&mut self) -> Option<&Command> {
        while self.decided.get(self.next).is_some_and(Option::is_some) {
            self.next += 1;
        }
        self.commands.get(self.next)
    }

    /// Answers the command that `next_command` gave.
    pub(super) fn decide(&mut self, answer: Answer, needs: u64) {
        if let Some(slot) = self.decided.get_mut(self.next) {
            *slot = Some(Decided { answer, needs });
        }
        self.next += 1;
    }
}
