use lastmile_linklayer::Framing;
use lastmile_packet::Meta;
use lastmile_units::PacketCount;

use super::*;

/// A line without overhead: what is on the wire is the IP packet.
fn plain() -> LinkLayer {
    LinkLayer::new(0, Framing::None).expect("no overhead")
}

fn codel(ecn: bool) -> CoDel<Meta> {
    CoDel::new(&Config { ecn, ..Config::default() }, &plain()).expect("a limit in packets")
}

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(ms)
}

/// Packets of 1000 bytes that come at once, numbered on.
fn fill(codel: &mut CoDel<Meta>, at: Instant, numbers: core::ops::RangeInclusive<u16>, ecn: u8) {
    for number in numbers {
        let packet = Meta { arrived: at, ip_id: number, ip_len: 1000, traffic_class: ecn, ..Meta::default() };
        codel.enqueue(at, packet, &mut |_, _, _| panic!("there is room for all"));
    }
}

/// What happens at a dequeue every 10 ms, from `first` to `last` ms: (ms, number of a packet that is dropped).
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

/// Worked by the pseudo-code of RFC 8289, section 5. All packets came at 0. At 10 ms the first has waited more than 5 ms, so
/// the wait has been above target for an interval at 110 ms: packet 11 is dropped and 12 leaves, the next drop is due at
/// 210 ms, and packet k + 1 leaves at 10 k ms from then on.
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

/// The episode above made five drops and began with one. Upon the next, at 510 ms, 77 ms after a drop would have been due,
/// the count starts at 5 - 1 = 4: the second drop is due 100 / sqrt(4) = 50 ms later, the third 44.721 ms after that.
#[test]
fn an_episode_soon_after_another_goes_on_with_its_count() {
    let mut codel = codel(false);
    fill(&mut codel, ms(0), 1..=100, 0);
    drops_every_10_ms(&mut codel, 10, 390);
    empty(&mut codel, ms(400));
    fill(&mut codel, ms(400), 201..=300, 0);
    assert_eq!(drops_every_10_ms(&mut codel, 410, 610), [(510, 211), (560, 217), (610, 223)]);
}

/// The same 1700 ms later: 433.167 + 16 * 100 = 2033.167 has passed at 2110 ms, so the count starts at 1.
#[test]
fn an_episode_long_after_another_starts_afresh() {
    let mut codel = codel(false);
    fill(&mut codel, ms(0), 1..=100, 0);
    drops_every_10_ms(&mut codel, 10, 390);
    empty(&mut codel, ms(400));
    fill(&mut codel, ms(2000), 201..=300, 0);
    assert_eq!(drops_every_10_ms(&mut codel, 2010, 2210), [(2110, 211), (2210, 222)]);
}

/// The times of the trace above, with a mark where a drop was; each dequeue hands out one packet, marked or not.
#[test]
fn a_mark_takes_the_place_of_a_drop() {
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
fn a_sender_that_knows_no_marks_gets_drops_all_the_same() {
    let mut codel = codel(true);
    fill(&mut codel, ms(0), 1..=200, 0);
    assert_eq!(drops_every_10_ms(&mut codel, 10, 430), FIRST);
}

/// One packet of 1000 bytes waits behind each that leaves, never more than the 1500 of the largest: that is no standing
/// queue, however long each has waited. With two behind, it is one.
#[test]
fn a_backlog_of_one_largest_packet_is_left_alone() {
    for (behind, expected) in [(1, 0), (2, 9)] {
        let mut codel = codel(false);
        let mut dropped = 0;
        for step in 0..100_u64 {
            while codel.backlog().packets < PacketCount::new(behind + 1) {
                // It came 50 ms ago.
                let packet = Meta { arrived: ms(step * 10), ip_len: 1000, ..Meta::default() };
                codel.enqueue(ms(step * 10 + 50), packet, &mut |_, _, _| panic!("there is room"));
            }
            codel.dequeue(ms(step * 10 + 50), &mut |_, _, _| dropped += 1);
        }
        // The first is dropped at 150 ms. The next has one behind it, so the wait is not above target; it is again 10 ms
        // later, for an interval at 260 ms, and so on every 110 ms up to 1030.
        assert_eq!(dropped, expected, "{behind} behind");
    }
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
