use std::num::NonZeroU32;

use lastmile_linklayer::preset;
use lastmile_packet::{FlowId, Meta};
use lastmile_units::Duration;

use super::*;

fn scheduler(config: &Config) -> FqPie<Meta> {
    FqPie::new(config, &Environment::new(preset::IP.link))
}

fn ms(count: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(count)
}

fn packet(now: Instant, flow: u32, ip_len: u16) -> Meta {
    Meta { flow: FlowId::new(flow), ip_len, arrived: now, ..Meta::default() }
}

fn send(scheduler: &mut FqPie<Meta>, count: usize) -> Vec<u32> {
    let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
    let sent = std::iter::from_fn(|| scheduler.dequeue(Instant::ZERO, &mut none));
    sent.take(count).map(|packet| packet.flow.index()).collect()
}

/// As in FQ-CoDel: two long queues take turns of a quantum, and a new flow goes first.
#[test]
fn sparse_flows_go_first() {
    let mut scheduler = scheduler(&Config::default());
    let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
    for _ in 0..10 {
        scheduler.enqueue(Instant::ZERO, packet(Instant::ZERO, 1, 1500), &mut none);
        scheduler.enqueue(Instant::ZERO, packet(Instant::ZERO, 2, 1500), &mut none);
    }
    assert_eq!(send(&mut scheduler, 3), [1, 2, 1]);
    scheduler.enqueue(Instant::ZERO, packet(Instant::ZERO, 3, 100), &mut none);
    assert_eq!(send(&mut scheduler, 3), [3, 2, 1]);
}

/// Three packets and 3000 bytes: the arriving packet that exceeds either is dropped.
#[test]
fn limits_are_for_packets_and_for_bytes() {
    let drops = |config: &Config, sizes: &[u16]| {
        let mut scheduler = scheduler(config);
        let mut reasons = Vec::new();
        for (flow, &size) in (1..).zip(sizes) {
            let mut sink = |_, _, reason| reasons.push((flow, reason));
            scheduler.enqueue(Instant::ZERO, packet(Instant::ZERO, flow, size), &mut sink);
        }
        reasons
    };
    let few = Config { limit: PacketCount::new(3), ..Config::default() };
    assert_eq!(drops(&few, &[100, 100, 100, 100]), [(4, DropReason::Tail)]);
    let small = Config { memory: ByteCount::new(3000), ..Config::default() };
    assert_eq!(drops(&small, &[3001, 1500, 1500, 1]), [(1, DropReason::TooLarge), (4, DropReason::Tail)]);
}

/// Serves a line of 12 Mbit/s, on which 1500 bytes take 1 ms, for `span` ms: flow 1 sends such a packet each `gap`,
/// flow 2 one each 20 ms. Returns by flow how many came and were dropped, and the mean wait in milliseconds, all of the
/// second half.
fn serve(config: &Config, span: u64, gap: Duration, ecn: u8) -> ([(u64, u64, f64); 2], u64) {
    let mut scheduler = scheduler(config);
    let (settled, end) = (ms(span / 2), ms(span));
    let (mut came, mut dropped, mut waits, mut sent) = ([0; 2], [0; 2], [0.0; 2], [0; 2]);
    let (mut next, mut next_send) = ([Instant::ZERO; 2], Instant::ZERO);
    while next_send < end {
        for (flow, gap) in [gap, Duration::from_ms(20)].into_iter().enumerate() {
            while next[flow] <= next_send {
                let late = next[flow] >= settled;
                came[flow] += u64::from(late);
                let arriving = Meta { traffic_class: ecn, ..packet(next[flow], flow as u32, 1500) };
                let mut sink = |_, packet: Meta, _| dropped[packet.flow.index() as usize] += u64::from(late);
                scheduler.enqueue(next[flow], arriving, &mut sink);
                next[flow] += gap;
            }
        }
        let departed = scheduler.dequeue(next_send, &mut |_, packet, _| panic!("{packet:?} dropped on departure"));
        if let Some(packet) = departed.filter(|_| next_send >= settled) {
            let flow = packet.flow.index() as usize;
            waits[flow] += next_send.since(packet.arrived).as_secs_f64() * 1e3;
            sent[flow] += 1;
        }
        next_send += Duration::from_ms(1);
    }
    ([0, 1].map(|flow| (came[flow], dropped[flow], waits[flow] / f64::from(sent[flow]))), scheduler.marked)
}

/// Flow 2 has a twentieth of the line, so flow 1 has 0.95 packets a millisecond and sends 1.25: 24 % are too many. Its
/// controller holds it at 15 ms; flow 2 waits for less than two packets, and loses none.
#[test]
fn a_flow_has_a_controller_of_its_own() {
    let ([greedy, sparse], marked) = serve(&Config::default(), 60_000, Duration::from_us(800), 0);
    let share = greedy.1 as f64 / greedy.0 as f64;
    assert!((share - 0.24).abs() < 0.004, "{share}");
    assert!((greedy.2 - 15.0).abs() < 0.7, "{} ms", greedy.2);
    assert!(sparse.1 == 0 && sparse.2 < 2.0, "{sparse:?}");
    assert_eq!(marked, 0);
}

/// Within half a second the probability of a flow that does not respond stays below one: from 10 % on it rises by 2 %
/// each 15 ms. With an `ecn_prob` of 100 % its packets are marked and none is dropped, with one of zero the other way
/// round.
#[test]
fn packets_are_marked_below_ecn_prob_and_dropped_above() {
    let control = Parameters { ecn: true, ..Parameters::default() };
    let gap = Duration::from_us(800);
    let at = |percent| {
        let ecn_prob = Ratio::from_percent(percent).expect("a share");
        let ([greedy, _], marked) = serve(&Config { control, ecn_prob, ..Config::default() }, 500, gap, Meta::ECT_0);
        (greedy.1 > 0, marked > 0)
    };
    assert_eq!(at(100), (false, true));
    assert_eq!(at(0), (true, false));
}

/// A bucket keeps its probability while it is empty; a flow with a queue of its own is forgotten, and so is its
/// probability.
#[test]
fn a_bucket_keeps_its_state_and_an_exact_flow_is_forgotten() {
    let buckets = FlowKeys::Buckets { count: NonZeroU32::MIN, seed: 1 };
    for (flows, kept) in [(buckets, true), (FlowKeys::Exact, false)] {
        let mut scheduler = scheduler(&Config { flows, ..Config::default() });
        for number in 0..400 {
            scheduler.enqueue(ms(number), packet(ms(number), 1, 1500), &mut |_, _, _| ());
            if number % 2 == 0 {
                scheduler.dequeue(ms(number), &mut |_, _, _| ());
            }
        }
        let queue = scheduler.flows.queue_of(1);
        let before = scheduler.flows.state(queue).control;
        assert_ne!(before, Control::default());
        while scheduler.dequeue(ms(400), &mut |_, _, _| ()).is_some() {}
        let queue = scheduler.flows.queue_of(1);
        assert_eq!(scheduler.flows.state(queue).control != Control::default(), kept);
    }
}
