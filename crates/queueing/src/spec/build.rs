//! Building a tree, from the root down.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;

use super::{BuildError, Problem, Spec, aqm, fair, policy, sched};
use crate::ack::{
    AckCollapsing, AckFilter, AckPacing, AckRegenerator, CakeAckFilter, SmartAckDropper, WindowClamp, Witness,
};
use crate::cake::Cake;
use crate::classify::{Condition, Rules, rules};
use crate::meter::{Policer, tbf};
use crate::{Environment, Fifo, Node};

impl Spec {
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
        Ok(match self {
            Self::Fifo { limit, drop } => {
                let fifo = Fifo::new(*limit, *drop, link_layer);
                Box::new(fifo.ok_or_else(|| BuildError::new(at, Problem::NoCells))?)
            }
            Self::FqCodel(config) => fair::fq_codel(config, link_layer).map_err(|why| BuildError::new(at, why))?,
            Self::Sfq(config) => fair::sfq(config, link_layer).map_err(|why| BuildError::new(at, why))?,
            Self::Red(config) => aqm::red(config, link_layer).map_err(|why| BuildError::new(at, why))?,
            Self::Codel(config) => aqm::codel(config, link_layer).map_err(|why| BuildError::new(at, why))?,
            Self::AckFilter { limit, drop, rules } => {
                let filter = AckFilter::new(*limit, *drop, rules, environment);
                Box::new(filter.ok_or_else(|| BuildError::new(at, Problem::NoCells))?)
            }
            Self::AckCollapsing { limit, drop, exempt } => {
                let collapsing = AckCollapsing::new(*limit, *drop, exempt, environment);
                Box::new(collapsing.ok_or_else(|| BuildError::new(at, Problem::NoCells))?)
            }
            Self::CakeAckFilter { limit, drop, rules } => {
                let filter = CakeAckFilter::new(*limit, *drop, rules, environment);
                Box::new(filter.ok_or_else(|| BuildError::new(at, Problem::NoCells))?)
            }
            Self::AckPacing { config, queue } => {
                let pacing = AckPacing::new(config, environment, queue.build_queue(at, environment)?);
                Box::new(pacing.ok_or_else(|| BuildError::new(at, Problem::Hold(config.max_hold)))?)
            }
            Self::WindowClamp { config, queue } => {
                let clamp = WindowClamp::new(config, environment, queue.build_queue(at, environment)?);
                Box::new(clamp.ok_or_else(|| BuildError::new(at, Problem::SegmentSize(config.mss)))?)
            }
            Self::Witness { queue } => Box::new(Witness::new(environment, queue.build_queue(at, environment)?)),
            Self::Sad { duplicates, report, exempt, queue } => {
                let queue: Node<P> = queue.build_queue(at, environment)?;
                let exempt = Condition::new(exempt, environment);
                Box::new(SmartAckDropper::new(queue, *duplicates, *report, exempt))
            }
            Self::AckRegenerator { config, queue } => {
                let queue: Node<P> = queue.build_queue(at, environment)?;
                Box::new(AckRegenerator::new(queue, config, environment))
            }
            Self::Tbf { rate, burst, peak, largest, catch_up, queue } => {
                let (rate, burst, peak, largest, catch_up) = (*rate, *burst, *peak, *largest, *catch_up);
                let shaper = tbf::Config { rate, burst, peak, link_layer: *link_layer, largest, catch_up };
                policy::shaper_over(&shaper, queue, at, environment)?
            }
            Self::Drain { config, queue } => policy::shaper_over(config, queue, at, environment)?,
            Self::Cake(config) => Box::new(Cake::new(config, environment)),
            Self::Policer { rules, queue } => {
                Box::new(Policer::new(rules, environment, queue.build_queue(at, environment)?))
            }
            Self::Rules(rules::Config { rules, otherwise, queue, .. }) => {
                if let Some(policy) = policy::rules_over_htb::<P>(self, at, environment)? {
                    return Ok(Box::new(policy));
                }
                let queue: Node<P> = queue.build_queue(at, environment)?;
                Box::new(Rules::new(rules, *otherwise, environment, queue))
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

    /// What stands below the key `queue`.
    pub(super) fn build_queue<P: Packet + Send + 'static>(
        &self,
        at: &mut Vec<String>,
        environment: &Environment,
    ) -> Result<Node<P>, BuildError> {
        self.build_below("queue".into(), at, environment)
    }

    pub(super) fn build_below<P: Packet + Send + 'static>(
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
}
