//! The handshake: how many octets of CRYPTO frames each end sends, and when it is over.
//!
//! Published: RFC 9000, sections 7 and 8.1 (a server sends at most three times what it received until the client's
//! address is validated); RFC 9001, section 4.1; RFC 9002, section 6.2.2.1 (a client keeps a timer until then).
//!
//! The client sends a ClientHello in an Initial packet of 1200 bytes. The server answers with ServerHello to Finished
//! in two datagrams, the first of them padded. The client then acknowledges the first in an Initial packet, which is
//! padded to 1200 bytes again (RFC 9000, section 14.1), and sends its Finished and its application data; the server
//! sends application data and HANDSHAKE_DONE once it has that Finished.
//!
//! Differs: messages have fixed sizes, those of a certificate chain of about 1.5 kB without post-quantum keys.

use lastmile_units::Instant;

use crate::config::LEAST_DATAGRAM;
use crate::packet::Chunk;
use crate::stream::{ReceiveStream, SendStream};

/// Octets of a ClientHello with usual extensions.
const CLIENT_HELLO: u64 = 300;
/// ServerHello (about 90), EncryptedExtensions (100), Certificate (1500), CertificateVerify (264), Finished (36).
const SERVER_FLIGHT: u64 = 1990;
/// Finished: a header of 4 bytes and 32 bytes of SHA-256.
const CLIENT_FINISHED: u64 = 36;
/// RFC 9000, section 8.1.
const AMPLIFICATION: u64 = 3;
/// The flow control of streams does not apply to CRYPTO frames.
const NO_LIMIT: u64 = u64::MAX;

/// The role of an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// This end opens the connection.
    Client,
    /// This end waits for a connection.
    Server,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Not begun; a server listens.
    Idle,
    Handshaking,
    /// This end has the peer's last message.
    Established,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Handshake {
    role: Role,
    state: State,
    began: Instant,
    pub(super) out: SendStream,
    input: ReceiveStream,
    /// Bytes received and sent, for a server's limit.
    received: u64,
    sent: u64,
    /// The server's HANDSHAKE_DONE arrived, or is this end's to send.
    confirmed: bool,
}

impl Handshake {
    pub(super) fn new(role: Role) -> Self {
        Self {
            role,
            state: State::Idle,
            began: Instant::ZERO,
            out: SendStream::new(NO_LIMIT),
            input: ReceiveStream::new(NO_LIMIT / 2),
            received: 0,
            sent: 0,
            confirmed: false,
        }
    }

    pub(super) fn connect(&mut self, now: Instant) {
        if self.role == Role::Client && self.state == State::Idle {
            (self.state, self.began) = (State::Handshaking, now);
            self.out.offer(CLIENT_HELLO);
        }
    }

    /// The connection has begun.
    pub(super) fn is_open(&self) -> bool {
        self.state != State::Idle
    }

    pub(super) fn began(&self) -> Instant {
        self.began
    }

    pub(super) fn is_server(&self) -> bool {
        self.role == Role::Server
    }

    /// Application data may be sent.
    pub(super) fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// RFC 9001, section 4.1.2.
    pub(super) fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    pub(super) fn confirm(&mut self) {
        self.confirmed = true;
    }

    /// A datagram of `bytes` arrives.
    pub(super) fn on_datagram(&mut self, now: Instant, bytes: u16) {
        self.received += u64::from(bytes);
        if self.state == State::Idle && self.role == Role::Server {
            (self.state, self.began) = (State::Handshaking, now);
        }
    }

    pub(super) fn on_sent(&mut self, bytes: u16) {
        self.sent += u64::from(bytes);
    }

    /// A server may send no further datagram yet (RFC 9000, section 8.1).
    pub(super) fn is_blocked(&self) -> bool {
        self.is_server()
            && !self.is_established()
            && self.sent + u64::from(LEAST_DATAGRAM) > AMPLIFICATION * self.received
    }

    /// A CRYPTO frame arrives. True: it ends the handshake of this end.
    pub(super) fn on_crypto(&mut self, chunk: Chunk) -> bool {
        self.input.on_chunk(chunk);
        let have = self.input.read();
        if self.state != State::Handshaking {
            return false;
        }
        match self.role {
            Role::Server if self.out.offered() == 0 && have >= CLIENT_HELLO => self.out.offer(SERVER_FLIGHT),
            Role::Server if have >= CLIENT_HELLO + CLIENT_FINISHED => {
                self.state = State::Established;
                self.confirmed = true;
            }
            Role::Client if have >= SERVER_FLIGHT => {
                self.state = State::Established;
                self.out.offer(CLIENT_FINISHED);
            }
            Role::Server | Role::Client => {}
        }
        self.is_established()
    }
}
