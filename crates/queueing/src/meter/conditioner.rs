//! Traffic conditioner at the edge of an ATM network: three drop precedences by token-bucket depth,
//! mapped to the one loss priority bit of a cell.
//!
//! Published: RFC 2475, section 2.3.3 (meter, marker, dropper); RFC 2597 (assured forwarding: four
//! classes of three drop precedences); RFC 2697 and RFC 2698 (the meters). Ano, Decre and Hasegawa
//! 2002 map the precedences of AF to two levels of cell loss priority; the choice of those that
//! become CLP = 1 is a parameter.
//!
//! The meter decides whether a packet is green, yellow or red; without a meter, the drop precedence
//! that the packet arrived with decides. A packet of an AF class gets the code point of its color
//! (AFx1, AFx2, AFx3), so that packet queues behind the cells honour it too; its class does not
//! change (RFC 2597, section 2: packets of a class are not reordered).
//! Cost: that of the meter.

use lastmile_packet::Packet;
use lastmile_units::{Instant, WireBytes};

use super::policer::Coming;
use super::{Color, Meter};
use crate::discipline::Count;

/// Treatment of the packets of a class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The meter that colors the packets. `None`: the drop precedence of their code points does.
    pub meter: Option<super::Config>,
    /// The color with which packets arrive, for color-aware meters.
    pub coming: Coming,
    /// By [`Color`]: cells of the packet get CLP = 1.
    pub low_priority: [bool; 3],
    /// By [`Color`]: the packet is dropped.
    pub drop: [bool; 3],
}

/// Counters of the packets of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// By [`Color`]: all packets.
    pub colors: [Count; 3],
    /// By cell loss priority: packets that passed.
    pub clp: [Count; 2],
    /// Dropped packets.
    pub dropped: Count,
}

impl core::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        let own = self.colors.iter_mut().chain(&mut self.clp).chain(core::iter::once(&mut self.dropped));
        let others = other.colors.into_iter().chain(other.clp).chain(core::iter::once(other.dropped));
        for (own, other) in own.zip(others) {
            *own += other;
        }
    }
}

/// A conditioner.
#[derive(Clone, Debug)]
pub struct Conditioner {
    meter: Option<Meter>,
    coming: Coming,
    low_priority: [bool; 3],
    drop: [bool; 3],
    counts: Counts,
}

impl Conditioner {
    /// A conditioner whose meter has full buckets.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            meter: config.meter.as_ref().map(super::Config::meter),
            coming: config.coming,
            low_priority: config.low_priority,
            drop: config.drop,
            counts: Counts::default(),
        }
    }

    /// Colors a packet of `size` on the wire, and marks it: code point of an AF class, cell loss
    /// priority. False if it is dropped. A packet that arrived with CLP = 1 keeps it.
    pub fn pass(&mut self, now: Instant, size: WireBytes, packet: &mut impl Packet) -> bool {
        let meta = packet.meta();
        let color = match &mut self.meter {
            Some(meter) => meter.conform(now, size, self.coming.color(meta)),
            None => Coming::DropPrecedence.color(meta),
        };
        self.counts.colors[color as usize].add(packet);
        if self.drop[color as usize] {
            self.counts.dropped.add(packet);
            return false;
        }
        if let Some(dscp) = af_of(meta.dscp(), color) {
            packet.set_dscp(dscp);
        }
        if self.low_priority[color as usize] {
            packet.meta_mut().mark.set_clp();
        }
        self.counts.clp[usize::from(packet.meta().mark.clp())].add(packet);
        true
    }

    /// Counters since the conditioner was made.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }
}

/// The code point of `color` in the AF class of `dscp` (AFxy is 8x + 2y). `None` for a code point
/// outside of assured forwarding.
fn af_of(dscp: u8, color: Color) -> Option<u8> {
    let class = dscp >> 3;
    ((1..=4).contains(&class) && matches!(dscp & 7, 2 | 4 | 6)).then_some(8 * class + 2 * (color as u8 + 1))
}

#[cfg(test)]
mod tests {
    use lastmile_packet::Meta;
    use lastmile_units::{BitRate, Duration};

    use super::super::srtcm;
    use super::*;

    fn packet(dscp: u8) -> Meta {
        Meta { ip_len: 1000, traffic_class: dscp << 2 | 1, ..Meta::default() }
    }

    /// 8 kbit/s are 1000 bytes a second. Tc and Te of 1000 bytes hold one packet each.
    fn three_precedences(low_priority: [bool; 3], drop: [bool; 3]) -> Conditioner {
        let depth = WireBytes::new(1000);
        let meter = srtcm::Config { cir: BitRate::from_kbit_per_s(8), cbs: depth, ebs: depth };
        let meter = Some(super::super::Config::SrTcm(meter));
        Conditioner::new(&Config { meter, coming: Coming::Blind, low_priority, drop })
    }

    fn pass(conditioner: &mut Conditioner, ms: u64, dscp: u8) -> Option<(u8, bool)> {
        let mut packet = packet(dscp);
        let passed = conditioner.pass(Instant::ZERO + Duration::from_ms(ms), WireBytes::new(1000), &mut packet);
        assert_eq!(packet.ecn(), 1, "the ECN field stays");
        passed.then(|| (packet.dscp(), packet.mark.clp()))
    }

    /// AF31, AF32, AF33 are 26, 28, 30.
    #[test]
    fn bucket_depth_makes_three_precedences_and_their_image_two() {
        for low in [[false, false, true], [false, true, true]] {
            let mut edge = three_precedences(low, [false; 3]);
            let passed: Vec<_> = (0..3).map(|_| pass(&mut edge, 0, 26).unwrap()).collect();
            assert_eq!(passed, [(26, low[0]), (28, low[1]), (30, low[2])]);
            assert_eq!(pass(&mut edge, 1000, 30), Some((26, low[0])), "color-blind, a second's tokens later");
            let counts = edge.counts();
            assert_eq!(counts.colors.map(|count| count.packets), [2, 1, 1]);
            let ones = low.iter().filter(|low| **low).count() as u64;
            assert_eq!(counts.clp.map(|count| count.bytes), [(4 - ones) * 1000, ones * 1000]);
        }
    }

    #[test]
    fn a_color_may_be_dropped_and_the_code_points_of_others_stay() {
        let mut edge = three_precedences([false, true, true], [false, false, true]);
        let passed: Vec<_> = (0..3).map(|_| pass(&mut edge, 0, 46)).collect();
        assert_eq!(passed, [Some((46, false)), Some((46, true)), None], "EF has no precedences");
        assert_eq!(edge.counts().dropped, Count { packets: 1, bytes: 1000 });
    }

    #[test]
    fn without_a_meter_the_arriving_drop_precedence_counts() {
        let config = Config { meter: None, coming: Coming::Blind, low_priority: [false, true, true], drop: [false; 3] };
        let mut edge = Conditioner::new(&config);
        let passed = [10, 12, 14, 0].map(|dscp| pass(&mut edge, 0, dscp).unwrap());
        assert_eq!(passed, [(10, false), (12, true), (14, true), (0, false)]);
    }

    #[test]
    fn a_packet_that_arrives_with_clp_1_keeps_it() {
        let mut edge = three_precedences([false; 3], [false; 3]);
        let mut packet = packet(10);
        packet.mark.set_clp();
        assert!(edge.pass(Instant::ZERO, WireBytes::new(1000), &mut packet));
        assert_eq!(edge.counts().clp[1].packets, 1);
    }
}
