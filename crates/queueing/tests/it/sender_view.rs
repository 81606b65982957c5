//! The sender's view behind a regulator: one that it could have had with some ACKs lost, and never
//! the last one.

use lastmile_packet::{Meta, Packet, Protocol, SackBlock, SeqNumber, TcpFlags};
use lastmile_queueing::ack::cake::{self, Mode};
use lastmile_queueing::ack::filter::{self, Fraction, Rules};
use lastmile_queueing::ack::sad::{Duplicates, Report};
use lastmile_queueing::ack::{clamp, collapsing, pacing, sad};
use lastmile_queueing::spec::{Over, Spec};
use lastmile_queueing::{DropReason, Limit, Match, Node, Overflow, fifo};
use lastmile_units::{BitRate, ByteCount, Duration, Instant, PacketCount};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::contract::atm;
use crate::traffic::{FLOWS, Op, Probe, Receivers, Step, ops};

const AMPLE: Limit = Limit::Packets(PacketCount::new(100_000));

fn sad(duplicates: Duplicates) -> Spec {
    let queue = Box::new(Spec::Fifo(fifo::Config { limit: AMPLE, drop: Overflow::Tail }));
    Spec::Sad(Over { config: sad::Config { duplicates, report: Report::None, exempt: Match::Never }, queue })
}

fn ack_filter(rules: Rules) -> Spec {
    Spec::AckFilter(filter::Config { limit: AMPLE, drop: Overflow::Tail, rules })
}

#[test]
fn sad_keeping_duplicates_only_ever_loses_acks() {
    hold(&sad(Duplicates::Keep));
}

#[test]
fn sad_counting_duplicates_only_ever_loses_acks() {
    hold(&sad(Duplicates::Count));
}

#[test]
fn the_ack_filter_only_ever_loses_acks() {
    hold(&ack_filter(Rules::default()));
}

#[test]
fn the_ack_filter_of_a_third_only_ever_loses_acks() {
    let fraction = Fraction::new(1, 3).expect("a third");
    hold(&ack_filter(Rules { fraction, ..Rules::default() }));
}

#[test]
fn the_ack_filter_by_number_alone_only_ever_loses_acks() {
    hold(&ack_filter(Rules { duplicates: filter::Duplicates::Remove, ..Rules::default() }));
}

#[test]
fn collapsing_only_ever_loses_acks() {
    hold(&Spec::AckCollapsing(collapsing::Config { limit: AMPLE, drop: Overflow::Tail, exempt: Match::Never }));
}

fn cake_ack_filter(mode: Mode) -> Spec {
    Spec::CakeAckFilter(cake::Config {
        limit: AMPLE,
        drop: Overflow::Tail,
        rules: cake::Rules { mode, exempt: Match::Never },
    })
}

#[test]
fn the_ack_filter_of_cake_only_ever_loses_acks() {
    hold_but_for_ecn(&cake_ack_filter(Mode::Normal));
}

#[test]
fn the_aggressive_ack_filter_of_cake_only_ever_loses_acks() {
    hold_but_for_ecn(&cake_ack_filter(Mode::Aggressive));
}

/// Pure ACKs may be lost.
fn hold(spec: &Spec) {
    hold_where(spec, Meta::is_pure_ack);
}

/// Pure ACKs may be lost, also those with ECE and CWR, but no change of these.
fn hold_but_for_ecn(spec: &Spec) {
    hold_where(spec, |meta| Meta { flags: meta.flags.without(ECN), ..*meta }.is_pure_ack());
}

const ECN: TcpFlags = TcpFlags::ECE.with(TcpFlags::CWR);

fn hold_where(spec: &Spec, may_go: fn(&Meta) -> bool) {
    each_flow(spec, &[], may_go, |arrived, left| check_flow(arrived, left, may_go));
}

/// Runs random traffic behind `first`, and compares arrivals and departures of each flow.
fn each_flow(
    spec: &Spec,
    first: &[Op],
    may_go: fn(&Meta) -> bool,
    check: impl Fn(&[Meta], &[Meta]) -> Result<(), TestCaseError>,
) {
    let config = Config { failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&ops(), |ops| {
        let ops = [first, &ops].concat();
        let (arrived, left) = run(spec.build(&atm()).expect("a tree that can be built"), &ops, may_go);
        for flow in 0..u32::from(FLOWS) {
            let of_flow = |seen: &[Meta]| -> Vec<Meta> {
                seen.iter().filter(|meta| meta.flow.index() == flow).copied().collect()
            };
            check(&of_flow(&arrived), &of_flow(&left))?;
        }
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

#[test]
fn pacing_changes_and_loses_nothing() {
    let config =
        pacing::Config { rate: BitRate::from_mbit_per_s(1), max_hold: Duration::from_ms(30), exempt: Match::Never };
    let queue = Box::new(Spec::Fifo(fifo::Config { limit: AMPLE, drop: Overflow::Tail }));
    each_flow(
        &Spec::AckPacing(Over { config, queue }),
        &[],
        |_| false,
        |arrived, left| {
            prop_assert_eq!(arrived, left);
            Ok(())
        },
    );
}

const TARGET: u16 = 1200;

/// Windows that the receiver sent, its SYN first, compared with those that the sender receives.
#[test]
fn a_clamped_window_is_one_that_a_receiver_could_have_advertised() {
    let target = clamp::Target::Window(ByteCount::new(u64::from(TARGET)));
    let config = clamp::Config { target, mss: ByteCount::new(500), exempt: Match::Never };
    let queue = Box::new(Spec::Fifo(fifo::Config { limit: AMPLE, drop: Overflow::Tail }));
    let syns: Vec<Op> = (0..FLOWS).map(|flow| Op::Enqueue { flow, step: Step::Flagged(TcpFlags::SYN) }).collect();
    each_flow(&Spec::WindowClamp(Over { config, queue }), &syns, |_| false, check_windows);
}

fn check_windows(arrived: &[Meta], left: &[Meta]) -> Result<(), TestCaseError> {
    prop_assert_eq!(arrived.len(), left.len());
    let mut highest: Option<SeqNumber> = None;
    let mut before: Option<(Meta, Meta)> = None;
    for (came, heard) in arrived.iter().zip(left) {
        prop_assert_eq!(Meta { window: came.window, ..*heard }, *came, "nothing but the window changes");
        if came.flags.contains(TcpFlags::RST) || came.protocol != Protocol::Tcp {
            prop_assert_eq!(came, heard);
            continue;
        }
        if came.flags.contains(TcpFlags::SYN) {
            (highest, before) = (None, None);
        }
        prop_assert!(heard.window <= came.window && heard.window >= came.window.min(TARGET));
        let edge = |meta: &Meta| meta.ack.add(u32::from(meta.window));
        if let Some(highest) = highest {
            let kept = edge(heard).at_or_after(highest) || edge(came) == edge(heard);
            prop_assert!(kept, "{:?} was promised and {:?} is left of {came:?}", highest, edge(heard));
        }
        highest = Some(highest.filter(|highest| highest.after(edge(heard))).unwrap_or(edge(heard)));
        // RFC 5681, section 2: a duplicate has the number and the window of the previous ACK.
        if let Some((came_before, heard_before)) = before
            && came_before.ack == came.ack
            && !came.options().has_unknown()
            && came.window != heard_before.window
        {
            prop_assert_eq!(came_before.window == came.window, heard_before.window == heard.window, "{:?}", came);
        }
        if before.is_none_or(|(before, _)| came.ack.at_or_after(before.ack)) {
            before = Some((*came, *heard));
        }
    }
    Ok(())
}

/// The arrivals, and the departures in their order.
fn run(mut discipline: Node<Probe>, ops: &[Op], may_go: fn(&Meta) -> bool) -> (Vec<Meta>, Vec<Meta>) {
    let mut now = Instant::ZERO;
    let mut receivers = Receivers::new();
    let (mut arrived, mut left) = (Vec::new(), Vec::new());
    let mut sink = |_, packet: Probe, reason: DropReason| {
        assert!(may_go(packet.meta()), "only a pure ACK is regulated, not {packet:?}");
        assert_ne!(reason, DropReason::Tail, "the queue has space for all");
    };
    for op in ops {
        match *op {
            Op::Enqueue { flow, step } => {
                let packet = receivers.step(now, flow, step);
                arrived.push(*packet.meta());
                discipline.enqueue(now, packet, &mut sink);
            }
            Op::Dequeue | Op::WaitUntilReady | Op::Wait(_) => {
                if let Op::Wait(span) = *op {
                    now += span;
                }
                left.extend(discipline.dequeue(now, &mut sink).map(|packet| *packet.meta()));
            }
        }
    }
    while let Some(ready) = discipline.next_ready(now) {
        now = now.max(ready);
        left.extend(discipline.dequeue(now, &mut sink).map(|packet| *packet.meta()));
    }
    (arrived, left)
}

fn check_flow(arrived: &[Meta], left: &[Meta], may_go: fn(&Meta) -> bool) -> Result<(), TestCaseError> {
    // A subsequence of unchanged packets: matching each with the first possible one finds it if
    // there is one.
    let mut rest = arrived.iter();
    for seen in left {
        let found = rest.any(|came| as_the_sender_sees(came) == as_the_sender_sees(seen));
        prop_assert!(found, "nothing like {seen:?} came, or it was overtaken");
    }
    // No endless wait: the last packet of the receiver departs.
    prop_assert_eq!(arrived.last().map(as_the_sender_sees), left.last().map(as_the_sender_sees));
    let acknowledges = |meta: &&Meta| meta.protocol == Protocol::Tcp;
    // An ACK without timestamps, which the sender drops, does not justify the loss of an acceptable
    // one.
    let stamped = |seen: &[Meta]| {
        let heard = seen.iter().filter(|meta| acknowledges(meta) && meta.options().timestamps().is_some());
        heard.map(|meta| meta.ack).next_back()
    };
    prop_assert_eq!(stamped(arrived), stamped(left));
    // Packets that are never merged always depart.
    let others = |seen: &[Meta]| seen.iter().filter(|meta| !may_go(meta)).count();
    prop_assert_eq!(others(arrived), others(left));
    // RFC 3168, section 6.1: ECE reports congestion, and its absence the receipt of CWR. A signal
    // to a regenerator does neither: the sender never receives it.
    let changes = |seen: &[Meta]| {
        let mut flags: Vec<_> = seen.iter().filter(acknowledges).map(|meta| meta.flags.bits() & ECN.bits()).collect();
        flags.dedup();
        flags
    };
    prop_assert_eq!(changes(arrived), changes(left));

    let Some(first) = arrived.iter().find(acknowledges) else { return Ok(()) };
    let highest =
        arrived.iter().filter(acknowledges).map(|meta| meta.ack.distance_from(first.ack)).fold(0, |high, d| {
            // A reordered ACK may be first: numbers before it are not large ones.
            if d < 1 << 31 { d.max(high) } else { high }
        });
    let highest = first.ack.add(highest);
    for came in arrived {
        for (index, block) in came.options().sack_blocks().enumerate() {
            let dsack = index == 0 && block.left.before(came.ack);
            let acknowledged = !dsack && block.right.at_or_before(highest);
            let reported = left.iter().any(|seen| seen.options().sack_blocks().any(|wider| covers(seen, wider, block)));
            prop_assert!(acknowledged || reported, "{block:?} of {came:?} was never reported");
        }
    }
    Ok(())
}

/// True when `wider`, alone or with the number of its ACK, reports all of `block`.
fn covers(seen: &Meta, wider: SackBlock, block: SackBlock) -> bool {
    let left = if block.left.before(seen.ack) { seen.ack } else { block.left };
    let whole = wider.left.at_or_before(block.left);
    (whole || (block.right.after(seen.ack) && wider.left.at_or_before(left))) && wider.right.at_or_after(block.right)
}

/// The header without the packet's own fields: time of arrival and IP identification.
fn as_the_sender_sees(meta: &Meta) -> Meta {
    Meta { arrived: Instant::ZERO, ip_id: 0, ..*meta }
}
