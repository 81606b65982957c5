//! The end of a port's part in the frames of its device.
//!
//! At a planned end, the kernel forwards the frames that arrive from a given time on, and the port the earlier ones.
//! So no frame is lost, and none is forwarded twice.

use std::time::{Duration, SystemTime};

/// Processors of the kernel may hand over frames this late: one with an earlier time may come after one with a later.
const LATEST: Duration = Duration::from_millis(5);

/// From when on frames are the kernel's, and whether all earlier ones have been read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Handover {
    from: Option<SystemTime>,
    over: bool,
}

impl Handover {
    /// Frames that come at `from` or later are the kernel's.
    pub(super) fn begin(&mut self, from: SystemTime) {
        self.from = Some(from);
    }

    /// Whether a frame that came at `stamp` is the kernel's.
    pub(super) fn is_past(&mut self, stamp: SystemTime) -> bool {
        self.over |= self.from.is_some_and(|from| from + LATEST <= stamp);
        self.from.is_some_and(|from| from <= stamp)
    }

    /// Nothing waits that had come when this reading began.
    pub(super) fn emptied(&mut self, began: SystemTime) {
        self.over |= self.from.is_some_and(|from| from + LATEST <= began);
    }

    /// All frames before have been read.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_done_when_no_earlier_frame_can_come() {
        let at = |ms: u64| SystemTime::UNIX_EPOCH + Duration::from_millis(ms);
        let mut handover = Handover::default();
        assert!(!handover.is_past(at(1000)));
        handover.emptied(at(1000));
        assert!(!handover.is_over(), "nobody has asked for the end");
        handover.begin(at(100));
        assert_eq!([99, 100, 104].map(|ms| handover.is_past(at(ms))), [false, true, true]);
        handover.emptied(at(104));
        assert!(!handover.is_over());
        let mut other = handover;
        handover.emptied(at(105));
        assert!(handover.is_over());
        assert!(other.is_past(at(105)) && other.is_over(), "a socket that is never empty");
    }
}
