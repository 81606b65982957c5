//! What a network is made of: nodes, the links between them, virtual paths, virtual channels; and what is wrong with it.

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
            /// Its place among its kind, from 0 in the order in which they were added.
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
    /// Cells that follow one another evenly are handled as one item. Changes no result, only how long it takes.
    pub trains: bool,
}

/// A host, an edge device or a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeSpec {
    /// For messages.
    pub name: String,
    /// Cells that wait at all its ports together, at most. `None`: each port has a memory of its own, as large as its queues.
    pub shared_memory: Option<CellCount>,
}

/// A link, and the port that sends on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkSpec {
    /// Where the port is.
    pub from: NodeId,
    /// Where cells arrive.
    pub to: NodeId,
    /// What cells take on the wire: 424 bits each. An OC-3c has 149.76 Mbit/s for cells.
    pub rate: BitRate,
    /// Cells start no closer than at this rate, though each takes its time at `rate`. Not above `rate`.
    pub pace: Option<BitRate>,
    /// From the end of a cell's transmission to its arrival.
    pub delay: Duration,
    /// Cells lost on the wire, at random, in a billion.
    pub loss_ppb: u32,
    /// What waits how.
    pub queues: Queues,
    /// What the port does for VCs of ABR. `None`: nothing.
    pub abr: Option<AbrPort>,
}

/// What a port does for VCs of ABR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AbrPort {
    /// Data cells that find so many cells in their queue are marked (explicit forward congestion indication).
    Efci {
        /// At least 1.
        threshold: CellCount,
    },
    /// It measures its load and tells sources their rate.
    Erica(erica::Config),
}

/// A VC of available bit rate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Abr {
    /// What its source is set up with.
    pub parameters: Parameters,
    /// The way back of its RM cells: links from its destination to its source, by the same nodes.
    pub back: Vec<LinkId>,
    /// What may wait at the source, in bytes of packets. `None`: all that comes.
    pub edge_limit: Option<ByteCount>,
}

/// What waits at a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Queues {
    /// All cells in one queue.
    Fifo(QueueSpec),
    /// A queue for each class; [`VcSpec::class`] says which.
    Classes(Vec<ClassSpec>),
    /// A queue for each VC, with the priority and weight of the VC.
    PerVc(QueueSpec),
}

impl Queues {
    /// Each of them; of those for each VC, the one that all are like.
    pub fn each(&self) -> impl Iterator<Item = &QueueSpec> {
        let (one, classes) = match self {
            Self::Fifo(queue) | Self::PerVc(queue) => (Some(queue), &[][..]),
            Self::Classes(classes) => (None, &classes[..]),
        };
        one.into_iter().chain(classes.iter().map(|class| &class.queue))
    }

    /// Cells that all of them hold, where there is no other memory. `None`: there is no such limit.
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
    /// Cells that wait at most, the one in transmission not among them. `None`: as many as the memory holds.
    pub limit: Option<CellCount>,
    /// What it drops.
    pub discard: Discard,
}

/// A queue among others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClassSpec {
    /// What it holds and drops.
    pub queue: QueueSpec,
    /// A cell goes only if none waits in a class of a lower number (strict priority).
    pub priority: u8,
    /// Its share against the others of its priority. At least 1.
    pub weight: u16,
}

/// Who polices, and by what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Upc {
    /// Cells are policed before they join a queue of this link.
    pub at: LinkId,
    /// What they are held to.
    pub contract: Contract,
}

/// A virtual path: virtual channels that are policed together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VpSpec {
    /// For messages.
    pub name: String,
    /// Its policer. All its VCs cross that link.
    pub upc: Option<Upc>,
}

/// A virtual channel, one direction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VcSpec {
    /// For messages; and VCs of other names lose other cells on the wire.
    pub name: String,
    /// Virtual path identifier, 0 to 4095. Together with `vci` no two VCs of a link may have it.
    pub vpi: u16,
    /// Virtual channel identifier, from 32.
    pub vci: u16,
    /// The path whose policer it comes under, too.
    pub vp: Option<VpId>,
    /// The links from source to destination.
    pub route: Vec<LinkId>,
    /// What stands before a packet in its frame.
    pub encapsulation: Encapsulation,
    /// The source shapes to this peak cell rate. `None`: all cells of a frame are there at once, and the first link spaces them.
    pub pcr: Option<BitRate>,
    /// Cells leave the source with CLP = 1.
    pub low_priority: bool,
    /// Its queue at ports with classes.
    pub class: usize,
    /// Its priority at ports with a queue for each VC: a lower number goes first.
    pub priority: u8,
    /// Its weight there. At least 1.
    pub weight: u16,
    /// Its policer.
    pub upc: Option<Upc>,
    /// Its source sends at the rate that the network allows.
    pub abr: Option<Abr>,
}

impl Default for NetworkSpec {
    fn default() -> Self {
        Self { nodes: Vec::new(), links: Vec::new(), vps: Vec::new(), vcs: Vec::new(), trains: true }
    }
}

impl NetworkSpec {
    /// Nothing yet; trains on.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node whose ports have memories of their own.
    pub fn node(&mut self, name: impl Into<String>) -> NodeId {
        self.nodes.push(NodeSpec { name: name.into(), shared_memory: None });
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Adds a switch whose ports share a memory of so many cells.
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

    /// The links along a path of nodes, by name: the first added from each to the next. `None` if some node or link is not there.
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
    /// A link with a FIFO without limit, such as that of a host.
    #[must_use]
    pub fn new(from: NodeId, to: NodeId, rate: BitRate, delay: Duration) -> Self {
        Self { from, to, rate, pace: None, delay, loss_ppb: 0, queues: Queues::Fifo(QueueSpec::default()), abr: None }
    }

    /// The same with these queues.
    #[must_use]
    pub fn with_queues(mut self, queues: Queues) -> Self {
        self.queues = queues;
        self
    }
}

impl Queues {
    /// One queue of so many cells.
    #[must_use]
    pub fn fifo(limit: CellCount, discard: Discard) -> Self {
        Self::Fifo(QueueSpec { limit: Some(limit), discard })
    }
}

impl VcSpec {
    /// A VC along `route`, with VPI 0 and LLC/SNAP, unshaped and unpoliced, of class 0, priority 0 and weight 1.
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
