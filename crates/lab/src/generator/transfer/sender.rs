//! The sending application of a transfer.
//!
//! It keeps a few segments unsent (`TCP_NOTSENT_LOWAT`): the kernel still sends all data that it
//! has been offered, where a simulated sender stops at once. Their number follows the congestion window.
//! It writes whole segments, at most as much as the socket has space for, and announces more
//! (`MSG_MORE`): a write that finds no space marks its last segment as an end (PSH).

use std::io::{self, Read};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;

use lastmile_live::sys::socket;
use lastmile_units::{Duration, Instant};
use rustix::event::PollFlags;

use crate::outcome::{TcpOutcome, TcpSample};
use crate::spec::{TransferPlan, Window};
use lastmile_tcp::LimitedTime;

use super::super::octets::{ZEROS, unless_blocked};

/// Calls in a row for one socket before the others have their turn.
const TURNS: usize = 16;
/// Segments that wait for their first transmission with small windows: an ACK releases two, in slow start four.
const UNSENT_SEGMENTS: u32 = 6;
/// The most bytes that wait for their first transmission.
const MOST_UNSENT: u32 = 256 << 10;
/// The initial threshold: `TCP_INFINITE_SSTHRESH` of the kernel.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// Bytes that may wait for their first transmission while the congestion window has `cwnd`: as many as depart during a
/// wake-up, and at least a few segments. poll(2) reports the socket as writable when half of them are gone.
pub(super) fn most_unsent(window: Window, cwnd: u32, segment: u32) -> u32 {
    let share = match window {
        Window::Fixed(bytes) => bytes / 32,
        // Whole segments, so that it seldom changes.
        Window::Grows => cwnd / 16 / segment * segment,
    };
    let least = UNSENT_SEGMENTS * segment;
    share.clamp(least, MOST_UNSENT.max(least))
}

/// The sending end.
pub(super) struct Sender {
    pub(super) stream: Option<TcpStream>,
    /// The window of the receiver.
    window: Window,
    /// Its buffer has a limit.
    limited_buffer: bool,
    /// The first bytes of the data that is left to send; zeros follow.
    prefix: Vec<u8>,
    /// Bytes left to send; `None` for as many as there is time for.
    left: Option<u64>,
    /// Bytes of a request that it has yet to read before it sends.
    to_hear: u64,
    /// Bytes that it has read on a connection by turns, up to the end of the stream; `None` on others.
    heard: Option<u64>,
    /// The receiver has closed.
    deaf: bool,
    connected: Option<Instant>,
    /// Payload of a segment; one before it is connected.
    payload: u32,
    /// The most bytes that wait for their first transmission.
    most_unsent: u32,
    /// More may be offered when all is sent.
    keep_open: bool,
    shut: bool,
    tcp: TcpOutcome,
}

impl Sender {
    pub(super) fn new(plan: &TransferPlan, stream: Option<TcpStream>) -> Self {
        Self {
            stream,
            window: plan.window,
            limited_buffer: plan.send_buffer.is_some(),
            prefix: plan.first_payload.clone(),
            left: plan.bytes,
            to_hear: plan.request,
            heard: None,
            deaf: false,
            connected: None,
            payload: 1,
            most_unsent: 0,
            keep_open: false,
            shut: false,
            tcp: TcpOutcome::default(),
        }
    }

    /// Makes the sender an end of turns: it sends only bytes that are offered later, reads everything, and stays open.
    pub(super) fn by_turns(&mut self) {
        (self.left, self.to_hear, self.heard, self.keep_open) = (Some(0), 0, Some(0), true);
    }

    /// Offers `bytes` more to send.
    pub(super) fn offer(&mut self, bytes: u64) {
        self.left = self.left.map(|left| left + bytes);
    }

    /// Bytes that it has read on a connection by turns.
    pub(super) fn heard(&self) -> u64 {
        self.heard.unwrap_or(0)
    }

    pub(super) fn hang_up(&mut self) {
        self.keep_open = false;
        self.shut_if_done();
    }

    pub(super) fn stop(&mut self) {
        self.prefix.clear();
        self.left = Some(0);
        self.hang_up();
    }

    /// The events that it waits for.
    pub(super) fn wish(&self) -> PollFlags {
        // One that waits for another request has nothing to write.
        let offers = !self.shut && (self.left != Some(0) || self.connected.is_none());
        let hears = self.to_hear > 0 || (self.heard.is_some() && !self.deaf);
        let mut wish = PollFlags::empty();
        wish.set(PollFlags::IN, hears);
        wish.set(PollFlags::OUT, offers && self.to_hear == 0);
        wish
    }

    /// Reads requests.
    pub(super) fn hear(&mut self, now: Instant) -> io::Result<()> {
        let Some(mut stream) = self.stream.as_ref() else { return Ok(()) };
        if self.connected.is_none() {
            self.connected = Some(now);
            self.payload = socket::info(stream.as_fd())?.mss.max(1);
        }
        while self.to_hear > 0 || (self.heard.is_some() && !self.deaf) {
            let mut buffer = [0; 4096];
            match stream.read(&mut buffer) {
                Ok(0) if self.shut => self.deaf = true,
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(len) => {
                    self.to_hear = self.to_hear.saturating_sub(len as u64);
                    self.heard = self.heard.map(|heard| heard + len as u64);
                }
                Err(error) => return unless_blocked(error),
            }
        }
        Ok(())
    }

    /// Sends what there is space for, unless a request is to come first.
    pub(super) fn send(&mut self) -> io::Result<()> {
        if self.to_hear > 0 {
            return Ok(());
        }
        self.follow_window()?;
        let Some(stream) = self.stream.as_ref() else { return Ok(()) };
        for _ in 0..TURNS {
            let space = self.space(stream)?;
            let left = self.left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
            let source: &[u8] = if self.prefix.is_empty() { &ZEROS } else { &self.prefix };
            let part = &source[..source.len().min(space).min(left)];
            if part.is_empty() {
                break;
            }
            match socket::send(stream.as_fd(), part, part.len() < left) {
                Ok(len) => {
                    self.prefix.drain(..len.min(self.prefix.len()));
                    self.left = self.left.map(|left| left.saturating_sub(len as u64));
                }
                Err(error) => return unless_blocked(error),
            }
        }
        self.shut_if_done();
        Ok(())
    }

    /// Lets as much wait unsent as the congestion window asks for.
    fn follow_window(&mut self) -> io::Result<()> {
        let Some(stream) = self.stream.as_ref() else { return Ok(()) };
        let cwnd = match self.window {
            Window::Grows => socket::info(stream.as_fd())?.cwnd.saturating_mul(self.payload),
            Window::Fixed(_) => 0,
        };
        let most = most_unsent(self.window, cwnd, self.payload);
        if most != self.most_unsent {
            socket::set_unsent_low(stream.as_fd(), most)?;
            self.most_unsent = most;
        }
        Ok(())
    }

    /// Bytes to write now: whole segments.
    fn space(&self, stream: &TcpStream) -> io::Result<usize> {
        let unsent = u32::try_from(socket::unsent(stream.as_fd())?).unwrap_or(u32::MAX);
        let space = self.most_unsent.saturating_sub(unsent);
        Ok(usize::try_from(space - space % self.payload).unwrap_or(0))
    }

    fn shut_if_done(&mut self) {
        if self.left == Some(0)
            && !self.keep_open
            && !self.shut
            && self.connected.is_some()
            && let Some(stream) = &self.stream
        {
            self.shut = true;
            // A connection that has broken needs no close.
            let _ = stream.shutdown(Shutdown::Write);
        }
    }

    /// The sender's state now, for a transfer that began at `begun` and lives until `until`; the last known state if
    /// the kernel reports none.
    pub(super) fn sample(&mut self, begun: Option<Instant>, until: Instant) -> TcpSample {
        if let Some((stream, connected)) = self.stream.as_ref().zip(self.connected)
            && let Ok(info) = socket::info(stream.as_fd())
        {
            let mss = u64::from(info.mss);
            let in_flight_bytes = info.in_flight_bytes();
            self.tcp.max_in_flight = self.tcp.max_in_flight.max(in_flight_bytes);
            self.tcp.peer_window = self.tcp.peer_window.max(info.peer_window);
            self.tcp.payload = info.mss;
            self.tcp.last = TcpSample {
                cwnd_bytes: u64::from(info.cwnd) * mss,
                ssthresh_bytes: (info.ssthresh < NO_THRESHOLD).then(|| u64::from(info.ssthresh) * mss),
                in_flight_bytes,
                acked_bytes: info.bytes_acked,
                srtt: (info.srtt_us > 0).then(|| Duration::from_us(info.srtt_us.into())),
                retransmissions: info.retransmissions.into(),
                timeouts: info.timeouts.map(u64::from),
                limited: limited(
                    info.busy,
                    self.limited_buffer,
                    until.since(connected),
                    connected.since(begun.unwrap_or(connected)),
                ),
            };
        }
        self.tcp.last
    }

    /// Segments with data that it sent, and its part of the TCP outcome.
    pub(super) fn outcome(mut self) -> (u64, TcpOutcome) {
        let Some(stream) = &self.stream else { return (0, self.tcp) };
        self.tcp.congestion = socket::congestion(stream.as_fd()).unwrap_or_default();
        let Ok(info) = socket::info(stream.as_fd()) else { return (0, self.tcp) };
        self.tcp.acks_received = info.segments_in.saturating_sub(info.received.segments).into();
        (info.data_out.into(), self.tcp)
    }
}

/// `limited_buffer`: the scenario limits the send buffer. Otherwise the kernel's account of it is the pause until the
/// application, which keeps few segments unsent, writes more.
fn limited(busy: socket::Busy, limited_buffer: bool, alive: Duration, awaiting_ack: Duration) -> LimitedTime {
    let [busy, receive_window, buffer] =
        [busy.total_us, busy.receive_window_us, busy.send_buffer_us].map(Duration::from_us);
    let (send_buffer, pause) = if limited_buffer { (buffer, Duration::ZERO) } else { (Duration::ZERO, buffer) };
    LimitedTime {
        congestion_window: busy.saturating_sub(receive_window).saturating_sub(buffer),
        receive_window,
        send_buffer,
        application: alive.saturating_sub(busy) + pause,
        pacing: Duration::ZERO,
        awaiting_ack,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small windows keep six segments, large ones a 32nd of the window, those that grow a 16th of the congestion
    /// window, and none more than 256 KiB. A 16th of 110 kB is less than six segments, of 1 MiB it is 45.
    #[test]
    fn what_waits_unsent_grows_with_the_window() {
        let fixed = |bytes| most_unsent(Window::Fixed(bytes), 0, 1448);
        assert_eq!([32 << 10, 1 << 20, 1 << 30].map(fixed), [6 * 1448, 32 << 10, 256 << 10]);
        let grows = |cwnd| most_unsent(Window::Grows, cwnd, 1448);
        assert_eq!([14_480, 110_000, 1 << 20, 1 << 30].map(grows), [6 * 1448, 6 * 1448, 45 * 1448, 256 << 10]);
    }

    /// The kernel counts what was held up by windows and buffers as busy, too.
    #[test]
    fn the_kernels_busy_time_is_shared_among_its_limits() {
        let ms = Duration::from_ms;
        let busy = socket::Busy { total_us: 700_000, receive_window_us: 200_000, send_buffer_us: 100_000 };
        let by = |limited_buffer| limited(busy, limited_buffer, ms(1000), ms(30));
        assert_eq!((by(false).congestion_window, by(false).receive_window), (ms(400), ms(200)));
        assert_eq!((by(false).application, by(false).awaiting_ack), (ms(400), ms(30)));
        assert_eq!((by(true).application, by(true).send_buffer), (ms(300), ms(100)));
    }
}
