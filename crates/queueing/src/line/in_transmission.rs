//! Packets whose transmission has begun.

use lastmile_linklayer::Pieces;
use lastmile_units::WireBytes;

use super::counted::Fate;

/// A packet whose transmission has begun.
pub(super) struct PartlySent<P> {
    pub(super) packet: P,
    pub(super) level: usize,
    pub(super) unsent: Unsent,
    pub(super) fate: Fate,
}

/// The part of a packet that has not been sent.
pub(super) enum Unsent {
    /// Pieces behind each of which a more urgent packet may be sent.
    Pieces(Pieces),
    /// Bytes that are sent as grants allow.
    Bytes {
        /// The number of these bytes on the wire.
        left: u64,
        /// Some of the packet has been sent.
        begun: bool,
    },
}

impl Unsent {
    /// The next piece, which is then sent.
    pub(super) fn next(&mut self) -> Option<WireBytes> {
        match self {
            Self::Pieces(pieces) => pieces.next(),
            // A grant has ended with this line's grants; nothing holds up the rest.
            Self::Bytes { left, .. } => Some(WireBytes::new(std::mem::take(left))),
        }
    }

    /// Bytes on the wire that remain of a packet that counts as transmitted.
    pub(super) fn left_of_begun(&self) -> WireBytes {
        match self {
            Self::Pieces(pieces) => pieces.sum(),
            Self::Bytes { begun: false, .. } => WireBytes::ZERO,
            Self::Bytes { left, .. } => WireBytes::new(*left),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Pieces(pieces) => pieces.left() == 0,
            Self::Bytes { left, .. } => *left == 0,
        }
    }
}
