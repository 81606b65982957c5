//! ICMP echo at a steady pace, for as long as the lab runs: [`lastmile_live::probe`] in one thread with other traffic.
//!
//! A reply counts from when the kernel received it. Requests keep to a grid from the start on, so a late one does not
//! shift those after it; each is timed from when it was handed to the kernel.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use lastmile_live::clock::{Clock, StampMap};
use lastmile_live::sys::icmp::EchoSocket;
use lastmile_units::{Duration, Instant};

use crate::outcome::FlowOutcome;
use crate::spec::EchoPlan;

pub(super) struct Echo {
    socket: EchoSocket,
    ip_len: usize,
    interval: Duration,
    next: Option<Instant>,
    /// When each request was sent and its first reply received.
    times: Vec<(Instant, Option<Instant>)>,
    /// Round trips since the progress was last taken.
    lately: Vec<Duration>,
}

impl Echo {
    /// In the namespace of the calling thread.
    pub(super) fn new(plan: EchoPlan, own: IpAddr, target: IpAddr, dscp: u8) -> io::Result<Self> {
        Ok(Self {
            socket: EchoSocket::open(SocketAddr::new(target, 0), Some(own), dscp)?,
            ip_len: plan.size.into(),
            interval: plan.interval,
            next: None,
            times: Vec::new(),
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
        self.socket.as_fd()
    }

    /// Sends the request that is due.
    pub(super) fn send(&mut self, clock: &dyn Clock) -> io::Result<()> {
        let Some(due) = self.next else { return Ok(()) };
        let [.., high, low] = (self.times.len() as u64).to_be_bytes();
        let sent = clock.now();
        self.socket.request(u16::from_be_bytes([high, low]), self.ip_len)?;
        self.times.push((sent, None));
        self.next = Some(due + self.interval);
        Ok(())
    }

    /// Takes the replies that wait.
    pub(super) fn receive(&mut self, clock: &dyn Clock) -> io::Result<()> {
        let map = StampMap::measure(clock);
        while let Some((sequence, stamp)) = self.socket.reply()? {
            let now = clock.now();
            let received = stamp.map_or(now, |stamp| map.monotonic(stamp).min(now));
            self.note(sequence, received);
        }
        Ok(())
    }

    /// The latest request with this number: they come round after 65 536.
    fn note(&mut self, sequence: u16, received: Instant) {
        let latest = self.times.len().checked_sub(1);
        let place = latest.and_then(|latest| {
            let back = (latest as u64 & 0xffff).wrapping_sub(u64::from(sequence)) & 0xffff;
            latest.checked_sub(usize::try_from(back).ok()?)
        });
        if let Some((sent, reply @ None)) = place.and_then(|place| self.times.get_mut(place)) {
            *reply = Some(received);
            self.lately.push(received.since(*sent));
        }
    }

    /// Takes the round trips of the replies since the last call.
    pub(super) fn take_lately(&mut self) -> Vec<Duration> {
        std::mem::take(&mut self.lately)
    }

    pub(super) fn outcome(self) -> FlowOutcome {
        let answered = self.times.iter().filter_map(|(sent, reply)| Some((*sent, reply.as_ref()?.since(*sent))));
        let replies: Vec<(Instant, Duration)> = answered.collect();
        FlowOutcome {
            packets_sent: self.times.len() as u64,
            packets_received: replies.len() as u64,
            replies,
            ..FlowOutcome::default()
        }
    }
}
