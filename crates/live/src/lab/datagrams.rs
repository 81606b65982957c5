//! UDP packets of one size, each at its time: voice, blasts, bursts.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use lastmile_units::Instant;

use crate::sys::socket;

use super::{DatagramPlan, FlowOutcome};

/// IPv4 and UDP headers.
const HEADERS: u16 = 28;
/// What the kernel keeps for a generator that is late.
const RECEIVE_BUFFER: u32 = 4 << 20;

/// A UDP flow, both ends of it.
pub(super) struct Datagrams {
    plan: DatagramPlan,
    out: UdpSocket,
    sink: UdpSocket,
    payload: Vec<u8>,
    start: Instant,
    next: Option<Instant>,
    outcome: FlowOutcome,
}

/// The end that sends, in the namespace of the calling thread.
pub(super) fn sender(own: SocketAddr, dscp: u8) -> io::Result<UdpSocket> {
    let out = UdpSocket::bind(own)?;
    socket::set_dscp(out.as_fd(), dscp)?;
    out.set_nonblocking(true)?;
    Ok(out)
}

/// The end that receives, in the namespace of the calling thread.
pub(super) fn sink(own: SocketAddr) -> io::Result<UdpSocket> {
    let sink = UdpSocket::bind(own)?;
    socket::set_receive_buffer(sink.as_fd(), RECEIVE_BUFFER)?;
    sink.set_nonblocking(true)?;
    Ok(sink)
}

impl Datagrams {
    /// Between two sockets, the second of which has the address `to`.
    pub(super) fn new(plan: DatagramPlan, out: UdpSocket, sink: UdpSocket, to: SocketAddr) -> io::Result<Self> {
        out.connect(to)?;
        let mut payload = vec![0; usize::from(plan.size.saturating_sub(HEADERS))];
        let first = plan.first_payload.len().min(payload.len());
        payload[..first].copy_from_slice(&plan.first_payload[..first]);
        Ok(Self { plan, out, sink, payload, start: Instant::ZERO, next: None, outcome: FlowOutcome::default() })
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

    pub(super) fn bytes_delivered(&self) -> u64 {
        self.outcome.bytes_delivered
    }

    /// Sends the packet that is due.
    pub(super) fn send(&mut self) -> io::Result<()> {
        match self.out.send(&self.payload) {
            Ok(_) => {}
            // What the far end says of an earlier packet, or a full queue on the way out: this one is lost, as it would be
            // further on.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ECONNREFUSED | libc::ENOBUFS | libc::EAGAIN)) => {}
            Err(error) => return Err(error),
        }
        if self.outcome.packets_sent == 0 {
            self.payload.fill(0);
        }
        self.outcome.packets_sent += 1;
        self.go_on();
        Ok(())
    }

    /// Takes the packets that wait.
    pub(super) fn receive(&mut self, now: Instant) -> io::Result<()> {
        let mut buffer = [0; 65_536];
        loop {
            match self.sink.recv(&mut buffer) {
                Ok(len) => {
                    self.outcome.packets_received += 1;
                    self.outcome.bytes_delivered += len as u64;
                    self.outcome.first_delivery.get_or_insert(now);
                    self.outcome.last_delivery = Some(now);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn outcome(self) -> FlowOutcome {
        self.outcome
    }

    fn go_on(&mut self) {
        self.next = self.plan.departures.next().map(|after| self.start.saturating_add(after));
    }
}
