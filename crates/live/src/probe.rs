//! Echo requests at a steady pace, and how long each reply took: ping(8) with nanoseconds.
//!
//! A reply counts when the kernel received it (`SO_TIMESTAMPNS`), not when this program woke up; a
//! request, when it was handed to the kernel. Requests go out on a fixed grid from the first one
//! on, so a late one does not shift those after it. Echo: RFC 792.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;

use lastmile_packet::checksum::Sum;
use lastmile_units::{Duration, Instant};

use crate::clock::{Clock, MonotonicClock, StampMap, std_span};
use crate::error::{Context, Error};
use crate::sys::icmp::IcmpSocket;
use crate::sys::{random, wait};

/// Bytes of an IPv4 header without options and of the header of an echo message.
pub const HEADERS: u16 = 28;

const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;

/// The requests of a probe.
#[derive(Clone, Copy, Debug)]
pub struct Ping {
    /// Where to.
    pub target: Ipv4Addr,
    /// The number of requests.
    pub count: u16,
    /// Time between two.
    pub interval: Duration,
    /// Length of a request as an IP packet, 28 bytes at least.
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
    if ping.ip_len < HEADERS {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "an echo request has 28 bytes at least")).context(what);
    }
    let socket = IcmpSocket::connect(ping.target).context(what)?;
    let mut session = Session::new(ping).context(what)?;
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
    identifier: [u8; 2],
    message: Vec<u8>,
    /// When each request was sent and its first reply received.
    times: Vec<(Instant, Option<Instant>)>,
    count: u16,
    duplicates: u32,
}

impl Session {
    fn new(ping: &Ping) -> io::Result<Self> {
        Ok(Self {
            clock: MonotonicClock::start(),
            identifier: identifier()?,
            message: vec![0; usize::from(ping.ip_len - HEADERS) + 8],
            times: Vec::with_capacity(usize::from(ping.count)),
            count: ping.count,
            duplicates: 0,
        })
    }

    fn request(&mut self, socket: &IcmpSocket, sequence: u16) -> io::Result<()> {
        write_request(&mut self.message, self.identifier, sequence);
        let sent = self.clock.now();
        // A full queue on the way out loses the request, as one further on would.
        match socket.send(&self.message) {
            Err(error) if !matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN)) => return Err(error),
            _ => {}
        }
        self.times.push((sent, None));
        Ok(())
    }

    /// Takes replies until `end`, or until none is missing.
    fn collect_until(&mut self, socket: &IcmpSocket, end: Instant) -> io::Result<()> {
        let mut buffer = [0; 2048];
        loop {
            let map = StampMap::measure(&self.clock);
            while let Some((len, stamp)) = socket.receive(&mut buffer)? {
                let now = self.clock.now();
                let received = stamp.map_or(now, |stamp| map.monotonic(stamp).min(now));
                if let Some(sequence) = read_reply(&buffer[..len], self.identifier) {
                    self.note(sequence, received);
                }
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

/// An identifier of requests that other programs are unlikely to use.
///
/// # Errors
/// The kernel has no random bytes.
pub fn identifier() -> io::Result<[u8; 2]> {
    random::bytes()
}

/// Type, code, checksum, identifier, sequence number, zeros.
pub fn write_request(message: &mut [u8], identifier: [u8; 2], sequence: u16) {
    message[..4].copy_from_slice(&[ECHO_REQUEST, 0, 0, 0]);
    message[4..6].copy_from_slice(&identifier);
    message[6..8].copy_from_slice(&sequence.to_be_bytes());
    let checksum = Sum::ZERO.bytes(message).checksum();
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
}

/// The sequence number, if this IPv4 packet is a reply to a request of ours.
#[must_use]
pub fn read_reply(packet: &[u8], identifier: [u8; 2]) -> Option<u16> {
    let header_len = usize::from(packet.first()? & 0x0f) * 4;
    let message = packet.get(header_len..)?;
    let [ECHO_REPLY, 0, _, _, id0, id1, seq0, seq1, ..] = *message else { return None };
    ([id0, id1] == identifier).then(|| u16::from_be_bytes([seq0, seq1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's own echo over loopback: no line, no emulator, so tens of microseconds.
    #[test]
    #[ignore = "needs root for a raw socket"]
    fn loopback_answers_every_request() {
        let ten = Ping {
            target: Ipv4Addr::LOCALHOST,
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
    fn a_request_sums_to_zero_and_its_reply_is_recognised() {
        let mut message = [0xff; 64];
        write_request(&mut message, [0xab, 0xcd], 0x0102);
        assert_eq!(Sum::ZERO.bytes(&message).checksum(), 0);
        let mut packet = vec![0x45; 20];
        message[0] = ECHO_REPLY;
        packet.extend_from_slice(&message);
        assert_eq!(read_reply(&packet, [0xab, 0xcd]), Some(0x0102));
        assert_eq!(read_reply(&packet, [0xab, 0xce]), None);
        assert_eq!(read_reply(&packet[..27], [0xab, 0xcd]), None);
        assert_eq!(read_reply(&[], [0xab, 0xcd]), None);
    }

    #[test]
    fn a_length_that_no_request_has_is_refused() {
        let short = Ping {
            target: Ipv4Addr::LOCALHOST,
            count: 1,
            interval: Duration::ZERO,
            ip_len: 27,
            patience: Duration::ZERO,
        };
        assert!(ping(&short).is_err());
    }
}
