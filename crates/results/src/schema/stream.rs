//! Delays from end to end, results of datagram receivers, and service classes.

use serde::{Deserialize, Serialize};

/// Distribution of the one-way delay of packets that arrived, in seconds. Smallest, mean and
/// largest are exact. Percentiles come from a histogram with three significant digits, and are
/// `null` in runs with too many flows for histograms.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct OneWay {
    /// The smallest.
    pub min: Option<f64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// Number of values.
    pub count: u64,
}

/// Results at the receiver of a datagram flow.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Datagrams {
    /// Interarrival jitter of RFC 3550: the mean of the estimate after each packet.
    pub jitter_mean_s: Option<f64>,
    /// The largest value of the estimate.
    pub jitter_max_s: Option<f64>,
    /// Packets dropped on the path.
    pub lost_packets: u64,
    /// The play-out buffer of the receiver, beyond the delay that it follows.
    pub playout_buffer_s: f64,
    /// Packets whose delay exceeded the smallest so far plus the buffer, including those still in
    /// flight at the end.
    pub late_packets: u64,
    /// Lost and late packets as a share of those that were dropped, arrived or are late; `null`
    /// without packets.
    pub unplayed_share: Option<f64>,
    /// Mean length of runs of lost and late packets over that of random loss of this share (G.107);
    /// `null` without such packets.
    pub burst_ratio: Option<f64>,
    /// Call quality, for a voice flow.
    pub voice: Option<Voice>,
}

/// Quality of a call in one direction, by the E-model of ITU-T G.107.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Voice {
    /// The assumed codec.
    pub codec: String,
    /// The equipment impairment factor Ie of the codec.
    pub ie: f64,
    /// The packet-loss robustness factor Bpl of the codec.
    pub bpl: f64,
    /// Mean delay from mouth to ear: a packet's sound, look-ahead of the coder, network delay that the play-out
    /// follows, play-out buffer; `null` if no packet arrived.
    pub mouth_to_ear_s: Option<f64>,
    /// Transmission rating factor, 0 to 100; 93.2 is the best of a narrow-band call.
    pub r_factor: f64,
    /// Mean opinion score, 1 to 4.5.
    pub mos: f64,
    /// The users' opinion of such a call (G.107, annex B).
    pub satisfaction: String,
}

/// All datagram flows of one direction and code point.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct DatagramClass {
    /// Name of the code point.
    pub class: String,
    /// `down`, `up`, or the scenario's word.
    pub direction: String,
    /// Number of flows.
    pub flows: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets that arrived.
    pub received_packets: u64,
    /// Packets dropped on the path.
    pub lost_packets: u64,
    /// Packets too late for the play-out buffer of their flow.
    pub late_packets: u64,
    /// One-way delay of all their packets.
    pub delay_s: OneWay,
    /// The mean of the flows' mean jitter.
    pub jitter_mean_s: Option<f64>,
    /// The largest jitter of any flow.
    pub jitter_max_s: Option<f64>,
    /// Mean R factor of its voice flows.
    pub r_factor_mean: Option<f64>,
    /// Lowest R factor of its voice flows.
    pub r_factor_min: Option<f64>,
    /// Mean opinion score of its voice flows, averaged.
    pub mos_mean: Option<f64>,
    /// Lowest mean opinion score of its voice flows.
    pub mos_min: Option<f64>,
    /// Service classes of ITU-T Y.1541 that its packets meet together.
    pub y1541: Option<Y1541>,
}

/// The service classes of ITU-T Y.1541 (12/2011) that a flow, probe or class of packets meets.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Y1541 {
    /// The measured delay: `one_way`, or `half_round_trip` of a probe, whose directions are not
    /// measured separately.
    pub delay_from: String,
    /// Mean delay (IPTD).
    pub iptd_s: Option<f64>,
    /// 99.9th percentile of the delay less the smallest (IPDV); for a probe that of the round trip.
    pub ipdv_s: Option<f64>,
    /// Share of packets lost (IPLR); for a probe that of requests without a reply.
    pub iplr: Option<f64>,
    /// Packets that arrived.
    pub packets: u64,
    /// True if the packets are enough for each of `classes`: 1000, which the 99.9th percentile needs, or as many as one
    /// over the bound of the loss ratio, 100 000 for classes 6 and 7. Below that the verdict is indicative.
    pub enough_packets: bool,
    /// Numbers of the classes whose bounds are met: 0 to 5 of table 1, 6 and 7 provisional. Class 5
    /// has no bounds.
    pub classes: Vec<u8>,
}
