//! Class-based queueing (CBQ): each class has a share of the link, and may borrow capacity that
//! others leave unused.
//!
//! Published: Floyd and Van Jacobson, "Link-sharing and resource management models for packet
//! networks" (1995); tc-cbq(8). Kalyanaraman, Shekhar, Kidambi use it against asymmetry: data has a
//! share G of the upstream, ACKs the rest.
//! Differs: exact tokens decide whether a class is within its share, not an estimator of idle time.
//! The estimator needs the time that the device takes for a packet, averages over a constant that
//! must be guessed (`avpkt`, `ewma`), and errs by several per cent when either is wrong (tc-cbq(8),
//! BUGS). Tokens count bytes on the wire, and a bounded class gets its share exactly. The
//! link-sharing guidelines are the formal ones, where Linux has the ancestor-only and top-level
//! approximations: borrowers wait while a class within its share has packets ready.
//!
//! The line limits the rate of the link, not this scheduler. Only if an isolated class reserves a
//! part of the link are the other classes limited to the rest.
//!
//! Cost: as [`crate::Htb`]: O(depth + priorities), plus the logarithm of the number of classes that
//! wait for tokens.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{BitRate, ByteCount, Instant, Ratio, WireBytes};

use super::htb::sum;
use super::sharing::{Own, PRIORITIES, Plan, Sharing, Slack, Tokens};
use super::tree::{Shape, Tree, TreeError, TreeRules, Wrong};
use crate::catalogue::{Built, Mechanism};
use crate::classify::Packets;
use crate::discipline::Counter;
use crate::spec::{Problem, Shaper, Site, Spec};
use crate::{Backlog, Discipline, DropSink, Environment, Node};

/// Parameters of CBQ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Classes and rules. A packet that no rule matches goes to the default class, or without one
    /// to the last leaf.
    pub tree: Tree<Share>,
    /// The rate of the link on the wire, the base of shares. `bandwidth` of tc-cbq.
    pub rate: BitRate,
    /// The largest IP packet to expect.
    pub largest: ByteCount,
}

impl Config {
    /// Burst of a class without a configured one, in largest packets: `maxburst` of tc-cbq.
    pub const BURST_PACKETS: u64 = 20;

    /// Classes on a link of this rate that carries packets of at most 1500 bytes.
    #[must_use]
    pub const fn new(tree: Tree<Share>, rate: BitRate) -> Self {
        Self { tree, rate, largest: ByteCount::new(1500) }
    }
}

/// A part of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Portion {
    /// A share of the rate of the link, at every depth of the tree.
    Share(Ratio),
    /// A rate on the wire.
    Rate(BitRate),
}

/// Parameters of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Guaranteed part of the link. Classes below share it.
    pub share: Portion,
    /// May borrow from the class above: `borrow` of tc-cbq, else `bounded`.
    pub borrow: bool,
    /// Other classes may not use what it leaves unused, except those below it: `isolated` of
    /// tc-cbq.
    pub isolated: bool,
    /// Order of service: 0, the most urgent, to 7. No effect in a class with classes below.
    pub priority: u8,
    /// Bytes on the wire that it may send at once after a pause. `None`: [`Config::BURST_PACKETS`]
    /// of the largest.
    pub burst: Option<WireBytes>,
}

impl Share {
    /// A share that may borrow.
    #[must_use]
    pub const fn of(share: Portion) -> Self {
        Self { share, borrow: true, isolated: false, priority: 0, burst: None }
    }
}

/// CBQ: the rules of its tree lead packets to its leaves; any other goes to the last leaf.
pub struct Cbq<P> {
    sharing: Sharing<P>,
    rules: TreeRules,
    /// By number in the configuration: the class of [`Sharing`], for leaves.
    leaves: Vec<Option<u32>>,
    last: u32,
}

impl Config {
    /// Refuses a configuration that CBQ cannot keep.
    ///
    /// # Errors
    /// An invalid tree, shares that together exceed that of the class above or the link, a burst
    /// below the largest packet, a priority above 7.
    pub fn check(&self, link_layer: &LinkLayer) -> Result<(), TreeError> {
        let shape = self.tree.shape()?;
        let rates = self.rates()?;
        let needed = link_layer.on_wire(self.largest);
        for (number, class) in self.tree.classes.iter().enumerate() {
            let share = &class.share;
            let wrong = |wrong: Wrong| Err(wrong.with(&class.name));
            if usize::from(share.priority) >= PRIORITIES {
                return wrong(Wrong::Priority(share.priority));
            }
            if let Some(burst) = share.burst.filter(|burst| *burst < needed) {
                return wrong(Wrong::BurstTooSmall { burst, needed });
            }
            let (available, given) = (rates[number], sum(shape.children[number].iter().map(|child| rates[*child])));
            if let Some(given) = given.filter(|given| *given > available) {
                return wrong(Wrong::MoreThanRate { given, available });
            }
        }
        let on_link = shape.order.iter().filter(|class| shape.parents[**class].is_none());
        match sum(on_link.map(|class| rates[*class])) {
            Some(given) if given > self.rate => Err(TreeError::MoreThanLink { given, available: self.rate }),
            _ => Ok(()),
        }
    }

    /// The guaranteed rate of each class.
    fn rates(&self) -> Result<Vec<BitRate>, TreeError> {
        let rate = |class: &super::tree::Class<Share>| match class.share.share {
            Portion::Rate(rate) => Ok(rate),
            Portion::Share(share) => share.of_rate(self.rate).ok_or_else(|| Wrong::NoShare.with(&class.name)),
        };
        self.tree.classes.iter().map(rate).collect()
    }

    /// The plans of the link and of its classes.
    fn plans(&self, shape: &Shape, rates: &[BitRate], link_layer: &LinkLayer) -> Vec<Plan> {
        let positions = shape.positions();
        let packet = link_layer.on_wire(self.largest).as_u64();
        let burst = WireBytes::new(packet * Self::BURST_PACKETS);
        // The guarantees of isolated classes below cannot be lent: their sum by class, and for the
        // link.
        let (mut reserved, mut reserved_of_link) = (vec![0_u64; rates.len()], 0);
        for class in shape.order.iter().rev() {
            let own = if self.tree.classes[*class].share.isolated { rates[*class].as_bps() } else { reserved[*class] };
            match shape.parents[*class] {
                Some(parent) => reserved[parent] += own,
                None => reserved_of_link += own,
            }
        }
        let own = |rate: BitRate, reserved: u64, burst| match BitRate::from_bps(rate.as_bps() - reserved) {
            Some(rate) => Own::Rate(Tokens { rate, burst }),
            None => Own::Nothing,
        };
        let leaves = || shape.order.iter().filter(|class| shape.children[**class].is_empty());
        let (count, total) = leaves().fold((0, 0), |(n, sum), class| (n + 1, sum + u128::from(rates[*class].as_bps())));
        let mut plans = vec![Plan {
            index: None,
            parent: None,
            own: if reserved_of_link == 0 { Own::Everything } else { own(self.rate, reserved_of_link, burst) },
            ceil: None,
            borrows: false,
            isolated: false,
            priority: 0,
            quantum: 1,
        }];
        plans.extend(shape.order.iter().map(|class| {
            let share = &self.tree.classes[*class].share;
            // Quanta are proportional to the shares, with a mean of one largest packet.
            let quantum = u128::from(packet) * count * u128::from(rates[*class].as_bps()) / total;
            Plan {
                index: Some(*class as u32),
                parent: Some(shape.parents[*class].map_or(0, |parent| positions[parent] + 1)),
                own: own(rates[*class], reserved[*class], share.burst.unwrap_or(burst)),
                ceil: None,
                borrows: share.borrow,
                isolated: share.isolated,
                priority: share.priority,
                quantum: u64::try_from(quantum).unwrap_or(u64::MAX).max(1),
            }
        }));
        plans
    }
}

impl<P: Packet> Cbq<P> {
    /// The CBQ of this configuration.
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
        let plans = config.plans(&shape, &config.rates()?, link_layer);
        let (leaves, queues) = shape.leaves(queues);
        // The link is class 0 of [`Sharing`].
        let leaves: Vec<Option<u32>> = leaves.into_iter().map(|leaf| leaf.map(|position| position + 1)).collect();
        let last = leaves.iter().rev().find_map(|leaf| *leaf).expect("a tree has a leaf");
        Ok(Self { sharing: Sharing::new("cbq", &plans, queues, link_layer, Slack::default()), rules, leaves, last })
    }
}

impl<P: Packet> Discipline<P> for Cbq<P> {
    fn enqueue(&mut self, now: Instant, mut packet: P, drops: &mut dyn DropSink<P>) {
        let class = self.rules.classify(now, &packet);
        let leaf = class.and_then(|class| self.leaves[class]).unwrap_or(self.last);
        self.sharing.note_class(leaf as usize, &mut packet);
        self.sharing.enqueue(leaf as usize, now, packet, drops);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.sharing.dequeue(now, drops)
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        self.sharing.next_ready(now)
    }

    fn backlog(&self) -> Backlog {
        self.sharing.backlog()
    }

    fn class_backlogs(&self, visit: &mut dyn FnMut(usize, Backlog)) {
        self.sharing.class_backlogs(visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.sharing.counters(visit);
    }
}

impl Mechanism for Config {
    fn check(&self, link_layer: &LinkLayer) -> Result<(), Problem> {
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
        let whole = self.rate;
        if whole > available { Err(TreeError::SharesOfMore { whole, available }.into()) } else { Ok(()) }
    }

    /// The share of a bounded class, in which those of the classes below it are, and their bursts and a packet each.
    fn shapers_of(&self, packets: &Packets) -> Vec<Shaper> {
        let Ok(rates) = self.rates() else { return Vec::new() };
        self.tree.shapers_of(packets, self.tree.last_leaf(), |class, within, _| {
            let packet = Shaper::PACKET.as_u64().max(2 * self.largest.as_u64());
            let bursts = within.iter().map(|class| {
                let own = self.tree.classes[*class].share.burst;
                2 * own.map_or(packet * Self::BURST_PACKETS, WireBytes::as_u64) + packet
            });
            let bounded = !self.tree.classes[class].share.borrow;
            bounded.then(|| Shaper::of_all(rates[class], Some(WireBytes::new(bursts.sum()))))
        })
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        let queues = self.tree.build_leaves(site)?;
        Ok(Box::new(Cbq::new(self, queues, site.environment).map_err(|why| site.refuse(why))?))
    }
}

#[cfg(test)]
mod tests;
