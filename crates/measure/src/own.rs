//! lastmile's own protocol, from the side of the client: load over TCP, echoes and trains over UDP.
//!
//! | module | holds |
//! | --- | --- |
//! | [`wire`] | the messages, without input and output |
//! | [`key`] | the shared key and its codes |
//! | `control` | the control connection of a session |
//! | `filling` | the streams of a load |
//! | `echo` | UDP echo requests with one-way delays |
//! | `path` | packet trains |
//! | `sized` | UDP echo requests of any size |

mod control;
pub(crate) mod data;
mod echo;
mod filling;
pub mod key;
pub(crate) mod pace;
mod path;
mod sized;
pub mod wire;

use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use lastmile_live::sys::stamped;
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};

use crate::clock;
use crate::error::Error;
use crate::probe::Clocks;

use self::control::{Control, PATIENCE};
use self::key::Key;
use self::wire::{Answer, Datagram, Hex, Request};

pub use self::echo::UdpEcho;
pub use self::filling::Filling;
pub use self::path::{EchoPath, OwnPath};

/// Requests of a cookie before UDP counts as blocked, and the time between two.
const HELLOS: u32 = 8;
const HELLO_INTERVAL: Duration = Duration::from_millis(250);

/// A session with a server.
#[derive(Debug)]
pub struct Client {
    control: Control,
    address: SocketAddr,
    session: Hex<8>,
    key: Key,
    clocks: Clocks,
    /// The limits that the server grants.
    granted: Granted,
    /// Whether the server tells the congestion control of a load.
    tells_congestion: bool,
    socket: Option<Arc<UdpSocket>>,
}

/// Limits of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Granted {
    /// Largest rate of a load or train, bit/s.
    pub rate_bps: u64,
    /// Longest load.
    pub load: Duration,
    /// Most streams in each direction.
    pub streams: u32,
}

/// What the machine of a server offers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Congestion controls.
    pub congestion: Vec<String>,
    /// Why the wanted one cannot be had; `None` if it can.
    pub fault: Option<String>,
}

impl Client {
    /// Opens a session. Of several addresses the first that answers counts.
    ///
    /// # Errors
    /// No such host, no server, another key, or all sessions are taken.
    pub fn connect(host: &str, port: u16, key: &Key) -> Result<Self, Error> {
        let addresses: Vec<SocketAddr> =
            (host, port).to_socket_addrs().map_err(Error::io(format!("looking up {host}")))?.collect();
        let mut last = Error::Unsupported(format!("{host} has no address"));
        for address in addresses {
            match Self::open(address, key) {
                Ok(client) => return Ok(client),
                Err(error @ (Error::Refused { .. } | Error::Protocol { .. })) => return Err(error),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn open(address: SocketAddr, shared: &Key) -> Result<Self, Error> {
        let (mut control, challenge) = Control::connect(address)?;
        let nonce = crate::serve::random()?;
        let code = shared.code("client", &[&challenge.0, &nonce.0]);
        control.send(&wire::Opening::Session { nonce, code })?;
        let welcome = control.answer(PATIENCE)?;
        let Answer::Welcome { code, session, clock, rate_bps, load_s, streams } = welcome else {
            return Err(control.unexpected(&welcome, "a welcome"));
        };
        if !shared.verifies("server", &[&nonce.0, &challenge.0], &code.0) {
            return Err(control.protocol("it does not have the key"));
        }
        let key = shared.of_session(&challenge, &nonce);
        let own = clock::identity();
        let same = !own.is_empty() && key.verifies("clock", &[own.as_bytes()], &clock.0);
        let clocks = if same { Clocks::Comparable } else { Clocks::Apart };
        let granted = Granted { rate_bps, load: Duration::from_secs(load_s.into()), streams };
        let mut client =
            Self { control, address, session, key, clocks, granted, tells_congestion: false, socket: None };
        client.socket = client.prove_address()?.map(Arc::new);
        Ok(client)
    }

    /// The server.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of the session.
    #[must_use]
    pub fn session(&self) -> Hex<8> {
        self.session
    }

    /// The limits that the server grants.
    #[must_use]
    pub fn granted(&self) -> Granted {
        self.granted
    }

    /// Asks the server for what its machine offers, and whether it can have this congestion control. The answer is
    /// `None` of an older server, which does not tell the congestion control of a load either.
    ///
    /// # Errors
    /// No connection.
    pub fn offer(&mut self, congestion: Option<&str>) -> Result<Option<Offer>, Error> {
        let (mut control, challenge) = Control::connect(self.address)?;
        let code = self.key.code("offer", &[&challenge.0, &self.session.0]);
        let congestion = congestion.map(str::to_owned);
        control.send(&wire::Opening::Offer { session: self.session, congestion, code })?;
        // An older server does not know the line, and closes the connection.
        let Ok(Answer::Offered { congestion, fault }) = control.answer(PATIENCE) else { return Ok(None) };
        self.tells_congestion = true;
        Ok(Some(Offer { congestion, fault }))
    }

    /// Whether datagrams reach the server and come back.
    #[must_use]
    pub fn has_udp(&self) -> bool {
        self.socket.is_some()
    }

    /// UDP echo requests at this interval; `None` where UDP is blocked. `name` is the server as the
    /// user wrote it.
    #[must_use]
    pub fn echo(&self, name: String, interval: Duration) -> Option<UdpEcho> {
        let socket = Arc::clone(self.socket.as_ref()?);
        Some(UdpEcho::new(name, socket, self.session, self.clocks, interval))
    }

    /// A UDP socket whose address the server has proved; `None` where no datagram comes back.
    fn prove_address(&mut self) -> Result<Option<UdpSocket>, Error> {
        let what = || format!("UDP to {}", self.address);
        let any = if self.address.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
        let socket = UdpSocket::bind(any).map_err(Error::io(what()))?;
        socket.connect(self.address).map_err(Error::io(what()))?;
        stamped::enable(socket.as_fd()).map_err(Error::io(what()))?;
        // No router and no device cuts a datagram.
        let whole = match self.address {
            SocketAddr::V4(_) => sockopt::set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE),
            SocketAddr::V6(_) => sockopt::set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::PROBE),
        };
        whole.map_err(|error| Error::io(what())(error.into()))?;
        let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(4 << 20);
        socket.set_read_timeout(Some(HELLO_INTERVAL)).map_err(Error::io(what()))?;
        let nonce = crate::serve::random()?;
        let code = self.key.code("hello", &[&self.session.0, &nonce.0]);
        let hello = Datagram::Hello { nonce, code: Hex(*code.0.first_chunk().expect("16 of 32 bytes")) };
        let mut buffer = [0; wire::LEAST_ECHO];
        for _ in 0..HELLOS {
            hello.write(self.session, &mut buffer);
            // A port that is closed, or a filter that answers: no UDP.
            let answered = socket.send(&buffer).and_then(|_| socket.recv(&mut buffer));
            let Ok(len) = answered else { continue };
            if let Some((session, Datagram::Cookie { cookie })) = Datagram::read(&buffer[..len])
                && session == self.session
            {
                self.control.send(&Request::Address { cookie })?;
                return match self.control.answer(PATIENCE)? {
                    Answer::Ready => Ok(Some(socket)),
                    other => Err(self.control.unexpected(&other, "ready")),
                };
            }
        }
        Ok(None)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // A server that is gone needs no farewell.
        let _ = self.control.send(&Request::Bye);
    }
}
