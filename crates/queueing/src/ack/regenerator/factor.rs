//! The number of ACKs for each suppressed one.

/// ACKs for each suppressed one: above 0, at most [`Factor::MOST`]. A fraction of an ACK is carried
/// over to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Factor {
    pub(super) numerator: u32,
    pub(super) denominator: u32,
}

impl Factor {
    /// One for one.
    pub const ONE: Self = Self { numerator: 1, denominator: 1 };
    /// The highest factor.
    pub const MOST: u32 = 16;

    /// `numerator / denominator`; `None` unless it is above 0 and at most [`Factor::MOST`].
    #[must_use]
    pub const fn new(numerator: u32, denominator: u32) -> Option<Self> {
        if numerator == 0 || numerator as u64 > denominator as u64 * Self::MOST as u64 {
            None
        } else {
            Some(Self { numerator, denominator })
        }
    }
}
