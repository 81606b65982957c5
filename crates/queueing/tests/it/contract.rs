//! The contract of a discipline as one property test. A discipline gets it in one line:
//!
//! ```ignore
//! contract!(fifo_in_packets, Promise::of(&[Tail]), |line| Spec::fifo(10).build(line));
//! ```
//!
//! Checked on every random sequence of arrivals, departures and waits:
//!
//! - conservation of packets and bytes;
//! - order within a flow (and class);
//! - the declared drop reasons and no other;
//! - work conservation or the rate;
//! - the times of `next_ready`, and that times do not go back;
//! - packets unchanged at departure, unless they are pure ACKs under regulation;
//! - new packets shown when they are made;
//! - counters that agree with the drops and sizes seen.

use std::collections::{BTreeMap, BTreeSet};

use lastmile_linklayer::{Framing, LinkLayer};
use lastmile_packet::{Meta, Packet};
use lastmile_queueing::{BuildError, DropReason, DropSink, Node};
use lastmile_units::{BitRate, Duration, Instant, WireBytes};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::traffic::{Op, Probe, Receivers, ops};

/// Properties of a discipline in addition to the common ones.
#[derive(Clone, Copy)]
pub(crate) struct Promise {
    reasons: &'static [DropReason],
    work_conserving: bool,
    rewrites_acks: bool,
    marks_congestion: bool,
    lowers_windows: bool,
    remarks: bool,
    creates: bool,
    names_exact_times: bool,
    pays_afterwards: bool,
    rate: Option<Rate>,
    class: fn(&Meta) -> u8,
}

/// Bounds of a shaper.
#[derive(Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) rate: BitRate,
    pub(crate) burst: WireBytes,
    /// True when the discipline sends at this rate whenever it is backlogged; false when another
    /// bound holds it below.
    pub(crate) reached: bool,
}

impl Promise {
    /// Work-conserving, leaves packets unchanged, and drops for these reasons only.
    pub(crate) const fn of(reasons: &'static [DropReason]) -> Self {
        Self {
            reasons,
            work_conserving: true,
            rewrites_acks: false,
            marks_congestion: false,
            lowers_windows: false,
            remarks: false,
            creates: false,
            names_exact_times: true,
            pays_afterwards: false,
            rate: None,
            class: |_| 0,
        }
    }

    /// Packets of ECN-capable senders may depart with a congestion mark.
    pub(crate) const fn marks_congestion(self) -> Self {
        Self { marks_congestion: true, ..self }
    }

    /// Pure ACKs may depart with newer values.
    pub(crate) const fn rewrites_acks(self) -> Self {
        Self { rewrites_acks: true, ..self }
    }

    /// Packets may depart with another code point or mark.
    pub(crate) const fn remarks(self) -> Self {
        Self { remarks: true, ..self }
    }

    /// TCP segments may depart with a lower window.
    pub(crate) const fn lowers_windows(self) -> Self {
        Self { lowers_windows: true, ..self }
    }

    /// Makes packets of its own, each before the one that it is made of.
    pub(crate) const fn creates(self) -> Self {
        Self { creates: true, ..self }
    }

    /// Delays packets to a rate.
    pub(crate) const fn shapes(self, rate: Rate) -> Self {
        Self { work_conserving: false, rate: Some(rate), ..self }
    }

    /// Waits after a packet until the line has carried it, not before it until there are tokens.
    pub(crate) const fn pays_afterwards(self) -> Self {
        Self { pays_afterwards: true, ..self }
    }

    /// Delays packets in some class: no single rate can be checked from outside.
    pub(crate) const fn waits(self) -> Self {
        Self { work_conserving: false, ..self }
    }

    /// Shapes an already shaped queue: only at the time it names does it learn whether a packet may
    /// depart.
    pub(crate) const fn names_times_too_early(self) -> Self {
        Self { names_exact_times: false, ..self }
    }

    /// Has classes: order holds within each.
    pub(crate) const fn by_class(self, class: fn(&Meta) -> u8) -> Self {
        Self { class, ..self }
    }
}

/// Defines the property test `$name` of the discipline that `$build` makes.
macro_rules! contract {
    ($name:ident, $promise:expr, $build:expr) => {
        #[test]
        fn $name() {
            $crate::contract::hold($promise, $build);
        }
    };
}
pub(crate) use contract;

/// Routed RFC 2684, VC-multiplexed: cells, and no overhead but the AAL5 trailer.
pub(crate) fn atm() -> LinkLayer {
    LinkLayer::new(8, Framing::Atm).expect("an overhead of 8 bytes")
}

/// Tests a discipline against its promise.
pub(crate) fn hold(promise: Promise, build: impl Fn(&LinkLayer) -> Result<Node<Probe>, BuildError>) {
    let config = Config { failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&ops(), |ops| {
        let mut trial = Trial::new(promise, build(&atm()).expect("a tree that can be built"));
        for op in ops {
            trial.step(op)?;
        }
        trial.drain()
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// One run of one discipline.
struct Trial {
    promise: Promise,
    discipline: Node<Probe>,
    receivers: Receivers,
    now: Instant,
    /// Packets that have arrived and neither departed nor been dropped, as they arrived.
    inside: BTreeMap<usize, Meta>,
    drops: Drops,
    dropped: BTreeMap<DropReason, u64>,
    /// IP bytes that arrived or were made, and those that departed or were dropped, with their
    /// sizes at those times.
    came_bytes: u64,
    gone_bytes: u64,
    /// The newest departed packet, by flow and class.
    left: BTreeMap<(u32, u8), usize>,
    departures: Vec<(Instant, WireBytes)>,
}

/// Collects drops and new packets until the trial checks them.
#[derive(Default)]
struct Drops {
    dropped: Vec<(Instant, Probe, DropReason)>,
    created: Vec<(Instant, usize, Meta)>,
}

impl DropSink<Probe> for Drops {
    fn dropped(&mut self, now: Instant, packet: Probe, reason: DropReason) {
        self.dropped.push((now, packet, reason));
    }

    fn created(&mut self, now: Instant, packet: &Probe) {
        self.created.push((now, packet.id, *packet.meta()));
    }
}

type Held = Result<(), TestCaseError>;

impl Trial {
    fn new(promise: Promise, discipline: Node<Probe>) -> Self {
        Self {
            promise,
            discipline,
            receivers: Receivers::new(),
            now: Instant::ZERO,
            inside: BTreeMap::new(),
            drops: Drops::default(),
            dropped: BTreeMap::new(),
            came_bytes: 0,
            gone_bytes: 0,
            left: BTreeMap::new(),
            departures: Vec::new(),
        }
    }

    fn step(&mut self, op: Op) -> Held {
        match op {
            Op::Enqueue { flow, step } => {
                let packet = self.receivers.step(self.now, flow, step);
                self.inside.insert(packet.id, *packet.meta());
                self.came_bytes += u64::from(packet.meta().ip_len);
                self.discipline.enqueue(self.now, packet, &mut self.drops);
            }
            Op::Dequeue => self.dequeue()?,
            Op::Wait(span) => self.now += span,
            Op::WaitUntilReady => {
                if let Some(ready) = self.discipline.next_ready(self.now) {
                    self.now = self.now.max(ready);
                    self.dequeue()?;
                }
            }
        }
        self.check()
    }

    /// Empties the discipline, dequeuing exactly at its ready times.
    fn drain(mut self) -> Held {
        let from = self.departures.len();
        for _ in 0..1000 {
            let Some(ready) = self.discipline.next_ready(self.now) else { break };
            self.now = self.now.max(ready);
            self.dequeue()?;
            self.check()?;
        }
        prop_assert!(self.inside.is_empty(), "{} packets never left", self.inside.len());
        prop_assert_eq!(self.discipline.next_ready(self.now), None, "an empty discipline is ready for nothing");
        self.check_rate(from)?;
        self.check_counters()
    }

    fn dequeue(&mut self) -> Held {
        let promised = self.discipline.next_ready(self.now);
        let drops_before = self.drops.dropped.len();
        let packet = self.discipline.dequeue(self.now, &mut self.drops);
        self.welcome()?;
        let after = self.discipline.next_ready(self.now);
        match (promised, &packet) {
            (Some(ready), Some(_)) => prop_assert!(ready <= self.now, "left at {:?}, before {ready:?}", self.now),
            (None, Some(_)) => prop_assert!(false, "a packet left that was not promised"),
            (Some(ready), None) if ready <= self.now => {
                let dropped_all =
                    self.discipline.backlog().packets.as_u64() == 0 && self.drops.dropped.len() > drops_before;
                let later = !self.promise.names_exact_times && after.is_some_and(|after| after > self.now);
                prop_assert!(dropped_all || later, "a packet was promised for {ready:?} and none came");
            }
            (ready, None) => prop_assert_eq!(after, ready, "asking early is harmless"),
        }
        if let Some(packet) = packet {
            self.departed(&packet)?;
        }
        Ok(())
    }

    fn departed(&mut self, packet: &Probe) -> Held {
        let before = self.inside.remove(&packet.id);
        prop_assert!(before.is_some(), "packet {} left twice, or after it was dropped", packet.id);
        let before = before.expect("just seen");
        let newest = self.left.insert((before.flow.index(), (self.promise.class)(&before)), packet.id);
        prop_assert!(newest.is_none_or(|newest| newest < packet.id), "{newest:?} left before {}", packet.id);
        self.gone_bytes += u64::from(packet.meta().ip_len);
        self.departures.push((self.now, atm().on_wire(packet.meta().ip_bytes())));

        self.unchanged(&before, packet.meta())
    }

    fn unchanged(&self, before: &Meta, after: &Meta) -> Held {
        let mut expected = *before;
        if self.promise.rewrites_acks
            && before.pure_ack().is_some()
            && let Some(after) = after.pure_ack()
        {
            expected.rewrite_ack(&after.fields());
        }
        if self.promise.marks_congestion && after.ecn() == Meta::CE {
            expected.mark_ce();
        }
        let mut expected = self.marked_as(expected, after);
        if self.promise.lowers_windows && after.window < before.window {
            expected.set_window(after.window);
        }
        prop_assert_eq!(*after, expected, "only what an ACK says may change, and only in a pure ACK");
        Ok(())
    }

    /// Adds created packets to those inside, as if they had been enqueued.
    fn welcome(&mut self) -> Held {
        for (at, id, meta) in std::mem::take(&mut self.drops.created) {
            prop_assert_eq!(at, self.now, "a packet is shown when it is made");
            prop_assert!(self.promise.creates, "{meta:?} came from nowhere");
            prop_assert!(self.inside.insert(id, meta).is_none(), "packet {id} was made twice");
            self.came_bytes += u64::from(meta.ip_len);
        }
        Ok(())
    }

    /// The arrived packet with the marks that it may have at departure.
    fn marked_as(&self, mut before: Meta, after: &Meta) -> Meta {
        if self.promise.remarks {
            before.set_dscp(after.dscp());
            before.mark = after.mark;
        }
        // A scheduler records its class.
        before.class = after.class;
        before
    }

    /// Properties that hold between any two calls.
    fn check(&mut self) -> Held {
        self.welcome()?;
        for (at, packet, reason) in std::mem::take(&mut self.drops.dropped) {
            prop_assert_eq!(at, self.now, "a drop happens when it is reported");
            prop_assert!(self.promise.reasons.contains(&reason), "{reason:?} was never declared");
            let before = self.inside.remove(&packet.id).map(|before| self.marked_as(before, packet.meta()));
            prop_assert!(before.is_some(), "packet {} is dropped twice, or after it left", packet.id);
            let before = before.expect("just seen");
            if self.promise.creates {
                self.unchanged(&before, packet.meta())?;
            } else {
                prop_assert_eq!(before, *packet.meta(), "a packet is dropped as it came");
            }
            self.gone_bytes += u64::from(packet.meta().ip_len);
            *self.dropped.entry(reason).or_default() += 1;
        }
        let backlog = self.discipline.backlog();
        prop_assert_eq!(backlog.packets.as_u64(), self.inside.len() as u64, "every packet is somewhere");
        let (mut grown, mut shrunk) = (0, 0);
        self.discipline.counters(&mut |counter| match counter.name {
            "grown_bytes" => grown += counter.value,
            "shrunk_bytes" => shrunk += counter.value,
            _ => {}
        });
        let bytes = self.came_bytes + grown - shrunk - self.gone_bytes;
        prop_assert_eq!(backlog.bytes.as_u64(), bytes, "every byte is somewhere");
        let ready = self.discipline.next_ready(self.now);
        prop_assert_eq!(ready.is_some(), !self.inside.is_empty(), "a backlog has a ready time");
        if self.promise.work_conserving {
            prop_assert!(ready.is_none_or(|ready| ready <= self.now), "an idle line while packets wait");
        }
        Ok(())
    }

    /// In every interval, at most the burst plus the rate's earnings. From `from` on, where the
    /// caller was on time and the discipline always backlogged, at least the rate's earnings. Both
    /// to within a picosecond, since times are whole ones.
    fn check_rate(&self, from: usize) -> Held {
        const PER_BIT: u128 = 1_000_000_000_000;
        const PICOSECOND: Duration = Duration::from_ps(1);
        let Some(Rate { rate, burst, reached }) = self.promise.rate else { return Ok(()) };
        let earned = |span: Duration| u128::from(rate.as_bps()) * u128::from(span.as_ps());
        for (first, &(start, _)) in self.departures.iter().enumerate() {
            let mut sent = 0;
            for &(end, size) in &self.departures[first..] {
                sent += u128::from(size.bits()) * PER_BIT;
                let most = u128::from(burst.bits()) * PER_BIT + earned(end.since(start) + PICOSECOND);
                prop_assert!(sent < most, "above the rate");
            }
        }
        if reached && let Some(&(start, _)) = self.departures.get(from) {
            let mut sent = 0;
            for pair in self.departures[from..].windows(2) {
                let [(_, before), (end, size)] = *pair else { unreachable!("windows of two") };
                let paid = if self.promise.pays_afterwards { before } else { size };
                sent += u128::from(paid.bits()) * PER_BIT;
                prop_assert!(sent + earned(PICOSECOND) > earned(end.since(start)), "below the rate");
            }
        }
        Ok(())
    }

    fn check_counters(&self) -> Held {
        let mut names = BTreeSet::new();
        let mut counted: BTreeMap<DropReason, u64> = BTreeMap::new();
        let mut twice = false;
        self.discipline.counters(&mut |counter| {
            twice |= !names.insert((counter.path.to_owned(), counter.kind, counter.name));
            for reason in DropReason::ALL {
                if counter.value > 0 && counter.name.strip_prefix("dropped_") == Some(reason.name()) {
                    *counted.entry(reason).or_default() += counter.value;
                }
            }
        });
        prop_assert!(!twice, "a counter has one name of its own: {names:?}");
        prop_assert_eq!(&counted, &self.dropped, "drops that were counted, and drops that happened");
        Ok(())
    }
}
