//! The flows of all kinds, each with its applications at both ends.

use lastmile_units::Instant;

use crate::progress::FlowProgress;

use super::application::Owner;
use super::datagrams::Datagrams;
use super::dialogue::Exchange;
use super::echo::Echo;
use super::quic::QuicTransfer;
use super::replay::Replay;
use super::transfer::Transfer;

/// A flow of one kind, at both of its ends.
pub(super) enum Source {
    Transfer(Box<Transfer>),
    Quic(Box<QuicTransfer>),
    Datagrams(Box<Datagrams>),
    Dialogue(Box<Exchange>),
    Echo(Echo),
    Application(Box<Owner>),
    Replay(Box<Replay>),
}

impl Source {
    /// Payload bytes that the receiving host has read.
    pub(super) fn bytes_delivered(&self) -> u64 {
        match self {
            Self::Transfer(transfer) => transfer.bytes_delivered(),
            Self::Quic(transfer) => transfer.bytes_delivered(),
            Self::Datagrams(datagrams) => datagrams.bytes_delivered(),
            Self::Dialogue(exchange) => exchange.bytes_delivered(),
            Self::Echo(_) => 0,
            Self::Application(owner) => owner.sample().bytes_delivered,
            Self::Replay(replay) => replay.bytes_delivered(),
        }
    }

    /// The progress, with the replies since the last call.
    pub(super) fn progress(&mut self) -> FlowProgress {
        let bytes_delivered = self.bytes_delivered();
        let replies = if let Self::Echo(echo) = self { echo.take_lately() } else { Vec::new() };
        FlowProgress { bytes_delivered, replies }
    }

    /// The time of its next action by itself.
    pub(super) fn next(&mut self) -> Option<Instant> {
        match self {
            Self::Transfer(_) => None,
            Self::Quic(transfer) => transfer.next(),
            Self::Datagrams(datagrams) => datagrams.next(),
            Self::Dialogue(exchange) => exchange.next(),
            Self::Echo(echo) => echo.next(),
            Self::Application(owner) => owner.next(),
            Self::Replay(replay) => replay.next(),
        }
    }
}
