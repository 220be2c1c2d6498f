//! One reader of the ledger for everybody who follows: it looks for what was recorded and hands each page to all.
//!
//! It works while somebody listens. What is handed out is bounded; whoever falls behind further than that reads the ledger
//! alone, from where it stands.

use std::sync::Arc;
use std::time::Duration;

use stockade::Stockade;
use stockade_core::Id;
use stockade_ledger::Movement;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How many movements are read at once.
pub(super) const PAGE: usize = 500;
/// How many pages a listener may be behind.
const PAGES_BEHIND: usize = 32;
/// How often it looks whether this process has recorded something.
const LOOK: Duration = Duration::from_millis(10);
/// How often it looks for what another process has recorded.
const LOOK_ELSEWHERE: Duration = Duration::from_millis(200);

/// Movements that follow each other, each with its tenant.
pub(super) type Page = Arc<Vec<(Id, Movement)>>;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Hub {
    store: Stockade,
    tail: std::sync::Mutex<Tail>,
    pages: broadcast::Sender<Page>,
    stopping: watch::Sender<bool>,
}

#[derive(Debug)]
struct Tail {
    /// The last movement that was handed out.
    head: i64,
    is_running: bool,
}

impl Hub {
    pub(crate) fn new(store: Stockade) -> Arc<Self> {
        Arc::new(Self {
            store,
            tail: std::sync::Mutex::new(Tail {
                head: 0,
                is_running: false,
            }),
            pages: broadcast::Sender::new(PAGES_BEHIND),
            stopping: watch::Sender::new(false),
        })
    }

    /// Ends all streams: whoever listens goes on elsewhere, or here after the restart.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    pub(super) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    pub(super) fn store(&self) -> &Stockade {
        &self.store
    }

    fn tail(&self) -> std::sync::MutexGuard<'_, Tail> {
        // It is whole after every change, so a panic elsewhere does not spoil it.
        self.tail
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Listens: every page after the movement whose number is returned with it.
    pub(super) async fn join(self: &Arc<Self>) -> Result<(broadcast::Receiver<Page>, i64), stockade::Error> {
        let newest = if self.tail().is_running {
            None
        } else {
            Some(self.store.movements_kept().await?.newest)
        };
        let mut tail = self.tail();
        let listening = self.pages.subscribe();
        if !tail.is_running {
            // It ended between the two looks: then it had come at least as far.
            tail.head = tail.head.max(newest.unwrap_or(0));
            tail.is_running = true;
            tokio::spawn(Arc::clone(self).run());
        }
        Ok((listening, tail.head))
    }

    /// Looks for what was recorded until nobody listens any more.
    async fn run(self: Arc<Self>) {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut seen = None;
        let mut looked = Instant::now();
        loop {
            looks.tick().await;
            {
                let mut tail = self.tail();
                if self.pages.receiver_count() == 0 {
                    tail.is_running = false;
                    return;
                }
            }
            let recorded = self.store.health().recorded;
            if seen == Some(recorded) && looked.elapsed() < LOOK_ELSEWHERE {
                continue;
            }
            looked = Instant::now();
            match self.hand_out().await {
                Ok(()) => seen = Some(recorded),
                Err(error) => {
                    // The next look may find it mended; listeners wait meanwhile.
                    tracing::warn!(%error, "events could not be read");
                    seen = Some(recorded);
                }
            }
        }
    }

    async fn hand_out(&self) -> Result<(), stockade::Error> {
        loop {
            let head = self.tail().head;
            let page = self.store.movements_after(head, PAGE).await?;
            let count = page.len();
            let Some((_, last)) = page.last() else {
                return Ok(());
            };
            let number = last.number;
            {
                let mut tail = self.tail();
                tail.head = number;
                // Nobody may be left to hear it: the next look ends the work.
                let _ = self.pages.send(Arc::new(page));
            }
            if count < PAGE {
                return Ok(());
            }
        }
    }
}
