//! The head end: what was asked for becomes windows of time on the wire.

use std::collections::VecDeque;

use lastmile_units::{BitRate, Duration, Instant, WireBytes};

use super::capacity::{Wire, bytes_in};
use super::slots::Slots;
use super::unasked::Unasked;
use super::window::{Room, Window, room};
use super::{Config, Counts, LARGEST_PACKET};

/// The part of a request that is not granted yet.
#[derive(Clone, Copy, Debug)]
enum Amount {
    Bytes(u64),
    /// One packet; `begun` if its first piece has been sent.
    Packet {
        begun: bool,
    },
}

#[derive(Clone, Copy, Debug)]
struct Owed {
    /// When the station asked; `None` once a grant has begun.
    asked: Option<Instant>,
    /// Start of the first span in which it may be granted.
    from: Instant,
    amount: Amount,
}

/// A token bucket, as the time at which it is full again. It is no [`TokenBucket`](crate::TokenBucket), since grants
/// are made before their time: the last charge can be withdrawn, and a byte that is partly earned at the beginning of
/// a grant is missing.
#[derive(Clone, Copy, Debug)]
struct Tokens {
    rate: BitRate,
    burst: u64,
    full: Instant,
    /// `full` before the last charge.
    before: Instant,
}

impl Tokens {
    fn at(&self, at: Instant) -> u64 {
        let missing = bytes_in(self.rate, self.full.since(at));
        // A byte that is partly missing is missing.
        self.burst.saturating_sub(missing + u64::from(self.full > at))
    }

    /// When the bucket holds `bytes`.
    fn ready(&self, bytes: u64) -> Instant {
        let short = self.rate.time_for(WireBytes::new(self.burst.saturating_sub(bytes + 1)));
        Instant::from_ps(self.full.as_ps().saturating_sub(short.as_ps()))
    }

    fn charge(&mut self, at: Instant, bytes: u64) {
        self.before = self.full;
        // Times are rounded down; the picosecond keeps the mean at or below the rate.
        self.full = self.full.max(at) + self.rate.time_for(WireBytes::new(bytes)) + Duration::from_ps(1);
    }
}

/// The data of the last grant, with which it can be withdrawn before it begins.
#[derive(Clone, Copy, Debug)]
struct Made {
    /// The request that the grant answers.
    owed: Owed,
    /// True if the grant answers the whole request.
    whole: bool,
    /// Bytes of the request that the grant answers.
    bytes: u64,
    /// `granted_until` as it was without this grant.
    until: Instant,
}

/// Grants of one station, in the order of its requests.
pub(super) struct HeadEnd {
    wire: Wire,
    pub(super) slots: Slots,
    unit: u64,
    /// The largest burst that is granted whole; `None`: with fragmentation.
    whole: Option<u64>,
    /// Proactive grants beside which requested ones are made.
    beside: Option<Unasked>,
    limits: Vec<Tokens>,
    owed: VecDeque<Owed>,
    owed_bytes: u64,
    /// End of the last grant.
    granted_until: Instant,
    /// The grant that is in use or comes next.
    window: Option<Window>,
    /// True if the size of that grant is the size of one packet.
    for_packet: bool,
    made: Option<Made>,
    /// Times from requests to the starts of their first grants that nobody has taken.
    waits: Vec<Duration>,
}

impl HeadEnd {
    pub(super) fn new(config: &Config) -> Self {
        let bucket = |bucket: &super::Bucket| Tokens {
            rate: bucket.rate,
            burst: bucket.burst.as_u64(),
            full: Instant::ZERO,
            before: Instant::ZERO,
        };
        Self {
            wire: config.wire(),
            slots: config.slots.clone(),
            unit: config.unit.get(),
            whole: config.whole_burst(),
            beside: config
                .proactive
                .filter(|_| config.apart && config.fragmentation)
                .map(|grant| Unasked::new(config, Some(grant))),
            limits: config.limits.iter().map(bucket).collect(),
            owed: VecDeque::new(),
            owed_bytes: 0,
            granted_until: Instant::ZERO,
            window: None,
            for_packet: false,
            made: None,
            waits: Vec::new(),
        }
    }

    /// A request of `asked` arrives that may be granted from the first span at least a `response` later; for one packet
    /// without `bytes`.
    pub(super) fn ask(&mut self, asked: Instant, response: Duration, bytes: Option<u64>) {
        let from = self.slots.starting_from(asked + response).start;
        self.owed_bytes += bytes.unwrap_or(0);
        let amount = bytes.map_or(Amount::Packet { begun: false }, Amount::Bytes);
        self.owed.push_back(Owed { asked: Some(asked), from, amount });
    }

    /// Bytes asked for that have neither been sent nor passed.
    pub(super) fn asked(&self) -> u64 {
        self.owed_bytes + self.window.map_or(0, |window| window.left)
    }

    /// Whether some request has not been granted in full by `at`.
    pub(super) fn outstanding(&self, at: Instant) -> bool {
        !self.owed.is_empty() || self.window.is_some_and(|window| window.start > at)
    }

    /// The window that is in use at `at` or comes next. Windows that have passed are counted.
    pub(super) fn window(&mut self, at: Instant, counts: &mut Counts) -> Option<Instant> {
        loop {
            match &mut self.window {
                Some(window) => {
                    let begins = window.start <= at && !window.counted;
                    window.counted |= begins;
                    let passed = window.pass(at);
                    // A grant for a packet ends with the packet: slots that pass in it are not unused.
                    counts.unused += if self.for_packet { 0 } else { passed };
                    let next = (window.left > 0).then_some(window.start.max(at));
                    let start = window.start;
                    if begins {
                        self.count(start, counts);
                    }
                    if next.is_some() {
                        return next;
                    }
                    self.close();
                }
                None => self.grant(counts)?,
            }
        }
    }

    /// Counts the grant that begins at `start`, and the wait of its request for the first one.
    fn count(&mut self, start: Instant, counts: &mut Counts) {
        counts.grants += 1;
        let Some(made) = &self.made else { return };
        self.waits.extend(made.owed.asked.map(|asked| start.since(asked)));
        // The rest of the request is granted later.
        if let Some(first) = self.owed.front_mut().filter(|_| self.for_packet || !made.whole) {
            first.asked = None;
        }
    }

    /// The times from requests to the starts of their first grants since the last call.
    pub(super) fn take_waits(&mut self) -> impl Iterator<Item = Duration> + '_ {
        self.waits.drain(..)
    }

    /// The window in use at `at`.
    pub(super) fn open(&mut self, at: Instant) -> Option<&mut Window> {
        self.window.as_mut().filter(|window| window.start <= at && window.left > 0)
    }

    /// Whether a window is in use at `at`.
    pub(super) fn is_open(&self, at: Instant) -> bool {
        self.window.is_some_and(|window| window.start <= at && window.left > 0)
    }

    pub(super) fn for_packet(&self) -> bool {
        self.for_packet
    }

    /// A piece of a packet has been sent in a window for one packet.
    pub(super) fn sent_of_packet(
        &mut self,
        start: Instant,
        bytes: u64,
        last: bool,
        until: Instant,
        counts: &mut Counts,
    ) {
        counts.granted += bytes;
        for bucket in &mut self.limits {
            bucket.charge(start, bytes);
        }
        match self.owed.front_mut() {
            Some(Owed { amount: Amount::Packet { begun }, .. }) if !last => *begun = true,
            _ => {
                self.owed.pop_front();
                self.window = None;
                self.granted_until = until;
            }
        }
    }

    /// Accounts for the `bytes` that a proactive grant sent from `start` to `until`; `last` if a packet ends with them.
    /// They use tokens, and are subtracted from the requests that the head end may grant at `start`, unless these are
    /// granted beside them. Grants that have not begun are then computed again.
    pub(super) fn sent_unasked(&mut self, start: Instant, bytes: u64, last: bool, until: Instant, counts: &mut Counts) {
        if self.beside.is_some() {
            self.limits.iter_mut().for_each(|bucket| bucket.charge(start, bytes));
            return;
        }
        self.take_back(start, counts);
        for bucket in &mut self.limits {
            bucket.charge(start, bytes);
        }
        let mut rest = bytes;
        while let Some(first) = self.owed.front_mut().filter(|first| first.from <= start) {
            match &mut first.amount {
                Amount::Bytes(owed) => {
                    let answered = rest.min(*owed);
                    *owed -= answered;
                    self.owed_bytes -= answered;
                    rest -= answered;
                    if *owed > 0 {
                        break;
                    }
                    self.owed.pop_front();
                }
                Amount::Packet { .. } => {
                    if last {
                        self.owed.pop_front();
                    }
                    break;
                }
            }
        }
        // Grants are made once in a slot: what was not granted in this one is granted in a later one.
        self.granted_until = self.granted_until.max(self.slots.starting_from(until).start);
    }

    /// Takes back the next window if it begins after `at`: its request is owed again, and the tokens are there.
    fn take_back(&mut self, at: Instant, counts: &mut Counts) {
        let Some(Made { owed, whole, bytes, until }) = self.made.filter(|_| self.window.is_some_and(|w| w.start > at))
        else {
            return;
        };
        let padded = self.window.take().map_or(0, |window| window.left);
        (self.made, self.granted_until) = (None, until);
        if self.for_packet {
            return;
        }
        counts.granted -= padded;
        self.owed_bytes += bytes;
        for bucket in &mut self.limits {
            bucket.full = bucket.before;
        }
        if !whole {
            self.owed.pop_front();
        }
        self.owed.push_front(owed);
    }

    /// The rest of the window is of no use.
    pub(super) fn waste(&mut self, counts: &mut Counts) {
        counts.unused += self.window.map_or(0, |window| window.left);
        self.close();
    }

    /// Ends the window; one for a packet that sent nothing has passed.
    fn close(&mut self) {
        if self.for_packet && matches!(self.owed.front(), Some(Owed { amount: Amount::Packet { begun: false }, .. })) {
            self.owed.pop_front();
        }
        self.window = None;
    }

    /// Makes the next window from the first request.
    fn grant(&mut self, counts: &mut Counts) -> Option<()> {
        let owed = *self.owed.front()?;
        let Owed { from, amount, .. } = owed;
        let want = match amount {
            Amount::Bytes(bytes) => bytes,
            Amount::Packet { .. } => LARGEST_PACKET.as_u64(),
        };
        let mut at = from.max(self.granted_until);
        let (run, tokens_for) = match self.whole {
            Some(largest) => (want.min(largest).next_multiple_of(self.unit), want.min(largest)),
            None => (0, want.min(LARGEST_PACKET.as_u64())),
        };
        loop {
            let beside = self.beside.as_ref().and_then(|unasked| unasked.room_beside(at));
            let room = beside.unwrap_or_else(|| room(&self.slots, &self.wire, at, run));
            let Room { start, end, rate, bytes: left } = room;
            let ready = self.limits.iter().map(|bucket| bucket.ready(tokens_for)).max();
            if let Some(ready) = ready.filter(|ready| *ready > start) {
                at = self.slots.starting_from(ready).start;
                continue;
            }
            let tokens = self.limits.iter().map(|bucket| bucket.at(start)).min().unwrap_or(u64::MAX);
            let bytes = want.min(left).min(tokens);
            // Without fragmentation a request waits until its grant holds it whole.
            if self.whole.is_some_and(|largest| left < want.min(largest)) {
                at = end;
                continue;
            }
            self.made = Some(Made { owed, whole: bytes == want, bytes, until: self.granted_until });
            match amount {
                Amount::Packet { .. } => {
                    // One larger than the tokens of `LARGEST_PACKET` goes on when there are tokens again.
                    (self.for_packet, self.granted_until) = (true, end);
                    self.window = Some(Window::new(start, end, left.min(tokens), rate));
                }
                Amount::Bytes(_) => self.grant_bytes(&Room { start, end, rate, bytes: left }, want, bytes, counts),
            }
            return Some(());
        }
    }

    fn grant_bytes(&mut self, room: &Room, want: u64, bytes: u64, counts: &mut Counts) {
        let Room { start, rate, .. } = *room;
        let padded = bytes.next_multiple_of(self.unit).min(room.bytes);
        let end = start + rate.time_for(WireBytes::new(padded));
        for bucket in &mut self.limits {
            bucket.charge(start, padded);
        }
        counts.granted += padded;
        self.owed_bytes -= bytes;
        if bytes == want {
            self.owed.pop_front();
        } else if let Some(first) = self.owed.front_mut() {
            first.amount = Amount::Bytes(want - bytes);
        }
        (self.for_packet, self.granted_until) = (false, end);
        self.window = Some(Window::new(start, end, padded, rate));
    }
}
