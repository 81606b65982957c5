//! Policer: meters packets as they arrive, and passes, re-marks or drops each by its color. It
//! never delays packets.
//!
//! Published: RFC 2475, sections 2.3.3.1 to 2.3.3.4 (meters, markers, droppers); the actions and
//! their names are those of `rate-limit` in Cisco IOS.
//!
//! A policer has one rule or several. The first rule that covers a packet meters it; if its action
//! is `continue`, the packet goes on to the next rule that covers it, as re-marked. A packet that
//! no rule covers, or that continues past the last rule, goes to the queue below. The queue sees
//! packets as they are after the action, so that it can distinguish marked ones.
//!
//! Differs: bytes are those on the wire of the line.
//! Cost: that of the meter, plus a test of each rule before the first that covers the packet.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{Meta, Packet};
use lastmile_units::{ByteCount, Instant, WireBytes};

use super::{Color, Meter, MeterError};
use crate::catalogue::Above;
use crate::classify::Packets;
use crate::discipline::{Counter, answers_of_below};
use crate::spec::{Limiter, Problem, Shaper, Spec};
use crate::{Backlog, Condition, Discipline, DropReason, DropSink, Environment, Match, Matcher as _, Node};

/// Packets to meter, the meter, and the actions by color.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The packets that the rule covers.
    pub matches: Match,
    /// The meter.
    pub meter: super::Config,
    /// The color with which packets arrive. Meters with two colors do not use it.
    pub coming: Coming,
    /// The largest IP packet to expect. It must be able to conform.
    pub largest: ByteCount,
    /// Action on a green packet: it conforms.
    pub conform: Action,
    /// Action on a yellow packet: it exceeds.
    pub exceed: Action,
    /// Action on a red packet: it violates.
    pub violate: Action,
}

/// The color with which a packet arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Coming {
    /// Color-blind: every packet counts as green.
    #[default]
    Blind,
    /// Color-aware, by the drop precedence of assured forwarding (RFC 2597, section 6): AFx1 green,
    /// AFx2 yellow, AFx3 red. Every other code point is green.
    DropPrecedence,
    /// Color-aware, by the cell loss priority: 0 green, 1 yellow.
    CellLossPriority,
}

impl Coming {
    pub(super) fn color(self, meta: &Meta) -> Color {
        match self {
            Self::Blind => Color::Green,
            // AFxy is 8x + 2y, for x from 1 to 4 and y from 1 to 3.
            Self::DropPrecedence if (1..=4).contains(&(meta.dscp() >> 3)) => match meta.dscp() & 7 {
                4 => Color::Yellow,
                6 => Color::Red,
                _ => Color::Green,
            },
            Self::DropPrecedence => Color::Green,
            Self::CellLossPriority if meta.mark.clp() => Color::Yellow,
            Self::CellLossPriority => Color::Green,
        }
    }
}

/// Action on a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Action {
    /// A mark to set first.
    pub mark: Option<Remark>,
    /// The packet's destination.
    pub then: Then,
}

/// A mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remark {
    /// A differentiated services code point, 0 to 63.
    Dscp(u8),
    /// Cell loss priority 1, for the cells of the packet.
    Clp,
}

/// Destination of a metered packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// The queue below.
    Transmit,
    /// The next rule that covers it, or without one the queue below.
    Continue,
    /// The packet is dropped.
    Drop,
}

impl Action {
    /// Passes the packet unchanged.
    pub const TRANSMIT: Self = Self { mark: None, then: Then::Transmit };
    /// Drops the packet.
    pub const DROP: Self = Self { mark: None, then: Then::Drop };

    /// Passes the packet, marked.
    #[must_use]
    pub const fn mark(mark: Remark) -> Self {
        Self { mark: Some(mark), then: Then::Transmit }
    }
}

/// A policer over a queue.
#[derive(Debug)]
pub struct Policer<P, D = Node<P>> {
    queue: D,
    rules: Vec<MeteredRule>,
    link_layer: LinkLayer,
    packet: core::marker::PhantomData<fn(P)>,
}

#[derive(Debug)]
struct MeteredRule {
    matches: Condition,
    meter: Meter,
    coming: Coming,
    /// By color.
    actions: [Action; 3],
    /// By color.
    counts: [Count; 3],
    remarked: u64,
    dropped: u64,
}

#[derive(Clone, Copy, Default, Debug)]
struct Count {
    packets: u64,
    bytes: u64,
    wire_bytes: u64,
}

impl<P: Packet, D: Discipline<P>> Policer<P, D> {
    /// A policer over `queue`. Its meters start with full buckets.
    #[must_use]
    pub fn new(rules: &[Rule], environment: &Environment, queue: D) -> Self {
        let rules = rules.iter().map(|rule| MeteredRule::new(rule, environment)).collect();
        Self { queue, rules, link_layer: environment.link_layer, packet: core::marker::PhantomData }
    }
}

impl MeteredRule {
    fn new(rule: &Rule, environment: &Environment) -> Self {
        Self {
            matches: Condition::new(&rule.matches, environment),
            meter: rule.meter.meter(),
            coming: rule.coming,
            actions: [rule.conform, rule.exceed, rule.violate],
            counts: [Count::default(); 3],
            remarked: 0,
            dropped: 0,
        }
    }

    /// Meters and marks `packet`, and returns its destination.
    fn apply(&mut self, now: Instant, packet: &mut impl Packet, wire: WireBytes) -> Then {
        let before = self.coming.color(packet.meta());
        let color = self.meter.conform(now, wire, before) as usize;
        let count = &mut self.counts[color];
        count.packets += 1;
        count.bytes += packet.meta().ip_bytes().as_u64();
        count.wire_bytes += wire.as_u64();
        let action = self.actions[color];
        self.remarked += u64::from(action.mark.is_some_and(|mark| mark.apply(packet)));
        self.dropped += u64::from(action.then == Then::Drop);
        action.then
    }

    fn show(&self, path: &str, visit: &mut dyn FnMut(Counter<'_>)) {
        const NAMES: [[&str; 3]; 3] = [
            ["conformed_packets", "conformed_bytes", "conformed_wire_bytes"],
            ["exceeded_packets", "exceeded_bytes", "exceeded_wire_bytes"],
            ["violated_packets", "violated_bytes", "violated_wire_bytes"],
        ];
        let kind = "policer";
        for (names, count) in NAMES.iter().zip(&self.counts) {
            for (name, value) in names.iter().zip([count.packets, count.bytes, count.wire_bytes]) {
                visit(Counter { path, kind, name, value });
            }
        }
        visit(Counter { path, kind, name: "remarked", value: self.remarked });
        visit(Counter { path, kind, name: "dropped_policed", value: self.dropped });
    }
}

impl Remark {
    /// Marks `packet`. True if that changed it.
    fn apply(self, packet: &mut impl Packet) -> bool {
        let before = *packet.meta();
        match self {
            Self::Dscp(dscp) => packet.set_dscp(dscp),
            Self::Clp => packet.meta_mut().mark.set_clp(),
        }
        (packet.meta().dscp(), packet.meta().mark) != (before.dscp(), before.mark)
    }
}

impl<P: Packet, D: Discipline<P>> Discipline<P> for Policer<P, D> {
    fn enqueue(&mut self, now: Instant, mut packet: P, drops: &mut dyn DropSink<P>) {
        let wire = self.link_layer.on_wire(packet.meta().ip_bytes());
        for rule in &mut self.rules {
            if !rule.matches.matches(now, &packet) {
                continue;
            }
            match rule.apply(now, &mut packet, wire) {
                Then::Transmit => break,
                Then::Continue => {}
                Then::Drop => return drops.dropped(now, packet, DropReason::Policed),
            }
        }
        self.queue.enqueue(now, packet, drops);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.queue.dequeue(now, drops)
    }

    fn dequeue_urgent(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.queue.dequeue_urgent(now, drops)
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        match self.rules.as_slice() {
            [rule] => rule.show("", visit),
            rules => {
                for (index, rule) in rules.iter().enumerate() {
                    rule.show(&format!("rules.{index}"), visit);
                }
            }
        }
        Counter::below("queue", &self.queue, visit);
    }

    answers_of_below!(self => self.queue);
}

/// The parameters of a policer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The metered packets and the actions, from one rule to [`Spec::MAX_RULES`]. The first rule that
    /// covers a packet decides.
    pub rules: Vec<Rule>,
}

impl Rule {
    fn check(&self, link_layer: &LinkLayer) -> Result<(), Problem> {
        self.matches.check()?;
        for action in [self.conform, self.exceed, self.violate] {
            if let Some(Remark::Dscp(dscp @ 64..)) = action.mark {
                return Err(Problem::Dscp(dscp));
            }
        }
        if self.meter.counts_cells() {
            link_layer.cells(self.largest).ok_or(MeterError::NoCells)?;
        }
        Ok(self.meter.check(link_layer.on_wire(self.largest))?)
    }
}

impl Config {
    /// The rates of the rules that cover each of `packets` and drop some. A rule that may cover one and ends the list
    /// hides those after it.
    fn rates(&self, packets: &Packets) -> Vec<Shaper> {
        let mut rates = Vec::new();
        for rule in &self.rules {
            let covers = packets.answer(&rule.matches);
            if covers == Some(false) {
                continue;
            }
            let actions = [rule.conform, rule.exceed, rule.violate];
            let actions = &actions[..if rule.meter.has_red() { 3 } else { 2 }];
            let most = actions.iter().rposition(|action| action.then != Then::Drop).unwrap_or(0);
            if covers == Some(true) && most + 1 < actions.len() {
                let (rate, burst) = rule.meter.passes(most > 0);
                rates.push(Shaper { rate, layer: None, burst: Some(burst), saves: false, by: Limiter::Policer });
            }
            if actions.iter().any(|action| action.then == Then::Transmit) {
                break;
            }
        }
        rates
    }
}

impl Above for Config {
    fn check(&self, _queue: &Spec, link_layer: &LinkLayer) -> Result<(), Problem> {
        if self.rules.is_empty() || self.rules.len() > Spec::MAX_RULES {
            return Err(Problem::Rules(self.rules.len()));
        }
        self.rules.iter().try_for_each(|rule| rule.check(link_layer))
    }

    fn own_shapers(&self, packets: &Packets) -> Vec<Shaper> {
        self.rates(packets)
    }

    fn sets_dscp(&self) -> bool {
        let mut actions = self.rules.iter().flat_map(|rule| [rule.conform, rule.exceed, rule.violate]);
        actions.any(|action| matches!(action.mark, Some(Remark::Dscp(_))))
    }

    fn over<P: Packet + Send + 'static>(
        &self,
        queue: impl Discipline<P> + Send + 'static,
        environment: &Environment,
    ) -> Result<Node<P>, Problem> {
        Ok(Box::new(Policer::new(&self.rules, environment, queue)))
    }
}

#[cfg(test)]
mod tests;
