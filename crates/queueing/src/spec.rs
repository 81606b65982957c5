//! A tree of disciplines as plain data, and how it is built.
//!
//! A configuration describes a tree with [`Spec`]; [`Spec::build`] makes it for any kind of packet and any line. Both
//! clocks build theirs from the same value.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{BitRate, ByteCount, Duration, PacketCount, WireBytes};

use crate::ack::{
    AckCollapsing, AckFilter, AckPacing, AckRegenerator, CakeAckFilter, SmartAckDropper, WindowClamp, Witness, cake,
    clamp, filter, pacing, regenerator, sad,
};
use crate::cake::{Cake, CakeError, Config as CakeConfig};
use crate::classify::{Condition, Match, MatchError, Rules, rules};
use crate::meter::drain::{self, Drain, DrainError};
use crate::meter::tbf::{Config as TbfConfig, Peak, Tbf, TbfError};
use crate::meter::{MeterError, Policer, policer};
use crate::sched::tree::TreeError;
use crate::sched::{cbq, custom, htb};
use crate::{Environment, Fifo, Limit, Node, Overflow};

mod aqm;
mod fair;
mod policy;
mod sched;

/// A discipline and those below it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Spec {
    /// [`Fifo`].
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
    /// [`Tbf`].
    Tbf {
        /// Rate on the wire.
        rate: BitRate,
        /// What may leave at once after a pause.
        burst: WireBytes,
        /// The rate within a burst.
        peak: Option<Peak>,
        /// The largest IP packet to expect.
        largest: ByteCount,
        /// How late a caller may ask without costing rate ([`TbfConfig::catch_up`]).
        catch_up: Duration,
        /// What waits for tokens.
        queue: Box<Spec>,
    },
    /// [`Drain`].
    Drain {
        /// The line in front of it, and how its queue is kept empty.
        config: drain::Config,
        /// What waits here instead.
        queue: Box<Spec>,
    },
    /// [`Cake`].
    Cake(CakeConfig),
    /// [`Policer`].
    Policer {
        /// What is metered, and what is done about it; the first that covers a packet decides.
        rules: Vec<policer::Rule>,
        /// Where what passes waits.
        queue: Box<Spec>,
    },
    /// [`crate::Rules`].
    Rules(rules::Config),
    /// [`SmartAckDropper`].
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
    /// [`AckRegenerator`].
    AckRegenerator {
        /// How it works.
        config: regenerator::Config,
        /// The queue behind it.
        queue: Box<Spec>,
    },
    /// [`AckFilter`].
    AckFilter {
        /// How much it holds.
        limit: Limit,
        /// Which packet goes when it is full.
        drop: Overflow,
        /// How it decides.
        rules: filter::Rules,
    },
    /// [`AckCollapsing`].
    AckCollapsing {
        /// How much it holds.
        limit: Limit,
        /// Which packet goes when it is full.
        drop: Overflow,
        /// What is never regulated.
        exempt: Match,
    },
    /// [`CakeAckFilter`].
    CakeAckFilter {
        /// How much it holds.
        limit: Limit,
        /// Which packet goes when it is full.
        drop: Overflow,
        /// How it decides.
        rules: cake::Rules,
    },
    /// [`AckPacing`].
    AckPacing {
        /// How fast ACKs go, and how long they are held at most.
        config: pacing::Config,
        /// The queue behind it.
        queue: Box<Spec>,
    },
    /// [`WindowClamp`].
    WindowClamp {
        /// What a flow may have in flight.
        config: clamp::Config,
        /// The queue in front of it.
        queue: Box<Spec>,
    },
    /// [`Witness`]: notes what a clamp in the other direction asks for.
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

/// A tree that cannot be built: where, and why.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{problem}", Place(.at))]
pub struct BuildError {
    /// Where the discipline stands below the root, by the keys of a configuration; empty for the root.
    pub at: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a discipline of a tree.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Problem {
    /// The queue holds nothing.
    #[error("a limit of zero: no packet would ever pass")]
    ZeroLimit,
    /// A scheduler that would send nothing in a round.
    #[error("a quantum of zero: nothing would ever be sent")]
    ZeroQuantum,
    /// More queues than are worth their memory.
    #[error("{0} buckets; there may be at most {max}", max = Spec::MAX_BUCKETS)]
    Buckets(u32),
    /// Times with which CoDel cannot work.
    #[error(transparent)]
    Times(#[from] crate::aqm::codel::TimesError),
    /// Thresholds, probabilities or weights with which RED cannot work.
    #[error(transparent)]
    Red(#[from] crate::aqm::red::RedError),
    /// A limit in cells on a line that has none.
    #[error("a limit in cells, but this line sends no cells; give the limit in packets or bytes")]
    NoCells,
    /// A scheduler without a class, or with too many.
    #[error("{0} classes; there must be from 1 to {max}", max = Spec::MAX_CLASSES)]
    Classes(usize),
    /// A queue that is passed over in every turn.
    #[error("a count of zero: the queue would never send")]
    ZeroCount,
    /// Classes that are no tree, or are promised what there is not.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// Too many disciplines above one another.
    #[error("more than {max} disciplines above one another", max = Spec::MAX_DEPTH)]
    TooDeep,
    /// A shaper that would pass nothing, or not what it says.
    #[error(transparent)]
    Shaper(#[from] TbfError),
    /// A drain that would let nothing pass, or drain nothing.
    #[error(transparent)]
    Drain(#[from] DrainError),
    /// A meter that would let nothing pass, or not what it says.
    #[error(transparent)]
    Meter(#[from] MeterError),
    /// A CAKE that would let nothing pass.
    #[error(transparent)]
    Cake(#[from] CakeError),
    /// A policer without a rule, or with too many.
    #[error("{0} rules; there must be from 1 to {max}", max = Spec::MAX_RULES)]
    Rules(usize),
    /// A condition or a list of rules that cannot be.
    #[error(transparent)]
    Match(#[from] MatchError),
    /// An ACK that is never held, or for too long.
    #[error("a hold of {0}; it must be above zero and at most {max} (RFC 1122, section 4.2.3.2)", max = pacing::Config::LONGEST_HOLD)]
    Hold(Duration),
    /// A segment that no packet carries.
    #[error("a segment of {0}; it must have from 1 to {max} bytes", max = u16::MAX)]
    SegmentSize(ByteCount),
    /// A regenerator that takes a receiver to acknowledge nothing.
    #[error("a stride of 0 bytes; a receiver acknowledges at least one byte at a time")]
    ZeroStride,
    /// A regenerator that forgets at once, or while it still holds packets.
    #[error("what is known of a flow is forgotten after {idle}; that must be longer than packets are held, {hold}")]
    ForgetsTooSoon {
        /// After how long.
        idle: Duration,
        /// How long packets are held at the most.
        hold: Duration,
    },
    /// A dropper over a regenerator.
    #[error(
        "an ACK regenerator below a Smart ACK Dropper, which would take what it makes for what came; \
         it belongs behind the line, or above the dropper"
    )]
    RegeneratorBelow,
    /// A DSCP is six bits.
    #[error("a DSCP of {0}; it is from 0 to 63")]
    Dscp(u8),
}

struct Place<'a>(&'a str);

impl core::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "{}: ", self.0) }
    }
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

    /// Builds the tree for a line whose packets take what `link_layer` says, and whose flows are known by their number alone.
    ///
    /// # Errors
    /// The first discipline that cannot be built, from the root down.
    pub fn build<P: Packet + Send + 'static>(&self, link_layer: &LinkLayer) -> Result<Node<P>, BuildError> {
        self.build_in(&Environment::new(*link_layer))
    }

    /// Builds the tree for its surroundings.
    ///
    /// # Errors
    /// The first discipline that cannot be built, from the root down.
    pub fn build_in<P: Packet + Send + 'static>(&self, environment: &Environment) -> Result<Node<P>, BuildError> {
        self.build_at(&mut Vec::new(), environment)
    }

    /// `at` holds the keys that lead here.
    fn build_at<P: Packet + Send + 'static>(
        &self,
        at: &mut Vec<String>,
        environment: &Environment,
    ) -> Result<Node<P>, BuildError> {
        let link_layer = &environment.link_layer;
        self.check_at(at, environment)?;
        let refused = |at: &[String], problem| BuildError { at: at.join("."), problem };
        Ok(match self {
            Self::Fifo { limit, drop } => {
                let fifo = Fifo::new(*limit, *drop, link_layer);
                Box::new(fifo.ok_or_else(|| refused(at, Problem::NoCells))?)
            }
            Self::FqCodel(config) => fair::fq_codel(config, link_layer).map_err(|problem| refused(at, problem))?,
            Self::Sfq(config) => fair::sfq(config, link_layer).map_err(|problem| refused(at, problem))?,
            Self::Red(config) => aqm::red(config, link_layer).map_err(|problem| refused(at, problem))?,
            Self::Codel(config) => aqm::codel(config, link_layer).map_err(|problem| refused(at, problem))?,
            Self::AckFilter { limit, drop, rules } => {
                let filter = AckFilter::new(*limit, *drop, rules, environment);
                Box::new(filter.ok_or_else(|| refused(at, Problem::NoCells))?)
            }
            Self::AckCollapsing { limit, drop, exempt } => {
                let collapsing = AckCollapsing::new(*limit, *drop, exempt, environment);
                Box::new(collapsing.ok_or_else(|| refused(at, Problem::NoCells))?)
            }
            Self::AckPacing { config, queue } => {
                let queue: Node<P> = queue.build_below("queue".into(), at, environment)?;
                let pacing = AckPacing::new(config, environment, queue);
                Box::new(pacing.ok_or_else(|| refused(at, Problem::Hold(config.max_hold)))?)
            }
            Self::WindowClamp { config, queue } => {
                let queue: Node<P> = queue.build_below("queue".into(), at, environment)?;
                let clamp = WindowClamp::new(config, environment, queue);
                Box::new(clamp.ok_or_else(|| refused(at, Problem::SegmentSize(config.mss)))?)
            }
            Self::Witness { queue } => {
                Box::new(Witness::new(environment, queue.build_below("queue".into(), at, environment)?))
            }
            Self::CakeAckFilter { limit, drop, rules } => {
                let filter = CakeAckFilter::new(*limit, *drop, rules, environment);
                Box::new(filter.ok_or_else(|| refused(at, Problem::NoCells))?)
            }
            Self::Sad { duplicates, report, exempt, queue } => {
                let queue: Node<P> = queue.build_below("queue".into(), at, environment)?;
                let exempt = Condition::new(exempt, environment);
                Box::new(SmartAckDropper::new(queue, *duplicates, *report, exempt))
            }
            Self::AckRegenerator { config, queue } => {
                let queue: Node<P> = queue.build_below("queue".into(), at, environment)?;
                Box::new(AckRegenerator::new(queue, config, environment))
            }
            Self::Tbf { rate, burst, peak, largest, catch_up, queue } => {
                let (rate, burst, peak, largest, catch_up) = (*rate, *burst, *peak, *largest, *catch_up);
                let config = TbfConfig { rate, burst, peak, link_layer: *link_layer, largest, catch_up };
                let error = |error: TbfError, at: &[String]| refused(at, error.into());
                if let Some(queue) = policy::below::<P>(queue, at, environment)? {
                    Box::new(Tbf::new(&config, queue).map_err(|refusal| error(refusal, at))?)
                } else {
                    let queue: Node<P> = queue.build_below("queue".into(), at, environment)?;
                    Box::new(Tbf::new(&config, queue).map_err(|refusal| error(refusal, at))?)
                }
            }
            Self::Drain { config, queue } => {
                let error = |error: DrainError, at: &[String]| refused(at, error.into());
                if let Some(queue) = policy::below::<P>(queue, at, environment)? {
                    Box::new(Drain::new(config, environment, queue).map_err(|refusal| error(refusal, at))?)
                } else {
                    let queue: Node<P> = queue.build_below("queue".into(), at, environment)?;
                    Box::new(Drain::new(config, environment, queue).map_err(|refusal| error(refusal, at))?)
                }
            }
            Self::Cake(config) => Box::new(Cake::new(config, environment)),
            Self::Policer { rules, queue } => {
                Box::new(Policer::new(rules, environment, queue.build_below("queue".into(), at, environment)?))
            }
            Self::Rules(rules::Config { rules, otherwise, queue }) => {
                if let Some(policy) = policy::rules_over_htb::<P>(self, at, environment)? {
                    return Ok(Box::new(policy));
                }
                let below = Rules::below(environment);
                let queue: Node<P> = queue.build_below("queue".into(), at, &below)?;
                Box::new(Rules::new(rules, *otherwise, &below, queue))
            }
            Self::Drr(config) => fair::drr(config, at, environment)?,
            Self::Wfq(config) => fair::wfq(config, at, environment)?,
            Self::Wf2qPlus(config) => fair::wf2q_plus(config, at, environment)?,
            Self::Priority { classes } => sched::priority(classes, at, environment)?,
            Self::Custom(config) => sched::custom(config, at, environment)?,
            Self::Cbq(config) => sched::cbq(config, at, environment)?,
            Self::Htb(config) => Box::new(sched::htb(config, at, environment)?),
        })
    }

    fn build_below<P: Packet + Send + 'static>(
        &self,
        key: String,
        at: &mut Vec<String>,
        environment: &Environment,
    ) -> Result<Node<P>, BuildError> {
        at.push(key);
        let built = self.build_at(at, environment)?;
        at.pop();
        Ok(built)
    }

    fn check_at(&self, at: &[String], environment: &Environment) -> Result<(), BuildError> {
        let refused = |problem| BuildError { at: at.join("."), problem };
        self.check(at.len(), &environment.link_layer).map_err(refused)
    }

    /// True when an ACK regenerator is here or below.
    fn regenerates(&self) -> bool {
        matches!(self, Self::AckRegenerator { .. }) || self.below().into_iter().any(Self::regenerates)
    }

    /// What a discipline's own constructor does not refuse.
    fn check(&self, depth: usize, link_layer: &LinkLayer) -> Result<(), Problem> {
        if depth >= Self::MAX_DEPTH {
            return Err(Problem::TooDeep);
        }
        match self {
            Self::Fifo { limit, .. } => check_limit(*limit, link_layer),
            Self::AckFilter { limit, rules: filter::Rules { exempt, .. }, .. }
            | Self::AckCollapsing { limit, exempt, .. }
            | Self::CakeAckFilter { limit, rules: cake::Rules { exempt, .. }, .. } => {
                check_limit(*limit, link_layer)?;
                Ok(exempt.check()?)
            }
            Self::Sad { queue, .. } if queue.regenerates() => Err(Problem::RegeneratorBelow),
            Self::Sad { exempt, .. }
            | Self::AckPacing { config: pacing::Config { exempt, .. }, .. }
            | Self::WindowClamp { config: clamp::Config { exempt, .. }, .. } => Ok(exempt.check()?),
            Self::AckRegenerator { config, .. } => {
                config.check()?;
                Ok(config.exempt.check()?)
            }
            Self::Witness { .. } => Ok(()),
            Self::Tbf { .. } | Self::Sfq(_) | Self::Red(_) | Self::Codel(_) | Self::FqCodel(_) => Ok(()),
            Self::Drain { config, .. } => Ok(config.check()?),
            Self::Cake(config) => Ok(config.check()?),
            Self::Policer { rules, .. } if rules.is_empty() || rules.len() > Self::MAX_RULES => {
                Err(Problem::Rules(rules.len()))
            }
            Self::Policer { rules, .. } => rules.iter().try_for_each(|rule| check_rule(rule, link_layer)),
            Self::Rules(config) => Ok(rules::check(config)?),
            Self::Drr(config) => fair::check_drr(config),
            Self::Wfq(config) | Self::Wf2qPlus(config) => fair::check_among(config),
            Self::Priority { classes } => sched::check_classes(classes),
            Self::Custom(config) => sched::check_custom(config),
            Self::Cbq(config) => sched::check_rules(&config.tree.rules),
            Self::Htb(config) => sched::check_htb(config),
        }
    }
}

fn check_limit(limit: Limit, link_layer: &LinkLayer) -> Result<(), Problem> {
    let count = match limit {
        Limit::Packets(packets) => packets.as_u64(),
        Limit::Bytes(bytes) => bytes.as_u64(),
        Limit::Cells(cells) => {
            link_layer.cells(ByteCount::new(1)).ok_or(Problem::NoCells)?;
            cells.as_u64()
        }
    };
    if count == 0 { Err(Problem::ZeroLimit) } else { Ok(()) }
}

fn check_rule(rule: &policer::Rule, link_layer: &LinkLayer) -> Result<(), Problem> {
    rule.matches.check()?;
    for action in [rule.conform, rule.exceed, rule.violate] {
        if let Some(policer::Remark::Dscp(dscp @ 64..)) = action.mark {
            return Err(Problem::Dscp(dscp));
        }
    }
    if rule.meter.counts_cells() {
        link_layer.cells(rule.largest).ok_or(MeterError::NoCells)?;
    }
    Ok(rule.meter.check(link_layer.on_wire(rule.largest))?)
}

#[cfg(test)]
mod tests;
