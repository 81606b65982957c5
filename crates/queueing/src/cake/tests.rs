use core::net::Ipv4Addr;

use lastmile_linklayer::Framing;
use lastmile_packet::{FlowAddresses, FlowId, IpAddresses, Meta, Protocol, SeqNumber, TcpFlags};

use super::*;
use crate::ack::cake::Mode;
use lastmile_units::BitRate;
use lastmile_units::Duration;

mod hash;
mod shaper;

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

/// tc-cake(8): `wash` clears all but the ECN bits, and the tin is that of the code point before.
#[test]
fn washed_packets_keep_their_tin_and_their_ecn_field() {
    let mut cake = build(&Config { wash: true, ..Config::default() });
    put(&mut cake, ms(0), Meta { traffic_class: 46 << 2 | 1, ..packet(1, 1500) });
    let sent = cake.dequeue(ms(0), &mut none).expect("it waits");
    assert_eq!((sent.traffic_class, count(&cake, "voice", "sent_packets")), (1, 1));
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

/// Four times the bytes that 12 Mbit/s carry in a second is 6 MB; at 100 ms it is less than 4 MiB. At 310 Mbit/s it is
/// 15.5 MB, at 1 Gbit/s 50 MB, beyond the maximum of a queue in Linux, at construction and after a change of the rate.
#[test]
fn memory_follows_from_rate_and_round_trip_time() {
    let memory =
        |bandwidth, rtt| Config { bandwidth, rtt: Duration::from_ms(rtt), ..Config::default() }.memory().as_u64();
    assert_eq!(memory(Some(RATE), 1000), 6_000_000);
    assert_eq!(memory(Some(RATE), 100), 4 << 20);
    assert_eq!(memory(None, 100), 10_240 * 1514);
    let [below, above] = [310, 1000].map(BitRate::from_mbit_per_s);
    assert_eq!([below, above].map(|rate| memory(Some(rate), 100)), [15_500_000, 10_240 * 1514]);
    let mut cake = build(&Config { bandwidth: Some(RATE), ..Config::default() });
    assert!(cake.set_rate(ms(0), above));
    assert_eq!(cake.memory, 10_240 * 1514);
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
