//! The smoothed fraction of octets that were marked: alpha of DCTCP and Prague.
//!
//! Published: RFC 8257, section 3.3; Linux's `tcp_dctcp.c` (`dctcp_update_alpha`).
//! Cost: two additions for each acknowledgement, a division for each window of data; 32 bytes.

/// Alpha in 2^-20, so that a gain of 1/16 leaves no large remainder.
pub(super) const ONE: u64 = 1 << 20;
/// g = 1/16 (RFC 8257, section 4.2).
const GAIN_SHIFT: u32 = 4;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct MarkFraction {
    alpha: u64,
    acked: u64,
    marked: u64,
    /// The window of data ends when this octet is acknowledged.
    window_end: u64,
}

impl MarkFraction {
    /// RFC 8257, section 3.3: alpha is 1 at first, so that the first mark halves the window.
    pub(super) fn new() -> Self {
        Self { alpha: ONE, acked: 0, marked: 0, window_end: 0 }
    }

    /// `acked` octets were acknowledged, `marked` of them with CE. True: a window of data ended.
    pub(super) fn on_ack(&mut self, acked: u64, marked: u64, una: u64, max: u64) -> bool {
        self.add(acked, marked);
        if una <= self.window_end {
            return false;
        }
        self.close();
        self.window_end = max;
        true
    }

    pub(super) fn add(&mut self, acked: u64, marked: u64) {
        self.acked += acked;
        self.marked += marked;
    }

    /// alpha = alpha * (1 - g) + g * M. A fraction near zero falls to zero, as in Linux.
    pub(super) fn close(&mut self) {
        if self.acked > 0 {
            let marked = u128::from(self.marked.min(self.acked));
            let fraction = (marked * u128::from(ONE) / u128::from(self.acked)) as u64;
            let kept = self.alpha - (self.alpha >> GAIN_SHIFT).max(u64::from(self.alpha > 0).min(self.alpha));
            self.alpha = (kept + (fraction >> GAIN_SHIFT)).min(ONE);
        }
        (self.acked, self.marked) = (0, 0);
    }

    /// The window after a reduction by alpha / 2 (RFC 8257, section 3.4).
    pub(super) fn reduced(&self, cwnd: u64) -> u64 {
        cwnd - (u128::from(cwnd) * u128::from(self.alpha) / u128::from(2 * ONE)) as u64
    }

    #[cfg(test)]
    pub(super) fn alpha(&self) -> u64 {
        self.alpha
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window without marks: 15/16 of alpha. One with a half marked: 15/16 alpha + 1/32.
    #[test]
    fn alpha_follows_the_marks_by_a_sixteenth() {
        let mut marks = MarkFraction::new();
        assert_eq!(marks.reduced(1000), 500, "alpha is 1 at first");
        assert!(marks.on_ack(1000, 0, 1, 1001));
        assert_eq!(marks.alpha(), ONE * 15 / 16);
        assert!(!marks.on_ack(1000, 500, 1001, 2001), "the window ends beyond 1001");
        assert!(marks.on_ack(0, 0, 1002, 2001));
        assert_eq!(marks.alpha(), ONE * 15 / 16 * 15 / 16 + ONE / 32);
    }

    /// All marked: alpha stays 1, and each window halves (as TCP with RFC 3168). None for long: alpha reaches zero.
    #[test]
    fn alpha_reaches_one_and_zero() {
        let mut marks = MarkFraction::new();
        for _ in 0..500 {
            marks.acked = 1000;
            marks.close();
        }
        assert_eq!((marks.alpha(), marks.reduced(1000)), (0, 1000));
        for _ in 0..200 {
            (marks.acked, marks.marked) = (1000, 1000);
            marks.close();
        }
        assert!(marks.alpha() > ONE * 99 / 100, "{}", marks.alpha());
    }
}
