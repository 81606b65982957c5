//! Packets without an identification of IPv4, which their contents or SACK blocks tell apart.

use std::net::IpAddr;

use super::*;
use lastmile_packet::SackBlock;

/// The octets of an RTP packet over UDP and IPv6 with this sequence number, of which each capture keeps some.
fn voice(back: bool, number: u32) -> (Parsed, Vec<u8>) {
    let ends: [IpAddr; 2] = ["2001:db8::1".parse().unwrap(), "2001:db8:1::2".parse().unwrap()];
    let ip = IpAddresses::new(ends[usize::from(back)], ends[usize::from(!back)]).unwrap();
    let key = FlowKey { addresses: FlowAddresses { ip, source_port: 40_000, destination_port: 40_000 }, protocol: 17 };
    let meta = Meta { protocol: Protocol::Udp, header_len: 48, ip_len: 220, ..Meta::default() };
    let head = [0x80, 0, (number >> 8) as u8, number as u8].into_iter().chain((160 * number).to_be_bytes());
    (Parsed { meta, key, transport_offset: 40 }, [0; 48].into_iter().chain(head).chain([7; 164]).collect())
}

/// 250 packets each way, 20 ms apart, of which three are lost there: 10 ms there and as long back.
#[test]
fn a_lost_datagram_without_an_identification_does_not_shift_the_others() {
    const UDP_OCTETS: usize = 48;
    for (kept, is_told) in [([220; 2], true), ([72, 220], true), ([UDP_OCTETS + 24; 2], true), ([71, 220], false)] {
        let mut both = [Fingerprints::default(), Fingerprints::default()];
        for number in 0..250 {
            let sent = 1_000_000_000 + u64::from(number) * 20_000_000;
            for back in [false, true] {
                let (packet, octets) = voice(back, number);
                for (which, capture) in both.iter_mut().enumerate() {
                    let is_late = (which == 0) == back;
                    if back || !is_late || ![50, 100, 150].contains(&number) {
                        let at = sent + if is_late { 10_000_000 } else { 0 };
                        capture.packet(at, HERE, &packet, &octets[..kept[which]]);
                    }
                }
            }
        }
        let [first, second] = both;
        let joined = join(first, second).unwrap();
        let delays = [delays_ms(&joined.there), delays_ms(&joined.back)];
        if is_told {
            assert_eq!((joined.there.both, joined.there.lost_between, joined.there.missed), (247, 3, 0), "{kept:?}");
            assert_eq!(delays, [[10; 2]; 2], "{kept:?}");
        } else {
            // Equal as far as they were kept: in their order.
            assert_eq!((joined.there.both, joined.back.both), (247, 250));
        }
    }
}

/// ACKs of a receiver of IPv6 without timestamps, equal but for their SACK blocks. The second of four is lost.
#[test]
fn a_lost_ack_without_an_identification_is_known_by_its_sack_blocks() {
    let mut both = [Fingerprints::default(), Fingerprints::default()];
    for number in 0..4 {
        let mut ack = packet(true, 1);
        let left = SeqNumber::new(2_000);
        ack.meta.set_options(Options::NONE.with_sack(&[SackBlock { left, right: left.add(1_000 * (number + 1)) }]));
        let sent = 1_000_000_000 + u64::from(number) * 20_000_000;
        for (which, capture) in both.iter_mut().enumerate() {
            if which == 0 || number != 1 {
                capture.packet(sent + [0, 10_000_000][which], HERE, &ack, &[]);
            }
        }
    }
    let [first, second] = both;
    let joined = join(first, second).unwrap();
    let way = if joined.back.both > 0 { joined.back } else { joined.there };
    assert_eq!((way.both, way.lost_between + way.missed), (3, 1));
    assert!(way.delays.unwrap().iter().all(|delay| delay.is_zero()), "relative to the fastest: {:?}", way.delays);
}
