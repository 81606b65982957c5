//! UDP packets of one size, each at its time: voice, games, blasts, bursts.
//!
//! Both hosts share one clock. The last bytes of a payload hold the packet's number; with it the receiver finds when
//! the packet was handed to the kernel, and the kernel's time stamp says when it arrived. Packets too short for a
//! number are counted, without a delay.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use lastmile_analysis::stream::Stream;
use lastmile_live::clock::{Clock, StampMap};
use lastmile_live::sys::{socket, stamped};
use lastmile_model::outcome::Deliveries;
use lastmile_units::Instant;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

use crate::outcome::{FlowOutcome, FlowSample, StreamOutcome};
use crate::spec::DatagramPlan;

/// Bytes that the kernel buffers for a late generator.
const RECEIVE_BUFFER: u32 = 4 << 20;
/// Bytes of a packet's number.
const NUMBER: usize = 4;
/// Packets that may still arrive behind ones that were sent after them.
const SLACK: usize = 256;

/// A UDP flow, both ends of it.
pub(super) struct Datagrams {
    plan: DatagramPlan,
    out: UdpSocket,
    sink: UdpSocket,
    payload: Vec<u8>,
    start: Instant,
    next: Option<Instant>,
    outcome: FlowOutcome,
    /// Delays, jitter and losses at the receiver; `None` for packets without numbers.
    stream: Option<Stream>,
    /// When packets were sent, from the one with the number `first` on.
    sent: VecDeque<Instant>,
    first: u64,
}

/// The end that sends from `own` to `far`, in the namespace of the calling thread.
pub(super) fn sender(own: SocketAddr, far: SocketAddr, dscp: u8) -> io::Result<UdpSocket> {
    let out = between(own, far)?;
    socket::set_dscp(out.as_fd(), dscp)?;
    out.set_nonblocking(true)?;
    Ok(out)
}

/// The end that receives at `own` what `far` sends, in the namespace of the calling thread.
pub(super) fn sink(own: SocketAddr, far: SocketAddr) -> io::Result<UdpSocket> {
    let sink = between(own, far)?;
    socket::set_receive_buffer(sink.as_fd(), RECEIVE_BUFFER)?;
    stamped::enable(sink.as_fd())?;
    sink.set_nonblocking(true)?;
    Ok(sink)
}

/// A socket of one flow. Flows share the port of a server, so the kernel must tell them by both addresses: among the
/// sockets of a port it takes the connected one (udp(7)).
fn between(own: SocketAddr, far: SocketAddr) -> io::Result<UdpSocket> {
    let family = if own.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    net::sockopt::set_socket_reuseaddr(&socket, true)?;
    net::bind(&socket, &own)?;
    net::connect(&socket, &far)?;
    Ok(UdpSocket::from(socket))
}

impl Datagrams {
    /// Between two sockets.
    pub(super) fn new(plan: DatagramPlan, out: UdpSocket, sink: UdpSocket) -> Self {
        let mut payload = vec![0; usize::from(plan.payload)];
        let first = plan.first_payload.len().min(payload.len());
        payload[..first].copy_from_slice(&plan.first_payload[..first]);
        let stream = (payload.len() >= NUMBER).then(|| Stream::new(plan.buffer, true));
        Self {
            plan,
            out,
            sink,
            payload,
            start: Instant::ZERO,
            next: None,
            outcome: FlowOutcome::default(),
            stream,
            sent: VecDeque::new(),
            first: 0,
        }
    }

    pub(super) fn begin(&mut self, at: Instant) {
        self.start = at;
        self.go_on();
    }

    pub(super) fn stop(&mut self) {
        self.next = None;
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    pub(super) fn sink(&self) -> BorrowedFd<'_> {
        self.sink.as_fd()
    }

    /// Payload bytes that the receiving host has read.
    pub(super) fn bytes_delivered(&self) -> u64 {
        self.outcome.bytes_delivered
    }

    pub(super) fn sample(&mut self) -> FlowSample {
        let bytes_delivered = self.bytes_delivered();
        let (delay_mean_s, jitter_s) =
            self.stream.as_mut().map_or((None, None), |stream| (stream.take_mean_s(), stream.jitter_s()));
        FlowSample { bytes_delivered, tcp: None, delay_mean_s, jitter_s }
    }

    /// Sends the packet that is due.
    pub(super) fn send(&mut self, clock: &dyn Clock) -> io::Result<()> {
        let sent = clock.now();
        match self.out.send(&self.payload) {
            Ok(_) => {}
            // The far end refused an earlier packet, or the host's queue is full: this packet is lost, as a queue of
            // the line would lose it.
            Err(error)
                if matches!(Errno::from_io_error(&error), Some(Errno::CONNREFUSED | Errno::NOBUFS | Errno::AGAIN)) => {}
            Err(error) => return Err(error),
        }
        if self.outcome.packets_sent == 0 {
            self.payload.fill(0);
        }
        self.outcome.packets_sent += 1;
        if self.stream.is_some() {
            self.sent.push_back(sent);
            if let Some(number) = self.payload.last_chunk_mut::<NUMBER>() {
                // The next one's. It may begin again at zero: the receiver knows about where it is.
                *number = (self.outcome.packets_sent as u32).to_be_bytes();
            }
        }
        self.go_on();
        Ok(())
    }

    /// Takes the packets that wait.
    pub(super) fn receive(&mut self, clock: &dyn Clock) -> io::Result<()> {
        let mut buffer = [0; 65_536];
        let map = StampMap::measure(clock);
        loop {
            let (len, stamp) = match stamped::receive(self.sink.as_fd(), &mut buffer) {
                Ok(Some(received)) => received,
                Ok(None) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let now = clock.now();
            let arrived = stamp.map_or(now, |stamp| map.monotonic(stamp).min(now));
            self.outcome.packets_received += 1;
            self.outcome.bytes_delivered += len as u64;
            Deliveries::note(&mut self.outcome.deliveries, arrived);
            if let Some(number) = buffer[..len.min(buffer.len())].last_chunk::<NUMBER>() {
                self.note(u32::from_be_bytes(*number), arrived);
            }
        }
    }

    /// A packet whose number ends in these 32 bits has arrived.
    fn note(&mut self, number: u32, arrived: Instant) {
        let place = number.wrapping_sub(self.first as u32) as usize;
        let (Some(stream), Some(sent)) = (&mut self.stream, self.sent.get(place)) else { return };
        stream.arrived(self.first + place as u64, *sent, arrived.max(*sent));
        let gone = place.saturating_sub(SLACK);
        self.sent.drain(..gone);
        self.first += gone as u64;
    }

    /// The outcome at `end`. A packet counts as lost if a later one has arrived.
    pub(super) fn outcome(self, end: Instant) -> FlowOutcome {
        let Self { outcome, stream, sent, first, .. } = self;
        let stream = stream.map(|stream| {
            let lost = stream.next().saturating_sub(stream.packets());
            let behind = usize::try_from(stream.next().saturating_sub(first)).unwrap_or(usize::MAX);
            let outstanding = sent.len().saturating_sub(behind) as u64;
            let reception = stream.finish(end, sent.into_iter().skip(behind), outstanding);
            StreamOutcome { lost, reception: Box::new(reception) }
        });
        FlowOutcome { stream, ..outcome }
    }

    fn go_on(&mut self) {
        self.next = self.plan.departures.next().map(|after| self.start.saturating_add(after));
    }
}
