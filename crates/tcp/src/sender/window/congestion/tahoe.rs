//! Tahoe: slow start, congestion avoidance and fast retransmit, no fast recovery.
//!
//! Published: Jacobson, Congestion Avoidance and Control, SIGCOMM 1988; the fast retransmit of 4.3BSD-Tahoe. The
//! threshold is RFC 5681's.
//! Differs: 4.3BSD goes on from where it was after the one segment that it sends again; here, as in Fall and Floyd's
//! comparison (1996), the sender starts again from the hole and sends everything from there, what the receiver holds
//! included.

/// Slow start begins again from one segment.
pub(super) fn after_loss(mss: u32) -> u32 {
    mss
}
