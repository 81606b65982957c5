//! How evenly flows and lines shared.

use serde::{Deserialize, Serialize};

/// How evenly the TCP flows of one direction shared.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Fairness {
    /// The direction.
    pub direction: String,
    /// How many flows.
    pub flows: u64,
    /// Jain's index of their goodputs: (sum x)^2 / (n sum x^2), from 1/n (one has all) to 1 (all equal).
    pub jain_index: f64,
}

/// What one access line of several got.
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
    /// The same for the link up.
    pub up_goodput_bps: f64,
    /// Share of the run that the link down was busy.
    pub down_utilisation: Option<f64>,
    /// The same for the link up.
    pub up_utilisation: Option<f64>,
    /// Payload that its client received over the payload that servers sent to the clients of all lines, retransmissions included; `null`
    /// where they sent nothing. Phanse 2000, section 4.8.3 and table 5.12, has a ratio of this name. The definition is a reading of this
    /// program: the published figures (25.5 % with 4 clients, 14.56 % with 8) lie near equal shares.
    #[serde(default)]
    pub client_to_server_ratio: Option<f64>,
}

/// How evenly the lines shared in one direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LineFairness {
    /// `down` or `up`.
    pub direction: String,
    /// How many lines.
    pub lines: u64,
    /// Jain's index of their goodputs, lines that got nothing included.
    pub jain_index: f64,
}
