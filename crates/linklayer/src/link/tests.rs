use proptest::prelude::*;

use super::*;
use crate::preset::{self, PRESETS};

#[test]
fn it_stays_small() {
    assert!(size_of::<LinkLayer>() <= 16, "read for every packet");
}

/// Routed RFC 2684, VC multiplexed: 40 + 8 (AAL5 trailer) = 48 bytes. RFC 2364 adds 2 bytes of PPP: 50.
#[test]
fn a_40_byte_ack_fills_one_cell_and_ppp_costs_a_second() {
    assert_eq!(preset::IPOA_VCMUX.link.on_wire(ByteCount::new(40)), WireBytes::new(53));
    assert_eq!(preset::PPPOA_VCMUX.link.on_wire(ByteCount::new(40)), WireBytes::new(106));
}

#[test]
fn a_negative_overhead_takes_bytes_off_but_never_wraps() {
    let link = LinkLayer::new(-14, Framing::Atm).unwrap();
    assert_eq!(link.on_wire(ByteCount::new(62)), WireBytes::new(53));
    assert_eq!(link.on_wire(ByteCount::new(63)), WireBytes::new(106));
    assert_eq!(link.on_wire(ByteCount::new(10)), WireBytes::new(53));
    assert_eq!(link.largest_ip_in_cells(CellCount::new(1)), Some(ByteCount::new(62)));
}

/// `__qdisc_calculate_pkt_len` of Linux: "if (unlikely(pkt_len < 1)) pkt_len = 1".
#[test]
fn a_packet_shorter_than_the_overhead_taken_off_counts_one_byte() {
    let link = LinkLayer::new(-40, Framing::None).unwrap();
    let sizes = [0, 1, 39, 40, 41, 42].map(|ip| link.on_wire(ByteCount::new(ip)).as_u64());
    assert_eq!(sizes, [0, 1, 1, 1, 1, 2]);
    assert_eq!(link.largest_ip_in(WireBytes::ZERO), None);
    assert_eq!(link.largest_ip_in(WireBytes::new(1)), Some(ByteCount::new(41)));
}

#[test]
fn what_no_line_has_is_refused() {
    assert_eq!(LinkLayer::new(-65, Framing::None), Err(LinkError::Overhead(-65)));
    assert_eq!(LinkLayer::new(513, Framing::None), Err(LinkError::Overhead(513)));
    let link = LinkLayer::new(0, Framing::Ptm).unwrap();
    assert_eq!(link.with_min_frame(1_025), Err(LinkError::MinFrame(1_025)));
    assert_eq!(link.with_oam(OamShare::I_432), Err(LinkError::OamWithoutCells(Framing::Ptm)));
    assert_eq!(link.with_more_overhead(i32::MAX), Err(LinkError::Overhead(i32::MAX)));
    assert_eq!(
        LinkError::OamWithoutCells(Framing::Ptm).to_string(),
        "an OAM share with framing \"ptm\"; OAM cells need framing \"atm\""
    );
}

#[test]
fn absurd_sizes_are_held_not_wrapped() {
    for preset in PRESETS {
        assert!(preset.link.on_wire(ByteCount::MAX) >= WireBytes::new(u64::MAX / 48), "{}", preset.name);
        let _ = preset.link.largest_ip_in_cells(CellCount::MAX);
        let _ = preset.link.largest_ip_in(WireBytes::MAX);
    }
}

#[test]
fn the_accounting_is_told_in_words() {
    let link = preset::BRIDGED_VCMUX_FCS.link.with_oam(OamShare::I_432).unwrap();
    assert_eq!(link.to_string(), "28 bytes a packet, at least 74, in ATM cells, one cell in 27 for OAM");
    assert_eq!(preset::IP.link.to_string(), "0 bytes a packet");
}

/// Brouer 2005, section 5.1: 66 of 106 bytes are overhead, 62 %.
#[test]
fn an_ack_in_two_cells_is_38_percent_payload() {
    let efficiency = preset::PPPOA_VCMUX.link.efficiency(ByteCount::new(40));
    assert!((efficiency - 40.0 / 106.0).abs() < 1e-12);
    assert_eq!(preset::IP.link.efficiency(ByteCount::ZERO).to_bits(), 0.0_f64.to_bits());
}

#[test]
fn only_cells_are_counted_in_cells() {
    assert_eq!(preset::ETHERNET.link.cells(ByteCount::new(40)), None);
    assert_eq!(preset::PPPOE_PTM.link.largest_ip_in_cells(CellCount::new(3)), None);
}

/// The largest packet in n cells: 8 + 40, 8 + 88 and so on for the routed encapsulation.
#[test]
fn the_inverse_of_the_cells_is_known_for_small_counts() {
    let largest =
        |preset: &preset::Preset, cells| preset.link.largest_ip_in_cells(CellCount::new(cells)).map(ByteCount::as_u64);
    assert_eq!([0, 1, 2, 32].map(|c| largest(&preset::IPOA_VCMUX, c)), [None, Some(40), Some(88), Some(1_528)]);
    assert_eq!([1, 2, 32].map(|c| largest(&preset::PPPOA_VCMUX, c)), [Some(38), Some(86), Some(1_526)]);
    assert_eq!([1, 2, 32].map(|c| largest(&preset::PPPOE_LLCSNAP, c)), [Some(8), Some(56), Some(1_496)]);
    assert_eq!(
        [1, 2, 3].map(|c| largest(&preset::BRIDGED_VCMUX_FCS, c)),
        [None, Some(68), Some(116)],
        "a minimum of 74"
    );
    assert_eq!(largest(&preset::CONSERVATIVE, 1), None, "the allowance fills a cell by itself");
}

/// For every preset the largest packet fits, and a packet with one byte more does not.
#[test]
fn the_largest_packet_fits_and_one_byte_more_does_not() {
    for preset in PRESETS {
        let link = preset.link;
        for budget in 0..4_096 {
            check_inverse(link, WireBytes::new(budget));
        }
        if link.framing() == Framing::Atm {
            for ip in 1..=65_535 {
                let cells = link.cells(ByteCount::new(ip)).expect("an ATM preset");
                let largest = link.largest_ip_in_cells(cells).expect("a packet is known to fit");
                assert!(largest >= ByteCount::new(ip), "{}, {ip} bytes", preset.name);
                assert_eq!(link.cells(largest), Some(cells), "{}, {ip} bytes", preset.name);
                assert_eq!(link.cells(largest + ByteCount::new(1)), Some(cells + CellCount::new(1)));
            }
        }
    }
}

fn check_inverse(link: LinkLayer, budget: WireBytes) {
    match link.largest_ip_in(budget) {
        Some(ip) => {
            assert!(link.on_wire(ip) <= budget, "{link}: {budget}");
            assert!(link.on_wire(ip + ByteCount::new(1)) > budget, "{link}: {budget}");
        }
        None => assert!(link.on_wire(ByteCount::new(1)) > budget, "{link}: {budget}"),
    }
}

fn any_link() -> impl Strategy<Value = LinkLayer> {
    let framing = prop::sample::select(vec![Framing::None, Framing::Atm, Framing::Ptm]);
    (LinkLayer::MIN_OVERHEAD..=LinkLayer::MAX_OVERHEAD, 0..=LinkLayer::MAX_MIN_FRAME, framing)
        .prop_map(|(overhead, min, framing)| LinkLayer::new(overhead, framing).unwrap().with_min_frame(min).unwrap())
}

proptest! {
    #[test]
    fn the_inverse_holds_for_every_custom_link(link in any_link(), budget in 0..200_000_u64) {
        check_inverse(link, WireBytes::new(budget));
    }

    /// A larger packet never takes fewer wire bytes, and one more byte of packet adds at most a
    /// cell.
    #[test]
    fn wire_bytes_grow_with_the_packet(link in any_link(), ip in 1..100_000_u64) {
        let (smaller, larger) = (link.on_wire(ByteCount::new(ip)), link.on_wire(ByteCount::new(ip + 1)));
        prop_assert!(smaller <= larger && larger <= smaller + WireBytes::new(53));
    }
}
