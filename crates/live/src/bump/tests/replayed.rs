//! Replays compared with the runs that they stand for.

use lastmile_queueing::End;
use lastmile_queueing::compress::Compression;
use lastmile_queueing::line::impairments::{Chance, Distribution, Impairments, Jitter};
use lastmile_queueing::line::trace::{Step, Steps, Trace};
use lastmile_queueing::meter::tbf;
use lastmile_queueing::spec::Over;
use lastmile_units::{Ratio, WireBytes};

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

const SEED: u64 = 7;

fn recorded(up: Vec<Hop>, down: Vec<Hop>) -> Bump {
    let config = BumpConfig { up, down, mtu: u16::MAX, seed: SEED, hash_key: HashKey::default() };
    let mut bump = Bump::new(&config).unwrap();
    bump.record();
    bump
}

/// The hop of a middlebox with this queue.
fn wire(queue: &Spec) -> Vec<Hop> {
    vec![Hop { queue: queue.clone(), ..hop("shaper", None, "bridged-vcmux-fcs", Duration::ZERO, 0) }]
}

/// A middlebox with this queue up, and one of plenty down.
fn middlebox(queue: &Spec) -> Bump {
    recorded(wire(queue), wire(&Spec::fifo(1000)))
}

/// A middlebox before a line whose rate, delay and loss change with time. It compresses headers and delays
/// packets by chance. Behind it a slow backbone with a short queue loses some and duplicates some.
fn unsteady(queue: &Spec) -> Vec<Hop> {
    let step = |s, kbit, ms, percent| Step {
        at: Duration::from_s(s),
        rate: (kbit > 0).then(|| BitRate::from_kbit_per_s(kbit)),
        delay: Duration::from_ms(ms),
        loss: Ratio::from_percent(percent).unwrap(),
    };
    let steps = vec![step(0, 512, 3, 0), step(1, 128, 20, 10), step(2, 0, 20, 0), step(3, 1000, 3, 2)];
    let mut line = adsl(20_000);
    line.line.trace = Some(Trace::Steps(Arc::new(Steps::new(steps, Some(Duration::from_s(5))).unwrap())));
    line.line.compression = Compression::Rfc1144 { slots: 16 };
    let percent = |percent| Ratio::from_percent(percent).unwrap();
    let (spread, correlation) = (Duration::from_ms(2), percent(20));
    let jitter = Jitter { spread, correlation, distribution: Distribution::Uniform };
    line.line.impairments = Impairments { jitter: Some(jitter), ..Impairments::default() };
    let mut backbone = hop("backbone", Some(BitRate::from_kbit_per_s(450)), "ip", Duration::from_ms(7), 5_000);
    backbone.line.loss = percent(3);
    backbone.line.impairments.duplicate = Some(Chance::independent(percent(5)));
    [vec![hop("lan", Some(BitRate::from_mbit_per_s(100)), "ethernet", Duration::ZERO, 1_000_000)], wire(queue)]
        .into_iter()
        .flatten()
        .chain([line, backbone])
        .collect()
}

/// All hops at this time, of a replay of what the bump has recorded.
fn replayed(records: &[Record; 2], hops: [&[Hop]; 2], end: Instant) -> Vec<String> {
    let mut last = Vec::new();
    let look = &mut |states: States| {
        assert_eq!(states.at, end);
        last = all_words(&states);
    };
    replay(records, hops, (SEED, HashKey::default()), &[end], look).unwrap();
    last
}

fn ran(bump: &Bump, end: Instant) -> Vec<String> {
    all_words(&bump.states(end, Default::default()))
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

/// The states of all hops, and the delays over them.
fn all_words(states: &States) -> Vec<String> {
    let crossed = states.crossed.iter().map(|crossed| format!("{crossed:?}"));
    states.hops.iter().map(words).chain(crossed).collect()
}

/// The state of a hop, as text that has every count.
fn words(state: &HopState) -> String {
    let HopState { queued, wire_bits, line, queue_counters, .. } = state;
    let waits = [&state.waited, &state.acks_waited].into_iter().chain(&state.class_waited);
    let waits: Vec<String> = waits
        .map(|waits| format!("{} {:?} {:?}", waits.len(), waits.value_at_quantile(0.5), waits.value_at_quantile(1.0)))
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
        let bumps = queues.each_ref().map(|queue| {
            let mut bump = middlebox(queue);
            let _ = drive(&mut bump, &arrivals, &[]);
            bump
        });
        let records = bumps[0].records().unwrap();
        for (queue, bump) in queues.iter().zip(&bumps) {
            let (up, down) = (wire(queue), wire(&Spec::fifo(1000)));
            prop_assert_eq!(replayed(&records, [&up, &down], end), ran(bump, end));
        }
    }

    /// So it is over several hops, whatever changes with time or by chance there: the times are those of the run, and
    /// the draws those from its beginning.
    #[test]
    fn a_replay_over_several_hops_is_the_run_over_them(arrivals in arrivals(), limit in 1..20_u64) {
        let ways = [unsteady(&shaped(limit, sad())), path()];
        let end = arrivals.last().unwrap().0 + Duration::from_s(60);
        let bumps = ways.each_ref().map(|up| {
            let mut bump = recorded(up.clone(), vec![adsl(100_000)]);
            let _ = drive(&mut bump, &arrivals, &[]);
            bump
        });
        for (way, bump) in ways.iter().zip(&bumps) {
            let records = bumps[0].records().unwrap();
            prop_assert_eq!(replayed(&records, [way, &[adsl(100_000)]], end), ran(bump, end));
        }
    }
}

#[test]
fn packets_behind_the_last_look_are_left_out() {
    let mut bump = middlebox(&shaped(50, Spec::fifo(5)));
    let at = |ms| Instant::ZERO + Duration::from_ms(ms);
    let _ = drive(&mut bump, &[(at(10), packet(0, 100)), (at(20), packet(1, 100)), (at(30), packet(2, 100))], &[]);
    let hops = wire(&Spec::fifo(10));
    let mut seen = Vec::new();
    let look = &mut |states: States| seen.push(states.hops[0].line.transmitted.packets);
    let records = bump.records().unwrap();
    replay(&records, [&hops, &hops], (SEED, HashKey::default()), &[at(9), at(20), at(29)], look).unwrap();
    assert_eq!(seen, [0, 2, 2]);
    assert_eq!(records[0].packets(at(20)).count(), 2);
    assert_eq!(records[0].flows(at(0)).len(), 1);
}

/// A burst that overflows the queue of the line, and behind it that of a slower backbone.
#[test]
fn a_flow_has_the_drops_of_all_hops() {
    let backbone = hop("backbone", Some(BitRate::from_kbit_per_s(128)), "ip", Duration::ZERO, 5_000);
    let mut bump = recorded(vec![adsl(20_000), backbone], vec![adsl(100_000)]);
    let burst: Vec<_> = (0..60).map(|number| (Instant::ZERO, packet(number, 1000))).collect();
    let _ = drive(&mut bump, &burst, &[]);
    let (up, _) = bump.reports();
    let dropped: Vec<u64> = up.hops.iter().map(HopReport::dropped_packets).collect();
    assert!(dropped.iter().all(|count| *count > 0), "{dropped:?}");
    let (flows, largest) = bump.records().unwrap()[0].largest_flows(Instant::ZERO, 10, |_| true);
    assert_eq!((flows, largest.len()), (1, 1));
    assert_eq!((largest[0].packets, largest[0].bytes, largest[0].dropped), (60, 60_000, dropped.iter().sum()));
}
