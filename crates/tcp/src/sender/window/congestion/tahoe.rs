//! Tahoe: slow start, congestion avoidance and fast retransmit, no fast recovery.
//!
//! Published: Jacobson, Congestion Avoidance and Control, SIGCOMM 1988; the fast retransmit of 4.3BSD-Tahoe. The
//! threshold is RFC 5681's.
//! Differs: 4.3BSD retransmits one segment and then continues with new data. Here, as in Fall and Floyd's
//! comparison (1996), the sender goes back to the hole and sends all octets from there, those that the
//! receiver holds included.

/// Slow start begins from one segment.
pub(super) fn after_loss(mss: u32) -> u32 {
    mss
}
