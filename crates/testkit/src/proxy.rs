//! A small TCP proxy between a client and a server, that can cut, hold and slow the connection: what networks do.
//! It runs on threads of its own, so that it goes on while the test's runtime is busy or blocked.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

#[derive(Debug, Default)]
struct State {
    /// Where new connections go.
    port: AtomicU16,
    /// Neither side hears from the other, but the sockets stay open.
    held: AtomicBool,
    /// Connections are closed at once.
    refusing: AtomicBool,
    /// Each piece of an answer waits this long.
    answer_delay_ms: AtomicU64,
    /// Counts the bytes that came from the server.
    answered: AtomicU64,
    /// Cut when the next answer arrives, before the client sees it.
    cut_at_answer: AtomicBool,
    closed: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

/// The proxy; dropping it closes everything.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
}

impl Proxy {
    /// Listens on a free port of the loopback and passes on to `port` there.
    pub fn to(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback gives a port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let state = Arc::new(State {
            port: AtomicU16::new(port),
            ..State::default()
        });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || accept(&listener, &shared));
        Self { address, state }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    /// Holds everything back, in both directions, without closing.
    pub fn hold(&self) {
        self.state.held.store(true, Ordering::SeqCst);
    }

    /// Lets what was held go on.
    pub fn release(&self) {
        self.state.held.store(false, Ordering::SeqCst);
    }

    /// Every piece of an answer comes this much later.
    pub fn slow_answers(&self, delay: Duration) {
        let millis = u64::try_from(delay.as_millis()).expect("a delay of sensible length");
        self.state.answer_delay_ms.store(millis, Ordering::SeqCst);
    }

    /// New connections go to another server's port, as after a failover; cut those that are open with
    /// [`cut`](Self::cut).
    pub fn point_to(&self, port: u16) {
        self.state.port.store(port, Ordering::SeqCst);
    }

    /// Closes every connection; new ones go through.
    pub fn cut(&self) {
        for stream in self
            .state
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
        {
            // A socket that is closed already is what is wanted.
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    /// Closes the connection when the server's next answer comes: the command was carried out, the caller cannot know.
    pub fn cut_at_next_answer(&self) {
        self.state.cut_at_answer.store(true, Ordering::SeqCst);
    }

    /// While on, new connections are closed at once.
    pub fn refuse(&self, on: bool) {
        self.state.refusing.store(on, Ordering::SeqCst);
    }

    /// Bytes that came from the server so far.
    pub fn answered(&self) -> u64 {
        self.state.answered.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.closed.store(true, Ordering::SeqCst);
        self.cut();
        // Wakes the thread that waits for connections, so that it sees that it is over.
        drop(TcpStream::connect(self.address));
    }
}

fn accept(listener: &TcpListener, state: &Arc<State>) {
    for client in listener.incoming() {
        if state.closed.load(Ordering::SeqCst) {
            return;
        }
        let Ok(client) = client else { continue };
        if state.refusing.load(Ordering::SeqCst) {
            continue;
        }
        let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, state.port.load(Ordering::SeqCst))) else {
            continue;
        };
        let copies = (
            client.try_clone(),
            server.try_clone(),
            client.try_clone(),
            server.try_clone(),
        );
        let (Ok(client_in), Ok(server_in), Ok(client_kept), Ok(server_kept)) = copies else {
            continue;
        };
        drop((client.set_nodelay(true), server.set_nodelay(true)));
        state
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend([client_kept, server_kept]);
        let (up, down) = (Arc::clone(state), Arc::clone(state));
        std::thread::spawn(move || pass(client_in, server, &up, false));
        std::thread::spawn(move || pass(server_in, client, &down, true));
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, state: &State, answers: bool) {
    let mut piece = [0_u8; 16 * 1024];
    while let Ok(length) = from.read(&mut piece) {
        if length == 0 {
            break;
        }
        if answers {
            state.answered.fetch_add(length as u64, Ordering::SeqCst);
            if state.cut_at_answer.swap(false, Ordering::SeqCst) {
                break;
            }
            let delay = state.answer_delay_ms.load(Ordering::SeqCst);
            if delay > 0 {
                std::thread::sleep(Duration::from_millis(delay));
            }
        }
        while state.held.load(Ordering::SeqCst) && !state.closed.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        if to.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    drop((from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both)));
}
