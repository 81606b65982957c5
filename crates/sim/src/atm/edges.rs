//! Edge devices: packets are metered, marked or dropped before they become cells.
//!
//! A class of an edge has one conditioner (meter, marker, dropper) at each node where its packets become
//! cells, or one for each virtual channel.

use std::collections::BTreeMap;

use lastmile_atm::VcId;
use lastmile_atm::aal5::Encapsulation;
use lastmile_packet::Meta;
use lastmile_queueing::meter::Conditioner;
use lastmile_units::{ByteCount, CellCount, Instant};

use lastmile_model::outcome::EdgeOutcome;
use lastmile_model::{Atm, Circuit, MeterScope};

/// All conditioners.
pub(super) struct Edges {
    conditioners: Vec<Conditioner>,
    /// By conditioner: its class and node.
    keys: Vec<(usize, usize)>,
    encapsulations: Vec<Encapsulation>,
}

impl Edges {
    pub(super) fn new(atm: &Atm) -> Self {
        let encapsulations = atm.network.vcs.iter().map(|vc| vc.encapsulation).collect();
        Self { conditioners: Vec::new(), keys: Vec::new(), encapsulations }
    }

    /// The conditioner of each virtual channel of a circuit; empty without an edge. `nodes` has the
    /// conditioners so far, by class and node.
    pub(super) fn of(
        &mut self,
        atm: &Atm,
        circuit: &Circuit,
        nodes: &mut BTreeMap<(usize, usize), usize>,
    ) -> Vec<usize> {
        let Some(class) = circuit.edge else { return Vec::new() };
        let edge = &atm.edges[class];
        let conditioner = |vc: &VcId| {
            let first = atm.network.vcs[vc.index()].route[0];
            let key = (class, atm.network.links[first.index()].from.index());
            let known = nodes.get(&key).filter(|_| edge.scope == MeterScope::Node);
            known.copied().unwrap_or_else(|| {
                self.conditioners.push(Conditioner::new(&edge.conditioner));
                self.keys.push(key);
                nodes.insert(key, self.keys.len() - 1);
                self.keys.len() - 1
            })
        };
        circuit.vcs.iter().map(conditioner).collect()
    }

    /// Colors and marks a packet that is about to become cells of `vc`. False: the packet is dropped.
    pub(super) fn pass(&mut self, now: Instant, conditioner: usize, vc: VcId, packet: &mut Meta) -> bool {
        let bytes = ByteCount::new(packet.ip_len.into());
        // The cells refuse a packet that is too large for a frame.
        let Some(cells) = self.encapsulations[vc.index()].cells(bytes) else { return true };
        self.conditioners[conditioner].pass(now, CellCount::new(cells.into()).wire_bytes(), packet)
    }

    /// The counts by class and node.
    pub(super) fn outcome(&self) -> Vec<EdgeOutcome> {
        let mut rows: BTreeMap<(usize, usize), EdgeOutcome> = BTreeMap::new();
        for (conditioner, &(edge, node)) in self.conditioners.iter().zip(&self.keys) {
            let row = rows.entry((edge, node));
            row.or_insert_with(|| EdgeOutcome { edge, node, counts: Default::default() }).counts +=
                conditioner.counts();
        }
        rows.into_values().collect()
    }
}
