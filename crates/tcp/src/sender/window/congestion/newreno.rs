//! NewReno: fast recovery lasts until all octets in flight at its start are acknowledged (RFC 6582).
//!
//! Differs: nothing. Where the RFC leaves a choice, only the first partial acknowledgement restarts the
//! retransmission timer ("Impatient", section 4), and the window at the end is the first option of section
//! 3.2, step 3, which avoids a burst.

/// RFC 6582, section 3.2, step 3, partial acknowledgement: deflate by the acknowledged octets. If these are
/// at least a segment, add one back for the retransmission.
pub(super) fn deflated(cwnd: u32, acked: u64, mss: u32) -> u32 {
    let acked = u32::try_from(acked).unwrap_or(u32::MAX);
    let back = if acked >= mss { mss } else { 0 };
    (cwnd.saturating_sub(acked) + back).max(mss)
}

/// RFC 6582, section 3.2, step 3, full acknowledgement: min(ssthresh, max(FlightSize, SMSS) + SMSS).
pub(super) fn after_recovery(ssthresh: u32, flight: u32, mss: u32) -> u32 {
    ssthresh.min(flight.max(mss) + mss)
}
