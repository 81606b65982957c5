//! Hierarchical fair service curves (HFSC): classes with real-time guarantees whose delay does not depend on their
//! rate, and a tree that shares the rest.
//!
//! Published: Stoica, Zhang, Ng, "A Hierarchical Fair Service Curve Algorithm for Link-Sharing, Real-Time and Priority
//! Service" (1997); sch_hfsc.c of Linux, from which the upper limit is; tc-hfsc(7).
//! Differs:
//!
//! - Sizes are bytes on the wire of the line, and curves are met exactly ([`curve`]).
//! - Real-time curves that the link could not keep together are refused; Linux accepts them.
//! - A packet that no rule matches goes to the default class, or to the last leaf; Linux drops it without a default.
//! - A class that becomes backlogged again never loses virtual time (`link_sharing`).
//! - A queue below may shape.
//!
//! Two criteria serve a leaf. The *real-time* criterion serves leaves whose guarantee is due, by their deadlines; while
//! none is eligible, the *link-sharing* criterion divides the link by the tree. Service by link sharing is not
//! charged to the guarantee, so that a class is not punished for using what others left. A packet that is served by
//! its deadline has departed by the deadline and the time of one largest packet (theorem 2).
//!
//! Cost: one classification a packet at enqueue; at dequeue the logarithm of the number of leaves for the real-time
//! criterion, and of the number of siblings on each level for link sharing.

pub mod curve;
mod link_sharing;
mod real_time;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{BitRate, Duration, Instant, WireBytes};

use self::curve::{Initial, Work};
use self::link_sharing::LinkSharing;
use self::real_time::RealTime;
use super::heap::Heap;
use super::htb::sum;
use super::proportion::Clock;
use super::tree::{Shape, Span, Tree, TreeError, TreeRules, Wrong};
use crate::catalogue::{Built, Mechanism};
use crate::classify::Packets;
use crate::discipline::Counter;
use crate::fair::sized::SizedQueue;
use crate::spec::{Problem, Shaper, Site, Spec};
use crate::{Backlog, Discipline, DropSink, Environment, Node};

pub use self::curve::ServiceCurve;

/// Parameters of HFSC: classes and rules. A packet that no rule matches goes to the default class, or without
/// one to the last leaf.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Classes and rules.
    pub tree: Tree<Share>,
}

/// The curves of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Share {
    /// Guarantee of a leaf, whatever others do (`rt`).
    pub real_time: Option<ServiceCurve>,
    /// Share among its siblings (`ls`). Classes above it need one too.
    pub link_share: Option<ServiceCurve>,
    /// The most that link sharing gives it (`ul`); the guarantee has no limit.
    pub upper_limit: Option<ServiceCurve>,
}

impl Config {
    /// Refuses a configuration that HFSC cannot keep.
    ///
    /// # Errors
    /// An invalid tree, a class without a curve, an inner class with a guarantee or without a share, an upper limit
    /// without a share, a first piece of no length.
    pub fn check(&self) -> Result<(), TreeError> {
        let shape = self.tree.shape()?;
        for (class, children) in self.tree.classes.iter().zip(&shape.children) {
            let Share { real_time, link_share, upper_limit } = class.share;
            let wrong = |wrong: Wrong| Err(wrong.with(&class.name));
            let is_empty =
                |curve: &ServiceCurve| curve.initial.is_some_and(|Initial { duration, .. }| duration.is_zero());
            if [real_time, link_share, upper_limit].iter().flatten().any(is_empty) {
                return wrong(Wrong::EmptyPiece);
            }
            if !children.is_empty() && real_time.is_some() {
                return wrong(Wrong::RealTimeOfInner);
            }
            if !children.is_empty() && link_share.is_none() {
                return wrong(Wrong::InnerWithoutShare);
            }
            if real_time.is_none() && link_share.is_none() {
                return wrong(Wrong::NoCurve);
            }
            if upper_limit.is_some() && link_share.is_none() {
                return wrong(Wrong::LimitWithoutShare);
            }
        }
        Ok(())
    }

    /// Gives the class on the link this rate as its upper limit, and every other curve is in proportion: its first
    /// piece has the same bytes. False: several classes are on the link, or that class has no straight upper limit.
    pub fn set_rate(&mut self, rate: BitRate) -> bool {
        let Some(whole) = self.whole() else { return false };
        let change = |curve: &mut ServiceCurve| curve.set_rate(whole, rate);
        for Share { real_time, link_share, upper_limit } in self.tree.classes.iter_mut().map(|class| &mut class.share) {
            [real_time, link_share, upper_limit].into_iter().flatten().for_each(change);
        }
        true
    }

    /// The upper limit of the one class on the link.
    fn whole(&self) -> Option<BitRate> {
        let limit = self.tree.classes[self.tree.root()?].share.upper_limit?;
        limit.initial.is_none().then_some(limit.rate)
    }

    fn plans(&self, shape: &Shape) -> Vec<link_sharing::Plan> {
        let positions = shape.positions();
        let plan = |number: &usize| {
            let Share { link_share, upper_limit, .. } = self.tree.classes[*number].share;
            let parent = shape.parents[*number].map(|parent| positions[parent]);
            link_sharing::Plan { parent, share: link_share, limit: upper_limit }
        };
        shape.order.iter().map(plan).collect()
    }
}

/// A leaf: its queue and counters.
struct Leaf<P> {
    sized: SizedQueue<P>,
    /// The number of the leaf in the configuration, and its position in the tree.
    number: usize,
    position: usize,
    is_active: bool,
    /// The backlog of the leaf at the last update; only this tree changes it.
    last_backlog: Backlog,
    sent: Sent,
}

/// Packets that a class has sent.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    packets: u64,
    bytes: u64,
    wire_bytes: u64,
    /// Packets that the real-time criterion served.
    real_time: u64,
}

impl Sent {
    fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.wire_bytes += other.wire_bytes;
        self.real_time += other.real_time;
    }
}

/// HFSC: the rules of its tree lead packets to its leaves; any other goes to the last leaf.
pub struct Hfsc<P: Packet> {
    leaves: Vec<Leaf<P>>,
    /// By number in the configuration: its leaf.
    by_number: Vec<Option<u32>>,
    /// By position in the tree: its leaf.
    by_position: Vec<u32>,
    /// By number in the configuration: its parent.
    parents: Vec<Option<usize>>,
    real_time: RealTime,
    link_sharing: LinkSharing,
    /// The upper limit of the class on the link, if there is one alone.
    whole: Option<BitRate>,
    /// The time of the curves; that of the clock until the rate changes.
    clock: Option<Clock>,
    /// Leaves whose own queue lets nothing depart yet.
    wakes: Heap<Instant>,
    rules: TreeRules,
    link_layer: LinkLayer,
    backlog: Backlog,
}

impl<P: Packet> Hfsc<P> {
    /// The HFSC of this configuration.
    ///
    /// `queues` are those of the leaves, in the order of [`Tree::classes`].
    ///
    /// # Errors
    /// As [`Config::check`].
    pub fn new(config: &Config, queues: Vec<Node<P>>, environment: &Environment) -> Result<Self, TreeError> {
        config.check()?;
        let shape = config.tree.shape()?;
        let rules = config.tree.rules(&shape, environment);
        let link_layer = &environment.link_layer;
        let positions = shape.positions();
        let numbers = (0..config.tree.classes.len()).filter(|number| shape.children[*number].is_empty());
        let leaf = |(number, queue): (usize, Node<P>)| Leaf {
            last_backlog: queue.backlog(),
            sized: SizedQueue::new(queue),
            number,
            position: positions[number],
            is_active: false,
            sent: Sent::default(),
        };
        let leaves: Vec<Leaf<P>> = numbers.zip(queues).map(leaf).collect();
        let (mut by_number, mut by_position) = (vec![None; positions.len()], vec![0; positions.len()]);
        for (index, leaf) in leaves.iter().enumerate() {
            by_number[leaf.number] = Some(index as u32);
            by_position[leaf.position] = index as u32;
        }
        let curves: Vec<_> = leaves.iter().map(|leaf| config.tree.classes[leaf.number].share.real_time).collect();
        Ok(Self {
            real_time: RealTime::new(&curves),
            link_sharing: LinkSharing::new(&config.plans(&shape)),
            whole: config.whole(),
            clock: None,
            wakes: Heap::new(leaves.len()),
            leaves,
            by_number,
            by_position,
            parents: shape.parents,
            rules,
            link_layer: *link_layer,
            backlog: Backlog::default(),
        })
    }

    /// The time of the curves at `now`.
    #[inline]
    fn time(&self, now: Instant) -> Instant {
        self.clock.map_or(now, |clock| clock.at(now))
    }

    /// Updates the backlog, and the state of a leaf whose queue has changed without sending.
    fn settle(&mut self, index: usize, now: Instant) {
        let next = self.next_size(index, now);
        let now = self.time(now);
        let leaf = &mut self.leaves[index];
        let was_active = leaf.is_active;
        leaf.is_active = next.is_some();
        let position = leaf.position;
        match (was_active, next) {
            (false, Some(size)) => {
                self.real_time.activate(index, now, size);
                self.link_sharing.activate(position, now);
            }
            (true, Some(size)) => self.real_time.next_packet(index, size),
            (true, None) => {
                self.real_time.deactivate(index);
                self.link_sharing.sent(position, now, Work::ZERO, true);
            }
            (false, None) => {}
        }
    }

    /// Updates the backlog. Returns the size of the packet that a leaf has ready, if any.
    #[inline]
    fn next_size(&mut self, index: usize, now: Instant) -> Option<WireBytes> {
        let leaf = &mut self.leaves[index];
        let (backlog, ready) = leaf.sized.queue.standing(now);
        let before = core::mem::replace(&mut leaf.last_backlog, backlog);
        self.backlog.packets = self.backlog.packets + backlog.packets - before.packets;
        self.backlog.bytes = self.backlog.bytes + backlog.bytes - before.bytes;
        match ready {
            Some(ready) if ready > now => {
                self.wakes.set(index, ready);
                None
            }
            other => {
                self.wakes.cancel(index);
                other.map(|_| self.leaves[index].sized.next_size())
            }
        }
    }

    /// Dequeues from a leaf. `None`: its queue dropped what it had.
    fn serve(&mut self, index: usize, now: Instant, is_real_time: bool, drops: &mut dyn DropSink<P>) -> Option<P> {
        let leaf = &mut self.leaves[index];
        let Some((packet, size)) = leaf.sized.dequeue(now, &self.link_layer, drops) else {
            self.settle(index, now);
            return None;
        };
        leaf.sent.add(&Sent {
            packets: 1,
            bytes: packet.meta().ip_bytes().as_u64(),
            wire_bytes: size.as_u64(),
            real_time: is_real_time.into(),
        });
        let next = self.next_size(index, now);
        let now = self.time(now);
        let leaf = &mut self.leaves[index];
        leaf.is_active = next.is_some();
        self.link_sharing.sent(leaf.position, now, Work::of(size), next.is_none());
        if is_real_time {
            self.real_time.sent(index, now, size, next);
        }
        match next {
            Some(next) if !is_real_time => self.real_time.next_packet(index, next),
            Some(_) => {}
            None => self.real_time.deactivate(index),
        }
        Some(packet)
    }
}

impl<P: Packet> Discipline<P> for Hfsc<P> {
    fn enqueue(&mut self, now: Instant, mut packet: P, drops: &mut dyn DropSink<P>) {
        let class = self.rules.classify(now, &packet);
        let index = class.and_then(|class| self.by_number[class]).map_or(self.leaves.len() - 1, |index| index as usize);
        let leaf = &mut self.leaves[index];
        packet.meta_mut().join_class(leaf.number);
        leaf.sized.enqueue(now, packet, &self.link_layer, drops);
        self.settle(index, now);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        while let Some(index) = self.wakes.due(now) {
            self.settle(index, now);
        }
        let time = self.time(now);
        loop {
            let (index, is_real_time) = match self.real_time.next(time) {
                Some(index) => (index, true),
                None => (self.by_position[self.link_sharing.next(time)?] as usize, false),
            };
            if let Some(packet) = self.serve(index, now, is_real_time, drops) {
                return Some(packet);
            }
        }
    }

    /// The time of the next event, at which a class may be held back by its upper limit if its own queue shapes.
    fn next_ready(&self, now: Instant) -> Option<Instant> {
        let time = self.time(now);
        let due = [self.real_time.first(time), self.link_sharing.first(time)].into_iter().flatten().min();
        let due = due.map(|due| self.clock.map_or(due, |clock| clock.when(due)));
        due.into_iter().chain(self.wakes.first()).min()
    }

    /// The curves of all classes follow in proportion; the first piece of a curve has the same bytes.
    fn set_rate(&mut self, now: Instant, rate: BitRate) -> bool {
        let Some(whole) = self.whole else { return false };
        self.clock.get_or_insert_with(|| Clock::new(whole)).set_rate(now, rate);
        true
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn class_backlogs(&self, visit: &mut dyn FnMut(usize, Backlog)) {
        self.leaves.iter().for_each(|leaf| visit(leaf.number, leaf.sized.queue.backlog()));
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        let mut sent = vec![Sent::default(); self.parents.len()];
        for leaf in &self.leaves {
            let mut class = Some(leaf.number);
            while let Some(number) = class {
                sent[number].add(&leaf.sent);
                class = self.parents[number];
            }
        }
        for (number, sent) in sent.iter().enumerate() {
            let path = format!("classes.{number}");
            for (name, value) in [
                ("sent_packets", sent.packets),
                ("sent_bytes", sent.bytes),
                ("sent_wire_bytes", sent.wire_bytes),
                ("sent_real_time", sent.real_time),
            ] {
                visit(Counter { path: &path, kind: "hfsc", name, value });
            }
            if let Some(leaf) = self.by_number[number] {
                let queue = &self.leaves[leaf as usize].sized.queue;
                Counter::below(&format!("{path}.queue"), &**queue, visit);
            }
        }
    }
}

impl Mechanism for Config {
    fn check(&self, _link_layer: &LinkLayer) -> Result<(), Problem> {
        self.tree.check_rules()?;
        // A malformed tree has leaves without a queue, so it is refused before they are built.
        Ok(Self::check(self)?)
    }

    fn below(&self) -> Vec<&Spec> {
        self.tree.queues()
    }

    fn class_name(&self, class: u16) -> Option<String> {
        self.tree.name(class)
    }

    /// The real-time curves, which all may begin at once, do not exceed what the link sends by any time.
    fn check_link(&self, available: BitRate) -> Result<(), Problem> {
        let curves = || self.tree.classes.iter().filter_map(|class| class.share.real_time);
        let exceeds = |given: Option<BitRate>, span| match given {
            Some(given) if given > available => Err(Problem::Tree(TreeError::RealTime { given, available, span })),
            _ => Ok(()),
        };
        let sum = |slopes: &mut dyn Iterator<Item = u64>| {
            let sum = slopes.fold(0_u64, u64::saturating_add);
            BitRate::from_bps(sum.min(BitRate::MAX.as_bps()))
        };
        // The sum of the curves is straight between the ends of first pieces.
        exceeds(sum(&mut curves().map(|curve| curve.slope_at_first())), Span::Beginning)?;
        let mut ends: Vec<Duration> =
            curves().filter_map(|curve| curve.initial).map(|initial| initial.duration).collect();
        ends.sort_unstable();
        for end in ends {
            let given = curves().fold(Work::ZERO, |sum, curve| sum + curve.in_first(end));
            if given > Work::at(available, end) {
                exceeds(given.over(end), Span::First(end))?;
            }
        }
        exceeds(sum(&mut curves().map(|curve| curve.rate.as_bps())), Span::LongRun)
    }

    /// Real-time guarantees pass an upper limit, and count in it. So the packets have the larger of the limit and their
    /// own guarantees, and the first pieces of these beyond it; other leaves leave them no more. A leaf without a share
    /// has its guarantee alone.
    fn shapers_of(&self, packets: &Packets) -> Vec<Shaper> {
        self.tree.shapers_of(packets, self.tree.last_leaf(), |class, _, leaves| {
            let share = &self.tree.classes[class].share;
            let saving =
                |rate, burst| Some(Shaper { saves: true, ..Shaper::of_all(rate, Some(WireBytes::new(burst))) });
            if share.link_share.is_none() {
                let curve = share.real_time?;
                return saving(curve.rate, curve.ahead() + Shaper::PACKET.as_u64());
            }
            let limit = share.upper_limit?;
            let guarantees: Vec<_> =
                leaves.iter().filter_map(|leaf| self.tree.classes[*leaf].share.real_time).collect();
            let guaranteed = sum(guarantees.iter().map(|curve| curve.rate));
            let first = guarantees.iter().chain([&limit]).map(|curve| curve.ahead() + Shaper::PACKET.as_u64());
            let rate = guaranteed.map_or(limit.rate, |guaranteed| guaranteed.max(limit.rate));
            saving(rate, first.sum())
        })
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        let queues = self.tree.build_leaves(site)?;
        Ok(Box::new(Hfsc::new(self, queues, site.environment).map_err(|why| site.refuse(why))?))
    }
}

#[cfg(test)]
mod tests;
