//! A TCP transfer between the two hosts' kernels, and the applications at both ends of it.
//!
//! The receiving application reads at once and discards. `TCP_WINDOW_CLAMP` holds a fixed window; the kernel resets it
//! whenever it learns of another segment size, so each read sets it again. A window that grows is left to the kernel.
//!
//! The sending application keeps a few segments unsent (`TCP_NOTSENT_LOWAT`): the kernel still sends all data that it
//! has been offered, where a simulated sender stops at once. It writes whole segments, at most as much as the socket
//! has space for, and announces more (`MSG_MORE`): a write that finds no space marks its last segment as an end (PSH).

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lastmile_live::clock::std_span;
use lastmile_live::error::Context;
use lastmile_live::sys::socket;
use lastmile_tcp::LimitedTime;
use lastmile_units::{Duration, Instant};
use rustix::event::PollFlags;

use crate::error::Error;
use crate::outcome::{FlowOutcome, FlowSample, TcpOutcome, TcpSample};
use crate::spec::{End, TransferPlan, Window};

/// The data: as many bytes as one call takes.
static ZEROS: [u8; 65_536] = [0; 65_536];
/// Calls in a row for one socket before the others have their turn.
const TURNS: usize = 16;
/// Segments that wait for their first transmission with small windows: an ACK releases two, in slow start four.
const UNSENT_SEGMENTS: u32 = 6;
/// Bytes that wait for their first transmission with windows that are large, or grow.
const MOST_UNSENT: u32 = 256 << 10;
/// The initial threshold: `TCP_INFINITE_SSTHRESH` of the kernel.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// A transfer, both ends of it.
pub(super) struct Transfer {
    plan: TransferPlan,
    /// It is the sender that opens.
    sender_opens: bool,
    far: SocketAddr,
    sender: Option<TcpStream>,
    receiver: Option<TcpStream>,
    /// The first bytes of the data that is left to send; zeros follow.
    prefix: Vec<u8>,
    left: Option<u64>,
    /// Bytes of requests that the receiver has yet to send, and the sender to read.
    to_ask: u64,
    to_hear: u64,
    begun: Option<Instant>,
    connected: Option<Instant>,
    /// Payload of a segment; one before it is connected.
    payload: u32,
    /// More may be asked for when all is sent.
    keep_open: bool,
    shut: bool,
    /// The receiver has read the end of the stream.
    over: Option<Instant>,
    outcome: FlowOutcome,
    tcp: TcpOutcome,
}

/// Sets the options of a socket by the plan, before it opens. `refused` gets those that this kernel does not have.
pub(super) fn set_up(
    fd: BorrowedFd<'_>,
    plan: &TransferPlan,
    dscp: u8,
    refused: &mut impl FnMut(String),
) -> Result<(), Error> {
    set_congestion(fd, &plan.congestion)?;
    let set = || -> io::Result<()> {
        if let Window::Fixed(bytes) = plan.window {
            // The kernel grants twice as much and includes its overhead of each packet, which is largest for the
            // smallest packets. A buffer that is set does not grow.
            socket::set_receive_buffer(fd, bytes.saturating_mul(4))?;
            socket::clamp_window(fd, bytes)?;
        }
        socket::set_segment(fd, plan.segment)?;
        socket::set_unsent_low(fd, most_unsent(plan, plan.segment.into()))?;
        socket::set_dscp(fd, dscp)
    };
    set().context(|| "setting up a TCP socket")?;
    let timers = socket::Timers {
        min_rto: std_span(plan.min_rto),
        max_rto: std_span(plan.max_rto),
        delayed_ack: std_span(plan.delayed_ack),
    };
    if let Err(error) = socket::set_timers(fd, timers) {
        refused(format!("the kernel's own TCP timers hold, since it refuses others: {error}"));
    }
    Ok(())
}

/// Bytes that may wait for their first transmission: as many as depart during a wake-up, and at least a few segments.
/// poll(2) reports the socket as writable when half of them are gone.
fn most_unsent(plan: &TransferPlan, segment: u32) -> u32 {
    let share = match plan.window {
        Window::Fixed(bytes) => bytes / 32,
        Window::Grows => MOST_UNSENT,
    };
    share.clamp(UNSENT_SEGMENTS * segment, MOST_UNSENT)
}

fn set_congestion(fd: BorrowedFd<'_>, name: &str) -> Result<(), Error> {
    match socket::set_congestion(fd, name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::NoCongestionControl { name: name.to_owned() })
        }
        other => Ok(other.context(|| format!("choosing the congestion control {name}"))?),
    }
}

impl Transfer {
    /// A transfer whose opener is the socket `opener`, set up and bound; it will connect to `far`.
    pub(super) fn new(plan: TransferPlan, sender_opens: bool, opener: OwnedFd, far: SocketAddr) -> Self {
        let opener = Some(TcpStream::from(opener));
        let (sender, receiver) = if sender_opens { (opener, None) } else { (None, opener) };
        Self {
            sender_opens,
            far,
            sender,
            receiver,
            prefix: plan.first_payload.clone(),
            left: plan.bytes,
            to_ask: plan.request,
            to_hear: plan.request,
            begun: None,
            connected: None,
            payload: 1,
            keep_open: false,
            shut: false,
            over: None,
            outcome: FlowOutcome::default(),
            tcp: TcpOutcome::default(),
            plan,
        }
    }

    /// True for the connection that comes to this port of this end from `port`.
    pub(super) fn is_from(&self, (end, listener): (End, u16), port: u16) -> bool {
        let plan = &self.plan;
        plan.opener == end.other() && plan.listener_port == listener && plan.opener_port == port
    }

    pub(super) fn begin(&mut self, now: Instant) -> io::Result<()> {
        self.begun = Some(now);
        let opener = if self.sender_opens { &self.sender } else { &self.receiver };
        match opener {
            Some(opener) => socket::connect(opener.as_fd(), self.far),
            None => Ok(()),
        }
    }

    /// The listening host has accepted.
    pub(super) fn accepted(&mut self, stream: TcpStream, dscp: u8) -> Result<(), Error> {
        // A listener that several flows share had the settings of one of them.
        set_up(stream.as_fd(), &self.plan, dscp, &mut |_| {})?;
        stream.set_nonblocking(true).context(|| "setting up a TCP socket")?;
        *(if self.sender_opens { &mut self.receiver } else { &mut self.sender }) = Some(stream);
        Ok(())
    }

    /// More may be asked for when all is sent: it closes at [`Transfer::hang_up`].
    pub(super) fn keep_open(mut self) -> Self {
        self.keep_open = true;
        self
    }

    /// The receiver asks, with another request, for `bytes` more.
    pub(super) fn ask(&mut self, request: u64, bytes: u64) {
        self.plan.request += request;
        self.plan.bytes = self.plan.bytes.map(|before| before + bytes);
        self.left = self.left.map(|left| left + bytes);
        self.to_ask += request;
        self.to_hear += request;
        self.outcome.end = None;
    }

    /// It closes when all that was asked for is sent.
    pub(super) fn hang_up(&mut self) {
        self.keep_open = false;
        self.shut_if_done();
    }

    /// The application stops offering data.
    pub(super) fn stop(&mut self) {
        self.prefix.clear();
        self.left = Some(0);
        self.hang_up();
    }

    pub(super) fn bytes_delivered(&self) -> u64 {
        self.outcome.bytes_delivered
    }

    /// The end of the stream has come, or the connection broke.
    pub(super) fn is_over(&self) -> bool {
        self.over.is_some() || self.has_failed()
    }

    pub(super) fn has_failed(&self) -> bool {
        self.outcome.failure.is_some()
    }

    pub(super) fn sender_wish(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let hears = self.to_hear > 0;
        // One that waits for another request has nothing to write.
        let offers = self.left != Some(0) || self.connected.is_none();
        let write = !hears && !self.shut && offers;
        self.wish(self.sender.as_ref(), hears, write)
    }

    pub(super) fn receiver_wish(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        self.wish(self.receiver.as_ref(), self.over.is_none(), self.to_ask > 0)
    }

    fn wish<'a>(&self, stream: Option<&'a TcpStream>, read: bool, write: bool) -> Option<(BorrowedFd<'a>, PollFlags)> {
        let mut wish = PollFlags::empty();
        wish.set(PollFlags::IN, read);
        wish.set(PollFlags::OUT, write);
        let open = self.begun.is_some() && self.outcome.failure.is_none();
        stream.filter(|_| open).map(|stream| (stream.as_fd(), wish))
    }

    /// The sender may send, or hear.
    pub(super) fn sender_ready(&mut self, now: Instant) {
        let result = self.send(now);
        self.note_failure(result);
    }

    fn send(&mut self, now: Instant) -> io::Result<()> {
        let Some(mut sender) = self.sender.as_ref() else { return Ok(()) };
        if self.connected.is_none() {
            self.connected = Some(now);
            self.payload = socket::info(sender.as_fd())?.mss.max(1);
            socket::set_unsent_low(sender.as_fd(), most_unsent(&self.plan, self.payload))?;
        }
        while self.to_hear > 0 {
            let mut buffer = [0; 4096];
            match sender.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(len) => self.to_hear = self.to_hear.saturating_sub(len as u64),
                Err(error) => return unless_blocked(error),
            }
        }
        for _ in 0..TURNS {
            let space = self.space(sender)?;
            let left = self.left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
            let source: &[u8] = if self.prefix.is_empty() { &ZEROS } else { &self.prefix };
            let part = &source[..source.len().min(space).min(left)];
            if part.is_empty() {
                break;
            }
            match socket::send(sender.as_fd(), part, part.len() < left) {
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

    /// Bytes to write now: whole segments.
    fn space(&self, sender: &TcpStream) -> io::Result<usize> {
        let unsent = u32::try_from(socket::unsent(sender.as_fd())?).unwrap_or(u32::MAX);
        let space = most_unsent(&self.plan, self.payload).saturating_sub(unsent);
        Ok(usize::try_from(space - space % self.payload).unwrap_or(0))
    }

    fn shut_if_done(&mut self) {
        if self.left == Some(0)
            && !self.keep_open
            && !self.shut
            && self.connected.is_some()
            && let Some(sender) = &self.sender
        {
            self.shut = true;
            // A connection that has broken needs no close.
            let _ = sender.shutdown(Shutdown::Write);
        }
    }

    /// Something has come for the receiver, or it may ask. True when that was the last byte of a given number.
    pub(super) fn receiver_ready(&mut self, now: Instant) -> bool {
        let before = self.outcome.end;
        let result = self.send_request().and_then(|()| self.receive(now));
        self.note_failure(result);
        before.is_none() && self.outcome.end.is_some()
    }

    fn send_request(&mut self) -> io::Result<()> {
        let Some(mut receiver) = self.receiver.as_ref() else { return Ok(()) };
        while self.to_ask > 0 {
            let asked = usize::try_from(self.plan.request - self.to_ask).unwrap_or(usize::MAX);
            let first = self.plan.first_request.get(asked..).filter(|rest| !rest.is_empty());
            let source = first.unwrap_or(&ZEROS);
            let part = &source[..source.len().min(usize::try_from(self.to_ask).unwrap_or(usize::MAX))];
            match receiver.write(part) {
                Ok(len) => self.to_ask -= len as u64,
                Err(error) => return unless_blocked(error),
            }
        }
        Ok(())
    }

    fn receive(&mut self, now: Instant) -> io::Result<()> {
        let Some(receiver) = self.receiver.as_ref() else { return Ok(()) };
        let before = self.outcome.bytes_delivered;
        let result = loop {
            match socket::discard(receiver.as_fd(), 1 << 20) {
                Ok(0) => {
                    self.over = Some(now);
                    let _ = receiver.shutdown(Shutdown::Write);
                    break Ok(());
                }
                Ok(len) => self.outcome.bytes_delivered += len as u64,
                Err(error) => break unless_blocked(error),
            }
        };
        if self.outcome.bytes_delivered > before {
            self.outcome.first_delivery.get_or_insert(now);
            self.outcome.last_delivery = Some(now);
            if self.plan.bytes.is_some_and(|bytes| self.outcome.bytes_delivered >= bytes) {
                self.outcome.end.get_or_insert(now);
            }
            if self.over.is_none() {
                if let Window::Fixed(bytes) = self.plan.window {
                    socket::clamp_window(receiver.as_fd(), bytes)?;
                }
                if !self.plan.quick_acks {
                    socket::delay_acks(receiver.as_fd())?;
                }
            }
        }
        result
    }

    fn note_failure(&mut self, result: io::Result<()>) {
        if let Err(error) = result
            && self.outcome.failure.is_none()
        {
            self.outcome.failure = Some(error.to_string());
        }
    }

    pub(super) fn sample(&mut self, now: Instant) -> FlowSample {
        let bytes_delivered = self.outcome.bytes_delivered;
        let Some((sender, connected)) = self.sender.as_ref().zip(self.connected) else {
            return FlowSample { bytes_delivered, tcp: Some(self.tcp.last), ..FlowSample::default() };
        };
        if let Ok(info) = socket::info(sender.as_fd()) {
            let mss = u64::from(info.mss);
            let in_flight_bytes = u64::from(info.unacked) * mss;
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
                limited: self.limited(&info, now, connected),
            };
        }
        FlowSample { bytes_delivered, tcp: Some(self.tcp.last), ..FlowSample::default() }
    }

    fn limited(&self, info: &socket::Info, now: Instant, connected: Instant) -> LimitedTime {
        let busy = Duration::from_us(info.busy_us);
        let receive_window = Duration::from_us(info.receive_window_us);
        let send_buffer = Duration::from_us(info.send_buffer_us);
        let alive = self.over.unwrap_or(now).since(connected);
        LimitedTime {
            congestion_window: busy.saturating_sub(receive_window).saturating_sub(send_buffer),
            receive_window,
            application: alive.saturating_sub(busy) + send_buffer,
            awaiting_ack: connected.since(self.begun.unwrap_or(connected)),
        }
    }

    pub(super) fn outcome(mut self) -> FlowOutcome {
        if let Some(info) = self.sender.as_ref().and_then(|sender| socket::info(sender.as_fd()).ok()) {
            self.outcome.packets_sent = info.data_out.into();
            self.tcp.acks_received = info.segments_in.saturating_sub(info.data_in).into();
        }
        if let Some(sender) = &self.sender {
            self.tcp.congestion = socket::congestion(sender.as_fd()).unwrap_or_default();
        }
        if let Some(info) = self.receiver.as_ref().and_then(|receiver| socket::info(receiver.as_fd()).ok()) {
            self.outcome.packets_received = info.data_in.into();
            self.tcp.acks_sent = info.segments_out.saturating_sub(info.data_out).into();
        }
        FlowOutcome { tcp: Some(self.tcp), ..self.outcome }
    }
}

fn unless_blocked(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
        _ => Err(error),
    }
}
