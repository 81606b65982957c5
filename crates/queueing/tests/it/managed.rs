//! AQM and fair queues under the contract: a line each.

use std::num::NonZeroU32;

use lastmile_packet::Meta;
use lastmile_queueing::DropReason::{Aqm, Head, Tail, TooLarge};
use lastmile_queueing::aqm::codel::{CeThreshold, Selector};
use lastmile_queueing::aqm::{codel, docsis_pie, dualpi2, pie, red};
use lastmile_queueing::fair::{FlowKeys, Per, fq_codel, fq_pie, sfq};
use lastmile_queueing::spec::Spec;
use lastmile_queueing::{Limit, Overflow};
use lastmile_units::{BitRate, ByteCount, CellCount, Duration, PacketCount, Ratio, WireBytes};

use crate::contract::{Promise, contract};

const PACKETS: Limit = Limit::Packets(PacketCount::new(10));
const BYTES: Limit = Limit::Bytes(ByteCount::new(4000));
const SMALL: Limit = Limit::Bytes(ByteCount::new(400));

/// Times as short as the queueing delays of random traffic.
fn codel(limit: Limit, ecn: bool) -> Spec {
    let (target, interval) = (Duration::from_ms(1), Duration::from_ms(5));
    let (largest, ce_threshold) = (ByteCount::new(300), None);
    Spec::Codel(codel::Config { target, interval, limit, ecn, largest, ce_threshold })
}

/// The threshold marks whatever has waited for longer than half the target.
const LATE: CeThreshold = CeThreshold { delay: Duration::from_us(500), selector: Selector::ALL };

contract!(codel_with_a_threshold, Promise::of(&[Tail, Aqm]).marks_congestion(), |line| {
    let Spec::Codel(config) = codel(PACKETS, false) else { unreachable!("it is CoDel") };
    Spec::Codel(codel::Config { ce_threshold: Some(LATE), ..config }).build(line)
});

contract!(codel_that_drops, Promise::of(&[Tail, Aqm]), |line| codel(PACKETS, false).build(line));
contract!(codel_that_marks, Promise::of(&[Tail, Aqm]).marks_congestion(), |line| codel(BYTES, true).build(line));
contract!(codel_too_small_for_some, Promise::of(&[Tail, TooLarge, Aqm]), |line| codel(SMALL, false).build(line));

/// A controller as quick as the waits of random traffic.
fn pie(limit: Limit, ecn: bool) -> Spec {
    let (target, period, max_burst) = (Duration::from_ms(1), Duration::from_us(500), Duration::ZERO);
    let (alpha, beta, largest) = (32, 32, ByteCount::new(100));
    let control = pie::Parameters { target, period, alpha, beta, max_burst, ecn, largest, seed: 1 };
    Spec::Pie(pie::Config { control, limit })
}

contract!(pie_that_drops, Promise::of(&[Tail, Aqm]), |line| pie(PACKETS, false).build(line));
contract!(pie_that_marks, Promise::of(&[Tail, Aqm]).marks_congestion(), |line| pie(BYTES, true).build(line));
contract!(pie_too_small_for_some, Promise::of(&[Tail, TooLarge, Aqm]), |line| pie(SMALL, false).build(line));

/// At 1 kbit/s a few packets are a long wait for a controller whose period is fixed.
fn docsis_pie(limit: Limit) -> Spec {
    Spec::DocsisPie(docsis_pie::Config::of(BitRate::from_kbit_per_s(1), limit))
}

contract!(docsis_pie_of_packets, Promise::of(&[Tail, Aqm]), |line| docsis_pie(PACKETS).build(line));
contract!(docsis_pie_of_bytes, Promise::of(&[Tail, Aqm]), |line| docsis_pie(BYTES).build(line));
contract!(docsis_pie_too_small_for_some, Promise::of(&[Tail, TooLarge, Aqm]), |line| docsis_pie(SMALL).build(line));

/// A controller as quick, and a step as short, as the waits of random traffic.
fn dualpi2(limit: Limit) -> Spec {
    let (target, period, step) = (Duration::from_ms(1), Duration::from_us(500), Duration::from_us(300));
    let (alpha, beta, largest) = (4096, 4096, ByteCount::new(100));
    let config = dualpi2::Config { target, period, alpha, beta, step, limit, largest, ..dualpi2::Config::default() };
    Spec::DualPi2(config)
}

/// Packets of a flow with other ECN fields wait in the other queue.
const DUAL: Promise = Promise::of(&[Tail, Aqm]).marks_congestion().by_class(queue_of);

fn queue_of(packet: &Meta) -> u8 {
    u8::from(matches!(packet.ecn(), Meta::ECT_1 | Meta::CE))
}

contract!(dualpi2_of_packets, DUAL, |line| dualpi2(PACKETS).build(line));
contract!(dualpi2_of_bytes, DUAL, |line| dualpi2(BYTES).build(line));
contract!(
    dualpi2_too_small_for_some,
    Promise::of(&[Tail, TooLarge, Aqm]).marks_congestion().by_class(queue_of),
    |line| dualpi2(SMALL).build(line)
);

/// Thresholds and a weight that random traffic crosses all the time.
fn red(thresholds: (Limit, Limit), limit: Limit, ecn: bool) -> Spec {
    let ((min, max), weight) = (thresholds, red::Weight::Share(Ratio::from_percent(30).expect("a share")));
    let probability = Ratio::from_percent(20).expect("a share");
    Spec::Red(red::Config { min, max, limit, weight, probability, ecn, hard_drop: ecn, ..red::Config::default() })
}

const FEW: (Limit, Limit) = (Limit::Packets(PacketCount::new(2)), Limit::Packets(PacketCount::new(5)));
const FEW_BYTES: (Limit, Limit) = (Limit::Bytes(ByteCount::new(100)), Limit::Bytes(ByteCount::new(300)));
const FEW_CELLS: (Limit, Limit) = (Limit::Cells(CellCount::new(3)), Limit::Cells(CellCount::new(9)));

contract!(red_that_drops, Promise::of(&[Tail, Aqm]), |line| red(FEW, PACKETS, false).build(line));
contract!(red_that_marks, Promise::of(&[Tail, Aqm]).marks_congestion(), |line| red(FEW_CELLS, BYTES, true).build(line));
contract!(red_too_small_for_some, Promise::of(&[Tail, TooLarge, Aqm]), |line| red(FEW_BYTES, SMALL, false).build(line));

fn sfq(flows: FlowKeys, perturb: Duration, drop: Overflow) -> Spec {
    let (limit, depth, quantum) = (PacketCount::new(12), PacketCount::new(5), WireBytes::new(300));
    Spec::Sfq(sfq::Config { flows, per: Per::Flow, quantum, perturb, limit, depth, drop })
}

contract!(sfq_of_flows, Promise::of(&[Tail]), |line| sfq(FlowKeys::Exact, Duration::ZERO, Overflow::Tail).build(line));
contract!(sfq_of_buckets, Promise::of(&[Head]), |line| sfq(THREE, Duration::ZERO, Overflow::Head).build(line));
contract!(sfq_perturbed, Promise::of(&[Tail]), |line| sfq(THREE, Duration::from_ms(2), Overflow::Tail).build(line));

fn sfq_of(per: Per) -> Spec {
    let Spec::Sfq(config) = sfq(THREE, Duration::from_ms(2), Overflow::Tail) else { unreachable!("it is SFQ") };
    Spec::Sfq(sfq::Config { per, ..config })
}

contract!(sfq_of_sources, Promise::of(&[Tail]), |line| sfq_of(Per::Source).build(line));
contract!(sfq_of_pairs_of_hosts, Promise::of(&[Tail]), |line| sfq_of(Per::Hosts).build(line));

fn fq_codel(flows: FlowKeys, memory: u64, ecn: bool) -> Spec {
    let (target, interval) = (Duration::from_ms(1), Duration::from_ms(5));
    let (limit, memory, quantum) = (PacketCount::new(20), ByteCount::new(memory), WireBytes::new(300));
    let (largest, per, ce_threshold) = (ByteCount::new(300), Per::Flow, Some(LATE).filter(|_| ecn));
    Spec::FqCodel(fq_codel::Config { flows, per, quantum, limit, memory, target, interval, ecn, largest, ce_threshold })
}

const THREE: FlowKeys = FlowKeys::Buckets { count: NonZeroU32::new(3).expect("three"), seed: 1 };

contract!(fq_codel_of_flows, Promise::of(&[Head, Aqm]).marks_congestion(), |line| {
    fq_codel(FlowKeys::Exact, 100_000, true).build(line)
});
contract!(fq_codel_of_buckets, Promise::of(&[Head, Aqm]), |line| fq_codel(THREE, 4000, false).build(line));
contract!(fq_codel_too_small_for_some, Promise::of(&[Head, TooLarge, Aqm]), |line| {
    fq_codel(FlowKeys::Exact, 400, false).build(line)
});

/// A controller as quick as that of PIE above.
fn fq_pie(flows: FlowKeys, per: Per, memory: u64, ecn: bool) -> Spec {
    let Spec::Pie(pie::Config { control, .. }) = pie(PACKETS, ecn) else { unreachable!("it is PIE") };
    let (limit, memory, quantum) = (PacketCount::new(20), ByteCount::new(memory), WireBytes::new(300));
    Spec::FqPie(fq_pie::Config { flows, per, quantum, limit, memory, control, ecn_prob: Ratio::ONE })
}

contract!(fq_pie_of_flows, Promise::of(&[Tail, Aqm]).marks_congestion(), |line| {
    fq_pie(FlowKeys::Exact, Per::Flow, 100_000, true).build(line)
});
contract!(fq_pie_of_buckets, Promise::of(&[Tail, Aqm]), |line| fq_pie(THREE, Per::Flow, 4000, false).build(line));
contract!(fq_pie_of_destinations, Promise::of(&[Tail, Aqm]), |line| {
    fq_pie(FlowKeys::Exact, Per::Destination, 4000, false).build(line)
});
contract!(fq_pie_too_small_for_some, Promise::of(&[Tail, TooLarge, Aqm]), |line| {
    fq_pie(FlowKeys::Exact, Per::Flow, 400, false).build(line)
});
