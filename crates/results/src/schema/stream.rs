//! Delays from end to end, what a receiver of datagrams makes of them, and service classes.

use serde::{Deserialize, Serialize};

/// Distribution of the one-way delay of packets that arrived, in seconds. Smallest, mean and largest are exact; percentiles come from a
/// histogram with three significant digits and are `null` where very many flows have none.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct OneWay {
    /// The smallest.
    pub min: Option<f64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 95 of 100 values are at or below it.
    pub p95: Option<f64>,
    /// 99 of 100 values are at or below it.
    pub p99: Option<f64>,
    /// 999 of 1000 values are at or below it.
    pub p999: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// How many values.
    pub count: u64,
}

/// What the receiver of a datagram flow makes of it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Datagrams {
    /// Interarrival jitter of RFC 3550: the mean of the estimate after each packet.
    pub jitter_mean_s: Option<f64>,
    /// The largest value of the estimate.
    pub jitter_max_s: Option<f64>,
    /// Packets dropped on the path.
    pub lost_packets: u64,
    /// The fixed play-out buffer of the receiver.
    pub playout_buffer_s: f64,
    /// Packets that took longer than the fastest so far and the buffer together, those among them that are still under way at the end.
    pub late_packets: u64,
    /// Lost and late packets as a share of those that were dropped, arrived or are late; `null` without any.
    pub unplayed_share: Option<f64>,
    /// Mean length of runs of lost and late packets over that of random loss of the same share (G.107); `null` without any.
    pub burst_ratio: Option<f64>,
    /// How well it is understood, if it is voice.
    pub voice: Option<Voice>,
}

/// How well a call is understood, by the E-model of ITU-T G.107, in one direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Voice {
    /// The codec that is assumed.
    pub codec: String,
    /// Its equipment impairment factor Ie.
    pub ie: f64,
    /// Its packet-loss robustness factor Bpl.
    pub bpl: f64,
    /// Delay from mouth to ear: a packet's sound, look-ahead of the coder, smallest network delay, play-out buffer; `null` if no packet arrived.
    pub mouth_to_ear_s: Option<f64>,
    /// Transmission rating factor, 0 to 100; 93.2 is the best of a narrow-band call.
    pub r_factor: f64,
    /// Mean opinion score, 1 to 4.5.
    pub mos: f64,
    /// What users think of such a call (G.107, annex B).
    pub satisfaction: String,
}

/// All datagram flows of one direction whose packets have one code point.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct DatagramClass {
    /// Name of the code point.
    pub class: String,
    /// `down`, `up`, or what the scenario calls it.
    pub direction: String,
    /// How many flows.
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
    /// Mean R factor of the voice flows among them.
    pub r_factor_mean: Option<f64>,
    /// The R factor of the worst.
    pub r_factor_min: Option<f64>,
    /// Mean opinion score of the voice flows among them, on average.
    pub mos_mean: Option<f64>,
    /// The score of the worst.
    pub mos_min: Option<f64>,
    /// Service classes of ITU-T Y.1541 that all their packets together meet.
    pub y1541: Option<Y1541>,
}

/// Which service classes of ITU-T Y.1541 (12/2011) a flow, probe or class of packets meets.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Y1541 {
    /// What the delay is: `one_way`, or `half_round_trip` of a probe, whose directions are not measured apart.
    pub delay_from: String,
    /// Mean delay (IPTD).
    pub iptd_s: Option<f64>,
    /// 99.9th percentile of the delay less the smallest (IPDV); of a probe that of the round trip.
    pub ipdv_s: Option<f64>,
    /// Share of packets lost (IPLR); of a probe that of requests without a reply.
    pub iplr: Option<f64>,
    /// Packets that arrived.
    pub packets: u64,
    /// At least 1000 packets, which the 99.9th percentile needs. Otherwise the verdict is indicative.
    pub enough_packets: bool,
    /// Numbers of the classes whose bounds are met: 0 to 5 of table 1, 6 and 7 provisional. Class 5 has no bounds.
    pub classes: Vec<u8>,
}
