//! Links that carry cells: the links, the virtual channels, and the treatment of packets by edge
//! devices before they become cells.

use lastmile_atm::{NetworkSpec, VcId};
use lastmile_queueing::meter::conditioner;
use lastmile_units::{ByteCount, Duration};

/// Links that carry cells, and the virtual channels on them. A packet that arrives at such a link
/// is a frame of cells until the end of its virtual channel.
#[derive(Clone, Debug)]
pub struct Atm {
    /// Nodes, links, virtual paths and virtual channels.
    pub network: NetworkSpec,
    /// Index into [`Network::links`](crate::Network::links) of each link of `network`, in its
    /// order. Rate, delay and link layer of these links give the time of a single packet; their
    /// queue, loss and compression are ignored.
    pub links: Vec<usize>,
    /// The assignment of packets to virtual channels.
    pub circuits: Vec<Circuit>,
    /// Classes of packets that edge devices color and mark before they become cells.
    pub edges: Vec<Edge>,
}

/// A class of packets at the edge of the cells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// Name, unique among classes.
    pub name: String,
    /// The treatment of its packets.
    pub conditioner: conditioner::Config,
    /// The packets that share a meter.
    pub scope: MeterScope,
}

/// The packets that one meter counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MeterScope {
    /// The packets of the class that become cells at one node.
    #[default]
    Node,
    /// The packets of one virtual channel.
    Vc,
}

/// The virtual channels of a traffic's packets in one direction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Circuit {
    /// Index of the traffic.
    pub traffic: usize,
    /// True for the reverse direction: ACKs, requests, replies.
    pub back: bool,
    /// Virtual channels between one pair of nodes. The flows of the traffic take them in turn.
    pub vcs: Vec<VcId>,
    /// Name of their contract, for messages.
    pub contract: Option<String>,
    /// Index into [`Atm::edges`] of its packets' class at the node where they become cells.
    pub edge: Option<usize>,
    /// The delay of ACKs at the node where the packets become cells. Only ABR VCs may have it.
    pub hold: Option<AckHold>,
}

/// The delay of an ACK at an edge device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckHold {
    /// A constant delay.
    Fixed(Duration),
    /// The time that the edge's backlog above a size takes at the allowed cell rate.
    Dynamic {
        /// The size, in bytes of packets.
        above: ByteCount,
        /// The longest delay.
        most: Duration,
    },
}

impl Atm {
    /// The virtual channel that carries this traffic along the most first links of a path, and the
    /// number of those links. `back` is true for the reverse direction, such as ACKs.
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
