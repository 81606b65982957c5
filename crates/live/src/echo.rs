//! Echo requests to one host: RFC 792 by IPv4, RFC 4443 by IPv6.
//!
//! A raw socket is tried first, and a ping socket where the kernel refuses it: a ping socket needs
//! no right but membership in a group of `net.ipv4.ping_group_range`. Round-trip times end when the
//! kernel received the reply (`SO_TIMESTAMPNS`), not when the program woke up.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant, SystemTime};

use crate::error::{Context, Error};
use crate::probe;
use crate::stop::Stop;
use crate::sys::icmp::{EchoKind, EchoSocket};
use crate::sys::wait;

/// Bytes of data in a request, as ping(8) has them: 84 bytes of IPv4, 104 of IPv6.
const DATA: usize = 56;
const HEADER: usize = 8;

const REQUEST_V6: u8 = 128;
const REPLY_V4: u8 = 0;
const REPLY_V6: u8 = 129;

/// Requests to one host with one code point.
#[derive(Debug)]
pub struct Echo {
    socket: EchoSocket,
    identifier: [u8; 2],
    /// The last time at which no reply waited.
    drained: Instant,
}

/// A reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The sequence number of the request.
    pub sequence: u16,
    /// The time at which the kernel received it.
    pub received: Instant,
}

impl Echo {
    /// Opens a socket in the network namespace of the calling thread. `code_point` is the differentiated services code
    /// point of the requests.
    ///
    /// # Errors
    /// Neither kind of socket is allowed, or there is no route to the host.
    pub fn open(target: SocketAddr, code_point: u8) -> Result<Self, Error> {
        let refused =
            |error: &io::Error| matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported);
        let socket = match EchoSocket::connect(EchoKind::Raw, target, code_point) {
            Err(error) if refused(&error) => EchoSocket::connect(EchoKind::Ping, target, code_point),
            other => other,
        };
        let socket = socket.map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => Error::NoPing { target: target.ip() },
            _ => Error::system(format!("pinging {}", target.ip()), source),
        })?;
        let identifier =
            probe::identifier().map_err(|source| Error::system(format!("pinging {}", target.ip()), source))?;
        Ok(Self { socket, identifier, drained: Instant::now() })
    }

    /// The kind of its socket.
    #[must_use]
    pub const fn kind(&self) -> EchoKind {
        self.socket.kind()
    }

    /// Sends a request; returns when the kernel got it.
    ///
    /// # Errors
    /// No route, or a device that is down. A full send queue is no error: it loses the request, as one further on
    /// would.
    pub fn send(&self, sequence: u16) -> io::Result<Instant> {
        let mut message = [0; HEADER + DATA];
        probe::write_request(&mut message, self.identifier, sequence);
        if self.socket.is_v6() {
            message[0] = REQUEST_V6;
            // The kernel fills it in, with the addresses.
            message[2..4].fill(0);
        }
        let sent = Instant::now();
        match self.socket.send(&message) {
            Err(error) if !matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN)) => Err(error),
            _ => Ok(sent),
        }
    }

    /// The next reply that waits.
    ///
    /// # Errors
    /// An error that the network has reported, such as an unreachable host; later replies are not lost by it.
    pub fn receive(&mut self) -> io::Result<Option<Reply>> {
        let mut buffer = [0; 2048];
        loop {
            let Some((message, stamp)) = self.socket.receive(&mut buffer)? else {
                self.drained = Instant::now();
                return Ok(None);
            };
            if let Some(sequence) = self.sequence_of(message) {
                let received = received(stamp, SystemTime::now(), Instant::now(), self.drained);
                return Ok(Some(Reply { sequence, received }));
            }
        }
    }

    /// The sequence number, if this is a reply to a request of this socket.
    fn sequence_of(&self, message: &[u8]) -> Option<u16> {
        let expected = if self.socket.is_v6() { REPLY_V6 } else { REPLY_V4 };
        let [kind, 0, _, _, id0, id1, seq0, seq1, ..] = *message else { return None };
        // The kernel chooses the identifier of a ping socket, and hands over its replies alone.
        let own = self.socket.kind() == EchoKind::Ping || [id0, id1] == self.identifier;
        (kind == expected && own).then(|| u16::from_be_bytes([seq0, seq1]))
    }
}

impl AsFd for Echo {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Waits until a reply to one of these waits, or `stop` says so, or this time has passed.
///
/// # Errors
/// No descriptors left.
pub fn wait(echoes: &[&Echo], stop: &Stop, patience: Duration) -> Result<(), Error> {
    let fds: Vec<BorrowedFd<'_>> = echoes.iter().map(|echo| echo.as_fd()).chain([stop.as_fd()]).collect();
    let what = || "waiting for replies";
    let any = wait::any_of(&fds).context(what)?;
    wait::readable([Some(any.as_fd())], Some(patience)).context(what)?;
    Ok(())
}

/// The moment of a stamp on the monotonic clock. A stamp is of the wall clock, which may have been set while the reply
/// waited: then it seems to have come in the future, or before the socket was last empty.
fn received(stamp: Option<SystemTime>, wall: SystemTime, now: Instant, drained: Instant) -> Instant {
    let age = stamp.and_then(|stamp| wall.duration_since(stamp).ok()).unwrap_or(Duration::ZERO);
    now.checked_sub(age).filter(|received| *received >= drained).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_wall_clock_that_is_set_makes_no_reply_older_than_the_last_look() {
        let drained = Instant::now();
        let now = drained + Duration::from_millis(30);
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let ms = Duration::from_millis;
        assert_eq!(received(Some(wall - ms(10)), wall, now, drained), drained + ms(20));
        assert_eq!(received(Some(wall - ms(3_600_000)), wall, now, drained), now, "set forward by an hour");
        assert_eq!(received(Some(wall + ms(3_600_000)), wall, now, drained), now, "set back by an hour");
        assert_eq!(received(None, wall, now, drained), now);
    }

    fn ten_replies(target: &str) -> Vec<Duration> {
        let mut echo = Echo::open(target.parse().unwrap(), 46).unwrap();
        let mut round_trips = Vec::new();
        for sequence in 0..10 {
            let sent = echo.send(sequence).unwrap();
            let deadline = sent + Duration::from_secs(1);
            while Instant::now() < deadline {
                match echo.receive().unwrap() {
                    Some(reply) if reply.sequence == sequence => {
                        round_trips.push(reply.received.saturating_duration_since(sent));
                        break;
                    }
                    _ => thread::sleep(Duration::from_millis(1)),
                }
            }
        }
        round_trips
    }

    #[test]
    #[ignore = "needs root for a raw socket"]
    fn loopback_answers_the_watcher_by_both_families() {
        for target in ["127.0.0.1:0", "[::1]:0"] {
            let round_trips = ten_replies(target);
            assert_eq!(round_trips.len(), 10, "{target}");
            assert!(round_trips.iter().all(|rtt| *rtt < Duration::from_millis(500)), "{round_trips:?}");
        }
    }
}
