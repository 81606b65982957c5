//! The sockets of a UDP test, served by one thread.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::control::Control;
use super::datagrams::{Datagrams, HELLO, Head, LEN, Reception, is_welcome};
use super::protocol::{Counted, StreamResult};
use super::streams::fill_random;
use crate::error::Error;
use crate::foreign::wire::{self, Halt, LOOK};
use crate::load::{Stop, Transferred};
use crate::probe::exchange::is_passing;
use crate::train::Way;

/// Time for the server's answer to a new stream.
const WELCOME: Duration = Duration::from_secs(10);
/// Datagrams that are sent or received without a look at the other sockets. A sender that is later than this many of
/// its datagrams sends less than its rate, and no burst.
const BATCH: u64 = 64;

/// A stream of datagrams.
pub(super) struct Stream {
    id: u32,
    way: Way,
    socket: UdpSocket,
    rate_bps: u64,
    /// Datagrams that were sent, or were due and left out.
    due: u64,
    sent: u64,
    reception: Reception,
    bytes: u64,
}

impl Stream {
    /// Greets the server and waits for its answer. The server takes streams one by one.
    fn connect((id, way): (u32, Way), server: SocketAddr, rate_bps: u64, stop: &Stop) -> Result<Self, Halt> {
        let what = || format!("opening the stream {id} of datagrams to {server}");
        let any: SocketAddr = match server {
            SocketAddr::V4(_) => (std::net::Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let opened = UdpSocket::bind(any).and_then(|socket| {
            socket.connect(server)?;
            socket.send(&HELLO)?;
            socket.set_read_timeout(Some(LOOK))?;
            Ok(socket)
        });
        let socket = opened.map_err(Error::io(what()))?;
        let until = Instant::now() + WELCOME;
        let mut buffer = [0; 64];
        loop {
            match socket.recv(&mut buffer) {
                Ok(len) if is_welcome(&buffer[..len]) => break,
                Err(error) if !is_passing(&error) => return Err(Error::io(what())(error).into()),
                _ if stop.is_requested() => return Err(Halt::Stopped),
                _ if Instant::now() < until => {}
                _ => {
                    let late = io::Error::new(io::ErrorKind::TimedOut, "no answer in 10 s; is UDP blocked?");
                    return Err(Error::io(what())(late).into());
                }
            }
        }
        socket.set_nonblocking(true).map_err(Error::io(what()))?;
        Ok(Self { id, way, socket, rate_bps, due: 0, sent: 0, reception: Reception::default(), bytes: 0 })
    }

    /// When the datagram behind those that were due leaves, after the start.
    fn next(&self) -> Duration {
        let bits = u128::from(self.due) * u128::from(LEN) * 8;
        let nanos = bits * 1_000_000_000 / u128::from(self.rate_bps.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Sends what is due. A socket without space loses the datagram here, as the line would.
    fn send(&mut self, payload: &mut [u8], started: Instant) {
        let mut sent_now = 0;
        while self.next() <= started.elapsed() {
            self.due += 1;
            if sent_now == BATCH {
                continue;
            }
            let head = Head { sent_us: now_us(), number: self.sent + 1 };
            payload[..super::datagrams::HEAD].copy_from_slice(&head.write());
            if self.socket.send(payload).is_ok() {
                self.sent += 1;
                self.bytes += payload.len() as u64;
            }
            sent_now += 1;
        }
    }

    /// Takes what has arrived.
    fn receive(&mut self, buffer: &mut [u8], transferred: &Transferred) {
        for _ in 0..BATCH {
            let Ok(len) = self.socket.recv(buffer) else { return };
            let Some(head) = Head::read(&buffer[..len]) else { continue };
            self.reception.take(head, now_us());
            self.bytes += len as u64;
            transferred.add_down(len as u64);
        }
    }

    /// The client's results.
    pub(super) fn result(&self, span: Duration) -> StreamResult {
        let counted = match self.way {
            Way::Up => Counted { packets: self.sent, lost: 0, jitter_s: 0.0 },
            Way::Down => {
                let Reception { highest, lost, jitter_s, .. } = self.reception;
                Counted { packets: highest, lost, jitter_s }
            }
        };
        let span_s = Some(span.as_secs_f64());
        StreamResult { id: self.id, bytes: self.bytes, retransmissions: None, span_s, counted }
    }

    /// Both ends' results.
    fn settled(&self, theirs: &StreamResult) -> Datagrams {
        let (sent, counted, reordered) = match self.way {
            Way::Up => (self.sent, theirs.counted, None),
            Way::Down => (theirs.counted.packets, self.result(Duration::ZERO).counted, Some(self.reception.reordered)),
        };
        let Counted { packets, lost, jitter_s } = counted;
        let received = packets.saturating_sub(lost);
        Datagrams { way: self.way, sent, received, lost, reordered, jitter_s, offered_bps: self.rate_bps }
    }
}

fn now_us() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

/// Opens the streams of a test in the order in which the server expects them.
pub(super) fn connect_all(
    order: &[(u32, Way)],
    server: SocketAddr,
    rate_bps: u64,
    stop: &Stop,
) -> Result<Vec<Stream>, Halt> {
    order.iter().map(|&stream| Stream::connect(stream, server, rate_bps, stop)).collect()
}

/// Sends and receives until `stop`, or for `longest`.
///
/// # Errors
/// A message of the server, which is the end of the test before its time.
pub(super) fn carry(
    streams: &mut [Stream],
    control: &Control<'_>,
    longest: Duration,
    transferred: &Transferred,
    stop: &Stop,
) -> Result<(), Halt> {
    let mut payload = vec![0; usize::from(LEN)];
    fill_random(&mut payload)?;
    let mut buffer = vec![0; 1 << 16];
    let started = Instant::now();
    while !stop.is_requested() && started.elapsed() < longest {
        for stream in streams.iter_mut() {
            match stream.way {
                Way::Up => stream.send(&mut payload, started),
                Way::Down => stream.receive(&mut buffer, transferred),
            }
        }
        let next = streams.iter().filter(|stream| stream.way == Way::Up).map(Stream::next).min();
        let wait = next.map_or(LOOK, |next| next.saturating_sub(started.elapsed()).min(LOOK));
        let mut fds = vec![PollFd::new(control.stream(), PollFlags::IN)];
        let receiving = streams.iter().filter(|stream| stream.way == Way::Down);
        fds.extend(receiving.map(|stream| PollFd::from_borrowed_fd(stream.socket.as_fd(), PollFlags::IN)));
        wire::poll_for(&mut fds, wait).map_err(Error::io("waiting for datagrams"))?;
        if !fds[0].revents().is_empty() {
            return Err(control.interruption());
        }
    }
    Ok(())
}

/// Both ends' results of each stream, with what the server has received added to `transferred`.
pub(super) fn settle(streams: &[Stream], theirs: &[StreamResult], transferred: &Transferred) -> Vec<Datagrams> {
    for (_, theirs) in streams.iter().zip(theirs).filter(|(stream, _)| stream.way == Way::Up) {
        let span = theirs.span_s.and_then(|span_s| Duration::try_from_secs_f64(span_s).ok());
        transferred.add_up_at(theirs.bytes, span.unwrap_or_else(|| transferred.elapsed()));
    }
    streams.iter().zip(theirs).map(|(stream, theirs)| stream.settled(theirs)).collect()
}
