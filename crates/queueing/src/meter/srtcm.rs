//! Single rate three color marker (srTCM): one rate fills two buckets, the second with the overflow
//! of the first.
//!
//! Published: RFC 2697, with its names of the parameters.
//! Differs: the RFC adds a token CIR times a second; here tokens flow continuously, and bytes are
//! those on the wire.
//! Color-aware mode treats an arriving green packet as color-blind mode treats every packet (RFC
//! 2697, section 3), so one method serves both.
//! Cost: a multiplication a packet.

use lastmile_units::{BitRate, Instant, WireBytes};

use super::token_bucket::{tokens_for, tokens_in};
use super::{Bucket, Color, MeterError, fits};

/// Parameters of a single rate three color marker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Committed information rate, on the wire.
    pub cir: BitRate,
    /// Committed burst size. Zero: nothing is green.
    pub cbs: WireBytes,
    /// Excess burst size. Zero: nothing is yellow.
    pub ebs: WireBytes,
}

impl Config {
    pub(super) fn check(&self, largest: WireBytes) -> Result<(), MeterError> {
        if self.cbs == WireBytes::ZERO && self.ebs == WireBytes::ZERO {
            return Err(MeterError::NoBurst);
        }
        for (bucket, burst) in [(Bucket::Committed, self.cbs), (Bucket::Excess, self.ebs)] {
            if burst != WireBytes::ZERO {
                fits(bucket, burst, largest)?;
            }
        }
        Ok(())
    }
}

/// A single rate three color marker.
#[derive(Clone, Debug)]
pub struct SrTcm {
    cir: BitRate,
    cbs: u128,
    ebs: u128,
    /// Picobits in the committed bucket at `at`.
    committed: u128,
    /// Picobits in the excess bucket at `at`.
    excess: u128,
    at: Instant,
}

impl SrTcm {
    /// Both buckets full at the beginning of the clock.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let (cbs, ebs) = (tokens_for(config.cbs), tokens_for(config.ebs));
        Self { cir: config.cir, cbs, ebs, committed: cbs, excess: ebs, at: Instant::ZERO }
    }

    /// The color of a packet that arrives with the color `before`: [`Color::Green`] in color-blind
    /// mode.
    pub fn conform(&mut self, now: Instant, size: WireBytes, before: Color) -> Color {
        self.earn(now);
        let size = tokens_for(size);
        if before == Color::Green && size <= self.committed {
            self.committed -= size;
            Color::Green
        } else if before <= Color::Yellow && size <= self.excess {
            self.excess -= size;
            Color::Yellow
        } else {
            Color::Red
        }
    }

    fn earn(&mut self, now: Instant) {
        let earned = tokens_in(self.cir, now.since(self.at));
        let committed = earned.min(self.cbs - self.committed);
        self.committed += committed;
        self.excess += (earned - committed).min(self.ebs - self.excess);
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use lastmile_units::Duration;

    use super::Color::{Green, Red, Yellow};
    use super::*;

    /// 8 kbit/s are 1000 bytes a second.
    fn meter(cbs: u64, ebs: u64) -> SrTcm {
        SrTcm::new(&Config { cir: BitRate::from_kbit_per_s(8), cbs: WireBytes::new(cbs), ebs: WireBytes::new(ebs) })
    }

    fn colors(meter: &mut SrTcm, packets: &[(u64, u64, Color)]) -> Vec<Color> {
        packets
            .iter()
            .map(|&(ms, size, before)| {
                meter.conform(Instant::ZERO + Duration::from_ms(ms), WireBytes::new(size), before)
            })
            .collect()
    }

    /// RFC 2697, section 3, color-blind, computed by hand. (Tc, Te) after each, from (2000, 3000):
    /// 0 ms 1500 green (500, 3000); 1000 yellow (500, 2000); 500 green (0, 2000); 2000 yellow (0,
    /// 0); 1 red. 1500 ms: 1500 to Tc (1500, 0); 1600 red. 2500 ms: 500 fill Tc, 500 overflow
    /// (2000, 500): 2001 red, 500 green (1500, 500), 1501 red, 1500 green (0, 500), 500 yellow (0,
    /// 0).
    #[test]
    fn color_blind_as_in_the_rfc() {
        let packets = [
            (0, 1500, Green),
            (0, 1000, Green),
            (0, 500, Green),
            (0, 2000, Green),
            (0, 1, Green),
            (1500, 1600, Green),
            (2500, 2001, Green),
            (2500, 500, Green),
            (2500, 1501, Green),
            (2500, 1500, Green),
            (2500, 500, Green),
        ];
        let expected = [Green, Yellow, Green, Yellow, Red, Red, Red, Green, Red, Green, Yellow];
        assert_eq!(colors(&mut meter(2000, 3000), &packets), expected);
    }

    /// Color-aware: a yellow packet takes nothing from Tc, a red one nothing at all. (Tc, Te) from
    /// (2000, 3000): yellow 1000 (2000, 2000); red 100; green 2000 (0, 2000); green 1000 yellow (0,
    /// 1000); yellow 1001 red; yellow 1000 (0, 0). 1 s: (1000, 0): yellow 1 is red though Tc could
    /// pay; green 1000 is green.
    #[test]
    fn color_aware_as_in_the_rfc() {
        let packets = [
            (0, 1000, Yellow),
            (0, 100, Red),
            (0, 2000, Green),
            (0, 1000, Green),
            (0, 1001, Yellow),
            (0, 1000, Yellow),
            (1000, 1, Yellow),
            (1000, 1000, Green),
        ];
        let expected = [Yellow, Red, Green, Yellow, Red, Yellow, Red, Green];
        assert_eq!(colors(&mut meter(2000, 3000), &packets), expected);
    }

    #[test]
    fn a_burst_of_zero_has_no_packets_of_its_color() {
        assert_eq!(colors(&mut meter(0, 1000), &[(0, 1000, Green), (0, 1, Green)]), [Yellow, Red]);
        assert_eq!(colors(&mut meter(1000, 0), &[(0, 1000, Green), (0, 1, Green)]), [Green, Red]);
    }

    #[test]
    fn an_earlier_time_earns_nothing() {
        let packets =
            [(10_000, 1000, Green), (10_000, 1000, Green), (5000, 1, Green), (10_000, 1, Green), (11_000, 1000, Green)];
        assert_eq!(colors(&mut meter(1000, 1000), &packets), [Green, Yellow, Red, Red, Green]);
    }
}
