//! Packets lost where no queue was full, and the share of them.

use crate::report::Estimate;
use crate::statistics::Z;

/// Packets that were sent where no queue was full, and those that did not arrive.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Losses {
    pub(super) sent: usize,
    pub(super) lost: usize,
}

impl Losses {
    pub(super) fn and(self, other: Self) -> Self {
        Self { sent: self.sent + other.sent, lost: self.lost + other.lost }
    }

    /// Share of packets lost, with its 95 % interval (Wilson 1927); `None` without a loss.
    pub(super) fn share(self) -> Option<Estimate> {
        let (sent, lost) = (self.sent as f64, self.lost as f64);
        let middle = (lost + Z * Z / 2.0) / (sent + Z * Z);
        let half = Z / (sent + Z * Z) * (lost * (sent - lost) / sent + Z * Z / 4.0).sqrt();
        (self.lost > 0).then_some(Estimate { value: lost / sent, low: middle - half, high: middle + half })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wilson 1927 by hand: 9 of 1800.
    #[test]
    fn losses_have_an_interval_and_none_without_a_loss() {
        assert_eq!(Losses { sent: 1_800, lost: 0 }.share(), None);
        let share = Losses { sent: 1_000, lost: 5 }.and(Losses { sent: 800, lost: 4 }).share().unwrap();
        assert!((share.value - 0.005).abs() < 1e-12);
        assert!((share.low - 0.00263).abs() < 1e-5 && (share.high - 0.00948).abs() < 1e-5, "{share:?}");
    }
}
