//! Ids looked up for those whom the gate stops. One call is under way at a time; whoever comes meanwhile shares the next
//! one, so that a million losers cost few calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stockade::Stockade;
use stockade_core::{Action, Command, Id, Status, Subject};
use tokio::sync::oneshot;

/// Ids in one call.
const TOGETHER_MAX: usize = 1_024;

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub(crate) struct LookUps {
    queue: Arc<Mutex<Queue>>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<(Command, oneshot::Sender<bool>)>,
    under_way: bool,
}

impl LookUps {
    /// Whether there is a reservation of this id that a command would meet. Nobody knowing counts as no: the caller then
    /// hears of a limit, which says nothing about the id.
    pub(crate) async fn knows(&self, store: &Stockade, tenant: &Id, actor: &Id, id: &Id) -> bool {
        let (tell, told) = oneshot::channel();
        let command = Command {
            tenant: tenant.clone(),
            actor: actor.clone(),
            action: Action::ShowReservation { id: id.clone() },
        };
        let idle = {
            let mut queue = self.locked();
            queue.waiting.push((command, tell));
            !std::mem::replace(&mut queue.under_way, true)
        };
        if idle {
            // A task of its own: whoever asked first may hang up, and the others must still be answered.
            tokio::spawn(self.clone().run(store.clone()));
        }
        told.await.unwrap_or(false)
    }

    async fn run(self, store: Stockade) {
        loop {
            let together = {
                let mut queue = self.locked();
                if queue.waiting.is_empty() {
                    queue.under_way = false;
                    return;
                }
                let count = queue.waiting.len().min(TOGETHER_MAX);
                queue.waiting.drain(..count).collect::<Vec<_>>()
            };
            let (commands, tell): (Vec<_>, Vec<_>) = together.into_iter().unzip();
            let answers = store.submit_many(commands).await;
            for (answer, tell) in answers.into_iter().zip(tell) {
                let known = answer.is_ok_and(|done| match &done.subject {
                    // A lost one is as if it had never come.
                    Subject::Reservation(reservation) => reservation.status != Status::Lost,
                    Subject::Return(_) | Subject::Stock(_) => false,
                });
                // Whoever asked may have hung up.
                let _ = tell.send(known);
            }
        }
    }

    fn locked(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
