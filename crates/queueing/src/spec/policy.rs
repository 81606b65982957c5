//! What policies are made of: a shaper over rules over an HTB.
//!
//! The three are one type then, so that nothing between them is called through a pointer; the queues of the leaves are nodes as ever. What
//! they do is the same.

use lastmile_packet::Packet;

use super::{BuildError, Problem, Spec, sched};
use crate::classify::{Rules, rules};
use crate::meter::drain::{self, Drain};
use crate::meter::tbf::{self, Tbf};
use crate::{Discipline, Environment, Htb, Node};

/// What a shaper is made from, whatever the type of its queue.
pub(super) trait Shaper {
    fn over<P: Packet + Send + 'static>(
        &self,
        queue: impl Discipline<P> + Send + 'static,
        environment: &Environment,
    ) -> Result<Node<P>, Problem>;
}

impl Shaper for tbf::Config {
    fn over<P: Packet + Send + 'static>(
        &self,
        queue: impl Discipline<P> + Send + 'static,
        _environment: &Environment,
    ) -> Result<Node<P>, Problem> {
        Ok(Box::new(Tbf::new(self, queue)?))
    }
}

impl Shaper for drain::Config {
    fn over<P: Packet + Send + 'static>(
        &self,
        queue: impl Discipline<P> + Send + 'static,
        environment: &Environment,
    ) -> Result<Node<P>, Problem> {
        Ok(Box::new(Drain::new(self, environment, queue)?))
    }
}

/// Builds `shaper`, to which `at` leads, over `queue`: as one type with it where that is rules over an HTB.
pub(super) fn shaper_over<P: Packet + Send + 'static>(
    shaper: &impl Shaper,
    queue: &Spec,
    at: &mut Vec<String>,
    environment: &Environment,
) -> Result<Node<P>, BuildError> {
    at.push("queue".into());
    let policy = rules_over_htb::<P>(queue, at, environment)?;
    at.pop();
    let built = match policy {
        Some(policy) => shaper.over(policy, environment),
        None => shaper.over::<P>(queue.build_queue(at, environment)?, environment),
    };
    built.map_err(|why| BuildError::new(at, why))
}

/// Builds `spec`, to which `at` leads, if it is rules over an HTB.
pub(super) fn rules_over_htb<P: Packet + Send + 'static>(
    spec: &Spec,
    at: &mut Vec<String>,
    environment: &Environment,
) -> Result<Option<Rules<P, Htb<P>>>, BuildError> {
    let Spec::Rules(rules::Config { rules, otherwise, queue, .. }) = spec else { return Ok(None) };
    let Spec::Htb(config) = &**queue else { return Ok(None) };
    spec.check_at(at, environment)?;
    at.push("queue".into());
    queue.check_at(at, environment)?;
    let htb = sched::htb(config, at, environment)?;
    at.pop();
    Ok(Some(Rules::new(rules, *otherwise, environment, htb)))
}
