//! CoDel's control law by itself, for any queue that can hand out its oldest packet.
//!
//! Published: RFC 8289, sections 5.3 to 5.6. As `dodequeue` there, a packet counts as late only while more than a largest
//! packet waits behind it. A mark stands for a drop (section 4.4 and Linux): the marked packet is handed out.

use lastmile_packet::Packet;
use lastmile_units::{Duration, Instant, WireBytes};

use crate::discipline::Counter;
use crate::{DropReason, DropSink};

/// What the law is set to: one value for all queues of a discipline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The wait that is good enough.
    pub target: Duration,
    /// For how long every packet must wait longer before one is dropped.
    pub interval: Duration,
    /// Marks packets of senders that understand it, in place of dropping them.
    pub ecn: bool,
    /// What the largest packet takes on the wire: as long as no more is left, nothing is dropped.
    pub mtu: WireBytes,
}

/// The packets that the law watches over.
pub trait Waiting<P> {
    /// Takes the oldest packet out.
    fn take(&mut self) -> Option<P>;

    /// Bytes on the wire of the packets that still wait.
    fn left(&self) -> WireBytes;
}

/// What the law did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Signals {
    /// Packets dropped.
    pub dropped: u64,
    /// Packets marked in place of being dropped.
    pub marked: u64,
    /// How often the law began to drop or mark.
    pub episodes: u64,
}

impl Signals {
    /// Shows the counts as counters of the discipline `kind`.
    pub(crate) fn show(&self, kind: &'static str, visit: &mut dyn FnMut(Counter<'_>)) {
        let counts = [("dropped_aqm", self.dropped), ("marked", self.marked), ("episodes", self.episodes)];
        for (name, value) in counts {
            visit(Counter { path: "", kind, name, value });
        }
    }
}

/// The state of the law for one queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ControlLaw {
    /// When the wait will have been above target for an interval. `None`: it is not above.
    first_above: Option<Instant>,
    /// When the next packet is to be dropped, or, outside of an episode, would have been.
    drop_next: Instant,
    /// Packets dropped since the episode began, or what it began with.
    count: u32,
    /// `count` at the beginning of the episode.
    last_count: u32,
    dropping: bool,
}

impl ControlLaw {
    /// Hands out the next packet of `queue`, having dropped or marked those that the law wants to.
    pub fn dequeue<P: Packet>(
        &mut self,
        settings: &Settings,
        now: Instant,
        queue: &mut impl Waiting<P>,
        signals: &mut Signals,
        drops: &mut dyn DropSink<P>,
    ) -> Option<P> {
        let Some((mut packet, mut late)) = self.look(settings, now, queue) else {
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
            // The packet behind it goes, however late it is.
            return self.look(settings, now, queue).map(|(next, _)| next);
        }
        self.dropping = late;
        while self.dropping && now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            if signal(settings, &mut packet, signals) {
                self.drop_next = drop_after(self.drop_next, settings.interval, self.count);
                return Some(packet);
            }
            drops.dropped(now, packet, DropReason::Aqm);
            // Something is left: a late packet has more than a largest one behind it.
            (packet, late) = self.look(settings, now, queue)?;
            if late {
                self.drop_next = drop_after(self.drop_next, settings.interval, self.count);
            }
            self.dropping = late;
        }
        Some(packet)
    }

    /// The oldest packet, and whether it and all before it have been late for an interval (`dodequeue`).
    fn look<P: Packet>(&mut self, settings: &Settings, now: Instant, queue: &mut impl Waiting<P>) -> Option<(P, bool)> {
        let Some(packet) = queue.take() else {
            self.first_above = None;
            return None;
        };
        let waited = now.since(packet.meta().arrived);
        if waited < settings.target || queue.left() <= settings.mtu {
            self.first_above = None;
            return Some((packet, false));
        }
        let first_above = *self.first_above.get_or_insert(now.saturating_add(settings.interval));
        Some((packet, now >= first_above))
    }

    /// Begins an episode. One that follows soon upon another drops as often as that one did in the end.
    fn begin(&mut self, interval: Duration, now: Instant) {
        let gained = self.count.saturating_sub(self.last_count);
        let soon = now.since(self.drop_next) < interval.saturating_mul(16);
        self.count = if gained > 1 && soon { gained } else { 1 };
        self.last_count = self.count;
        self.drop_next = drop_after(now, interval, self.count);
        self.dropping = true;
    }
}

/// Marks the packet if it may be, or counts it as dropped and says false.
fn signal(settings: &Settings, packet: &mut impl Packet, signals: &mut Signals) -> bool {
    let marked = settings.ecn && packet.mark_ce();
    *(if marked { &mut signals.marked } else { &mut signals.dropped }) += 1;
    marked
}

/// When the next drop follows upon the one at `time`: `interval / sqrt(count)` later (RFC 8289, section 5.5).
#[must_use]
pub fn drop_after(time: Instant, interval: Duration, count: u32) -> Instant {
    time.saturating_add(interval_over_root(interval, count))
}

/// `interval / sqrt(count)`, rounded down to a picosecond: the whole square root of `interval^2 / count`. A count of zero
/// counts as one.
#[must_use]
pub fn interval_over_root(interval: Duration, count: u32) -> Duration {
    let square = u128::from(interval.as_ps()).pow(2) / u128::from(count.max(1));
    Duration::from_ps(u64::try_from(square.isqrt()).expect("at most the interval itself"))
}
