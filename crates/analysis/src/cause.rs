//! The causes of retransmissions, by name. `half/cause.rs` determines them.

/// The cause of a retransmission.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cause {
    /// The first packet after a retransmission timer expired.
    Timeout,
    /// The first packet of a fast recovery.
    Fast,
    /// A further packet of a fast recovery.
    InRecovery,
    /// A further packet after a timeout.
    AfterTimeout,
    /// A tail loss probe.
    TailProbe,
    /// Unknown, because no ACK was captured.
    Unknown,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 6] =
        [Self::Timeout, Self::Fast, Self::InRecovery, Self::AfterTimeout, Self::TailProbe, Self::Unknown];

    /// The name in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Fast => "fast_retransmit",
            Self::InRecovery => "in_recovery",
            Self::AfterTimeout => "after_timeout",
            Self::TailProbe => "tail_loss_probe",
            Self::Unknown => "unexplained",
        }
    }
}
