//! Echo requests with the times of each, and a series of them at a steady pace: ping(8) with nanoseconds.
//!
//! A reply counts when the kernel received it (`SO_TIMESTAMPNS`), not when this program woke up; a
//! request, when it was handed to the kernel. Requests of a series go out on a fixed grid from the first one
//! on, so a late one does not shift those after it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use lastmile_units::{Duration, Instant};

use crate::clock::{Clock, MonotonicClock, StampMap, std_span};
use crate::error::{Context, Error};
use crate::sys::icmp::{EchoSocket, least_ip_len};

/// Echo requests to one host, numbered from zero.
#[derive(Debug)]
pub struct Requests {
    socket: EchoSocket,
    /// When each request was sent and its first reply received.
    times: Vec<(Instant, Option<Instant>)>,
    /// Replies that came a second time.
    duplicates: u32,
}

impl Requests {
    /// No request has been sent.
    #[must_use]
    pub const fn new(socket: EchoSocket) -> Self {
        Self { socket, times: Vec::new(), duplicates: 0 }
    }

    /// Sends a request of this length as an IP packet.
    ///
    /// # Errors
    /// As [`EchoSocket::request`].
    pub fn send(&mut self, clock: &dyn Clock, ip_len: usize) -> io::Result<()> {
        let [.., high, low] = (self.times.len() as u64).to_be_bytes();
        let sent = clock.now();
        self.socket.request(u16::from_be_bytes([high, low]), ip_len)?;
        self.times.push((sent, None));
        Ok(())
    }

    /// Waits until a packet waits, or this time has passed.
    ///
    /// # Errors
    /// As [`EchoSocket::wait`].
    pub fn wait(&self, patience: std::time::Duration) -> io::Result<()> {
        self.socket.wait(patience)
    }

    /// Takes the replies that wait, and tells the round trip of each first one.
    ///
    /// # Errors
    /// As [`EchoSocket::reply`].
    pub fn receive(&mut self, clock: &dyn Clock, mut tell: impl FnMut(Duration)) -> io::Result<()> {
        let map = StampMap::measure(clock);
        while let Some((sequence, stamp)) = self.socket.reply()? {
            let now = clock.now();
            let received = stamp.map_or(now, |stamp| map.monotonic(stamp).min(now));
            // The latest request with this number: they come round after 65 536.
            match self.times.iter_mut().skip(sequence.into()).step_by(1 << 16).next_back() {
                Some((sent, reply @ None)) => {
                    *reply = Some(received);
                    tell(received.since(*sent));
                }
                Some(_) => self.duplicates += 1,
                None => {}
            }
        }
        Ok(())
    }

    /// The departure of each request, and its round-trip time if it has a reply.
    pub fn round_trips(&self) -> impl ExactSizeIterator<Item = (Instant, Option<Duration>)> {
        self.times.iter().map(|(sent, reply)| (*sent, reply.map(|reply| reply.since(*sent))))
    }

    /// Whether each request has a reply.
    #[must_use]
    pub fn are_answered(&self) -> bool {
        self.times.iter().all(|(_, reply)| reply.is_some())
    }
}

impl AsFd for Requests {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

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
    let (mut requests, clock) = (Requests::new(socket), MonotonicClock::start());
    let collect_until = |requests: &mut Requests, end: Instant, next: u16| loop {
        requests.receive(&clock, |_| {})?;
        let now = clock.now();
        if now >= end || next == ping.count && requests.are_answered() {
            return Ok::<(), io::Error>(());
        }
        requests.wait(std_span(end - now))?;
    };
    let start = clock.now();
    for index in 0..ping.count {
        collect_until(&mut requests, start + ping.interval * u64::from(index), index).context(what)?;
        requests.send(&clock, ping.ip_len.into()).context(what)?;
    }
    collect_until(&mut requests, clock.now() + ping.patience, ping.count).context(what)?;
    let round_trips = requests.round_trips().map(|(_, round_trip)| round_trip).collect();
    Ok(Replies { round_trips, duplicates: requests.duplicates })
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
        // A busy machine delays some, but not all.
        assert!(replies.sorted()[0] < Duration::from_ms(5), "{replies:?}");
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
