//! The upstream rate that the ACKs of a download need.
//!
//! Published: Brouer 2005, formula 8.1. The download rate divided by the packet size is the packet
//! rate; every d packets cause an ACK of a given number of bytes on the wire. Brouer reserves for
//! d = 1.5, as a margin between the 1 of a receiver that acknowledges each segment and the 2 that
//! RFC 5681 allows. His download rate and packet size count IP bytes ([`for_ip_throughput`]). For
//! the rate of a line, both count bytes on the wire ([`for_line`]).

use lastmile_linklayer::LinkLayer;
use lastmile_units::{BitRate, ByteCount, WireBytes};

use crate::Fraction;
use crate::user_rate::user_rate;

/// A rate of ACKs, and its share of the upstream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckRate {
    /// ACKs a second.
    pub packets_per_s: f64,
    /// Bits a second on the wire of the upstream.
    pub bits_per_s: f64,
    /// The rate to reserve: bits a second in whole kbit/s, rounded up.
    pub reserve_kbit_per_s: u64,
}

impl AckRate {
    /// The ACK rate for `rate` bit/s of packets of `size` bytes, with an ACK of `ack` bytes per
    /// `segments_per_ack` packets.
    pub(crate) fn for_packets(rate: Fraction, size: u64, ack: WireBytes, segments_per_ack: Fraction) -> Option<Self> {
        let packet_bits = Fraction::whole(size).checked_mul(Fraction::whole(8))?;
        let packets = rate.checked_div(packet_bits)?.checked_div(segments_per_ack)?;
        let bits = packets.checked_mul(Fraction::whole(ack.as_u64()).checked_mul(Fraction::whole(8))?)?;
        let kbit = bits.checked_div(Fraction::whole(1_000))?.ceil();
        Some(Self {
            packets_per_s: packets.as_f64(),
            bits_per_s: bits.as_f64(),
            reserve_kbit_per_s: u64::try_from(kbit).ok()?,
        })
    }
}

/// The ACK rate of a download of `throughput` in IP bytes, in packets of `packet` IP bytes (formula
/// 8.1).
///
/// `None` for empty packets, zero segments per ACK, or products above 128 bits.
#[must_use]
pub fn for_ip_throughput(
    throughput: BitRate,
    packet: ByteCount,
    ack: WireBytes,
    segments_per_ack: Fraction,
) -> Option<AckRate> {
    AckRate::for_packets(Fraction::whole(throughput.as_bps()), packet.as_u64(), ack, segments_per_ack)
}

/// The ACK rate of a download that fills a line of `rate` with packets of `packet` IP bytes.
///
/// `None` for empty packets, zero segments per ACK, or products above 128 bits.
#[must_use]
pub fn for_line(
    rate: BitRate,
    link: LinkLayer,
    packet: ByteCount,
    ack: WireBytes,
    segments_per_ack: Fraction,
) -> Option<AckRate> {
    AckRate::for_packets(user_rate(rate, link), link.on_wire(packet).as_u64(), ack, segments_per_ack)
}

/// The goodput, bit/s, of a download over a path that carries `capacity_bps` of its payload and `acks_per_s` of its
/// ACKs, one for every `packets_per_ack` packets with `payload` bytes each: min(1, d/k) of the capacity
/// ([`crate::asymmetry`]), in rates. It holds if no ACK is lost, and if no timer makes the receiver acknowledge
/// earlier.
#[must_use]
pub fn download_bps(capacity_bps: f64, acks_per_s: f64, payload: ByteCount, packets_per_ack: u32) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "bytes of a packet")]
    let bits_per_ack = payload.as_u64() as f64 * 8.0 * f64::from(packets_per_ack);
    (acks_per_s * bits_per_ack).min(capacity_bps)
}

/// The payload of a line of cells, 48 bytes of every 53, in whole kbit/s rounded down as in
/// Brouer's scripts (listings 8.1 to 9.1).
#[must_use]
pub fn cell_payload_kbit_per_s(rate: BitRate) -> u64 {
    rate.as_bps() / 1_000 * 48 / 53
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Brouer 2005, listings 8.1, 8.2, 8.3, 9.1, B.3.3: line rate and payload of cells in kbit/s.
    /// Listing 9.1 reserves 340 of 767 kbit/s for a download of 7200 kbit/s and leaves 427.
    #[test]
    fn what_his_scripts_print_comes_out() {
        for (line, payload) in [(511, 462), (1_950, 1_766), (1_999, 1_810), (767, 694), (512, 463)] {
            assert_eq!(cell_payload_kbit_per_s(BitRate::from_kbit_per_s(line)), payload, "{line}");
        }
        let down = BitRate::from_kbit_per_s(7_200);
        let rate = for_ip_throughput(down, ByteCount::new(1_500), WireBytes::new(106), one_and_a_half()).unwrap();
        assert_eq!(767 - rate.reserve_kbit_per_s, 427);
    }
    use lastmile_linklayer::preset;

    fn one_and_a_half() -> Fraction {
        Fraction::new(3, 2).unwrap()
    }

    /// Brouer 2005, section 8.1: 1500-byte packets, ACKs of two cells; his script rounds up to whole kbit/s.
    #[test]
    fn brouers_reservations_come_out() {
        let cases = [
            (1_800, one_and_a_half(), 84.8, 85),
            (1_800, Fraction::whole(2), 63.6, 64),
            (7_200, one_and_a_half(), 339.2, 340),
            (2_000, one_and_a_half(), 94.222, 95),
            (512, one_and_a_half(), 24.121, 25),
        ];
        for (kbit, d, expected, reserved) in cases {
            let down = BitRate::from_kbit_per_s(kbit);
            let rate = for_ip_throughput(down, ByteCount::new(1_500), WireBytes::new(106), d).unwrap();
            assert!((rate.bits_per_s / 1e3 - expected).abs() < 5e-4, "{kbit}: {rate:?}");
            assert_eq!(rate.reserve_kbit_per_s, reserved, "{kbit}");
        }
    }

    /// 100 kbit/s of ACKs with 62 bytes are 201.6 a second. Each acknowledges 2, 4 or 10 packets of 1418 bytes: 4.57
    /// and
    /// 9.15 Mbit/s, and more than a line has that carries 9.58 Mbit/s of payload.
    #[test]
    fn fewer_acks_allow_more_until_the_line_is_full() {
        let allowed = |every| download_bps(9.58e6, 1e5 / (62.0 * 8.0), ByteCount::new(1418), every) / 1e6;
        assert!(
            (allowed(2) - 4.574).abs() < 1e-3 && (allowed(4) - 9.148).abs() < 1e-3,
            "{} {}",
            allowed(2),
            allowed(4)
        );
        assert!((allowed(10) - 9.58).abs() < 1e-12);
    }

    /// The bound is that of the normalised asymmetry: d = 2 over bare IP, 10 Mbit/s and 100 kbit/s.
    #[test]
    fn the_bound_in_rates_is_that_of_the_normalised_asymmetry() {
        use crate::asymmetry::{Download, asymmetry};
        let (data, ack, payload) = (ByteCount::new(1480), ByteCount::new(62), ByteCount::new(1418));
        let link = preset::IP.link;
        let (down, up) = (BitRate::from_mbit_per_s(10), BitRate::from_kbit_per_s(100));
        let segments_per_ack = Fraction::whole(2);
        let download = Download { down, up, down_link: link, up_link: link, data, payload, ack, segments_per_ack };
        let expected = asymmetry(&download).unwrap().goodput_bps;
        let found = download_bps(1e7 * 1418.0 / 1480.0, 1e5 / (62.0 * 8.0), payload, 2);
        assert!((found / expected - 1.0).abs() < 1e-12, "{found} {expected}");
    }

    /// Brouer 2005, section 6.1.1: 2 Mbit/s of cells are 147.4 packets of 1500 bytes a second, so
    /// at most 147.4 ACKs.
    #[test]
    fn a_full_line_needs_an_ack_for_each_packet_on_the_wire() {
        let down = BitRate::from_mbit_per_s(2);
        let link = preset::BRIDGED_VCMUX_FCS.link;
        let rate = for_line(down, link, ByteCount::new(1_500), WireBytes::new(106), Fraction::ONE).unwrap();
        assert!((rate.packets_per_s - 2e6 / (1_696.0 * 8.0)).abs() < 1e-9);
        assert!((rate.packets_per_s - 147.4).abs() < 0.05);
    }

    #[test]
    fn no_packets_need_no_acks_that_could_be_told() {
        let down = BitRate::from_mbit_per_s(2);
        assert_eq!(for_ip_throughput(down, ByteCount::ZERO, WireBytes::new(53), Fraction::ONE), None);
        assert_eq!(for_ip_throughput(down, ByteCount::new(1_500), WireBytes::new(53), Fraction::ZERO), None);
        assert_eq!(for_ip_throughput(down, ByteCount::new(1_500), WireBytes::MAX, Fraction::ONE), None);
    }
}
