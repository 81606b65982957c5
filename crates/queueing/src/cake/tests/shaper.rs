//! The shaper in deficit mode.

use super::*;

/// 40, 576 and 1500 bytes behind 8 bytes of AAL5 trailer are 1, 13 and 32 cells. For each mix, the
/// packet behind n others departs when the line would have carried them, rounded down to a
/// picosecond.
#[test]
fn the_shaper_keeps_the_exact_rate_in_bytes_on_the_wire() {
    let rate = BitRate::from_kbit_per_s(777);
    for sizes in [&[40][..], &[576], &[1500], &[40, 576, 1500, 40, 40]] {
        let config = Config { bandwidth: Some(rate), ..Config::default() };
        let mut cake = Cake::new(&config, &environment(Framing::Atm, 8));
        for &size in sizes.iter().cycle().take(2000) {
            put(&mut cake, ms(5), packet(1, size));
        }
        let (mut now, mut bits) = (ms(5), 0_u128);
        let from = now;
        while let Some(ready) = cake.next_ready(now) {
            assert_eq!(ready, from + Duration::from_ps((bits * 1_000_000_000_000 / 777_000) as u64), "{sizes:?}");
            now = ready;
            // Packets that COBALT drops are not charged.
            let sent = cake.dequeue(now, &mut |_, _, _| {}).expect("it was promised");
            let cells = u128::from(u64::from(sent.ip_len + 8).div_ceil(48));
            bits += cells * 424;
        }
        assert!(bits > 1000 * 424, "{sizes:?}");
    }
}

/// No burst: after a pause the first packet departs at once, and the second once the line would
/// have carried the first.
#[test]
fn a_pause_earns_nothing() {
    let mut cake = build(&Config { bandwidth: Some(RATE), ..Config::default() });
    for now in [ms(0), ms(1000)] {
        put(&mut cake, now, packet(1, 1500));
        put(&mut cake, now, packet(1, 1500));
        assert!(cake.dequeue(now, &mut none).is_some() && cake.dequeue(now, &mut none).is_none());
        // 1500 bytes take 1 ms.
        let then = now + Duration::from_ms(1);
        assert_eq!(cake.next_ready(now), Some(then));
        assert!(cake.dequeue(then, &mut none).is_some());
        assert_eq!(cake.next_ready(then), None);
    }
}

/// Each dequeue is 0.5 ms late, with packets of 1 ms: without catching up all lateness is lost, 1.5
/// ms a packet.
#[test]
fn a_late_caller_loses_rate_unless_it_may_catch_up() {
    let sent_in_a_second = |catch_up| {
        let mut cake = build(&Config { bandwidth: Some(RATE), catch_up, ..Config::default() });
        for _ in 0..1500 {
            put(&mut cake, ms(0), Meta { traffic_class: 2, ..packet(1, 1500) });
        }
        let (mut now, mut sent) = (ms(0), 0);
        while now < ms(1000) {
            sent += std::iter::from_fn(|| cake.dequeue(now, &mut none)).count();
            now = cake.next_ready(now).expect("packets wait") + Duration::from_us(500);
        }
        sent
    };
    assert_eq!(sent_in_a_second(Duration::ZERO), 667);
    assert_eq!(sent_in_a_second(Duration::from_ms(2)), 1000);
}

/// The shaper may count for another line than the one below: 1500 bytes in 32 cells take 1.131 ms
/// at 12 Mbit/s.
#[test]
fn the_shaper_may_count_for_a_later_line() {
    let atm = LinkLayer::new(8, Framing::Atm).expect("an overhead of 8 bytes");
    let mut cake = build(&Config { bandwidth: Some(RATE), link_layer: Some(atm), ..Config::default() });
    put(&mut cake, ms(0), packet(1, 1500));
    put(&mut cake, ms(0), packet(1, 1500));
    assert!(cake.dequeue(ms(0), &mut none).is_some());
    assert_eq!(cake.next_ready(ms(0)), Some(Instant::ZERO + Duration::from_ps(32 * 424 * 1_000_000 / 12)));
}

/// A byte at 3 kbit/s takes 2 666 666 666.67 ps. The fraction of a picosecond is carried as long as
/// the shaper is busy; a pause, or a late caller, discards it.
#[test]
fn parts_of_a_picosecond_are_carried_while_the_shaper_is_busy() {
    let byte = Duration::from_ps(2_666_666_666);
    let mut cake = build(&Config { bandwidth: Some(BitRate::from_kbit_per_s(3)), ..Config::default() });
    let mut send = |now, come: u16| {
        (0..come).for_each(|_| put(&mut cake, now, packet(1, 1)));
        assert!(cake.dequeue(now, &mut none).is_some());
        cake.shared.shaper.as_ref().expect("it has a rate").ready()
    };
    let first = send(ms(0), 2);
    assert_eq!(first, ms(0) + byte);
    assert_eq!(send(first, 0), first + byte + Duration::from_ps(1));
    assert_eq!(send(ms(1000), 2), ms(1000) + byte);
    // A millisecond late.
    let late = ms(1001) + byte;
    assert_eq!(send(late, 1), late + byte);
}

/// Departures of a queue that holds two packets, where a third came at 0 ms, and one more with each departure.
fn departures_after_a_drop(ingress: bool) -> Vec<Duration> {
    let memory = Some(ByteCount::new(3000));
    let mut cake = build(&Config { bandwidth: Some(RATE), memory, ingress, ..Config::default() });
    let mut dropped = 0;
    for _ in 0..3 {
        cake.enqueue(ms(0), packet(1, 1500), &mut |_, _, reason| {
            assert_eq!(reason, DropReason::Head);
            dropped += 1;
        });
    }
    assert_eq!(dropped, 1);
    let next = || {
        let now = cake.next_ready(ms(0)).expect("packets wait");
        cake.dequeue(now, &mut none).expect("it was promised");
        put(&mut cake, now, packet(1, 1500));
        now.since(ms(0))
    };
    std::iter::repeat_with(next).take(5).collect()
}

/// A packet takes 1 ms. The dropped one is charged: the first, which the failsafe lets go at once, and the second, at
/// two thirds of the rate, depart before that is paid; the fourth departs after four packets that the line has carried.
#[test]
fn a_line_before_the_queue_has_carried_what_is_dropped() {
    let us = |times: [u64; 5]| times.map(Duration::from_us).to_vec();
    assert_eq!(departures_after_a_drop(false), us([0, 1_000, 2_000, 3_000, 4_000]));
    assert_eq!(departures_after_a_drop(true), us([0, 1_500, 3_000, 4_000, 5_000]));
}

/// 40 bytes take 26.67 us at 12 Mbit/s.
#[test]
fn a_filtered_ack_is_charged_too() {
    let ready_after = |ingress| {
        let ack_filter = Some(Mode::Aggressive);
        let mut cake = build(&Config { bandwidth: Some(RATE), ingress, ack_filter, ..Config::default() });
        put(&mut cake, ms(0), packet(2, 1500));
        assert!(cake.dequeue(ms(0), &mut none).is_some());
        let mut filtered = 0;
        for number in [1, 1001] {
            cake.enqueue(ms(0), ack(1, number), &mut |_, _, _| filtered += 1);
        }
        assert_eq!(filtered, 1);
        cake.next_ready(ms(0)).expect("an ACK waits").since(ms(0))
    };
    assert_eq!(ready_after(false), Duration::from_ms(1));
    assert_eq!(ready_after(true), Duration::from_ms(1) + Duration::from_ps(26_666_666));
}

/// Packets of two flows in two seconds: those sent of each, and those that COBALT drops of the first. The second is
/// marked in place of dropped.
fn sent_and_dropped(ingress: bool) -> ([u64; 2], u64) {
    let mut cake = build(&Config { bandwidth: Some(RATE), ingress, ..Config::default() });
    let flows = [packet(1, 1500), Meta { traffic_class: 2, ..packet(2, 1500) }];
    for _ in 0..30 {
        flows.iter().for_each(|packet| put(&mut cake, ms(0), *packet));
    }
    let (mut now, mut sent, mut dropped) = (ms(0), [0, 0], 0);
    while now < ms(2000) {
        let mut lost = Vec::new();
        let packet = cake.dequeue(now, &mut |_, packet, _| lost.push(packet)).expect("it was promised");
        sent[packet.flow.index() as usize - 1] += 1;
        dropped += lost.len() as u64;
        for again in lost.into_iter().chain([packet]) {
            put(&mut cake, now, Meta { traffic_class: if again.flow == FlowId::new(2) { 2 } else { 0 }, ..again });
        }
        now = cake.next_ready(now).expect("packets wait");
    }
    (sent, dropped)
}

#[test]
fn what_the_aqm_drops_takes_rate_and_the_turn_of_its_flow() {
    let ([first, second], dropped) = sent_and_dropped(false);
    assert!(dropped > 50 && first.abs_diff(second) <= 2, "{first}, {second}, {dropped}");
    assert!((first + second).abs_diff(2000) <= 1, "{first}, {second}");
    let ([first, second], dropped) = sent_and_dropped(true);
    assert!(dropped > 50 && (first + dropped).abs_diff(second) <= 2, "{first}, {second}, {dropped}");
    assert!((first + second + dropped).abs_diff(2000) <= 2, "{first}, {second}, {dropped}");
}
