//! Delay of queues, and what a window gives over a round trip.
//!
//! Published: the textbook forms; Brouer 2005 (sections 3.3, 3.4, 3.7, 9.3.1) measures that a download beside an upload runs
//! at its window over a round trip that is nearly all upstream queue. Queues are counted in bytes on the wire, since it is
//! these that take time.

use lastmile_linklayer::{LinkLayer, aal5};
use lastmile_units::{BitRate, ByteCount, Duration, Limit, WireBytes};

use crate::Fraction;
use crate::asymmetry::user_rate;

const PS_PER_S: u128 = 1_000_000_000_000;

/// Bytes on the wire that `rate` sends in `time`, rounded down: what must be in flight to fill it (bandwidth-delay product).
#[must_use]
pub fn bandwidth_delay(rate: BitRate, time: Duration) -> WireBytes {
    let bits = u128::from(rate.as_bps()) * u128::from(time.as_ps()) / PS_PER_S;
    WireBytes::new(u64::try_from(bits / 8).expect("2^40 bit/s for 2^25 s"))
}

/// How long `rate` takes to empty a queue of `queued`, rounded down to a picosecond; held at [`Duration::MAX`].
#[must_use]
pub fn queue_delay(rate: BitRate, queued: WireBytes) -> Duration {
    let ps = u128::from(queued.as_u64()) * 8 * PS_PER_S / u128::from(rate.as_bps());
    Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
}

/// How long a packet waits behind `packets` packets of `ip` bytes each.
#[must_use]
pub fn wait_behind(rate: BitRate, link: LinkLayer, packets: u64, ip: ByteCount) -> Duration {
    queue_delay(rate, WireBytes::new(link.on_wire(ip).as_u64().saturating_mul(packets)))
}

/// How long a full queue takes to empty, when it holds packets of `ip` bytes: what an upload does to everyone else.
///
/// A queue limited in bytes holds whole packets only. Zero for packets of nothing.
#[must_use]
pub fn full_queue_delay(rate: BitRate, link: LinkLayer, limit: Limit, ip: ByteCount) -> Duration {
    match limit {
        Limit::Packets(packets) => wait_behind(rate, link, packets.as_u64(), ip),
        Limit::Bytes(bytes) => wait_behind(rate, link, bytes.as_u64().checked_div(ip.as_u64()).unwrap_or(0), ip),
        Limit::Wire(bytes) => queue_delay(rate, bytes),
        Limit::Cells(cells) => queue_delay(rate, WireBytes::new(cells.as_u64().saturating_mul(aal5::CELL_BYTES))),
    }
}

/// IP bytes, bit/s, that a full line of `rate` carries in packets of `ip` bytes, OAM cells off; 0 for packets of nothing.
#[must_use]
pub fn ip_rate_bps(rate: BitRate, link: LinkLayer, ip: ByteCount) -> f64 {
    let share = Fraction::new(ip.as_u64().into(), link.on_wire(ip).as_u64().into());
    share.and_then(|share| user_rate(rate, link).checked_mul(share)).map_or(0.0, Fraction::as_f64)
}

/// A flow that has no more than its window in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowedFlow {
    /// TCP payload in flight at most: the receive window, or the congestion window where it stays below.
    pub window: ByteCount,
    /// Round trip of an empty path, serialisation included.
    pub base_rtt: Duration,
    /// Wait in the queue of the flow's own direction.
    pub forward_queue: Duration,
    /// Wait of its ACKs in the queue of the other direction.
    pub reverse_queue: Duration,
}

/// What limits a windowed flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowLimit {
    /// The window, and the round trip that it must last.
    Window,
    /// The line (or its ACKs): the bound that the caller gave.
    Line,
}

/// What a windowed flow gets at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowBound {
    /// Base round trip and both queues.
    pub rtt: Duration,
    /// TCP payload, bit/s, at most.
    pub goodput_bps: f64,
    /// What sets it.
    pub limit: WindowLimit,
}

/// A window a round trip, bit/s: `window * 8 / rtt`. Infinite for a round trip of no time.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a result")]
pub fn window_rate_bps(window: ByteCount, rtt: Duration) -> f64 {
    window.as_u64() as f64 * 8.0 / rtt.as_secs_f64()
}

/// The lesser of a window a round trip and `line_goodput_bps`, the payload that the line itself allows (as
/// [`crate::asymmetry::Asymmetry::goodput_bps`]).
///
/// Queues beside the flow's own packets count as given: its own queue only grows once the line is the limit.
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
