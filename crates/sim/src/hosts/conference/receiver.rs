//! The receiving end of a conference: frames put together and shown, audio played, feedback written.
//!
//! Published: draft-holmer-rmcat-transport-wide-cc-extensions-01 (feedback on each packet); W3C *Identifiers for
//! WebRTC's Statistics API*, `freezeCount` (a freeze is a gap between two shown frames of at least three mean gaps, or
//! of the mean and 150 ms).
//!
//! A frame is shown once it is whole and each frame before it was shown, or once it is a whole key frame. The receiver
//! asks for a key frame while a frame is not whole and its packets are not retransmitted any more.
//!
//! Differs: a receiver shows a frame at once; the play-out buffer counts late frames and delays none.
//!
//! Cost: O(1) a packet.

use std::collections::VecDeque;

use lastmile_analysis::stream::{Reception, Stream};
use lastmile_units::{Duration, Instant};

/// For how long packets of a frame are retransmitted.
pub(super) const RETRANSMITTED: Duration = Duration::from_s(1);
/// A freeze: a gap of this many mean gaps, or longer than the mean by this.
const FREEZE_GAPS: u64 = 3;
const FREEZE_EXCESS: Duration = Duration::from_ms(150);
/// Gaps over which the mean is taken.
const GAPS: usize = 30;

/// A packet of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    /// Number of the frame, from 0.
    pub(super) frame: u64,
    /// Number of the packet within the frame, and their count.
    pub(super) part: u16,
    pub(super) of: u16,
    pub(super) key: bool,
    pub(super) captured: Instant,
}

/// A frame that is not shown yet.
#[derive(Debug)]
struct Pending {
    /// `None`: no packet of the frame has arrived.
    captured: Option<Instant>,
    key: bool,
    /// Whether each of its packets has arrived.
    parts: Vec<bool>,
    missing: usize,
}

impl Pending {
    const UNKNOWN: Self = Self { captured: None, key: false, parts: Vec::new(), missing: 1 };

    fn is_whole(&self) -> bool {
        self.missing == 0
    }
}

/// The display of one stream of video.
#[derive(Debug)]
pub(super) struct Display {
    /// The frames from `next` on.
    pending: VecDeque<Pending>,
    /// The frame to show next.
    next: u64,
    stream: Stream,
    latest: Option<Instant>,
    gaps: VecDeque<Duration>,
    pub(super) freezes: Vec<Duration>,
    /// The starts of the freezes.
    pub(super) frozen_at: Vec<Instant>,
    pub(super) shown: u64,
    /// When the frame to show next was first known to be incomplete.
    waits_since: Option<Instant>,
}

impl Display {
    pub(super) fn new(buffer: Duration) -> Self {
        Self {
            pending: VecDeque::new(),
            next: 0,
            stream: Stream::new(buffer, true),
            latest: None,
            gaps: VecDeque::new(),
            freezes: Vec::new(),
            frozen_at: Vec::new(),
            shown: 0,
            waits_since: None,
        }
    }

    /// A packet arrives.
    pub(super) fn arrived(&mut self, now: Instant, part: &Part) {
        let Some(index) = part.frame.checked_sub(self.next) else { return };
        let index = index as usize;
        while self.pending.len() <= index {
            self.pending.push_back(Pending::UNKNOWN);
        }
        let frame = &mut self.pending[index];
        if frame.captured.is_none() {
            let parts = usize::from(part.of);
            *frame =
                Pending { captured: Some(part.captured), key: part.key, parts: vec![false; parts], missing: parts };
        }
        let seen = &mut frame.parts[usize::from(part.part)];
        frame.missing -= usize::from(!std::mem::replace(seen, true));
        if frame.is_whole() {
            self.show(now);
        }
    }

    /// Shows what can be shown.
    fn show(&mut self, now: Instant) {
        if !self.pending.front().is_some_and(Pending::is_whole) {
            // The latest whole key frame needs none of the frames before it.
            if let Some(key) = self.pending.iter().rposition(|frame| frame.key && frame.is_whole()) {
                self.pending.drain(..key);
                self.next += key as u64;
            }
        }
        while self.pending.front().is_some_and(Pending::is_whole) {
            let Some(Pending { captured: Some(captured), .. }) = self.pending.pop_front() else { continue };
            self.stream.arrived(self.next, captured, now);
            self.next += 1;
            self.shown += 1;
            self.waits_since = None;
            self.note_gap(now);
        }
        if !self.pending.is_empty() {
            self.waits_since.get_or_insert(now);
        }
    }

    fn note_gap(&mut self, now: Instant) {
        let Some(latest) = self.latest.replace(now) else { return };
        let gap = now - latest;
        if !self.gaps.is_empty() {
            let sum = self.gaps.iter().fold(Duration::ZERO, |sum, gap| sum + *gap);
            let mean = sum / self.gaps.len() as u64;
            if gap >= (mean * FREEZE_GAPS).max(mean + FREEZE_EXCESS) {
                self.freezes.push(gap);
                self.frozen_at.push(latest);
            }
        }
        if self.gaps.len() == GAPS {
            self.gaps.pop_front();
        }
        self.gaps.push_back(gap);
    }

    /// The number of the frame to show next.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Frames that were skipped.
    pub(super) fn skipped(&self) -> u64 {
        self.stream.next().saturating_sub(self.shown)
    }

    /// The frame to show next cannot be completed any more.
    pub(super) fn needs_key(&self, now: Instant) -> bool {
        self.waits_since.is_some_and(|since| now.since(since) >= RETRANSMITTED)
    }

    /// The delays of shown frames by `end` and the frames that were lost, the freezes, and their starts. `captured` are
    /// the times of all frames, of which `is_dropped` lack a part; `latest_key` is the latest key frame. The sender has
    /// sent up to `sent_until`.
    pub(super) fn finish(
        mut self,
        [end, sent_until]: [Instant; 2],
        captured: &[Instant],
        latest_key: u64,
        is_dropped: impl Fn(u64) -> bool,
    ) -> ((Reception, u64), Vec<Duration>, Vec<Instant>) {
        // A picture that stands still at the end is a freeze, too.
        if let Some(latest) = self.latest {
            let gap = sent_until.since(latest);
            let mean = self.gaps.iter().fold(Duration::ZERO, |sum, gap| sum + *gap) / (self.gaps.len() as u64).max(1);
            if !self.gaps.is_empty() && gap >= (mean * FREEZE_GAPS).max(mean + FREEZE_EXCESS) {
                self.freezes.push(gap);
                self.frozen_at.push(latest);
            }
        }
        let mut broken = false;
        let outstanding = (self.next..).zip(captured.iter().skip(self.next as usize)).map(|(frame, captured)| {
            // A frame needs those before it, back to a key frame.
            broken = is_dropped(frame) || (broken && frame != latest_key);
            (*captured, broken && self.stream.is_overdue(*captured, end))
        });
        let outstanding = outstanding.collect();
        let skipped = self.skipped();
        let (frames, lost) = finish(self.stream, end, outstanding);
        ((frames, skipped + lost), self.freezes, self.frozen_at)
    }
}

/// The reception at `end`, and how many of the `outstanding` are lost. Each of these has the time at which it was sent,
/// and is either lost or still to come.
pub(super) fn finish(stream: Stream, end: Instant, outstanding: Vec<(Instant, bool)>) -> (Reception, u64) {
    let lost = outstanding.iter().filter(|(_, lost)| *lost).count() as u64;
    let late = outstanding.iter().filter(|(sent, lost)| !lost && stream.is_overdue(*sent, end)).count() as u64;
    (stream.finish(end, outstanding.into_iter().map(|(sent, _)| sent), late), lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    fn part(frame: u64, part: u16, of: u16, key: bool) -> Part {
        Part { frame, part, of, key, captured: at(frame * 33) }
    }

    fn display() -> Display {
        Display::new(Duration::from_ms(60))
    }

    #[test]
    fn a_frame_is_shown_when_it_is_whole_and_in_order() {
        let mut display = display();
        display.arrived(at(10), &part(0, 0, 2, true));
        display.arrived(at(12), &part(1, 0, 1, false));
        assert_eq!(display.shown, 0);
        display.arrived(at(50), &part(0, 1, 2, true));
        assert_eq!(display.shown, 2);
        display.arrived(at(51), &part(0, 1, 2, true));
        assert_eq!(display.shown, 2, "a retransmitted packet changes nothing");
    }

    #[test]
    fn a_key_frame_replaces_frames_that_are_not_whole() {
        let mut display = display();
        display.arrived(at(10), &part(0, 0, 1, true));
        display.arrived(at(80), &part(2, 0, 1, false));
        display.arrived(at(100), &part(3, 0, 1, false));
        assert_eq!((display.shown, display.needs_key(at(1_079)), display.needs_key(at(1_080))), (1, false, true));
        display.arrived(at(1_200), &part(30, 0, 1, true));
        assert_eq!((display.shown, display.next), (2, 31));
        assert!(!display.needs_key(at(9_000)));
    }

    /// Frames shown every 33 ms: three gaps are 99 ms, the mean and 150 ms are 183 ms. The latter decides.
    #[test]
    fn a_freeze_is_a_gap_of_the_mean_and_150_ms() {
        let mut display = display();
        (0..10).for_each(|frame| display.arrived(at(frame * 33 + 20), &part(frame, 0, 1, frame == 0)));
        display.arrived(at(9 * 33 + 20 + 182), &part(10, 0, 1, false));
        assert!(display.freezes.is_empty());
        let shown = 9 * 33 + 20 + 182;
        display.arrived(at(shown + 300), &part(11, 0, 1, false));
        assert_eq!(display.freezes, [Duration::from_ms(300)]);
    }
}
