//! A TCP transfer between the two hosts' kernels: the applications at both ends of it.

mod octets;
mod receiver;
mod sender;

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lastmile_live::clock::std_span;
use lastmile_live::error::Context;
use lastmile_live::sys::socket;
use lastmile_units::Instant;
use rustix::event::PollFlags;

use crate::error::Error;
use crate::outcome::{FlowOutcome, FlowSample};
use crate::spec::{End, TransferPlan, Window};

use self::receiver::Receiver;
use self::sender::Sender;

/// A transfer, both ends of it.
pub(super) struct Transfer {
    plan: TransferPlan,
    /// It is the sender that opens.
    sender_opens: bool,
    far: SocketAddr,
    begun: Option<Instant>,
    sender: Sender,
    receiver: Receiver,
    /// The first error of the connection.
    failure: Option<String>,
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
        socket::set_unsent_low(fd, sender::most_unsent(plan.window, plan.segment.into()))?;
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
        let (sender, receiver) = (Sender::new(&plan, sender), Receiver::new(&plan, receiver));
        Self { plan, sender_opens, far, begun: None, sender, receiver, failure: None }
    }

    /// True for the connection that comes to this port of this end from `port`.
    pub(super) fn is_from(&self, (end, listener): (End, u16), port: u16) -> bool {
        let plan = &self.plan;
        plan.opener == end.other() && plan.listener_port == listener && plan.opener_port == port
    }

    pub(super) fn begin(&mut self, now: Instant) -> io::Result<()> {
        self.begun = Some(now);
        let opener = if self.sender_opens { &self.sender.stream } else { &self.receiver.stream };
        opener.as_ref().map_or(Ok(()), |opener| socket::connect(opener.as_fd(), self.far))
    }

    /// The listening host has accepted.
    pub(super) fn accepted(&mut self, stream: TcpStream, dscp: u8) -> Result<(), Error> {
        // A listener that several flows share had the settings of one of them.
        set_up(stream.as_fd(), &self.plan, dscp, &mut |_| {})?;
        stream.set_nonblocking(true).context(|| "setting up a TCP socket")?;
        *(if self.sender_opens { &mut self.receiver.stream } else { &mut self.sender.stream }) = Some(stream);
        Ok(())
    }

    /// More may be asked for when all is sent: it closes at [`Transfer::hang_up`].
    pub(super) fn keep_open(mut self) -> Self {
        self.sender.keep_open();
        self
    }

    /// The receiver asks, with another request, for `bytes` more.
    pub(super) fn ask(&mut self, request: u64, bytes: u64) {
        self.sender.expect(request, bytes);
        self.receiver.ask(request, bytes);
    }

    /// It closes when all that was asked for is sent.
    pub(super) fn hang_up(&mut self) {
        self.sender.hang_up();
    }

    /// The application stops offering data.
    pub(super) fn stop(&mut self) {
        self.sender.stop();
    }

    pub(super) fn bytes_delivered(&self) -> u64 {
        self.receiver.bytes_delivered()
    }

    /// The end of the stream has come, or the connection broke.
    pub(super) fn is_over(&self) -> bool {
        self.receiver.over().is_some() || self.has_failed()
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    pub(super) fn sender_wish(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        self.wish(self.sender.stream.as_ref(), self.sender.wish())
    }

    pub(super) fn receiver_wish(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        self.wish(self.receiver.stream.as_ref(), self.receiver.wish())
    }

    fn wish<'a>(&self, stream: Option<&'a TcpStream>, wish: PollFlags) -> Option<(BorrowedFd<'a>, PollFlags)> {
        let open = self.begun.is_some() && self.failure.is_none();
        stream.filter(|_| open).map(|stream| (stream.as_fd(), wish))
    }

    /// The sender may send, or hear.
    pub(super) fn sender_ready(&mut self, now: Instant) {
        let result = self.sender.ready(now);
        self.note_failure(result);
    }

    /// Data has come for the receiver, or it may ask. True when that was the last byte of a given number.
    pub(super) fn receiver_ready(&mut self, now: Instant) -> bool {
        let before = self.receiver.end();
        let result = self.receiver.ready(now);
        self.note_failure(result);
        before.is_none() && self.receiver.end().is_some()
    }

    fn note_failure(&mut self, result: io::Result<()>) {
        if let Err(error) = result
            && self.failure.is_none()
        {
            self.failure = Some(error.to_string());
        }
    }

    pub(super) fn sample(&mut self, now: Instant) -> FlowSample {
        let tcp = self.sender.sample(self.begun, self.receiver.over().unwrap_or(now));
        FlowSample { bytes_delivered: self.bytes_delivered(), tcp: Some(tcp), ..FlowSample::default() }
    }

    pub(super) fn outcome(self) -> FlowOutcome {
        let (packets_sent, mut tcp) = self.sender.outcome();
        let (received, acks_sent) = self.receiver.outcome();
        tcp.acks_sent = acks_sent;
        FlowOutcome { packets_sent, tcp: Some(tcp), failure: self.failure, ..received }
    }
}
