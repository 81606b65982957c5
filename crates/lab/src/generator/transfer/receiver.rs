//! The receiving application of a transfer.
//!
//! It reads at once and discards. `TCP_WINDOW_CLAMP` holds a fixed window; the kernel resets it whenever it learns of
//! another segment size, so each read sets it again. A window that grows is left to the kernel.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;

use lastmile_live::sys::socket;
use lastmile_model::outcome::Deliveries;
use lastmile_units::Instant;
use rustix::event::PollFlags;

use crate::outcome::FlowOutcome;
use crate::spec::{TransferPlan, Window};

use super::super::octets::{ZEROS, unless_blocked};

/// The receiving end.
pub(super) struct Receiver {
    pub(super) stream: Option<TcpStream>,
    window: Window,
    quick_acks: bool,
    /// The first bytes of the first request; zeros follow.
    first_request: Vec<u8>,
    /// Bytes of all requests, and of these the ones that it has yet to send.
    request: u64,
    to_ask: u64,
    /// Bytes of all data that was asked for; `None` for as many as there is time for.
    expected: Option<u64>,
    /// The time at which the receiver read the end of the stream.
    over: Option<Instant>,
    /// The deliveries, in the fields that they have in an outcome.
    received: FlowOutcome,
}

impl Receiver {
    pub(super) fn new(plan: &TransferPlan, stream: Option<TcpStream>) -> Self {
        Self {
            stream,
            window: plan.window,
            quick_acks: plan.quick_acks,
            first_request: plan.first_request.clone(),
            request: plan.request,
            to_ask: plan.request,
            expected: plan.bytes,
            over: None,
            received: FlowOutcome::default(),
        }
    }

    /// Makes the receiver an end of turns: it sends only requests that are offered later, and no number of bytes ends
    /// it.
    pub(super) fn by_turns(&mut self) {
        (self.request, self.to_ask, self.expected) = (0, 0, None);
    }

    /// Another message of `bytes` is to be sent.
    pub(super) fn ask(&mut self, bytes: u64) {
        self.request += bytes;
        self.to_ask += bytes;
    }

    pub(super) fn bytes_delivered(&self) -> u64 {
        self.received.bytes_delivered
    }

    /// The time of the last byte of a given number.
    pub(super) fn end(&self) -> Option<Instant> {
        self.received.end
    }

    /// The time of the end of the stream.
    pub(super) fn over(&self) -> Option<Instant> {
        self.over
    }

    /// The events that it waits for.
    pub(super) fn wish(&self) -> PollFlags {
        let mut wish = PollFlags::empty();
        wish.set(PollFlags::IN, self.over.is_none());
        wish.set(PollFlags::OUT, self.to_ask > 0);
        wish
    }

    /// Sends as much of its requests as there is space for.
    pub(super) fn send_request(&mut self) -> io::Result<()> {
        let Some(mut stream) = self.stream.as_ref() else { return Ok(()) };
        while self.to_ask > 0 {
            let asked = usize::try_from(self.request - self.to_ask).unwrap_or(usize::MAX);
            let first = self.first_request.get(asked..).filter(|rest| !rest.is_empty());
            let source = first.unwrap_or(&ZEROS);
            let part = &source[..source.len().min(usize::try_from(self.to_ask).unwrap_or(usize::MAX))];
            match stream.write(part) {
                Ok(len) => self.to_ask -= len as u64,
                Err(error) => return unless_blocked(error),
            }
        }
        Ok(())
    }

    /// Reads all that has come.
    pub(super) fn receive(&mut self, now: Instant) -> io::Result<()> {
        let Some(stream) = self.stream.as_ref() else { return Ok(()) };
        let before = self.received.bytes_delivered;
        let result = loop {
            match socket::discard(stream.as_fd(), 1 << 20) {
                Ok(0) => {
                    self.over = Some(now);
                    let _ = stream.shutdown(Shutdown::Write);
                    break Ok(());
                }
                Ok(len) => self.received.bytes_delivered += len as u64,
                Err(error) => break unless_blocked(error),
            }
        };
        if self.received.bytes_delivered > before {
            Deliveries::note(&mut self.received.deliveries, now);
            if self.expected.is_some_and(|bytes| self.received.bytes_delivered >= bytes) {
                self.received.end.get_or_insert(now);
            }
            if self.over.is_none() {
                if let Window::Fixed(bytes) = self.window {
                    socket::clamp_window(stream.as_fd(), bytes)?;
                }
                if !self.quick_acks {
                    socket::delay_acks(stream.as_fd())?;
                }
            }
        }
        result
    }

    /// The receiver's part of the outcome, and the number of pure ACKs that it sent.
    pub(super) fn outcome(mut self) -> (FlowOutcome, u64) {
        let info = self.stream.as_ref().and_then(|stream| socket::info(stream.as_fd()).ok());
        let Some(info) = info else { return (self.received, 0) };
        self.received.packets_received = info.received.segments.into();
        (self.received, info.segments_out.saturating_sub(info.data_out).into())
    }
}
