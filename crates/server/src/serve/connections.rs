//! Connections: accepted up to a bound, watched while they are silent, closed in order.
//!
//! Past the bound the connection that has been silent longest makes room, so that any number of clients that say
//! nothing cannot keep a further one out. Closing one never splits a command: a command is done whole or not at all.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio_rustls::server::TlsStream;
use tower::Service as _;

use super::tls::Tls;

use crate::http::Peer;

/// How long to wait before accepting again when the machine has no room for another connection.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);
/// How long a silent connection may finish sending a request after the service was told to stop.
const LAST_WORDS: Duration = Duration::from_millis(250);
/// Buffers of one connection stay below this.
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// Open files beyond connections: the ledger, standard streams, timers.
const OTHER_FILES: u64 = 128;
/// The mark of a connection with a request in hand.
const BUSY: u64 = u64::MAX;

/// All connections of the service.
#[derive(Debug)]
pub(super) struct Connections {
    open: Mutex<HashMap<u64, Arc<Connection>>>,
    max: usize,
    head_within: Duration,
    /// Requests are told where they came from.
    show_peers: bool,
    tls: Option<Arc<Tls>>,
    stopped: watch::Receiver<bool>,
    since: Instant,
    all_closed: Notify,
}

/// One connection.
#[derive(Debug)]
struct Connection {
    /// Since when it has been silent, in milliseconds after the start; [`BUSY`] while a request is being answered.
    silent_since: AtomicU64,
    make_room: Notify,
}

impl Connection {
    fn fall_silent(&self, since: Instant) {
        self.silent_since.store(ms(since), Ordering::Relaxed);
    }
}

/// Milliseconds since the start.
fn ms(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(BUSY - 1)
}

/// A body under way. Its connection falls silent when it is sent, or given up.
struct Sending {
    body: Body,
    connection: Arc<Connection>,
    since: Instant,
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.connection.fall_silent(self.since);
    }
}

impl hyper::body::Body for Sending {
    type Data = bytes::Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<bytes::Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Connections {
    pub(super) fn new(
        max: usize,
        head_within: Duration,
        show_peers: bool,
        tls: Option<Arc<Tls>>,
        stopped: watch::Receiver<bool>,
    ) -> Arc<Self> {
        Arc::new(Self {
            open: Mutex::default(),
            max,
            head_within,
            show_peers,
            tls,
            stopped,
            since: Instant::now(),
            all_closed: Notify::new(),
        })
    }

    /// Accepts until the service is told to stop.
    pub(super) async fn accept(self: Arc<Self>, listener: TcpListener, router: Router) {
        let mut stopped = self.stopped.clone();
        let mut number = 0_u64;
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stopped.wait_for(|stopped| *stopped) => return,
            };
            match accepted {
                Ok((stream, peer)) => {
                    number += 1;
                    let connection = self.admit(number);
                    tokio::spawn(Arc::clone(&self).attend(number, connection, stream, peer, router.clone()));
                }
                Err(error) => {
                    // Either this one connection broke before it was taken, or there is no room for a file: the
                    // longest silent one is closed, and the next try comes after a moment.
                    tracing::warn!(%error, "a connection could not be accepted");
                    self.make_room();
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
            }
        }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<Connection>>> {
        // The map is whole after every change, so a panic elsewhere does not spoil it.
        self.open
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        ms(self.since)
    }

    fn admit(&self, number: u64) -> Arc<Connection> {
        let connection = Arc::new(Connection {
            silent_since: AtomicU64::new(self.now_ms()),
            make_room: Notify::new(),
        });
        let full = {
            let mut open = self.locked();
            open.insert(number, Arc::clone(&connection));
            open.len() > self.max
        };
        if full {
            self.make_room();
        }
        connection
    }

    /// Closes the connection that has been silent longest.
    fn make_room(&self) {
        let mut open = self.locked();
        let longest = open
            .iter()
            .map(|(number, connection)| (connection.silent_since.load(Ordering::Relaxed), *number))
            .filter(|(since, _)| *since != BUSY)
            .min();
        if let Some(connection) = longest.and_then(|(_, number)| open.remove(&number)) {
            connection.make_room.notify_one();
        }
    }

    async fn attend(
        self: Arc<Self>,
        number: u64,
        connection: Arc<Connection>,
        stream: TcpStream,
        peer: SocketAddr,
        router: Router,
    ) {
        // Refused only for a socket that is already gone.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection was gone at once");
        }
        match &self.tls {
            None => self.talk(&connection, stream, peer, router).await,
            Some(tls) => {
                if let Some(stream) = self.greet(&connection, tls, stream).await {
                    self.talk(&connection, stream, peer, router).await;
                }
            }
        }
        let mut open = self.locked();
        open.remove(&number);
        if open.is_empty() {
            self.all_closed.notify_waiters();
        }
    }

    /// Agrees on TLS; whoever is slow at it is as silent as whoever sends no head.
    async fn greet(
        &self,
        connection: &Connection,
        tls: &Tls,
        stream: TcpStream,
    ) -> Option<TlsStream<TcpStream>> {
        let mut stopped = self.stopped.clone();
        let agreed = tokio::select! {
            agreed = tokio::time::timeout(self.head_within, tls.acceptor().accept(stream)) => agreed,
            () = connection.make_room.notified() => return None,
            _ = stopped.wait_for(|stopped| *stopped) => return None,
        };
        match agreed {
            Ok(Ok(stream)) => return Some(stream),
            Ok(Err(error)) => tracing::debug!(%error, "a caller did not agree on TLS"),
            Err(_) => tracing::debug!("a caller did not agree on TLS in time"),
        }
        None
    }

    async fn talk(
        &self,
        connection: &Arc<Connection>,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        peer: SocketAddr,
        router: Router,
    ) {
        let service = service_fn(|mut request: hyper::Request<Incoming>| {
            connection.silent_since.store(BUSY, Ordering::Relaxed);
            if self.show_peers {
                request.extensions_mut().insert(Peer(peer));
            }
            let answer = router.clone().call(request.map(Body::new));
            async move {
                let answer = answer.await;
                let since = self.since;
                answer.map(|answer| {
                    if answer.body().size_hint().exact().is_some() {
                        connection.fall_silent(since);
                        return answer;
                    }
                    // Made while it is sent: the connection is busy until the last of it.
                    let connection = Arc::clone(connection);
                    answer.map(|body| {
                        Body::new(Sending {
                            body,
                            connection,
                            since,
                        })
                    })
                })
            }
        });
        let mut talking = pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(self.head_within)
                .max_buf_size(BUFFER_BYTES_MAX)
                .serve_connection(TokioIo::new(stream), service)
        );
        let mut stopped = self.stopped.clone();
        tokio::select! {
            result = talking.as_mut() => return said(result),
            () = connection.make_room.notified() => return,
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
        talking.as_mut().graceful_shutdown();
        tokio::select! {
            result = talking.as_mut() => return said(result),
            () = tokio::time::sleep(LAST_WORDS) => {}
        }
        if connection.silent_since.load(Ordering::Relaxed) == BUSY {
            said(talking.await);
        }
    }

    /// Waits until all connections are closed; how many are left when the time is over.
    pub(super) async fn drain(&self, within: Duration) -> usize {
        let all_closed = async {
            loop {
                let closed = self.all_closed.notified();
                if self.locked().is_empty() {
                    return;
                }
                closed.await;
            }
        };
        match tokio::time::timeout(within, all_closed).await {
            Ok(()) => 0,
            Err(_) => self.locked().len(),
        }
    }
}

/// Clients that hang up are everyday life.
fn said(result: Result<(), hyper::Error>) {
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Asks for as many open files as the connections need, as far as the machine allows.
pub(crate) fn allow_open_files(connections_max: usize) {
    let limit = getrlimit(Resource::Nofile);
    let wanted = u64::try_from(connections_max)
        .unwrap_or(u64::MAX)
        .saturating_add(OTHER_FILES);
    let allowed = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if limit.current.is_some_and(|current| current < allowed) {
        let raised = Rlimit {
            current: Some(allowed),
            maximum: limit.maximum,
        };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, allowed, "the limit of open files could not be raised");
        }
    }
    if allowed < wanted {
        tracing::warn!(
            allowed,
            wanted,
            "fewer connections fit than configured; raise the limit of open files"
        );
    }
}
