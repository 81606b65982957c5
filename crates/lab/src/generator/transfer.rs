//! A TCP transfer between the two hosts' kernels: the applications at both ends of it.
//!
//! A connection of an application runs by turns: the end that opened it sends requests, and the other end sends each
//! response once it has the request whole. The simulator's `Turns` keep both in order, since both ends are in one
//! thread.

mod receiver;
mod sender;

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lastmile_live::clock::std_span;
use lastmile_live::error::Context;
use lastmile_live::sys::socket::{self, Timer};
use lastmile_sim::sources::Turns;
use lastmile_units::Instant;
use rustix::event::PollFlags;

use crate::error::Error;
use crate::outcome::{FlowOutcome, FlowSample};
use crate::spec::{End, TransferPlan, Turn, Window};

use self::receiver::Receiver;
use self::sender::Sender;

/// A transfer, both ends of it.
pub(super) struct Transfer {
    plan: TransferPlan,
    /// True if the sender opens the connection.
    sender_opens: bool,
    far: SocketAddr,
    begun: Option<Instant>,
    sender: Sender,
    receiver: Receiver,
    /// The first error of the connection.
    failure: Option<String>,
    /// The requests of an application and their responses, in place of the plan's bytes.
    turns: Option<Turns>,
    /// More may be asked for after a response: it closes at [`Transfer::hang_up`].
    keep_open: bool,
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
        if let Some(bytes) = plan.send_buffer {
            // The kernel doubles the value.
            socket::set_send_buffer(fd, bytes / 2)?;
        }
        socket::set_segment(fd, plan.segment)?;
        socket::set_unsent_low(fd, sender::most_unsent(plan.window, 0, plan.segment.into()))?;
        socket::set_dscp(fd, dscp)
    };
    set().context(|| "setting up a TCP socket")?;
    for (key, timer, span) in [
        ("min_rto", Timer::MinRto, plan.min_rto),
        ("max_rto", Timer::MaxRto, plan.max_rto),
        ("delayed_ack", Timer::DelayedAck, plan.delayed_ack),
    ] {
        if let Err(error) = socket::set_timer(fd, timer, std_span(span)) {
            refused(format!("tcp.{key}: the kernel refuses {span} and keeps its own value: {error}"));
        }
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
        Self { plan, sender_opens, far, begun: None, sender, receiver, failure: None, turns: None, keep_open: false }
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
        if self.turns.is_some() {
            // As browsers and servers do: the end of a message does not wait for an ACK.
            stream.set_nodelay(true).context(|| "setting up a TCP socket")?;
        }
        *(if self.sender_opens { &mut self.receiver.stream } else { &mut self.sender.stream }) = Some(stream);
        Ok(())
    }

    /// This connection by turns, of which this is the first. It stays open for more, or closes after one.
    pub(super) fn by_turns(mut self, first: Turn, keep_open: bool) -> io::Result<Self> {
        self.turns = Some(Turns::default());
        self.keep_open = keep_open;
        self.sender.by_turns();
        self.receiver.by_turns();
        let opener = if self.sender_opens { &self.sender.stream } else { &self.receiver.stream };
        opener.as_ref().map_or(Ok(()), |opener| opener.set_nodelay(true))?;
        self.ask(first);
        Ok(self)
    }

    /// The end that opened a connection by turns sends another request.
    pub(super) fn ask(&mut self, Turn { request, bytes }: Turn) {
        if let Some(turns) = &mut self.turns {
            turns.ask(request, bytes);
        }
        if self.sender_opens {
            self.sender.offer(request);
        } else {
            self.receiver.ask(request);
        }
    }

    /// Closes the connection when every requested byte is sent.
    pub(super) fn hang_up(&mut self) {
        self.sender.hang_up();
    }

    /// The application stops offering data.
    pub(super) fn stop(&mut self) {
        if let Some(turns) = &mut self.turns {
            turns.stop();
        }
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

    /// The sender may send, or hear. Returns the number of responses that are whole with it.
    pub(super) fn sender_ready(&mut self, now: Instant) -> u32 {
        let heard = self.sender.hear(now);
        let complete = self.turn();
        let result = heard.and_then(|()| self.sender.send());
        self.note_failure(result);
        complete
    }

    /// Data has come for the receiver, or it may ask. Returns the number of responses that are whole with it: one for
    /// the last byte of a given number.
    pub(super) fn receiver_ready(&mut self, now: Instant) -> u32 {
        let before = self.receiver.end();
        let asked = self.receiver.send_request();
        let received = asked.and_then(|()| self.receiver.receive(now));
        let complete = self.turn();
        let result = received.and_then(|()| self.receiver.send_request());
        self.note_failure(result);
        complete + u32::from(before.is_none() && self.receiver.end().is_some())
    }

    /// The end that answers offers the responses to the requests that it has. Returns the number of responses that have
    /// come whole since the last call.
    fn turn(&mut self) -> u32 {
        let Some(turns) = &mut self.turns else { return 0 };
        let (delivered, heard) = (self.receiver.bytes_delivered(), self.sender.heard());
        let [requested, responded] = if self.sender_opens { [delivered, heard] } else { [heard, delivered] };
        let bytes = turns.respond(|request| request.end <= requested);
        if bytes > 0 && self.sender_opens {
            self.receiver.ask(bytes);
        } else if bytes > 0 {
            self.sender.offer(bytes);
            if !self.keep_open {
                self.sender.hang_up();
            }
        }
        turns.receive(|response| response.end <= responded)
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

#[cfg(test)]
mod tests {
    use lastmile_units::Duration;

    use super::*;

    /// The least timeout and the delay of an ACK are at most 200 ms: `TCP_RTO_MIN` and `TCP_DELACK_MAX` of net/tcp.h. A
    /// kernel before Linux 6.15 has none of the three options.
    #[test]
    fn a_timer_that_the_kernel_refuses_leaves_the_others_set() {
        let refused = |min_rto, delayed_ack| {
            let plan = TransferPlan {
                congestion: "reno".to_owned(),
                segment: 1448,
                window: Window::Grows,
                send_buffer: None,
                bytes: None,
                request: 0,
                opener: End::Client,
                opener_port: 0,
                listener_port: 0,
                first_payload: Vec::new(),
                first_request: Vec::new(),
                min_rto: Duration::from_ms(min_rto),
                max_rto: Duration::from_s(60),
                delayed_ack: Duration::from_ms(delayed_ack),
                quick_acks: false,
            };
            let fd = socket::open("127.0.0.1:0".parse().unwrap()).unwrap();
            let mut told = Vec::new();
            set_up(fd.as_fd(), &plan, 0, &mut |text| told.push(text)).unwrap();
            told
        };
        let usual = refused(200, 40);
        if !usual.is_empty() {
            assert_eq!(usual.len(), 3, "{usual:?}");
            return;
        }
        let [min_rto, delayed_ack] = [("min_rto", "1 s"), ("delayed_ack", "300 ms")]
            .map(|(key, span)| format!("tcp.{key}: the kernel refuses {span} and keeps its own value: "));
        let told = refused(1000, 40);
        assert!(told.len() == 1 && told[0].starts_with(&min_rto), "{told:?}");
        let told = refused(1000, 300);
        assert!(told.len() == 2 && told[1].starts_with(&delayed_ack), "{told:?}");
    }
}
