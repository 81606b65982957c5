use lastmile_linklayer::{OamShare, preset};
use proptest::prelude::*;

use super::*;

/// Phanse 2000: 1.544 Mbit/s down, an ACK for every segment, 40-byte ACKs.
fn phanse(up_bps: u64, link: LinkLayer, mtu: u64) -> Download {
    Download {
        down: BitRate::from_kbit_per_s(1_544),
        up: BitRate::from_bps(up_bps).unwrap(),
        down_link: link,
        up_link: link,
        data: ByteCount::new(mtu),
        payload: ByteCount::new(mtu - 40),
        ack: ByteCount::new(40),
        segments_per_ack: Fraction::ONE,
    }
}

/// Equal within half a unit of the fourth digit, the precision of the recomputed values.
fn same(found: f64, expected: f64, what: &str) {
    assert!((found / expected - 1.0).abs() < 6e-4, "{what}: {found}, expected {expected}");
}

/// Phanse 2000, section 3.4: 10 Mbit/s over 100 kbit/s, 1000-byte data, 40-byte ACKs.
#[test]
fn a_100_to_1_line_is_four_times_too_asymmetric() {
    let download = Download {
        down: BitRate::from_mbit_per_s(10),
        up: BitRate::from_kbit_per_s(100),
        data: ByteCount::new(1_000),
        payload: ByteCount::new(960),
        ..phanse(1, preset::IP.link, 1_000)
    };
    let found = asymmetry(&download).unwrap();
    same(found.k, 4.0, "k");
    same(found.wire_bps, 2_500_000.0, "throughput");
    assert_eq!(found.limit, Bottleneck::Acks);
}

/// Phanse 2000, tables 5.1, 5.2, 5.4, 5.5 (and 5.8, figure 5.9 for PPP): k, bound in percent.
#[test]
fn phanses_tables_of_single_downloads_come_out() {
    let (ip, aal5, ppp) = (preset::IP.link, preset::AAL5.link, preset::PPPOA_LLC.link);
    let rows = [
        ("5.1", 96_000, ip, 1_540, 0.4177, 100.0),
        ("5.1", 64_000, ip, 1_540, 0.6266, 100.0),
        ("5.1", 28_800, ip, 1_540, 1.3925, 71.81),
        ("5.1", 16_000, ip, 1_540, 2.506, 39.9),
        ("5.2", 64_000, ip, 250, 3.86, 25.91),
        ("5.4", 96_000, aal5, 1_540, 0.4874, 100.0),
        ("5.4", 64_000, aal5, 1_540, 0.7311, 100.0),
        ("5.4", 48_000, aal5, 1_540, 0.9747, 100.0),
        ("5.4", 16_000, aal5, 1_540, 2.924, 34.2),
        ("5.5", 64_000, aal5, 1_000, 1.1488, 87.05),
        ("5.5", 64_000, aal5, 500, 2.193, 45.6),
        ("5.5", 64_000, aal5, 250, 4.0208, 24.87),
        ("5.8", 64_000, ppp, 1_540, 1.462, 68.39),
        ("5.9", 96_000, ppp, 1_540, 0.9747, 100.0),
        ("5.9", 16_000, ppp, 1_540, 5.848, 17.1),
    ];
    for (table, up_bps, link, mtu, k, percent) in rows {
        let found = asymmetry(&phanse(up_bps, link, mtu)).unwrap();
        let what = format!("{table}, {up_bps} bit/s, {mtu} bytes");
        same(found.k, k, &what);
        same(found.utilisation * 100.0, percent, &what);
        assert_eq!(found.limit, if percent < 100.0 { Bottleneck::Acks } else { Bottleneck::Downstream }, "{what}");
    }
}

/// Phanse 2000, section 5.2.1: cells raise k from 2.5 to 2.92. Section 5.3: PPP doubles an ACK's cells.
#[test]
fn the_cell_tax_raises_k() {
    let found = asymmetry(&phanse(16_000, preset::AAL5.link, 1_540)).unwrap();
    same(found.k, 2.924, "with cells");
    same(found.k_ip, 2.506, "without");
    assert_eq!((found.data_cells, found.ack_cells), (Some(CellCount::new(33)), Some(CellCount::new(1))));
    assert_eq!((found.data_wire, found.ack_wire), (WireBytes::new(1_749), WireBytes::new(53)));
    let ppp = asymmetry(&phanse(16_000, preset::PPPOA_LLC.link, 1_540)).unwrap();
    assert_eq!((ppp.data_cells, ppp.ack_cells), (Some(CellCount::new(33)), Some(CellCount::new(2))));
    same(ppp.k / found.k, 2.0, "twice the ACK bytes");
}

/// Phanse 2000, tables 5.3, 5.6 and figure 5.9: the bounds with an ACK for every second segment.
#[test]
fn delayed_acks_raise_the_bound_up_to_twice() {
    for (link, percent) in [(preset::IP.link, 79.79), (preset::AAL5.link, 68.39), (preset::PPPOA_LLC.link, 34.2)] {
        let download = Download { segments_per_ack: Fraction::whole(2), ..phanse(16_000, link, 1_540) };
        same(asymmetry(&download).unwrap().utilisation * 100.0, percent, "d = 2");
    }
}

/// Brouer 2005, figures 3.2 and 3.6: the IP rate of 1500-byte packets over 512 kbit/s and 2 Mbit/s
/// of cells.
#[test]
fn a_line_of_cells_carries_less_ip() {
    let link = preset::BRIDGED_VCMUX_FCS.link;
    same(ip_rate_bps(BitRate::from_kbit_per_s(512), link, ByteCount::new(1_500)) / 1e3, 452.8, "upstream");
    same(ip_rate_bps(BitRate::from_mbit_per_s(2), link, ByteCount::new(1_500)) / 1e3, 1_769.0, "downstream");
    same(ip_rate_bps(BitRate::from_kbit_per_s(2_048), link, ByteCount::new(1_500)) / 1e3, 1_811.0, "the likely rate");
    same(ip_rate_bps(BitRate::from_kbit_per_s(512), preset::IP.link, ByteCount::ZERO) + 1.0, 1.0, "nothing");
}

/// Brouer 2005: bridged with FCS over VC multiplexing, 1696 bytes of data for 106 of ACK.
fn brouer(down_kbit: u64, up_kbit: u64) -> Download {
    Download {
        down: BitRate::from_kbit_per_s(down_kbit),
        up: BitRate::from_kbit_per_s(up_kbit),
        ..phanse(1, preset::BRIDGED_VCMUX_FCS.link, 1_500)
    }
}

/// Brouer 2005, section 2.3.2 and table 3.2 (k printed with two digits).
#[test]
fn no_danish_product_of_2004_was_too_asymmetric() {
    let products = [
        (2_000, 500, 0.25, 0.25),
        (256, 128, 0.125, 0.13),
        (1_024, 128, 0.5, 0.5),
        (1_536, 128, 0.75, 0.75),
        (512, 256, 0.125, 0.13),
        (1_024, 256, 0.25, 0.25),
        (1_024, 512, 0.125, 0.13),
        (2_048, 512, 0.25, 0.25),
        (2_048, 128, 1.0, 1.0),
        (4_000, 768, 0.3255, 0.33),
        (8_000, 768, 0.651, 0.65),
        (8_000, 668, 0.7485, 0.75),
    ];
    for (down, up, k, printed) in products {
        let found = asymmetry(&brouer(down, up)).unwrap();
        same(found.k, k, &format!("{down}/{up}"));
        assert!((found.k - printed).abs() <= 0.005 + 1e-12, "{down}/{up}");
        assert_eq!(found.limit, Bottleneck::Downstream);
    }
}

/// Brouer 2005, section 9.3.1: with d = 2 the upstream clocks three times the packets of the downstream.
#[test]
fn two_cell_acks_on_8_to_0_768_leave_room_three_times_over() {
    let download = Download { segments_per_ack: Fraction::whole(2), ..brouer(8_000, 768) };
    let found = asymmetry(&download).unwrap();
    same(found.ack_headroom, 3.072, "2 * 16 * 768 / 8000");
}

#[test]
fn the_acks_needed_fill_the_upstream_k_times_over() {
    let download = phanse(16_000, preset::AAL5.link, 1_540);
    let found = asymmetry(&download).unwrap();
    same(found.acks_needed.bits_per_s / 16_000.0, found.k, "k is the load by ACKs");
    same(found.acks_needed.packets_per_s, 1_544_000.0 / (1_749.0 * 8.0), "one for each packet");
}

#[test]
fn oam_cells_come_off_both_rates() {
    let plain = preset::AAL5.link;
    let with_oam = plain.with_oam(OamShare::I_432).unwrap();
    let found = asymmetry(&phanse(64_000, with_oam, 1_540)).unwrap();
    same(found.k, 0.7311, "the ratio stays");
    same(found.wire_bps, 1_544_000.0 * 26.0 / 27.0, "the rate does not");
    let one_sided = Download { down_link: plain, ..phanse(64_000, with_oam, 1_540) };
    same(asymmetry(&one_sided).unwrap().k, 0.7311 * 27.0 / 26.0, "only the upstream has OAM cells");
}

#[test]
fn downloads_that_no_line_carries_are_refused() {
    let good = phanse(64_000, preset::AAL5.link, 1_540);
    let refused = |download: Download| asymmetry(&download).map(|_| ()).unwrap_err();
    assert_eq!(refused(Download { payload: ByteCount::ZERO, ..good }), DownloadError::Empty);
    assert_eq!(refused(Download { ack: ByteCount::ZERO, ..good }), DownloadError::Empty);
    assert_eq!(refused(Download { payload: good.data, ..good }), DownloadError::Size);
    assert_eq!(refused(Download { data: ByteCount::MAX, ..good }), DownloadError::Size);
    assert_eq!(
        refused(Download { segments_per_ack: Fraction::new(1, 2).unwrap(), ..good }),
        DownloadError::SegmentsPerAck
    );
    let odd = Fraction::new(u128::MAX, u128::MAX - 1).unwrap();
    assert_eq!(refused(Download { segments_per_ack: odd, ..good }), DownloadError::SegmentsPerAck);
    assert_eq!(refused(Download { segments_per_ack: Fraction::whole(65_536), ..good }), DownloadError::SegmentsPerAck);
}

/// The largest numbers that pass the checks, coprime so that nothing cancels.
#[test]
fn the_most_awkward_download_still_fits_128_bits() {
    let link = |overhead, cells| {
        LinkLayer::new(overhead, lastmile_linklayer::Framing::Atm)
            .unwrap()
            .with_oam(OamShare::one_in(cells).unwrap())
            .unwrap()
    };
    let download = Download {
        down: BitRate::from_bps(999_999_999_989).unwrap(),
        up: BitRate::from_bps(999_999_999_961).unwrap(),
        down_link: link(511, 65_535),
        up_link: link(512, 65_522),
        data: ByteCount::new(65_535),
        payload: ByteCount::new(65_534),
        ack: ByteCount::new(65_521),
        segments_per_ack: Fraction::new(65_534_989, 1_000).unwrap(),
    };
    let found = asymmetry(&download).unwrap();
    assert!(found.k > 0.9 && found.k < 1.1, "{found:?}");
}

proptest! {
    /// On any line the data and their ACKs fit both rates at the bound, and fill one of them.
    #[test]
    fn at_the_bound_one_line_is_full_and_none_overfull(
        down in 1..1_000_000_000_u64, up in 1..1_000_000_000_u64, preset in 0..lastmile_linklayer::PRESETS.len(),
        data in 100..65_535_u64, ack in 40..100_u64, d in 1..8_u64,
    ) {
        let link = lastmile_linklayer::PRESETS[preset].link;
        let download = Download {
            down: BitRate::from_bps(down).expect("not zero"), up: BitRate::from_bps(up).expect("not zero"),
            down_link: link, up_link: link, data: ByteCount::new(data), payload: ByteCount::new(data - 40),
            ack: ByteCount::new(ack), segments_per_ack: Fraction::whole(d),
        };
        let found = asymmetry(&download).expect("a plain download");
        let down_load = found.wire_bps / down as f64;
        let up_load = found.acks_needed.bits_per_s * found.utilisation / up as f64;
        prop_assert!(down_load <= 1.0 + 1e-12 && up_load <= 1.0 + 1e-12);
        prop_assert!(down_load.max(up_load) >= 1.0 - 1e-12);
    }

    /// No download that passes the checks overflows; an overflow would panic at an `expect`.
    #[test]
    fn every_download_that_passes_the_checks_fits_128_bits(
        down in 1..=1_000_000_000_000_u64, up in 1..=1_000_000_000_000_u64, oam in (2..=u16::MAX, 2..=u16::MAX),
        overhead in -64..=512_i32, data in 2..=65_535_u64, ack in 1..=65_535_u64, d in 1_000..=65_535_000_u128,
    ) {
        let link = |cells| {
            let atm = LinkLayer::new(overhead, lastmile_linklayer::Framing::Atm).expect("in range");
            atm.with_oam(OamShare::one_in(cells).expect("at least 2")).expect("cells")
        };
        let download = Download {
            down: BitRate::from_bps(down).expect("not zero"), up: BitRate::from_bps(up).expect("not zero"),
            down_link: link(oam.0), up_link: link(oam.1), data: ByteCount::new(data), payload: ByteCount::new(data - 1),
            ack: ByteCount::new(ack), segments_per_ack: Fraction::new(d, 1_000).expect("not zero"),
        };
        prop_assert!(asymmetry(&download).map_or_else(Err, |found| Ok(found.utilisation > 0.0)) != Ok(false));
    }
}
