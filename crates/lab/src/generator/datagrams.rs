//! UDP packets of one size, each at its time: voice, blasts, bursts.
//!
//! Packets too short for a number are counted, without a delay.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};

use lastmile_live::clock::Clock;
use lastmile_model::outcome::Deliveries;
use lastmile_units::Instant;

use crate::outcome::{FlowOutcome, FlowSample};
use crate::spec::DatagramPlan;

use super::udp::{self, Arrivals, NUMBER};

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
    arrivals: Option<Arrivals>,
}

impl Datagrams {
    /// Between two sockets.
    pub(super) fn new(plan: DatagramPlan, out: UdpSocket, sink: UdpSocket) -> Self {
        let mut payload = vec![0; usize::from(plan.payload)];
        let first = plan.first_payload.len().min(payload.len());
        payload[..first].copy_from_slice(&plan.first_payload[..first]);
        let arrivals = (payload.len() >= NUMBER).then(|| Arrivals::new(plan.buffer));
        Self { plan, out, sink, payload, start: Instant::ZERO, next: None, outcome: FlowOutcome::default(), arrivals }
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
        let (delay_mean_s, jitter_s) = self.arrivals.as_mut().map_or((None, None), Arrivals::sample);
        FlowSample { bytes_delivered, tcp: None, delay_mean_s, jitter_s }
    }

    /// Sends the packet that is due.
    pub(super) fn send(&mut self, clock: &dyn Clock) -> io::Result<()> {
        let sent = clock.now();
        udp::send(&self.out, &self.payload)?;
        if self.outcome.packets_sent == 0 {
            self.payload.fill(0);
        }
        self.outcome.packets_sent += 1;
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.sent(sent);
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
        let Self { sink, outcome, arrivals, .. } = self;
        udp::receive(sink, clock, |arrived, len, number| {
            if let (Some(number), Some(arrivals)) = (number, arrivals.as_mut())
                && !arrivals.arrived(number, arrived)
            {
                return;
            }
            outcome.packets_received += 1;
            outcome.bytes_delivered += len as u64;
            Deliveries::note(&mut outcome.deliveries, arrived);
        })
    }

    /// The outcome at `end`.
    pub(super) fn outcome(self, end: Instant) -> FlowOutcome {
        FlowOutcome { stream: self.arrivals.map(|arrivals| arrivals.outcome(end)), ..self.outcome }
    }

    fn go_on(&mut self) {
        self.next = self.plan.departures.next().map(|after| self.start.saturating_add(after));
    }
}
