//! A list of rules above a scheduler: it says of each packet which class it belongs to.
//!
//! Every rule is asked, in order, and the last that matches decides, so that a later rule may re-mark what an earlier one
//! marked; a rule that is `last` ends the list where it matches. The conditions [`Match::Class`] of the disciplines below,
//! whichever they are, then hold for the packet at hand, as the marks of a firewall do for the `fw` filter of tc(8).
//!
//! The packet carries its class ([`Meta::class`](lastmile_packet::Meta::class)) until it leaves the queue.
//!
//! Published: tc-fw(8), and the rules of Netfilter's mangle table, which run on after a mark.
//! Cost: addresses and connection are looked up once for all rules. Then for a packet of a kind that was decided before one look-up (`memo`);
//! for others every rule that the packet's protocol, ports, flags and traffic class leave in question (`candidates`), and of those what they
//! leave in question.

use std::collections::BTreeSet;

use lastmile_packet::Packet;
use lastmile_units::Instant;

use super::candidates::{Candidates, Places};
use super::condition::{Check, Facts, Observer};
use super::matching::{Match, MatchError, check_patterns};
use super::memo::{Memo, Outcome};
use crate::discipline::Counter;
use crate::{Backlog, Discipline, DropSink, Environment, Node, Spec};

/// What a list of rules is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The rules, in their order.
    pub rules: Vec<Rule>,
    /// The class of what no rule matches.
    pub otherwise: u16,
    /// Names of the classes, by number, as results show them; a class without one is shown by its number.
    pub names: Vec<String>,
    /// What stands below: a tree whose classes ask for [`Match::Class`].
    pub queue: Box<Spec>,
}

/// One rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Which packets.
    pub matches: Match,
    /// Their class.
    pub class: u16,
    /// No further rule is asked.
    pub last: bool,
}

/// Rules that a list has at most.
pub const MOST: usize = 256;

/// Refuses what cannot be.
pub(crate) fn check(config: &Config) -> Result<(), MatchError> {
    if config.rules.len() > MOST {
        return Err(MatchError::Rules(config.rules.len()));
    }
    // It would hear of the class of the packet before.
    if let Some(class) = config.rules.iter().find_map(|rule| rule.matches.asks_for_class()) {
        return Err(MatchError::ClassInRule(class));
    }
    let mut patterns = BTreeSet::new();
    config.rules.iter().try_for_each(|rule| rule.matches.check_into(&mut patterns))?;
    check_patterns(&patterns)
}

/// A list of rules over a tree.
#[derive(Debug)]
pub struct Rules<P, D = Node<P>> {
    rules: Vec<AtWork>,
    candidates: Candidates,
    memo: Memo,
    otherwise: u16,
    observer: Observer,
    unmatched: u64,
    queue: D,
    packet: core::marker::PhantomData<fn(P)>,
}

#[derive(Debug)]
struct AtWork {
    /// All of them must hold. Those that the fields settle stand last.
    checks: Vec<Check>,
    /// How many the fields do not settle.
    in_question: usize,
    /// Packets of one kind all get the same answer to those.
    told_by_kind: bool,
    class: u16,
    last: bool,
    /// Packets that it matched, and those of them whose class it decided.
    matched: u64,
    decided: u64,
}

impl<P: Packet, D: Discipline<P>> Rules<P, D> {
    /// Rules over `queue`.
    #[must_use]
    pub fn new(rules: &[Rule], otherwise: u16, environment: &Environment, queue: D) -> Self {
        let mut observer = Observer::new(environment);
        let candidates = Candidates::new(rules);
        let at_work = |rule: &Rule| AtWork::new(rule, &candidates, &mut observer);
        let mut rules: Vec<AtWork> = rules.iter().map(at_work).collect();
        let memo = Memo::new(rules.iter().flat_map(AtWork::in_question));
        for rule in &mut rules {
            rule.told_by_kind = rule.in_question().iter().all(|check| memo.tells(check));
        }
        Self { rules, candidates, memo, otherwise, observer, unmatched: 0, queue, packet: core::marker::PhantomData }
    }

    /// The class of a packet that comes.
    fn class_of(&mut self, now: Instant, packet: &P) -> u16 {
        let mut found = None;
        let mut facts = self.observer.observe(now, packet, &mut found);
        let places = self.candidates.places(&mut facts);
        let kind = self.memo.kind_of(places, &facts);
        if let Some(kind) = kind
            && let Some(class) = self.memo.recall(kind)
        {
            return class;
        }
        let (outcome, told_by_kind) = decide(&mut self.rules, &self.candidates, places, &facts, self.otherwise);
        self.count(&outcome, 1);
        if let Some(kind) = kind.filter(|_| told_by_kind) {
            let gone = self.memo.remember(kind, outcome);
            self.count(&gone.outcome, gone.times);
        }
        outcome.class
    }

    /// Counts a decision that was taken so often.
    fn count(&mut self, outcome: &Outcome, times: u64) {
        for index in outcome.rules() {
            self.rules[index].matched += times;
        }
        match outcome.decider {
            Some(index) => self.rules[usize::from(index)].decided += times,
            None => self.unmatched += times,
        }
    }
}

/// Asks the rules about a packet; returns also whether all that were asked give each packet of its kind the same answer.
#[inline(never)]
fn decide(
    rules: &mut [AtWork],
    candidates: &Candidates,
    places: Places,
    facts: &Facts<'_>,
    otherwise: u16,
) -> (Outcome, bool) {
    let (mut outcome, mut told_by_kind) = (Outcome::of_none(otherwise), true);
    for word in 0..candidates.words() {
        let mut left = candidates.among(places, word);
        while left != 0 {
            let index = word * 64 + left.trailing_zeros() as usize;
            left &= left - 1;
            let rule = &mut rules[index];
            told_by_kind &= rule.told_by_kind;
            if rule.holds(facts) {
                outcome.add(index, rule.class);
                if rule.last {
                    return (outcome, told_by_kind);
                }
            }
        }
    }
    (outcome, told_by_kind)
}

impl AtWork {
    fn new(rule: &Rule, candidates: &Candidates, observer: &mut Observer) -> Self {
        let parts = match &rule.matches {
            Match::All(parts) => parts.as_slice(),
            other => std::slice::from_ref(other),
        };
        let mut checks: Vec<(bool, Check)> =
            parts.iter().map(|part| (candidates.settles(&rule.matches, part), Check::new(part, observer))).collect();
        // Buckets count what the others let through; no field settles them.
        checks.sort_by_key(|(settled, check)| (*settled, matches!(check, Check::NewConnections(_))));
        let in_question = checks.iter().filter(|(settled, _)| !settled).count();
        let checks = checks.into_iter().map(|(_, check)| check).collect();
        let (class, last) = (rule.class, rule.last);
        Self { checks, in_question, told_by_kind: false, class, last, matched: 0, decided: 0 }
    }

    /// What is asked of packets with addresses.
    fn in_question(&self) -> &[Check] {
        &self.checks[..self.in_question]
    }

    /// Whether a packet matches that the fields leave to this rule.
    #[inline]
    fn holds(&mut self, facts: &Facts<'_>) -> bool {
        // Fields settle nothing about ports where there are none. A bucket of connections then counts nothing.
        let asked = if facts.key.is_some() { self.in_question } else { self.checks.len() };
        self.checks[..asked].iter_mut().all(|check| check.holds(facts))
    }
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

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        self.queue.next_ready(now)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        let kind = "rules";
        for (index, rule) in self.rules.iter().enumerate() {
            let path = format!("rules.{index}");
            let matched = rule.matched + self.memo.times(|outcome| outcome.has_matched(index));
            let decided = rule.decided + self.memo.times(|outcome| outcome.decider.map(usize::from) == Some(index));
            visit(Counter { path: &path, kind, name: "matched", value: matched });
            visit(Counter { path: &path, kind, name: "decided", value: decided });
        }
        let unmatched = self.unmatched + self.memo.times(|outcome| outcome.decider.is_none());
        visit(Counter { path: "", kind, name: "unmatched", value: unmatched });
        Counter::below("queue", &self.queue, visit);
    }
}

#[cfg(test)]
mod tests;
