//! What policies are made of: a shaper over rules over an HTB.
//!
//! The three are one type then, so that nothing between them is called through a pointer; the queues of the leaves are nodes as ever. What
//! they do is the same.

use lastmile_packet::Packet;

use super::{BuildError, Spec, sched};
use crate::classify::{Rules, rules};
use crate::{Environment, Htb};

/// Builds `spec`, which stands below the key `queue` of what `at` leads to, if it is rules over an HTB.
pub(super) fn below<P: Packet + Send + 'static>(
    spec: &Spec,
    at: &mut Vec<String>,
    environment: &Environment,
) -> Result<Option<Rules<P, Htb<P>>>, BuildError> {
    at.push("queue".into());
    let built = rules_over_htb(spec, at, environment)?;
    at.pop();
    Ok(built)
}

/// The same for what `at` leads to.
pub(super) fn rules_over_htb<P: Packet + Send + 'static>(
    spec: &Spec,
    at: &mut Vec<String>,
    environment: &Environment,
) -> Result<Option<Rules<P, Htb<P>>>, BuildError> {
    let Spec::Rules(rules::Config { rules, otherwise, queue }) = spec else { return Ok(None) };
    let Spec::Htb(config) = &**queue else { return Ok(None) };
    spec.check_at(at, environment)?;
    let below = Rules::below(environment);
    at.push("queue".into());
    queue.check_at(at, &below)?;
    let htb = sched::htb(config, at, &below)?;
    at.pop();
    Ok(Some(Rules::new(rules, *otherwise, &below, htb)))
}
