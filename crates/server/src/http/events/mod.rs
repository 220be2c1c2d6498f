//! What happens, told as it is recorded: server-sent events that can be resumed after any of them.

mod event;
mod hub;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::time::{Instant, interval_at, timeout};

use self::hub::PAGE;
use crate::pieces::Source;

pub(crate) use event::{EventView, Place, Wanted};
pub(crate) use hub::Hub;

/// How many pieces wait for a listener that does not read.
pub(crate) const PIECES_WAITING: usize = 4;
/// How long a listener may read nothing at all.
const READ_WITHIN: Duration = Duration::from_secs(60);
/// A sign of life, so that proxies and clients see that the connection stands.
const HEARTBEAT: Duration = Duration::from_secs(15);

const TOO_SLOW: &str = "read too slowly and cut; go on after the last id";
const LISTENERS: &str = "stockade_event_listeners";
const CUT: &str = "stockade_event_listeners_cut_total";

/// One listener.
pub(crate) struct Listener {
    pub(crate) hub: Arc<Hub>,
    pub(crate) wanted: Wanted,
    /// Where to go on; `None`: from now on.
    pub(crate) after: Option<Place>,
    /// Go on with what comes, or end at what is there now.
    pub(crate) follow: bool,
    pub(crate) source: Source,
    /// Whether its key is still good.
    pub(crate) may_go_on: Box<dyn Fn() -> bool + Send + Sync>,
}

/// Why a stream ends.
enum End {
    /// Nobody reads it any more.
    Gone,
    /// With a word to the listener.
    Said(&'static str),
}

impl Listener {
    /// Tells what happens until the listener goes, or has to.
    pub(crate) async fn run(mut self) {
        metrics::gauge!(LISTENERS).increment(1.0);
        let end = self.tell().await;
        metrics::gauge!(LISTENERS).decrement(1.0);
        if let Err(End::Said(why)) = end {
            if why == TOO_SLOW {
                metrics::counter!(CUT).increment(1);
            }
            // A comment, which programs pass over; whoever has gone does not need it.
            let _ = self.send(format!(": {why}\n\n")).await;
        }
    }

    async fn tell(&mut self) -> Result<(), End> {
        let mut stopping = self.hub.stopping();
        let mut beats = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        self.send("retry: 1000\n\n".to_owned()).await?;
        loop {
            let (mut pages, head) = self.hub.join().await.map_err(|_| UNREADABLE)?;
            let mut at = match self.after {
                Some(after) => after,
                None => Place::behind(head),
            };
            at = self.catch_up(at, head).await?;
            self.after = Some(at);
            if !self.follow {
                return Err(End::Said("the end of what is recorded"));
            }
            let mut caught_up = false;
            loop {
                let page = tokio::select! {
                    page = pages.recv() => page,
                    _ = beats.tick() => {
                        if !(self.may_go_on)() {
                            return Err(End::Said("the API key is no longer good"));
                        }
                        self.send(": still here\n\n".to_owned()).await?;
                        continue;
                    }
                    () = stopped(&mut stopping) => {
                        return Err(End::Said("the service is stopping; go on after the last id"));
                    }
                };
                match page {
                    Ok(page) => {
                        caught_up = true;
                        at = self.send_page(&page, at).await?;
                        self.after = Some(at);
                    }
                    // More came while it caught up than is kept for it: it reads that alone too.
                    Err(RecvError::Lagged(_)) if !caught_up => break,
                    Err(RecvError::Lagged(_)) => {
                        return Err(End::Said(TOO_SLOW));
                    }
                    Err(RecvError::Closed) => return Err(End::Gone),
                }
            }
        }
    }

    /// Reads the ledger from a place up to a movement.
    async fn catch_up(&mut self, mut at: Place, head: i64) -> Result<Place, End> {
        let stopping = self.hub.stopping();
        // The movement of the place itself may have further events.
        let mut read = at.number.saturating_sub(1);
        // Up to where it is known, or was said, what is gone.
        let mut complete = at.number;
        while read < head {
            if *stopping.borrow() {
                return Err(End::Said("the service is stopping; go on after the last id"));
            }
            let page = self
                .hub
                .store()
                .movements_after(read, PAGE)
                .await
                .map_err(|_| UNREADABLE)?;
            // Asked after the page was read, so that nothing can go in between.
            let kept = self.hub.store().movements_kept().await.map_err(|_| UNREADABLE)?;
            if kept.complete_after > complete.max(read) {
                let (after, complete_after) = (complete.max(read), kept.complete_after);
                complete = complete_after;
                self.send(format!(
                    "event: gap
data: {{\"kind\":\"gap\",\"after\":{after},\"complete_after\":{complete_after}}}

"
                ))
                .await?;
            }
            let Some((_, last)) = page.last() else { break };
            read = last.number;
            at = self.send_page(&page, at).await?;
        }
        Ok(at)
    }

    /// Sends what is wanted of a page and comes after a place; the place behind all of it.
    async fn send_page(
        &mut self,
        page: &[(stockade_core::Id, stockade_ledger::Movement)],
        at: Place,
    ) -> Result<Place, End> {
        let mut text = String::new();
        for (tenant, movement) in page {
            self.wanted.write(tenant, movement, at, &mut text);
        }
        if !text.is_empty() {
            self.send(text).await?;
        }
        let last = page.last().map(|(_, last)| Place::behind(last.number));
        Ok(last.map_or(at, |last| last.max(at)))
    }

    async fn send(&self, text: String) -> Result<(), End> {
        match timeout(READ_WITHIN, self.source.send(Ok(Bytes::from(text)))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(End::Gone),
        }
    }
}

/// Resolves when the service stops.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // The sender lives as long as the hub, and so does its listener.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

const UNREADABLE: End = End::Said("the ledger could not be read; go on after the last id");
