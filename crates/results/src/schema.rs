//! The shape of a result: what `summary.json` and `--json` hold, field by field.
//!
//! One shape for simulated, live and analysed runs. Names carry their units: `_s`, `_bps`, `_bytes`, `_bits`, `_packets`. A field
//! that has no value is `null`, never a stand-in number, and never absent. Nothing here depends on the machine that ran it, except
//! [`Timing`], which only [`Document`] holds. The page `docs/reference/results.md` documents each key for users.
//!
//! Maps are ordered by key and lists by the order of the scenario, so equal runs give equal bytes.
//!
//! | file | holds |
//! | --- | --- |
//! | `flow.rs`, `probe.rs` | what each flow got; pings and pages |
//! | `link.rs`, `conservation.rs` | what each link did; where every byte went |
//! | `phase.rs` | the same in the parts of a run |
//! | `stream.rs` | delays from end to end, calls, service classes |
//! | `sharing.rs` | how evenly flows and lines shared |
//! | `cells.rs` | what became of cells |
//! | `document.rs` | all of it as text |

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

pub use self::cells::{
    AbrSource, Atm, CellConservation, CellPort, Counted, EdgeClass, Policed, VirtualChannel, VirtualPath,
};
pub use self::conservation::{Conservation, ConservedPackets};
pub use self::document::{Document, Timing};
pub use self::flow::{Flow, Shares};
pub use self::group::{Group, Spread};
pub use self::link::{ClassDelay, Counter, Delay, Link};
pub use self::phase::{Phase, PhaseFlow, PhaseLink, PhaseProbe};
pub use self::probe::{Distribution, PageResponse, Pages, Probe, RoundTrip};
pub use self::sharing::{Fairness, Line, LineFairness};
pub use self::stream::{DatagramClass, Datagrams, OneWay, Voice, Y1541};

/// Which clock drove the datapath.
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
    /// Which clock drove it.
    pub clock: Clock,
    /// What the user gave.
    pub inputs: Inputs,
    /// What the flows are bounded by, where that is not the access line, a sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Flows of one kind and direction together.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// A row a flow, in the order of the scenario.
    pub flows: Vec<Flow>,
    /// A row a link and direction.
    pub links: Vec<Link>,
    /// A row a ping.
    pub probes: Vec<Probe>,
    /// A row a code point and direction of datagrams.
    #[serde(default)]
    pub datagram_classes: Vec<DatagramClass>,
    /// A row a web traffic, its users together.
    pub pages: Vec<Pages>,
    /// The run cut where the offered traffic changes.
    pub phases: Vec<Phase>,
    /// How evenly flows of one direction shared, a row a direction that has at least two TCP flows.
    pub fairness: Vec<Fairness>,
    /// A row an access line, where several share a DSLAM.
    pub lines: Vec<Line>,
    /// How evenly lines shared, a row a direction in which any of them got something.
    pub line_fairness: Vec<LineFairness>,
    /// Where every byte went.
    pub conservation: Conservation,
    /// What became of cells, where links carry cells.
    #[serde(default)]
    pub atm: Option<Atm>,
}

/// What the user gave, as far as it decides the result.
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
