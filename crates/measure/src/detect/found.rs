//! The findings about a line.

use serde::{Deserialize, Serialize};

use super::buffer::{Buffer, Limiter};
use super::discipline::Discipline;
use crate::report::Estimate;

/// The findings about a line.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Detection {
    /// Largest IP packet, at most that of a train (1472 bytes of UDP payload); `None` where no echo showed it.
    pub mtu_bytes: Option<u16>,
    /// Smallest round-trip time of a small packet over the idle line, in seconds.
    pub idle_rtt_s: Option<Estimate>,
    /// From the server to the client; `None` where the detection ended before.
    pub down: Option<Side>,
    /// From the client to the server; `None` where the detection ended before.
    pub up: Option<Side>,
    /// Time that the detection took, in seconds.
    pub took_s: f64,
    /// Steps that were not possible, and why, in sentences.
    pub warnings: Vec<String>,
    /// Properties that no detection sees, in sentences.
    #[serde(default)]
    pub not_seen: Vec<String>,
    /// Whether all steps ended: both ways are there.
    #[serde(default = "is_complete")]
    pub complete: bool,
}

/// Of files that do not say otherwise.
fn is_complete() -> bool {
    true
}

/// Trains record when packets arrive, not why: a wait for a grant is one that jitter could have caused.
pub(super) const GRANTS: &str = "grants of an upstream (cable, PON, cellular, satellite): a wait for them shows as \
                                 delay and jitter alone";

/// The findings about one way.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Side {
    /// How bytes are counted.
    pub encapsulation: Encapsulation,
    /// Rate of IP bytes in packets of the largest size, bit/s.
    pub ip_bps: Estimate,
    /// Rate of the wire by [`Side::encapsulation`], bit/s. An interval that covers the rates of all
    /// candidates where no name is sure.
    pub gross_bps: Option<Estimate>,
    /// Line, shaper or policer.
    pub limiter: Limiter,
    /// The buffer, where it filled.
    pub buffer: Option<Buffer>,
    /// The behaviour of the queue below its limit; `None` where no slight overload showed it.
    #[serde(default)]
    pub discipline: Option<Discipline>,
    /// Share of packets lost without overload, where any was.
    pub loss_share: Option<Estimate>,
    /// Share of the way that traffic of others asked for, where any was seen. Rates are then
    /// extrapolated to a way without it.
    pub others_share: Option<f64>,
}

/// How sure an encapsulation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The first candidate is sure.
    Sure,
    /// Several candidates are left.
    NotSure,
    /// A shaper limits the way below the line's rate: the candidates state how the shaper counts.
    Shaper,
    /// A policer limits the way below the line's rate.
    Policer,
    /// No candidate explains the times.
    Misfit,
    /// The senders do not fill the line.
    Unloaded,
}

/// The encapsulation of one way.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Encapsulation {
    /// How sure it is.
    pub verdict: Verdict,
    /// Probability of the names of the first candidate: that of all classes which share a preset with it, such as
    /// PTM with both laws of its blocks. `None` without candidates.
    #[serde(default)]
    pub name_probability: Option<f64>,
    /// Classes of encapsulations by falling probability, 99.9 % of it together, at most ten.
    pub candidates: Vec<Candidate>,
}

/// Encapsulations that timing cannot tell apart.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Candidate {
    /// Names of presets; empty where none has this overhead.
    pub presets: Vec<String>,
    /// Bytes around each IP packet.
    pub overhead_bytes: i32,
    /// Least bytes of packet and overhead together.
    pub minimum_bytes: u32,
    /// `none`, `atm` or `ptm`.
    pub framing: String,
    /// The last block of each frame under 64/65 coding; `None` without it.
    #[serde(default)]
    pub blocks: Option<Blocks>,
    /// Probability of this class alone: those of all classes add up to one.
    pub probability: f64,
    /// Rate of the wire, bit/s.
    pub gross_bps: Estimate,
}

/// The blocks of 64/65 coding (PTM) at the end of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocks {
    /// The last block of each frame counts whole.
    Whole,
    /// Blocks continue across frames.
    Continuous,
}

impl Encapsulation {
    /// How sure the names of the first candidate are; `None` without candidates.
    #[must_use]
    pub fn sure(&self) -> Option<f64> {
        // Of files of earlier versions the first candidate has it.
        self.name_probability.or_else(|| self.candidates.first().map(|first| first.probability))
    }
}

impl Candidate {
    /// Everything that tells it from other candidates, but for the names.
    #[must_use]
    pub fn counts(&self) -> String {
        let mut text = format!("{} bytes, framing {}", self.overhead_bytes, self.framing);
        if self.minimum_bytes > 0 {
            text.push_str(&format!(", at least {} bytes", self.minimum_bytes));
        }
        text.push_str(match self.blocks {
            None => "",
            Some(Blocks::Whole) => " with the last block of each frame whole",
            Some(Blocks::Continuous) => " with blocks that continue across frames",
        });
        text
    }
}
