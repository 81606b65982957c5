use core::net::Ipv4Addr;

use lastmile_linklayer::Framing;
use lastmile_packet::{FlowAddresses, FlowId, IpAddresses, Meta, Protocol, SeqNumber, TcpFlags};

use super::*;

const RATE: BitRate = BitRate::from_mbit_per_s(12);

/// Flow 100 h + n goes from host h to a host of its own.
struct Homes;

impl FlowDirectory for Homes {
    fn addresses(&self, flow: FlowId) -> FlowAddresses {
        let source = Ipv4Addr::from_bits((10 << 24) + flow.index() / 100);
        let destination = Ipv4Addr::from_bits((172 << 24) + flow.index());
        FlowAddresses { ip: IpAddresses::V4 { source, destination }, source_port: 1, destination_port: 2 }
    }
}

fn environment(framing: Framing, overhead: i32) -> Environment {
    Environment::new(LinkLayer::new(overhead, framing).expect("an overhead")).with_flows(Arc::new(Homes))
}

fn build(config: &Config) -> Cake<Meta> {
    Cake::new(config, &environment(Framing::None, 0))
}

fn ms(count: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(count)
}

fn packet(flow: u32, bytes: u16) -> Meta {
    Meta { flow: FlowId::new(flow), protocol: Protocol::Udp, ip_len: bytes, header_len: 28, ..Meta::default() }
}

fn with_dscp(dscp: u8, packet: Meta) -> Meta {
    Meta { traffic_class: dscp << 2, ..packet }
}

fn none(_: Instant, packet: Meta, reason: DropReason) {
    panic!("{packet:?} dropped: {reason:?}");
}

fn put(cake: &mut Cake<Meta>, now: Instant, packet: Meta) {
    cake.enqueue(now, Meta { arrived: now, ..packet }, &mut none);
}

fn count(cake: &Cake<Meta>, tin: &str, wanted: &str) -> u64 {
    let mut found = None;
    cake.counters(&mut |counter| {
        if counter.path == format!("tins.{tin}") && counter.name == wanted {
            found = Some(counter.value);
        }
    });
    found.expect(wanted)
}

/// Keeps two packets of each of `flows` queued until `until`, dequeues at every ready time, and
/// returns the packets sent. Dropped packets are enqueued again.
fn keep_busy(cake: &mut Cake<Meta>, flows: &[Meta], until: Instant) -> Vec<(Instant, Meta)> {
    let mut now = Instant::ZERO;
    let mut sent = Vec::new();
    for &packet in flows {
        put(cake, now, packet);
        put(cake, now, packet);
    }
    while now < until {
        now = cake.next_ready(now).expect("the backlog is not empty").max(now);
        let mut again = Vec::new();
        let packet = cake.dequeue(now, &mut |_, packet: Meta, _| again.push(packet)).expect("it was promised");
        sent.push((now, packet));
        again.push(packet);
        for packet in again {
            cake.enqueue(now, Meta { arrived: now, ..packet }, &mut none);
        }
    }
    sent
}

fn bytes_of(sent: &[(Instant, Meta)], is: impl Fn(&Meta) -> bool) -> u64 {
    sent.iter().filter(|(_, packet)| is(packet)).map(|(_, packet)| u64::from(packet.ip_len)).sum()
}

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

/// Four tins with more to send than they get: bulk keeps 1/16, video 1/2, voice 1/4 of the rate;
/// best effort, whose threshold is the whole rate, gets the remaining 3/16.
#[test]
fn tins_have_their_thresholds_when_all_are_busy() {
    let mut cake = build(&Config { bandwidth: Some(RATE), diffserv: Diffserv::Four, ..Config::default() });
    let flows = [0, 8, 34, 46].map(|dscp| with_dscp(dscp, packet(u32::from(dscp), 1500)));
    let sent = keep_busy(&mut cake, &flows, ms(16_000));
    let whole = bytes_of(&sent, |_| true);
    for (dscp, sixteenths) in [(0, 3), (8, 1), (34, 8), (46, 4)] {
        let got = bytes_of(&sent, |packet| packet.dscp() == dscp);
        assert!(got.abs_diff(whole * sixteenths / 16) <= 2 * 1500, "{dscp}: {got} of {whole}");
    }
}

/// Unused capacity of a tin is available to others: voice next to best effort, which has the rest.
#[test]
fn a_tin_above_its_threshold_waits_for_those_below() {
    let mut cake = build(&Config { bandwidth: Some(RATE), ..Config::default() });
    let flows = [0, 46].map(|dscp| with_dscp(dscp, packet(u32::from(dscp), 1500)));
    let sent = keep_busy(&mut cake, &flows, ms(4000));
    let (voice, whole) = (bytes_of(&sent, |packet| packet.dscp() == 46), bytes_of(&sent, |_| true));
    assert!(voice.abs_diff(whole / 4) <= 2 * 1500, "{voice} of {whole}");
    // Alone it has everything: 4000 packets of 1 ms.
    let alone = keep_busy(&mut build(&Config { bandwidth: Some(RATE), ..Config::default() }), &flows[1..], ms(4000));
    assert!(alone.len() >= 4000);
}

/// Without a rate the weights are 1024, 64, 512 and 256.
#[test]
fn tins_share_by_weight_where_there_is_no_rate() {
    let mut cake = build(&Config { diffserv: Diffserv::Four, ..Config::default() });
    let flows = [0, 8, 34, 46].map(|dscp| with_dscp(dscp, packet(u32::from(dscp), 1000)));
    for &packet in &flows {
        for _ in 0..3000 {
            put(&mut cake, ms(0), packet);
        }
    }
    let mut sent = Vec::new();
    for _ in 0..4 * 1856 / 4 {
        sent.push((ms(0), cake.dequeue(ms(0), &mut none).expect("the backlog is not empty")));
    }
    for (dscp, share) in [(0, 1024), (8, 64), (34, 512), (46, 256)] {
        let packets = bytes_of(&sent, |packet| packet.dscp() == dscp) / 1000;
        assert!(packets.abs_diff(share) <= 3, "{dscp}: {packets} packets");
    }
}

/// Packets sent of host 1, with 16 flows, and of host 2, with one flow.
fn shares_of_hosts(isolation: Isolation) -> (u64, u64) {
    let config = Config { bandwidth: Some(RATE), isolation, diffserv: Diffserv::BestEffort, ..Config::default() };
    let flows: Vec<Meta> = (100..116).chain([200]).map(|flow| packet(flow, 1500)).collect();
    let sent = keep_busy(&mut build(&config), &flows, ms(10_000));
    let of = |host| bytes_of(&sent, |packet| packet.flow.index() / 100 == host) / 1500;
    (of(1), of(2))
}

#[test]
fn a_host_with_sixteen_flows_gets_no_more_than_a_host_with_one() {
    for isolation in [Isolation::DualSourceHost, Isolation::Triple, Isolation::SourceHost] {
        let (many, one) = shares_of_hosts(isolation);
        assert!(many.abs_diff(one) <= 20, "{isolation:?}: {many} and {one} packets of 10 000");
    }
    for isolation in [Isolation::Flows, Isolation::DualDestinationHost, Isolation::Hosts, Isolation::DestinationHost] {
        let (many, one) = shares_of_hosts(isolation);
        assert!(many.abs_diff(16 * one) <= 100, "{isolation:?}: {many} and {one} packets of 10 000");
    }
}

/// Four flows fill the line; a fifth sends 100 bytes every 20 ms, and waits at most for the packet
/// in transmission: 1 ms.
#[test]
fn a_sparse_flow_waits_for_one_packet() {
    let mut cake = build(&Config { bandwidth: Some(RATE), ..Config::default() });
    let mut now = Instant::ZERO;
    let mut ping = ms(20);
    for flow in 1..=4 {
        for _ in 0..20 {
            put(&mut cake, now, packet(flow, 1500));
        }
    }
    let mut pings = 0;
    while now < ms(2000) {
        let ready = cake.next_ready(now).expect("the backlog is not empty").max(now);
        if ping <= ready {
            put(&mut cake, ping.max(now), packet(9, 100));
            ping += Duration::from_ms(20);
            continue;
        }
        now = ready;
        let sent = cake.dequeue(now, &mut |_, _, _| {}).expect("it was promised");
        if sent.flow == FlowId::new(9) {
            pings += 1;
            assert!(now - sent.arrived <= Duration::from_ms(1), "{now:?}: {:?}", sent.arrived);
        } else {
            put(&mut cake, now, packet(sent.flow.index(), 1500));
        }
    }
    assert_eq!(pings, 100);
}

fn ack(flow: u32, number: u32) -> Meta {
    Meta {
        flow: FlowId::new(flow),
        ack: SeqNumber::new(number),
        flags: TcpFlags::ACK,
        ip_len: 40,
        header_len: 40,
        ..Meta::default()
    }
}

#[test]
fn newer_acks_replace_older_ones() {
    let left = |ack_filter| {
        let mut cake = build(&Config { ack_filter, ..Config::default() });
        for number in 1..=5 {
            cake.enqueue(ms(0), ack(1, number), &mut |_, _, reason| assert_eq!(reason, DropReason::AckFiltered));
        }
        let left: Vec<u32> = std::iter::from_fn(|| cake.dequeue(ms(0), &mut none)).map(|ack| ack.ack.raw()).collect();
        assert_eq!(count(&cake, "best-effort", "dropped_ack_filtered"), 5 - left.len() as u64);
        left
    };
    assert_eq!(left(None), [1, 2, 3, 4, 5]);
    assert_eq!(left(Some(Mode::Normal)), [4, 5]);
    assert_eq!(left(Some(Mode::Aggressive)), [5]);
}

/// 256 flows over 1024 queues: with a plain hash some share, with eight ways none.
#[test]
fn flows_have_queues_of_their_own_up_to_a_load_of_a_quarter() {
    for from in [0, 10_000, 1_000_000] {
        let mut cake = build(&Config { isolation: Isolation::Flows, ..Config::default() });
        let flows = from..from + 256;
        let plain: BTreeSet<u64> = flows.clone().map(|flow| isolation::mix(u64::from(flow)) % QUEUES as u64).collect();
        for flow in flows {
            put(&mut cake, ms(0), packet(flow, 100));
        }
        assert!(plain.len() < 256, "a plain hash would do as well");
        assert_eq!(count(&cake, "best-effort", "way_misses"), 256);
        assert_eq!(count(&cake, "best-effort", "way_collisions"), 0);
    }
}

/// Nine flows of one set: the ninth shares a queue. Once others are gone, it still keeps its order.
#[test]
fn a_flow_without_a_queue_of_its_own_keeps_its_order() {
    let mut cake = build(&Config { isolation: Isolation::Flows, ..Config::default() });
    let set = |flow: u32| isolation::mix(u64::from(flow)) as usize % QUEUES / 8;
    let flows: Vec<u32> = (0..).filter(|&flow| set(flow) == 7).take(9).collect();
    let numbered = |flow, number| Meta { ip_id: number, ..packet(flow, 1000) };
    for &flow in &flows {
        for number in 0..10 {
            put(&mut cake, ms(0), numbered(flow, number));
        }
    }
    assert_eq!(count(&cake, "best-effort", "way_collisions"), 1);
    let mut seen = Vec::new();
    let mut take = |cake: &mut Cake<Meta>, now| {
        let packet = cake.dequeue(now, &mut none)?;
        seen.push((packet.flow.index(), packet.ip_id));
        Some(())
    };
    // All but the shared queue are empty after 82 packets and the check that finds them so; their
    // time to decay passes.
    for _ in 0..88 {
        take(&mut cake, ms(0));
    }
    for number in 10..20 {
        put(&mut cake, ms(0), numbered(flows[8], number));
    }
    while take(&mut cake, ms(0)).is_some() {}
    let of_the_ninth: Vec<u16> = seen.iter().filter(|(flow, _)| *flow == flows[8]).map(|(_, number)| *number).collect();
    assert_eq!(of_the_ninth, (0..20).collect::<Vec<_>>());
}

/// Two flows with one first choice: the second takes the next way, and each later packet of it is
/// found there.
#[test]
fn packets_found_outside_their_first_choice_are_counted() {
    let mut cake = build(&Config { isolation: Isolation::Flows, ..Config::default() });
    let slot = |flow: u32| isolation::mix(u64::from(flow)) as usize % QUEUES;
    let second = (1..).find(|&flow| slot(flow) == slot(0)).expect("a hash");
    for (flow, hits) in [(0, 0), (second, 0), (0, 0), (second, 1), (0, 1), (second, 2)] {
        put(&mut cake, ms(0), packet(flow, 100));
        assert_eq!(count(&cake, "best-effort", "way_hits"), hits);
    }
    assert_eq!(count(&cake, "best-effort", "way_misses"), 2);
}

/// Nine flows of one set, of which the ninth shares. It stops sharing when its queue is empty. Two
/// milliseconds later the others still keep their queues, so that it searches again and collides
/// again.
#[test]
fn sharing_of_a_queue_ends_once_it_is_empty() {
    let mut cake = build(&Config { isolation: Isolation::Flows, ..Config::default() });
    let set = |flow: u32| isolation::mix(u64::from(flow)) as usize % QUEUES / 8;
    let flows: Vec<u32> = (0..).filter(|&flow| set(flow) == 7).take(9).collect();
    flows.iter().for_each(|&flow| put(&mut cake, ms(0), packet(flow, 100)));
    let reported = |cake: &Cake<Meta>| ["way_misses", "way_collisions"].map(|name| count(cake, "best-effort", name));
    assert_eq!(reported(&cake), [8, 1]);
    // A later packet of the guest is no other collision.
    put(&mut cake, ms(0), packet(flows[8], 100));
    assert_eq!(reported(&cake), [8, 1]);
    assert_eq!(std::iter::from_fn(|| cake.dequeue(ms(0), &mut none)).count(), 10);
    // The checks that find the queues empty run while another flow is served: one of another set.
    let other = (0..).find(|&flow| set(flow) == 8).expect("a hash");
    for _ in 0..20 {
        put(&mut cake, ms(1), packet(other, 1500));
        put(&mut cake, ms(1), packet(other, 1500));
        while cake.dequeue(ms(1), &mut none).is_some() {}
    }
    put(&mut cake, ms(2), packet(flows[8], 100));
    assert_eq!(reported(&cake), [9, 2]);
}

/// Best effort has the line for a second, then voice starts: of the next 400 packets it has its
/// quarter, and nothing for its absence.
#[test]
fn a_tin_earns_nothing_in_a_pause() {
    let mut cake = build(&Config { bandwidth: Some(RATE), ..Config::default() });
    let [best_effort, voice] = [0, 46].map(|dscp| with_dscp(dscp, packet(u32::from(dscp), 1500)));
    put(&mut cake, ms(0), voice);
    assert!(cake.dequeue(ms(0), &mut none).is_some());
    let (mut now, mut of_voice) = (ms(0), 0_u64);
    for number in 0..1400 {
        if number == 1000 {
            put(&mut cake, now, voice);
        }
        put(&mut cake, now, best_effort);
        now = cake.next_ready(now).expect("the backlog is not empty").max(now);
        let sent = cake.dequeue(now, &mut |_, _, _| {}).expect("it was promised");
        if sent.dscp() == 46 {
            of_voice += 1;
            put(&mut cake, now, voice);
        }
    }
    assert!(of_voice.abs_diff(100) <= 2, "{of_voice} packets of voice");
}

/// 20 000 bytes of memory: a flow of 40 packets of 1000 bytes loses its oldest, one of two packets
/// loses none.
#[test]
fn the_longest_queue_loses_packets_on_overflow() {
    let mut cake = build(&Config { memory: Some(ByteCount::new(20_000)), ..Config::default() });
    let mut dropped = Vec::new();
    let mut put = |cake: &mut Cake<Meta>, packet: Meta| {
        cake.enqueue(ms(0), packet, &mut |_, packet: Meta, reason| {
            dropped.push((packet.flow.index(), packet.ip_id, reason));
        });
    };
    put(&mut cake, packet(2, 1000));
    for number in 0..40 {
        put(&mut cake, Meta { ip_id: number, ..packet(1, 1000) });
    }
    put(&mut cake, packet(2, 1000));
    let expected: Vec<_> = (0..22).map(|number| (1, number, DropReason::Head)).collect();
    assert_eq!(dropped, expected);
    assert_eq!(cake.backlog().bytes, ByteCount::new(20_000));
}

/// ECN-capable senders get marks, others get drops; both equally often.
#[test]
fn congestion_is_signalled_by_marks_to_ecn_capable_senders() {
    let lost_and_marked = |ecn| {
        let mut cake = build(&Config { bandwidth: Some(RATE), ..Config::default() });
        for _ in 0..1000 {
            put(&mut cake, ms(0), Meta { traffic_class: ecn, ..packet(1, 1500) });
        }
        let mut now = ms(0);
        let mut marked = 0;
        while let Some(ready) = cake.next_ready(now) {
            now = ready;
            let packet = cake.dequeue(now, &mut |_, _, reason| assert_eq!(reason, DropReason::Aqm));
            marked += usize::from(packet.expect("it was promised").ecn() == Meta::CE);
        }
        assert_eq!(count(&cake, "best-effort", "marked"), marked as u64);
        (count(&cake, "best-effort", "dropped_aqm"), marked)
    };
    let (lost, marked) = lost_and_marked(0);
    assert!(lost > 20 && marked == 0);
    let (none_lost, marked) = lost_and_marked(2);
    assert!(none_lost == 0 && marked > 20);
}

/// Four times the bytes that 12 Mbit/s carry in a second is 6 MB; at 100 ms it is less than 4 MiB.
#[test]
fn memory_follows_from_rate_and_round_trip_time() {
    let memory =
        |bandwidth, rtt| Config { bandwidth, rtt: Duration::from_ms(rtt), ..Config::default() }.memory().as_u64();
    assert_eq!(memory(Some(RATE), 1000), 6_000_000);
    assert_eq!(memory(Some(RATE), 100), 4 << 20);
    assert_eq!(memory(None, 100), 10_240 * 1514);
}

#[test]
fn parameters_with_which_nothing_passes_are_refused() {
    let refused = |config: Config| config.check().expect_err("refused").to_string();
    let memory = Some(ByteCount::new(1499));
    let expected = "a memory of 1499 bytes does not hold the largest packet, which has 1500 bytes";
    assert_eq!(refused(Config { memory, ..Config::default() }), expected);
    assert!(refused(Config { rtt: Duration::ZERO, ..Config::default() }).starts_with("a round-trip time of"));
    assert_eq!(Config::default().check(), Ok(()));
}

/// At 20 Mbit/s a 4096th of a second is 610 bytes, at 1 Mbit/s 30 and at 100 Mbit/s 3051: but a
/// quantum is from 300 to 1514 bytes. A flow sends packets of 100 as long as some of its quantum is
/// left: 7, 3 and 16.
#[test]
fn a_turn_is_a_4096th_of_a_second() {
    for (mbit, packets) in [(20, 7), (1, 3), (100, 16)] {
        let (bandwidth, diffserv) = (Some(BitRate::from_mbit_per_s(mbit)), Diffserv::BestEffort);
        let mut cake = build(&Config { bandwidth, diffserv, ..Config::default() });
        for flow in [1, 2] {
            (0..50).for_each(|_| put(&mut cake, ms(0), packet(flow, 100)));
        }
        let mut now = ms(0);
        let mut turn = 0;
        while let Some(ready) = cake.next_ready(now) {
            now = ready;
            match cake.dequeue(now, &mut none) {
                Some(packet) if packet.flow == FlowId::new(1) => turn += 1,
                _ => break,
            }
        }
        assert_eq!(turn, packets, "{mbit} Mbit/s");
    }
}

/// 40, 576 and 1500 bytes are 1, 13 and 32 cells.
#[test]
fn a_tin_counts_packets_sent_and_dropped() {
    let (memory, diffserv) = (Some(ByteCount::new(3000)), Diffserv::BestEffort);
    let config = Config { memory, diffserv, ..Config::default() };
    let mut cake = Cake::new(&config, &environment(Framing::Atm, 8));
    let mut reasons = Vec::new();
    for size in [1500, 40, 576, 3001, 1500] {
        cake.enqueue(ms(0), packet(1, size), &mut |_, _, reason| reasons.push(reason));
    }
    assert_eq!(reasons, [DropReason::TooLarge, DropReason::Head]);
    assert_eq!(std::iter::from_fn(|| cake.dequeue(ms(0), &mut none)).count(), 3);
    let mut reported = Vec::new();
    cake.counters(&mut |counter| {
        if counter.value > 0 {
            reported.push(format!("{} {} {}", counter.path, counter.name, counter.value));
        }
    });
    let expected = [
        " dropped_too_large 1",
        "tins.best-effort sent_packets 3",
        "tins.best-effort sent_bytes 2116",
        "tins.best-effort sent_wire_bytes 2438",
        "tins.best-effort dropped_head 1",
        "tins.best-effort way_misses 1",
    ];
    assert_eq!(reported, expected);
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
        cake.next
    };
    let first = send(ms(0), 2);
    assert_eq!(first, ms(0) + byte);
    assert_eq!(send(first, 0), first + byte + Duration::from_ps(1));
    assert_eq!(send(ms(1000), 2), ms(1000) + byte);
    // A millisecond late.
    let late = ms(1001) + byte;
    assert_eq!(send(late, 1), late + byte);
}

/// Values at the limit are accepted.
#[test]
fn memory_for_one_packet_and_the_least_round_trip_time_are_enough() {
    let config = Config { memory: Some(ByteCount::new(1500)), rtt: Config::LEAST_RTT, ..Config::default() };
    assert_eq!(config.check(), Ok(()));
    let mut cake = build(&config);
    put(&mut cake, ms(0), packet(1, 1500));
    assert!(cake.dequeue(ms(0), &mut none).is_some());
    assert_eq!(cake.next_ready(ms(0)), None);
}

#[test]
fn seeds_give_other_random_numbers() {
    let first = |seed| build(&Config { seed, ..Config::default() }).shared.random.bits();
    assert_eq!(first(1), first(1));
    assert_ne!(first(1), first(2));
}

/// Sixteen flows of a host end, and one returns: it has half of the rate next to another host's,
/// and not a 17th.
#[test]
fn ended_flows_do_not_count_against_their_host() {
    let config = Config { bandwidth: Some(RATE), diffserv: Diffserv::BestEffort, ..Config::default() };
    let mut cake = build(&config);
    let mut now = ms(0);
    for round in 0..200 {
        for flow in 100..116 {
            put(&mut cake, now, packet(flow, 1500));
        }
        while let Some(ready) =
            cake.next_ready(now).filter(|_| round % 100 == 99 || cake.backlog().packets.as_u64() > 32)
        {
            now = ready.max(now);
            cake.dequeue(now, &mut |_, _, _| {});
        }
    }
    assert_eq!(cake.backlog().packets, PacketCount::ZERO);
    now += Duration::from_s(10);
    let mut sent = [0, 0];
    for flow in [100, 200, 100, 200] {
        put(&mut cake, now, packet(flow, 1500));
    }
    for _ in 0..2000 {
        now = cake.next_ready(now).expect("the backlog is not empty").max(now);
        let mut again = Vec::new();
        let left = cake.dequeue(now, &mut |_, packet: Meta, _| again.push(packet)).expect("it was promised");
        sent[usize::from(left.flow == FlowId::new(200))] += 1;
        again.push(left);
        for packet in again {
            put(&mut cake, now, packet);
        }
    }
    assert!(u32::abs_diff(sent[0], sent[1]) <= 20, "{sent:?}");
}
