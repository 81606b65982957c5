use lastmile_linklayer::preset;
use lastmile_units::{CellCount, PacketCount};
use proptest::prelude::*;

use super::*;

fn same(found: f64, expected: f64, what: &str) {
    assert!((found / expected - 1.0).abs() < 6e-4, "{what}: {found}, expected {expected}");
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Brouer 2005, section 3.4: delay components during one upload at 512 kbit/s (454 kbit/s of IP
/// measured).
#[test]
fn brouers_delay_components_come_out() {
    let measured_ip_rate = BitRate::from_kbit_per_s(454);
    same(ms(queue_delay(measured_ip_rate, WireBytes::new(1_500))), 26.43, "1500 bytes at 454 kbit/s");
    let (line, link) = (BitRate::from_kbit_per_s(512), preset::BRIDGED_VCMUX_FCS.link);
    same(ms(wait_behind(line, link, 1, ByteCount::new(1_500))), 26.5, "1696 bytes at 512 kbit/s");
    same(ms(wait_behind(measured_ip_rate, preset::IP.link, 43, ByteCount::new(1_500))), 1_137.0, "43 packets");
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

/// Brouer 2005, figure 3.2: a 63 712-byte window over the 1.15 s round trip that an upload causes.
#[test]
fn a_download_beside_an_upload_gets_its_window_a_round_trip() {
    let window = ByteCount::new(63_712);
    same(window_rate_bps(window, Duration::from_ms(1_150)) / 1e3, 443.2, "throughput");
    let rtt = Duration::from_ps(63_712 * 8 * 1_000_000_000_000 / 2_000_000);
    same(ms(rtt), 254.8, "round trip at which the window fills 2 Mbit/s");
    same(window_rate_bps(window, rtt), 2e6, "and back");
    let needed = bandwidth_delay(BitRate::from_kbit_per_s(1_800), Duration::from_ms(1_150));
    assert_eq!(needed, WireBytes::new(258_750));
}

/// Brouer 2005, figures 3.7 and 3.8: queues of reduced windows at 450 kbit/s of IP, and the size of
/// the modem's queue.
#[test]
fn queues_of_reduced_windows_come_out() {
    let rate = BitRate::from_kbit_per_s(450);
    for (bytes, expected) in [(16_583, 294.8), (20_273, 360.4), (206_250, 3_667.0)] {
        same(ms(queue_delay(rate, WireBytes::new(bytes))), expected, "delay");
    }
    assert_eq!(bandwidth_delay(rate, Duration::from_ms(3_300)), WireBytes::new(185_625));
}

/// Brouer 2005, section 9.3.1 (and table A.1): 768 kbit/s up, 8 Mbit/s down, 8 ms for the rest of
/// the path.
#[test]
fn the_bound_of_the_production_line_comes_out() {
    let (up, down) = (BitRate::from_kbit_per_s(768), BitRate::from_mbit_per_s(8));
    let (link, full) = (preset::PPPOA_VCMUX.link, ByteCount::new(1_500));
    same(ms(wait_behind(up, link, 1, full)), 17.67, "one packet upstream");
    same(ms(wait_behind(up, link, 2, full) + Duration::from_ms(8)), 43.33, "two packets and the path");
    same(ms(wait_behind(down, link, 1, full)), 1.696, "one packet downstream");
    same(ms(wait_behind(up, link, 1, ByteCount::new(40))), 1.104, "an ACK");
    let tiscali =
        |ip, rate| ms(wait_behind(BitRate::from_kbit_per_s(rate), preset::BRIDGED_VCMUX.link, 1, ByteCount::new(ip)));
    same(tiscali(500, 2_000), 2.332, "583 bytes down");
    same(tiscali(500, 512), 9.109, "583 bytes up");
    same(tiscali(1_500, 512) + tiscali(1_500, 2_000) + 9.0, 42.28, "1696 bytes both ways and the modem");
}

#[test]
fn a_full_queue_is_counted_in_its_own_unit() {
    let (rate, link, full) = (BitRate::from_kbit_per_s(512), preset::BRIDGED_VCMUX_FCS.link, ByteCount::new(1_500));
    let delay = |limit| full_queue_delay(rate, link, limit, full);
    assert_eq!(delay(Limit::Packets(PacketCount::new(2))), Duration::from_ms(53));
    assert_eq!(delay(Limit::Bytes(ByteCount::new(4_499))), Duration::from_ms(53), "no third packet");
    assert_eq!(delay(Limit::Cells(CellCount::new(64))), Duration::from_ms(53));
    // A modem queue of 206 kB: 137 packets of 1696 bytes.
    assert_eq!(delay(Limit::Bytes(ByteCount::new(206_000))), Duration::from_us(137 * 26_500));
    assert_eq!(full_queue_delay(rate, link, Limit::Bytes(ByteCount::new(9)), ByteCount::ZERO), Duration::ZERO);
}

#[test]
fn the_lesser_of_window_and_line_is_told_with_its_name() {
    let flow = WindowedFlow {
        window: ByteCount::new(65_536),
        base_rtt: Duration::from_ms(20),
        forward_queue: Duration::ZERO,
        reverse_queue: Duration::from_ms(3_630),
    };
    let bound = window_bound(&flow, 1.7e6);
    assert_eq!((bound.rtt, bound.limit), (Duration::from_ms(3_650), WindowLimit::Window));
    same(bound.goodput_bps, 65_536.0 * 8.0 / 3.65, "window over queue");
    let empty = WindowedFlow { reverse_queue: Duration::ZERO, ..flow };
    let bound = window_bound(&empty, 1.7e6);
    assert_eq!(bound.limit, WindowLimit::Line);
    same(bound.goodput_bps, 1.7e6, "the line");
}

#[test]
fn absurd_sizes_are_held() {
    let slow = BitRate::from_bps(1).unwrap();
    assert_eq!(queue_delay(slow, WireBytes::MAX), Duration::MAX);
    assert_eq!(wait_behind(slow, preset::AAL5.link, u64::MAX, ByteCount::new(1_500)), Duration::MAX);
    assert_eq!(
        full_queue_delay(slow, preset::AAL5.link, Limit::Cells(CellCount::MAX), ByteCount::new(1)),
        Duration::MAX
    );
    let endless = WindowedFlow {
        window: ByteCount::new(1),
        base_rtt: Duration::MAX,
        forward_queue: Duration::MAX,
        reverse_queue: Duration::MAX,
    };
    assert_eq!(window_bound(&endless, 1.0).rtt, Duration::MAX);
    assert!(bandwidth_delay(BitRate::MAX, Duration::MAX) > WireBytes::ZERO);
}

proptest! {
    /// A bandwidth-delay product takes one round trip to transmit, to within a byte.
    #[test]
    fn bandwidth_delay_and_queue_delay_are_inverse(bps in 1..1_000_000_000_000_u64,
        ps in 0..1_000_000_000_000_000_u64) {
        let (rate, time) = (BitRate::from_bps(bps).expect("not zero"), Duration::from_ps(ps));
        let bytes = bandwidth_delay(rate, time);
        prop_assert!(queue_delay(rate, bytes) <= time);
        prop_assert!(queue_delay(rate, bytes + WireBytes::new(1)) >= time.saturating_sub(Duration::from_ps(1)));
    }
}
