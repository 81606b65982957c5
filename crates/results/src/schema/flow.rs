//! Results of each flow, and its limits.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Datagrams, OneWay, Y1541};

/// One flow.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Flow {
    /// Name, unique in the run.
    pub name: String,
    /// `down`, `up`, or the scenario's word.
    pub direction: Arc<str>,
    /// Traffic, transport and links of the flow.
    #[serde(flatten)]
    pub setup: FlowSetup,
    /// Start time.
    pub start_s: f64,
    /// Delivery of the last of its data, if all of a given size was delivered.
    pub end_s: Option<f64>,
    /// Payload handed to the receiving application, in order.
    pub bytes_delivered: u64,
    /// Delivered payload over the time from the start to the end of the flow's life: to its end;
    /// else to its `stop`, or its last delivery if that is later; else to the end of the run.
    pub goodput_bps: f64,
    /// Time from start to end, for a transfer of given size.
    pub response_time_s: Option<f64>,
    /// Counters at its ends.
    #[serde(flatten)]
    pub transport: Transport,
    /// Limits of the flow, measured and in closed form.
    #[serde(flatten)]
    pub limits: FlowLimits,
    /// One-way delay of its data packets; `null` with too many flows, and for real packets with
    /// unknown sending times.
    #[serde(default)]
    pub delay_s: Option<Box<OneWay>>,
    /// One-way delay of its ACKs.
    #[serde(default)]
    pub ack_delay_s: Option<Box<OneWay>>,
    /// Results at the receiver of a datagram flow.
    #[serde(default)]
    pub datagrams: Option<Box<Datagrams>>,
    /// Service classes of ITU-T Y.1541 that its data meets.
    #[serde(default)]
    pub y1541: Option<Box<Y1541>>,
}

impl Flow {
    /// Seconds over which its goodput is taken; `None` without a delivered byte.
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    pub(crate) fn lived_s(&self) -> Option<f64> {
        let lived_s = self.bytes_delivered as f64 * 8.0 / self.goodput_bps;
        (lived_s.is_finite() && lived_s > 0.0).then_some(lived_s)
    }

    /// True for a flow over QUIC.
    #[must_use]
    pub fn is_over_quic(&self) -> bool {
        self.setup.tcp.as_ref().is_some_and(|name| name.starts_with("quic-"))
    }

    /// True for a flow over TCP or QUIC that takes the rate that it gets. Web users and video viewers
    /// request what they need.
    pub(crate) fn is_elastic(&self) -> bool {
        self.setup.tcp.is_some() && !matches!(self.setup.kind, FlowKind::Web | FlowKind::Video)
    }
}

/// The limits of a flow, measured and in closed form.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FlowLimits {
    /// Limits of the sender, as shares of its active time that sum to 1.
    pub limited_by: Shares,
    /// The limit in words, inferred from measurements.
    pub explanation: String,
    /// The closed-form bound on its goodput over its life, which no run exceeds; see
    /// `docs/reference/results.md`.
    pub bound_bps: Option<f64>,
    /// The cause of the bound.
    pub bound_by: Option<Arc<str>>,
    /// An equal share of the line's best capacity, over the flow's life. A flow exceeds it where
    /// others do not use theirs.
    pub fair_share_bps: Option<f64>,
    /// The cause of the fair share.
    pub fair_share_by: Option<Arc<str>>,
}

/// Counters of a flow at its ends. Counters of TCP are `null` for flows without TCP.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Transport {
    /// Retransmitted segments.
    pub retransmissions: Option<u64>,
    /// Retransmission timeouts.
    pub timeouts: Option<u64>,
    /// Fast retransmits.
    pub fast_retransmits: Option<u64>,
    /// Data segments or datagrams sent, retransmissions included.
    pub data_packets: u64,
    /// Data segments or datagrams that arrived.
    pub data_packets_received: u64,
    /// ACKs that the data receiver sent.
    pub acks_sent: Option<u64>,
    /// ACKs that reached the data sender.
    pub acks_received: Option<u64>,
    /// TCP connections opened by a source that opens them during the run (`web`, `video`, `swarm`):
    /// the row is the sum of all.
    pub connections: Option<u64>,
    /// Opened connections that were reset or gave up.
    pub connections_failed: Option<u64>,
    /// Largest amount of data in flight.
    pub max_in_flight_bytes: Option<u64>,
    /// Smoothed round-trip time at the end.
    pub srtt_s: Option<f64>,
}

/// A kind of traffic, as a scenario names it, in alphabetical order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum FlowKind {
    Backup,
    Blast,
    #[default]
    Bulk,
    Conference,
    Game,
    OnOff,
    Ping,
    Poisson,
    Replay,
    Swarm,
    Video,
    Voice,
    Web,
    Writes,
}

impl fmt::Display for FlowKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The traffic and the transport of a flow, and the links that it crosses.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FlowSetup {
    /// Kind of traffic.
    pub kind: FlowKind,
    /// Class of its packets: the name of their code point, as for a probe.
    #[serde(default)]
    pub class: Arc<str>,
    /// TCP variant of the sender, or `quic-` and its congestion control; `null` for flows without either.
    pub tcp: Option<Arc<str>>,
    /// Largest advertised receive window; `null` for flows without TCP.
    pub receive_window_bytes: Option<u64>,
    /// Payload bytes of a full segment or datagram.
    pub payload_bytes: u64,
    /// Links that its data crosses, in order.
    pub data_path: Arc<[Arc<str>]>,
    /// Links that its ACKs cross, in order.
    pub ack_path: Arc<[Arc<str>]>,
}

/// Shares of a sender's time by limit, which sum to 1. Flows over TCP and QUIC have all, that of pacing only if their
/// sender paces, that of the send buffer only if it limits, other flows only
/// that of their source, inactive flows none.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Shares {
    /// No more data to send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<f64>,
    /// No transmission possible before an acknowledgement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaiting_ack: Option<f64>,
    /// The congestion window was full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_window: Option<f64>,
    /// The segment's time at the pacing rate had not come; only for senders that pace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing: Option<f64>,
    /// The receiver's window was full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_window: Option<f64>,
    /// The sender's buffer was full; only for senders that it limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<f64>,
}

impl Shares {
    /// Each share that is present, with its name, in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let named = [
            ("application", self.application),
            ("awaiting_ack", self.awaiting_ack),
            ("congestion_window", self.congestion_window),
            ("pacing", self.pacing),
            ("receive_window", self.receive_window),
            ("send_buffer", self.send_buffer),
        ];
        named.into_iter().filter_map(|(name, share)| Some((name, share?)))
    }
}
