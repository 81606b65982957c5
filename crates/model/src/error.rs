//! Errors of a network that cannot be simulated.

use lastmile_queueing::autorate;

/// Why a network cannot be simulated. The scenario crate reports most of these earlier, with file
/// and line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No path between the two ends of a traffic.
    #[error("traffic \"{traffic}\": no path of links leads from \"{from}\" to \"{to}\"")]
    NoPath {
        /// The traffic.
        traffic: String,
        /// The first node of the path.
        from: String,
        /// The last node of the path.
        to: String,
    },
    /// A traffic whose two ends are one node.
    #[error("traffic \"{traffic}\": both ends are \"{node}\"")]
    SameEnds {
        /// The traffic.
        traffic: String,
        /// The node.
        node: String,
    },
    /// A link or a traffic that names a missing node.
    #[error("{what} \"{name}\" names node number {index}, and there are {count} nodes")]
    NoSuchNode {
        /// `link` or `traffic`.
        what: &'static str,
        /// The name of the link or the traffic.
        name: String,
        /// The index.
        index: usize,
        /// The number of nodes.
        count: usize,
    },
    /// A link from a node to itself.
    #[error("link \"{link}\" leads from \"{node}\" to itself")]
    SelfLink {
        /// The link.
        link: String,
        /// The node.
        node: String,
    },
    /// A controller of shapers that cannot work.
    #[error("autorate: {0}")]
    Autorate(#[source] autorate::ConfigError),
    /// A controller of a queue that has no shaper.
    #[error("autorate: the queue of link {link} has no shaper whose rate can change")]
    NoShaper {
        /// The link.
        link: String,
    },
    /// More flows than numbers.
    #[error("{count} flows: at most {limit} can be simulated")]
    TooManyFlows {
        /// The number of flows.
        count: u64,
        /// The largest number of flows.
        limit: u64,
    },
    /// A datagram smaller than its own headers or larger than an IP packet.
    #[error("traffic \"{traffic}\": a packet of {size} bytes; from 28 (IP and UDP headers) to 65535 are possible")]
    PacketSize {
        /// The traffic.
        traffic: String,
        /// The size.
        size: u64,
    },
    /// A source with no time between packets.
    #[error("traffic \"{traffic}\": packets at an interval of zero")]
    NoInterval {
        /// The traffic.
        traffic: String,
    },
    /// An application with too little time between writes.
    #[error("traffic \"{traffic}\": writes at a mean interval of less than a microsecond")]
    TooManyWrites {
        /// The traffic.
        traffic: String,
    },
    /// TCP of another IP version than that of the traffic.
    #[error("traffic \"{traffic}\": the packets of its TCP and its IP headers are of two versions")]
    Version {
        /// The traffic.
        traffic: String,
    },
    /// An address of the wrong family.
    #[error("traffic \"{traffic}\": {address} is no address of {}", if *ipv6 { "IPv6" } else { "IPv4" })]
    Family {
        /// The traffic.
        traffic: String,
        /// The address.
        address: std::net::IpAddr,
        /// The family of its packets.
        ipv6: bool,
    },
    /// More connections than ports from the first one on.
    #[error("traffic \"{traffic}\": {count} connections from port {first} on would need ports above 65535")]
    Ports {
        /// The traffic.
        traffic: String,
        /// The first port.
        first: u16,
        /// The number of connections.
        count: u32,
    },
    /// A source of connections that may open none.
    #[error("traffic \"{traffic}\": at least one connection at a time is needed")]
    NoConnections {
        /// The traffic.
        traffic: String,
    },
    /// A video that no player can play.
    #[error(
        "traffic \"{traffic}\": a video needs an ascending ladder of bit rates, segments of some length, and a \
             buffer for the start and one segment"
    )]
    Video {
        /// The traffic.
        traffic: String,
    },
    /// A backup without files, or with files or messages of no bytes.
    #[error("traffic \"{traffic}\": a backup needs at least one file, and files and messages of at least a byte")]
    Backup {
        /// The traffic.
        traffic: String,
    },
    /// A conference without frames, audio or ascending rates.
    #[error(
        "traffic \"{traffic}\": a conference needs 1 to 1000 frames a second, audio, ascending rates, and packets that \
             fit IP"
    )]
    Conference {
        /// The traffic.
        traffic: String,
    },
    /// An invalid network of cells.
    #[error(transparent)]
    Cells(#[from] lastmile_atm::NetworkError),
    /// A number of links of cells that differs from that of the network of cells, or a circuit of a
    /// missing traffic, virtual channel or class.
    #[error("the links of cells and their circuits do not fit the links and the traffic of the network")]
    Circuits,
    /// A traffic whose packets reach a link of cells on which it has no virtual channel.
    #[error("traffic \"{traffic}\": no virtual channel for its {}, which come to link \"{link}\"",
        if *back { "replies" } else { "packets" })]
    NoVc {
        /// The traffic.
        traffic: String,
        /// True for the reverse direction.
        back: bool,
        /// The link.
        link: String,
    },
    /// A sample interval of zero.
    #[error("a sample interval of zero would sample without end")]
    NoSampleInterval,
    /// A queue that cannot be built.
    #[error("link \"{link}\": {source}")]
    Queue {
        /// The link.
        link: String,
        /// The error of its queue.
        source: lastmile_queueing::spec::BuildError,
    },
}
