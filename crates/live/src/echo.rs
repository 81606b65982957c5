//! Echo requests to one host, for a program that runs for weeks. Round-trip times end when the kernel received the
//! reply (`SO_TIMESTAMPNS`), not when the program woke up, and no wall clock that is set changes them.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant, SystemTime};

use crate::error::{Context, Error};
use crate::stop::Stop;
use crate::sys::icmp::{EchoKind, EchoSocket, usual_ip_len};
use crate::sys::wait;

/// Requests to one host with one code point.
#[derive(Debug)]
pub struct Echo {
    socket: EchoSocket,
    ip_len: usize,
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
        Self::with(EchoSocket::open(target, None, code_point), target)
    }

    /// As [`Echo::open`], where route and own address may change, and need not be there yet.
    ///
    /// # Errors
    /// Neither kind of socket is allowed.
    pub fn open_unconnected(target: SocketAddr, code_point: u8) -> Result<Self, Error> {
        Self::with(EchoSocket::open_unconnected(target, code_point), target)
    }

    fn with(socket: io::Result<EchoSocket>, target: SocketAddr) -> Result<Self, Error> {
        let socket = socket.map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => Error::NoPing { target: target.ip() },
            _ => Error::system(format!("pinging {}", target.ip()), source),
        })?;
        Ok(Self { socket, ip_len: usual_ip_len(target.ip()), drained: Instant::now() })
    }

    /// The kind of its socket.
    #[must_use]
    pub const fn kind(&self) -> EchoKind {
        self.socket.kind()
    }

    /// Sends a request; returns when the kernel got it.
    ///
    /// # Errors
    /// As [`EchoSocket::request`].
    pub fn send(&self, sequence: u16) -> io::Result<Instant> {
        let sent = Instant::now();
        self.socket.request(sequence, self.ip_len)?;
        Ok(sent)
    }

    /// The next reply that waits.
    ///
    /// # Errors
    /// As [`EchoSocket::reply`].
    pub fn receive(&mut self) -> io::Result<Option<Reply>> {
        let Some((sequence, stamp)) = self.socket.reply()? else {
            self.drained = Instant::now();
            return Ok(None);
        };
        let received = received(stamp, SystemTime::now(), Instant::now(), self.drained);
        Ok(Some(Reply { sequence, received }))
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
