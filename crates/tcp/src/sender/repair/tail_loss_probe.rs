//! The state of a tail loss probe.
//!
//! Published: RFC 8985, section 7.4.2 (detection of losses that the probe repaired).
//! Cost: a comparison for each acknowledgement.

/// The probe in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TailProbe {
    /// One past the highest octet in flight when it was sent (TLP.end_seq).
    pub(crate) end: u64,
    /// True if the probe repeats the last segment; otherwise it carries new data (TLP.is_retrans).
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

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8985, section 7.4.2: only a duplicate shows that both the last segment and its repetition arrived. An
    /// acknowledgement beyond the probe shows that one of them was lost.
    #[test]
    fn a_repetition_without_a_duplicate_has_replaced_a_lost_segment() {
        let probe = TailProbe { end: 1000, retransmission: true };
        assert_eq!(probe.answer(999, true), ProbeAnswer::Pending);
        assert_eq!(probe.answer(1000, false), ProbeAnswer::Pending);
        assert_eq!(probe.answer(1000, true), ProbeAnswer::Over);
        assert_eq!(probe.answer(1001, false), ProbeAnswer::RepairedLoss);
    }

    #[test]
    fn a_probe_with_new_data_reveals_no_loss() {
        let probe = TailProbe { end: 1000, retransmission: false };
        let answers = [999, 1000, 1001].map(|una| probe.answer(una, false));
        assert_eq!(answers, [ProbeAnswer::Pending, ProbeAnswer::Over, ProbeAnswer::Over]);
    }
}
