//! Reports of single packets, for writers of captures.

use lastmile_model::{Observer, Passage};
use lastmile_packet::Frame;
use lastmile_units::Instant;

/// Sees the packets of a bump's hops, by their bytes from the IP header on: hops up are numbered
/// first, then those down. The thread that carries packets calls it, so it must not block.
pub type Tap = dyn Observer<[u8]> + Send;

/// The tap, if there is one, as one direction tells it.
pub(super) struct Taps<'a> {
    pub(super) tap: Option<&'a mut Tap>,
    /// The number of the direction's first hop.
    pub(super) first: usize,
}

impl Taps<'_> {
    /// The tap of the direction's hop of this index.
    pub(super) fn at(&mut self, index: usize) -> AtHop<'_> {
        AtHop { tap: self.tap.as_deref_mut(), hop: self.first + index }
    }
}

/// The tap, if there is one, as one hop tells it.
pub(super) struct AtHop<'a> {
    tap: Option<&'a mut Tap>,
    hop: usize,
}

impl AtHop<'_> {
    #[cfg(test)]
    pub(super) const NONE: Self = Self { tap: None, hop: 0 };

    pub(super) fn tell(&mut self, at: Instant, passage: Passage, frame: &Frame) {
        if let Some(tap) = &mut self.tap {
            tap.packet(at, self.hop, passage, frame.packet_bytes());
        }
    }
}
