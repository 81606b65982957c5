//! UDP sockets of flows, and the packets that arrive, known by their numbers.
//!
//! Both hosts share one clock. The last bytes of a payload hold the packet's number; with it the receiver finds when
//! the packet was handed to the kernel, and the kernel's time stamp says when it arrived.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use lastmile_analysis::duplicates::WINDOW;
use lastmile_analysis::stream::Stream;
use lastmile_live::clock::{Clock, StampMap};
use lastmile_live::error::Context;
use lastmile_live::sys::{socket, stamped};
use lastmile_units::{Duration, Instant};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

use crate::error::Error;
use crate::hosts::Hosts;
use crate::outcome::StreamOutcome;
use crate::spec::End;

/// Bytes of a packet's number.
pub(super) const NUMBER: usize = 4;
/// Bytes that the kernel buffers for a late generator.
const RECEIVE_BUFFER: u32 = 4 << 20;
/// Packets that may still arrive behind ones that were sent after them: as many as the stream tells apart.
const SLACK: usize = WINDOW as usize;

/// A socket at `own` that sends to `far`, in the namespace of the calling thread.
pub(super) fn sender(own: SocketAddr, far: SocketAddr, dscp: u8) -> io::Result<UdpSocket> {
    let out = between(own, far)?;
    socket::set_dscp(out.as_fd(), dscp)?;
    out.set_nonblocking(true)?;
    Ok(out)
}

/// A socket at `own` that receives what `far` sends, in the namespace of the calling thread.
pub(super) fn sink(own: SocketAddr, far: SocketAddr) -> io::Result<UdpSocket> {
    let sink = between(own, far)?;
    socket::set_receive_buffer(sink.as_fd(), RECEIVE_BUFFER)?;
    stamped::enable(sink.as_fd())?;
    sink.set_nonblocking(true)?;
    Ok(sink)
}

/// A socket at `own` that sends to `far` and receives from there, in the namespace of the calling thread.
fn both_ways(own: SocketAddr, far: SocketAddr, dscp: u8) -> io::Result<UdpSocket> {
    let both = sink(own, far)?;
    socket::set_dscp(both.as_fd(), dscp)?;
    Ok(both)
}

/// A socket at each of two addresses, connected to the other. If the first has port 0, the kernel chooses one.
pub(super) fn pair(
    hosts: &Hosts<'_>,
    [(near, own), (away, far)]: [(End, SocketAddr); 2],
    dscp: u8,
) -> Result<[UdpSocket; 2], Error> {
    let open = |end: End, here: SocketAddr, there| {
        let socket = hosts.namespaces[end.index()].run(|| both_ways(here, there, dscp))?;
        Ok::<_, Error>(socket.context(|| format!("opening UDP port {here}"))?)
    };
    let first = open(near, own, far)?;
    let own = first.local_addr().context(|| format!("opening UDP port {own}"))?;
    Ok([first, open(away, far, own)?])
}

/// A socket of one flow. Flows share the port of a server, so the kernel must tell them by both addresses: among the
/// sockets of a port it takes the connected one (udp(7)). For port 0 the kernel chooses one that nobody has.
fn between(own: SocketAddr, far: SocketAddr) -> io::Result<UdpSocket> {
    let family = if own.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    net::sockopt::set_socket_reuseaddr(&socket, own.port() != 0)?;
    net::bind(&socket, &own)?;
    net::connect(&socket, &far)?;
    Ok(UdpSocket::from(socket))
}

/// Sends a packet. One that the host's own queue has no space for is lost, as a queue of the line would lose it, and so
/// is one after the far end refused an earlier one.
pub(super) fn send(socket: &UdpSocket, payload: &[u8]) -> io::Result<()> {
    match socket.send(payload) {
        Err(error)
            if !matches!(Errno::from_io_error(&error), Some(Errno::CONNREFUSED | Errno::NOBUFS | Errno::AGAIN)) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Hands each packet that has come to `take`: when it arrived, the bytes of its payload, and the number in the last of
/// them; `None` if it is too short for a number.
pub(super) fn receive(
    socket: &UdpSocket,
    clock: &dyn Clock,
    mut take: impl FnMut(Instant, usize, Option<u32>),
) -> io::Result<()> {
    let mut buffer = [0; 65_536];
    let map = StampMap::measure(clock);
    loop {
        let (len, stamp) = match stamped::receive(socket.as_fd(), &mut buffer) {
            Ok(Some(received)) => received,
            Ok(None) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // The far end has refused an earlier packet.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::CONNREFUSED) => continue,
            Err(error) => return Err(error),
        };
        let now = clock.now();
        let arrived = stamp.map_or(now, |stamp| map.monotonic(stamp).min(now));
        let number = buffer[..len.min(buffer.len())].last_chunk::<NUMBER>();
        take(arrived, len, number.map(|number| u32::from_be_bytes(*number)));
    }
}

/// Delays, jitter and losses of the packets of a flow at their receiver.
pub(super) struct Arrivals {
    stream: Stream,
    /// When packets were sent, from the one with the number `first` on.
    sent: VecDeque<Instant>,
    first: u64,
}

impl Arrivals {
    pub(super) fn new(buffer: Duration) -> Self {
        Self { stream: Stream::new(buffer, true), sent: VecDeque::new(), first: 0 }
    }

    /// The next packet is sent.
    pub(super) fn sent(&mut self, at: Instant) {
        self.sent.push_back(at);
    }

    /// A packet whose number ends in these 32 bits has arrived. False for a copy of one that has arrived, or for one
    /// that has been forgotten.
    pub(super) fn arrived(&mut self, number: u32, at: Instant) -> bool {
        let place = number.wrapping_sub(self.first as u32) as usize;
        let Some(sent) = self.sent.get(place) else { return false };
        let first = self.stream.arrived(self.first + place as u64, *sent, at.max(*sent));
        let gone = place.saturating_sub(SLACK);
        self.sent.drain(..gone);
        self.first += gone as u64;
        first
    }

    /// The mean delay since the last sample, and the jitter, in seconds.
    pub(super) fn sample(&mut self) -> (Option<f64>, Option<f64>) {
        (self.stream.take_mean_s(), self.stream.jitter_s())
    }

    /// The outcome at `end`. A packet counts as lost if a later one has arrived.
    pub(super) fn outcome(self, end: Instant) -> StreamOutcome {
        let Self { stream, sent, first } = self;
        let lost = stream.next().saturating_sub(stream.packets());
        let behind = usize::try_from(stream.next().saturating_sub(first)).unwrap_or(usize::MAX);
        let outstanding = sent.len().saturating_sub(behind) as u64;
        let reception = stream.finish(end, sent.into_iter().skip(behind), outstanding);
        StreamOutcome { lost, reception: Box::new(reception) }
    }
}
