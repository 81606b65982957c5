//! The spans of time that grants may cover: slots of one length in a pattern that repeats.

use std::sync::Arc;

use lastmile_units::{BitRate, Duration, Instant};

/// A span of time within a slot, or on the clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span<T = Duration> {
    /// The start of the span.
    pub start: T,
    /// The end of the span.
    pub end: T,
}

/// Slots that no line can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SlotsError {
    /// A slot of 0 s.
    #[error("a slot needs a length")]
    NoLength,
    /// No slot has a usable part.
    #[error("no slot of the pattern may be used in this direction")]
    NothingUsable,
    /// A part outside its slot.
    #[error("slot {0} of the pattern has a usable part outside of it")]
    Outside(usize),
}

/// Slots of one length. Each slot of the pattern has one usable span; an empty one for none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slots {
    length: Duration,
    pub(super) usable: Arc<[Span]>,
}

impl Slots {
    /// Slots of `length` whose usable spans repeat.
    ///
    /// # Errors
    /// See [`SlotsError`].
    pub fn new(length: Duration, usable: Vec<Span>) -> Result<Self, SlotsError> {
        if length.is_zero() {
            return Err(SlotsError::NoLength);
        }
        if let Some(slot) = usable.iter().position(|span| span.start > span.end || span.end > length) {
            return Err(SlotsError::Outside(slot));
        }
        if usable.iter().all(|span| span.start == span.end) {
            return Err(SlotsError::NothingUsable);
        }
        Ok(Self { length, usable: usable.into() })
    }

    /// Length of a slot.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.length
    }

    /// The time after which the pattern repeats.
    #[must_use]
    pub fn round(&self) -> Duration {
        self.length * self.usable.len() as u64
    }

    /// `rate` times the usable share of time.
    #[must_use]
    pub fn mean_rate(&self, rate: BitRate) -> Option<BitRate> {
        let usable: u128 = self.usable.iter().map(|span| u128::from((span.end - span.start).as_ps())).sum();
        let whole = u128::from(self.length.as_ps()) * self.usable.len() as u128;
        BitRate::from_bps(u64::try_from(u128::from(rate.as_bps()) * usable / whole).ok()?)
    }

    /// The usable time from `from` until `to`; where both come again after each `period`, the mean over all of them.
    pub(super) fn usable(&self, from: Duration, to: Duration, period: Option<Duration>) -> Duration {
        let round = self.round().as_ps();
        // The phases in which the period meets the pattern are this far apart, and each comes equally often.
        let apart = period.map_or(round, |period| gcd(period.as_ps(), round));
        // The usable time before `at`, summed over the phases of the pattern.
        let before = |at: Duration| -> u128 {
            let (whole, rest) = (at.as_ps() / apart, at.as_ps() % apart);
            let slots = (0..).zip(&*self.usable).map(|(slot, span)| (self.length * slot, span));
            slots
                .map(|(began, span)| {
                    let [start, end] = [began + span.start, began + span.end].map(Duration::as_ps);
                    let folded = |at: u64| u128::from(at / apart) * u128::from(rest) + u128::from(rest.min(at % apart));
                    u128::from(whole) * u128::from(end - start) + folded(end) - folded(start)
                })
                .sum()
        };
        Duration::from_ps(((before(to) - before(from)) / u128::from(round / apart)) as u64)
    }

    /// The longest usable span.
    pub(super) fn longest(&self) -> Duration {
        self.usable.iter().map(|span| span.end - span.start).max().unwrap_or_default()
    }

    /// The longest time without a gap; `None` where the whole of each slot is usable.
    pub(super) fn longest_run(&self) -> Option<Duration> {
        let (mut longest, mut run) = (Duration::ZERO, Duration::ZERO);
        // Twice, since a run may go on where the pattern begins anew.
        for span in self.usable.iter().chain(&*self.usable) {
            run = if span.start.is_zero() { run + span.end } else { span.end - span.start };
            longest = longest.max(run);
            run = if span.end == self.length { run } else { Duration::ZERO };
        }
        (longest < self.round() * 2).then_some(longest)
    }

    /// The first usable span that ends after `at`.
    pub(super) fn ending_after(&self, at: Instant) -> Span<Instant> {
        let length = self.length.as_ps();
        let mut slot = at.as_ps() / length;
        loop {
            let usable = self.usable[(slot % self.usable.len() as u64) as usize];
            let start = Instant::from_ps(slot * length);
            if usable.end > usable.start && start + usable.end > at {
                return Span { start: start + usable.start, end: start + usable.end };
            }
            slot += 1;
        }
    }

    /// The first time from `at` on that is not in a slot or a part of a slot of the other direction. Behind its usable
    /// span a slot belongs to other stations, and a request may leave.
    pub(super) fn of_direction_from(&self, at: Instant) -> Instant {
        let slot = at.as_ps() / self.length.as_ps();
        let usable = self.usable[(slot % self.usable.len() as u64) as usize];
        let began = Instant::from_ps(slot * self.length.as_ps()) + usable.start;
        if usable.end > usable.start && at >= began { at } else { self.ending_after(at).start }
    }

    /// The first usable span that starts at or after `at`.
    pub(super) fn starting_from(&self, at: Instant) -> Span<Instant> {
        let span = self.ending_after(at);
        if span.start >= at { span } else { self.ending_after(span.end) }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
