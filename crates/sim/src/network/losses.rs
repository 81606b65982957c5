//! Dropped packets by flow, link and cause.
//!
//! Cost: two map look-ups a drop; memory by the combinations of flow, link and cause that lost something.

use std::collections::BTreeMap;

use lastmile_packet::{FlowId, Meta};

use crate::network::route::LinkIndex;
use lastmile_model::outcome::{Loss, LossCause, Losses};

/// Losses since the run began and since the latest snapshot.
#[derive(Debug, Default)]
pub(crate) struct LossCounts {
    all: BTreeMap<Loss, u64>,
    since_snapshot: BTreeMap<Loss, u64>,
    /// Flows of the traffic list. Losses of other flows are not counted.
    pub(crate) declared: usize,
}

impl LossCounts {
    /// Counts a packet dropped at a link.
    pub(crate) fn add(&mut self, link: LinkIndex, packet: &Meta, cause: LossCause) {
        let Some((flow, back)) = flow(packet.flow).filter(|(flow, _)| *flow < self.declared) else { return };
        let loss = Loss { flow, back, link: link as usize, cause };
        *self.all.entry(loss).or_default() += 1;
        *self.since_snapshot.entry(loss).or_default() += 1;
    }

    /// Takes the losses since the latest call.
    pub(crate) fn take_latest(&mut self) -> Losses {
        std::mem::take(&mut self.since_snapshot).into_iter().collect()
    }

    /// All losses.
    pub(crate) fn into_all(self) -> Losses {
        self.all.into_iter().collect()
    }
}

/// The number of a flow, and whether the packet travels from its receiver.
fn flow(flow: FlowId) -> Option<(usize, bool)> {
    let number = flow.index() as usize;
    (flow != FlowId::NONE).then_some((number / 2, number % 2 == 1))
}
