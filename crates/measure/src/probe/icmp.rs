//! ICMP echo over IPv4 (RFC 792) and IPv6 (RFC 4443), with the kernel's receive times.
//!
//! Without the right to raw sockets the kernel's ping sockets serve (icmp(7), `ping_group_range`):
//! they choose the identifier themselves and return the message without the IP header.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use lastmile_live::clock::{Clock, MonotonicClock, StampMap};
use lastmile_live::probe::{identifier, read_reply, write_request};
use lastmile_live::sys::stamped;
use lastmile_units::Instant;
use socket2::{Domain, Protocol, Socket, Type};

use crate::error::Error;
use crate::load::Stop;

use super::prober::{Kind, PATIENCE, Prober, Sample, Subject};
use super::window::{Answer, Window};

/// Type and code of a request and of a reply over IPv6.
const REQUEST_V6: u8 = 128;
const REPLY_V6: u8 = 129;

/// A socket for echo requests to one target. The kernel stamps what it receives.
#[derive(Debug)]
pub(crate) struct EchoSocket {
    socket: Socket,
    form: Form,
    identifier: [u8; 2],
}

/// How the kernel returns a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// With its IPv4 header.
    RawV4,
    /// Without the IPv6 header.
    RawV6,
    /// Without the header, for replies to this socket only.
    Ping,
}

impl EchoSocket {
    /// Opens a socket that sends to `target` with this code point.
    ///
    /// # Errors
    /// No right to send echo requests, no route.
    pub(crate) fn open(target: IpAddr, code_point: u8) -> io::Result<Self> {
        let (domain, protocol, raw) = match target {
            IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4, Form::RawV4),
            IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6, Form::RawV6),
        };
        let (socket, form) = match Socket::new(domain, Type::RAW, Some(protocol)) {
            Ok(socket) => (socket, raw),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                (Socket::new(domain, Type::DGRAM, Some(protocol))?, Form::Ping)
            }
            Err(error) => return Err(error),
        };
        match target {
            IpAddr::V4(_) => socket.set_tos_v4(u32::from(code_point) << 2)?,
            IpAddr::V6(_) => socket.set_tclass_v6(u32::from(code_point) << 2)?,
        }
        stamped::enable(socket.as_fd())?;
        socket.connect(&SocketAddr::new(target, 0).into())?;
        Ok(Self { socket, form, identifier: identifier()? })
    }

    /// Sends a request of `message_len` bytes, header of ICMP included. A full queue on the way out
    /// loses it, as one further on would.
    pub(crate) fn request(&self, sequence: u16, message_len: usize) -> io::Result<()> {
        let mut message = vec![0; message_len.max(8)];
        if self.is_v6() {
            // The kernel adds the checksum, which covers addresses.
            message[0] = REQUEST_V6;
            message[4..6].copy_from_slice(&self.identifier);
            message[6..8].copy_from_slice(&sequence.to_be_bytes());
        } else {
            write_request(&mut message, self.identifier, sequence);
        }
        match self.socket.send(&message) {
            Err(error) if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused) => {
                match error.raw_os_error() {
                    Some(ENOBUFS) => Ok(()),
                    _ => Err(error),
                }
            }
            _ => Ok(()),
        }
    }

    /// Waits for at most `patience` for the next reply: its sequence number and its arrival on
    /// `clock`. Other packets count as none.
    pub(crate) fn reply(&self, clock: &MonotonicClock, patience: Duration) -> io::Result<Option<(u16, Instant)>> {
        let mut buffer = [0; 2048];
        // Zero would be no limit.
        self.socket.set_read_timeout(Some(patience.max(Duration::from_micros(1))))?;
        let (len, stamp) = match stamped::receive(self.socket.as_fd(), &mut buffer) {
            Ok(Some(received)) => received,
            Ok(None) => return Ok(None),
            // A signal, or an ICMP error that belongs to an earlier request: that one stays without
            // an answer.
            Err(error) if is_passing(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let now = clock.now();
        let arrived = stamp.map_or(now, |stamp| StampMap::measure(clock).monotonic(stamp).min(now));
        Ok(self.sequence(&buffer[..len]).map(|sequence| (sequence, arrived)))
    }

    fn is_v6(&self) -> bool {
        self.form == Form::RawV6 || (self.form == Form::Ping && self.socket.domain().is_ok_and(|d| d == Domain::IPV6))
    }

    fn sequence(&self, packet: &[u8]) -> Option<u16> {
        match self.form {
            Form::RawV4 => read_reply(packet, self.identifier),
            Form::RawV6 => match *packet {
                [REPLY_V6, 0, _, _, id0, id1, seq0, seq1, ..] if [id0, id1] == self.identifier => {
                    Some(u16::from_be_bytes([seq0, seq1]))
                }
                _ => None,
            },
            Form::Ping => match *packet {
                [0 | REPLY_V6, 0, _, _, _, _, seq0, seq1, ..] => Some(u16::from_be_bytes([seq0, seq1])),
                _ => None,
            },
        }
    }
}

const ENOBUFS: i32 = 105;

impl AsFd for EchoSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Errors of one packet, after which the socket works on.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, Interrupted, NetworkUnreachable, TimedOut, WouldBlock};
    matches!(
        error.kind(),
        Interrupted | WouldBlock | TimedOut | ConnectionRefused | HostUnreachable | NetworkUnreachable
    )
}

/// Echo requests to one target with one code point.
#[derive(Debug)]
pub struct Icmp {
    name: String,
    target: IpAddr,
    code_point: u8,
    interval: Duration,
}

impl Icmp {
    /// Requests of 84 bytes over IPv4, as ping(8) sends them, at this interval. `name` is the target
    /// as the user wrote it.
    #[must_use]
    pub fn new(name: String, target: IpAddr, code_point: u8, interval: Duration) -> Self {
        Self { name, target, code_point, interval }
    }
}

/// Length of the message: 56 bytes of data as in ping(8), and the header.
const MESSAGE: usize = 64;

impl Prober for Icmp {
    fn subject(&self) -> Subject {
        Subject { target: self.name.clone(), kind: Kind::Icmp, code_point: self.code_point }
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.interval)
    }

    fn run(
        &mut self,
        now_s: &(dyn Fn() -> f64 + Sync),
        stop: &Stop,
        tell: &mut dyn FnMut(Sample),
    ) -> Result<(), Error> {
        let what = || format!("echo requests to {}", self.target);
        let socket = EchoSocket::open(self.target, self.code_point).map_err(Error::io(what()))?;
        let clock = MonotonicClock::start();
        // Both clocks are monotonic; their distance is read once.
        let zero_s = now_s();
        let mut window = Window::default();
        let mut due_s = now_s();
        let mut ended_s = None;
        loop {
            if stop.is_requested() {
                let since_s = *ended_s.get_or_insert_with(now_s);
                if window.is_empty() || now_s() - since_s >= PATIENCE.as_secs_f64() {
                    break;
                }
            } else if now_s() >= due_s {
                let sent_s = zero_s + clock.now().as_secs_f64();
                let number = window.send(sent_s);
                #[expect(clippy::cast_possible_truncation, reason = "the lowest bits, from which the number follows")]
                socket.request(number as u16, MESSAGE).map_err(Error::io(what()))?;
                // A late request does not shift those after it.
                due_s = next_due(due_s, self.interval.as_secs_f64(), now_s());
            }
            let wait_s = if stop.is_requested() { 0.02 } else { (due_s - now_s()).clamp(0.0, 0.05) };
            let reply = socket.reply(&clock, Duration::from_secs_f64(wait_s)).map_err(Error::io(what()))?;
            if let Some((sequence, arrived)) = reply
                && let Some(number) = window.number_of(sequence)
            {
                let arrived_s = zero_s + arrived.as_secs_f64();
                match window.answer(number) {
                    Answer::First { sent_s, reordered } => tell(Sample {
                        sent_s,
                        rtt_s: Some((arrived_s - sent_s).max(0.0)),
                        reordered,
                        ..Sample::default()
                    }),
                    Answer::Duplicate => tell(Sample { sent_s: arrived_s, duplicate: true, ..Sample::default() }),
                    Answer::Unknown => {}
                }
            }
            for (_, sent_s) in window.given_up(now_s() - PATIENCE.as_secs_f64()) {
                tell(Sample { sent_s, ..Sample::default() });
            }
        }
        for (_, sent_s) in window.given_up(f64::INFINITY) {
            tell(Sample { sent_s, ..Sample::default() });
        }
        Ok(())
    }
}

/// The next time of a grid of `interval_s` that is not over.
pub(crate) fn next_due(due_s: f64, interval_s: f64, now_s: f64) -> f64 {
    let next_s = due_s + interval_s;
    if next_s >= now_s { next_s } else { next_s + ((now_s - next_s) / interval_s).ceil() * interval_s }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn a_grid_goes_on_after_a_gap() {
        assert!((next_due(1.0, 0.1, 1.05) - 1.1).abs() < 1e-12);
        assert!((next_due(1.0, 0.1, 1.75) - 1.8).abs() < 1e-9);
    }

    /// The kernel's own echo over loopback.
    #[test]
    #[ignore = "needs root for a raw socket"]
    fn loopback_answers_over_both_protocols() {
        for target in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            let mut prober = Icmp::new("loopback".to_owned(), target, 46, Duration::from_millis(5));
            let (begin, stop) = (std::time::Instant::now(), Stop::default());
            let now_s = move || begin.elapsed().as_secs_f64();
            let mut samples = Vec::new();
            let mut tell = |sample| {
                samples.push(sample);
                if samples.len() == 10 {
                    stop.request();
                }
            };
            prober.run(&now_s, &stop, &mut tell).unwrap();
            assert!(samples.iter().all(|sample| sample.rtt_s.is_some_and(|rtt_s| rtt_s < 0.01)), "{samples:?}");
        }
    }
}
