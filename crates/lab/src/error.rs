//! Why a scenario has no lab, or its run failed.

use lastmile_live::Error as LiveError;
use lastmile_scenario::Report;
use lastmile_scenario::policy::ready;

/// A scenario that cannot run on real hosts, or a run that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The scenario has no access line, and the caller named no ends.
    #[error("{scenario}: no [access] line")]
    NoEnds {
        /// Name of the scenario.
        scenario: String,
    },
    /// The scenario has neither an access line nor traffic, and the caller named no ends.
    #[error("{scenario}: no [access] line and no traffic")]
    NoEndsOfTraffic {
        /// Name of the scenario.
        scenario: String,
    },
    /// No node has this name.
    #[error("no node is called \"{name}\"")]
    NoNode {
        /// The name.
        name: String,
        /// The names of the scenario's nodes.
        known: Vec<String>,
    },
    /// No path leads from one end to the other.
    #[error("{scenario}: no link leads from \"{from}\" to \"{to}\"")]
    NoPath {
        /// Name of the scenario.
        scenario: String,
        /// Name of the first node.
        from: String,
        /// Name of the last node.
        to: String,
    },
    /// A link of the path belongs to a cell switch, which is simulated only.
    #[error("{scenario}: link \"{link}\" carries cells of a switch")]
    Cells {
        /// Name of the scenario.
        scenario: String,
        /// Name of the link.
        link: String,
    },
    /// The scenario has several access lines.
    #[error("{scenario}: access.lines is {lines}, and the lab has one client")]
    SeveralLines {
        /// Name of the scenario.
        scenario: String,
        /// Number of its lines.
        lines: usize,
    },
    /// Traffic runs between nodes that are not the two hosts.
    #[error(transparent)]
    Elsewhere(#[from] Box<Elsewhere>),
    /// No generator of the lab offers this traffic.
    #[error("{scenario}: traffic.{traffic} is {kind}, which only the simulator has")]
    SimulatedOnly {
        /// Name of the scenario.
        scenario: String,
        /// Name of the traffic.
        traffic: String,
        /// The kind of the traffic, as part of a sentence.
        kind: &'static str,
    },
    /// The scenario has no traffic.
    #[error("{scenario}: nothing runs")]
    NoTraffic {
        /// Name of the scenario.
        scenario: String,
    },
    /// More flows and connections than the generator serves.
    #[error("{scenario}: {sockets} flows and connections at a time, of which the lab has {most} at most")]
    TooManyFlows {
        /// Name of the scenario.
        scenario: String,
        /// Flows and connections at a time.
        sockets: u64,
        /// The most that the generator serves.
        most: u32,
    },
    /// The process may not open enough descriptors.
    #[error("{wanted} flows and connections at a time, and this process may open descriptors for {granted}")]
    TooFewDescriptors {
        /// Flows and connections at a time.
        wanted: u64,
        /// Flows and connections for which it may open descriptors.
        granted: u64,
    },
    /// A flow over IPv6 on devices without IPv6.
    #[error("a flow is to run over IPv6, which the devices of this line do not have")]
    NoIpv6,
    /// An endpoint of QUIC cannot be made.
    #[error("making an endpoint of QUIC: {0}")]
    Quic(String),
    /// The kernel does not have a congestion control, or the process may not use it.
    #[error("this kernel has no congestion control {name:?}")]
    NoCongestionControl {
        /// The name of the congestion control.
        name: String,
    },
    /// No built-in policy has this name.
    #[error("there is no built-in policy \"{0}\"")]
    NoPolicy(String),
    /// The scenario is invalid.
    #[error("{0}")]
    Scenario(Report),
    /// The machine refused something.
    #[error(transparent)]
    Live(#[from] LiveError),
}

/// Traffic that runs between nodes that are not the two hosts.
#[derive(Debug, thiserror::Error)]
#[error("{scenario}: traffic.{traffic} runs from {from} to {to}, and the lab has hosts at {client} and {server} alone")]
pub struct Elsewhere {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the traffic.
    pub traffic: String,
    /// Name of the node from which it comes.
    pub from: String,
    /// Name of the node to which it goes.
    pub to: String,
    /// Name of the client's node.
    pub client: String,
    /// Name of the server's node.
    pub server: String,
}

impl Error {
    /// A remedy, where one is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoEnds { .. } | Self::NoEndsOfTraffic { .. } => "name the nodes of the two ends".to_owned(),
            Self::NoNode { known, .. } => format!("nodes are {}", known.join(", ")),
            Self::Cells { .. } => "switches are simulated only: `lastmile run` runs this scenario".to_owned(),
            Self::SeveralLines { .. } => "set access.lines=1, or simulate it".to_owned(),
            Self::Elsewhere(_) => "its keys from and to say where it runs; other hosts can be simulated".to_owned(),
            Self::SimulatedOnly { .. } => "`lastmile run` simulates it".to_owned(),
            Self::NoTraffic { .. } => "add a [[traffic]]".to_owned(),
            Self::TooFewDescriptors { .. } => "raise the hard limit (ulimit -Hn) or run it with fewer".to_owned(),
            Self::NoIpv6 => "the kernel has IPv6 switched off; ipv6 = false runs the traffic over IPv4".to_owned(),
            Self::NoCongestionControl { name } => {
                let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").ok()?;
                format!("it has {}; others are modules: `modprobe tcp_{name}`", known.trim())
            }
            Self::NoPolicy(_) => ready::hint(true),
            Self::Live(error) => return error.hint(),
            Self::NoPath { .. } | Self::TooManyFlows { .. } | Self::Quic(_) | Self::Scenario(_) => return None,
        };
        Some(hint)
    }
}

impl From<Report> for Error {
    fn from(report: Report) -> Self {
        Self::Scenario(report)
    }
}
