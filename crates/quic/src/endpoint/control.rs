//! Frames that are sent until they are delivered: `MAX_DATA`, `ACK_FREQUENCY`, HANDSHAKE_DONE.
//!
//! Published: RFC 9000, section 13.3; draft-ietf-quic-ack-frequency, sections 4 and 8.
//! Differs: an end sends one `ACK_FREQUENCY` frame, and only if it offers more data than an initial window has.

use lastmile_units::Duration;

use crate::Config;
use crate::packet::AckFrequencyFrame;

/// Datagrams of the initial window (RFC 9002, section 7.2).
const INITIAL_WINDOW: u64 = 10;

/// The state of a frame that must arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Frame {
    #[default]
    Unneeded,
    Due,
    InFlight,
    Delivered,
}

impl Frame {
    /// The frame is lost.
    pub(super) fn lose(&mut self) {
        if *self == Self::InFlight {
            *self = Self::Due;
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Control {
    pub(super) max_data: Frame,
    pub(super) ack_frequency: Frame,
    pub(super) handshake_done: Frame,
}

impl Control {
    /// The application has offered `octets`.
    pub(super) fn offer(&mut self, octets: u64, config: &Config) {
        let long = octets > INITIAL_WINDOW * u64::from(config.datagram);
        if long && config.ack_frequency.is_some() && self.ack_frequency == Frame::Unneeded {
            self.ack_frequency = Frame::Due;
        }
    }

    /// A frame is due.
    pub(super) fn is_due(&self) -> bool {
        [self.max_data, self.ack_frequency, self.handshake_done].contains(&Frame::Due)
    }

    /// The `ACK_FREQUENCY` frame of this configuration (draft, section 4).
    pub(super) fn request(config: &Config) -> Option<AckFrequencyFrame> {
        let request = config.ack_frequency?;
        Some(AckFrequencyFrame {
            sequence: 0,
            threshold: u64::from(request.every.max(1)) - 1,
            max_delay: config.ack_delay(),
            reordering: request.reordering.into(),
        })
    }

    /// The largest delay of the peer's acknowledgements: draft, section 8, the larger one until the request is
    /// acknowledged.
    pub(super) fn peer_delay(&self, config: &Config) -> Duration {
        let own = config.max_ack_delay;
        let requested = Self::request(config).map_or(own, |frame| frame.max_delay);
        match self.ack_frequency {
            Frame::Unneeded | Frame::Due => own,
            Frame::InFlight => own.max(requested),
            Frame::Delivered => requested,
        }
    }
}
