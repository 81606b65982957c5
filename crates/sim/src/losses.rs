//! Packets dropped, by the flow that lost them, the link and the cause.
//!
//! Cost: a map look-up a drop; memory by flows, links and causes that lost something.

use std::collections::BTreeMap;

use lastmile_packet::{FlowId, Meta};

use crate::route::LinkIndex;
use lastmile_model::outcome::{Loss, LossCause, Losses};

/// Losses since the run began and since the latest snapshot.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    all: BTreeMap<Loss, u64>,
    since_snapshot: BTreeMap<Loss, u64>,
    /// Flows of the traffic list; others are not counted.
    pub(crate) declared: usize,
}

impl Ledger {
    /// Counts a packet dropped at a link.
    pub(crate) fn add(&mut self, link: LinkIndex, packet: &Meta, cause: LossCause) {
        let Some((flow, back)) = flow(packet.flow).filter(|(flow, _)| *flow < self.declared) else { return };
        let loss = Loss { flow, back, link: link as usize, cause };
        *self.all.entry(loss).or_default() += 1;
        *self.since_snapshot.entry(loss).or_default() += 1;
    }

    /// Losses since the latest call.
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
