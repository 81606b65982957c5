//! RACK: losses found by time. What was delivered tells when what is missing should have come.
//!
//! Published: RFC 8985, section 6; defaults and details where it leaves a choice as in Linux (`tcp_recovery` = 1).
//! A segment is lost if one that was sent after it was delivered, and it has been out for longer than that one's round
//! trip and a reordering window. That holds for segments sent again, too, so the loss of a repair is found a round trip
//! later, not by the timer. The window is zero once three segments are SACKed or a repair is under way; where reordering was
//! seen it is a quarter of the least round trip, and with each round trip that reports a duplicate (DSACK) a quarter
//! more, up to the smoothed round trip, until sixteen repairs went without.
//! Differs: what an acknowledgement delivers is looked at in the order of the stream, as in Linux, and the last sets the round trip (RFC 8985: in the
//! order of sending). Where the first segment may have been answered twice over, the next, which went out once, so tells that the others are not
//! late. What was sent within one microsecond is told apart by its place in the stream alone. The least round trip is
//! that of the connection (Linux: of five minutes). At a timeout without anything SACKed before, RACK.rtt is the smoothed
//! round trip. Needs SACK and the times of sending, which are kept for Linux's timer alone; without them losses are found by
//! counting (RFC 6675).
//! Cost: nothing while nothing is SACKed; then a look at each mark of what was sent before the latest delivered (`sent`).

use lastmile_units::{Duration, Instant};

use crate::Config;
use crate::aside::Duplicates;
use crate::congestion::Style;
use crate::ranges::{Low, Range};
use crate::recovery::{AckInfo, News};
use crate::scoreboard::DUP_THRESH;
use crate::sender::{Alarm, Phase, Sender, Urgent};
use crate::sent::{Bounds, Fate, Part};
use crate::tail::Probe;
use crate::timer::Timer;

/// RFC 8985, section 6.2, step 4: so many repairs without a DSACK end its effect (Linux: `TCP_RACK_RECOVERY_THRESH`).
const PERSIST: u8 = 16;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Rack {
    /// Octets in flight that are SACKed.
    sacked: u32,
    /// Octets that are lost and were not sent again.
    pub(crate) lost: u32,
    /// Of what was delivered, the segment that was sent last (RACK.xmit_ts), once there is one.
    latest: Fate,
    /// One past its last octet (RACK.end_seq).
    latest_end: Low,
    /// The round trip of what was delivered last, in microseconds (RACK.rtt).
    rtt_us: u32,
    /// One past the highest octet that was delivered (RACK.fack).
    highest: Low,
    /// While a tail loss probe is out: one past the highest octet then (TLP.end_seq).
    pub(crate) probe_end: Low,
    known: bool,
    /// RACK.reordering_seen.
    reordering: bool,
    pub(crate) probe: Probe,
}

impl Rack {
    /// Something is SACKED or sent again after a time without: `una` and all below is acknowledged.
    pub(crate) fn begin(&mut self, una: u64) {
        self.known = false;
        self.highest = Low::of(una);
    }

    /// Octets that are out and neither SACKed nor lost.
    #[inline]
    pub(crate) fn pipe(&self, out: u64) -> u64 {
        out - u64::from(self.sacked) - u64::from(self.lost)
    }

    /// Octets in flight that are SACKed.
    pub(crate) fn sacked(&self) -> u32 {
        self.sacked
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.sacked == 0 && self.lost == 0
    }

    /// RFC 8985, section 6.2, steps 1 to 3, for a part that is newly delivered. Returns its age in microseconds.
    fn deliver(&mut self, now: Instant, part: Part, least_us: u32, highest: Low) -> u32 {
        let (age, again) = (part.fate.age_us(now), part.fate.is_again());
        if part.fate.is_lost() {
            self.lost -= part.range.len() as u32;
        }
        if highest.ahead_of(part.range.start) > 0 {
            self.reordering |= !again;
        } else if self.highest.ahead_of(part.range.end) < 0 {
            self.highest = Low::of(part.range.end);
        }
        // Step 2: so soon, it is the first transmission that was delivered.
        if again && age < least_us {
            return age;
        }
        self.rtt_us = age;
        let lag = self.latest.age_us(now);
        let later = age < lag || (age == lag && self.latest_end.ahead_of(part.range.end) < 0);
        if !self.known || later {
            (self.known, self.latest, self.latest_end) = (true, part.fate, Low::of(part.range.end));
        }
        age
    }
}

impl Duplicates {
    /// Another one, with octets up to `max` out.
    fn add(&mut self, max: u64) {
        self.round = Some(Low::of(max));
        self.wider = self.wider.saturating_add(1);
        self.persist = PERSIST;
    }

    /// A repair has come to its end.
    pub(crate) fn on_end(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.wider = 0;
        }
    }
}

impl Sender {
    /// What an acknowledgement tells, by its number, which moved from `from`, and by SACK.
    #[cold]
    pub(crate) fn deliver(&mut self, now: Instant, info: AckInfo<'_>, from: u64) -> News {
        let (una, recover) = (self.una, self.recover);
        if !self.sacking {
            self.sacking = true;
            self.rack.begin(from);
        }
        self.adapt(info, from);
        let least_us = self.rtt.least_us().unwrap_or(0);
        let (highest, sacked) = (self.rack.highest, self.rack.sacked);
        let mut news = News { by_time: true, ..News::default() };
        let Self { trips, rack, .. } = self;
        let mut again = false;
        trips.sent_mut().settle(from, una, |part| {
            if part.fate.is_held() {
                rack.sacked -= part.range.len() as u32;
                return;
            }
            let age = rack.deliver(now, part, least_us, highest);
            again |= part.fate.is_again();
            news.original |= !part.fate.is_again() && recover.ahead_of(part.range.start) > 0;
            news.age_us = news.age_us.or(Some(age));
        });
        news.advanced = una > from;
        // Karn's algorithm.
        news.age_us = news.age_us.filter(|_| !again);
        let mut sacked_us = None;
        for block in info.segment.options().sack_blocks() {
            let Some((start, end)) = self.block_offsets(block.left, block.right) else { continue };
            let Self { trips, rack, .. } = self;
            trips.sent_mut().hold(una, Range { start, end }, |part| {
                rack.sacked += part.range.len() as u32;
                let age = rack.deliver(now, part, least_us, highest);
                news.any = true;
                if !part.fate.is_again() {
                    news.original |= recover.ahead_of(part.range.start) > 0;
                    sacked_us = sacked_us.max(Some(age));
                }
            });
        }
        news.age_us = news.age_us.or(sacked_us);
        news.delivered = ((una - from) as u32).wrapping_add(self.rack.sacked).wrapping_sub(sacked);
        if self.repair.undo().is_some() {
            self.note_duplicate(info.segment);
        }
        news
    }

    /// RFC 8985, section 6.2, step 4, and section 7.4.2: duplicates that are reported.
    fn adapt(&mut self, info: AckInfo<'_>, from: u64) {
        let una = self.una;
        self.aside.end(|rare| rare.duplicates.round = rare.duplicates.round.filter(|round| round.ahead_of(una) > 0));
        let Some((_, right)) = self.reported_duplicate(info.segment) else { return };
        let rack = &mut self.rack;
        if rack.probe == Probe::Again && right == rack.probe_end.ahead_of(self.una) {
            // Both the last segment and the probe arrived.
            rack.probe = Probe::None;
        } else if rack.reordering && self.aside.duplicates().round.is_none() && self.una >= from {
            self.aside.rare().duplicates.add(self.max);
        }
    }

    /// RFC 8985, section 6.2, step 4, in microseconds.
    fn reordering_window_us(&self) -> u32 {
        let (rack, mss) = (&self.rack, u32::from(self.mss));
        let enough = (u32::from(DUP_THRESH) - 1) * mss;
        if !rack.reordering && (self.phase != Phase::Open || rack.sacked > enough) {
            return 0;
        }
        let srtt = self.rtt.srtt().unwrap_or_default().as_ps() / 1_000_000;
        let quarter = u64::from(self.rtt.least_us().unwrap_or(0) / 4);
        (quarter * (u64::from(self.aside.duplicates().wider) + 1)).min(srtt) as u32
    }

    /// RFC 8985, section 6.2, step 5, and what follows from it, after `delivered` octets were. True: something is newly lost.
    #[cold]
    pub(crate) fn find_losses(&mut self, now: Instant, config: &Config, delivered: u32) -> bool {
        let (mut newly_lost, mut repair_lost) = (false, false);
        let mut wait = 0;
        if self.rack.known {
            let due_us = self.rack.rtt_us.saturating_add(self.reordering_window_us());
            let una = self.una;
            let Self { trips, rack, .. } = &mut *self;
            let bounds = Bounds { latest: rack.latest, latest_end: rack.latest_end, due_us };
            wait = trips.sent_mut().lose(now, una, bounds, |part| {
                rack.lost += part.range.len() as u32;
                newly_lost = true;
                repair_lost |= part.fate.is_again();
            });
        }
        match self.phase {
            Phase::Open if self.rack.lost > 0 => self.start_recovery(now, config, delivered),
            // As in Linux: the repair after a timeout met with another loss.
            Phase::Loss if repair_lost => self.start_recovery(now, config, delivered),
            _ => {}
        }
        if wait > 0 {
            self.alarm = Alarm::Reordering;
            self.timer = Timer::at(config.deadline(now, Duration::from_us(u64::from(wait))));
        }
        newly_lost
    }

    /// What is missing has been out for long enough.
    pub(crate) fn on_reordering_timer(&mut self, now: Instant, config: &Config) {
        self.arm(now, config, false);
        // What is found to be lost is accounted for, though nothing may be SACKed or have gone again.
        self.sacking = true;
        let phase = self.phase;
        let lost = self.find_losses(now, config, 0);
        if self.repair.prr().is_some() && self.phase != phase {
            // As in Linux: as if a segment were delivered.
            self.pace_recovery(News { delivered: u32::from(self.mss), lost, ..News::default() });
        }
    }

    /// RFC 8985, section 6.3: the retransmission timer expired.
    pub(crate) fn expire_by_time(&mut self, now: Instant) {
        let (una, mss) = (self.una, u32::from(self.mss));
        if !self.sacking {
            self.sacking = true;
            self.rack.begin(una);
        }
        let srtt = self.rtt.srtt().unwrap_or_default().as_ps() / 1_000_000;
        let due_us = if self.rack.known { self.rack.rtt_us } else { srtt as u32 };
        let Self { trips, rack, .. } = self;
        rack.probe = Probe::None;
        trips.sent_mut().expire(now, una, mss, due_us, |part| {
            let len = part.range.len() as u32;
            rack.lost += len;
            if part.fate.is_held() {
                rack.sacked -= len;
            }
        });
    }

    /// Octets of `range` go out again.
    pub(crate) fn send_again_by_time(&mut self, now: Instant, range: Range) {
        let una = self.una;
        let Self { trips, rack, .. } = &mut *self;
        trips.sent_mut().send_again(now, una, range, |part| {
            if part.fate.is_lost() {
                rack.lost -= part.range.len() as u32;
            }
        });
    }

    /// The repair was needless: nothing is lost.
    pub(crate) fn forgive(&mut self) {
        if self.style == Style::Rack {
            self.trips.sent_mut().forgive();
            self.rack.lost = 0;
        }
    }

    /// Steps aside once all that was SACKed or sent again is acknowledged.
    pub(crate) fn settle_rack(&mut self) {
        debug_assert_eq!(
            self.trips.sent().sums(self.una),
            (self.rack.sacked, self.rack.lost),
            "the marks tell the same"
        );
        let again = self.trips.sent().again(self.una) > self.una;
        self.sacking = again || self.phase != Phase::Open || !self.rack.is_clean() || self.urgent == Urgent::Tail;
    }
}
