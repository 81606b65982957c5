//! The timing of acknowledgements.

use lastmile_units::Duration;

/// When a receiver acknowledges data, and which duplicates it reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AckConfig {
    /// Longest delay of an acknowledgement, at most 500 ms by RFC 9293 (3.8.6.3); zero: every segment is
    /// acknowledged at once. Default 40 ms, Linux's shortest.
    pub delayed_ack: Duration,
    /// Data segments after which an acknowledgement is due at once. Default 2 (RFC 5681, section 4.2). At least 1.
    pub ack_every: u8,
    /// Acknowledge as Linux does: one by one at the beginning and after a pause, and at once at the end of
    /// a burst; else after `ack_every` full segments, or after 40 ms up to `delayed_ack`. Senders mark the
    /// end of a burst (PSH) as Linux does. Default off: every `ack_every`-th segment.
    pub quick_acks: bool,
    /// Mean time from the arrival of data until the application has read them, evenly distributed from zero
    /// to twice the mean. Only read data are acknowledged, except where [`quick_acks`](Self::quick_acks)
    /// acknowledges one by one; without `quick_acks` it has no effect. Default zero.
    pub read_delay: Duration,
    /// Receive offload: data segments that arrive within this time of one another are one for TCP, and are acknowledged
    /// together (stretched ACKs). Default zero: none.
    pub gro: Duration,
    /// Report duplicate segments in a first SACK block (RFC 2883). Default on.
    pub dsack: bool,
}

impl Default for AckConfig {
    fn default() -> Self {
        Self {
            delayed_ack: Duration::from_ms(40),
            ack_every: 2,
            quick_acks: false,
            read_delay: Duration::ZERO,
            gro: Duration::ZERO,
            dsack: true,
        }
    }
}
