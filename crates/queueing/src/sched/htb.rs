//! Hierarchical token bucket (HTB): classes with a guaranteed rate and a ceiling, which borrow
//! capacity that others leave unused.
//!
//! Published: tc-htb(8); Devera, "Hierarchical token bucket theory" (2002), an implementation of
//! the formal link sharing of Floyd and Van Jacobson 1995.
//! Differs:
//!
//! - Sizes are bytes on the wire of the line.
//! - Time is exact: the remainder of every division is carried, where Linux rounds to nanoseconds a
//!   packet.
//! - A class whose quantum is smaller than its packets skips turns, so that excess is shared by the
//!   quanta even then; Linux gives it a packet a turn.
//! - Guarantees that exceed those of the class above, and bursts smaller than the largest packet,
//!   are refused, where Linux accepts them.
//! - A queue below may shape, which Linux forbids.
//!
//! As in `sch_htb`, a class without a parent has nobody to borrow from: it sends at its rate, whatever its ceiling.
//! A class sends while it owes no tokens and is charged afterwards: any interval
//! may carry its burst plus one packet. With [`Config::hysteresis`] it continues until it owes a
//! burst: cheaper in Linux, and a second burst in any interval. With a coarse [`Config::timer`]
//! (Brouer 2005, section 7.3.2: the 100 Hz of Linux 2.4) it resumes at the first tick after its
//! debt is paid, and may send at once the tokens gained until then.
//! Unclassified packets without a default class go to a direct queue, ahead of all classes and
//! unshaped.
//!
//! Cost: one classification a packet at enqueue; at dequeue O(depth + priorities), plus the
//! logarithm of the number of classes that wait for tokens.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{BitRate, ByteCount, Duration, Instant, PacketCount, WireBytes};

use super::proportion::in_proportion;
use super::sharing::{Own, PRIORITIES, Plan, Sharing, Slack, Tokens};
use super::tree::{Shape, Tree, TreeError, TreeRules, Wrong};
use crate::catalogue::{Built, Mechanism};
use crate::classify::Packets;
use crate::discipline::Counter;
use crate::fifo::{Fifo, Overflow};
use crate::spec::{Problem, Shaper, Site, Spec};
use crate::{Backlog, BuildError, Discipline, DropSink, Environment, Node};

/// Parameters of HTB.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Classes and rules. A packet that no rule matches goes to the default class, or without one
    /// to the direct queue.
    pub tree: Tree<Share>,
    /// The largest IP packet to expect: the default of bursts. `mtu` of tc-htb.
    pub largest: ByteCount,
    /// Divisor for the quantum of a class without one: its rate in bytes a second over `r2q`,
    /// limited to 1000 to 200 000 bytes.
    pub r2q: u32,
    /// A class changes its mode a burst later than its tokens say (`htb_hysteresis` of Linux).
    pub hysteresis: bool,
    /// Tick of the clock at which classes that wait for tokens are checked again, such as the 10 ms
    /// of Linux 2.4. Zero: exact.
    pub timer: Duration,
    /// Capacity of the direct queue in packets. Not zero.
    pub direct_limit: PacketCount,
}

impl Config {
    /// The defaults of tc: 1500-byte packets, `r2q` 10, no hysteresis, 1000 unclassified packets;
    /// and an exact timer.
    #[must_use]
    pub const fn new(tree: Tree<Share>) -> Self {
        Self {
            tree,
            largest: ByteCount::new(1500),
            r2q: R2Q,
            hysteresis: false,
            timer: Duration::ZERO,
            direct_limit: PacketCount::new(1000),
        }
    }
}

/// Parameters of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Guaranteed rate on the wire. Classes below share it.
    pub rate: BitRate,
    /// Maximum rate on the wire. `None`: its guaranteed rate, which a class without a parent has in any case.
    pub ceil: Option<BitRate>,
    /// Burst at its rate after a pause, in bytes on the wire. `None`: the largest packet.
    pub burst: Option<WireBytes>,
    /// Burst at its ceiling after a pause, in bytes on the wire. `None`: the largest packet.
    pub cburst: Option<WireBytes>,
    /// Order in which excess is offered: 0, the most urgent, to 7. No effect in a class with
    /// classes below.
    pub priority: u8,
    /// Bytes on the wire in its turn among classes of its priority. `None`: computed by
    /// [`Config::r2q`].
    pub quantum: Option<WireBytes>,
}

impl Share {
    /// A guaranteed rate without borrowing.
    #[must_use]
    pub const fn of(rate: BitRate) -> Self {
        Self { rate, ceil: None, burst: None, cburst: None, priority: 0, quantum: None }
    }
}

/// HTB: the rules of its tree lead packets to its leaves; any other waits in the direct queue.
pub struct Htb<P: Packet> {
    sharing: Sharing<P>,
    /// The parameters of the classes, of which the first is on the link.
    plans: Vec<Plan>,
    /// The rate of the class on the link, if there is one alone.
    whole: Option<BitRate>,
    rules: TreeRules,
    /// By number in the configuration: the class of [`Sharing`], for leaves.
    leaves: Vec<Option<u32>>,
    direct: Fifo<P>,
    direct_packets: u64,
}

impl Config {
    /// Refuses a configuration that HTB cannot keep.
    ///
    /// # Errors
    /// An invalid tree, a ceiling below its rate, guarantees that together exceed that of the class
    /// above, a burst below the largest packet, a quantum of zero, a priority above 7.
    pub fn check(&self, link_layer: &LinkLayer) -> Result<(), TreeError> {
        let shape = self.tree.shape()?;
        let needed = link_layer.on_wire(self.largest);
        for (class, children) in self.tree.classes.iter().zip(&shape.children) {
            let share = &class.share;
            let wrong = |wrong: Wrong| Err(wrong.with(&class.name));
            if usize::from(share.priority) >= PRIORITIES {
                return wrong(Wrong::Priority(share.priority));
            }
            if let Some(ceil) = share.ceil.filter(|ceil| *ceil < share.rate) {
                return wrong(Wrong::CeilBelowRate { ceil, rate: share.rate });
            }
            if let Some(burst) = share.burst.filter(|burst| *burst < needed) {
                return wrong(Wrong::BurstTooSmall { burst, needed });
            }
            if let Some(burst) = share.cburst.filter(|burst| *burst < needed) {
                return wrong(Wrong::CeilBurstTooSmall { burst, needed });
            }
            if share.quantum == Some(WireBytes::ZERO) {
                return wrong(Wrong::ZeroQuantum);
            }
            if let Some(given) = sum(children.iter().map(|child| self.tree.classes[*child].share.rate))
                && given > share.rate
            {
                return wrong(Wrong::MoreThanRate { given, available: share.rate });
            }
        }
        Ok(())
    }

    /// Gives the class on the link this rate, and every other rate is in proportion. Bursts and quanta stay. False:
    /// several classes are on the link, and none limits it.
    pub fn set_rate(&mut self, rate: BitRate) -> bool {
        let Some(whole) = self.whole() else { return false };
        for class in &mut self.tree.classes {
            let share = &mut class.share;
            share.quantum.get_or_insert(WireBytes::new(quantum(share.rate, self.r2q)));
            share.rate = in_proportion(share.rate, whole, rate);
            share.ceil = share.ceil.map(|ceil| in_proportion(ceil, whole, rate));
        }
        true
    }

    /// The rate of the one class on the link.
    fn whole(&self) -> Option<BitRate> {
        Some(self.most(self.tree.root()?))
    }

    /// The highest rate of a class: its ceiling, if it has a class above to borrow from.
    fn most(&self, class: usize) -> BitRate {
        let class = &self.tree.classes[class];
        class.share.ceil.filter(|_| class.parent.is_some()).unwrap_or(class.share.rate)
    }

    fn plans(&self, shape: &Shape, link_layer: &LinkLayer) -> Vec<Plan> {
        let positions = shape.positions();
        let packet = link_layer.on_wire(self.largest);
        let plan = |number: &usize| {
            let share = &self.tree.classes[*number].share;
            Plan {
                index: Some(*number as u32),
                parent: shape.parents[*number].map(|parent| positions[parent]),
                own: Own::Rate(Tokens { rate: share.rate, burst: share.burst.unwrap_or(packet) }),
                ceil: Some(Tokens { rate: share.ceil.unwrap_or(share.rate), burst: share.cburst.unwrap_or(packet) }),
                borrows: true,
                isolated: false,
                priority: share.priority,
                quantum: share.quantum.map_or_else(|| quantum(share.rate, self.r2q), WireBytes::as_u64),
            }
        };
        shape.order.iter().map(plan).collect()
    }
}

/// Divisor for quanta where none is given, of Linux.
pub const R2Q: u32 = 10;

/// Bytes that a class of `rate` without a quantum may send in a turn, as in `htb_change_class` of Linux.
#[must_use]
pub fn quantum(rate: BitRate, r2q: u32) -> u64 {
    (rate.as_bps() / 8 / u64::from(r2q.max(1))).clamp(1000, 200_000)
}

/// The sum of rates, limited to the highest rate. `None`: no rates.
pub(super) fn sum(rates: impl Iterator<Item = BitRate>) -> Option<BitRate> {
    let sum = rates.fold(0_u64, |sum, rate| sum.saturating_add(rate.as_bps()));
    BitRate::from_bps(sum.min(BitRate::MAX.as_bps()))
}

impl<P: Packet> Htb<P> {
    /// The HTB of this configuration.
    ///
    /// `queues` are those of the leaves, in the order of [`Tree::classes`].
    ///
    /// # Errors
    /// As [`Config::check`].
    pub fn new(config: &Config, queues: Vec<Node<P>>, environment: &Environment) -> Result<Self, TreeError> {
        config.check(&environment.link_layer)?;
        let shape = config.tree.shape()?;
        let rules = config.tree.rules(&shape, environment);
        let link_layer = &environment.link_layer;
        let plans = config.plans(&shape, link_layer);
        let (leaves, queues) = shape.leaves(queues);
        Ok(Self {
            sharing: Sharing::new(
                "htb",
                &plans,
                queues,
                link_layer,
                Slack { hysteresis: config.hysteresis, timer: config.timer },
            ),
            whole: config.whole(),
            plans,
            rules,
            leaves,
            direct: Fifo::in_packets(config.direct_limit, Overflow::Tail),
            direct_packets: 0,
        })
    }
}

impl<P: Packet> Discipline<P> for Htb<P> {
    fn enqueue(&mut self, now: Instant, mut packet: P, drops: &mut dyn DropSink<P>) {
        let class = self.rules.classify(now, &packet);
        match class.and_then(|class| self.leaves[class]) {
            Some(leaf) => {
                self.sharing.note_class(leaf as usize, &mut packet);
                self.sharing.enqueue(leaf as usize, now, packet, drops);
            }
            None => self.direct.enqueue(now, packet, drops),
        }
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        if self.direct.next_ready(now).is_some()
            && let Some(packet) = self.direct.dequeue(now, drops)
        {
            self.direct_packets += 1;
            return Some(packet);
        }
        self.sharing.dequeue(now, drops)
    }

    fn dequeue_urgent(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.sharing.dequeue_urgent(now, drops)
    }

    /// All rates of all classes follow in proportion, as with `tc class change`; bursts and quanta stay.
    fn set_rate(&mut self, now: Instant, rate: BitRate) -> bool {
        let Some(whole) = self.whole else { return false };
        self.sharing.set_rates(now, &self.plans, |of_class| in_proportion(of_class, whole, rate));
        true
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        self.direct.next_ready(now).or_else(|| self.sharing.next_ready(now))
    }

    fn backlog(&self) -> Backlog {
        self.sharing.backlog() + self.direct.backlog()
    }

    fn class_backlogs(&self, visit: &mut dyn FnMut(usize, Backlog)) {
        self.sharing.class_backlogs(visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        visit(Counter { path: "", kind: "htb", name: "direct_packets", value: self.direct_packets });
        self.sharing.counters(visit);
        Counter::below("direct", &self.direct, visit);
    }
}

impl Config {
    /// Builds the scheduler as its own type.
    pub(crate) fn build_tree<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Result<Htb<P>, BuildError> {
        let queues = self.tree.build_leaves(site)?;
        Htb::new(self, queues, site.environment).map_err(|why| site.refuse(why))
    }
}

impl Mechanism for Config {
    fn check(&self, link_layer: &LinkLayer) -> Result<(), Problem> {
        if self.direct_limit.as_u64() == 0 {
            return Err(Problem::ZeroLimit);
        }
        self.tree.check_rules()?;
        // A malformed tree has leaves without a queue, so it is refused before they are built.
        Ok(Self::check(self, link_layer)?)
    }

    fn below(&self) -> Vec<&Spec> {
        self.tree.queues()
    }

    fn class_name(&self, class: u16) -> Option<String> {
        self.tree.name(class)
    }

    fn check_link(&self, available: BitRate) -> Result<(), Problem> {
        let on_link = self.tree.classes.iter().filter(|class| class.parent.is_none());
        match sum(on_link.map(|class| class.share.rate)) {
            Some(given) if given > available => Err(TreeError::MoreThanLink { given, available }.into()),
            _ => Ok(()),
        }
    }

    /// Guarantees are within those of the class above, so a ceiling holds for all packets below its class. A class has
    /// two bursts, and may go into debt by as much and a packet.
    fn shapers_of(&self, packets: &Packets) -> Vec<Shaper> {
        self.tree.shapers_of(packets, None, |class, within, _| {
            let bursts = within.iter().map(|class| {
                let share = &self.tree.classes[*class].share;
                let packet = Shaper::PACKET.as_u64().max(2 * self.largest.as_u64());
                let [burst, cburst] = [share.burst, share.cburst].map(|own| own.map_or(packet, WireBytes::as_u64));
                2 * (burst + cburst) + packet
            });
            Some(Shaper::of_all(self.most(class), Some(WireBytes::new(bursts.sum()))))
        })
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        Ok(Box::new(self.build_tree::<P>(site)?))
    }
}

#[cfg(test)]
mod tests;
