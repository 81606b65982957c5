//! What each flow got, and what held it back.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Datagrams, OneWay, Y1541};

/// One flow.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Flow {
    /// Name, unique in the run.
    pub name: String,
    /// `down`, `up`, or what the scenario calls it.
    pub direction: Arc<str>,
    /// Kind of traffic: `bulk`, `writes`, `poisson`, `onoff`, `voice`, `blast`, `web`, `swarm`, `replay`.
    pub kind: Arc<str>,
    /// Class of its packets: the name of their code point, as of a probe.
    #[serde(default)]
    pub class: Arc<str>,
    /// TCP variant of the sender; `null` for what is not TCP.
    pub tcp: Option<Arc<str>>,
    /// Advertised receive window at most; `null` for what is not TCP.
    pub receive_window_bytes: Option<u64>,
    /// Payload bytes of a full segment or datagram.
    pub payload_bytes: u64,
    /// Links that its data crosses, in order.
    pub data_path: Arc<[Arc<str>]>,
    /// Links that its ACKs cross, in order.
    pub ack_path: Arc<[Arc<str>]>,
    /// When it started.
    pub start_s: f64,
    /// When the last of its data was delivered and, with a given size, all of it was.
    pub end_s: Option<f64>,
    /// Payload handed to the receiving application, in order.
    pub bytes_delivered: u64,
    /// Delivered payload over the time from start to end, or to the end of the run for what has not ended.
    pub goodput_bps: f64,
    /// From start to end, for a transfer of given size.
    pub response_time_s: Option<f64>,
    /// Segments sent again.
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
    /// TCP connections opened, for what opens them as it goes (`web`, `swarm`): the row tells of all of them together.
    pub connections: Option<u64>,
    /// Of these, the ones that were reset or given up.
    pub connections_failed: Option<u64>,
    /// Largest amount of data in flight.
    pub max_in_flight_bytes: Option<u64>,
    /// Smoothed round-trip time at the end.
    pub srtt_s: Option<f64>,
    /// What held the sender back, as shares of its active time that sum to 1.
    pub limited_by: Shares,
    /// What held it back, in words, drawn from what was measured.
    pub explanation: String,
    /// The closed-form bound on its goodput over its life, which no run exceeds; see `docs/reference/results.md`.
    pub bound_bps: Option<f64>,
    /// What sets the bound.
    pub bound_by: Option<Arc<str>>,
    /// An equal share of what the line can carry at best, over its life. A flow exceeds it where others do not take theirs.
    pub fair_share_bps: Option<f64>,
    /// What sets the fair share.
    pub fair_share_by: Option<Arc<str>>,
    /// One-way delay of its data packets; `null` where flows are too many, and of real packets where their sending times are not known.
    #[serde(default)]
    pub delay_s: Option<Box<OneWay>>,
    /// One-way delay of its ACKs.
    #[serde(default)]
    pub ack_delay_s: Option<Box<OneWay>>,
    /// What its receiver makes of it, if it is one of datagrams.
    #[serde(default)]
    pub datagrams: Option<Box<Datagrams>>,
    /// Service classes of ITU-T Y.1541 that its data meets.
    #[serde(default)]
    pub y1541: Option<Box<Y1541>>,
}

/// Shares of a sender's time that sum to 1, by cause; those of TCP have all four, others their source's alone, and what
/// was never active has none.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Shares {
    /// Nothing more to send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<f64>,
    /// Nothing could be sent before an acknowledgement came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaiting_ack: Option<f64>,
    /// The congestion window was full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_window: Option<f64>,
    /// The receiver's window was full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_window: Option<f64>,
}

impl Shares {
    /// Each cause that there is, with its share, in the order of the alphabet.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let named = [
            ("application", self.application),
            ("awaiting_ack", self.awaiting_ack),
            ("congestion_window", self.congestion_window),
            ("receive_window", self.receive_window),
        ];
        named.into_iter().filter_map(|(name, share)| Some((name, share?)))
    }
}
