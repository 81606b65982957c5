//! A list of rules above a scheduler gives each packet its class.
//!
//! The rules are evaluated in order and the last that matches decides, so a later rule may re-mark
//! what an earlier rule marked. A rule that is `last` ends the list where it matches. The
//! conditions [`Match::Class`] of the disciplines below then hold for the packet, as the marks of a
//! firewall do for the `fw` filter of tc(8). The packet carries its class
//! ([`Meta::class`](lastmile_packet::Meta::class)) until it departs.
//!
//! Published: tc-fw(8), and the rules of Netfilter's mangle table, which continue after a mark. A
//! connection keeps the part of the verdict that cannot change, as connection tracking does
//! (file `verdict`).
//!
//! Cost: one look-up of the connection, if some rule asks for addresses or ports; the rules that
//! its kept verdict leaves open, and a count for each rule that matches. The first packet of a
//! connection's direction evaluates every rule, as does a packet that is neither TCP nor UDP.

use std::collections::BTreeSet;

use lastmile_packet::Packet;
use lastmile_units::Instant;

use super::condition::{Check, Facts, Known, Observer};
pub use super::matching::MOST_RULES as MOST;
use super::matching::{Match, MatchError, check_patterns};
use super::packets::Packets;
use super::verdict::{Kept, Look, RuleSet, Verdict};
use crate::discipline::{Counter, answers_of_below};
use crate::{Backlog, Discipline, DropSink, Environment, Node, Spec};

/// A list of rules and the queue below it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The rules, in their order.
    pub rules: Vec<Rule>,
    /// The class of packets that no rule matches.
    pub otherwise: u16,
    /// Names of the classes, by number, as results show them; a class without one is shown by its number.
    pub names: Vec<String>,
    /// The queue below: a tree whose classes ask for [`Match::Class`].
    pub queue: Box<Spec>,
}

/// One rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The condition.
    pub matches: Match,
    /// The class of packets that meet it.
    pub class: u16,
    /// A match ends the list.
    pub last: bool,
}

impl Config {
    /// The class that each of `packets` gets; `None` where that depends.
    pub(crate) fn class_of_all(&self, packets: &Packets) -> Option<u16> {
        let (mut classes, mut of_ended) = (vec![self.otherwise], Vec::new());
        for rule in &self.rules {
            match packets.answer(&rule.matches) {
                Some(true) => {
                    classes = vec![rule.class];
                    if rule.last {
                        break;
                    }
                }
                None if rule.last => of_ended.push(rule.class),
                None => classes.push(rule.class),
                Some(false) => {}
            }
        }
        let mut all = classes.into_iter().chain(of_ended);
        let first = all.next()?;
        all.all(|class| class == first).then_some(first)
    }
}

/// Refuses lists that are too long and conditions without meaning.
pub(crate) fn check(config: &Config) -> Result<(), MatchError> {
    if config.rules.len() > MOST {
        return Err(MatchError::Rules(config.rules.len()));
    }
    // A rule would see the class that the rules above it gave.
    if let Some(class) = config.rules.iter().find_map(|rule| rule.matches.asks_for_class()) {
        return Err(MatchError::ClassInRule(class));
    }
    let mut patterns = BTreeSet::new();
    config.rules.iter().try_for_each(|rule| rule.matches.check_into(&mut patterns))?;
    check_patterns(&patterns)
}

/// A list of rules over a queue.
#[derive(Debug)]
pub struct Rules<P, D = Node<P>> {
    rules: Vec<ActiveRule>,
    /// All rules of the list.
    all: RuleSet,
    otherwise: u16,
    observer: Observer,
    unmatched: u64,
    queue: D,
    packet: core::marker::PhantomData<fn(P)>,
}

#[derive(Debug)]
struct ActiveRule {
    check: Check,
    class: u16,
    last: bool,
    /// Packets that the rule matched.
    matched: u64,
    /// Packets whose class the rule decided.
    decided: u64,
}

impl<P: Packet, D: Discipline<P>> Rules<P, D> {
    /// Rules over `queue`.
    #[must_use]
    pub fn new(rules: &[Rule], otherwise: u16, environment: &Environment, queue: D) -> Self {
        let mut observer = Observer::new(environment);
        let active = |rule: &Rule| ActiveRule {
            check: Check::new(&rule.matches, &mut observer),
            class: rule.class,
            last: rule.last,
            matched: 0,
            decided: 0,
        };
        let rules: Vec<ActiveRule> = rules.iter().map(active).collect();
        observer.track_if_keys_are_asked_for();
        let all = (0..rules.len()).collect();
        Self { rules, all, otherwise, observer, unmatched: 0, queue, packet: core::marker::PhantomData }
    }

    /// The class of a packet that arrives.
    fn class_of(&mut self, now: Instant, packet: &P) -> u16 {
        let mut found = None;
        let mut facts = self.observer.observe(now, packet, &mut found);
        let verdict = verdict(&self.rules, self.all, &mut facts);
        let mut decider = None;
        for index in verdict.possible {
            let rule = &mut self.rules[index];
            if verdict.matched.contains(index) || rule.check.holds(&facts) {
                rule.matched += 1;
                decider = Some(index);
                if rule.last {
                    break;
                }
            }
        }
        let Some(index) = decider else {
            self.unmatched += 1;
            return self.otherwise;
        };
        let rule = &mut self.rules[index];
        rule.decided += 1;
        rule.class
    }
}

/// The verdict that the connection of a packet keeps; without a connection, and for the first
/// packet of a direction, `all` rules are possible.
fn verdict(rules: &[ActiveRule], all: RuleSet, facts: &mut Facts<'_>) -> Verdict {
    let look = Look::of(facts.meta);
    let unknown = Verdict { matched: RuleSet::default(), possible: all };
    let Some(direction) = &mut facts.connection else { return unknown };
    let kept = *match direction.kept() {
        kept @ Kept::Nothing => {
            *kept = Kept::Once;
            return unknown;
        }
        Kept::Open { last: Some((of, verdict)), .. } if *of == look => return *verdict,
        kept => kept,
    };
    let known = |index: usize, known| rules[index].check.known(known, facts);
    let open = match kept {
        Kept::Open { open, .. } => open,
        Kept::Nothing | Kept::Once => all.filter(|index| known(*index, Known::Connection) != Some(false)).collect(),
    };
    let mut verdict = Verdict::default();
    for index in open {
        match known(index, Known::Look) {
            Some(false) => continue,
            Some(true) => verdict.matched.insert(index),
            None => {}
        }
        verdict.possible.insert(index);
    }
    if let Some(direction) = &mut facts.connection {
        *direction.kept() = Kept::Open { open, last: Some((look, verdict)) };
    }
    verdict
}

impl<P: Packet, D: Discipline<P>> Discipline<P> for Rules<P, D> {
    fn enqueue(&mut self, now: Instant, mut packet: P, drops: &mut dyn DropSink<P>) {
        let class = self.class_of(now, &packet);
        packet.meta_mut().class = Some(class);
        self.queue.enqueue(now, packet, drops);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.queue.dequeue(now, drops)
    }

    fn dequeue_urgent(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.queue.dequeue_urgent(now, drops)
    }

    answers_of_below!(self => self.queue);

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        let kind = "rules";
        for (index, rule) in self.rules.iter().enumerate() {
            let path = format!("rules.{index}");
            visit(Counter { path: &path, kind, name: "matched", value: rule.matched });
            visit(Counter { path: &path, kind, name: "decided", value: rule.decided });
        }
        visit(Counter { path: "", kind, name: "unmatched", value: self.unmatched });
        Counter::below("queue", &self.queue, visit);
    }
}

#[cfg(test)]
mod tests;
