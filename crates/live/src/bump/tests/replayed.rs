//! Replays compared with the runs that they stand for.

use lastmile_queueing::End;
use lastmile_queueing::meter::tbf;
use lastmile_queueing::spec::Over;
use lastmile_units::WireBytes;

use super::regulated::{ack, sad};
use super::*;
use crate::bump::replay::replay;

const RATE: BitRate = BitRate::from_kbit_per_s(512);

/// Shaped to 512 kbit/s: a class of what comes from port 7, one of all else.
fn shaped(limit: u64, acks: Spec) -> Spec {
    let class = |matches, queue| ClassSpec { matches, queue };
    let from = Match::Port(End::Source, 7..=7);
    let classes = vec![class(from, Spec::fifo(limit)), class(Match::Any, acks)];
    let config = tbf::Config {
        rate: RATE,
        burst: WireBytes::new(2000),
        peak: None,
        largest: ByteCount::new(1500),
        catch_up: Duration::ZERO,
    };
    Spec::Tbf(Over::new(config, Spec::Priority(priority::Config { classes })))
}

/// A middlebox with this queue up, and one of plenty down.
fn middlebox(queue: &Spec) -> Bump {
    let wire = |queue| Hop { queue, ..hop("shaper", None, "bridged-vcmux-fcs", Duration::ZERO, 0) };
    let config = BumpConfig {
        up: vec![wire(queue.clone())],
        down: vec![wire(Spec::fifo(1000))],
        mtu: u16::MAX,
        seed: 0,
        hash_key: HashKey::default(),
    };
    let mut bump = Bump::new(&config).unwrap();
    bump.record();
    bump
}

/// Bursts that overflow the queues, pauses that empty them, ACKs of three connections, and noise.
fn arrivals() -> impl Strategy<Value = Vec<(Instant, Vec<u8>)>> {
    let packet_of = prop_oneof![
        4 => (28..1501_u16).prop_map(|len| packet(0, len)),
        3 => (0..3_u16, 0..50_u32).prop_map(|(port, number)| ack(1000 + port, 1000 * number)),
        1 => prop::collection::vec(any::<u8>(), 1..80),
    ];
    prop::collection::vec((0..40_000_000_000_u64, packet_of), 1..120).prop_map(|steps| {
        let mut at = Instant::ZERO;
        let next = |(gap, bytes)| {
            at += Duration::from_ps(if gap < 30_000_000_000 { gap / 20 } else { gap * 5 });
            (at, bytes)
        };
        steps.into_iter().map(next).collect()
    })
}

/// The state of the hop up at the end, as text that has every count.
fn words(state: &HopState) -> String {
    let HopState { queued, wire_bits, line, queue_counters, .. } = state;
    let waits = [&state.waited, &state.acks_waited].into_iter().chain(&state.class_waited);
    let waits: Vec<String> = waits
        .map(|waits| {
            let recorded = waits.since(None);
            format!("{} {:?} {:?}", recorded.len(), recorded.value_at_quantile(0.5), recorded.value_at_quantile(1.0))
        })
        .collect();
    format!("{queued:?} {wire_bits} {line:?} {queue_counters:?} {waits:?} {:?}", state.class_queued)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// A record of a run with one queue, replayed through another, is the run with the other: every
    /// counter, every delay.
    #[test]
    fn a_replay_is_the_run_with_the_other_queue(arrivals in arrivals(), limit in 1..20_u64) {
        let queues = [shaped(50, Spec::fifo(5)), shaped(limit, sad())];
        let end = arrivals.last().unwrap().0 + Duration::from_s(60);
        let ran = queues.each_ref().map(|queue| {
            let mut bump = middlebox(queue);
            let _ = drive(&mut bump, &arrivals, &[]);
            bump
        });
        let records = ran[0].records().unwrap();
        for (queue, ran) in queues.iter().zip(&ran) {
            let layer = LinkLayer::from_name("bridged-vcmux-fcs").unwrap();
            let down = Spec::fifo(1000);
            let mut last = Vec::new();
            let look = &mut |at, states| {
                assert_eq!(at, end);
                last = states;
            };
            replay(&records, [(queue, layer), (&down, layer)], HashKey::default(), &[end], look).unwrap();
            prop_assert_eq!(words(&last[0]), words(&ran.states(end)[0]));
        }
    }
}

#[test]
fn packets_behind_the_last_look_are_left_out() {
    let mut bump = middlebox(&shaped(50, Spec::fifo(5)));
    let at = |ms| Instant::ZERO + Duration::from_ms(ms);
    let _ = drive(&mut bump, &[(at(10), packet(0, 100)), (at(20), packet(1, 100)), (at(30), packet(2, 100))], &[]);
    let (queue, layer) = (Spec::fifo(10), LinkLayer::from_name("ip").unwrap());
    let mut seen = Vec::new();
    let look = &mut |_, states: Vec<HopState>| seen.push(states[0].line.transmitted.packets);
    let records = bump.records().unwrap();
    replay(&records, [(&queue, layer), (&queue, layer)], HashKey::default(), &[at(9), at(20), at(29)], look).unwrap();
    assert_eq!(seen, [0, 2, 2]);
    assert_eq!(records[0].packets(at(20)).count(), 2);
    assert_eq!(records[0].flows(at(0)).len(), 1);
}
