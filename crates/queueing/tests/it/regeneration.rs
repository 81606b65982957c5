//! A Smart ACK Dropper and, behind the line, an ACK regenerator: the sender receives what it would
//! have received without them.

use lastmile_packet::{Meta, Packet, Protocol};
use lastmile_queueing::ack::regenerator::{Config, Factor, Know, Release};
use lastmile_queueing::ack::sad;
use lastmile_queueing::ack::sad::{Duplicates, Report};
use lastmile_queueing::spec::{Over, Spec};
use lastmile_queueing::{DropReason, DropSink, Match, Node};
use lastmile_units::{Duration, Instant};
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};

use crate::contract::atm;
use crate::traffic::{FLOWS, Op, Probe, Receivers, Step, ops};

/// The dropper and the regenerator.
struct Pair {
    dropper: Node<Probe>,
    regenerator: Node<Probe>,
    now: Instant,
    arrived: Vec<Meta>,
    left: Vec<Meta>,
    /// Number of ACKs that the dropper removed.
    suppressed: usize,
}

/// Accepts the drops of regulation only.
struct Regulation(usize);

impl DropSink<Probe> for Regulation {
    fn dropped(&mut self, _now: Instant, packet: Probe, reason: DropReason) {
        use DropReason::{AckDuplicate, AckMerged, AckSignal};
        assert!(matches!(reason, AckDuplicate | AckMerged | AckSignal), "{packet:?} dropped: {reason:?}");
        self.0 += usize::from(reason != AckSignal);
    }
}

impl Pair {
    fn new(duplicates: Duplicates, report: Report, config: Config) -> Self {
        let queue = || Box::new(Spec::fifo(1_000_000));
        let dropper =
            Spec::Sad(Over { config: sad::Config { duplicates, report, exempt: Match::Never }, queue: queue() });
        let regenerator = Spec::AckRegenerator(Over { config, queue: queue() });
        Self {
            dropper: dropper.build(&atm()).expect("a dropper"),
            regenerator: regenerator.build(&atm()).expect("a regenerator"),
            now: Instant::ZERO,
            arrived: Vec::new(),
            left: Vec::new(),
            suppressed: 0,
        }
    }

    fn run(&mut self, ops: &[Op]) {
        let mut receivers = Receivers::new();
        for op in ops {
            match *op {
                // The receivers' own lists and signals, which are removed: no other regulator
                // reports on this path.
                Op::Enqueue { step: Step::Listed(_) | Step::Signal(_), .. } => {}
                Op::Enqueue { flow, step } => {
                    let packet = receivers.step(self.now, flow, step);
                    self.arrived.push(*packet.meta());
                    let mut sink = Regulation(0);
                    self.dropper.enqueue(self.now, packet, &mut sink);
                    self.suppressed += sink.0;
                }
                Op::Dequeue | Op::WaitUntilReady => self.cross(),
                Op::Wait(span) => self.now += span,
            }
        }
        while self.dropper.next_ready(self.now).is_some() {
            self.cross();
        }
        while let Some(ready) = self.regenerator.next_ready(self.now) {
            self.now = self.now.max(ready);
            self.receive();
        }
    }

    /// One packet crosses the line.
    fn cross(&mut self) {
        let mut sink = Regulation(0);
        if let Some(packet) = self.dropper.dequeue(self.now, &mut sink) {
            self.regenerator.enqueue(self.now, packet, &mut sink);
        }
        self.receive();
    }

    fn receive(&mut self) {
        while let Some(packet) = self.regenerator.dequeue(self.now, &mut Regulation(0)) {
            self.left.push(*packet.meta());
        }
    }

    fn of_flow(seen: &[Meta], flow: u32) -> Vec<Meta> {
        seen.iter().filter(|meta| meta.flow.index() == flow).copied().collect()
    }
}

/// Runs random traffic of all flows through the pair, and compares arrivals with departures, flow
/// by flow.
fn hold(
    (duplicates, report, config): (Duplicates, Report, Config),
    check: impl Fn(&[Meta], &[Meta]) -> Result<(), TestCaseError>,
) {
    let cases = Cases { failure_persistence: None, ..Cases::default() };
    let outcome = TestRunner::new(cases).run(&ops(), |ops| {
        let mut pair = Pair::new(duplicates, report, config.clone());
        pair.run(&ops);
        for flow in 0..2 * u32::from(FLOWS) {
            check(&Pair::of_flow(&pair.arrived, flow), &Pair::of_flow(&pair.left, flow))?;
        }
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// Equal numbers in equal order; packets that are not restored from a number are unchanged.
fn same(arrived: &[Meta], left: &[Meta]) -> Result<(), TestCaseError> {
    let numbers = |seen: &[Meta]| seen.iter().map(|meta| (meta.ack, meta.seq, meta.ip_len)).collect::<Vec<_>>();
    prop_assert_eq!(numbers(left), numbers(arrived));
    for (came, left) in arrived.iter().zip(left) {
        if !came.is_pure_ack() || came.options().sack_count() > 0 {
            prop_assert_eq!(left, came);
        } else {
            let (before, after) = (came.options().timestamps(), left.options().timestamps());
            prop_assert_eq!(before.is_some(), after.is_some());
            prop_assert!(before <= after, "timestamps never go back");
        }
    }
    for pair in left.windows(2) {
        let stamps = pair.iter().filter_map(|meta| meta.options().timestamps()).collect::<Vec<_>>();
        prop_assert!(stamps.is_sorted(), "PAWS (RFC 7323, section 5) drops what goes back");
    }
    Ok(())
}

fn list() -> Config {
    Config::default()
}

fn signal() -> Config {
    Config { know: Know::Signal, ..Config::default() }
}

#[test]
fn with_lists_the_sender_receives_every_number_that_was_sent() {
    hold((Duplicates::Keep, Report::List, list()), same);
}

#[test]
fn with_lists_and_counted_duplicates_the_sender_receives_every_number_that_was_sent() {
    hold((Duplicates::Count, Report::List, list()), same);
}

#[test]
fn with_signals_the_sender_receives_every_number_that_was_sent() {
    hold((Duplicates::Keep, Report::Signal, signal()), same);
}

#[test]
fn with_signals_and_counted_duplicates_the_sender_receives_every_number_that_was_sent() {
    hold((Duplicates::Count, Report::Signal, signal()), same);
}

#[test]
fn spread_over_time_the_sender_receives_every_number_that_was_sent() {
    let release = Release::Paced { hold: Duration::from_ms(15) };
    hold((Duplicates::Count, Report::List, Config { release, ..list() }), same);
}

/// All packets of the receiver are there, in order, and between them only implied numbers: above
/// the previous number, below the next one.
#[test]
fn threefold_the_further_numbers_lie_strictly_between_those_that_were_sent() {
    let config = Config { factor: Factor::new(3, 1).expect("a factor"), ..list() };
    hold((Duplicates::Count, Report::List, config), |arrived, left| {
        let mut rest = left.iter();
        let mut previous: Option<&Meta> = None;
        for came in arrived {
            let mut between = Vec::new();
            let found = rest.by_ref().find(|seen| {
                let it = seen.ack == came.ack && seen.seq == came.seq && seen.ip_len == came.ip_len;
                if !it {
                    between.push(seen.ack);
                }
                it
            });
            prop_assert!(found.is_some(), "{came:?} never left");
            for number in between {
                let above = previous.is_some_and(|previous| number.after(previous.ack));
                prop_assert!(above && number.before(came.ack), "{number:?} was neither sent nor implied");
            }
            previous = Some(came);
        }
        prop_assert_eq!(rest.count(), 0);
        Ok(())
    });
}

/// Interpolation too invents no number above the newest, and restores no more than a full stream
/// had.
#[test]
fn interpolated_numbers_lie_between_those_that_came() {
    let config = Config { know: Know::Interpolate { stride: 1460 }, ..list() };
    hold((Duplicates::Keep, Report::None, config), |arrived, left| {
        let acks = |seen: &[Meta]| seen.iter().filter(|meta| meta.protocol == Protocol::Tcp).count();
        prop_assert!(acks(left) <= acks(arrived) + 3 * arrived.len());
        let others = |seen: &[Meta]| -> Vec<Meta> { seen.iter().filter(|meta| !meta.is_pure_ack()).copied().collect() };
        let kept = others(left);
        let mut came = others(arrived).into_iter();
        prop_assert!(kept.iter().all(|left| came.any(|came| came == *left)), "in order, as it came");
        let newest = |seen: &[Meta]| seen.last().map(|meta| meta.ack);
        prop_assert_eq!(newest(left), newest(arrived));
        Ok(())
    });
}

/// Lists matter only if ACKs are suppressed.
#[test]
fn random_traffic_does_get_suppressed_and_restored() {
    let steps = [Step::Advance(1), Step::Advance(2), Step::Duplicate, Step::Advance(1)];
    let ops: Vec<Op> = steps.iter().map(|step| Op::Enqueue { flow: 0, step: *step }).collect();
    for (report, config) in [(Report::List, list()), (Report::Signal, signal())] {
        let mut pair = Pair::new(Duplicates::Count, report, config);
        pair.run(&ops);
        assert_eq!((pair.suppressed, pair.left.len()), (3, 4));
        same(&pair.arrived, &pair.left).expect("as they came");
    }
}
