//! A tree of disciplines as plain data, and how it is built.
//!
//! A configuration describes a tree with [`Spec`]; [`Spec::build`] makes it for any kind of packet and any line. Both
//! clocks build theirs from the same value.

use lastmile_units::{BitRate, ByteCount, Duration, PacketCount, WireBytes};

use crate::ack::{cake, clamp, filter, pacing, regenerator, sad};
use crate::cake::Config as CakeConfig;
use crate::classify::{Match, rules};
use crate::meter::tbf::Peak;
use crate::meter::{drain, policer};
use crate::sched::{cbq, custom, htb};
use crate::{Limit, Overflow};

mod aqm;
mod build;
mod check;
mod error;
mod fair;
mod policy;
mod sched;

pub use error::{BuildError, Problem};

/// A discipline and those below it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Spec {
    /// [`crate::Fifo`].
    Fifo {
        /// How much it holds.
        limit: Limit,
        /// Which packet goes when it is full.
        drop: Overflow,
    },
    /// [`crate::fair::Sfq`].
    Sfq(crate::fair::sfq::Config),
    /// [`crate::aqm::Red`].
    Red(crate::aqm::red::Config),
    /// [`crate::aqm::CoDel`].
    Codel(crate::aqm::codel::Config),
    /// [`crate::fair::FqCodel`].
    FqCodel(crate::fair::fq_codel::Config),
    /// Deficit round robin: [`crate::fair::drr`].
    Drr(crate::fair::drr::Config),
    /// Weighted fair queueing: [`crate::fair::wfq`].
    Wfq(crate::fair::wfq::Config),
    /// [`crate::fair::wf2q_plus`].
    Wf2qPlus(crate::fair::wf2q_plus::Config),
    /// [`crate::Priority`].
    Priority {
        /// The classes, the most urgent first. A packet goes to the first that matches it, or else to the last.
        classes: Vec<ClassSpec>,
    },
    /// [`crate::CustomQueueing`].
    Custom(custom::Config),
    /// [`crate::Cbq`].
    Cbq(cbq::Config),
    /// [`crate::Htb`].
    Htb(htb::Config),
    /// [`crate::meter::Tbf`].
    Tbf {
        /// Rate on the wire.
        rate: BitRate,
        /// What may leave at once after a pause.
        burst: WireBytes,
        /// The rate within a burst.
        peak: Option<Peak>,
        /// The largest IP packet to expect.
        largest: ByteCount,
        /// How late a caller may ask without costing rate ([`crate::meter::tbf::Config::catch_up`]).
        catch_up: Duration,
        /// What waits for tokens.
        queue: Box<Spec>,
    },
    /// [`crate::meter::Drain`].
    Drain {
        /// The line in front of it, and how its queue is kept empty.
        config: drain::Config,
        /// What waits here instead.
        queue: Box<Spec>,
    },
    /// [`crate::Cake`].
    Cake(CakeConfig),
    /// [`crate::meter::Policer`].
    Policer {
        /// What is metered, and what is done about it; the first that covers a packet decides.
        rules: Vec<policer::Rule>,
        /// Where what passes waits.
        queue: Box<Spec>,
    },
    /// [`crate::Rules`].
    Rules(rules::Config),
    /// [`crate::ack::SmartAckDropper`].
    Sad {
        /// What happens to duplicate ACKs.
        duplicates: sad::Duplicates,
        /// How a regenerator is told of what was suppressed.
        report: sad::Report,
        /// What is never regulated.
        exempt: Match,
        /// The queue behind it.
        queue: Box<Spec>,
    },
    /// [`crate::ack::AckRegenerator`].
    AckRegenerator {
        /// How it works.
        config: regenerator::Config,
        /// The queue behind it.
        queue: Box<Spec>,
    },
    /// [`crate::ack::AckFilter`].
    AckFilter {
        /// How much it holds.
        limit: Limit,
        /// Which packet goes when it is full.
        drop: Overflow,
        /// How it decides.
        rules: filter::Rules,
    },
    /// [`crate::ack::AckCollapsing`].
    AckCollapsing {
        /// How much it holds.
        limit: Limit,
        /// Which packet goes when it is full.
        drop: Overflow,
        /// What is never regulated.
        exempt: Match,
    },
    /// [`crate::ack::CakeAckFilter`].
    CakeAckFilter {
        /// How much it holds.
        limit: Limit,
        /// Which packet goes when it is full.
        drop: Overflow,
        /// How it decides.
        rules: cake::Rules,
    },
    /// [`crate::ack::AckPacing`].
    AckPacing {
        /// How fast ACKs go, and how long they are held at most.
        config: pacing::Config,
        /// The queue behind it.
        queue: Box<Spec>,
    },
    /// [`crate::ack::WindowClamp`].
    WindowClamp {
        /// What a flow may have in flight.
        config: clamp::Config,
        /// The queue in front of it.
        queue: Box<Spec>,
    },
    /// [`crate::ack::Witness`]: notes what a clamp in the other direction asks for.
    Witness {
        /// The queue behind it.
        queue: Box<Spec>,
    },
}

/// A class of a scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClassSpec {
    /// Which packets belong to it.
    pub matches: Match,
    /// Where they wait.
    pub queue: Spec,
}

impl Spec {
    /// As many classes as tc-prio(8) has bands at most.
    pub const MAX_CLASSES: usize = 16;
    /// Rules of a policer.
    pub const MAX_RULES: usize = 64;
    /// Buckets of a hash of flows: as many as tc-fq_codel(8) and tc-sfq(8) take.
    pub const MAX_BUCKETS: u32 = 65_536;
    /// Disciplines above one another.
    pub const MAX_DEPTH: usize = 16;

    /// The plainest queue: so many packets, the one that arrives goes when it is full.
    #[must_use]
    pub const fn fifo(packets: u64) -> Self {
        Self::Fifo { limit: Limit::Packets(PacketCount::new(packets)), drop: Overflow::Tail }
    }

    /// The name of the class that packets carry in this queue ([`lastmile_packet::Meta::class`]): of the outermost rules, or without rules
    /// of the outermost scheduler. `None`: there is no such class.
    #[must_use]
    pub fn class_name(&self, class: u16) -> Option<String> {
        let number = usize::from(class);
        let numbered = |matches: Option<&Match>| matches.map(|_| format!("classes.{number}"));
        match self {
            Self::Htb(config) => config.tree.classes.get(number).map(|class| class.name.clone()),
            Self::Cbq(config) => config.tree.classes.get(number).map(|class| class.name.clone()),
            Self::Priority { classes } => numbered(classes.get(number).map(|class| &class.matches)),
            Self::Custom(config) => numbered(config.classes.get(number).map(|class| &class.class.matches)),
            Self::Drr(config) => numbered(config.classes().get(number).map(|class| &class.class.matches)),
            Self::Wfq(config) | Self::Wf2qPlus(config) => {
                numbered(config.classes().get(number).map(|class| &class.class.matches))
            }
            Self::Cake(config) => config.diffserv.names().get(number).map(|name| (*name).to_owned()),
            Self::Rules(config) => config.names.get(number).cloned(),
            _ => match self.below().as_slice() {
                [only] => only.class_name(class),
                _ => None,
            },
        }
    }

    /// The disciplines right below this one, in the order of the configuration.
    #[must_use]
    pub fn below(&self) -> Vec<&Self> {
        match self {
            Self::Sfq(_)
            | Self::Red(_)
            | Self::Codel(_)
            | Self::FqCodel(_)
            | Self::Fifo { .. }
            | Self::AckFilter { .. }
            | Self::AckCollapsing { .. }
            | Self::CakeAckFilter { .. } => {
                vec![]
            }
            Self::Cake(_) => vec![],
            Self::Tbf { queue, .. } | Self::Drain { queue, .. } => vec![queue],
            Self::Policer { queue, .. } | Self::Sad { queue, .. } => vec![queue],
            Self::AckPacing { queue, .. } | Self::WindowClamp { queue, .. } | Self::AckRegenerator { queue, .. } => {
                vec![queue]
            }
            Self::Witness { queue } => vec![queue],
            Self::Drr(config) => config.classes().iter().map(|class| &class.class.queue).collect(),
            Self::Wfq(config) | Self::Wf2qPlus(config) => {
                config.classes().iter().map(|class| &class.class.queue).collect()
            }
            Self::Priority { classes } => classes.iter().map(|class| &class.queue).collect(),
            Self::Custom(config) => config.classes.iter().map(|class| &class.class.queue).collect(),
            Self::Cbq(config) => config.tree.classes.iter().filter_map(|class| class.queue.as_ref()).collect(),
            Self::Htb(config) => config.tree.classes.iter().filter_map(|class| class.queue.as_ref()).collect(),
            Self::Rules(config) => vec![&config.queue],
        }
    }
}

#[cfg(test)]
mod tests;
