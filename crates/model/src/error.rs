//! Why a network cannot be simulated.

/// Why a network cannot be simulated. The scenario crate finds most of these earlier, with file and line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Two ends of a traffic have no path between them.
    #[error("traffic \"{traffic}\": no path of links leads from \"{from}\" to \"{to}\"")]
    NoPath {
        /// The traffic.
        traffic: String,
        /// Where the path would begin.
        from: String,
        /// Where it would end.
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
    /// A link or a traffic names a node that is not there.
    #[error("{what} \"{name}\" names node number {index}, and there are {count} nodes")]
    NoSuchNode {
        /// `link` or `traffic`.
        what: &'static str,
        /// Its name.
        name: String,
        /// The index.
        index: usize,
        /// How many nodes there are.
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
    /// More flows than can be numbered.
    #[error("{count} flows: at most {limit} can be simulated")]
    TooManyFlows {
        /// How many there are.
        count: u64,
        /// How many there may be.
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
    /// A source that would send without end in no time.
    #[error("traffic \"{traffic}\": packets at an interval of zero")]
    NoInterval {
        /// The traffic.
        traffic: String,
    },
    /// An application that would hand over data without end in no time.
    #[error("traffic \"{traffic}\": writes at a mean interval of less than a microsecond")]
    TooManyWrites {
        /// The traffic.
        traffic: String,
    },
    /// An address of the wrong family.
    #[error("traffic \"{traffic}\": {address} is no address of {}", if *ipv6 { "IPv6" } else { "IPv4, and only TCP can be IPv6" })]
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
        /// How many there are.
        count: u32,
    },
    /// A source of connections that may open none.
    #[error("traffic \"{traffic}\": at least one connection at a time is needed")]
    NoConnections {
        /// The traffic.
        traffic: String,
    },
    /// Cells that cannot be.
    #[error(transparent)]
    Cells(#[from] lastmile_atm::NetworkError),
    /// Links of cells that are not told which links they are, or circuits of no traffic, no virtual channel
    /// or a class that is not there.
    #[error("the links of cells and their circuits do not fit the links and the traffic of the network")]
    Circuits,
    /// A traffic whose packets come to a link of cells on which it has no virtual channel.
    #[error("traffic \"{traffic}\": no virtual channel for its {}, which come to link \"{link}\"", if *back { "replies" } else { "packets" })]
    NoVc {
        /// The traffic.
        traffic: String,
        /// Which way.
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
        /// What is wrong with its queue.
        source: lastmile_queueing::spec::BuildError,
    },
}
