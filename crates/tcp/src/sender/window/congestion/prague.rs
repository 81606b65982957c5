//! Prague: the scalable control of L4S, with a reduction by half of the fraction of marks and a growth that depends
//! little on the round trip.
//!
//! Published: draft-briscoe-iccrg-prague-congestion-control-04, sections 2.4.1 to 2.4.4; RFC 9331, section 4
//! (requirements); the behaviour of the L4S team's `tcp_prague.c`.
//!
//! Packets carry ECT(1), and the receiver uses Accurate ECN. Alpha follows the marks of each virtual round trip, of at
//! least 25 ms. A window of data with marks loses alpha / 2 once; octets without marks go on growing the window, by (R
//! / R_virtual)^2 segments a round trip, so that flows of 5 ms and 25 ms have about equal rates. Segments are paced at
//! window / round trip, at twice that in the first half of slow start, in bursts of at most 2^-12 s or one segment. A
//! loss halves the window, also after a mark of the same window of data.
//!
//! Differs: no fall-back for queues that mark as RFC 3168 asks (the draft leaves it to operators); the window has
//! whole octets, where Linux keeps a fraction of a segment.

use lastmile_units::{Duration, Instant};

use super::Acked;
use super::mark_fraction::MarkFraction;
use super::marked_ack::MarkedAck;

/// Section 2.4.4: round trips below this one grow as if they had it.
const VIRTUAL_RTT: Duration = Duration::from_ms(25);

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Prague {
    marks: MarkFraction,
    /// When alpha was last updated.
    updated: Instant,
    /// The part of a window's worth of growth, in octets times 2^20.
    counted: u128,
}

impl Prague {
    pub(super) fn new() -> Self {
        Self { marks: MarkFraction::new(), updated: Instant::ZERO, counted: 0 }
    }

    pub(super) fn on_ack(&mut self, ack: &MarkedAck) {
        let virtual_rtt = ack.srtt.unwrap_or_default().max(VIRTUAL_RTT);
        self.marks.add(ack.acked, ack.marked);
        if ack.now.since(self.updated) >= virtual_rtt {
            self.marks.close();
            self.updated = ack.now;
        }
    }

    /// The octets that the window grows by in congestion avoidance, for `unmarked` acknowledged octets.
    pub(super) fn growth(&mut self, cwnd: u32, acked: &Acked) -> u32 {
        let unmarked = acked.bytes.saturating_sub(acked.marked);
        let srtt = acked.srtt.unwrap_or(VIRTUAL_RTT);
        let share = scale(srtt, srtt.max(VIRTUAL_RTT));
        self.counted += u128::from(unmarked) * u128::from(acked.mss) * u128::from((share * share) >> 20);
        let one = u128::from(cwnd.max(1)) << 20;
        let octets = self.counted / one;
        self.counted %= one;
        u32::try_from(octets).unwrap_or(u32::MAX)
    }

    /// The window after a mark; at least two segments.
    pub(super) fn reduced(&self, cwnd: u32, mss: u32) -> u32 {
        (self.marks.reduced(u64::from(cwnd)) as u32).max(2 * mss)
    }
}

/// The quotient in 2^-20.
fn scale(part: Duration, whole: Duration) -> u64 {
    ((u128::from(part.as_ps()) << 20) / u128::from(whole.as_ps().max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(srtt_ms: u64, acked: u64, marked: u64) -> MarkedAck {
        let srtt = Some(Duration::from_ms(srtt_ms));
        MarkedAck { now: Instant::ZERO, acked, marked, una: 1, max: 2, srtt }
    }

    fn acked(srtt_ms: u64, bytes: u64, marked: u64) -> Acked {
        Acked {
            now: Instant::ZERO,
            bytes,
            mss: 1000,
            after_timeout: false,
            least_rtt: Duration::from_ms(srtt_ms),
            srtt: Some(Duration::from_ms(srtt_ms)),
            rtt: None,
            marked,
        }
    }

    /// A round trip of 50 ms: a segment for each window. One of 5 ms: (5 / 25)^2 = 1/25 of it.
    #[test]
    fn growth_depends_little_on_the_round_trip() {
        let mut prague = Prague::new();
        let grown: u32 = (0..20).map(|_| prague.growth(20_000, &acked(50, 1000, 0))).sum();
        assert_eq!(grown, 1000);
        let mut prague = Prague::new();
        let grown: u32 = (0..20).map(|_| prague.growth(20_000, &acked(5, 1000, 0))).sum();
        assert!((39..=40).contains(&grown), "{grown}");
    }

    #[test]
    fn marked_octets_do_not_grow_the_window() {
        let mut prague = Prague::new();
        assert_eq!(prague.growth(10_000, &acked(50, 10_000, 10_000)), 0);
        assert_eq!(prague.growth(10_000, &acked(50, 10_000, 5000)), 500);
    }

    /// Alpha is updated once in 25 ms, even on a path of 1 ms.
    #[test]
    fn alpha_follows_virtual_round_trips() {
        let mut prague = Prague::new();
        let at = |ms| Instant::ZERO + Duration::from_ms(ms);
        let halved = prague.reduced(100_000, 1000);
        assert_eq!(halved, 50_000);
        for ms in 1..25 {
            prague.on_ack(&MarkedAck { now: at(ms), ..ack(1, 1000, 0) });
        }
        assert_eq!(prague.reduced(100_000, 1000), 50_000);
        prague.on_ack(&MarkedAck { now: at(25), ..ack(1, 1000, 0) });
        assert_eq!(prague.reduced(100_000, 1000), 100_000 - 100_000 * 15 / 16 / 2);
    }
}
