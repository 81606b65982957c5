//! Links that carry cells: which links, which virtual channels, and what edge devices do with packets before they become cells.

use lastmile_atm::{NetworkSpec, VcId};
use lastmile_queueing::meter::conditioner;
use lastmile_units::{ByteCount, Duration};

/// Links that carry cells, and the virtual channels on them. A packet that comes to such a link is a frame of cells until its
/// virtual channel ends.
#[derive(Clone, Debug)]
pub struct Atm {
    /// Nodes, links, virtual paths and virtual channels.
    pub network: NetworkSpec,
    /// Which link of [`Network::links`](crate::Network::links) each of its links is, in their order. There rate, delay and link layer say what a packet alone
    /// would take; queue, loss and compression are not asked.
    pub links: Vec<usize>,
    /// Which packets take which virtual channel.
    pub circuits: Vec<Circuit>,
    /// Classes of packets that edge devices color and mark before they become cells.
    pub edges: Vec<Edge>,
}

/// A class of packets at the edge of the cells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// Name, unique among classes.
    pub name: String,
    /// What is done with its packets.
    pub conditioner: conditioner::Config,
    /// What shares a meter.
    pub scope: MeterScope,
}

/// Whose packets one meter counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MeterScope {
    /// Those of the class that become cells at one node.
    #[default]
    Node,
    /// Those of a virtual channel.
    Vc,
}

/// The virtual channels that the packets of a traffic take, one way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Circuit {
    /// Index of the traffic.
    pub traffic: usize,
    /// For what comes back: ACKs, requests, replies.
    pub back: bool,
    /// All between the same two nodes. The first flow of the traffic takes the first, the next the next, and so on in turn.
    pub vcs: Vec<VcId>,
    /// The class of [`Atm::edges`] that its packets are of where they become cells.
    pub edge: Option<usize>,
    /// The node where its packets become cells holds the ACKs back that come for them. Only VCs of ABR can be held to that.
    pub hold: Option<AckHold>,
}

/// How long an edge device holds an ACK back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckHold {
    /// Always so long.
    Fixed(Duration),
    /// As long as what waits in the edge beyond some size takes at the allowed cell rate.
    Dynamic {
        /// The size, in bytes of packets.
        above: ByteCount,
        /// No longer than this.
        most: Duration,
    },
}

impl Atm {
    /// A virtual channel that carries this traffic along the first links of a path, and the number of those links: the most. `back` is for what
    /// answers the traffic, such as its ACKs.
    #[must_use]
    pub fn carrier(&self, (traffic, back): (usize, bool), path: &[usize]) -> Option<(VcId, usize)> {
        let own = self.circuits.iter().filter(|circuit| (circuit.traffic, circuit.back) == (traffic, back));
        let carried = own.filter_map(|circuit| {
            let along = |vc: &VcId| {
                let route = &self.network.vcs[vc.index()].route;
                let along =
                    route.len() <= path.len() && route.iter().zip(path).all(|(a, b)| self.links[a.index()] == *b);
                along.then_some(route.len())
            };
            let vc = circuit.vcs.first()?;
            let links = along(vc)?;
            circuit.vcs.iter().all(|vc| along(vc) == Some(links)).then_some((*vc, links))
        });
        carried.max_by_key(|(_, links)| *links)
    }
}
