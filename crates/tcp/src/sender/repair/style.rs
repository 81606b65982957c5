//! How a sender repairs losses: its variant, once the handshake has shown whether the peer permits SACK.

use crate::config::{LossDetection, Rto};
use crate::{Config, Variant};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Style {
    Tahoe,
    Reno,
    NewReno,
    /// Repairs by SACK; losses are found by counting (RFC 6675).
    Sack,
    /// Repairs by SACK; losses are found by time (RFC 8985).
    Rack,
}

impl Style {
    pub(crate) fn of(config: &Config, sack_permitted: bool) -> Self {
        match config.variant {
            Variant::Tahoe => Self::Tahoe,
            Variant::Reno => Self::Reno,
            Variant::NewReno => Self::NewReno,
            _ if !sack_permitted => Self::NewReno,
            // Only Linux's timer records the times of transmission.
            _ => match (config.repair.loss_detection, config.timers.rto) {
                (LossDetection::Rack, Rto::Linux) => Self::Rack,
                _ => Self::Sack,
            },
        }
    }

    /// Repairs follow the SACK blocks.
    #[inline]
    pub(crate) fn is_sack(self) -> bool {
        matches!(self, Self::Sack | Self::Rack)
    }
}
