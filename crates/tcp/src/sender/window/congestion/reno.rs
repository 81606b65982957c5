//! Reno: fast retransmit and fast recovery (RFC 5681, section 3.2).
//!
//! Differs: nothing.

/// RFC 5681, equation 4: ssthresh = max(FlightSize / 2, 2 * SMSS).
pub(super) fn reduced(flight: u32, mss: u32) -> u32 {
    (flight / 2).max(2 * mss)
}

/// RFC 5681, section 3.2, step 3: the three segments that left the network and are at the receiver.
pub(super) fn inflated(ssthresh: u32, mss: u32) -> u32 {
    ssthresh + 3 * mss
}
