//! Dropped packets by flow, link and cause.
//!
//! Cost: a map look-up a drop; memory by the combinations of flow, link and cause that lost something, and again by
//! those that have lost something since the latest snapshot.

use std::collections::BTreeMap;

use lastmile_packet::{FlowId, Meta};

use crate::network::route::LinkIndex;
use lastmile_model::outcome::{Loss, LossCause, Losses};

/// Losses up to the latest snapshot and since then. Without snapshots, the former stay empty.
#[derive(Debug, Default)]
pub(crate) struct LossCounts {
    before_snapshot: BTreeMap<Loss, u64>,
    since_snapshot: BTreeMap<Loss, u64>,
    /// Flows of the traffic list. Losses of other flows are not counted.
    pub(crate) declared: usize,
}

impl LossCounts {
    /// Counts a packet dropped at a link.
    pub(crate) fn add(&mut self, link: LinkIndex, packet: &Meta, cause: LossCause) {
        let Some((flow, back)) = flow(packet.flow).filter(|(flow, _)| *flow < self.declared) else { return };
        let loss = Loss { flow, back, link: link as usize, cause };
        *self.since_snapshot.entry(loss).or_default() += 1;
    }

    /// Takes the losses since the latest call.
    pub(crate) fn take_latest(&mut self) -> Losses {
        let latest: Losses = std::mem::take(&mut self.since_snapshot).into_iter().collect();
        for (loss, count) in &latest {
            *self.before_snapshot.entry(*loss).or_default() += count;
        }
        latest
    }

    /// All losses.
    pub(crate) fn into_all(mut self) -> Losses {
        self.take_latest();
        self.before_snapshot.into_iter().collect()
    }
}

/// The number of a flow, and whether the packet travels from its receiver.
fn flow(flow: FlowId) -> Option<(usize, bool)> {
    let number = flow.index() as usize;
    (flow != FlowId::NONE).then_some((number / 2, number % 2 == 1))
}
