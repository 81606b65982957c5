//! Windows: spans of time on the wire that hold bytes.

use lastmile_units::{BitRate, Instant};

use super::capacity::{Wire, bytes_in};
use super::slots::Slots;

/// The usable part of a span.
pub(super) struct Room {
    pub(super) start: Instant,
    pub(super) end: Instant,
    pub(super) rate: BitRate,
    /// The bytes between start and end.
    pub(super) bytes: u64,
}

/// The first usable span that ends after `at` and holds a byte from then on, without an outage in it. It extends over
/// the spans that follow without a gap, until it has `want` bytes.
pub(super) fn room(slots: &Slots, wire: &Wire, at: Instant, want: u64) -> Room {
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
    pub(super) end: Instant,
    /// Bytes that may still be sent from `passed` on.
    pub(super) left: u64,
    /// The rate of the wire in it.
    pub(super) rate: BitRate,
    /// The time up to which `left` is counted.
    passed: Instant,
    /// True once the window is counted as a grant.
    pub(super) counted: bool,
}

impl Window {
    pub(super) fn new(start: Instant, end: Instant, left: u64, rate: BitRate) -> Self {
        Self { start, end, left, rate, passed: start, counted: false }
    }

    /// Lets the time until `at` pass and returns the bytes that pass with it.
    pub(super) fn pass(&mut self, at: Instant) -> u64 {
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
