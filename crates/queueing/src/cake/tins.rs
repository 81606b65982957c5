//! The tins of CAKE: their code points, their thresholds and their weights.
//!
//! Published: tc-cake(8), "Priority queue parameters"; Høiland-Jørgensen, Täht, Morton 2018,
//! section III-C. The code points are those of RFC 2474 (CSx), RFC 2597 (AFxy), RFC 3246 (EF), RFC
//! 5865 (VA), RFC 8622 (LE), and of RFC 1349 (TOS).
//!
//! A tin that has sent less than its threshold has priority over tins with a smaller number; one
//! that has sent more is served in turn. Without a bandwidth there is no threshold, and tins share
//! by weight.

use lastmile_units::BitRate;

/// Division of traffic by the differentiated services field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Diffserv {
    /// One tin for all traffic.
    BestEffort,
    /// A tin for each value of the old precedence field: the upper three bits.
    Precedence,
    /// Best effort, bulk, voice.
    #[default]
    Three,
    /// Best effort, bulk, video, voice.
    Four,
    /// Eight tins, from background traffic to network control.
    Eight,
}

const LE: u8 = 1;
const TOS2: u8 = 2;
const TOS4: u8 = 4;
const CS1: u8 = 8;
const CS2: u8 = 16;
const CS3: u8 = 24;
const CS4: u8 = 32;
const CS5: u8 = 40;
const VA: u8 = 44;
const EF: u8 = 46;
const CS6: u8 = 48;
const CS7: u8 = 56;

/// The class of an assured forwarding code point.
const fn assured(dscp: u8) -> Option<u8> {
    match (dscp >> 3, dscp & 7) {
        (class @ 1..=4, 2 | 4 | 6) => Some(class),
        _ => None,
    }
}

impl Diffserv {
    /// The names of the tins, by number.
    #[must_use]
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::BestEffort => &["best-effort"],
            Self::Precedence => &["0", "1", "2", "3", "4", "5", "6", "7"],
            Self::Three => &["best-effort", "bulk", "voice"],
            Self::Four => &["best-effort", "bulk", "video", "voice"],
            Self::Eight => &[
                "background",
                "high-throughput",
                "best-effort",
                "video",
                "low-latency",
                "interactive",
                "minimum-latency",
                "control",
            ],
        }
    }

    /// The tin of a packet with this code point, 0 to 63.
    #[must_use]
    pub const fn tin(self, dscp: u8) -> usize {
        match self {
            Self::BestEffort => 0,
            Self::Precedence => (dscp >> 3) as usize,
            Self::Three => match dscp {
                LE | CS1 => 1,
                TOS4 | VA | EF | CS6 | CS7 => 2,
                _ => 0,
            },
            Self::Four => match (dscp, assured(dscp)) {
                (LE | CS1, _) => 1,
                (TOS4 | CS2 | CS3, _) | (_, Some(2..=4)) => 2,
                (CS4 | CS5 | VA | EF | CS6 | CS7, _) => 3,
                _ => 0,
            },
            Self::Eight => match (dscp, assured(dscp)) {
                (LE, _) => 0,
                (TOS2 | CS1, _) | (_, Some(1)) => 1,
                (CS3, _) | (_, Some(3 | 4)) => 3,
                (TOS4, _) | (_, Some(2)) => 4,
                (CS2, _) => 5,
                (CS4 | CS5 | VA | EF, _) => 6,
                (CS6 | CS7, _) => 7,
                _ => 2,
            },
        }
    }

    /// The share of the bandwidth up to which a tin has priority, as a fraction.
    fn threshold(self, tin: usize) -> (u64, u64) {
        match self {
            Self::BestEffort => (1, 1),
            Self::Three => [(1, 1), (1, 16), (1, 4)][tin],
            Self::Four => [(1, 1), (1, 16), (1, 2), (1, 4)][tin],
            Self::Precedence | Self::Eight => (7_u64.pow(tin as u32), 8_u64.pow(tin as u32)),
        }
    }

    /// The rate up to which a tin has priority.
    pub(super) fn threshold_rate(self, tin: usize, bandwidth: BitRate) -> BitRate {
        let (part, of) = self.threshold(tin);
        let bps = u128::from(bandwidth.as_bps()) * u128::from(part) / u128::from(of);
        let bps = u64::try_from(bps).expect("at most the bandwidth");
        BitRate::from_bps(bps.max(1)).expect("at most the bandwidth")
    }

    /// The weight of a tin without a bandwidth: bytes on the wire a round.
    pub(super) fn weight(self, tin: usize) -> i64 {
        let whole: u64 = match self {
            Self::BestEffort => 65_535,
            Self::Three | Self::Four => 1_024,
            Self::Precedence | Self::Eight => 256,
        };
        let (part, of) = self.threshold(tin);
        i64::try_from(whole * part / of).expect("at most 65 535").max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// tc-cake(8): LE and CS1 are bulk, CS6, CS7, EF, VA and TOS4 voice.
    #[test]
    fn three_tins() {
        let of = |tin| (0..64).filter(|&dscp| Diffserv::Three.tin(dscp) == tin).collect::<Vec<_>>();
        assert_eq!(of(1), [1, 8]);
        assert_eq!(of(2), [4, 44, 46, 48, 56]);
        assert_eq!(of(0).len(), 64 - 7);
    }

    /// tc-cake(8): video is AF4x, AF3x, CS3, AF2x, CS2 and TOS4; voice CS7, CS6, EF, VA, CS5 and CS4.
    #[test]
    fn four_tins() {
        let of = |tin| (0..64).filter(|&dscp| Diffserv::Four.tin(dscp) == tin).collect::<Vec<_>>();
        assert_eq!(of(1), [1, 8]);
        assert_eq!(of(2), [4, 16, 18, 20, 22, 24, 26, 28, 30, 34, 36, 38]);
        assert_eq!(of(3), [32, 40, 44, 46, 48, 56]);
    }

    #[test]
    fn eight_tins() {
        let of = |tin| (0..64).filter(|&dscp| Diffserv::Eight.tin(dscp) == tin).collect::<Vec<_>>();
        assert_eq!(of(0), [1]);
        assert_eq!(of(1), [2, 8, 10, 12, 14]);
        assert_eq!(of(3), [24, 26, 28, 30, 34, 36, 38]);
        assert_eq!(of(4), [4, 18, 20, 22]);
        assert_eq!(of(5), [16]);
        assert_eq!(of(6), [32, 40, 44, 46]);
        assert_eq!(of(7), [48, 56]);
    }

    #[test]
    fn every_code_point_has_a_tin_that_exists() {
        use Diffserv::{BestEffort, Eight, Four, Precedence, Three};
        for diffserv in [BestEffort, Precedence, Three, Four, Eight] {
            assert!((0..64).all(|dscp| diffserv.tin(dscp) < diffserv.names().len()));
        }
        assert_eq!((Precedence.tin(7), Precedence.tin(8), Precedence.tin(63)), (0, 1, 7));
    }

    /// 6.25 %, 50 % and 25 % (tc-cake(8)); with eight tins each has 7/8 of the previous one.
    #[test]
    fn thresholds_are_shares_of_the_bandwidth() {
        let rate = |diffserv: Diffserv, tin| diffserv.threshold_rate(tin, BitRate::from_mbit_per_s(16)).as_bps();
        assert_eq!([0, 1, 2].map(|tin| rate(Diffserv::Three, tin)), [16_000_000, 1_000_000, 4_000_000]);
        assert_eq!([1, 2, 3].map(|tin| rate(Diffserv::Four, tin)), [1_000_000, 8_000_000, 4_000_000]);
        assert_eq!([0, 1, 2].map(|tin| rate(Diffserv::Eight, tin)), [16_000_000, 14_000_000, 12_250_000]);
        assert_eq!([0, 1, 2].map(|tin| Diffserv::Three.weight(tin)), [1024, 64, 256]);
        assert_eq!([0, 1, 2].map(|tin| Diffserv::Eight.weight(tin)), [256, 224, 196]);
        let least = Diffserv::Three.threshold_rate(1, BitRate::from_bps(1).expect("a rate"));
        assert_eq!(least.as_bps(), 1);
    }
}
