//! Echo requests at a steady pace, and how long each reply took: ping(8) with nanoseconds.
//!
//! A reply counts when the kernel received it (`SO_TIMESTAMPNS`), not when this program woke up; a
//! request, when it was handed to the kernel. Requests go out on a fixed grid from the first one
//! on, so a late one does not shift those after it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use lastmile_units::{Duration, Instant};

use crate::clock::{Clock, MonotonicClock, StampMap, std_span};
use crate::error::{Context, Error};
use crate::sys::icmp::{EchoSocket, least_ip_len};
use crate::sys::wait;

/// The requests of a probe.
#[derive(Clone, Copy, Debug)]
pub struct Ping {
    /// Where to.
    pub target: IpAddr,
    /// The number of requests.
    pub count: u16,
    /// Time between two.
    pub interval: Duration,
    /// Length of a request as an IP packet, at least 28 bytes of IPv4 or 48 of IPv6.
    pub ip_len: u16,
    /// The longest wait for replies after the last request.
    pub patience: Duration,
}

/// The replies of a probe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replies {
    /// Round-trip time of each request, in the order of sending; `None` for those without a reply.
    pub round_trips: Vec<Option<Duration>>,
    /// Replies that came a second time.
    pub duplicates: u32,
}

impl Replies {
    /// The round-trip times that there are, shortest first.
    #[must_use]
    pub fn sorted(&self) -> Vec<Duration> {
        let mut sorted: Vec<Duration> = self.round_trips.iter().flatten().copied().collect();
        sorted.sort_unstable();
        sorted
    }
}

/// Sends echo requests from the namespace of the calling thread and waits for the replies.
///
/// # Errors
/// Not root (raw sockets), no route, or a length that no request has.
pub fn ping(ping: &Ping) -> Result<Replies, Error> {
    let what = || format!("pinging {}", ping.target);
    let least = least_ip_len(ping.target);
    if usize::from(ping.ip_len) < least {
        let problem = format!("an echo request has {least} bytes at least");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem)).context(what);
    }
    let socket = EchoSocket::open(SocketAddr::new(ping.target, 0), None, 0).context(what)?;
    let mut session = Session::new(ping);
    let start = session.clock.now();
    for index in 0..ping.count {
        let due = start + ping.interval * u64::from(index);
        session.collect_until(&socket, due).context(what)?;
        session.request(&socket, index).context(what)?;
    }
    let end = session.clock.now() + ping.patience;
    session.collect_until(&socket, end).context(what)?;
    Ok(session.replies())
}

struct Session {
    clock: MonotonicClock,
    ip_len: usize,
    /// When each request was sent and its first reply received.
    times: Vec<(Instant, Option<Instant>)>,
    count: u16,
    duplicates: u32,
}

impl Session {
    fn new(ping: &Ping) -> Self {
        Self {
            clock: MonotonicClock::start(),
            ip_len: ping.ip_len.into(),
            times: Vec::with_capacity(usize::from(ping.count)),
            count: ping.count,
            duplicates: 0,
        }
    }

    fn request(&mut self, socket: &EchoSocket, sequence: u16) -> io::Result<()> {
        let sent = self.clock.now();
        socket.request(sequence, self.ip_len)?;
        self.times.push((sent, None));
        Ok(())
    }

    /// Takes replies until `end`, or until none is missing.
    fn collect_until(&mut self, socket: &EchoSocket, end: Instant) -> io::Result<()> {
        loop {
            let map = StampMap::measure(&self.clock);
            while let Some((sequence, stamp)) = socket.reply()? {
                let now = self.clock.now();
                let received = stamp.map_or(now, |stamp| map.monotonic(stamp).min(now));
                self.note(sequence, received);
            }
            let now = self.clock.now();
            if now >= end || self.is_complete() {
                return Ok(());
            }
            wait::readable([Some(socket.as_fd())], Some(std_span(end - now)))?;
        }
    }

    fn note(&mut self, sequence: u16, received: Instant) {
        match self.times.get_mut(usize::from(sequence)) {
            Some((_, reply @ None)) => *reply = Some(received),
            Some(_) => self.duplicates += 1,
            None => {}
        }
    }

    fn is_complete(&self) -> bool {
        self.times.len() == usize::from(self.count) && self.times.iter().all(|(_, reply)| reply.is_some())
    }

    fn replies(self) -> Replies {
        let round_trips = self.times.iter().map(|(sent, reply)| reply.map(|reply| reply.since(*sent))).collect();
        Replies { round_trips, duplicates: self.duplicates }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    /// The kernel's own echo over loopback: no line, no emulator, so tens of microseconds.
    #[test]
    #[ignore = "needs root for a raw socket"]
    fn loopback_answers_every_request() {
        let ten = Ping {
            target: Ipv4Addr::LOCALHOST.into(),
            count: 10,
            interval: Duration::from_ms(1),
            ip_len: 84,
            patience: Duration::from_s(1),
        };
        let replies = ping(&ten).unwrap();
        assert_eq!(replies.sorted().len(), 10, "{replies:?}");
        assert_eq!(replies.duplicates, 0);
        assert!(replies.sorted()[5] < Duration::from_ms(5), "{replies:?}");
    }

    #[test]
    fn a_length_that_no_request_has_is_refused() {
        let short = Ping {
            target: Ipv4Addr::LOCALHOST.into(),
            count: 1,
            interval: Duration::ZERO,
            ip_len: 27,
            patience: Duration::ZERO,
        };
        assert!(ping(&short).is_err());
    }
}
