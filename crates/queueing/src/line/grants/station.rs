//! The station: when it asks, and what it sends.

use lastmile_units::{BitRate, Duration, Instant, Serialiser, WireBytes};

use crate::line::trace::Step;

use super::capacity::Wire;
use super::head_end::HeadEnd;
use super::unasked::Unasked;
use super::window::Window;
use super::{Asks, Config, Contention, Counts, Outstanding, Requests};
use crate::random::Stream;

/// Attempts at a request before its back-off starts again; DOCSIS gives up the packet then.
const MOST_ATTEMPTS: u8 = 16;

/// Bytes on the wire that wait for grants.
#[derive(Clone, Copy)]
pub(in crate::line) struct Waiting {
    /// All of them.
    pub(in crate::line) bytes: u64,
    /// Those of the packet that is sent next, if it has left the queue.
    pub(in crate::line) next: u64,
    /// The mean of the other packets.
    pub(in crate::line) mean: u64,
}

impl Waiting {
    /// The bytes of the first packets that are at most `most` together; `most` for a packet that exceeds it.
    fn whole_packets(self, most: u64) -> u64 {
        let packets = most.saturating_sub(self.next) / self.mean.max(1);
        match self.next + packets * self.mean {
            0 => most,
            bytes => bytes.min(most),
        }
    }
}

/// The transmitter of a station that sends what was granted. Times only move forwards.
pub(in crate::line) struct Station {
    requests: Option<Requests>,
    wire: Wire,
    serialiser: Serialiser,
    head_end: HeadEnd,
    unasked: Option<Unasked>,
    /// The largest grant; larger packets are cut. `None`: any packet may be cut.
    whole: Option<u64>,
    /// When the station will use an opportunity.
    asks_at: Option<Instant>,
    /// When it last did, plus a picosecond: opportunities before are gone.
    next_opportunity: Instant,
    /// Collisions of the present request.
    attempts: u8,
    back_off: Stream,
    counts: Counts,
}

/// The window of a piece of a packet.
enum Source {
    Asked,
    Unasked,
}

impl Station {
    /// A station whose collisions and back-off take their random numbers from a child of `random`.
    pub(in crate::line) fn new(config: &Config, random: &Stream) -> Self {
        let whole = config.whole_burst().map(|burst| match &config.requests {
            Some(_) => burst,
            None => Unasked::new(config, config.proactive).largest(),
        });
        let unasked = config.requests.is_none() || config.proactive.is_some();
        Self {
            requests: config.requests.clone(),
            wire: config.wire(),
            serialiser: Serialiser::new(config.rate),
            head_end: HeadEnd::new(config),
            unasked: unasked.then(|| Unasked::new(config, config.proactive)),
            whole,
            asks_at: None,
            next_opportunity: Instant::ZERO,
            attempts: 0,
            back_off: random.child(&format!("grants {}", config.seed)),
            counts: Counts::default(),
        }
    }

    pub(in crate::line) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The times from requests to the starts of their first grants since the last call.
    pub(in crate::line) fn take_waits(&mut self) -> impl Iterator<Item = Duration> + '_ {
        self.head_end.take_waits()
    }

    /// The step of the trace that holds at `at`.
    pub(in crate::line) fn step(&self, at: Instant) -> Option<Step> {
        self.wire.step(at)
    }

    /// The rate of the grant that was used last.
    pub(in crate::line) fn rate(&self) -> BitRate {
        self.serialiser.rate()
    }

    /// The next time from `at` on at which the station asks or may send, with `backlog` to send.
    pub(in crate::line) fn due(&mut self, at: Instant, backlog: Waiting) -> Option<Instant> {
        let asked = self.head_end.window(at, &mut self.counts);
        let unasked = self.unasked.as_mut().map(|unasked| unasked.window(at));
        let asks = self.asks(at, backlog);
        let first = [asked, unasked, asks].into_iter().flatten().min();
        debug_assert!(first.is_some(), "a station with a backlog has asked, or asks, or need not ask");
        first
    }

    /// When the station asks for a part of `backlog`, if it has reason to.
    fn asks(&mut self, at: Instant, backlog: Waiting) -> Option<Instant> {
        let requests = self.requests.as_ref()?;
        if self.asks_at.is_none() && self.amount(at, backlog, false).is_some() {
            let from = at.max(self.next_opportunity);
            let back_off = requests.contention.map_or(0, |contention| self.draw(contention));
            self.asks_at = Some(self.opportunity(from, back_off)?);
        }
        self.asks_at.map(|asks| asks.max(at))
    }

    /// Opportunities to wait before the next attempt.
    fn draw(&mut self, contention: Contention) -> u64 {
        let exponent = contention.last.min(contention.first.saturating_add(self.attempts));
        self.back_off.below(1 << exponent)
    }

    /// The opportunity `back_off` after the first one at or after `from`, behind an outage. One in a slot of the other
    /// direction moves to the next usable span.
    fn opportunity(&self, from: Instant, back_off: u64) -> Option<Instant> {
        let (every, from) = (self.requests.as_ref()?.every.as_ps(), self.wire.up(from));
        let opportunity = Instant::from_ps((from.as_ps().div_ceil(every) + back_off) * every);
        Some(self.head_end.slots.of_direction_from(opportunity))
    }

    /// The demand of a request at `at`: the part of `backlog` that is not asked for, or one packet
    /// (`Some(None)`). `None`: it may not ask or has nothing to ask for.
    fn amount(&self, at: Instant, backlog: Waiting, piggyback: bool) -> Option<Option<u64>> {
        let requests = self.requests.as_ref()?;
        let outstanding = self.head_end.outstanding(at);
        if requests.outstanding == Outstanding::One && outstanding {
            return None;
        }
        match requests.asks {
            Asks::Packet => (backlog.bytes > 0 && self.head_end.asked() == 0 && !outstanding).then_some(None),
            Asks::Backlog { most, first } => {
                let asked = self.head_end.asked();
                let missing = backlog.bytes.saturating_sub(asked + self.carried(at));
                let wanted = match first.filter(|_| !piggyback) {
                    // A scheduling request has no size, and is not repeated while it is pending.
                    Some(first) => (missing > 0 && asked == 0).then_some(first.as_u64()),
                    None => (missing > 0).then_some(missing),
                };
                let most = match self.whole {
                    Some(burst) => backlog.whole_packets(burst),
                    None => most.map_or(u64::MAX, WireBytes::as_u64),
                };
                Some(Some(wanted?.min(most)))
            }
        }
    }

    /// Bytes that need no request since the proactive grant in use at `at` carries them. A requested grant in use comes
    /// first; without fragmentation a packet may not fit.
    fn carried(&self, at: Instant) -> u64 {
        if self.whole.is_some() || self.head_end.is_open(at) {
            return 0;
        }
        self.unasked.as_ref().map_or(0, |unasked| unasked.left(at))
    }

    /// Uses the opportunity at `now`, if the station has waited for it. True if it has.
    pub(in crate::line) fn ask(&mut self, now: Instant, backlog: Waiting) -> bool {
        if self.asks_at.is_none_or(|asks| asks > now) {
            return false;
        }
        self.asks_at = None;
        self.next_opportunity = now + Duration::from_ps(1);
        self.head_end.window(now, &mut self.counts);
        self.unasked.iter_mut().for_each(|unasked| _ = unasked.window(now));
        let Some(amount) = self.amount(now, backlog, false) else { return true };
        self.counts.requests += 1;
        let collisions = self.requests.as_ref().and_then(|requests| requests.contention);
        if let Some(contention) = collisions
            && self.back_off.chance(contention.collisions.as_parts_per_billion())
        {
            self.counts.collisions += 1;
            self.attempts = if self.attempts + 1 < MOST_ATTEMPTS { self.attempts + 1 } else { 0 };
            // The station learns of the collision when no grant answers.
            self.next_opportunity = now + self.response();
            return true;
        }
        self.attempts = 0;
        self.head_end.ask(now, self.response(), amount);
        true
    }

    fn response(&self) -> Duration {
        self.requests.as_ref().map_or(Duration::ZERO, |requests| requests.response.max(Duration::from_ps(1)))
    }

    /// Asks with data sent at `now` for a part of `backlog`.
    pub(in crate::line) fn piggyback(&mut self, now: Instant, backlog: Waiting) {
        if !self.requests.as_ref().is_some_and(|requests| requests.piggyback) {
            return;
        }
        if let Some(amount) = self.amount(now, backlog, true) {
            self.counts.requests += 1;
            self.counts.piggybacked += 1;
            self.head_end.ask(now, self.response(), amount);
            self.asks_at = None;
        }
    }

    /// True if something may be sent at `now`.
    pub(in crate::line) fn may_send(&mut self, now: Instant) -> bool {
        self.head_end.window(now, &mut self.counts);
        self.unasked.iter_mut().for_each(|unasked| _ = unasked.window(now));
        self.head_end.open(now).is_some() || self.unasked.as_mut().is_some_and(|unasked| unasked.open(now).is_some())
    }

    /// The grant to use at `now`, whose rate the wire takes: a requested one first.
    fn grant(&mut self, now: Instant) -> Option<(Source, Window)> {
        let (source, window) = match self.head_end.open(now) {
            Some(window) => (Source::Asked, *window),
            None => (Source::Unasked, *self.unasked.as_mut()?.open(now)?),
        };
        if window.rate != self.rate() {
            self.serialiser = Serialiser::new(window.rate);
        }
        Some((source, window))
    }

    /// True if a packet of `wire` bytes may be sent whole at `now`.
    pub(in crate::line) fn fits(&mut self, now: Instant, wire: u64) -> bool {
        self.grant(now).is_some_and(|(_, window)| wire <= window.left)
    }

    /// Bytes of a packet that may be sent at `now`, if `rest` of it are unsent. `None`: the grant is too
    /// small, and passes.
    pub(in crate::line) fn piece(&mut self, now: Instant, rest: u64) -> Option<u64> {
        let (source, Window { left, .. }) = self.grant(now)?;
        if rest <= left {
            return Some(rest);
        }
        let for_packet = matches!(source, Source::Asked) && self.head_end.for_packet();
        if self.whole.is_none_or(|largest| rest > largest) || for_packet {
            return Some(left);
        }
        match source {
            Source::Asked => self.head_end.waste(&mut self.counts),
            Source::Unasked => self.unasked.iter_mut().for_each(Unasked::waste),
        }
        None
    }

    /// Sends `wire` bytes from `start` on, which [`Station::piece`] has allowed, and returns the end.
    /// `last`: a packet ends with them.
    pub(in crate::line) fn send(&mut self, start: Instant, wire: u64, back_to_back: bool, last: bool) -> Instant {
        let grant = self.grant(start);
        if !back_to_back {
            self.serialiser.restart();
        }
        let end = start + self.serialiser.advance(WireBytes::new(wire));
        match grant {
            Some((Source::Asked, _)) => {
                if let Some(window) = self.head_end.open(start) {
                    window.take(wire, end);
                }
                if self.head_end.for_packet() {
                    self.head_end.sent_of_packet(start, wire, last, end, &mut self.counts);
                }
            }
            Some((Source::Unasked, _)) => {
                self.counts.unasked += wire;
                if let Some(window) = self.unasked.as_mut().and_then(|unasked| unasked.open(start)) {
                    window.take(wire, end);
                }
                self.head_end.sent_unasked(start, wire, last, end, &mut self.counts);
            }
            None => debug_assert!(false, "sent without a grant"),
        }
        end
    }
}
