//! The verdict of a meter.

/// Verdict of a meter, in the words of RFC 2697. Meters with two verdicts return green and yellow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Color {
    /// The packet conforms.
    Green,
    /// The packet exceeds the committed burst, and is within the excess burst or the peak rate.
    Yellow,
    /// The packet exceeds both bounds.
    Red,
}

impl Color {
    /// The verdict of a meter that has two.
    pub(super) const fn conforms(yes: bool) -> Self {
        if yes { Self::Green } else { Self::Yellow }
    }
}
