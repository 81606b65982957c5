//! CoDel's control law, for any queue from which the oldest packet can be taken.
//!
//! Published: RFC 8289, sections 5.3 to 5.6. As in its `dodequeue`, a packet counts as late only
//! while more than one largest packet is queued behind it. A mark replaces a drop (section 4.4 and
//! Linux): the marked packet is dequeued.

use lastmile_packet::Packet;
use lastmile_units::{Duration, Instant, WireBytes};

use crate::discipline::Counter;
use crate::{DropReason, DropSink};

/// Parameters of the law, shared by all queues of a discipline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Acceptable queueing delay.
    pub target: Duration,
    /// Time for which the delay of every packet must exceed `target` before one is dropped.
    pub interval: Duration,
    /// Marks packets of ECN-capable senders instead of dropping them.
    pub ecn: bool,
    /// Bytes on the wire of the largest packet: nothing is dropped while the remaining backlog is
    /// no larger.
    pub mtu: WireBytes,
    /// Marks packets by their delay alone, in addition to the law. `None`: never.
    pub ce_threshold: Option<CeThreshold>,
}

/// Marks every ECN-capable packet that departs after a longer delay, for senders that respond to each mark: DCTCP, L4S
/// (`codel_dequeue_finish` of Linux, codel_impl.h).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CeThreshold {
    /// The longest delay without a mark.
    pub delay: Duration,
    /// The packets that it applies to.
    pub selector: Selector,
}

/// Packets by their traffic class: those whose bits of `mask` are those of `value`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Selector {
    /// The bits. None outside of the mask.
    pub value: u8,
    /// Which bits count.
    pub mask: u8,
}

impl Selector {
    /// Every packet.
    pub const ALL: Self = Self { value: 0, mask: 0 };

    /// True if the packets of a traffic class are selected.
    #[must_use]
    pub const fn selects(self, traffic_class: u8) -> bool {
        traffic_class & self.mask == self.value
    }
}

impl Settings {
    /// Marks a packet that departs at `now` if its delay exceeds the threshold.
    #[inline]
    pub(crate) fn mark_late(&self, now: Instant, packet: &mut impl Packet, signals: &mut Signals) {
        if let Some(CeThreshold { delay, selector }) = self.ce_threshold
            && now.since(packet.meta().arrived) > delay
            && selector.selects(packet.meta().traffic_class)
            && packet.mark_ce()
        {
            signals.marked_late += 1;
        }
    }
}

/// The queue that the law controls.
pub trait ControlledQueue<P> {
    /// Dequeues the oldest packet.
    fn take(&mut self) -> Option<P>;

    /// Backlog in bytes on the wire.
    fn backlog_bytes(&self) -> WireBytes;
}

/// Counters of the law's decisions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Signals {
    /// Packets dropped.
    pub dropped: u64,
    /// Packets marked instead of dropped.
    pub marked: u64,
    /// Packets with a delay above the threshold that were ECN-capable.
    pub marked_late: u64,
    /// Number of times that the law entered the dropping state.
    pub episodes: u64,
}

impl Signals {
    /// Shows the counts as counters of the discipline `kind`.
    pub(crate) fn show(&self, kind: &'static str, settings: &Settings, visit: &mut dyn FnMut(Counter<'_>)) {
        let counts = [("dropped_aqm", self.dropped), ("marked", self.marked), ("episodes", self.episodes)];
        let late = settings.ce_threshold.map(|_| ("ce_marked", self.marked_late));
        Counter::all(kind, counts.into_iter().chain(late), visit);
    }
}

/// The state of the law for one queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ControlLaw {
    /// When the delay will have exceeded the target for an interval. `None`: it is below the target.
    first_above: Option<Instant>,
    /// When the next packet is to be dropped; outside of an episode, when it would have been.
    drop_next: Instant,
    /// Drops since the episode began, plus its initial count.
    count: u32,
    /// `count` at the beginning of the episode.
    last_count: u32,
    dropping: bool,
}

impl ControlLaw {
    /// Dequeues the next packet of `queue`, after dropping or marking the packets that the law
    /// selects.
    pub fn dequeue<P: Packet>(
        &mut self,
        settings: &Settings,
        now: Instant,
        queue: &mut impl ControlledQueue<P>,
        signals: &mut Signals,
        drops: &mut dyn DropSink<P>,
    ) -> Option<P> {
        let Some((mut packet, mut late)) = self.take_oldest(settings, now, queue) else {
            self.dropping = false;
            return None;
        };
        if !self.dropping {
            if !late {
                return Some(packet);
            }
            signals.episodes += 1;
            self.begin(settings.interval, now);
            if signal(settings, &mut packet, signals) {
                return Some(packet);
            }
            drops.dropped(now, packet, DropReason::Aqm);
            // The next packet departs, however late it is.
            return self.take_oldest(settings, now, queue).map(|(next, _)| next);
        }
        self.dropping = late;
        while self.dropping && now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            if signal(settings, &mut packet, signals) {
                self.drop_next = drop_after(self.drop_next, settings.interval, self.count);
                return Some(packet);
            }
            drops.dropped(now, packet, DropReason::Aqm);
            // The queue is not empty: a late packet has more than one largest packet behind it.
            (packet, late) = self.take_oldest(settings, now, queue)?;
            if late {
                self.drop_next = drop_after(self.drop_next, settings.interval, self.count);
            }
            self.dropping = late;
        }
        Some(packet)
    }

    /// The oldest packet, and whether the delay has exceeded the target for an interval
    /// (`dodequeue`).
    fn take_oldest<P: Packet>(
        &mut self,
        settings: &Settings,
        now: Instant,
        queue: &mut impl ControlledQueue<P>,
    ) -> Option<(P, bool)> {
        let Some(packet) = queue.take() else {
            self.first_above = None;
            return None;
        };
        let waited = now.since(packet.meta().arrived);
        if waited < settings.target || queue.backlog_bytes() <= settings.mtu {
            self.first_above = None;
            return Some((packet, false));
        }
        let first_above = *self.first_above.get_or_insert(now.saturating_add(settings.interval));
        Some((packet, now >= first_above))
    }

    /// Begins an episode. If the previous one ended less than 16 intervals ago, this one starts
    /// with the drop count that it reached.
    fn begin(&mut self, interval: Duration, now: Instant) {
        let gained = self.count.saturating_sub(self.last_count);
        let soon = now.since(self.drop_next) < interval.saturating_mul(16);
        self.count = if gained > 1 && soon { gained } else { 1 };
        self.last_count = self.count;
        self.drop_next = drop_after(now, interval, self.count);
        self.dropping = true;
    }
}

/// Marks the packet if marking is enabled and its sender is ECN-capable; else counts it as dropped
/// and returns false.
fn signal(settings: &Settings, packet: &mut impl Packet, signals: &mut Signals) -> bool {
    let marked = settings.ecn && packet.mark_ce();
    *(if marked { &mut signals.marked } else { &mut signals.dropped }) += 1;
    marked
}

/// Time of the drop that follows one at `time`: `interval / sqrt(count)` later (RFC 8289, section
/// 5.5).
#[must_use]
pub fn drop_after(time: Instant, interval: Duration, count: u32) -> Instant {
    time.saturating_add(interval_over_root(interval, count))
}

/// `interval / sqrt(count)`, rounded down to a picosecond: the integer square root of `interval^2 /
/// count`. A count of zero counts as one.
#[must_use]
pub fn interval_over_root(interval: Duration, count: u32) -> Duration {
    let square = u128::from(interval.as_ps()).pow(2) / u128::from(count.max(1));
    Duration::from_ps(u64::try_from(square.isqrt()).expect("at most the interval itself"))
}
