//! The schema of a result: the fields of `summary.json` and `--json`.
//!
//! Simulated, live and analysed runs share one schema. Names carry their units: `_s`, `_bps`,
//! `_bytes`, `_bits`, `_packets`. A field without a value is `null`, never a substitute number, and
//! never absent. Only [`Timing`], in [`Document`], depends on the machine. The page
//! `docs/reference/results.md` documents each key for users.
//!
//! Maps are ordered by key and lists by the order of the scenario, so equal runs give equal bytes.
//!
//! | file | holds |
//! | --- | --- |
//! | `flow.rs`, `probe.rs` | flows; pings and pages |
//! | `application.rs` | videos, backups, conferences, games |
//! | `link.rs`, `conservation.rs` | links; the account of all bytes |
//! | `phase.rs` | flows, links and pings in the parts of a run |
//! | `stream.rs` | delays from end to end, calls, service classes |
//! | `sharing.rs` | fairness among flows and lines |
//! | `cells.rs` | cells |
//! | `document.rs` | the result as text |

mod application;
mod cells;
mod conservation;
mod document;
mod flow;
mod group;
mod link;
mod phase;
mod probe;
mod sharing;
mod stream;

use serde::{Deserialize, Serialize};

pub use self::application::{Applications, Backup, Conference, Game, LadderStep, Video};
pub use self::cells::{
    AbrSource, Atm, CellConservation, CellPort, ChannelCounts, Counted, EdgeClass, Policed, VirtualChannel, VirtualPath,
};
pub use self::conservation::{Account, Conservation};
pub use self::document::{Document, Timing};
pub use self::flow::{Flow, FlowKind, FlowLimits, FlowSetup, Shares, Transport};
pub use self::group::{Group, Spread};
pub use self::link::{ClassDelay, Counter, Delay, Disorder, Grants, Link, LinkQueue, QueueLimit};
pub use self::phase::{Phase, PhaseFlow, PhaseLink, PhaseProbe};
pub use self::probe::{Distribution, PageResponse, Pages, Probe, RoundTrip};
pub use self::sharing::{Fairness, Line, LineFairness};
pub use self::stream::{DatagramClass, Datagrams, OneWay, Voice, Y1541};

/// The clock that drove the datapath.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Simulated time.
    #[default]
    Simulated,
    /// The machine's monotonic clock, with real packets.
    Monotonic,
}

/// One run: inputs and every scalar result.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// The identity of the run.
    #[serde(flatten)]
    pub run: RunFacts,
    /// The limits of flows other than the access line, one sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Flows by kind and direction.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// One row per flow, in the order of the scenario.
    pub flows: Vec<Flow>,
    /// One row per link and direction.
    pub links: Vec<Link>,
    /// One row per ping.
    pub probes: Vec<Probe>,
    /// One row per code point and direction of datagrams.
    #[serde(default)]
    pub datagram_classes: Vec<DatagramClass>,
    /// One row per web traffic, for all its users.
    pub pages: Vec<Pages>,
    /// Results of the other applications, as a person notices them.
    #[serde(default)]
    pub applications: Applications,
    /// The parts of the run between changes of the offered traffic.
    pub phases: Vec<Phase>,
    /// Fairness among the flows of one direction, one row per direction with at least two TCP
    /// flows.
    pub fairness: Vec<Fairness>,
    /// One row per access line, if several share a DSLAM.
    pub lines: Vec<Line>,
    /// Fairness among lines, one row per direction with any goodput.
    pub line_fairness: Vec<LineFairness>,
    /// The account of all bytes.
    pub conservation: Conservation,
    /// The results of cells; `null` without links that carry cells.
    #[serde(default)]
    pub atm: Option<Atm>,
}

impl Summary {
    /// The phase of this run that [is](Phase::is) `phase`, of another one.
    #[must_use]
    pub fn same_phase(&self, phase: &Phase) -> Option<&Phase> {
        self.phases.iter().find(|own| phase.is(own))
    }
}

/// Identity of a run: its inputs, length and clock.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RunFacts {
    /// Name of the scenario, from its file.
    pub scenario: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// Version of the program.
    pub version: String,
    /// Length of the run.
    pub duration_s: f64,
    /// Events that the simulator handled; zero with the monotonic clock.
    pub events: u64,
    /// The clock of the run.
    pub clock: Clock,
    /// The user's inputs.
    pub inputs: Inputs,
}

/// The user's inputs that determine the result.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Inputs {
    /// File name of the scenario, without its folder.
    pub file: Option<String>,
    /// Overrides, `key=value` as given, in order.
    pub set: Vec<String>,
    /// The scenario file's text.
    pub text: Option<String>,
}

#[cfg(test)]
mod tests;
