use super::*;

const PACKET: u16 = 1200;

fn ms(count: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(count)
}

fn trips() -> Trips {
    let trip = Some(Duration::from_ms(100));
    Trips { latest: trip, least: trip, smoothed: trip }
}

fn established(variant: Variant) -> Controller {
    let mut controller = Controller::new(variant, PACKET, 1);
    controller.establish(ms(0), Some(Duration::from_ms(100)));
    controller
}

/// Sends `count` packets at `at`.
fn send(controller: &mut Controller, at: u64, count: usize) -> Vec<InFlight> {
    (0..count).map(|_| controller.on_sent(ms(at), PACKET)).collect()
}

fn deliver(controller: &mut Controller, at: u64, packets: &[InFlight]) {
    controller.begin();
    packets.iter().for_each(|packet| controller.on_delivered(*packet));
    controller.end(ms(at), trips(), None, true);
}

/// RFC 9002, section 7.2: ten packets, limited to the larger of 14 720 octets and two packets.
#[test]
fn the_initial_window_is_ten_packets_or_14720_octets() {
    let window = |packet| Controller::new(Variant::NewReno, packet, 1).window();
    assert_eq!([window(1200), window(1472), window(1500), window(9000)], [12_000, 14_720, 14_720, 18_000]);
}

/// RFC 9002, section 7.3.1: slow start grows by the acknowledged octets. Section 7.3.2: a loss halves the window,
/// and packets sent before do not change it again. Section 7.3.3: then a packet a window.
#[test]
fn a_loss_halves_the_window_once_for_all_that_was_sent_before() {
    let mut controller = established(Variant::NewReno);
    let first = send(&mut controller, 0, 10);
    deliver(&mut controller, 100, &first);
    assert_eq!(controller.window(), 24_000);
    let second = send(&mut controller, 100, 20);
    controller.begin();
    controller.on_lost(ms(200), second[0]);
    controller.on_lost(ms(200), second[1]);
    controller.end(ms(200), trips(), Some(second[2]), true);
    assert_eq!((controller.window(), controller.threshold()), (12_000, Some(12_000)));
    assert_eq!(controller.in_flight(), 18 * 1200);
    deliver(&mut controller, 210, &second[2..]);
    assert_eq!((controller.window(), controller.in_flight()), (12_000, 0));
    let third = send(&mut controller, 220, 10);
    deliver(&mut controller, 320, &third);
    assert_eq!(controller.window(), 13_200);
}

/// RFC 9438, section 4.6: a window of 20 packets is multiplied by 0.7.
#[test]
fn cubic_multiplies_by_seven_tenths() {
    let mut controller = established(Variant::Cubic);
    let first = send(&mut controller, 0, 10);
    deliver(&mut controller, 100, &first);
    let second = send(&mut controller, 100, 20);
    controller.begin();
    controller.on_lost(ms(200), second[0]);
    assert_eq!(controller.window(), 14 * 1200);
}

/// RFC 9002, section 7.6.2: two packets are left, and slow start leads to the halved window.
#[test]
fn persistent_congestion_leaves_two_packets() {
    let mut controller = established(Variant::NewReno);
    let flight = send(&mut controller, 0, 10);
    controller.begin();
    let reductions = flight.iter().filter(|packet| controller.on_lost(ms(900), **packet)).count();
    assert_eq!(reductions, 1);
    controller.on_persistent_congestion(ms(900));
    controller.end(ms(900), trips(), None, true);
    assert_eq!((controller.window(), controller.threshold()), (2400, Some(6000)));
    assert_eq!(controller.in_flight(), 0);
}

/// RFC 9002, section 7.6.2: two packets are left to a model, too, although the acknowledgement delivers a packet.
/// `BBR.MinPipeCwnd`: with the next one it has four. The window before, 12 000 octets, returns with a packet sent
/// later.
#[test]
fn persistent_congestion_leaves_two_packets_to_a_model() {
    for variant in [Variant::Bbr, Variant::Bbr3] {
        let mut controller = established(variant);
        let flight = send(&mut controller, 0, 11);
        controller.begin();
        controller.on_delivered(flight[9]);
        flight[..9].iter().for_each(|packet| _ = controller.on_lost(ms(900), *packet));
        controller.on_persistent_congestion(ms(900));
        controller.end(ms(900), trips(), Some(flight[10]), true);
        assert_eq!(controller.window(), 2400, "{variant:?}");
        let later = send(&mut controller, 910, 1);
        deliver(&mut controller, 1000, &flight[10..]);
        assert_eq!(controller.window(), 4800, "{variant:?}");
        deliver(&mut controller, 1010, &later);
        assert_eq!(controller.window(), 12_000 + 1200, "{variant:?}");
    }
}

/// RFC 9002, section 7.8: an application that leaves the window unused does not make it grow.
#[test]
fn an_unused_window_does_not_grow() {
    let mut controller = established(Variant::NewReno);
    let packets = send(&mut controller, 0, 2);
    controller.begin();
    packets.iter().for_each(|packet| controller.on_delivered(*packet));
    controller.end(ms(100), trips(), None, false);
    assert_eq!(controller.window(), 12_000);
}

/// RFC 9002, section 7.7, with N = 2 in slow start: 12 000 octets in 100 ms at 240 000 octets a second. The first
/// ten packets of a connection are the initial burst.
#[test]
fn packets_beyond_the_initial_window_are_paced() {
    let mut controller = established(Variant::Cubic);
    assert_eq!(controller.pacing_rate(), Some(240_000));
    send(&mut controller, 0, 10);
    assert!(controller.is_due(ms(0)));
    send(&mut controller, 0, 2);
    assert!(!controller.is_due(ms(0)));
    // 2400 octets at 240 000 a second.
    assert_eq!(controller.wake(), Some(ms(10)));
}

/// RFC 9002, section 7.7: with nothing in flight ten packets may depart at once, before the first paced burst.
#[test]
fn a_burst_after_silence_is_not_paced_beyond_ten_packets() {
    let mut controller = established(Variant::Cubic);
    let first = send(&mut controller, 0, 10);
    deliver(&mut controller, 100, &first);
    for _ in 0..10 {
        assert!(controller.is_due(ms(500)));
        controller.on_sent(ms(500), PACKET);
    }
    assert!(controller.is_due(ms(500)));
    send(&mut controller, 500, 2);
    assert!(!controller.is_due(ms(500)));
}

/// Ten packets in 100 ms are 120 000 octets a second: the model's rate is 2.89 times of it, less 1 %.
#[test]
fn a_model_paces_by_the_measured_rate() {
    let mut controller = established(Variant::Bbr);
    let first = send(&mut controller, 0, 10);
    deliver(&mut controller, 100, &first);
    assert_eq!(controller.phase(), Some("startup"));
    let rate = controller.pacing_rate().expect("a rate");
    assert!((340_000..345_000).contains(&rate), "{rate}");
}
