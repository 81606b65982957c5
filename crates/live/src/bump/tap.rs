//! What is told of single packets, to whoever writes captures.

use lastmile_packet::Frame;
use lastmile_units::Instant;

/// What happens to a packet at a hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passage {
    /// Its transmission begins, at the near end.
    Transmitted,
    /// It reaches the far end.
    Arrived,
}

/// Takes what passes the hops of a bump, at each hop in order of time. Called by the thread that carries packets, which nothing may hold up.
pub trait Tap: Send {
    /// The packet with these bytes, from its IP header on, passes the hop of this number: those up are numbered first, then those down.
    fn packet(&mut self, at: Instant, hop: usize, passage: Passage, bytes: &[u8]);
}

/// The tap, if there is one, as one direction tells it.
pub(super) struct Taps<'a> {
    pub(super) tap: Option<&'a mut (dyn Tap + 'static)>,
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
    tap: Option<&'a mut (dyn Tap + 'static)>,
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
