//! A body that is made piece by piece elsewhere: a task that reads pages, a thread that reads a file.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// See the module's text. An error breaks the connection off, so that nobody takes the part for the whole.
#[derive(Debug)]
pub(crate) struct Pieces {
    pieces: Receiver<std::io::Result<Bytes>>,
    /// How much is still to come, where that is known: then the head says it, and a cut is seen by its length too.
    left: Option<u64>,
}

/// Where the pieces come from. It waits while nobody takes them.
pub(crate) type Source = Sender<std::io::Result<Bytes>>;

impl Pieces {
    /// A body, and where its pieces are put: at most so many wait.
    pub(crate) fn new(waiting_max: usize) -> (Source, Self) {
        let (source, pieces) = channel(waiting_max);
        (source, Self { pieces, left: None })
    }

    /// The same for a body of so many bytes.
    pub(crate) fn of(bytes: u64, waiting_max: usize) -> (Source, Self) {
        let (source, mut body) = Self::new(waiting_max);
        body.left = Some(bytes);
        (source, body)
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let polled = self.pieces.poll_recv(context);
        if let (Poll::Ready(Some(Ok(piece))), Some(left)) = (&polled, &mut self.left) {
            *left = left.saturating_sub(piece.len() as u64);
        }
        polled.map(|piece| Some(piece?.map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
