//! Results of applications for the people who use them. Web pages are in `probe.rs`.

use serde::{Deserialize, Serialize};

/// Results of applications, by kind.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Applications {
    /// One row per video viewer.
    pub videos: Vec<Video>,
}

/// A viewer of a video.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Video {
    /// Name, also that of its flow.
    pub name: String,
    /// Time from the request for the first segment to the first picture, handshake included;
    /// `null` if there was no picture.
    pub start_s: Option<f64>,
    /// Media played.
    pub played_s: f64,
    /// Segments that arrived whole.
    pub segments: u64,
    /// Stalls after the first picture, one that lasted until the end included.
    pub stalls: u64,
    /// Their time.
    pub stalled_s: f64,
    /// The longest of them; `null` without any.
    pub stall_max_s: Option<f64>,
    /// Their share of the time from the first picture on.
    pub stalled_share: Option<f64>,
    /// Mean bit rate of the segments.
    pub bit_rate_mean_bps: Option<f64>,
    /// Segments with another bit rate than the one before.
    pub switches: u64,
    /// The share of segments of each bit rate, in the order of the ladder.
    pub ladder: Vec<LadderStep>,
    /// Quality of Yin and others (SIGCOMM 2015), for each segment: the mean bit rate, less the mean
    /// change between segments, less the highest bit rate for each second of start and stalls, over
    /// the number of segments. `null` without a picture.
    pub quality_bps: Option<f64>,
}

/// A bit rate of a video, and the share of segments that had it.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LadderStep {
    /// The bit rate.
    pub bit_rate_bps: f64,
    /// Share of the segments that arrived.
    pub share: f64,
}
