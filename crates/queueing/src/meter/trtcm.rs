//! Two rate three color marker (trTCM): a peak rate for all packets, and a committed rate for green
//! ones.
//!
//! Published: RFC 2698, with its names of the parameters.
//! Differs: tokens flow continuously, and bytes are those on the wire. Color-aware mode treats an
//! arriving green packet as color-blind mode treats every packet (RFC 2698, section 3), so one
//! method serves both.
//! Cost: two multiplications a packet.

use lastmile_units::{BitRate, Instant, WireBytes};

use super::{Bucket, Color, MeterError, TokenBucket, fits};

/// Parameters of a two rate three color marker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Peak information rate, on the wire: at least `cir`.
    pub pir: BitRate,
    /// Peak burst size.
    pub pbs: WireBytes,
    /// Committed information rate, on the wire.
    pub cir: BitRate,
    /// Committed burst size.
    pub cbs: WireBytes,
}

impl Config {
    pub(super) fn check(&self, largest: WireBytes) -> Result<(), MeterError> {
        if self.pir < self.cir {
            return Err(MeterError::PeakBelowCommitted { peak: self.pir, committed: self.cir });
        }
        fits(Bucket::Peak, self.pbs, largest)?;
        fits(Bucket::Committed, self.cbs, largest)
    }
}

/// A two rate three color marker.
#[derive(Clone, Debug)]
pub struct TrTcm {
    peak: TokenBucket,
    committed: TokenBucket,
}

impl TrTcm {
    /// Both buckets full at the beginning of the clock.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self { peak: TokenBucket::new(config.pir, config.pbs), committed: TokenBucket::new(config.cir, config.cbs) }
    }

    /// The color of a packet that arrives with the color `before`: [`Color::Green`] in color-blind
    /// mode.
    pub fn conform(&mut self, now: Instant, size: WireBytes, before: Color) -> Color {
        if before == Color::Red || !self.peak.take(now, size) {
            return Color::Red;
        }
        // The peak bucket has paid; the packet is green if the committed bucket pays too.
        if before == Color::Green && self.committed.take(now, size) { Color::Green } else { Color::Yellow }
    }
}

#[cfg(test)]
mod tests {
    use lastmile_units::Duration;

    use super::Color::{Green, Red, Yellow};
    use super::*;

    /// PIR 2000 and CIR 1000 bytes a second, PBS 3000 and CBS 2000 bytes.
    fn meter() -> TrTcm {
        TrTcm::new(&Config {
            pir: BitRate::from_kbit_per_s(16),
            pbs: WireBytes::new(3000),
            cir: BitRate::from_kbit_per_s(8),
            cbs: WireBytes::new(2000),
        })
    }

    fn colors(packets: &[(u64, u64, Color)]) -> Vec<Color> {
        let mut meter = meter();
        packets
            .iter()
            .map(|&(ms, size, before)| {
                meter.conform(Instant::ZERO + Duration::from_ms(ms), WireBytes::new(size), before)
            })
            .collect()
    }

    /// RFC 2698, section 3, color-blind, computed by hand. (Tp, Tc) after each, from (3000, 2000): 0 ms
    /// 1500 green (1500, 500); 600 yellow (900, 500); 500 green (400, 0); 401 red; 400 yellow (0, 0).
    /// 500 ms (1000, 500): 1001 red; 501 yellow (499, 500); 499 green (0, 1). 1000 ms (1000, 501): 1000
    /// yellow (0, 501). 3000 ms (3000, 2000): 2001 yellow, 999 green.
    #[test]
    fn color_blind_as_in_the_rfc() {
        let packets = [
            (0, 1500, Green),
            (0, 600, Green),
            (0, 500, Green),
            (0, 401, Green),
            (0, 400, Green),
            (500, 1001, Green),
            (500, 501, Green),
            (500, 499, Green),
            (1000, 1000, Green),
            (3000, 2001, Green),
            (3000, 999, Green),
        ];
        let expected = [Green, Yellow, Green, Red, Yellow, Red, Yellow, Green, Yellow, Yellow, Green];
        assert_eq!(colors(&packets), expected);
    }

    /// Color-aware: red stays red and takes nothing, yellow takes from the peak bucket only. (Tp, Tc)
    /// from (3000, 2000): red 1; yellow 1000 (2000, 2000); green 2000 (0, 0); yellow 1 red. 1 s (2000,
    /// 1000): yellow 1500 (500, 1000); green 501 red; green 500 green (0, 500).
    #[test]
    fn color_aware_as_in_the_rfc() {
        let packets = [
            (0, 1, Red),
            (0, 1000, Yellow),
            (0, 2000, Green),
            (0, 1, Yellow),
            (1000, 1500, Yellow),
            (1000, 501, Green),
            (1000, 500, Green),
        ];
        assert_eq!(colors(&packets), [Red, Yellow, Green, Red, Yellow, Red, Green]);
    }
}
