//! The head end: what was asked for becomes windows of time on the wire.

use std::collections::VecDeque;

use lastmile_units::{BitRate, Duration, Instant, WireBytes};

use super::capacity::{Wire, bytes_in};
use super::slots::Slots;
use super::{Config, Counts, LARGEST_PACKET, Proactive};

/// The usable part of a span.
struct Room {
    start: Instant,
    end: Instant,
    rate: BitRate,
    /// The bytes between start and end.
    bytes: u64,
}

/// The first usable span that ends after `at` and holds a byte from then on, without an outage in it. It extends over
/// the spans that follow without a gap, until it has `want` bytes.
fn room(slots: &Slots, wire: &Wire, at: Instant, want: u64) -> Room {
    let mut span = slots.ending_after(at);
    loop {
        let start = at.max(span.start);
        let rate = match wire.rate_in(start, span.end) {
            Ok(rate) => rate,
            Err(up) => {
                span = slots.ending_after(up.max(span.end));
                continue;
            }
        };
        let bytes = bytes_in(rate, span.end - start);
        let room = Room { start, end: span.end, rate, bytes };
        if bytes >= want.max(1) {
            return room;
        }
        let next = slots.ending_after(span.end);
        if bytes < want && next.start == span.end {
            span.end = next.end;
        } else if bytes > 0 {
            return room;
        } else {
            // `Config::check` has seen a span that holds a byte.
            span = next;
        }
    }
}

/// A span of time in which the station may send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) start: Instant,
    end: Instant,
    /// Bytes that may still be sent from `passed` on.
    pub(super) left: u64,
    /// The rate of the wire in it.
    pub(super) rate: BitRate,
    /// The time up to which `left` is counted.
    passed: Instant,
    /// True once the window is counted as a grant.
    counted: bool,
}

impl Window {
    fn new(start: Instant, end: Instant, left: u64, rate: BitRate) -> Self {
        Self { start, end, left, rate, passed: start, counted: false }
    }

    /// Lets the time until `at` pass and returns the bytes that pass with it.
    fn pass(&mut self, at: Instant) -> u64 {
        if at <= self.passed {
            return 0;
        }
        let before = self.left;
        self.left = before.min(bytes_in(self.rate, self.end.since(at)));
        self.passed = at;
        before - self.left
    }

    /// Sends `bytes` until `until`.
    pub(super) fn take(&mut self, bytes: u64, until: Instant) {
        self.left = self.left.saturating_sub(bytes);
        self.passed = until;
    }
}

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
    /// They use tokens, and are subtracted from the requests that the head end may grant at `start`. Grants that have
    /// not begun are computed again.
    pub(super) fn sent_unasked(&mut self, start: Instant, bytes: u64, last: bool, until: Instant, counts: &mut Counts) {
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
            let Room { start, end, rate, bytes: left } = room(&self.slots, &self.wire, at, run);
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

/// The number of windows among which the largest is sought: periods of grants and patterns seldom coincide later.
const FIRST_WINDOWS: usize = 1000;

/// Windows that come without requests.
pub(super) struct Unasked {
    wire: Wire,
    slots: Slots,
    /// `None`: all usable spans.
    grant: Option<Proactive>,
    window: Option<Window>,
}

impl Unasked {
    pub(super) fn new(config: &Config, grant: Option<Proactive>) -> Self {
        Self { wire: config.wire(), slots: config.slots.clone(), grant, window: None }
    }

    /// The window that is in use at `at` or comes next.
    pub(super) fn window(&mut self, at: Instant) -> Instant {
        loop {
            let after = match &mut self.window {
                Some(window) => {
                    window.pass(at);
                    if window.left > 0 {
                        return window.start.max(at);
                    }
                    at.max(window.end)
                }
                None => at,
            };
            self.window = Some(self.next(after));
        }
    }

    /// Bytes of the largest of the first windows. A pattern can cut every one of them short, so that none has the
    /// bytes of the grant.
    pub(super) fn largest(&self) -> u64 {
        let windows = core::iter::successors(Some(self.next(Instant::ZERO)), |window| Some(self.next(window.end)));
        windows.take(FIRST_WINDOWS).map(|window| window.left).max().unwrap_or(0)
    }

    /// The first window that ends after `at`.
    fn next(&self, at: Instant) -> Window {
        let Some(grant) = self.grant else {
            let Room { start, end, rate, bytes } = room(&self.slots, &self.wire, at, 0);
            return Window::new(start, end, bytes, rate);
        };
        let every = grant.every.as_ps();
        // A pattern may postpone a grant beyond the time of the next one.
        let mut number = (at.as_ps() / every).saturating_sub(1);
        loop {
            let room = room(&self.slots, &self.wire, Instant::from_ps(number * every), 0);
            let (start, left) = (room.start, grant.bytes.as_u64().min(room.bytes));
            let end = start + room.rate.time_for(WireBytes::new(left));
            // A grant postponed into the window before it is part of that.
            if end > at && self.window.is_none_or(|before| start >= before.end) {
                return Window::new(start, end, left, room.rate);
            }
            number += 1;
        }
    }

    /// The window in use at `at`.
    pub(super) fn open(&mut self, at: Instant) -> Option<&mut Window> {
        self.window.as_mut().filter(|window| window.start <= at && window.left > 0)
    }

    /// Bytes of the window in use at `at`.
    pub(super) fn left(&self, at: Instant) -> u64 {
        self.window.filter(|window| window.start <= at).map_or(0, |window| window.left)
    }

    /// The rest of the window is of no use.
    pub(super) fn waste(&mut self) {
        if let Some(window) = &mut self.window {
            window.left = 0;
        }
    }
}
