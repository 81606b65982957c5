//! The token bucket: a rate, and a burst that may exceed it.
//!
//! Published: tc-tbf(8), section ALGORITHM; equivalent to a leaky bucket used as a meter, GCRA of
//! ITU-T I.371.
//! Differs: tokens are counted in 10^-12 bit, so that rate times time is a product of integers.
//! Nothing is rounded: a packet that departs at the first whole picosecond at which it conforms
//! leaves the rest of that picosecond to later packets, and the long-run rate is exact.
//! Cost: a multiplication to earn tokens; a division to compute the time at which a packet will
//! conform.

use lastmile_units::{BitRate, Duration, Instant, WireBytes};

/// Tokens of one bit: as many picobits as a second has picoseconds, so that rate times time is a
/// count of tokens.
const TOKENS_PER_BIT: u128 = 1_000_000_000_000;

/// A token bucket that counts bytes on the wire.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rate: BitRate,
    burst: WireBytes,
    /// Picobits in the bucket at `at`: at most `burst`, and less than a picosecond's worth above. Negative: owed.
    tokens: i128,
    at: Instant,
}

impl TokenBucket {
    /// A full bucket at the beginning of the clock.
    #[must_use]
    pub fn new(rate: BitRate, burst: WireBytes) -> Self {
        Self { rate, burst, tokens: tokens_for(burst) as i128, at: Instant::ZERO }
    }

    /// The time at which a packet of `size` first conforms, if no other takes tokens before. May be
    /// in the past.
    ///
    /// `None`: never, since `size` exceeds the burst (or the clock ends before).
    #[must_use]
    pub fn ready_at(&self, size: WireBytes) -> Option<Instant> {
        if size > self.burst {
            return None;
        }
        match self.lacks(size) {
            0 => Some(self.at),
            missing => self.at.checked_add(self.time_to_earn(missing)?),
        }
    }

    /// Earns tokens at `rate` from `now` on.
    pub fn set_rate(&mut self, now: Instant, rate: BitRate) {
        self.earn(now);
        self.rate = rate;
    }

    /// Takes the tokens for `size` at `now` if the packet conforms. True if it does.
    ///
    /// A `now` before that of an earlier call counts as equal to it.
    pub fn take(&mut self, now: Instant, size: WireBytes) -> bool {
        let conforms = self.covers(now, size);
        if conforms {
            self.charge(size);
        }
        conforms
    }

    /// True if a packet of `size` conforms at `now`. Takes no tokens, so that several buckets can
    /// be tested before one is charged.
    #[must_use]
    pub fn covers(&mut self, now: Instant, size: WireBytes) -> bool {
        self.missing(now, size) == 0
    }

    /// The picobits that a packet of `size` lacks at `now`: zero if it conforms.
    pub(crate) fn missing(&mut self, now: Instant, size: WireBytes) -> u128 {
        self.earn(now);
        self.lacks(size)
    }

    fn lacks(&self, size: WireBytes) -> u128 {
        (tokens_for(size) as i128 - self.tokens).max(0).unsigned_abs()
    }

    /// Takes the tokens for `size`. Those that the bucket does not hold are owed.
    pub(crate) fn charge(&mut self, size: WireBytes) {
        self.tokens -= tokens_for(size) as i128;
    }

    /// The whole bytes for which there are tokens at `now`.
    pub(crate) fn available(&mut self, now: Instant) -> WireBytes {
        self.earn(now);
        let bytes = self.tokens.max(0).unsigned_abs() / tokens_for(WireBytes::new(1));
        WireBytes::new(u64::try_from(bytes).unwrap_or(u64::MAX)).min(self.burst)
    }

    fn earn(&mut self, now: Instant) {
        let earned = tokens_in(self.rate, now.since(self.at)) as i128;
        // A packet as large as the burst conforms within some picosecond and departs at its end. The
        // tokens of the rest of that picosecond, less than a bit at any rate, must not be lost, or
        // each such packet would cost it.
        let full = tokens_for(self.burst) as i128 + i128::from(self.rate.as_bps() - 1);
        self.tokens = (self.tokens + earned).min(full);
        self.at = self.at.max(now);
    }

    /// The whole picoseconds after which at least `missing` tokens are earned. `None`: the clock
    /// ends before.
    fn time_to_earn(&self, missing: u128) -> Option<Duration> {
        let rate = self.rate.as_bps();
        let span = match u64::try_from(missing) {
            // Up to 2.3 MB; a 64-bit division is several times cheaper.
            Ok(missing) => missing.div_ceil(rate),
            Err(_) => u64::try_from(missing.div_ceil(u128::from(rate))).ok()?,
        };
        Some(Duration::from_ps(span))
    }
}

/// Tokens of a size: at most 2^64 * 8 * 10^12, which leaves 20 bits of an `i128` free.
pub(crate) fn tokens_for(size: WireBytes) -> u128 {
    u128::from(size.as_u64()) * 8 * TOKENS_PER_BIT
}

/// Tokens that a rate earns in a span: at most 10^12 * 2^64.
pub(crate) fn tokens_in(rate: BitRate, span: Duration) -> u128 {
    u128::from(rate.as_bps()) * u128::from(span.as_ps())
}

/// Bytes that a rate carries in a span, rounded up.
pub(crate) fn bytes_in(rate: BitRate, span: Duration) -> u64 {
    u64::try_from(tokens_in(rate, span).div_ceil(8 * TOKENS_PER_BIT)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(count: u64) -> WireBytes {
        WireBytes::new(count)
    }

    fn after(ps: u64) -> Instant {
        Instant::from_ps(ps)
    }

    #[test]
    fn a_full_bucket_lets_a_burst_pass_and_then_earns() {
        let mut bucket = TokenBucket::new(BitRate::from_kbit_per_s(8), bytes(3000));
        assert!(bucket.take(Instant::ZERO, bytes(3000)));
        assert!(!bucket.take(Instant::ZERO, bytes(1)));
        // 8 kbit/s are 1000 bytes a second.
        let second = Duration::from_s(1);
        assert_eq!(bucket.ready_at(bytes(1000)), Some(Instant::ZERO + second));
        assert!(bucket.take(Instant::ZERO + second, bytes(1000)));
        assert!(!bucket.take(Instant::ZERO + second, bytes(1)));
    }

    #[test]
    fn a_bucket_never_holds_more_than_its_burst() {
        let mut bucket = TokenBucket::new(BitRate::from_kbit_per_s(8), bytes(100));
        let day = Instant::ZERO + Duration::from_s(86_400);
        assert!(bucket.take(day, bytes(100)));
        assert!(!bucket.take(day, bytes(1)));
    }

    #[test]
    fn a_packet_larger_than_the_burst_never_conforms() {
        let bucket = TokenBucket::new(BitRate::from_kbit_per_s(8), bytes(100));
        assert_eq!(bucket.ready_at(bytes(101)), None);
    }

    /// 424 bits at 149.76 Mbit/s take 2 831 196.58 ps. A million cells depart, each at the first
    /// picosecond at which it conforms: the last at 10^6 * 424 / 149.76e6 s, rounded up once, since
    /// the bucket held the first cell.
    #[test]
    fn a_million_cells_leave_at_the_exact_rate() {
        let mut bucket = TokenBucket::new(BitRate::from_kbit_per_s(149_760), bytes(53));
        let mut last = Instant::ZERO;
        for _ in 0..=1_000_000 {
            last = bucket.ready_at(bytes(53)).expect("a cell fits the burst");
            assert!(bucket.take(last, bytes(53)));
        }
        let exact = (424_000_000_u128 * TOKENS_PER_BIT).div_ceil(149_760_000);
        assert_eq!(u128::from(last.as_ps()), exact);
    }

    /// One bit a second: 2^60 bytes take longer than the clock's range. 10 MB take 80 000 000 s,
    /// also longer. 1 MB takes 8 000 000 s, which needs the wide division and is within the range.
    #[test]
    fn times_beyond_the_clock_are_never() {
        let mut bucket = TokenBucket::new(BitRate::from_bps(1).expect("a rate"), bytes(1 << 60));
        assert!(bucket.take(Instant::ZERO, bytes(1 << 60)));
        assert_eq!(bucket.ready_at(bytes(1 << 60)), None);
        assert_eq!(bucket.ready_at(bytes(10_000_000)), None);
        assert_eq!(bucket.ready_at(bytes(1_000_000)), Some(Instant::ZERO + Duration::from_s(8_000_000)));
    }

    /// 3 MB are 2.4 * 10^19 picobits, more than 64 bits hold: 24 ms at 1 Gbit/s.
    #[test]
    fn large_packets_conform_as_exactly_as_small_ones() {
        let mut bucket = TokenBucket::new(BitRate::from_mbit_per_s(1000), bytes(3_000_000));
        assert!(bucket.take(Instant::ZERO, bytes(3_000_000)));
        assert_eq!(bucket.ready_at(bytes(3_000_000)), Some(Instant::ZERO + Duration::from_ms(24)));
    }

    #[test]
    fn an_earlier_time_takes_nothing_back() {
        let mut bucket = TokenBucket::new(BitRate::from_kbit_per_s(8), bytes(100));
        assert!(bucket.take(after(1_000), bytes(100)));
        assert!(!bucket.take(after(500), bytes(1)));
        assert_eq!(bucket.ready_at(bytes(1)), Some(after(1_000) + Duration::from_ms(1)));
    }

    /// 3 MB are 24 * 10^18 picobits, more than 64 bits hold; at 7 bit/s they take 3 428 571 428 571
    /// 428 571.4 ps.
    #[test]
    fn a_long_time_is_rounded_up_to_a_picosecond() {
        let mut bucket = TokenBucket::new(BitRate::from_bps(7).expect("a rate"), bytes(3_000_000));
        assert!(bucket.take(Instant::ZERO, bytes(3_000_000)));
        assert_eq!(bucket.ready_at(bytes(3_000_000)), Some(after(3_428_571_428_571_428_572)));
    }

    #[test]
    fn a_covered_packet_conforms_since_the_last_charge() {
        let mut bucket = TokenBucket::new(BitRate::from_kbit_per_s(8), bytes(100));
        assert!(bucket.take(after(1_000), bytes(50)));
        assert_eq!(bucket.ready_at(bytes(50)), Some(after(1_000)));
    }
}
