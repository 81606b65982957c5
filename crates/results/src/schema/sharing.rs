//! Fairness among flows and lines.

use serde::{Deserialize, Serialize};

/// Fairness among the TCP flows of one direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Fairness {
    /// The direction.
    pub direction: String,
    /// Number of flows.
    pub flows: u64,
    /// Jain's index of their goodputs: (sum x)^2 / (n sum x^2), from 1/n (one has all) to 1 (all equal).
    pub jain_index: f64,
}

/// Results of one access line of several.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Line {
    /// Name of the line: `line-1`.
    pub name: String,
    /// The link towards its client.
    pub down_link: String,
    /// The link from its client.
    pub up_link: String,
    /// Goodput of the flows whose data crosses the link down, over the run.
    pub down_goodput_bps: f64,
    /// Goodput of the flows whose data crosses the link up, over the run.
    pub up_goodput_bps: f64,
    /// Share of the run during which the link down was busy.
    pub down_utilisation: Option<f64>,
    /// Share of the run during which the link up was busy.
    pub up_utilisation: Option<f64>,
    /// Payload that its client received over the payload that servers sent to the clients of all
    /// lines, retransmissions included; `null` if they sent nothing. Phanse 2000, section 4.8.3 and
    /// table 5.12, has a ratio of this name. The definition is this program's interpretation: the
    /// published figures (25.5 % with 4 clients, 14.56 % with 8) are close to equal shares.
    #[serde(default)]
    pub client_to_server_ratio: Option<f64>,
}

/// Fairness among the lines in one direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LineFairness {
    /// `down` or `up`.
    pub direction: String,
    /// Number of lines.
    pub lines: u64,
    /// Jain's index of their goodputs, idle lines included.
    pub jain_index: f64,
}
