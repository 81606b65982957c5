//! The server of lastmile's own protocol: loads, echoes and trains for clients that have the key.
//!
//! | limit | value |
//! | --- | --- |
//! | connections | [`STRANGERS`] and those of sessions; for one more, the oldest without a proof of the key is closed |
//! | time for that proof | [`HANDSHAKE`] |
//! | line before the proof, and after it | [`LONGEST_OPENING`], [`LONGEST_LINE`] |
//! | sessions, streams, rate, time of a load and of a session | [`Limits`] |
//! | packets and trains of a request | [`MOST_PACKETS`], [`MOST_TRAINS`] |
//!
//! Nothing is sent to a UDP address that is longer than what came from there, until the address has
//! returned a cookie over the control connection; TCP sends what the client's window takes. A client
//! that stays silent, half open or slow costs its slot until a time limit ends it, and a counter.
//!
//! TCP is served by one thread, UDP by another, and each downstream train has a thread for itself.

mod answers;
mod control;
mod counters;
mod limits;
mod load;
mod locked;
mod receiving;
mod session;
mod socket;
mod streams;
mod trains;
mod udp;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lastmile_live::clients::{self, Awaited, Clients};
use lastmile_live::stop::Stop;
use socket2::{Domain, Protocol, Socket, Type};

use crate::error::Error;
use crate::own::key::Key;
use crate::own::wire;
#[cfg(doc)]
use crate::own::wire::{LONGEST_LINE, LONGEST_OPENING, MOST_PACKETS, MOST_TRAINS};

use self::control::Stranger;
pub use self::counters::{Counted, Counters};
pub use self::limits::{HANDSHAKE, Limits, STRANGERS};
use self::session::Shared;
pub(crate) use self::session::random;
pub use self::trains::check as check_trains;

/// A server with open ports.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    shared: Arc<Shared>,
    runtime: tokio::runtime::Runtime,
}

impl Server {
    /// Opens the TCP and the UDP port. The unspecified address of IPv6 takes IPv4 as well.
    ///
    /// # Errors
    /// A port is taken, or the address is not of this machine.
    pub fn bind(address: SocketAddr, key: Key, limits: Limits) -> Result<Self, Error> {
        let what = || format!("listening at {address}");
        let listening = open(address, Type::STREAM, Protocol::TCP).map_err(Error::io(what()))?;
        listening.listen(1024).map_err(Error::io(what()))?;
        let listener = TcpListener::from(listening);
        let address = listener.local_addr().map_err(Error::io(what()))?;
        let socket = open(address, Type::DGRAM, Protocol::UDP).map_err(Error::io(format!("UDP at {address}")))?;
        let shared = Shared::new(key, limits, socket::Socket::new(socket).map_err(Error::io(what()))?)?;
        Ok(Self {
            listener,
            shared: Arc::new(shared),
            runtime: clients::runtime().map_err(Error::io("making a runtime"))?,
        })
    }

    /// The address of both ports.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn address(&self) -> Result<SocketAddr, Error> {
        self.listener.local_addr().map_err(Error::io("asking for the port"))
    }

    /// Counters that other threads may read while the server runs.
    #[must_use]
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.shared.counters)
    }

    /// Serves until `end`, and then ends at once.
    ///
    /// # Errors
    /// The kernel has no memory to wait for the ports.
    pub fn serve(self, end: &Stop) -> Result<(), Error> {
        let ended = AtomicBool::new(false);
        let Self { listener, shared, runtime } = self;
        std::thread::scope(|scope| {
            scope.spawn(|| udp::answer(&shared, &ended));
            let served = runtime.block_on(accept(listener, &shared, end));
            ended.store(true, Ordering::Relaxed);
            shared.end();
            runtime.shutdown_background();
            served
        })
    }
}

async fn accept(listener: TcpListener, shared: &Arc<Shared>, end: &Stop) -> Result<(), Error> {
    let limits = shared.limits;
    // Each session has a control connection and streams in both directions.
    let most = STRANGERS + limits.sessions as usize * (1 + 2 * limits.streams as usize);
    let end = Awaited::new(end).map_err(Error::io("waiting for the end"))?;
    let listener = tokio::net::TcpListener::from_std(listener).map_err(Error::io("listening"))?;
    let one = |(stream, _), attended| {
        let stranger = Stranger::new(Arc::clone(&shared.counters));
        control::converse(stream, stranger, Arc::clone(shared), attended)
    };
    let ended = Clients::at_most(most).attend(&end, async || listener.accept().await, one).await;
    ended.map_err(Error::io("waiting for the end"))
}

fn open(address: SocketAddr, kind: Type, protocol: Protocol) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind.nonblocking(), Some(protocol))?;
    if kind == Type::STREAM {
        socket.set_reuse_address(true)?;
    }
    if address.is_ipv6() {
        socket.set_only_v6(address.ip() != IpAddr::from(Ipv6Addr::UNSPECIFIED))?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}

/// All addresses of this machine at the usual port: of both protocols, or of IPv4 alone on a
/// machine without IPv6.
#[must_use]
pub fn anywhere(port: Option<u16>) -> SocketAddr {
    let port = port.unwrap_or(wire::PORT);
    let has_v6 = Socket::new(Domain::IPV6, Type::DGRAM, None).is_ok();
    let ip: IpAddr = if has_v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    SocketAddr::new(ip, port)
}

/// Numbers of echo requests, and numbers and indices of the packets of two trains of 9.
pub(crate) fn hostile(input: &[u8]) {
    let mut datagrams = session::Datagrams::default();
    let mut receiving = receiving::Receiving::new([(7, 9), (8, 9)]);
    let mut highest = 0;
    for packet in input.chunks_exact(8) {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(packet);
        let number = u64::from_le_bytes(bytes);
        let (now_highest, window) = datagrams.note(number);
        highest = number.max(highest);
        assert!(now_highest == highest && window & 1 == 1, "{now_highest} {window}");
        let [train, index] = [number >> 32, number].map(|half| u32::try_from(half & 0xffff_ffff).unwrap_or(0));
        let is_of = (7..9).contains(&train) && index < 9;
        assert_eq!(receiving.arrived(train, index, 1).is_some(), is_of);
    }
    assert!(receiving.missing() <= 18);
}

#[cfg(test)]
pub(crate) mod tests;
