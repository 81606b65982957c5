//! The detection of losses, and their repair.

/// How a sender with SACK finds losses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LossDetection {
    /// RFC 6675: by counting the SACKed octets above. Only the timer finds the loss of a retransmission.
    Rfc6675,
    /// RACK (RFC 8985), Linux's default: by the times of transmission. Needs [`Rto::Linux`](super::Rto::Linux), which
    /// records them; with [`Rto::Rfc6298`](super::Rto::Rfc6298) as [`LossDetection::Rfc6675`].
    Rack,
}

/// The congestion window while a sender with SACK repairs a loss.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Recovery {
    /// RFC 6675, section 5, step 4.2: the slow start threshold, from the beginning.
    Rfc6675,
    /// Proportional rate reduction (RFC 9937), Linux's only method: as much as was delivered, and less at first.
    Prr,
}

/// How a sender finds losses, repairs them, and undoes a needless repair.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RepairConfig {
    /// How losses are found; needs SACK. Default [`LossDetection::Rack`].
    pub loss_detection: LossDetection,
    /// The congestion window while a loss is repaired; needs SACK. Default [`Recovery::Prr`].
    pub recovery: Recovery,
    /// Ask for an acknowledgement after two round trips without one (tail loss probe, RFC 8985, section 7); needs
    /// [`LossDetection::Rack`]. Default on.
    pub tail_loss_probe: bool,
    /// Undo the reduction of the window by a repair if timestamps (RFC 3522), DSACK (RFC 3708) or F-RTO
    /// show that no segment was lost. Not in Tahoe and Reno. Default on.
    pub undo: bool,
    /// Find needless timeouts by F-RTO (RFC 5682); needs SACK, and `undo`. Default on.
    pub frto: bool,
}

impl Default for RepairConfig {
    fn default() -> Self {
        Self {
            loss_detection: LossDetection::Rack,
            recovery: Recovery::Prr,
            tail_loss_probe: true,
            undo: true,
            frto: true,
        }
    }
}
