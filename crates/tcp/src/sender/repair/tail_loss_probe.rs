//! The state of a tail loss probe.
//!
//! Published: RFC 8985, section 7.4.2 (detection of losses that the probe repaired).
//! Cost: a comparison for each acknowledgement.

/// The probe in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TailProbe {
    /// One past the highest octet in flight when it was sent (TLP.end_seq).
    pub(crate) end: u64,
    /// It repeats the last segment; otherwise it carries new data (TLP.is_retrans).
    pub(crate) retransmission: bool,
}

/// The meaning of an acknowledgement for the probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ProbeAnswer {
    /// The probe is still unanswered.
    Pending,
    /// The episode is over, and no loss follows from it.
    Over,
    /// The episode is over: the probe replaced a lost segment.
    RepairedLoss,
}

impl TailProbe {
    /// An acknowledgement of all octets below `una` arrived. `duplicate`: it reports nothing new.
    pub(crate) fn answer(self, una: u64, duplicate: bool) -> ProbeAnswer {
        if una < self.end || (self.retransmission && una == self.end && !duplicate) {
            ProbeAnswer::Pending
        } else if self.retransmission && una > self.end {
            ProbeAnswer::RepairedLoss
        } else {
            ProbeAnswer::Over
        }
    }
}
