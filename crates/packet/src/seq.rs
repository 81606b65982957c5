//! TCP sequence numbers: arithmetic modulo 2^32 (RFC 9293, section 3.4).

use core::fmt;

/// A TCP sequence number. It has no total order (no `Ord`): a comparison is valid only within half
/// the number space.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct SeqNumber(u32);

impl SeqNumber {
    /// The number with this value in the header.
    #[must_use]
    pub const fn new(raw: u32) -> Self {
        Self(raw)
    }

    /// The value in the header.
    #[must_use]
    pub const fn raw(self) -> u32 {
        self.0
    }

    /// The number `bytes` later.
    #[must_use]
    pub const fn add(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    /// The number `bytes` earlier.
    #[must_use]
    pub const fn sub(self, bytes: u32) -> Self {
        Self(self.0.wrapping_sub(bytes))
    }

    /// Bytes from `earlier` up to `self`, modulo 2^32.
    #[must_use]
    pub const fn distance_from(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// True when `self` comes strictly before `other`.
    #[must_use]
    pub const fn before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// True when `self` comes strictly after `other`.
    #[must_use]
    pub const fn after(self, other: Self) -> bool {
        other.before(self)
    }

    /// True when `self` is `other` or comes before it.
    #[must_use]
    pub const fn at_or_before(self, other: Self) -> bool {
        !other.before(self)
    }

    /// True when `self` is `other` or comes after it.
    #[must_use]
    pub const fn at_or_after(self, other: Self) -> bool {
        !self.before(other)
    }
}

impl fmt::Debug for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_holds_across_the_wrap() {
        let last = SeqNumber::new(u32::MAX);
        let next = last.add(2);
        assert_eq!(next.raw(), 1);
        assert!(last.before(next) && next.after(last));
        assert!(!next.before(last) && next.at_or_after(next) && next.at_or_before(next));
        assert_eq!(next.distance_from(last), 2);
        assert_eq!(next.sub(2), last);
    }
}
