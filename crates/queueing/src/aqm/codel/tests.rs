use lastmile_linklayer::Framing;
use lastmile_packet::Meta;
use lastmile_units::PacketCount;

use super::*;
use crate::DropReason;

/// A line without overhead: the bytes on the wire are the IP packet.
fn plain() -> LinkLayer {
    LinkLayer::new(0, Framing::None).expect("no overhead")
}

fn codel(ecn: bool) -> CoDel<Meta> {
    CoDel::new(&Config { ecn, ..Config::default() }, &plain()).expect("a limit in packets")
}

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(ms)
}

/// Consecutively numbered packets of 1000 bytes that arrive at once.
fn fill(codel: &mut CoDel<Meta>, at: Instant, numbers: core::ops::RangeInclusive<u16>, ecn: u8) {
    for number in numbers {
        let packet = Meta { arrived: at, ip_id: number, ip_len: 1000, traffic_class: ecn, ..Meta::default() };
        codel.enqueue(at, packet, &mut |_, _, _| panic!("the queue is not full"));
    }
}

/// Dequeues every 10 ms, from `first` to `last` ms, and returns the drops as (ms, number of the
/// packet).
fn drops_every_10_ms(codel: &mut CoDel<Meta>, first: u64, last: u64) -> Vec<(u64, u16)> {
    let mut dropped = Vec::new();
    for at in (first..=last).step_by(10) {
        let mut sink = |_, packet: Meta, reason| {
            assert_eq!(reason, DropReason::Aqm);
            dropped.push((at, packet.ip_id));
        };
        assert!(codel.dequeue(ms(at), &mut sink).is_some());
    }
    dropped
}

/// 100 ms over the roots of 1 to 5 and of 10 000, to a picosecond: 1/sqrt(2) = 0.707106781186547..., 1/sqrt(3) =
/// 0.577350269189625..., 1/sqrt(5) = 0.447213595499957...
#[test]
fn the_root_is_exact() {
    let spans = [1, 2, 3, 4, 5, 10_000].map(|count| interval_over_root(Duration::from_ms(100), count).as_ps());
    let expected = [100_000_000_000, 70_710_678_118, 57_735_026_918, 50_000_000_000, 44_721_359_549, 1_000_000_000];
    assert_eq!(spans, expected);
    assert_eq!(interval_over_root(Duration::MAX, 1), Duration::MAX);
}

/// Computed with the pseudo-code of RFC 8289, section 5. All packets arrived at 0. At 10 ms the
/// first has waited for more than 5 ms, so the delay has exceeded the target for an interval at 110
/// ms: packet 11 is dropped and 12 departs, the next drop is due at 210 ms, and packet k + 1
/// departs at 10 k ms from then on.
///
/// | due, ms | at, ms | drop | count | next due |
/// | --- | --- | --- | --- | --- |
/// | 110 | 110 | 11 | 1 | 110 + 100 = 210 |
/// | 210 | 210 | 22 | 2 | 210 + 70.711 = 280.711 |
/// | 280.711 | 290 | 31 | 3 | 280.711 + 57.735 = 338.446 |
/// | 338.446 | 340 | 37 | 4 | 338.446 + 50 = 388.446 |
/// | 388.446 | 390 | 43 | 5 | 388.446 + 44.721 = 433.167 |
const FIRST: [(u64, u16); 5] = [(110, 11), (210, 22), (290, 31), (340, 37), (390, 43)];

#[test]
fn drops_come_faster_as_the_rfc_says() {
    let mut codel = codel(false);
    fill(&mut codel, ms(0), 1..=200, 0);
    assert_eq!(drops_every_10_ms(&mut codel, 10, 430), FIRST);
    // 433.167 has passed, and 433.167 + 100 / sqrt(6) = 473.992.
    assert_eq!(drops_every_10_ms(&mut codel, 440, 480).iter().map(|drop| drop.0).collect::<Vec<_>>(), [440, 480]);
    let mut seen = Vec::new();
    codel.counters(&mut |counter| {
        if counter.value > 0 {
            seen.push((counter.name, counter.value));
        }
    });
    assert_eq!(seen, [("sent_packets", 48), ("sent_bytes", 48_000), ("dropped_aqm", 7), ("episodes", 1)]);
}

/// Empties the queue at `at`: with at most one largest packet left, the episode ends.
fn empty(codel: &mut CoDel<Meta>, at: Instant) {
    let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
    while codel.dequeue(at, &mut none).is_some() {}
}

/// The episode of `drops_come_faster_as_the_rfc_says` made five drops with an initial count of 1.
/// The next begins at 510 ms, 77 ms after a drop would have been due, so the count starts at 5 - 1
/// = 4: its second drop is due 100 / sqrt(4) = 50 ms later, the third 44.721 ms after that.
#[test]
fn an_episode_soon_after_another_continues_its_count() {
    let mut codel = codel(false);
    fill(&mut codel, ms(0), 1..=100, 0);
    drops_every_10_ms(&mut codel, 10, 390);
    empty(&mut codel, ms(400));
    fill(&mut codel, ms(400), 201..=300, 0);
    assert_eq!(drops_every_10_ms(&mut codel, 410, 610), [(510, 211), (560, 217), (610, 223)]);
}

/// The second episode begins 1520 ms later, at 2030 ms. 1600 ms after 433.167 is 2033.167, so 2030
/// ms is within 16 intervals.
#[test]
fn an_episode_within_sixteen_intervals_is_soon() {
    let mut codel = codel(false);
    fill(&mut codel, ms(0), 1..=100, 0);
    drops_every_10_ms(&mut codel, 10, 390);
    empty(&mut codel, ms(400));
    fill(&mut codel, ms(1920), 201..=300, 0);
    assert_eq!(drops_every_10_ms(&mut codel, 1930, 2130), [(2030, 211), (2080, 217), (2130, 223)]);
}

/// After the drop at 390 ms one packet is left behind the departing one: the episode is over, and
/// 388.446 ms stays the last due time. A new episode at 2030 ms, more than 1600 ms after that,
/// starts with a count of 1.
#[test]
fn an_episode_and_its_schedule_end_with_a_packet_in_time() {
    let mut codel = codel(false);
    fill(&mut codel, ms(0), 1..=45, 0);
    assert_eq!(drops_every_10_ms(&mut codel, 10, 400), FIRST);
    assert_eq!(codel.backlog().packets, PacketCount::ZERO);
    fill(&mut codel, ms(1920), 201..=300, 0);
    assert_eq!(drops_every_10_ms(&mut codel, 1930, 2130), [(2030, 211), (2130, 222)]);
}

/// At 440 ms a drop has been due since 433.167, but only one packet of 1000 bytes is queued behind:
/// no standing queue.
#[test]
fn a_packet_in_time_is_not_dropped_even_if_a_drop_is_due() {
    let mut codel = codel(false);
    fill(&mut codel, ms(0), 1..=46, 0);
    assert_eq!(drops_every_10_ms(&mut codel, 10, 390), FIRST);
    assert_eq!(drops_every_10_ms(&mut codel, 440, 450), []);
}

/// Behind packet 12, which departs with the first drop, one packet is left: the delay then counts
/// as below the target. More packets arrive at 112 ms, exceed the target from 120 ms on, and have
/// done so for an interval at 220 ms. One drop was made before, so the count starts at 1.
#[test]
fn the_packet_behind_the_first_drop_counts_too() {
    let mut codel = codel(false);
    fill(&mut codel, ms(0), 1..=13, 0);
    assert_eq!(drops_every_10_ms(&mut codel, 10, 110), [(110, 11)]);
    fill(&mut codel, ms(112), 14..=100, 0);
    assert_eq!(drops_every_10_ms(&mut codel, 120, 320), [(220, 23), (320, 34)]);
}

/// A delay below the target is good, the target itself is not (section 5.6).
#[test]
fn a_wait_of_just_the_target_is_too_long() {
    for (later, expected) in [(Duration::ZERO, vec![105]), (Duration::from_us(1), vec![])] {
        let mut codel = codel(false);
        let mut dropped = Vec::new();
        for step in 0..=10 {
            let (arrived, now) = (ms(10 * step) + later, ms(10 * step + 5));
            while codel.backlog().packets < PacketCount::new(4) {
                codel.enqueue(now, Meta { ip_len: 1000, ..Meta::default() }, &mut |_, _, _| {
                    panic!("the queue is not full")
                });
            }
            for packet in &mut codel.queue.packets {
                packet.arrived = arrived;
            }
            assert!(codel.dequeue(now, &mut |_, _, _| dropped.push(10 * step + 5)).is_some());
        }
        assert_eq!(dropped, expected);
    }
}

/// A queue emptied from outside, as FQ-CoDel does on overflow, starts a new interval.
#[test]
fn a_queue_that_was_emptied_from_outside_starts_afresh() {
    struct Outside(Vec<Meta>);
    impl ControlledQueue<Meta> for Outside {
        fn take(&mut self) -> Option<Meta> {
            self.0.pop()
        }
        fn backlog_bytes(&self) -> WireBytes {
            WireBytes::new(1000 * self.0.len() as u64)
        }
    }
    let settings = codel(false).settings;
    let (mut law, mut signals) = (ControlLaw::default(), Signals::default());
    let mut dropped = 0;
    let old = |count| Outside(vec![Meta { ip_len: 1000, ..Meta::default() }; count]);
    let mut at =
        |at, queue: &mut Outside| law.dequeue(&settings, ms(at), queue, &mut signals, &mut |_, _, _| dropped += 1);
    assert!(at(10, &mut old(9)).is_some());
    assert!(at(100, &mut old(0)).is_none());
    assert!(at(110, &mut old(9)).is_some());
    assert_eq!(dropped, 0, "above target since 110 ms, not since 10");
}

/// 1500 bytes take 32 cells, 1696 bytes: the largest packet. One of them queued behind causes no
/// drops; two behind are a standing queue. A packet has this size both when it is enqueued and when
/// it is dequeued.
#[test]
fn a_largest_packet_is_as_large_as_on_the_wire() {
    let atm = LinkLayer::new(8, Framing::Atm).expect("an overhead of 8 bytes");
    for (behind, expected) in [(1, 0), (2, 9)] {
        let mut codel = CoDel::new(&Config::default(), &atm).expect("a limit in packets");
        let mut dropped = 0;
        for step in 0..100_u64 {
            while codel.backlog().packets < PacketCount::new(behind + 1) {
                let packet = Meta { arrived: ms(step * 10), ip_len: 1500, ..Meta::default() };
                codel.enqueue(ms(step * 10 + 50), packet, &mut |_, _, _| panic!("the queue is not full"));
            }
            codel.dequeue(ms(step * 10 + 50), &mut |_, _, _| dropped += 1);
        }
        assert_eq!(dropped, expected, "{behind} behind");
    }
}

/// RFC 8289, sections 4.2 and 4.3; tc-codel(8).
#[test]
fn the_defaults_are_those_of_the_rfc() {
    let Config { target, interval, limit, ecn, largest, ce_threshold } = Config::default();
    assert_eq!(ce_threshold, None);
    assert_eq!((target, interval), (Duration::from_ms(5), Duration::from_ms(100)));
    assert_eq!((limit, ecn, largest), (Limit::Packets(PacketCount::new(1000)), false, ByteCount::new(1500)));
}

/// The second episode begins 1700 ms later: 433.167 + 16 * 100 = 2033.167 has passed at 2110 ms, so
/// the count starts at 1.
#[test]
fn an_episode_long_after_another_starts_afresh() {
    let mut codel = codel(false);
    fill(&mut codel, ms(0), 1..=100, 0);
    drops_every_10_ms(&mut codel, 10, 390);
    empty(&mut codel, ms(400));
    fill(&mut codel, ms(2000), 201..=300, 0);
    assert_eq!(drops_every_10_ms(&mut codel, 2010, 2210), [(2110, 211), (2210, 222)]);
}

/// Marks at the times at which `drops_come_faster_as_the_rfc_says` has drops. Each dequeue returns
/// one packet, marked or not.
#[test]
fn a_mark_replaces_a_drop() {
    let mut codel = codel(true);
    fill(&mut codel, ms(0), 1..=200, 2);
    let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
    let marked: Vec<u64> = (10..=430)
        .step_by(10)
        .filter(|&at| codel.dequeue(ms(at), &mut none).expect("a packet").ecn() == Meta::CE)
        .collect();
    assert_eq!(marked, FIRST.map(|(at, _)| at));
}

#[test]
fn a_sender_without_ecn_gets_drops() {
    let mut codel = codel(true);
    fill(&mut codel, ms(0), 1..=200, 0);
    assert_eq!(drops_every_10_ms(&mut codel, 10, 430), FIRST);
}

/// One packet of 1000 bytes is queued behind each departing one, never more than the 1500 of the
/// largest: no standing queue, however long each has waited. Two packets behind are one.
#[test]
fn a_backlog_of_one_largest_packet_causes_no_drops() {
    for (behind, expected) in [(1, 0), (2, 9)] {
        let mut codel = codel(false);
        let mut dropped = 0;
        for step in 0..100_u64 {
            while codel.backlog().packets < PacketCount::new(behind + 1) {
                // The packet arrived 50 ms ago.
                let packet = Meta { arrived: ms(step * 10), ip_len: 1000, ..Meta::default() };
                codel.enqueue(ms(step * 10 + 50), packet, &mut |_, _, _| panic!("the queue is not full"));
            }
            codel.dequeue(ms(step * 10 + 50), &mut |_, _, _| dropped += 1);
        }
        // The first drop is at 150 ms. The next packet has one behind it, so the delay counts as
        // below the target; it exceeds the target 10 ms later, for an interval at 260 ms, and so on
        // every 110 ms up to 1030.
        assert_eq!(dropped, expected, "{behind} behind");
    }
}

#[test]
fn a_packet_above_the_limit_and_a_full_queue_are_distinguished() {
    let limit = Limit::Bytes(ByteCount::new(100));
    let mut codel = CoDel::new(&Config { limit, ..Config::default() }, &plain()).expect("a limit in bytes");
    let mut dropped = Vec::new();
    for ip_len in [100, 101, 1] {
        let packet = Meta { ip_len, ..Meta::default() };
        codel.enqueue(ms(0), packet, &mut |_, packet: Meta, reason| dropped.push((packet.ip_len, reason)));
    }
    assert_eq!(dropped, [(101, DropReason::TooLarge), (1, DropReason::Tail)]);
    assert_eq!((codel.tally.too_large, codel.tally.tail), (1, 1));
    assert!(codel.dequeue(ms(0), &mut |_, _, _| {}).is_some());
    assert_eq!(codel.next_ready(ms(0)), None);
}

#[test]
fn a_full_queue_drops_what_arrives() {
    let limit = Limit::Packets(PacketCount::new(2));
    let mut codel = CoDel::new(&Config { limit, ..Config::default() }, &plain()).expect("a limit in packets");
    let mut dropped = Vec::new();
    for number in 0..3 {
        let packet = Meta { ip_id: number, ip_len: 40, ..Meta::default() };
        codel.enqueue(ms(0), packet, &mut |_, packet: Meta, reason| dropped.push((packet.ip_id, reason)));
    }
    assert_eq!(dropped, [(2, DropReason::Tail)]);
}

/// Packets of 1000 bytes that have waited for exactly 1 ms stay unmarked, those with a microsecond more are marked,
/// although the law is content and does not mark; senders without ECN are left alone.
#[test]
fn a_threshold_marks_by_delay_alone() {
    let ce_threshold = Some(CeThreshold { delay: Duration::from_ms(1), selector: Selector::ALL });
    let mut codel = CoDel::new(&Config { ce_threshold, ..Config::default() }, &plain()).expect("a limit in packets");
    let mut marked = |ecn: u8, wait_us: u64| {
        let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
        codel.enqueue(Instant::ZERO, Meta { ip_len: 1000, traffic_class: ecn, ..Meta::default() }, &mut none);
        let sent = codel.dequeue(Instant::ZERO + Duration::from_us(wait_us), &mut none).expect("a packet");
        sent.ecn() == Meta::CE
    };
    assert_eq!([1000, 1001].map(|wait| marked(Meta::ECT_0, wait)), [false, true]);
    assert_eq!([1000, 1001].map(|wait| marked(Meta::ECT_1, wait)), [false, true]);
    assert!(!marked(Meta::NOT_ECT, 5000));
    let mut counters = Vec::new();
    codel.counters(&mut |counter| counters.push((counter.name, counter.value)));
    assert!(counters.contains(&("ce_marked", 2)) && counters.contains(&("marked", 0)), "{counters:?}");
}

/// 0x01/0x03, the example of tc-fq_codel(8): ECT(1) whatever the code point. A value outside of its mask fits none.
#[test]
fn a_selector_tells_packets_by_their_traffic_class() {
    let ect1 = Selector { value: 0x01, mask: 0x03 };
    assert!([0x01, 0xb9].iter().all(|class| ect1.selects(*class)));
    assert!([0x00, 0x02, 0x03, 0xb8].iter().all(|class| !ect1.selects(*class)));
    assert!(Selector::ALL.selects(0xff));
    let delay = Duration::from_ms(1);
    let check = |value, mask| check_threshold(Some(CeThreshold { delay, selector: Selector { value, mask } }));
    assert_eq!(check(0x01, 0x03), Ok(()));
    assert_eq!(
        check(0x05, 0x03).expect_err("it is refused").to_string(),
        "a selector of 0x05/0x03: the value has bits that the mask leaves out, so no packet fits"
    );
}
