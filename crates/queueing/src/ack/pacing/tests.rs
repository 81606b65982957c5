use lastmile_linklayer::{Framing, LinkLayer};
use lastmile_packet::Meta;
use lastmile_units::PacketCount;

use super::*;
use crate::ack::tests::counted;
use crate::{DropReason, Fifo, Overflow};

/// A byte a microsecond.
const RATE: BitRate = BitRate::from_mbit_per_s(8);

fn pacer(max_hold: Duration) -> AckPacing<Meta, Fifo<Meta>> {
    let environment = Environment::new(LinkLayer::new(0, Framing::None).expect("no overhead"));
    let config = Config { rate: RATE, max_hold, exempt: Match::Never };
    let queue = Fifo::in_packets(PacketCount::new(100), Overflow::Tail);
    let mut pacer = AckPacing::new(&config, &environment, queue).expect("a hold within its range");
    // Earlier acknowledgements of the flows.
    for flow in [1, 2] {
        pacer.enqueue(Instant::ZERO, ack(flow, 0), &mut none);
        assert_eq!(pacer.dequeue(Instant::ZERO, &mut none), Some(ack(flow, 0)), "the first takes no time");
    }
    pacer
}

fn ack(flow: u32, number: u32) -> Meta {
    let ack = SeqNumber::new(u32::MAX - 1000).add(number);
    let flow = FlowId::new(flow);
    Meta { flow, ack, window: 100, flags: TcpFlags::ACK, header_len: 40, ip_len: 40, ..Meta::default() }
}

fn none(_: Instant, packet: Meta, reason: DropReason) {
    panic!("{packet:?} dropped: {reason:?}");
}

fn us(us: u64) -> Instant {
    Instant::from_ps(us * 1_000_000)
}

fn send(pacer: &mut AckPacing<Meta, Fifo<Meta>>, at: Instant, packets: &[Meta]) {
    for packet in packets {
        pacer.enqueue(at, *packet, &mut none);
    }
}

/// The departing packets with their times in microseconds, each dequeued as soon as it is ready.
fn drain(pacer: &mut AckPacing<Meta, Fifo<Meta>>, mut now: Instant) -> Vec<(u64, Meta)> {
    let mut left = Vec::new();
    while let Some(ready) = pacer.next_ready(now) {
        now = now.max(ready);
        let packet = pacer.dequeue(now, &mut none).expect("it was promised");
        left.push((now.since(Instant::ZERO).as_us(), packet));
    }
    assert_eq!(pacer.backlog(), Backlog::default());
    left
}

const LONG: Duration = Duration::from_ms(500);

/// Each waits until the data released by the previous one has passed.
#[test]
fn bunched_acks_are_spaced_by_the_bytes_that_they_acknowledge() {
    let mut pacer = pacer(LONG);
    send(&mut pacer, us(100), &[ack(1, 1000), ack(1, 2000), ack(1, 5000), ack(1, 6000)]);
    assert_eq!(pacer.backlog().packets.as_u64(), 4);
    assert_eq!(pacer.backlog().bytes.as_u64(), 160);
    let left = drain(&mut pacer, us(100));
    assert_eq!(left, [(100, ack(1, 1000)), (1100, ack(1, 2000)), (2100, ack(1, 5000)), (5100, ack(1, 6000))]);
}

#[test]
fn acks_slower_than_the_rate_are_not_held_and_earn_no_burst() {
    let mut pacer = pacer(LONG);
    send(&mut pacer, us(0), &[ack(1, 1000)]);
    send(&mut pacer, us(1000), &[ack(1, 2000)]);
    assert_eq!(drain(&mut pacer, us(1000)).len(), 2);
    send(&mut pacer, us(90_000), &[ack(1, 3000), ack(1, 4000)]);
    assert_eq!(drain(&mut pacer, us(90_000)), [(90_000, ack(1, 3000)), (91_000, ack(1, 4000))]);
}

/// 3 bytes at 9 Mbit/s take 8/3 us. After 300 of them 800 us have passed, not 300 times a rounded
/// time.
#[test]
fn the_rate_is_exact_over_many_acks() {
    let mut pacer = pacer(LONG);
    pacer.clock.serialiser = Serialiser::new(BitRate::from_mbit_per_s(9));
    let burst: Vec<Meta> = (1..=100).map(|n| ack(1, 9 * n)).collect();
    send(&mut pacer, us(0), &burst);
    let (last, packet) = *drain(&mut pacer, us(0)).last().expect("a hundred");
    // 99 times 9 bytes, 8 us each.
    assert_eq!((last, packet), (792, ack(1, 900)));
}

#[test]
fn an_ack_without_new_bytes_takes_no_time_and_keeps_its_order() {
    let mut pacer = pacer(LONG);
    let update = Meta { window: 900, ..ack(1, 2000) };
    send(&mut pacer, us(0), &[ack(1, 1000), ack(1, 2000), ack(1, 2000), update, ack(1, 3000)]);
    // No ACK of flow 2 is held, so its duplicate departs at once.
    send(&mut pacer, us(0), &[ack(2, 0)]);
    let expected = [(0, ack(1, 1000)), (0, ack(2, 0)), (1000, ack(1, 2000)), (1000, ack(1, 2000)), (1000, update)];
    let left = drain(&mut pacer, us(0));
    assert_eq!((&left[..5], &left[5..]), (&expected[..], &[(2000, ack(1, 3000))][..]));
    // Two earlier ones made the flows known.
    assert_eq!(counted(&pacer), [("seen", 8), ("held", 4), ("paced", 4)]);
}

/// Data overtakes nothing, waits for nothing, and is charged: 2000 bytes held and 1000 of its own.
#[test]
fn data_releases_the_acks_of_its_flow_ahead_of_it() {
    let mut pacer = pacer(LONG);
    let data = Meta { ip_len: 1500, ..ack(1, 4000) };
    send(&mut pacer, us(0), &[ack(1, 1000), ack(1, 2000), ack(1, 3000), ack(2, 500), data, ack(1, 5000)]);
    let expected = [
        (0, ack(1, 1000)),
        (0, ack(1, 2000)),
        (0, ack(1, 3000)),
        (0, data),
        // Flow 2 has had no service, and so is first.
        (4000, ack(2, 500)),
        (4500, ack(1, 5000)),
    ];
    assert_eq!(drain(&mut pacer, us(0)), expected);
    let mut counts = Vec::new();
    pacer.counters(&mut |counter| counts.push((counter.name, counter.value)));
    for count in [("held", 4), ("flushed", 2), ("paced", 2), ("overdue", 0), ("passed_data", 1)] {
        assert!(counts.contains(&count), "{count:?} in {counts:?}");
    }
}

/// 10 000 bytes at once would take 10 ms: the second ACK departs after 3 ms, and at most 3 ms are
/// owed then.
#[test]
fn no_ack_is_held_longer_than_the_maximum() {
    let mut pacer = pacer(Duration::from_ms(3));
    send(&mut pacer, us(0), &[ack(1, 10_000), ack(1, 11_000)]);
    assert_eq!(drain(&mut pacer, us(0)), [(0, ack(1, 10_000)), (3000, ack(1, 11_000))]);
    send(&mut pacer, us(5000), &[ack(1, 12_000)]);
    // At 3 ms the debt was 0, as it had been limited to 3 ms at 0 ms, and the second ACK took 1 ms.
    assert_eq!(drain(&mut pacer, us(5000)), [(5000, ack(1, 12_000))]);
}

/// One flow acknowledges a segment at a time, the other four: the bytes are shared evenly, not the
/// ACKs.
#[test]
fn flows_share_the_rate_by_bytes() {
    let mut pacer = pacer(LONG);
    let many: Vec<Meta> = (1..=12).map(|n| ack(1, 1000 * n)).collect();
    send(&mut pacer, us(0), &many);
    send(&mut pacer, us(0), &[ack(2, 4000), ack(2, 8000)]);
    let mut bytes = [0; 2];
    for (at, packet) in drain(&mut pacer, us(0)) {
        let of = &mut bytes[packet.flow.index() as usize - 1];
        *of = packet.ack.distance_from(ack(1, 0).ack);
        // Until flow 2 has none left: never further apart than one ACK of each.
        if at < 12_000 {
            assert!(bytes[0].abs_diff(bytes[1]) <= 5000, "{bytes:?} at {at}");
        }
    }
    assert_eq!(bytes, [12_000, 8000]);
}

/// Twenty ACKs arrive at once, and each releases as many bytes as it acknowledges. At a bottleneck
/// of equal rate the queue holds at most the data released by one ACK; without the pacer it would
/// hold that of all twenty.
#[test]
fn the_bottleneck_behind_paced_acks_has_a_short_queue() {
    let peak = |arrivals: &[(u64, u64)]| {
        let (mut free_at, mut peak) = (0, 0);
        for &(at, bytes) in arrivals {
            free_at = at.max(free_at) + bytes;
            peak = peak.max(free_at - at);
        }
        peak
    };
    let burst: Vec<Meta> = (1..=20).map(|n| ack(1, 2920 * n)).collect();
    let mut pacer = pacer(LONG);
    send(&mut pacer, us(0), &burst);
    let paced: Vec<_> = drain(&mut pacer, us(0)).iter().map(|&(at, _)| (at, 2920)).collect();
    assert_eq!((peak(&paced), peak(&[(0, 2920); 20])), (2920, 58_400));
}

/// A late caller gets all ACKs that were due, and has cost no rate.
#[test]
fn overdue_acks_depart_at_the_next_dequeue() {
    let mut pacer = pacer(LONG);
    send(&mut pacer, us(0), &[ack(1, 1000), ack(1, 2000), ack(1, 3000), ack(1, 4000)]);
    let mut left = Vec::new();
    while pacer.next_ready(us(2500)).is_some_and(|ready| ready <= us(2500)) {
        left.extend(pacer.dequeue(us(2500), &mut none));
    }
    assert_eq!(left, [ack(1, 1000), ack(1, 2000), ack(1, 3000)]);
    assert_eq!(drain(&mut pacer, us(2500)), [(3000, ack(1, 4000))]);
}

/// A reused flow number: the bytes acknowledged by a SYN, or by an advance of more than any window,
/// are unknown.
#[test]
fn an_unknown_number_of_bytes_takes_no_time() {
    let mut pacer = pacer(LONG);
    let syn = Meta { flags: TcpFlags::ACK.with(TcpFlags::SYN), ..ack(1, 7_000_000) };
    send(&mut pacer, us(0), &[syn, ack(1, 7_000_000)]);
    send(&mut pacer, us(0), &[ack(2, (1 << 30) + 1), ack(2, (1 << 30) + 1001), ack(2, (1 << 30) + 2001)]);
    let times: Vec<u64> = drain(&mut pacer, us(0)).iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0, 0, 0, 0, 1000]);
}

#[test]
fn a_hold_is_above_zero_and_at_most_the_maximum_of_rfc_1122() {
    let environment = Environment::new(LinkLayer::new(0, Framing::None).expect("no overhead"));
    let new = |max_hold| {
        let queue: Fifo<Meta> = Fifo::in_packets(PacketCount::new(1), Overflow::Tail);
        AckPacing::new(&Config { rate: RATE, max_hold, exempt: Match::Never }, &environment, queue).is_some()
    };
    assert!(!new(Duration::ZERO) && new(Duration::from_ps(1)));
    assert!(new(LONG) && !new(LONG + Duration::from_ps(1)));
}

/// 1 ms each, and none is held longer than 3 ms: the fourth departs when both its turn and its
/// deadline come, those behind it at their deadline. The data of the last three is owed, at most 3
/// ms from then: 6 ms.
#[test]
fn an_ack_at_its_deadline_departs_and_its_bytes_are_owed() {
    let mut pacer = pacer(Duration::from_ms(3));
    send(&mut pacer, us(0), &[1, 2, 3, 4, 5, 6].map(|n| ack(1, 1000 * n)));
    let times: Vec<u64> = drain(&mut pacer, us(0)).iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0, 1000, 2000, 3000, 3000, 3000]);
    assert_eq!(counted(&pacer), [("seen", 8), ("held", 5), ("paced", 3), ("overdue", 2)]);
    send(&mut pacer, us(4000), &[ack(1, 7000)]);
    assert_eq!(drain(&mut pacer, us(4000)), [(6000, ack(1, 7000))]);
}

/// The first, of 4000 bytes, owes at most 3 ms. Flow 2 arrives at 1 ms without earlier service, so
/// it has the turn at 3 ms. But then flow 1 has been held for 3 ms, and departs despite its earlier
/// service; flow 2 has been held as long at 4 ms.
#[test]
fn the_oldest_departs_at_its_deadline_whichever_flow_has_the_turn() {
    let mut pacer = pacer(Duration::from_ms(3));
    send(&mut pacer, us(0), &[ack(1, 4000), ack(1, 5000)]);
    send(&mut pacer, us(1000), &[1, 2, 3].map(|n| ack(2, 1000 * n)));
    let expected =
        [(1000, ack(1, 4000)), (3000, ack(2, 1000)), (3000, ack(1, 5000)), (4000, ack(2, 2000)), (4000, ack(2, 3000))];
    assert_eq!(drain(&mut pacer, us(1000)), expected);
}

/// Flow 1 has acknowledged 10 000 bytes alone, one ACK each 2 ms, flow 2 nothing: that gives it no
/// right to 10 000 more.
#[test]
fn an_idle_flow_earns_no_credit_against_others() {
    let mut pacer = pacer(LONG);
    for n in 1..=10 {
        send(&mut pacer, us(u64::from(n) * 2000), &[ack(1, 1000 * n)]);
        assert_eq!(drain(&mut pacer, us(u64::from(n) * 2000)).len(), 1);
    }
    send(&mut pacer, us(30_000), &[11, 12, 13].map(|n| ack(1, 1000 * n)));
    send(&mut pacer, us(30_000), &[1, 2, 3].map(|n| ack(2, 1000 * n)));
    let flows: Vec<u32> = drain(&mut pacer, us(30_000)).iter().map(|(_, packet)| packet.flow.index()).collect();
    // Flow 1 departed at once; after it flow 2 has had less service, and then both are equal.
    assert_eq!(flows, [1, 2, 1, 2, 1, 2]);
}

/// Flow 2 arrives while flow 1 is being served: it begins at the tag that flow 1 has reached, 6000
/// bytes.
#[test]
fn a_new_flow_begins_at_the_virtual_time_of_the_others() {
    let mut pacer = pacer(LONG);
    let many: Vec<Meta> = (1..=10).map(|n| ack(1, 1000 * n)).collect();
    send(&mut pacer, us(0), &many);
    send(&mut pacer, us(5500), &[1, 2, 3].map(|n| ack(2, 1000 * n)));
    let left = drain(&mut pacer, us(5500));
    let order: Vec<(u64, u32)> = left.iter().map(|(at, packet)| (*at, packet.flow.index())).collect();
    assert_eq!(order[..6], [(5500, 1); 6], "due by 5.5 ms");
    let rest = [(6000, 2), (7000, 1), (8000, 2), (9000, 1), (10_000, 2), (11_000, 1), (12_000, 1)];
    assert_eq!(order[6..], rest);
}

/// 4000 bytes that departed at once count as flow 1's share, so flow 2 has 4000 before its next.
#[test]
fn bytes_that_departed_at_once_count_for_their_flow() {
    let mut pacer = pacer(LONG);
    send(&mut pacer, us(0), &[ack(1, 4000), ack(1, 5000)]);
    send(&mut pacer, us(0), &[1, 2, 3, 4].map(|n| ack(2, 1000 * n)));
    let left = drain(&mut pacer, us(0));
    assert_eq!(left.iter().map(|(_, packet)| packet.flow.index()).collect::<Vec<_>>(), [1, 2, 2, 2, 2, 1]);
}

/// 1 byte at 9 Mbit/s takes 888 888 ps and 8/9. The fraction of a picosecond counts for the next
/// byte, but not across a pause.
#[test]
fn a_pause_discards_the_fraction_of_a_picosecond() {
    let mut pacer = pacer(LONG);
    pacer.clock.serialiser = Serialiser::new(BitRate::from_mbit_per_s(9));
    let mut waits = Vec::new();
    for n in 1..=5 {
        let now = us(1000 * u64::from(n));
        send(&mut pacer, now, &[ack(1, 2 * n), ack(1, 2 * n + 1)]);
        assert!(pacer.dequeue(now, &mut none).is_some());
        waits.push(pacer.next_ready(now).expect("the second is held").since(now).as_ps());
        assert_eq!(drain(&mut pacer, now).len(), 1);
    }
    // The very first ACK acknowledges two bytes.
    assert_eq!(waits[1..], [waits[1]; 4]);
}

/// The reordered ACK takes no time, and does not make the next one acknowledge more: 1000 bytes, 1
/// ms.
#[test]
fn an_overtaken_ack_takes_no_time() {
    let mut pacer = pacer(LONG);
    send(&mut pacer, us(0), &[ack(1, 2000), ack(1, 1000)]);
    send(&mut pacer, us(0), &[ack(1, 3000), ack(1, 4000)]);
    let times: Vec<u64> = drain(&mut pacer, us(0)).iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0, 0, 2000, 3000]);
}

/// A signal describes the ACK behind it, and a congestion mark must not wait: neither overtakes
/// held ACKs.
#[test]
fn a_signal_and_a_marked_ack_release_the_acks_of_their_flow_ahead_of_them() {
    let mut list = lastmile_packet::AckList::EMPTY;
    assert!(list.push(1000, lastmile_packet::AckList::MAX_BYTES));
    let signal = Packet::signal(&ack(1, 4000), &list);
    let marked = Meta { traffic_class: Meta::CE, ..ack(1, 4000) };
    for urgent in [signal, marked] {
        let mut pacer = pacer(LONG);
        let acks = [ack(1, 1000), ack(1, 2000), ack(1, 2000), ack(1, 3000)];
        send(&mut pacer, us(0), &acks);
        send(&mut pacer, us(0), &[urgent]);
        assert_eq!(drain(&mut pacer, us(0)), [acks[0], acks[1], acks[2], acks[3], urgent].map(|packet| (0, packet)));
        let reason = if urgent == signal { "passed_not_tcp" } else { "passed_congestion_marked" };
        assert_eq!(counted(&pacer), [("seen", 6), ("held", 3), ("flushed", 3), (reason, 1)]);
    }
}

/// RFC 9293, section 3.1: without ACK the number has no meaning.
#[test]
fn a_reset_without_ack_acknowledges_nothing() {
    let mut pacer = pacer(LONG);
    let reset = Meta { flags: TcpFlags::RST, ..ack(1, 900_000) };
    send(&mut pacer, us(0), &[reset, ack(1, 1000), ack(1, 2000)]);
    assert_eq!(drain(&mut pacer, us(0)), [(0, reset), (0, ack(1, 1000)), (1000, ack(1, 2000))]);
}

/// The shaper below has sent a packet of 1000 bytes, and has the next one ready after 8 ms; a held
/// ACK joins it at 1 ms.
#[test]
fn held_acks_are_released_on_time_while_the_queue_below_is_not_ready() {
    let line = LinkLayer::new(0, Framing::None).expect("no overhead");
    let shaper = crate::meter::tbf::Config {
        rate: BitRate::from_mbit_per_s(1),
        burst: WireBytes::new(1000),
        peak: None,
        largest: ByteCount::new(1000),
        catch_up: Duration::ZERO,
    };
    let queue = Fifo::in_packets(PacketCount::new(100), Overflow::Tail);
    let queue = crate::meter::Tbf::new(&shaper, &line, queue).expect("a burst of one packet");
    let config = Config { rate: RATE, max_hold: LONG, exempt: Match::Never };
    let mut pacer = AckPacing::new(&config, &Environment::new(line), queue).expect("a hold within its range");
    let data = Meta { ip_len: 1000, ..ack(2, 0) };
    for packet in [data, data, ack(1, 0), ack(1, 1000), ack(1, 2000)] {
        pacer.enqueue(us(0), packet, &mut none);
    }
    assert_eq!(pacer.dequeue(us(0), &mut none), Some(data));
    assert_eq!(pacer.next_ready(us(0)), Some(us(1000)));
    assert_eq!(pacer.dequeue(us(1000), &mut none), None);
    assert_eq!(pacer.next_ready(us(1000)), Some(us(8000)));
}
