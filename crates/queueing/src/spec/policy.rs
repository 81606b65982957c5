//! The trees of policies: a shaper over rules over an HTB.
//!
//! The three are built as one type, so that no call between them goes through a pointer. The queues of the
//! leaves are nodes. The behaviour is that of three nodes.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;

use super::{BuildError, Problem, Shaper, Site, Spec};
use crate::catalogue::{Above, Built, Mechanism};
use crate::classify::{Packets, Rules, rules};
use crate::{Htb, Node};

impl Mechanism for rules::Config {
    fn check(&self, _link_layer: &LinkLayer) -> Result<(), Problem> {
        Ok(rules::check(self)?)
    }

    fn below(&self) -> Vec<&Spec> {
        vec![&self.queue]
    }

    fn class_name(&self, class: u16) -> Option<String> {
        self.names.get(usize::from(class)).cloned()
    }

    fn shapers_of(&self, packets: &Packets) -> Vec<Shaper> {
        self.queue.shapers_of(&packets.of_class(self.class_of_all(packets)))
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        if let Some(policy) = over_htb::<P>(self, site)? {
            return Ok(Box::new(policy));
        }
        let queue: Node<P> = site.queue(&self.queue)?;
        Ok(Box::new(Rules::new(&self.rules, self.otherwise, site.environment, queue)))
    }
}

/// Builds `shaper` over `queue`: as one type with it where that is rules over an HTB.
pub(crate) fn shaper_over<P: Packet + Send + 'static>(
    shaper: &impl Above,
    queue: &Spec,
    site: &mut Site<'_>,
) -> Built<P> {
    let policy = match queue {
        Spec::Rules(config) => site.below("queue".into(), |site| {
            site.check(queue)?;
            over_htb::<P>(config, site)
        })?,
        _ => None,
    };
    let built = match policy {
        Some(policy) => shaper.over(policy, site.environment),
        None => shaper.over::<P>(site.queue::<P>(queue)?, site.environment),
    };
    built.map_err(|why| site.refuse(why))
}

/// Builds checked rules if their queue is an HTB.
fn over_htb<P: Packet + Send + 'static>(
    config: &rules::Config,
    site: &mut Site<'_>,
) -> Result<Option<Rules<P, Htb<P>>>, BuildError> {
    let Spec::Htb(tree) = &*config.queue else { return Ok(None) };
    let htb = site.below("queue".into(), |site| {
        site.check(&config.queue)?;
        tree.build_tree(site)
    })?;
    Ok(Some(Rules::new(&config.rules, config.otherwise, site.environment, htb)))
}
