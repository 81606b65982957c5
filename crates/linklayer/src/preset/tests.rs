use lastmile_units::{ByteCount, CellCount, WireBytes};

use super::*;

/// CAKE's arithmetic (`tc-cake(8)`, OVERHEAD COMPENSATION): overhead, then `mpu`, then cells or
/// blocks, in 32 bits.
#[expect(clippy::manual_div_ceil, reason = "as CAKE rounds, apart from the code under test")]
fn cake(ip: u32, overhead: u32, mpu: u32, mode: &str) -> u32 {
    let mut len = ip + overhead;
    if len < mpu {
        len = mpu;
    }
    match mode {
        "atm" => (len + 47) / 48 * 53,
        "ptm" => len + (len + 63) / 64,
        _ => len,
    }
}

/// The keywords of `tc-cake(8)` with the parameters that the page gives as equivalent.
const CAKE: &[(&str, u32, u32, &str)] = &[
    ("raw", 0, 0, "noatm"),
    ("conservative", 48, 0, "atm"),
    ("ipoa-vcmux", 8, 0, "atm"),
    ("ipoa-llcsnap", 16, 0, "atm"),
    ("bridged-vcmux", 24, 0, "atm"),
    ("bridged-llcsnap", 32, 0, "atm"),
    ("pppoa-vcmux", 10, 0, "atm"),
    ("pppoa-llc", 14, 0, "atm"),
    ("pppoe-vcmux", 32, 0, "atm"),
    ("pppoe-llcsnap", 40, 0, "atm"),
    ("pppoe-ptm", 30, 0, "ptm"),
    ("bridged-ptm", 22, 0, "ptm"),
    ("docsis", 18, 64, "noatm"),
    ("ethernet", 38, 84, "noatm"),
];

/// tc-cake(8): pppoe-ptm is `ptm overhead 30`, ethernet `noatm overhead 38 mpu 84`; ether-vlan adds 4 bytes. A
/// word acts on those before it as in `cake_parse_opt` of iproute2 (`tc/q_cake.c`).
#[test]
fn words_of_cake_give_cakes_number_for_every_size() {
    for (words, overhead, mpu, mode) in [
        ("pppoe-ptm ether-vlan", 34, 0, "ptm"),
        ("ethernet ether-vlan", 42, 84, "noatm"),
        ("ether-vlan ethernet ether-vlan", 46, 84, "noatm"),
        ("ptm overhead 34 mpu 68", 34, 68, "ptm"),
        ("overhead 44 atm", 44, 0, "atm"),
        ("overhead 44", 44, 0, "noatm"),
        ("pppoe-llcsnap overhead 44", 44, 0, "atm"),
        ("docsis  mpu 70", 18, 70, "noatm"),
        ("mpu 68 pppoe-ptm", 30, 68, "ptm"),
        ("mpu 70 docsis", 18, 64, "noatm"),
        ("mpu 70 ethernet", 38, 84, "noatm"),
        ("ptm ethernet", 38, 84, "ptm"),
        ("ptm docsis", 18, 64, "noatm"),
        ("ether-vlan conservative", 48, 0, "atm"),
        ("mpu 60 conservative ether-vlan", 52, 60, "atm"),
        ("overhead 44 raw", 0, 0, "noatm"),
        ("atm mpu 50 raw", 0, 50, "noatm"),
    ] {
        let layer = LinkLayer::from_name(words).unwrap();
        for ip in 0..1600 {
            let expected = WireBytes::new(cake(ip, overhead, mpu, mode).into());
            assert_eq!(layer.on_wire(ByteCount::new(ip.into())), expected, "{words}, {ip}");
        }
    }
    assert_eq!(LinkLayer::from_name("pppoe-ptm ether-vlan").unwrap().mtu().map(std::num::NonZero::get), Some(1492));
    for wrong in ["pppoe-ptm aal5", "overhead", "overhead x", "mpu -1", "ptm 34", "overhead 2147483647 ether-vlan"] {
        assert_eq!(LinkLayer::from_name(wrong), None, "{wrong}");
    }
}

#[test]
fn every_cake_keyword_gives_cakes_number_for_every_size() {
    for &(keyword, overhead, mpu, mode) in CAKE {
        let link = LinkLayer::from_name(keyword).expect(keyword);
        for ip in 1..=65_535 {
            let expected = u64::from(cake(ip, overhead, mpu, mode));
            assert_eq!(link.on_wire(ByteCount::new(ip.into())).as_u64(), expected, "{keyword}, {ip} bytes");
        }
    }
}

/// Presets without a keyword in CAKE follow CAKE's formula with their own parameters.
#[test]
fn every_other_preset_gives_cakes_number_for_its_parameters() {
    for preset in PRESETS {
        let mode = match preset.link.framing() {
            Framing::None => "noatm",
            Framing::Atm => "atm",
            Framing::Ptm => "ptm",
        };
        let overhead = u32::try_from(preset.link.overhead()).unwrap();
        for ip in 1..=65_535 {
            let expected = u64::from(cake(ip, overhead, preset.link.min_frame(), mode));
            assert_eq!(
                preset.link.on_wire(ByteCount::new(ip.into())).as_u64(),
                expected,
                "{}, {ip} bytes",
                preset.name
            );
        }
    }
}

/// netem's `rate R OVERHEAD CELLSIZE CELLOVERHEAD` (`tc-netem(8)`): whole cells, the last counted
/// in full.
#[test]
fn netems_cells_agree_with_every_atm_preset() {
    for preset in PRESETS.iter().filter(|preset| preset.link.framing() == Framing::Atm) {
        for ip in 1..=65_535_u64 {
            let length = preset.link.frame(ByteCount::new(ip));
            let mut cells = length / 48;
            if length > cells * 48 {
                cells += 1;
            }
            let wire = cells * (48 + 5);
            assert_eq!(preset.link.on_wire(ByteCount::new(ip)).as_u64(), wire, "{}, {ip} bytes", preset.name);
        }
    }
}

/// CAKE keeps `ethernet`'s minimum of 84 when `ether-vlan` adds a tag; a tagged minimum frame is
/// 88.
#[test]
fn a_tagged_minimum_frame_is_the_only_difference_to_cakes_ether_vlan() {
    for ip in 1..=65_535_u32 {
        let ours = ETHER_VLAN.link.on_wire(ByteCount::new(ip.into())).as_u64();
        let cakes = u64::from(cake(ip, 42, 84, "noatm"));
        assert_eq!(ours - cakes, u64::from(46_u32.saturating_sub(ip)).min(4), "{ip} bytes");
    }
}

#[test]
fn every_overhead_is_the_sum_of_its_headers() {
    for preset in PRESETS {
        let sum: u32 = preset.headers.iter().map(|header| header.bytes).sum();
        assert_eq!(i64::from(preset.link.overhead()), i64::from(sum), "{}", preset.name);
    }
}

/// The overheads as literal numbers, so that a missing header shows.
#[test]
fn overheads_minimum_frames_and_framings_are_these() {
    use Framing::{Atm, None, Ptm};
    let expected = [
        ("ip", 0, 0, None),
        ("slip", 0, 0, None),
        ("ipoa-vcmux", 8, 0, Atm),
        ("ipoa-llcsnap", 16, 0, Atm),
        ("bridged-vcmux", 24, 0, Atm),
        ("bridged-llcsnap", 32, 0, Atm),
        ("bridged-vcmux-fcs", 28, 74, Atm),
        ("bridged-llcsnap-fcs", 36, 82, Atm),
        ("pppoa-vcmux", 10, 0, Atm),
        ("pppoa-llc", 14, 0, Atm),
        ("pppoe-vcmux", 32, 0, Atm),
        ("pppoe-llcsnap", 40, 0, Atm),
        ("pppoe-vcmux-fcs", 36, 74, Atm),
        ("pppoe-llcsnap-fcs", 44, 82, Atm),
        ("aal5", 8, 0, Atm),
        ("bridged-ptm", 22, 0, Ptm),
        ("pppoe-ptm", 30, 0, Ptm),
        ("ethernet", 38, 84, None),
        ("ether-vlan", 42, 88, None),
        ("docsis", 18, 64, None),
        ("l2tp", 40, 0, None),
        ("l2tp-acfc", 38, 0, None),
        ("conservative", 48, 0, Atm),
    ];
    let found: Vec<_> =
        PRESETS.iter().map(|p| (p.name, p.link.overhead(), p.link.min_frame(), p.link.framing())).collect();
    assert_eq!(found, expected);
}

/// Brouer 2005, table 5.3: overhead with the AAL5 trailer, PDU and cells of a 40-byte ACK; 1500
/// bytes recomputed.
#[test]
fn brouers_twelve_encapsulations_have_his_overheads_and_cells() {
    let table = [
        ("pppoa-vcmux", 10, 50, 2, 32),
        ("pppoa-llc", 14, 54, 2, 32),
        ("ipoa-vcmux", 8, 48, 1, 32),
        ("ipoa-llcsnap", 16, 56, 2, 32),
        ("bridged-vcmux", 24, 64, 2, 32),
        ("bridged-llcsnap", 32, 72, 2, 32),
        ("bridged-vcmux-fcs", 28, 68, 2, 32),
        ("bridged-llcsnap-fcs", 36, 76, 2, 32),
        ("pppoe-vcmux", 32, 72, 2, 32),
        ("pppoe-llcsnap", 40, 80, 2, 33),
        ("pppoe-vcmux-fcs", 36, 76, 2, 32),
        ("pppoe-llcsnap-fcs", 44, 84, 2, 33),
    ];
    for (name, overhead, pdu, ack_cells, full_cells) in table {
        let link = Preset::by_name(name).expect(name).link;
        assert_eq!(link.overhead(), overhead, "{name}");
        // The table omits the padding to the Ethernet minimum (section 5.1.4), which changes no
        // cell count here.
        assert_eq!(40 + overhead, pdu, "{name}");
        assert_eq!(link.cells(ByteCount::new(40)), Some(CellCount::new(ack_cells)), "{name}");
        assert_eq!(link.on_wire(ByteCount::new(40)), WireBytes::new(ack_cells * 53), "{name}");
        assert_eq!(link.cells(ByteCount::new(1_500)), Some(CellCount::new(full_cells)), "{name}");
    }
}

/// Brouer 2005, section 5.1.4: behind LLC/SNAP a padded ACK is 82 bytes, 42 of them overhead; 74
/// with VC multiplexing.
#[test]
fn a_bridged_ack_with_fcs_is_padded_to_a_64_byte_frame() {
    let ack = ByteCount::new(40);
    assert_eq!(BRIDGED_VCMUX_FCS.link.frame(ack), 74);
    assert_eq!(BRIDGED_LLCSNAP_FCS.link.frame(ack), 82);
    assert_eq!(BRIDGED_LLCSNAP_FCS.link.frame(ack) - 40, 42);
    assert_eq!(BRIDGED_VCMUX_FCS.link.frame(ByteCount::new(46)), 74, "46 bytes need no padding");
    assert_eq!(BRIDGED_VCMUX_FCS.link.frame(ByteCount::new(47)), 75);
    assert_eq!(PPPOE_VCMUX_FCS.link.frame(ByteCount::new(38)), 74, "PPPoE leaves 38 of the 46");
    assert_eq!(PPPOE_VCMUX_FCS.link.frame(ByteCount::new(39)), 75);
    assert_eq!(BRIDGED_VCMUX.link.frame(ack), 64, "no FCS, no padding");
}

/// Phanse 2000, sections 5.2.1 and 5.3.
#[test]
fn phanses_cells_come_out_as_printed() {
    let data = ByteCount::new(1_540);
    assert_eq!(AAL5.link.cells(data), Some(CellCount::new(33)));
    assert_eq!(AAL5.link.on_wire(data), WireBytes::new(1_749));
    assert_eq!(aal5::padding(1_540 + 8), 36);
    assert_eq!(AAL5.link.on_wire(ByteCount::new(40)), WireBytes::new(53));
    assert_eq!(aal5::padding(40 + 8), 0);
    assert_eq!(PPPOA_LLC.link.frame(ByteCount::new(40)), 54);
    assert_eq!(PPPOA_LLC.link.cells(ByteCount::new(40)), Some(CellCount::new(2)));
    assert_eq!(PPPOA_LLC.link.frame(data), 1_554);
    assert_eq!(PPPOA_LLC.link.on_wire(data), WireBytes::new(1_749));
    assert_eq!(SLIP.link.on_wire(data), WireBytes::new(1_540));
}

#[test]
fn names_are_unique_and_found_in_any_case() {
    let mut names: Vec<&str> = PRESETS.iter().flat_map(Preset::names).collect();
    for name in &names {
        assert_eq!(Preset::by_name(name), Preset::by_name(&name.to_uppercase().replace('-', "_")), "{name}");
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "no name stands for two presets");
    assert_eq!(Preset::by_name("PPPoA-VC").map(|preset| preset.name), Some("pppoa-vcmux"));
    assert_eq!(Preset::by_name("rfc2684-bridged-vc-fcs").map(|preset| preset.name), Some("bridged-vcmux-fcs"));
    assert_eq!(Preset::by_name("pppoa-vcmu"), None);
    assert_eq!(Preset::by_name(""), None);
}

#[test]
fn a_tunnel_is_named_with_its_carrier() {
    let l2tp = LinkLayer::from_name("l2tp/ethernet").unwrap();
    assert_eq!((l2tp.overhead(), l2tp.min_frame()), (40 + 38, 84));
    let twice = LinkLayer::from_name("l2tp-acfc/l2tp/aal5").unwrap();
    assert_eq!((twice.overhead(), twice.framing()), (38 + 40 + 8, Framing::Atm));
    for name in ["ethernet/l2tp", "l2tp/", "/ethernet", "l2tp/nothing", "/"] {
        assert_eq!(LinkLayer::from_name(name), None, "{name}");
    }
    let deep = "l2tp/".repeat(100_000) + "ip";
    assert_eq!(LinkLayer::from_name(&deep), None);
}
