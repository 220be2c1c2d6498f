//! A body that is made piece by piece elsewhere: a task that reads pages, a thread that reads a file.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// See the module's text. An error breaks the connection off, so that nobody takes the part for the whole.
#[derive(Debug)]
pub(crate) struct Pieces(Receiver<std::io::Result<Bytes>>);

/// Where the pieces come from. It waits while nobody takes them.
pub(crate) type Source = Sender<std::io::Result<Bytes>>;

impl Pieces {
    /// A body, and where its pieces are put: at most so many wait.
    pub(crate) fn new(waiting_max: usize) -> (Source, Self) {
        let (source, pieces) = channel(waiting_max);
        (source, Self(pieces))
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        self.0
            .poll_recv(context)
            .map(|piece| Some(piece?.map(Frame::data)))
    }
}
