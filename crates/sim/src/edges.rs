//! Edge devices: what is done with packets before they become cells.
//!
//! Each class of an edge has a conditioner (meter, marker, dropper) at each node where its packets become cells, or one for each virtual channel.

use std::collections::BTreeMap;

use lastmile_atm::VcId;
use lastmile_atm::aal5::Encapsulation;
use lastmile_packet::Meta;
use lastmile_queueing::meter::Conditioner;
use lastmile_units::{ByteCount, CellCount, Instant};

use lastmile_model::outcome::EdgeOutcome;
use lastmile_model::{Atm, Circuit, MeterScope};

/// All conditioners.
pub(crate) struct Edges {
    conditioners: Vec<Conditioner>,
    /// Which class, at which node, each of them is of.
    places: Vec<(usize, usize)>,
    encapsulations: Vec<Encapsulation>,
}

impl Edges {
    pub(crate) fn new(atm: &Atm) -> Self {
        let encapsulations = atm.network.vcs.iter().map(|vc| vc.encapsulation).collect();
        Self { conditioners: Vec::new(), places: Vec::new(), encapsulations }
    }

    /// The conditioner of each virtual channel of a circuit; empty where nothing is conditioned. `nodes` are those of each class so far.
    pub(crate) fn of(
        &mut self,
        atm: &Atm,
        circuit: &Circuit,
        nodes: &mut BTreeMap<(usize, usize), usize>,
    ) -> Vec<usize> {
        let Some(class) = circuit.edge else { return Vec::new() };
        let edge = &atm.edges[class];
        let conditioner = |vc: &VcId| {
            let first = atm.network.vcs[vc.index()].route[0];
            let place = (class, atm.network.links[first.index()].from.index());
            let known = nodes.get(&place).filter(|_| edge.scope == MeterScope::Node);
            known.copied().unwrap_or_else(|| {
                self.conditioners.push(Conditioner::new(&edge.conditioner));
                self.places.push(place);
                nodes.insert(place, self.places.len() - 1);
                self.places.len() - 1
            })
        };
        circuit.vcs.iter().map(conditioner).collect()
    }

    /// Colors and marks a packet that is to become cells of `vc`. False if it is dropped.
    pub(crate) fn pass(&mut self, now: Instant, conditioner: usize, vc: VcId, packet: &mut Meta) -> bool {
        let bytes = ByteCount::new(packet.ip_len.into());
        // What no frame holds is refused by the cells.
        let Some(cells) = self.encapsulations[vc.index()].cells(bytes) else { return true };
        self.conditioners[conditioner].pass(now, CellCount::new(cells.into()).wire_bytes(), packet)
    }

    /// A row a class and node.
    pub(crate) fn outcome(&self) -> Vec<EdgeOutcome> {
        let mut rows: BTreeMap<(usize, usize), EdgeOutcome> = BTreeMap::new();
        for (conditioner, &(edge, node)) in self.conditioners.iter().zip(&self.places) {
            let row = rows.entry((edge, node));
            row.or_insert_with(|| EdgeOutcome { edge, node, counts: Default::default() }).counts +=
                conditioner.counts();
        }
        rows.into_values().collect()
    }
}
