//! ICMP echo at a steady pace, for as long as the lab runs: [`lastmile_live::probe`] in one thread with other traffic.
//! Requests keep to a grid from the start on, so a late one does not shift those after it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use lastmile_live::clock::Clock;
use lastmile_live::probe::Requests;
use lastmile_live::sys::icmp::EchoSocket;
use lastmile_units::{Duration, Instant};

use crate::outcome::FlowOutcome;
use crate::spec::EchoPlan;

pub(super) struct Echo {
    requests: Requests,
    ip_len: usize,
    interval: Duration,
    next: Option<Instant>,
    /// Round trips since the progress was last taken.
    lately: Vec<Duration>,
}

impl Echo {
    /// In the namespace of the calling thread.
    pub(super) fn new(plan: EchoPlan, own: IpAddr, target: IpAddr, dscp: u8) -> io::Result<Self> {
        Ok(Self {
            requests: Requests::new(EchoSocket::open(SocketAddr::new(target, 0), Some(own), dscp)?),
            ip_len: plan.size.into(),
            interval: plan.interval,
            next: None,
            lately: Vec::new(),
        })
    }

    pub(super) fn begin(&mut self, at: Instant) {
        self.next = Some(at);
    }

    pub(super) fn stop(&mut self) {
        self.next = None;
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.requests.as_fd()
    }

    /// Sends the request that is due.
    pub(super) fn send(&mut self, clock: &dyn Clock) -> io::Result<()> {
        let Some(due) = self.next else { return Ok(()) };
        self.requests.send(clock, self.ip_len)?;
        self.next = Some(due + self.interval);
        Ok(())
    }

    /// Takes the replies that wait.
    pub(super) fn receive(&mut self, clock: &dyn Clock) -> io::Result<()> {
        self.requests.receive(clock, |round_trip| self.lately.push(round_trip))
    }

    /// Takes the round trips of the replies since the last call.
    pub(super) fn take_lately(&mut self) -> Vec<Duration> {
        std::mem::take(&mut self.lately)
    }

    pub(super) fn outcome(self) -> FlowOutcome {
        let packets_sent = self.requests.round_trips().len() as u64;
        let answered = self.requests.round_trips().filter_map(|(sent, round_trip)| Some((sent, round_trip?)));
        let replies: Vec<(Instant, Duration)> = answered.collect();
        FlowOutcome { packets_sent, packets_received: replies.len() as u64, replies, ..FlowOutcome::default() }
    }
}
