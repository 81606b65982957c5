//! What a discipline's own constructor does not refuse.

use lastmile_linklayer::LinkLayer;
use lastmile_units::ByteCount;

use super::{BuildError, Problem, Spec, fair, sched};
use crate::ack::{cake, clamp, filter, pacing};
use crate::classify::rules;
use crate::meter::{MeterError, policer};
use crate::{Environment, Limit};

impl Spec {
    pub(super) fn check_at(&self, at: &[String], environment: &Environment) -> Result<(), BuildError> {
        self.check(at.len(), &environment.link_layer).map_err(|why| BuildError::new(at, why))
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

pub(super) fn check_limit(limit: Limit, link_layer: &LinkLayer) -> Result<(), Problem> {
    let count = match limit {
        Limit::Packets(packets) => packets.as_u64(),
        Limit::Bytes(bytes) => bytes.as_u64(),
        Limit::Wire(bytes) => bytes.as_u64(),
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
