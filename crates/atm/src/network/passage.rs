//! What a link does to a cell that finds its port idle, and at which ports every cell does.
//!
//! A port to which cells come no closer than it sends them is a delay: each finds it idle, and none is ever dropped there. Such
//! ports can be left out: what comes to them goes past, with their time added. They are those with one FIFO in a memory of its own and no
//! policer, to which all comes over one link that is no faster, or from one source that is shaped. Without trains, and so in a network with
//! ABR, none is left out; nor is one at either end of a link that loses cells, which are told where they come off it.

use super::spec::{LinkId, LinkSpec, NetworkSpec, Queues, Upc};
use crate::time::Spacing;

/// From the start of a cell's transmission to its arrival.
pub(super) fn transit(link: &LinkSpec) -> Spacing {
    Spacing::of_cell(link.rate).plus(Spacing::of(link.delay))
}

/// From one start of a transmission to the next, at the least.
pub(super) fn interval(link: &LinkSpec) -> Spacing {
    Spacing::of_cell(link.pace.unwrap_or(link.rate))
}

/// True for a port to which no cell comes earlier than one interval behind the one before, and which drops none that finds it idle.
pub(super) fn never_waits(spec: &NetworkSpec, id: LinkId) -> bool {
    let link = &spec.links[id.index()];
    let own_memory = spec.nodes[link.from.index()].shared_memory.is_none();
    let policed = |upc: &Option<Upc>| upc.is_some_and(|upc| upc.at == id);
    let free = !spec.vcs.iter().any(|vc| policed(&vc.upc)) && !spec.vps.iter().any(|vp| policed(&vp.upc));
    if !own_memory || !free || link.loss_ppb > 0 || !matches!(link.queues, Queues::Fifo(_)) {
        return false;
    }
    let loses = |before: Option<LinkId>| before.is_some_and(|link| spec.links[link.index()].loss_ppb > 0);
    // The link before it, or the source, by VC.
    let mut before = spec.vcs.iter().filter_map(|vc| {
        let hop = vc.route.iter().position(|link| *link == id)?;
        Some((hop.checked_sub(1).map(|hop| vc.route[hop]), vc.pcr))
    });
    match before.next() {
        None => false,
        Some((None, pcr)) => before.next().is_none() && pcr.is_some_and(|pcr| Spacing::of_cell(pcr) >= interval(link)),
        Some((first, _)) => {
            !loses(first)
                && before.all(|(other, _)| other == first)
                && first.is_some_and(|first| interval(&spec.links[first.index()]) >= interval(link))
        }
    }
}
