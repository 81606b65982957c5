//! A token bucket with debt: a class sends while it owes no tokens, and the packet is charged
//! afterwards.
//!
//! As GCRA of ITU-T I.371, it stores the time at which the bucket will be full again, with the
//! remainder of every division carried: the long-run rate is exact, and a test costs a comparison.

use lastmile_units::{BitRate, Duration, Instant, Serialiser, WireBytes};

const PS_PER_S: u128 = 1_000_000_000_000;

/// A rate, and a burst above it. It is no [`TokenBucket`](crate::TokenBucket), since it counts tokens in time, as
/// `sch_htb` of Linux does: the modes of classes are computed from times, and a test is no multiplication.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    serialiser: Serialiser,
    /// Time of the burst at the rate, in whole picoseconds.
    burst: Duration,
    /// The time at which the bucket is full again, without the fraction of a picosecond that the
    /// serialiser carries.
    full_at: Instant,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn new(rate: BitRate, burst: WireBytes) -> Self {
        Self { serialiser: Serialiser::new(rate), burst: rate.time_for(burst), full_at: Instant::ZERO }
    }

    /// The time at which no tokens are owed, if nothing is charged before. May be in the past.
    #[inline]
    pub(super) const fn ready_at(&self) -> Instant {
        Instant::from_ps(self.full_at.as_ps().saturating_sub(self.burst.as_ps()))
    }

    /// True while no tokens are owed; with `in_debt`, while at most a burst is owed.
    #[inline]
    pub(super) fn conforms(&self, now: Instant, in_debt: bool) -> bool {
        let ready = self.ready_at();
        ready <= now || in_debt && ready.since(now) <= self.burst
    }

    /// Charges a packet, even if its tokens are not available.
    #[inline]
    pub(super) fn charge(&mut self, now: Instant, size: WireBytes) {
        if self.full_at < now {
            self.serialiser.restart();
            self.full_at = now;
        }
        self.full_at = self.full_at.saturating_add(self.serialiser.advance(size));
    }

    /// Changes the rate: no token is lost, and none is owed twice.
    pub(super) fn set_rate(&mut self, now: Instant, rate: BitRate, burst: WireBytes) {
        let missing = self.serialiser.change_rate(rate, self.full_at.since(now));
        self.full_at = self.full_at.min(now).saturating_add(missing);
        self.burst = rate.time_for(burst);
    }

    /// Tokens at `now` in bytes on the wire, rounded towards zero: (available, owed).
    pub(super) fn tokens(&self, now: Instant) -> (u64, u64) {
        let rate = u128::from(self.serialiser.rate().as_bps());
        let bytes = |span: Duration| {
            let bits = u128::from(span.as_ps()) * rate / PS_PER_S;
            u64::try_from(bits / 8).unwrap_or(u64::MAX)
        };
        let ready = self.ready_at();
        let held = now.since(ready).as_ps().min(self.burst.as_ps());
        (bytes(Duration::from_ps(held)), bytes(ready.since(now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    /// 8 kbit/s are a byte a millisecond. The burst of 100 lets a packet of 60 pass, and another of
    /// 60, which leaves a debt of 20: 20 ms.
    #[test]
    fn a_packet_may_go_into_debt_and_the_next_waits_for_it() {
        let mut bucket = Bucket::new(BitRate::from_kbit_per_s(8), WireBytes::new(100));
        let start = at_ms(1000);
        bucket.charge(start, WireBytes::new(60));
        assert_eq!(bucket.tokens(start), (40, 0));
        assert!(bucket.conforms(start, false));
        bucket.charge(start, WireBytes::new(60));
        assert_eq!(bucket.tokens(start), (0, 20));
        assert!(!bucket.conforms(start, false));
        assert_eq!(bucket.ready_at(), at_ms(1020));
        assert!(bucket.conforms(at_ms(1020), false));
    }

    /// With a debt of a burst allowed, the tokens may fall to minus one burst: 100 tokens, less a
    /// packet of 150 and one of 50, are a debt of 100. One more byte is too much.
    #[test]
    fn with_a_debt_of_a_burst_allowed_it_sends_twice_the_burst() {
        let mut bucket = Bucket::new(BitRate::from_kbit_per_s(8), WireBytes::new(100));
        let start = at_ms(1000);
        for size in [150, 50] {
            bucket.charge(start, WireBytes::new(size));
            assert!(bucket.conforms(start, true) && !bucket.conforms(start, false));
        }
        bucket.charge(start, WireBytes::new(1));
        assert!(!bucket.conforms(start, true));
    }

    /// A debt of 20 bytes takes 20 ms at a byte a millisecond. After half of it the rate is doubled, so the other 10
    /// bytes take 5 ms. The burst is of 100 bytes as before.
    #[test]
    fn tokens_are_owed_at_the_rates_of_their_time() {
        let mut bucket = Bucket::new(BitRate::from_kbit_per_s(8), WireBytes::new(100));
        bucket.charge(at_ms(1000), WireBytes::new(120));
        bucket.set_rate(at_ms(1010), BitRate::from_kbit_per_s(16), WireBytes::new(100));
        assert_eq!((bucket.tokens(at_ms(1010)), bucket.ready_at()), ((0, 10), at_ms(1015)));
        assert_eq!([1065, 1070].map(|ms| bucket.tokens(at_ms(ms))), [(100, 0), (100, 0)]);
        bucket.set_rate(at_ms(2000), BitRate::from_kbit_per_s(8), WireBytes::new(100));
        assert_eq!(bucket.tokens(at_ms(2000)), (100, 0));
    }

    /// A byte at 3 kbit/s takes 2 666 666 666.67 ps. A pause discards the fraction of a picosecond,
    /// and never adds more than the burst.
    #[test]
    fn a_pause_leaves_a_full_bucket_and_no_more() {
        let mut bucket = Bucket::new(BitRate::from_kbit_per_s(3), WireBytes::new(1));
        for at in [at_ms(1000), at_ms(2000)] {
            bucket.charge(at, WireBytes::new(1));
            assert_eq!(bucket.full_at, at + Duration::from_ps(2_666_666_666));
        }
        let mut bucket = Bucket::new(BitRate::from_kbit_per_s(8), WireBytes::new(100));
        bucket.charge(at_ms(1000), WireBytes::new(100));
        assert_eq!([1000, 1060, 9000].map(|ms| bucket.tokens(at_ms(ms))), [(0, 0), (60, 0), (100, 0)]);
    }

    /// 53 bytes at 149.76 Mbit/s take 2 831 196.58 ps. A million of them back to back owe the exact
    /// sum, not a million times a rounded one.
    #[test]
    fn debts_add_up_exactly() {
        let mut bucket = Bucket::new(BitRate::from_kbit_per_s(149_760), WireBytes::new(53));
        for _ in 0..=1_000_000 {
            bucket.charge(bucket.ready_at(), WireBytes::new(53));
        }
        // The burst held the first packet, less the fraction of a picosecond by which a burst is
        // rounded down.
        let exact = (424_000_000_u128 * PS_PER_S).div_ceil(149_760_000);
        assert_eq!(u128::from(bucket.ready_at().as_ps()), exact);
    }
}
