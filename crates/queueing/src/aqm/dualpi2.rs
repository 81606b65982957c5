//! DualPI2: a shallow queue for senders that respond to each mark (L4S), and a queue for all others under PI2;
//! one controller couples the two, so that flows of both kinds get similar rates.
//!
//! Published: RFC 9332, appendix A; tc-dualpi2(8) of Linux; queue protection: RFC 9957; NQB:
//! draft-ietf-tsvwg-nqb.
//! Differs:
//!
//! - The scheduler is the weighted round robin of Linux, which section 4.2.2 allows, in place of a time-shifted
//!   FIFO.
//! - The shallow queue marks at a step, as in Linux, in place of a ramp from 0.8 to 1.2 ms; a packet that finds
//!   at most `min_qlen_step` packets before it when it arrives is spared. On request, marks follow the ramp and the
//!   predicted wait of DOCSIS when a packet arrives (`predicted`).
//! - The wait of a queue is the age of its head, at the time of each update. Drops and marks are decided when a
//!   packet departs.
//! - Protection measures the wait of the shallow queue by the age of its head, and a packet counts as
//!   congestion if that age has reached the step; with the predicted wait, by that and its ramp, as in DOCSIS.
//! - The virtual queue of the predicted wait is not corrected by the length of the queue.
//! - The probability is a fixed-point number, so that runs are the same on every machine.
//!
//! Packets of a flow with different ECN fields wait in different queues, and may overtake each other. Cost: O(1)
//! a packet, and O(1) for each update since the packet before until the probability is steady.

mod config;
mod controller;
mod predicted;
mod protection;
mod queues;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{Meta, Packet};
use lastmile_units::{Duration, Instant, Limit, WireBytes};

pub use self::config::{Config, DualPi2Error};
use self::controller::Controller;
use self::predicted::Predicted;
use self::protection::Protection;
use self::queues::{Queue, Queues};
use crate::aqm::pi::ONE;
use crate::catalogue::{Built, Mechanism};
use crate::discipline::Counter;
use crate::fifo::{Tally, check_limit};
use crate::random::Stream;
use crate::spec::{Problem, Site};
use crate::{Backlog, Discipline, DropReason, DropSink};

/// Packets by the fate that this discipline gave them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Counts {
    sent_l: u64,
    sent_c: u64,
    dropped: u64,
    marked_l: u64,
    marked_c: u64,
    marked_step: u64,
    redirected: u64,
}

/// A shallow and a classic queue under DualPI2.
#[derive(Clone, Debug)]
pub struct DualPi2<P: Packet> {
    config: Config,
    queues: Queues<P>,
    controller: Controller,
    predicted: Option<Predicted>,
    protection: Option<Protection>,
    random: Stream,
    /// Two of the largest packets.
    spared: WireBytes,
    counts: Counts,
    tally: Tally,
}

impl<P: Packet> DualPi2<P> {
    /// Empty queues. `None`: the limit is in cells, and `link_layer` sends none.
    #[must_use]
    pub fn new(config: &Config, link_layer: &LinkLayer) -> Option<Self> {
        let largest = link_layer.on_wire(config.largest);
        let predicted = config.predicted.map(|rate| Predicted::new(rate, config.step));
        let critical = predicted.as_ref().map_or(config.step, Predicted::most);
        Some(Self {
            config: *config,
            queues: Queues::new(config.limit, link_layer, config.classic_protection, largest)?,
            controller: Controller::default(),
            predicted,
            protection: config.queue_protection.then(|| Protection::new(critical, config.seed)),
            random: Stream::new(config.seed, "dualpi2"),
            spared: largest + largest,
            counts: Counts::default(),
            tally: Tally::default(),
        })
    }

    /// The queue in which a packet waits: ECT(1) and CE identify L4S (RFC 9331, section 5.1).
    fn queue_for(&mut self, now: Instant, packet: &mut P) -> Queue {
        let meta = packet.meta();
        let nqb = self.config.nqb && meta.dscp() == Config::NQB;
        if !(nqb || matches!(meta.ecn(), Meta::ECT_1 | Meta::CE)) {
            return Queue::Classic;
        }
        let (flow, size) = (meta.flow, meta.ip_bytes());
        let (wait, congestion) = self.congestion(now, packet);
        let Some(protection) = &mut self.protection else { return Queue::Shallow };
        let score = protection.score(now, flow, size, congestion);
        if protection.is_sanctioned(wait, score) {
            self.counts.redirected += 1;
            self.predicted.iter_mut().for_each(|predicted| predicted.leaves(self.queues.on_wire(size)));
            Queue::Classic
        } else {
            Queue::Shallow
        }
    }

    /// The wait of the shallow queue as a packet arrives, and the probability of a mark at this wait. By the predicted
    /// wait, the packet is marked here.
    fn congestion(&mut self, now: Instant, packet: &mut P) -> (Duration, u64) {
        let Some(predicted) = &mut self.predicted else {
            let wait = self.queues.wait(Queue::Shallow, now);
            return (wait, if wait >= self.config.step { ONE } else { 0 });
        };
        let wait = predicted.joins(now, self.queues.on_wire(packet.meta().ip_bytes()));
        let probability = predicted.probability(wait);
        if predicted.marks(probability) && packet.mark_ce() {
            self.counts.marked_step += 1;
        }
        (wait, probability)
    }

    /// The decision of the coupled probabilities about a packet that is about to depart.
    fn signal(&mut self, queue: Queue) -> Signal {
        if self.queues.wire() < self.spared {
            return Signal::None;
        }
        let controller = self.controller;
        let overload = controller.is_overloaded(self.config.coupling);
        let mut squared = || controller.draws(&mut self.random, 1) && controller.draws(&mut self.random, 1);
        match queue {
            Queue::Classic if !squared() => Signal::None,
            Queue::Classic if overload => Signal::Drop,
            Queue::Classic => Signal::MarkOrDrop,
            Queue::Shallow if overload => match squared() {
                true => Signal::Drop,
                false => Signal::Mark,
            },
            Queue::Shallow if controller.draws(&mut self.random, self.config.coupling) => Signal::Mark,
            Queue::Shallow => Signal::None,
        }
    }
}

/// The treatment of a packet that departs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Signal {
    None,
    Mark,
    MarkOrDrop,
    Drop,
}

impl<P: Packet> Discipline<P> for DualPi2<P> {
    fn enqueue(&mut self, now: Instant, mut packet: P, drops: &mut dyn DropSink<P>) {
        self.controller.advance(now, &self.config, &self.queues);
        if let Some(full) = self.queues.refuses(&packet) {
            let reason = full.counted(&mut self.tally);
            drops.dropped(now, packet, reason);
            return;
        }
        let queue = self.queue_for(now, &mut packet);
        packet.meta_mut().join_class(queue as usize);
        self.queues.put(queue, packet, self.config.min_qlen_step);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.controller.advance(now, &self.config, &self.queues);
        loop {
            let queue = self.queues.turn()?;
            let signal = self.signal(queue);
            let (mut packet, subject_to_step) = self.queues.pop(queue)?;
            let marks = matches!(signal, Signal::Mark | Signal::MarkOrDrop) && packet.mark_ce();
            if signal == Signal::Drop || (signal == Signal::MarkOrDrop && !marks) {
                self.counts.dropped += 1;
                drops.dropped(now, packet, DropReason::Aqm);
                continue;
            }
            match queue {
                Queue::Classic => {
                    self.counts.marked_c += u64::from(marks);
                    self.counts.sent_c += 1;
                }
                Queue::Shallow => {
                    self.counts.marked_l += u64::from(marks);
                    let waited = now.since(packet.meta().arrived);
                    let by_wait = subject_to_step && self.predicted.is_none();
                    if !marks && by_wait && waited >= self.config.step && packet.mark_ce() {
                        self.counts.marked_step += 1;
                    }
                    self.counts.sent_l += 1;
                }
            }
            self.tally.sent(&packet);
            return Some(packet);
        }
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        if self.queues.is_empty() { None } else { Some(now) }
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.tally.show("dualpi2", visit);
        let Counts { sent_l, sent_c, dropped, marked_l, marked_c, marked_step, redirected } = self.counts;
        Counter::all(
            "dualpi2",
            [
                ("dropped_aqm", dropped),
                ("sent_l", sent_l),
                ("sent_c", sent_c),
                ("marked_l", marked_l),
                ("marked_c", marked_c),
                ("marked_step", marked_step),
                ("redirected", redirected),
            ],
            visit,
        );
    }
}

impl Mechanism for Config {
    fn check(&self, link_layer: &LinkLayer) -> Result<(), Problem> {
        check_limit(self.limit, link_layer)?;
        Ok(Self::check(self)?)
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn class_name(&self, class: u16) -> Option<String> {
        ["L queue", "C queue"].get(usize::from(class)).map(|name| (*name).to_owned())
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        let dual = DualPi2::new(&Self { seed: site.seed(self.seed), ..*self }, &site.environment.link_layer);
        Ok(Box::new(dual.ok_or_else(|| site.refuse(Problem::NoCells))?))
    }
}

#[cfg(test)]
mod tests;
