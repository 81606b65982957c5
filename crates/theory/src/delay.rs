//! Delay of queues, and the rate of a window per round trip.
//!
//! Published: the textbook forms. Brouer 2005 (sections 3.3, 3.4, 3.7, 9.3.1) measures that a
//! download during an upload runs at its window over a round trip that consists almost entirely of
//! upstream queue. Queues are counted in bytes on the wire, which determine their delay.

use lastmile_linklayer::{LinkLayer, aal5};
use lastmile_units::{BitRate, ByteCount, Duration, Limit, WireBytes};

use crate::Fraction;
use crate::asymmetry::user_rate;

const PS_PER_S: u128 = 1_000_000_000_000;

/// Bytes on the wire that `rate` transmits in `time`, rounded down: the bandwidth-delay product.
#[must_use]
pub fn bandwidth_delay(rate: BitRate, time: Duration) -> WireBytes {
    let bits = u128::from(rate.as_bps()) * u128::from(time.as_ps()) / PS_PER_S;
    WireBytes::new(u64::try_from(bits / 8).expect("2^40 bit/s for 2^25 s"))
}

/// The time in which `rate` drains a queue of `queued`, rounded down to a picosecond; at most
/// [`Duration::MAX`].
#[must_use]
pub fn queue_delay(rate: BitRate, queued: WireBytes) -> Duration {
    let ps = u128::from(queued.as_u64()) * 8 * PS_PER_S / u128::from(rate.as_bps());
    Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
}

/// The waiting time behind `packets` packets of `ip` bytes each.
#[must_use]
pub fn wait_behind(rate: BitRate, link: LinkLayer, packets: u64, ip: ByteCount) -> Duration {
    queue_delay(rate, WireBytes::new(link.on_wire(ip).as_u64().saturating_mul(packets)))
}

/// The time in which a full queue of packets of `ip` bytes drains: the delay that an upload adds
/// for all other traffic.
///
/// A queue limited in bytes holds whole packets only. Zero for packets of zero bytes.
#[must_use]
pub fn full_queue_delay(rate: BitRate, link: LinkLayer, limit: Limit, ip: ByteCount) -> Duration {
    match limit {
        Limit::Packets(packets) => wait_behind(rate, link, packets.as_u64(), ip),
        Limit::Bytes(bytes) => wait_behind(rate, link, bytes.as_u64().checked_div(ip.as_u64()).unwrap_or(0), ip),
        Limit::Wire(bytes) => queue_delay(rate, bytes),
        Limit::Cells(cells) => queue_delay(rate, WireBytes::new(cells.as_u64().saturating_mul(aal5::CELL_BYTES))),
    }
}

/// IP bytes, in bit/s, of a full line of `rate` in packets of `ip` bytes, without OAM cells; 0 for
/// packets of zero bytes.
#[must_use]
pub fn ip_rate_bps(rate: BitRate, link: LinkLayer, ip: ByteCount) -> f64 {
    let share = Fraction::new(ip.as_u64().into(), link.on_wire(ip).as_u64().into());
    share.and_then(|share| user_rate(rate, link).checked_mul(share)).map_or(0.0, Fraction::as_f64)
}

/// A flow limited by its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowedFlow {
    /// The most TCP payload in flight: the lower of receive window and congestion window.
    pub window: ByteCount,
    /// Round trip of an empty path, serialisation included.
    pub base_rtt: Duration,
    /// Queueing delay in the flow's own direction.
    pub forward_queue: Duration,
    /// Queueing delay of its ACKs in the other direction.
    pub reverse_queue: Duration,
}

/// The limit of a windowed flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowLimit {
    /// The window per round trip.
    Window,
    /// The line or its ACKs: the bound that the caller gave.
    Line,
}

/// The upper bound of a windowed flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowBound {
    /// Base round trip and both queueing delays.
    pub rtt: Duration,
    /// TCP payload, bit/s, at most.
    pub goodput_bps: f64,
    /// The limit that determines the rate.
    pub limit: WindowLimit,
}

/// A window per round trip in bit/s: `window * 8 / rtt`. Infinite for a round trip of zero.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a result")]
pub fn window_rate_bps(window: ByteCount, rtt: Duration) -> f64 {
    window.as_u64() as f64 * 8.0 / rtt.as_secs_f64()
}

/// The lower of a window per round trip and `line_goodput_bps`, the payload rate of the line (as
/// [`crate::asymmetry::Asymmetry::goodput_bps`]).
///
/// The given queues exclude the flow's own packets, whose queue grows only once the line is the
/// limit.
#[must_use]
pub fn window_bound(flow: &WindowedFlow, line_goodput_bps: f64) -> WindowBound {
    let queues = flow.forward_queue.as_ps().saturating_add(flow.reverse_queue.as_ps());
    let rtt = Duration::from_ps(flow.base_rtt.as_ps().saturating_add(queues));
    let by_window = window_rate_bps(flow.window, rtt);
    let (goodput_bps, limit) = if by_window < line_goodput_bps {
        (by_window, WindowLimit::Window)
    } else {
        (line_goodput_bps, WindowLimit::Line)
    };
    WindowBound { rtt, goodput_bps, limit }
}

#[cfg(test)]
mod tests;
