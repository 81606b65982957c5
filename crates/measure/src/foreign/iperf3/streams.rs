//! The connections that carry the load, served by one thread.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use lastmile_live::sys::socket;
use rustix::event::{PollFd, PollFlags};

use super::control::Control;
use super::protocol::{COOKIE_LEN, Counted, StreamResult};
use crate::congestion::{self, Names};
use crate::error::Error;
use crate::foreign::wire::{self, Halt, LOOK, Patience};
use crate::holes::Payload;
use crate::load::{Stop, Transferred};
use crate::train::Way;

/// Results of one stream, from both ends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StreamOutcome {
    /// iperf3's number of the stream.
    pub id: u32,
    /// Direction of its data.
    pub way: Way,
    /// Bytes that the sender wrote.
    pub sent_bytes: u64,
    /// Bytes that the receiver read.
    pub received_bytes: u64,
    /// Segments that the sender retransmitted; `None` where its system does not count them.
    pub retransmissions: Option<u64>,
    /// Length of the test at the receiver in seconds.
    pub span_s: Option<f64>,
}

/// Bytes of a write, and iperf3's own length of a block for TCP.
pub(super) const BLOCK: usize = 128 * 1024;
/// Bytes of a read. They are counted, not copied.
const READ: usize = 1 << 20;
/// Unsent bytes in the send buffer above which the client writes no more: little of a test is left at its end.
const UNSENT_BYTES: u32 = 256 * 1024;
/// Time without a byte in any direction after which the server counts as gone.
const SILENCE: Duration = Duration::from_secs(15);
/// Time for the connection of a stream, and for its cookie.
const CONNECT: Duration = Duration::from_secs(10);
/// The kernel's count of acknowledged bytes has the SYN and the cookie too.
const NOT_PAYLOAD: u64 = 1 + COOKIE_LEN as u64;

/// A connection that carries load.
pub(super) struct Stream {
    id: u32,
    way: Way,
    socket: TcpStream,
    open: bool,
    /// Bytes written or read by the client.
    carried: u64,
    /// Bytes acknowledged by the server, in order or not, of an upload.
    acked: u64,
    /// That of a download.
    payload: Payload,
}

impl Stream {
    /// Connects, and sends the cookie of the test.
    pub(super) fn connect(
        (id, way): (u32, Way),
        server: SocketAddr,
        congestion: Option<&str>,
        cookie: &[u8; COOKIE_LEN],
        stop: &Stop,
    ) -> Result<Self, Halt> {
        let patience = Patience::new(CONNECT, Some(stop));
        let socket = wire::connect(server, patience, |socket| {
            congestion.map_or(Ok(()), |name| socket::set_congestion(socket.as_fd(), name))
        })?;
        let what = || format!("opening the stream {id} to {server}");
        socket::set_unsent_low(socket.as_fd(), UNSENT_BYTES).map_err(Error::io(what()))?;
        wire::write_all(&socket, cookie, patience, &what)?;
        Ok(Self { id, way, socket, open: true, carried: 0, acked: 0, payload: Payload::default() })
    }

    /// Bytes that were counted as arrived.
    pub(super) fn arrived(&self) -> u64 {
        match self.way {
            Way::Down => self.carried,
            Way::Up => self.acked,
        }
    }

    fn events(&self) -> PollFlags {
        match self.way {
            Way::Down => PollFlags::IN,
            Way::Up => PollFlags::OUT,
        }
    }

    /// Reads or writes what is possible at once. A connection that has ended is closed; the control connection has the
    /// reason.
    fn serve(&mut self, block: &[u8], transferred: &Transferred) {
        let done = match self.way {
            Way::Down => socket::discard(self.socket.as_fd(), READ),
            Way::Up => socket::send(self.socket.as_fd(), block, false),
        };
        match done {
            Ok(0) => self.open = false,
            Ok(bytes) => {
                self.carried += bytes as u64;
                if self.way == Way::Down {
                    transferred.add_down(self.payload.take(&self.socket, bytes));
                }
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.open = false,
        }
    }

    /// Counts what the server has acknowledged since the last call, or what has arrived beyond a hole.
    fn count(&mut self, transferred: &Transferred) {
        if self.way == Way::Down {
            return transferred.add_down(self.payload.take(&self.socket, 0));
        }
        let Ok(info) = socket::info(self.socket.as_fd()) else { return };
        let acked = acked(&info).min(self.carried);
        transferred.add_up(acked.saturating_sub(self.acked));
        self.acked = self.acked.max(acked);
    }

    /// The client's results.
    pub(super) fn result(&self, span: Duration) -> StreamResult {
        let sent = socket::info(self.socket.as_fd()).ok().filter(|_| self.way == Way::Up);
        StreamResult {
            id: self.id,
            bytes: self.carried,
            retransmissions: sent.map(|info| u64::from(info.retransmissions)),
            span_s: Some(span.as_secs_f64()),
            counted: Counted::default(),
        }
    }
}

/// Payload that the server has acknowledged, in order or beyond a lost segment.
fn acked(info: &socket::Info) -> u64 {
    info.bytes_acked.saturating_sub(NOT_PAYLOAD) + u64::from(info.sacked) * u64::from(info.mss)
}

/// Connects the streams of a test in the order in which the server expects them.
pub(super) fn connect_all(
    order: &[(u32, Way)],
    server: SocketAddr,
    congestion: Option<&str>,
    cookie: &[u8; COOKIE_LEN],
    stop: &Stop,
) -> Result<Vec<Stream>, Halt> {
    order.iter().map(|&stream| Stream::connect(stream, server, congestion, cookie, stop)).collect()
}

/// The congestion controls of the streams that send, each once.
pub(super) fn congestion(streams: &[Stream]) -> Option<String> {
    let names = Names::default();
    streams.iter().filter(|stream| stream.way == Way::Up).for_each(|stream| names.note(&stream.socket));
    congestion::joined(&names.all())
}

/// Carries load until `stop`, or for `longest`.
///
/// # Errors
/// A message of the server, which is the end of the test before its time; silence.
pub(super) fn carry(
    streams: &mut [Stream],
    control: &Control<'_>,
    longest: Duration,
    transferred: &Transferred,
    stop: &Stop,
) -> Result<(), Halt> {
    let block = random_block()?;
    let started = Instant::now();
    let (mut progressed, mut arrived, mut counted) = (started, 0, started);
    while !stop.is_requested() && started.elapsed() < longest {
        if serve_once(streams, control, &block, transferred)? {
            return Err(control.interruption());
        }
        let now = Instant::now();
        if now.duration_since(counted) < LOOK / 2 {
            continue;
        }
        counted = now;
        streams.iter_mut().for_each(|stream| stream.count(transferred));
        let total = streams.iter().map(Stream::arrived).sum::<u64>();
        if total > arrived {
            (arrived, progressed) = (total, now);
        } else if now.duration_since(progressed) > SILENCE {
            return Err(control.protocol(format!("no byte has arrived for {} s", SILENCE.as_secs())).into());
        }
    }
    streams.iter_mut().for_each(|stream| stream.count(transferred));
    Ok(())
}

/// Waits for the next event and serves the streams that are ready: whether the control connection has a message.
fn serve_once(
    streams: &mut [Stream],
    control: &Control<'_>,
    block: &[u8],
    transferred: &Transferred,
) -> Result<bool, Halt> {
    let open: Vec<usize> = (0..streams.len()).filter(|&index| streams[index].open).collect();
    let mut fds = vec![PollFd::new(control.stream(), PollFlags::IN)];
    fds.extend(open.iter().map(|&index| PollFd::new(&streams[index].socket, streams[index].events())));
    wire::poll_for(&mut fds, LOOK / 2).map_err(Error::io("waiting for the streams"))?;
    let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
    for (index, _) in open.into_iter().zip(&ready[1..]).filter(|(_, ready)| **ready) {
        streams[index].serve(block, transferred);
    }
    Ok(ready[0])
}

/// Data that no link can compress.
fn random_block() -> Result<Vec<u8>, Error> {
    let mut block = vec![0; BLOCK];
    fill_random(&mut block)?;
    Ok(block)
}

/// Fills with random bytes. getrandom(2).
pub(super) fn fill_random(mut bytes: &mut [u8]) -> Result<(), Error> {
    while !bytes.is_empty() {
        let filled = rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty())
            .map_err(io::Error::from)
            .map_err(Error::io("drawing random bytes"))?;
        bytes = &mut bytes[filled..];
    }
    Ok(())
}

/// Both ends' results of each stream, with what the server received beyond the count so far added to `transferred`.
pub(super) fn settle(
    streams: &[Stream],
    theirs: &[StreamResult],
    span: Duration,
    transferred: &Transferred,
) -> Vec<StreamOutcome> {
    let settled = streams.iter().zip(theirs).map(|(stream, theirs)| {
        let ours = stream.result(span);
        let (sent, received) = match stream.way {
            Way::Up => (&ours, theirs),
            Way::Down => (theirs, &ours),
        };
        if stream.way == Way::Up {
            transferred.add_up(received.bytes.saturating_sub(stream.arrived()));
        }
        StreamOutcome {
            id: stream.id,
            way: stream.way,
            sent_bytes: sent.bytes,
            received_bytes: received.bytes,
            retransmissions: sent.retransmissions,
            span_s: received.span_s,
        }
    });
    settled.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The SYN, the cookie of 37 bytes and 10 000 bytes, and 34 segments of 1448 bytes beyond a lost one: 49 232.
    #[test]
    fn segments_beyond_a_hole_have_arrived() {
        let info = socket::Info { bytes_acked: 10_038, sacked: 34, mss: 1_448, ..socket::Info::default() };
        assert_eq!(acked(&info), 59_232);
    }
}
