//! The send buffer: the octets that the application has offered, and their sequence numbers.
//!
//! Cost: an addition for each sequence number.

use lastmile_packet::SeqNumber;

/// More than any connection sends.
pub(crate) const FOREVER: u64 = u64::MAX / 2;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SendBuffer {
    iss: SeqNumber,
    /// One past the last octet that the application offered: the position of the FIN.
    end: u64,
    /// The application offers no more: a FIN follows the last octet.
    closing: bool,
}

impl SendBuffer {
    pub(crate) fn new(iss: SeqNumber) -> Self {
        Self { iss, end: 1, closing: false }
    }

    /// The application offers `bytes` more. Ignored after `close`.
    pub(crate) fn offer(&mut self, bytes: u64) {
        if !self.closing {
            self.end = self.end.saturating_add(bytes).min(FOREVER);
        }
    }

    pub(crate) fn close(&mut self) {
        self.closing = true;
    }

    /// Discards the octets from `max` on.
    pub(crate) fn truncate(&mut self, max: u64) {
        self.end = max.max(1);
    }

    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.closing
    }

    /// The application has offered nothing so far.
    #[inline]
    pub(crate) fn is_unused(&self) -> bool {
        self.end == 1 && !self.closing
    }

    /// The sequence number of an octet.
    #[inline]
    pub(crate) fn wire(&self, offset: u64) -> SeqNumber {
        self.iss.add(offset as u32)
    }
}
