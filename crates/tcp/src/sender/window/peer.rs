//! The receive window of the peer.
//!
//! Published: RFC 9293, sections 3.10.7.4 (window update) and 3.8.6.2.1 (silly window avoidance); RFC 7323,
//! section 2.
//! Differs: SND.WL2 is not stored, since acknowledgements below SND.UNA do not update the window.
//! Cost: a comparison and three stores for each acknowledgement.

use lastmile_packet::{Meta, SeqNumber};

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PeerWindow {
    /// One past the last octet that the window admits.
    edge: u64,
    /// The largest window that the peer offered (Max(SND.WND)).
    largest: u32,
    /// Sequence number of the segment that last updated the window (SND.WL1).
    wl1: SeqNumber,
    /// The peer's window shift.
    shift: u8,
}

impl PeerWindow {
    pub(crate) fn new() -> Self {
        Self { edge: 0, largest: 0, wl1: SeqNumber::new(0), shift: 0 }
    }

    /// The peer's SYN: its window is not scaled (RFC 7323, section 2.2), later ones are scaled by `shift`.
    pub(crate) fn on_syn(&mut self, segment: &Meta, shift: u8) {
        self.wl1 = segment.seq;
        self.edge = 1 + u64::from(segment.window);
        self.largest = u32::from(segment.window);
        self.shift = shift;
    }

    /// RFC 9293, section 3.10.7.4: the newest segment determines the window. `ack` is its acknowledgement.
    #[inline]
    pub(crate) fn update(&mut self, segment: &Meta, ack: u64) {
        if segment.seq.before(self.wl1) {
            return;
        }
        self.wl1 = segment.seq;
        let window = u32::from(segment.window) << self.shift;
        self.edge = ack + u64::from(window);
        self.largest = self.largest.max(window);
    }

    /// One past the last octet that the window admits.
    #[inline]
    pub(crate) fn edge(&self) -> u64 {
        self.edge
    }

    #[inline]
    pub(crate) fn largest(&self) -> u32 {
        self.largest
    }

    /// The part of `len` octets that a segment may carry into a window with `free` octets left. RFC 9293, section
    /// 3.8.6.2.1: less than the whole only if it is half of the largest window.
    #[inline]
    pub(crate) fn admits(&self, free: u64, len: u64) -> Option<u64> {
        if free >= len {
            Some(len)
        } else if free == 0 || free < u64::from(self.largest / 2) {
            None
        } else {
            Some(free)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9293, section 3.8.6.2.1: a full segment, or half of the largest window.
    #[test]
    fn less_than_a_segment_needs_half_of_the_largest_window() {
        let peer = PeerWindow { largest: 10_000, ..PeerWindow::new() };
        assert_eq!(peer.admits(1000, 1000), Some(1000));
        assert_eq!(peer.admits(999, 1000), None);
        assert_eq!(peer.admits(5000, 6000), Some(5000));
        assert_eq!(peer.admits(4999, 6000), None);
        assert_eq!(PeerWindow::new().admits(0, 1), None);
    }
}
