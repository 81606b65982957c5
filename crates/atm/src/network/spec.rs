//! The description of a network: nodes, links, virtual paths and virtual channels.

use lastmile_units::{BitRate, ByteCount, CellCount, Duration};

use crate::aal5::Encapsulation;
use crate::abr::{Parameters, erica};
use crate::contract::Contract;
use crate::discard::Discard;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// Index in the order of addition, from 0.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// A node of a [`NetworkSpec`].
    NodeId
);
id!(
    /// A link of a [`NetworkSpec`], one direction.
    LinkId
);
id!(
    /// A virtual path of a [`NetworkSpec`].
    VpId
);
id!(
    /// A virtual channel of a [`NetworkSpec`], one direction.
    VcId
);

/// A network.
#[derive(Clone, Debug)]
pub struct NetworkSpec {
    /// Hosts, edge devices and switches.
    pub nodes: Vec<NodeSpec>,
    /// Links, each with the port that sends on it.
    pub links: Vec<LinkSpec>,
    /// Virtual paths.
    pub vps: Vec<VpSpec>,
    /// Virtual channels.
    pub vcs: Vec<VcSpec>,
    /// Consecutive cells of a frame at even spacing are handled as one item. Changes speed only.
    pub trains: bool,
}

/// A host, an edge device or a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeSpec {
    /// Name in messages.
    pub name: String,
    /// Capacity of the memory that all its ports share. `None`: each port has a memory of its own,
    /// as large as its queues.
    pub shared_memory: Option<CellCount>,
}

/// A link, and the port that sends on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkSpec {
    /// The node of the port.
    pub from: NodeId,
    /// The node at which cells arrive.
    pub to: NodeId,
    /// Rate of cells, 424 bits each. An OC-3c has 149.76 Mbit/s for cells.
    pub rate: BitRate,
    /// Cells start no closer than at this rate; each is transmitted at `rate`. Not above `rate`.
    /// `None`: as fast as `rate`.
    pub pace: Option<BitRate>,
    /// From the end of a cell's transmission to its arrival.
    pub delay: Duration,
    /// Cells lost at random, of a billion.
    pub loss_ppb: u32,
    /// The queues of the port.
    pub queues: Queues,
    /// Support of the port for ABR. `None`: none.
    pub abr: Option<AbrPort>,
}

/// Support of a port for ABR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AbrPort {
    /// Data cells that find `threshold` cells in their queue are marked (explicit forward
    /// congestion indication).
    Efci {
        /// Cells, at least 1.
        threshold: CellCount,
    },
    /// The port measures its load and writes the allowed rate into RM cells.
    Erica(erica::Config),
}

/// A VC of available bit rate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Abr {
    /// Parameters of its source.
    pub parameters: Parameters,
    /// Route of returning RM cells: links from the destination to the source, along the same nodes.
    pub back: Vec<LinkId>,
    /// Capacity of the queue at the source, in bytes of packets. `None`: no limit.
    pub edge_limit: Option<ByteCount>,
}

/// The queues of a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Queues {
    /// One queue for all cells.
    Fifo(QueueSpec),
    /// A queue for each class, to which [`VcSpec::class`] assigns VCs.
    Classes(Vec<ClassSpec>),
    /// A queue for each VC, with the priority and weight of the VC.
    PerVc(QueueSpec),
}

impl Queues {
    /// Each queue; queues for each VC are alike, and given once.
    pub fn each(&self) -> impl Iterator<Item = &QueueSpec> {
        let (one, classes) = match self {
            Self::Fifo(queue) | Self::PerVc(queue) => (Some(queue), &[][..]),
            Self::Classes(classes) => (None, &classes[..]),
        };
        one.into_iter().chain(classes.iter().map(|class| &class.queue))
    }

    /// Capacity of all queues together in a memory of their own. `None`: no limit.
    #[must_use]
    pub fn hold(&self) -> Option<CellCount> {
        if matches!(self, Self::PerVc(_)) {
            return None;
        }
        let mut limits = self.each().map(|queue| queue.limit.map(CellCount::as_u64));
        let sum = limits.try_fold(0_u64, |sum, limit| Some(sum.saturating_add(limit?)));
        sum.map(CellCount::new)
    }
}

/// A queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueSpec {
    /// Capacity, without the cell in transmission. `None`: that of the memory.
    pub limit: Option<CellCount>,
    /// The discard rules of the queue.
    pub discard: Discard,
}

/// A queue of several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClassSpec {
    /// Capacity and discard rules.
    pub queue: QueueSpec,
    /// Strict priority: a class is served if all classes of a lower number are empty.
    pub priority: u8,
    /// The share of the class among classes of its priority. At least 1.
    pub weight: u16,
}

/// A policer (usage parameter control).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Upc {
    /// The policer is at the input of the queues of this link.
    pub at: LinkId,
    /// The contract.
    pub contract: Contract,
}

/// A virtual path: virtual channels that are policed together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VpSpec {
    /// Name in messages.
    pub name: String,
    /// The policer of the path. All VCs of the path cross the policer's link.
    pub upc: Option<Upc>,
}

/// A virtual channel, one direction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VcSpec {
    /// Name in messages. It also seeds the choice of cells that links lose.
    pub name: String,
    /// Virtual path identifier, 0 to 4095. No two VCs of a link have equal `vpi` and `vci`.
    pub vpi: u16,
    /// Virtual channel identifier, from 32.
    pub vci: u16,
    /// The path whose policer also applies to the VC.
    pub vp: Option<VpId>,
    /// The links from source to destination.
    pub route: Vec<LinkId>,
    /// The header of a packet in its frame.
    pub encapsulation: Encapsulation,
    /// The source shapes to this peak cell rate. `None`: all cells of a frame arrive at once at the
    /// first port.
    pub pcr: Option<BitRate>,
    /// Cells leave the source with CLP = 1.
    pub low_priority: bool,
    /// The queue of the VC at ports with classes.
    pub class: usize,
    /// The priority of the VC at ports with a queue for each VC: a lower number goes first.
    pub priority: u8,
    /// The weight of the VC at ports with a queue for each VC. At least 1.
    pub weight: u16,
    /// The policer of the VC.
    pub upc: Option<Upc>,
    /// Available bit rate. `None`: the source sends when packets are offered.
    pub abr: Option<Abr>,
}

impl Default for NetworkSpec {
    fn default() -> Self {
        Self { nodes: Vec::new(), links: Vec::new(), vps: Vec::new(), vcs: Vec::new(), trains: true }
    }
}

impl NetworkSpec {
    /// An empty network, with trains.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node whose ports have a memory each.
    pub fn node(&mut self, name: impl Into<String>) -> NodeId {
        self.nodes.push(NodeSpec { name: name.into(), shared_memory: None });
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Adds a switch whose ports share a memory of `cells` cells.
    pub fn shared_memory_node(&mut self, name: impl Into<String>, cells: CellCount) -> NodeId {
        self.nodes.push(NodeSpec { name: name.into(), shared_memory: Some(cells) });
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Adds a link, one direction.
    pub fn link(&mut self, link: LinkSpec) -> LinkId {
        self.links.push(link);
        LinkId(self.links.len() as u32 - 1)
    }

    /// Adds a virtual path.
    pub fn vp(&mut self, name: impl Into<String>, upc: Option<Upc>) -> VpId {
        self.vps.push(VpSpec { name: name.into(), upc });
        VpId(self.vps.len() as u32 - 1)
    }

    /// Adds a virtual channel, one direction.
    pub fn vc(&mut self, vc: VcSpec) -> VcId {
        self.vcs.push(vc);
        VcId(self.vcs.len() as u32 - 1)
    }

    /// All links, in the order in which they were added.
    pub fn link_ids(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.links.len() as u32).map(LinkId)
    }

    /// All virtual paths, in the order in which they were added.
    pub fn vp_ids(&self) -> impl Iterator<Item = VpId> + use<> {
        (0..self.vps.len() as u32).map(VpId)
    }

    /// All virtual channels, in the order in which they were added.
    pub fn vc_ids(&self) -> impl Iterator<Item = VcId> + use<> {
        (0..self.vcs.len() as u32).map(VcId)
    }

    /// The links along a path of nodes, by name: the first one added from each to the next. `None`:
    /// a node or link is missing.
    #[must_use]
    pub fn route(&self, path: &[&str]) -> Option<Vec<LinkId>> {
        let node = |name: &str| self.nodes.iter().position(|node| node.name == name).map(|index| NodeId(index as u32));
        let hops = path.windows(2).map(|pair| {
            let (from, to) = (node(pair[0])?, node(pair[1])?);
            let index = self.links.iter().position(|link| (link.from, link.to) == (from, to))?;
            Some(LinkId(index as u32))
        });
        hops.collect()
    }
}

impl LinkSpec {
    /// A link with an unlimited FIFO, such as that of a host.
    #[must_use]
    pub fn new(from: NodeId, to: NodeId, rate: BitRate, delay: Duration) -> Self {
        Self { from, to, rate, pace: None, delay, loss_ppb: 0, queues: Queues::Fifo(QueueSpec::default()), abr: None }
    }

    /// The link with these queues.
    #[must_use]
    pub fn with_queues(mut self, queues: Queues) -> Self {
        self.queues = queues;
        self
    }
}

impl Queues {
    /// One queue of at most `limit` cells.
    #[must_use]
    pub fn fifo(limit: CellCount, discard: Discard) -> Self {
        Self::Fifo(QueueSpec { limit: Some(limit), discard })
    }
}

impl VcSpec {
    /// A VC along `route`, with VPI 0 and LLC/SNAP, unshaped and unpoliced, of class 0, priority 0
    /// and weight 1.
    #[must_use]
    pub fn new(name: impl Into<String>, vci: u16, route: Vec<LinkId>) -> Self {
        Self {
            name: name.into(),
            vpi: 0,
            vci,
            vp: None,
            route,
            encapsulation: Encapsulation::default(),
            pcr: None,
            low_priority: false,
            class: 0,
            priority: 0,
            weight: 1,
            upc: None,
            abr: None,
        }
    }
}
