//! The AMP bound: A ACKs a second, each of which releases M packets of P bits.
//!
//! Published: Kalyanaraman, Shekhar, Kidambi 1999, section 2. Forward throughput is at most
//! `min(F, A * M * P)`. A is the ACKs a second that the reverse link carries. M is the packets sent
//! for each ACK: 1 in congestion avoidance, 2 in slow start, more with thinned ACKs. P is the bits
//! of a packet and F the forward capacity. For two-way traffic in separate classes, packets have
//! the shares f (forward) and g (reverse) of their link and ACKs the rest:
//!
//! ```text
//! reverse packets  g Cr / P                            forward packets  min(M (1-g) Cr / Pack, f Cf / P)
//! reverse ACKs     (1-g) Cr / Pack                     forward ACKs     min((1-f) Cf / Pack, g Cr / (P M))
//! ```
//!
//! The published table prints f instead of the (1-f) of the forward ACKs; the text around it agrees
//! with the form above. There M of the forward ACKs is 1, since each reverse packet has an ACK of
//! its own. The table lists the reverse packets without the ACKs that they need, which
//! [`TwoWay::reverse_acknowledged`] adds. Sizes are those on the wire of each link, where the
//! publication uses one size for both. OAM cells are subtracted from both rates.

use lastmile_linklayer::LinkLayer;
use lastmile_units::{BitRate, ByteCount};

use crate::Fraction;
use crate::user_rate::user_rate;

/// The term that determines a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// F: the link that the packets cross, or their share of it.
    Link,
    /// A * M * P: the ACKs, or packets to acknowledge, that the other link carries.
    Other,
}

/// A rate and the term that determines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounded {
    /// Packets or bits a second.
    pub rate: Fraction,
    /// The term that determines the rate.
    pub limit: Limit,
}

impl Bounded {
    /// The lower of the bounds by the link and by the other direction; the link's if they are
    /// equal.
    #[must_use]
    pub fn lesser(link: Fraction, other: Fraction) -> Self {
        if other < link { Self { rate: other, limit: Limit::Other } } else { Self { rate: link, limit: Limit::Link } }
    }
}

/// `min(F, A * M * P)` in bit/s.
///
/// `None` if the product exceeds 128 bits.
#[must_use]
pub fn bound(
    forward_bps: Fraction,
    acks_per_s: Fraction,
    packets_per_ack: Fraction,
    packet_bits: Fraction,
) -> Option<Bounded> {
    let released = acks_per_s.checked_mul(packets_per_ack)?.checked_mul(packet_bits)?;
    Some(Bounded::lesser(forward_bps, released))
}

/// Packets of `ip` bytes a second that `rate` carries without OAM cells; `None` if such a packet
/// takes no bytes on the wire.
#[must_use]
pub fn packets_per_s(rate: BitRate, link: LinkLayer, ip: ByteCount) -> Option<Fraction> {
    let bits = Fraction::whole(link.on_wire(ip).as_u64()).checked_mul(Fraction::whole(8))?;
    user_rate(rate, link).checked_div(bits)
}

/// A line with data in the forward and ACKs in the reverse direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Rate of the link that carries the data.
    pub forward: BitRate,
    /// Rate of the link that carries its ACKs.
    pub reverse: BitRate,
    /// Link layer of the forward link.
    pub forward_link: LinkLayer,
    /// Link layer of the reverse link.
    pub reverse_link: LinkLayer,
    /// IP bytes of a packet.
    pub data: ByteCount,
    /// IP bytes of an ACK.
    pub ack: ByteCount,
    /// M: packets sent for each ACK.
    pub packets_per_ack: Fraction,
}

/// A, M, P, F of a line and the resulting bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneWay {
    /// A: ACKs a second that the reverse link carries.
    pub acks_per_s: Fraction,
    /// M: packets for each ACK.
    pub packets_per_ack: Fraction,
    /// P: bits of a packet on the wire of the forward link.
    pub packet_bits: u64,
    /// F: bits a second of the forward link.
    pub forward_bps: Fraction,
    /// `min(F, A * M * P)`, bit/s on the wire.
    pub bound: Bounded,
}

/// Packets a second of two-way traffic in separate classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwoWay {
    /// `min(M (1-g) Cr / Pack, f Cf / P)`.
    pub forward_packets: Bounded,
    /// `min((1-f) Cf / Pack, g Cr / (P M))`.
    pub forward_acks: Bounded,
    /// `g Cr / P`.
    pub reverse_packets: Fraction,
    /// `(1-g) Cr / Pack`.
    pub reverse_acks: Fraction,
    /// `min(M (1-f) Cf / Pack, g Cr / P)`: the reverse packets that the forward ACK class can
    /// acknowledge.
    pub reverse_acknowledged: Bounded,
}

impl Line {
    /// The bound for forward traffic only.
    ///
    /// `None` for packets without bytes on the wire, or products above 128 bits.
    #[must_use]
    pub fn one_way(&self) -> Option<OneWay> {
        let acks_per_s = packets_per_s(self.reverse, self.reverse_link, self.ack)?;
        let packet_bits = self.forward_link.on_wire(self.data).as_u64().checked_mul(8).filter(|&bits| bits > 0)?;
        let forward_bps = user_rate(self.forward, self.forward_link);
        let bound = bound(forward_bps, acks_per_s, self.packets_per_ack, Fraction::whole(packet_bits))?;
        Some(OneWay { acks_per_s, packets_per_ack: self.packets_per_ack, packet_bits, forward_bps, bound })
    }

    /// The bounds for two-way traffic in which packets have the share `f` of the forward and `g` of
    /// the reverse link.
    ///
    /// `None` for packets without bytes on the wire, an M of 0, products above 128 bits, or shares above one.
    #[must_use]
    pub fn two_way(&self, f: Fraction, g: Fraction) -> Option<TwoWay> {
        if f > Fraction::ONE || g > Fraction::ONE {
            return None;
        }
        let rest = |share| Fraction::ONE.checked_saturating_sub(share);
        let forward = |ip, share| packets_per_s(self.forward, self.forward_link, ip)?.checked_mul(share);
        let reverse = |ip, share| packets_per_s(self.reverse, self.reverse_link, ip)?.checked_mul(share);
        let reverse_acks = reverse(self.ack, rest(g)?)?;
        let reverse_packets = reverse(self.data, g)?;
        let ack_class = forward(self.ack, rest(f)?)?;
        let acknowledged = ack_class.checked_mul(self.packets_per_ack)?;
        let released = reverse_acks.checked_mul(self.packets_per_ack)?;
        Some(TwoWay {
            forward_packets: Bounded::lesser(forward(self.data, f)?, released),
            forward_acks: Bounded::lesser(ack_class, reverse_packets.checked_div(self.packets_per_ack)?),
            reverse_packets,
            reverse_acks,
            reverse_acknowledged: Bounded::lesser(reverse_packets, acknowledged),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile_linklayer::preset;

    /// Kalyanaraman et al. 1999, section 2: 8 Mbit/s, packets of 1000 bytes, ACKs of 40.
    fn line(reverse_kbit: u64, packets_per_ack: u64) -> Line {
        Line {
            forward: BitRate::from_mbit_per_s(8),
            reverse: BitRate::from_kbit_per_s(reverse_kbit),
            forward_link: preset::IP.link,
            reverse_link: preset::IP.link,
            data: ByteCount::new(1_000),
            ack: ByteCount::new(40),
            packets_per_ack: Fraction::whole(packets_per_ack),
        }
    }

    fn share(percent: u64) -> Fraction {
        Fraction::new(percent.into(), 100).unwrap()
    }

    /// The worked example: 200 ACKs a second, 3.2 Mbit/s in slow start and 1.6 Mbit/s in congestion
    /// avoidance.
    #[test]
    fn the_worked_example_comes_out() {
        for (m, bps) in [(2, 3_200_000), (1, 1_600_000)] {
            let found = line(64, m).one_way().unwrap();
            assert_eq!(found.acks_per_s, Fraction::whole(200));
            assert_eq!(found.packet_bits, 8_000);
            assert_eq!(found.bound, Bounded { rate: Fraction::whole(bps), limit: Limit::Other });
        }
        // Table 1: 2450 ACKs a second over 784 kbit/s exceed the need of the forward link.
        let found = line(784, 1).one_way().unwrap();
        assert_eq!(found.acks_per_s, Fraction::whole(2_450));
        assert_eq!(found.bound, Bounded { rate: Fraction::whole(8_000_000), limit: Limit::Link });
    }

    /// Table 5 gives shares of 0.1, 0.5 and 0.9 to the upstream's packets and 0.997 to the
    /// downstream's. The shares result in 180, 100 and 20 ACKs a second over 64 kbit/s.
    #[test]
    fn classes_bound_both_directions() {
        let f = Fraction::new(997, 1_000).unwrap();
        for (g, acks, packet_class_bps) in [(10, 180, 6_400), (50, 100, 32_000), (90, 20, 57_600)] {
            let found = line(64, 1).two_way(f, share(g)).unwrap();
            assert_eq!(found.reverse_acks, Fraction::whole(acks));
            assert_eq!(found.forward_packets, Bounded { rate: Fraction::whole(acks), limit: Limit::Other });
            assert_eq!(found.reverse_packets, Fraction::new(packet_class_bps, 8_000).unwrap());
            // 0.003 of 8 Mbit/s are 75 ACKs a second, above the 0.8 to 7.2 packets that arrive.
            assert_eq!(found.forward_acks.rate, found.reverse_packets);
            assert_eq!(found.forward_acks.limit, Limit::Other);
            assert_eq!(found.reverse_acknowledged.rate, found.reverse_packets);
        }
        // Half of 64 kbit/s are 4 packets a second, with an ACK for every two of them.
        let found = line(64, 2).two_way(f, share(50)).unwrap();
        assert_eq!(found.reverse_acknowledged.rate, Fraction::whole(4));
        assert_eq!(found.forward_acks, Bounded { rate: Fraction::whole(2), limit: Limit::Other });
        // 4 packets for each of 400 ACKs a second would be 12.8 Mbit/s: the bound is that of the
        // packet class, 0.997 * 8 Mbit/s = 997 packets.
        let found = line(256, 4).two_way(f, share(50)).unwrap();
        assert_eq!(found.forward_packets, Bounded { rate: Fraction::whole(997), limit: Limit::Link });
    }

    #[test]
    fn without_room_for_forward_acks_reverse_packets_go_unacknowledged() {
        let found = line(64, 1).two_way(Fraction::ONE, share(50)).unwrap();
        assert_eq!(found.forward_acks, Bounded { rate: Fraction::ZERO, limit: Limit::Link });
        assert_eq!(found.reverse_packets, Fraction::whole(4));
        assert_eq!(found.reverse_acknowledged, Bounded { rate: Fraction::ZERO, limit: Limit::Other });
        assert_eq!(line(64, 1).two_way(share(101), share(50)), None);
    }

    /// Table 6: 8 Mbit/s over 64 kbit/s is bounded to 8/k: k = 4.883 by IP bytes. Phanse 2000,
    /// section 3.4: k = 4 over 10 Mbit/s gives 2.5 Mbit/s.
    #[test]
    fn the_bound_is_the_forward_rate_over_k() {
        let table_6 = Line { data: ByteCount::new(1_024), ..line(64, 1) };
        let k = 8e6 / table_6.one_way().unwrap().bound.rate.as_f64();
        assert!((k - 4.883).abs() < 5e-4, "{k}");
        let phanse =
            Line { forward: BitRate::from_mbit_per_s(10), reverse: BitRate::from_kbit_per_s(100), ..line(64, 1) };
        assert_eq!(phanse.one_way().unwrap().bound.rate, Fraction::whole(2_500_000));
    }

    /// Phanse 2000, sections 5.2.1 and 5.3: 1540 bytes take 33 cells, an ACK one over plain AAL5
    /// and two with PPP.
    #[test]
    fn cells_count_as_they_are_on_the_wire() {
        let over = |link| Line {
            forward: BitRate::from_kbit_per_s(1_544),
            reverse: BitRate::from_kbit_per_s(16),
            forward_link: link,
            reverse_link: link,
            data: ByteCount::new(1_540),
            ..line(64, 1)
        };
        let aal5 = over(preset::AAL5.link).one_way().unwrap();
        assert_eq!(aal5.packet_bits, 1_749 * 8);
        assert_eq!(aal5.acks_per_s, Fraction::new(16_000, 53 * 8).unwrap());
        let k = 1_544_000.0 / aal5.bound.rate.as_f64();
        assert!((k - 2.924).abs() < 5e-4, "{k}");
        let ppp = over(preset::PPPOA_LLC.link).one_way().unwrap();
        assert_eq!(ppp.acks_per_s, Fraction::new(16_000, 2 * 53 * 8).unwrap());
        assert_eq!(ppp.packet_bits, aal5.packet_bits);
    }

    #[test]
    fn what_takes_nothing_has_no_bound() {
        assert_eq!(Line { ack: ByteCount::ZERO, ..line(64, 1) }.one_way(), None);
        assert_eq!(Line { data: ByteCount::ZERO, ..line(64, 1) }.one_way(), None);
    }
}
