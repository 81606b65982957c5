//! Reno: fast retransmit and fast recovery (RFC 5681, section 3.2).
//!
//! Differs: nothing, except for a sender that repairs losses as Linux does. Linux halves the window, not the flight.
//! It does so without SACK too, where the repair here is NewReno's.

/// RFC 5681, equation 4: ssthresh = max(FlightSize / 2, 2 * SMSS).
pub(super) fn reduced(flight: u32, mss: u32) -> u32 {
    (flight / 2).max(2 * mss)
}

/// Linux: half of the window in whole segments, at least two. After a slow start that the receive window
/// limited, the window is up to twice the flight.
pub(super) fn halved(cwnd: u32, mss: u32) -> u32 {
    (cwnd / mss / 2).max(2) * mss
}

/// RFC 5681, section 3.2, step 3: the three segments that left the network and are at the receiver.
pub(super) fn inflated(ssthresh: u32, mss: u32) -> u32 {
    ssthresh + 3 * mss
}
