//! Dropped packets by flow, link and cause.
//!
//! Cost: a map look-up a drop; memory by the combinations of flow, link and cause that lost something, and again by
//! those that have lost something since the latest snapshot.

use std::collections::{BTreeMap, BTreeSet};

use lastmile_packet::{FlowId, Meta};

use crate::network::route::LinkIndex;
use lastmile_model::outcome::{Loss, LossCause, Losses};

/// Losses up to the latest snapshot and since then. Without snapshots, the former stay empty.
#[derive(Debug, Default)]
pub(crate) struct LossCounts {
    before_snapshot: BTreeMap<Key, u64>,
    since_snapshot: BTreeMap<Key, u64>,
    /// Flows of the traffic list. Losses of other flows are not counted.
    pub(crate) declared: usize,
    /// Flows whose ends learn which of their packets were dropped: conferences and games.
    pub(crate) dialogues: BTreeSet<u32>,
    /// The packets of those that were dropped, by their numbers, since the ends have learned it.
    pub(crate) unreported: Vec<(FlowId, u64)>,
}

/// A [`Loss`] in less space: each of very many flows may lose something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    flow: u32,
    back: bool,
    link: LinkIndex,
    cause: LossCause,
}

impl From<Key> for Loss {
    fn from(Key { flow, back, link, cause }: Key) -> Self {
        Self { flow: flow as usize, back, link: link as usize, cause }
    }
}

impl LossCounts {
    /// Counts a packet dropped at a link.
    pub(crate) fn add(&mut self, link: LinkIndex, packet: &Meta, cause: LossCause) {
        let Some((flow, back)) = flow(packet.flow).filter(|(flow, _)| (*flow as usize) < self.declared) else {
            return;
        };
        if self.dialogues.contains(&flow) {
            self.unreported.push((packet.flow, packet.seq.raw().into()));
        }
        *self.since_snapshot.entry(Key { flow, back, link, cause }).or_default() += 1;
    }

    /// Takes the losses since the latest call.
    pub(crate) fn take_latest(&mut self) -> Losses {
        let latest = std::mem::take(&mut self.since_snapshot);
        for (key, count) in &latest {
            *self.before_snapshot.entry(*key).or_default() += count;
        }
        latest.into_iter().map(|(key, count)| (key.into(), count)).collect()
    }

    /// All losses.
    pub(crate) fn into_all(mut self) -> Losses {
        self.take_latest();
        self.before_snapshot.into_iter().map(|(key, count)| (key.into(), count)).collect()
    }
}

/// The number of a flow, and whether the packet travels from its receiver.
fn flow(flow: FlowId) -> Option<(u32, bool)> {
    let number = flow.index();
    (flow != FlowId::NONE).then_some((number / 2, number % 2 == 1))
}
