//! Results of pings and of web users.

use serde::{Deserialize, Serialize};

use super::Y1541;

/// One ping.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Probe {
    /// Name, unique in the run.
    pub name: String,
    /// Class of its packets: the name of their code point (RFC 2474, RFC 2597, RFC 3246), such as
    /// `default`, `EF`, `AF41`.
    pub class: String,
    /// Protocol of its packets: `icmp` or `udp`.
    #[serde(default = "icmp")]
    pub protocol: String,
    /// Requests sent.
    pub sent: u64,
    /// Replies received.
    pub received: u64,
    /// Requests that were dropped, they or their replies. Of real hosts: requests without a reply that at the end were
    /// older than the longest round trip; younger ones may still be answered.
    #[serde(default)]
    pub lost: u64,
    /// Round-trip time.
    pub rtt_s: RoundTrip,
    /// Distribution of the round-trip time; empty without a reply.
    #[serde(default)]
    pub rtt_distribution: Distribution,
    /// Service classes of ITU-T Y.1541 that it meets if each direction takes half the round trip.
    #[serde(default)]
    pub y1541: Option<Y1541>,
}

/// A distribution as a histogram and, by its running sum, as a cumulative distribution.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Distribution {
    /// Width of a bin; bin n holds values from n times the width up to, but excluding, n + 1 times.
    /// `null` for an empty distribution.
    pub bin_width_s: Option<f64>,
    /// Number of the first bin that holds a value.
    pub first_bin: u64,
    /// Values in each bin, from the first to the last that holds one.
    pub counts: Vec<u64>,
}

/// The protocol of probes in results without that field.
fn icmp() -> String {
    "icmp".to_owned()
}

/// Distribution of a round-trip time in seconds; all `null` without a reply. Percentiles are exact
/// (nearest rank).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RoundTrip {
    /// The smallest.
    pub min: Option<f64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// Jitter by ITU-T Y.1541: the 99.9th percentile less the smallest.
    pub jitter: Option<f64>,
}

/// The pages that the users of one web traffic read.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Pages {
    /// Name of the traffic.
    pub name: String,
    /// Version of HTTP: `1.0`, `1.1`, `2`, `3`; with TLS over TCP `1.1 tls` and `2 tls`.
    #[serde(default)]
    pub http: String,
    /// Number of users.
    pub users: u64,
    /// Pages requested.
    pub pages: u64,
    /// Pages received whole.
    pub complete: u64,
    /// Objects received whole.
    pub objects: u64,
    /// Time from the request for a page to the last byte of its last object, for pages received
    /// whole.
    pub response_s: PageResponse,
    /// Time from the request for a page to the last byte of its main object.
    #[serde(default)]
    pub main_s: PageResponse,
}

/// Distribution of a page's response time in seconds; all `null` without a whole page. Percentiles
/// are exact (nearest rank).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PageResponse {
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
}
