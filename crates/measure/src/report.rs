//! The record of a measurement, as it is written to JSON.

use serde::{Deserialize, Serialize};

use crate::foreign::iperf3::Datagrams;
use crate::load::Direction;
use crate::probe::{Sample, Subject};
use crate::train::Way;

/// The share of the offered rate from which datagrams count as arriving at that rate.
const IN_TIME: f64 = 0.95;

/// Version of this schema.
pub const SCHEMA: u32 = 1;

/// A whole measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Measurement {
    /// [`SCHEMA`] of the writer.
    pub schema: u32,
    /// Version of lastmile.
    pub version: String,
    /// Start by the wall clock, seconds since 1970.
    pub started_unix_s: f64,
    /// The server as the user named it.
    pub host: String,
    /// Protocol and address of the load, such as `iperf3 192.0.2.1:5201`; `None` without load.
    pub load: Option<String>,
    /// The phases in their order.
    pub phases: Vec<Phase>,
    /// The meaning of one-way delays, in a sentence; `None` without any.
    #[serde(default)]
    pub clocks: Option<String>,
    /// Measurements that were not possible, with the reasons, in sentences.
    pub warnings: Vec<String>,
    /// Whether every phase is there, and its load and every series of probes that began ran to the end.
    #[serde(default = "is_complete")]
    pub complete: bool,
}

/// Of files that do not say otherwise.
fn is_complete() -> bool {
    true
}

/// A span of a measurement with one kind of load.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Phase {
    /// The loaded direction; `None` for the idle line.
    pub load: Option<Direction>,
    /// Start, seconds since the measurement started.
    pub start_s: f64,
    /// Length in seconds, ramp included.
    pub duration_s: f64,
    /// Time at the start that figures leave out, while the load ramps up.
    pub ramp_s: f64,
    /// Payload that arrived at the client.
    pub download: Option<Throughput>,
    /// Payload that arrived at the server.
    pub upload: Option<Throughput>,
    /// The probes, one entry for each target, kind and code point.
    pub probes: Vec<Series>,
    /// The outcome of the datagrams of a UDP load, one entry for each direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub datagrams: Vec<Datagrams>,
    /// The loaded directions that the server's limit held back: [`Direction::Both`] for both of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited: Option<Direction>,
    /// Round trips per minute, by the formula of draft-ietf-ippm-responsiveness where all its
    /// probes are there.
    pub responsiveness: Option<Responsiveness>,
}

impl Phase {
    /// False where a UDP load lost nothing and arrived at its rate, or the server's limit held a direction back: the
    /// load did not fill the line, and delays are not those of a full one.
    #[must_use]
    pub fn fills_the_line(&self) -> bool {
        let all_arrived = !self.datagrams.is_empty() && self.datagrams.iter().all(|it| self.arrived_in_time(it));
        !all_arrived && self.limited.is_none()
    }

    /// Whether datagrams arrived without loss at the rate at which they were offered: those of a full line wait.
    #[expect(clippy::cast_precision_loss, reason = "a rate is compared with an estimate")]
    fn arrived_in_time(&self, datagrams: &Datagrams) -> bool {
        let throughput = match datagrams.way {
            Way::Down => &self.download,
            Way::Up => &self.upload,
        };
        let least_bps = IN_TIME * datagrams.offered_bps as f64;
        datagrams.lost == 0 && throughput.as_ref().is_none_or(|it| it.goodput_bps.value >= least_bps)
    }

    /// The first of these series that was answered in this phase, with its delays.
    #[must_use]
    pub fn first_answered(&self, counted: &[usize]) -> Option<(&Series, Delays)> {
        counted.iter().find_map(|index| self.probes.get(*index).and_then(|series| Some((series, series.round_trip?))))
    }
}

/// The series that figures of the line are of, by their places in each phase: those of best effort to `host` that the
/// idle line answers, or all that it answers. Without an idle phase an answer in any phase counts.
#[must_use]
pub fn counted(phases: &[Phase], host: &str) -> Vec<usize> {
    let idle = phases.iter().position(|phase| phase.load.is_none());
    let judged = idle.map_or(phases, |idle| &phases[idle..=idle]);
    let count = phases.iter().map(|phase| phase.probes.len()).min().unwrap_or(0);
    let is_answered = |index: &usize| judged.iter().any(|phase| phase.probes[*index].round_trip.is_some());
    let answered: Vec<usize> = (0..count).filter(is_answered).collect();
    let is_own = |index: &usize| {
        let Subject { target, code_point, .. } = &judged[0].probes[*index].subject;
        target == host && *code_point == 0
    };
    let own: Vec<usize> = answered.iter().copied().filter(is_own).collect();
    if own.is_empty() { answered } else { own }
}

/// A mean with its 95 % interval.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
}

/// Payload rate of one direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Throughput {
    /// Payload bytes of the phase, ramp included.
    pub bytes: u64,
    /// Number of connections.
    pub streams: u32,
    /// Congestion control of the sender, as its sockets told; `None` where nobody did. Several have commas between
    /// them.
    #[serde(default)]
    pub congestion: Option<String>,
    /// Goodput after the ramp, bit/s of TCP payload.
    pub goodput_bps: Estimate,
    /// Whether the goodput is that of all bytes, ramp included, as counts cover less than half of the time after it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ramp_included: bool,
    /// Samples: end of the interval in seconds, and the goodput of the interval in bit/s.
    pub samples: Vec<(f64, f64)>,
}

/// The probes of one target, kind and code point in a phase.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Series {
    /// Target, kind, code point.
    pub subject: Subject,
    /// Every probe in the order of sending.
    pub samples: Vec<Sample>,
    /// Figures over the probes after the ramp; `None` where no answer came.
    pub round_trip: Option<Delays>,
    /// One-way delays to the server.
    pub up: Option<Delays>,
    /// One-way delays from the server.
    pub down: Option<Delays>,
    /// Probes after the ramp without an answer.
    pub lost: u64,
    /// Probes after the ramp that were lost on the way to the server, where it is known.
    #[serde(default)]
    pub lost_up: Option<u64>,
    /// Probes after the ramp whose answers were lost, where it is known.
    #[serde(default)]
    pub lost_down: Option<u64>,
    /// Answers that came after those of later probes.
    pub reordered: u64,
    /// Answers that came a second time.
    #[serde(default)]
    pub duplicates: u64,
}

impl Series {
    /// Probes without figures.
    #[must_use]
    pub const fn new(subject: Subject, samples: Vec<Sample>) -> Self {
        Self {
            subject,
            samples,
            round_trip: None,
            up: None,
            down: None,
            lost: 0,
            lost_up: None,
            lost_down: None,
            reordered: 0,
            duplicates: 0,
        }
    }
}

/// Order statistics of delays in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Delays {
    /// Number of delays.
    pub count: u64,
    /// The smallest.
    pub min_s: f64,
    /// The median with its 95 % interval.
    pub p50_s: Estimate,
    /// 95th percentile.
    pub p95_s: f64,
    /// 99th percentile.
    pub p99_s: f64,
    /// The largest.
    pub max_s: f64,
    /// Mean.
    pub mean_s: f64,
    /// Mean absolute difference of successive delays (as RFC 3550, 6.4.1, without its smoothing).
    pub jitter_s: f64,
}

/// Round trips per minute under load.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Responsiveness {
    /// Round trips per minute with its interval.
    pub rpm: Estimate,
    /// Whether the draft's four kinds of probes were there (TCP, TLS, HTTP on own and on loaded
    /// connections); otherwise 60 s over the mean of the round-trip times that there are.
    pub by_draft: bool,
    /// Parts and confidence of the draft's result; `None` without its probes.
    #[serde(default)]
    pub draft: Option<ByDraft>,
}

/// The parts of a result by draft-ietf-ippm-responsiveness. Their mean is the result.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ByDraft {
    /// Responsiveness over new connections.
    pub foreign_rpm: Estimate,
    /// Responsiveness over the connections of the load.
    pub loaded_rpm: Estimate,
    /// The stability of the result.
    pub confidence: Confidence,
}

/// Confidence in a responsiveness: draft-ietf-ippm-responsiveness-09, section 5.4.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The goodput was not stable, fewer than four intervals followed, or the load lost connections.
    Low,
    /// The responsiveness was not stable in four intervals or more.
    Medium,
    /// Goodput and responsiveness were stable.
    High,
}
