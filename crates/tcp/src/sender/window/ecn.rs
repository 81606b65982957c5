//! The sender's response to ECN echoes: one reduction for each window of data, which the next new segment reports.
//!
//! Published: RFC 3168, section 6.1.2.
//! Cost: a comparison for each segment of a connection with ECN.

use super::accecn::AccEcnSender;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct EcnResponse {
    /// The highest octet sent at the last reduction.
    reduced_until: Option<u64>,
    /// The next new segment carries CWR.
    cwr_due: bool,
    /// Accurate ECN, if agreed.
    pub(crate) accecn: Option<Box<AccEcnSender>>,
    /// The newest timestamp of an acknowledgement without new data, on a connection with Accurate ECN.
    pub(crate) newest: Option<u32>,
}

impl EcnResponse {
    /// A loss reduces the window. False: this window of data has been answered by a reduction already.
    pub(crate) fn allows_reduction(&self, una: u64) -> bool {
        self.reduced_until.is_none_or(|until| until <= una)
    }

    /// An echo came. True: it calls for a reduction, at most one for each window of data.
    pub(crate) fn on_echo(&mut self, una: u64, max: u64) -> bool {
        if self.reduced_until.is_some_and(|until| until >= una) {
            return false;
        }
        self.reduced_until = Some(max);
        self.cwr_due = true;
        true
    }

    /// A segment of new data is sent. True: it carries CWR.
    pub(crate) fn take_cwr(&mut self) -> bool {
        core::mem::take(&mut self.cwr_due)
    }
}
