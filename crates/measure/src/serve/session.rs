//! The sessions of a server: what the threads of TCP and UDP share.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use crate::clock;
use crate::error::Error;
use crate::own::key::Key;
use crate::own::wire::{Datagram, Hex};

use super::counters::Counters;
use super::limits::Limits;
use super::load::Load;
use super::locked::locked;
use super::receiving::Receiving;
use super::socket::Socket;

/// State that all connections share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) key: Key,
    /// For cookies alone, and new at each start.
    pub(super) secret: Key,
    pub(super) limits: Limits,
    pub(super) counters: Arc<Counters>,
    pub(super) socket: Socket,
    sessions: Mutex<BTreeMap<Hex<8>, Arc<Session>>>,
}

/// A client that has proved that it has the key.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: Hex<8>,
    pub(super) key: Key,
    /// The running load.
    pub(super) load: Mutex<Option<Arc<Load>>>,
    /// The state of UDP.
    pub(super) datagrams: Mutex<Datagrams>,
}

/// The state of UDP.
#[derive(Default, Debug)]
pub(super) struct Datagrams {
    /// The latest address that asked for a cookie.
    pub(super) asked: Option<SocketAddr>,
    /// The address that returned its cookie.
    pub(super) address: Option<SocketAddr>,
    /// The highest number of an echo request and, as bits, those before it.
    seen: Option<(u64, u64)>,
    /// The upstream trains that run.
    pub(super) receiving: Option<Receiving>,
}

impl Datagrams {
    /// Notes the request of this number, and returns the highest number and the window of a reply.
    pub(super) fn note(&mut self, number: u64) -> (u64, u64) {
        let (highest, window) = self.seen.unwrap_or((number, 0));
        let seen = if number >= highest {
            let shifted = u32::try_from(number - highest).ok().and_then(|by| window.checked_shl(by)).unwrap_or(0);
            (number, shifted | 1)
        } else {
            let bit = u32::try_from(highest - number).ok().and_then(|by| 1_u64.checked_shl(by)).unwrap_or(0);
            (highest, window | bit)
        };
        self.seen = Some(seen);
        seen
    }
}

impl Shared {
    pub(super) fn new(key: Key, limits: Limits, socket: Socket) -> Result<Self, Error> {
        let secret = Key::new(&random::<32>()?.to_string())?;
        Ok(Self { key, secret, limits, counters: Arc::default(), socket, sessions: Mutex::default() })
    }

    /// Opens a session; `None` when there are as many as may be.
    pub(super) fn open(&self, challenge: &Hex<16>, nonce: &Hex<16>) -> Result<Option<Arc<Session>>, Error> {
        let mut sessions = locked(&self.sessions);
        if sessions.len() >= self.limits.sessions as usize {
            return Ok(None);
        }
        let id = random()?;
        let key = self.key.of_session(challenge, nonce);
        let session = Arc::new(Session { id, key, load: Mutex::default(), datagrams: Mutex::default() });
        sessions.insert(id, Arc::clone(&session));
        Ok(Some(session))
    }

    /// The open session of this number.
    pub(super) fn session(&self, id: Hex<8>) -> Option<Arc<Session>> {
        locked(&self.sessions).get(&id).cloned()
    }

    /// Ends a session and everything of it.
    pub(super) fn close(&self, id: Hex<8>) {
        let session = locked(&self.sessions).remove(&id);
        if let Some(session) = session {
            session.end();
        }
    }

    /// Ends all sessions.
    pub(super) fn end(&self) {
        std::mem::take(&mut *locked(&self.sessions)).values().for_each(|session| session.end());
    }

    /// The cookie of an address in a session.
    pub(super) fn cookie(&self, session: Hex<8>, address: SocketAddr) -> Hex<16> {
        let code = self.secret.code("cookie", &[&session.0, address.to_string().as_bytes()]);
        Hex(*code.0.first_chunk().expect("16 of 32 bytes"))
    }
}

impl Session {
    fn end(&self) {
        if let Some(load) = locked(&self.load).take() {
            load.stop();
        }
        // Trains look for their address before each packet.
        *locked(&self.datagrams) = Datagrams::default();
    }

    /// The name of this machine's clock for the client of this session.
    pub(super) fn clock(&self) -> Hex<32> {
        self.key.code("clock", &[clock::identity().as_bytes()])
    }

    /// Whether a hello is of the client of this session.
    pub(super) fn is_hello(&self, datagram: &Datagram) -> bool {
        match datagram {
            Datagram::Hello { nonce, code } => self.key.verifies("hello", &[&self.id.0, &nonce.0], &code.0),
            _ => false,
        }
    }
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> Result<Hex<N>, Error> {
    let mut bytes = [0; N];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    match got {
        Ok(len) if len == N => Ok(Hex(bytes)),
        Ok(_) => Err(Error::Unsupported("the kernel has no random bytes".to_owned())),
        Err(error) => Err(Error::io("asking for random bytes")(error.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_has_a_bit_for_each_request_that_came() {
        let mut datagrams = Datagrams::default();
        assert_eq!(datagrams.note(5), (5, 0b1));
        assert_eq!(datagrams.note(6), (6, 0b11));
        assert_eq!(datagrams.note(9), (9, 0b1_1001));
        assert_eq!(datagrams.note(8), (9, 0b1_1011));
        assert_eq!(datagrams.note(9 + 64), (73, 1));
        assert_eq!(datagrams.note(3), (73, 1), "too old for the window");
        assert_eq!(datagrams.note(u64::MAX), (u64::MAX, 1));
    }
}
