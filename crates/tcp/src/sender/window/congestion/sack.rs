//! The window in recovery by SACK (RFC 6675, section 5): no inflation, since the scoreboard counts the
//! octets that left the network.
//!
//! Differs: nothing. The rules of transmission are in `sender::transmit` and `sender::flight`.

/// RFC 6675, section 5, step 4.2: cwnd = ssthresh, held until recovery ends.
pub(super) fn in_recovery(ssthresh: u32) -> u32 {
    ssthresh
}
