//! NewReno: fast recovery that lasts until everything is acknowledged that was out when it began (RFC 6582).
//!
//! Differs: nothing. Where the RFC leaves a choice: the retransmission timer is restarted by the first partial
//! acknowledgement only ("Impatient", section 4), and the window at the end is the first option of section 3.2, step 3,
//! which avoids a burst.

/// RFC 6582, section 3.2, step 3, partial acknowledgement: deflate by what was acknowledged; if that is at least one
/// segment, add one back, since one is sent again.
pub(super) fn deflated(cwnd: u32, acked: u64, mss: u32) -> u32 {
    let acked = u32::try_from(acked).unwrap_or(u32::MAX);
    let back = if acked >= mss { mss } else { 0 };
    (cwnd.saturating_sub(acked) + back).max(mss)
}

/// RFC 6582, section 3.2, step 3, full acknowledgement: min(ssthresh, max(FlightSize, SMSS) + SMSS).
pub(super) fn after_recovery(ssthresh: u32, flight: u32, mss: u32) -> u32 {
    ssthresh.min(flight.max(mss) + mss)
}
