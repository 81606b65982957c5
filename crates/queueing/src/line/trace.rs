//! The capacity of a line over time.
//!
//! A trace either lists the times from which a rate, a delay and a loss hold ([`Steps`]), or the
//! times at which a block of bytes may be sent ([`Opportunities`], the form of mahimahi's
//! packet-delivery traces: Netravali and others, "Mahimahi: Accurate Record-and-Replay for HTTP",
//! USENIX ATC 2015). Either is played once or again and again.

use std::sync::Arc;

use lastmile_units::{BitRate, ByteCount, Duration, Instant, Ratio};

const PS_PER_S: u128 = 1_000_000_000_000;

/// A trace that no line can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TraceError {
    /// A trace without entries.
    #[error("a trace without entries")]
    Empty,
    /// The first step is later than the start.
    #[error("the first step is at {0}, and not at 0 s: nothing says what holds before")]
    LateStart(Duration),
    /// Entries out of order.
    #[error("entry {entry} is at {at}, not later than the one before")]
    Order {
        /// Number of the entry, from 1.
        entry: usize,
        /// The time of the entry.
        at: Duration,
    },
    /// An entry at or behind the end.
    #[error("entry {entry} is at {at}, and the trace starts again after {period}")]
    BehindEnd {
        /// Number of the entry, from 1.
        entry: usize,
        /// The time of the entry.
        at: Duration,
        /// Length of the trace.
        period: Duration,
    },
    /// A trace that never lets a packet pass.
    #[error("the line never sends: every rate is 0")]
    NeverSends,
    /// A trace that is played once and ends in an outage.
    #[error(
        "the line never sends again after {0}: the last step has rate 0 and holds for ever; let the trace repeat, or \
         end it with a rate, at a time after the run"
    )]
    NeverSendsAgain(Duration),
    /// A trace that is played once, from a time at which its last step holds.
    #[error("nothing changes from {start} on: the last step begins at {last} and holds for ever")]
    StartsInLastStep {
        /// The time of the trace at which the run begins.
        start: Duration,
        /// When the last step begins.
        last: Duration,
    },
}

/// The values that hold from a point of time on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// From when on, after the start of the trace.
    pub at: Duration,
    /// Rate of the wire; `None` for an outage, during which packets wait.
    pub rate: Option<BitRate>,
    /// Propagation delay of packets whose transmission ends in this step.
    pub delay: Duration,
    /// Share of packets lost whose transmission begins in this step.
    pub loss: Ratio,
}

/// Rate, delay and loss over time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Steps {
    steps: Vec<Step>,
    period: Option<Duration>,
}

impl Steps {
    /// The steps in the order of time. With a period the trace starts again after it; without one
    /// the last step holds for ever.
    ///
    /// # Errors
    /// No steps, steps out of order or behind the period, a first step later than 0 s, or no step
    /// with a rate that comes again.
    pub fn new(steps: Vec<Step>, period: Option<Duration>) -> Result<Self, TraceError> {
        let first = steps.first().ok_or(TraceError::Empty)?;
        if first.at > Duration::ZERO {
            return Err(TraceError::LateStart(first.at));
        }
        let times: Vec<Duration> = steps.iter().map(|step| step.at).collect();
        in_order(&times, true, period)?;
        if steps.iter().all(|step| step.rate.is_none()) {
            return Err(TraceError::NeverSends);
        }
        match steps.last() {
            Some(last) if last.rate.is_none() && period.is_none() => Err(TraceError::NeverSendsAgain(last.at)),
            _ => Ok(Self { steps, period }),
        }
    }

    /// The trace as it goes on from `start`: a trace with a period continues with its beginning, one without a period
    /// lacks the steps before.
    ///
    /// # Errors
    /// A trace without a period whose last step holds at `start`, unless that is 0 s; or no step with a rate that comes
    /// again.
    pub fn starting_at(&self, start: Duration) -> Result<Self, TraceError> {
        let last = self.steps.last().map_or(Duration::ZERO, |step| step.at);
        if start == Duration::ZERO {
            return Ok(self.clone());
        }
        if self.period.is_none() && start >= last {
            return Err(TraceError::StartsInLastStep { start, last });
        }
        let start = self.period.map_or(start, |period| start - base(start, period));
        let next = self.steps.partition_point(|step| step.at <= start);
        let (before, after) = self.steps.split_at(next);
        let first = before.last().map(|step| Step { at: Duration::ZERO, ..*step });
        let after = after.iter().map(|step| Step { at: step.at - start, ..*step });
        let again = self.period.into_iter().flat_map(|period| {
            let before = before.iter().filter(|step| step.at < start);
            before.map(move |step| Step { at: step.at + period - start, ..*step })
        });
        Self::new(first.into_iter().chain(after).chain(again).collect(), self.period)
    }

    /// The steps with rates that `of` makes of each rate, and of the start and the end of its step; `None` for ever.
    #[must_use]
    pub(super) fn with_rates(&self, of: impl Fn(BitRate, Duration, Option<Duration>) -> BitRate) -> Self {
        let ends = self.steps.iter().skip(1).map(|step| Some(step.at)).chain([self.period]);
        let steps = self
            .steps
            .iter()
            .zip(ends)
            .map(|(step, end)| Step { rate: step.rate.map(|rate| of(rate, step.at, end)), ..*step });
        Self { steps: steps.collect(), period: self.period }
    }

    /// The steps.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The time after which the trace starts again.
    #[must_use]
    pub fn period(&self) -> Option<Duration> {
        self.period
    }

    /// Bits that the line can carry in its first `span`, times 10^12.
    pub(super) fn work_by(&self, span: Duration) -> u128 {
        self.sum_by(span, |step| step.rate.map_or(0, BitRate::as_bps))
    }

    /// The sum over the first `span` of the time in each step, in picoseconds, times what `each` makes of the step.
    fn sum_by(&self, span: Duration, each: impl Fn(&Step) -> u64) -> u128 {
        let one = |span: Duration| -> u128 {
            let ends = self.steps.iter().skip(1).map(|step| step.at).chain([Duration::MAX]);
            let parts = self.steps.iter().zip(ends).map(|(step, end)| {
                let length = end.min(span).saturating_sub(step.at).as_ps();
                u128::from(length) * u128::from(each(step))
            });
            parts.sum()
        };
        match self.period {
            None => one(span),
            Some(period) => {
                let whole = base(span, period);
                let periods = u128::from(whole.as_ps() / period.as_ps().max(1));
                periods * one(period) + one(span - whole)
            }
        }
    }
}

/// Times at which a block of bytes may be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opportunities {
    at: Vec<Duration>,
    period: Duration,
    bytes: ByteCount,
}

impl Opportunities {
    /// Bytes of an opportunity of mahimahi's traces.
    pub const MAHIMAHI_BYTES: ByteCount = ByteCount::new(1504);

    /// Opportunities of `bytes` each, in the order of time; several at one time add up. The trace
    /// starts again after `period`, and none may be later than it.
    ///
    /// # Errors
    /// No opportunity, or opportunities out of order or behind the period.
    pub fn new(at: Vec<Duration>, period: Duration, bytes: ByteCount) -> Result<Self, TraceError> {
        if at.is_empty() || bytes == ByteCount::ZERO {
            return Err(TraceError::Empty);
        }
        // mahimahi's traces end with an opportunity at their period.
        in_order(&at, false, Some(period + Duration::from_ps(1)))?;
        Ok(Self { at, period, bytes })
    }

    /// The trace as it goes on from `start`, and continues with its beginning. An opportunity at `start` is the first.
    #[must_use]
    pub fn starting_at(&self, start: Duration) -> Self {
        let start = start - base(start, self.period);
        if start == Duration::ZERO {
            return self.clone();
        }
        let (before, after) = self.at.split_at(self.at.partition_point(|at| *at < start));
        let after = after.iter().map(|at| *at - start);
        let again = before.iter().map(|at| *at + self.period - start);
        // Opportunities at the end of a period and at the start of the next one fall on one time.
        Self { at: after.chain(again).collect(), ..*self }
    }

    /// The times within a period.
    #[must_use]
    pub fn times(&self) -> &[Duration] {
        &self.at
    }

    /// The time after which the trace starts again.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Bytes of an opportunity.
    #[must_use]
    pub fn bytes(&self) -> ByteCount {
        self.bytes
    }

    /// Bits that the line can carry in its first `span`, times 10^12.
    pub(super) fn work_by(&self, span: Duration) -> u128 {
        let whole = base(span, self.period);
        let periods = u128::from(whole.as_ps() / self.period.as_ps().max(1));
        // An opportunity at 0 s belongs to the period that it begins, one at the end to that which it ends.
        let rest = if span > whole { self.at.partition_point(|time| *time <= span - whole) } else { 0 };
        let opportunities = periods * self.at.len() as u128 + rest as u128;
        opportunities * u128::from(self.bytes.as_u64()) * 8 * PS_PER_S
    }
}

fn in_order(times: &[Duration], strictly: bool, period: Option<Duration>) -> Result<(), TraceError> {
    for (index, pair) in times.windows(2).enumerate() {
        if pair[1] < pair[0] || (strictly && pair[1] == pair[0]) {
            return Err(TraceError::Order { entry: index + 2, at: pair[1] });
        }
    }
    match (period, times.last()) {
        (Some(period), Some(last)) if *last >= period => {
            Err(TraceError::BehindEnd { entry: times.len(), at: *last, period })
        }
        _ => Ok(()),
    }
}

/// The capacity of a line over time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trace {
    /// Rate, delay and loss from stated times on.
    Steps(Arc<Steps>),
    /// Times at which a block of bytes may be sent.
    Opportunities(Arc<Opportunities>),
}

impl Trace {
    /// The trace as it goes on from `start`.
    ///
    /// # Errors
    /// As [`Steps::starting_at`].
    pub fn starting_at(&self, start: Duration) -> Result<Self, TraceError> {
        Ok(match self {
            Self::Steps(steps) => Self::Steps(Arc::new(steps.starting_at(start)?)),
            Self::Opportunities(opportunities) => Self::Opportunities(Arc::new(opportunities.starting_at(start))),
        })
    }

    /// The time after which the trace starts again; `None` if it is played once.
    #[must_use]
    pub fn period(&self) -> Option<Duration> {
        match self {
            Self::Steps(steps) => steps.period,
            Self::Opportunities(opportunities) => Some(opportunities.period),
        }
    }

    /// Mean rate over the first `span`; `None` below 1 bit/s and above [`BitRate::MAX`].
    #[must_use]
    pub fn mean_rate(&self, span: Duration) -> Option<BitRate> {
        BitRate::from_bps(u64::try_from(self.work_by(span) / u128::from(span.as_ps().max(1))).ok()?)
    }

    /// Mean rate between two times, in bit/s; `None` over no time.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    pub fn rate_between(&self, from: Instant, to: Instant) -> Option<f64> {
        let [from, to] = [from, to].map(|at| at.since(Instant::ZERO));
        let work = self.work_by(to).saturating_sub(self.work_by(from));
        let span = to.saturating_sub(from).as_ps();
        (span > 0).then(|| work as f64 / span as f64)
    }

    /// Mean between two times of the rate or of `most`, whichever is less at a time, in bit/s; of opportunities the
    /// mean rate, at most `most`. `None` over no time.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    pub fn rate_up_to(&self, most: BitRate, from: Instant, to: Instant) -> Option<f64> {
        let Self::Steps(steps) = self else { return Some(self.rate_between(from, to)?.min(most.as_bps() as f64)) };
        let by = |at: Instant| {
            let capped = |step: &Step| step.rate.map_or(0, |rate| rate.min(most).as_bps());
            steps.sum_by(at.since(Instant::ZERO), capped)
        };
        let span = to.since(from).as_ps();
        (span > 0).then(|| by(to).saturating_sub(by(from)) as f64 / span as f64)
    }

    /// The time of outages between two times; opportunities have none.
    #[must_use]
    pub fn outage_between(&self, from: Instant, to: Instant) -> Duration {
        let Self::Steps(steps) = self else { return Duration::ZERO };
        let by = |at: Instant| steps.sum_by(at.since(Instant::ZERO), |step| u64::from(step.rate.is_none()));
        Duration::from_ps(u64::try_from(by(to).saturating_sub(by(from))).unwrap_or(u64::MAX))
    }

    /// The highest rate; `None` for opportunities, whose blocks take no time.
    #[must_use]
    pub fn peak_rate(&self) -> Option<BitRate> {
        match self {
            Self::Steps(steps) => steps.steps.iter().filter_map(|step| step.rate).max(),
            Self::Opportunities(_) => None,
        }
    }

    /// The least delay of a step; `None` for opportunities, which leave the delay to the line.
    #[must_use]
    pub fn least_delay(&self) -> Option<Duration> {
        match self {
            Self::Steps(steps) => steps.steps.iter().map(|step| step.delay).min(),
            Self::Opportunities(_) => None,
        }
    }

    /// Bits that the line can carry in its first `span`, times 10^12.
    fn work_by(&self, span: Duration) -> u128 {
        match self {
            Self::Steps(steps) => steps.work_by(span),
            Self::Opportunities(opportunities) => opportunities.work_by(span),
        }
    }
}

/// A position in a list of times that is played again and again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Position {
    /// Start of the present period.
    base: Duration,
    index: usize,
}

impl Position {
    /// The position behind this one; `None` behind the last entry of a list without a period.
    fn next(self, len: usize, period: Option<Duration>) -> Option<Self> {
        if self.index + 1 < len {
            return Some(Self { index: self.index + 1, ..self });
        }
        period.map(|period| Self { base: self.base + period, index: 0 })
    }
}

/// Start of the period that holds `offset`.
fn base(offset: Duration, period: Duration) -> Duration {
    period * (offset.as_ps() / period.as_ps().max(1))
}

impl Steps {
    /// The step that holds at `at`.
    pub(super) fn position(&self, at: Instant) -> Position {
        let offset = at.since(Instant::ZERO);
        let base = self.period.map_or(Duration::ZERO, |period| base(offset, period));
        let behind = self.steps.partition_point(|step| step.at <= offset - base);
        Position { base, index: behind - 1 }
    }

    /// The step at a position.
    pub(super) fn at(&self, position: Position) -> Step {
        self.steps[position.index]
    }

    /// The first time from `at` on at which the line has a rate, with the position then.
    pub(super) fn sending(&self, at: Instant) -> (Position, Instant) {
        let mut found = (self.position(at), at);
        while self.at(found.0).rate.is_none() {
            found = self.after(found.0).expect("the last step of a trace without a period has a rate");
        }
        found
    }

    /// The least rate from `start` until `end`. An error is the first time after an outage in it.
    pub(super) fn least_rate(&self, start: Instant, end: Instant) -> Result<BitRate, Instant> {
        let (mut position, mut at) = (self.position(start), start);
        let mut least = BitRate::MAX;
        loop {
            least = least.min(self.at(position).rate.ok_or_else(|| self.sending(at).1)?);
            match self.after(position) {
                Some((next, begins)) if begins < end => (position, at) = (next, begins),
                _ => return Ok(least),
            }
        }
    }

    /// True if a rate for which `suffices` is true holds for `length` or longer.
    pub(super) fn has_for(&self, length: Duration, suffices: impl Fn(BitRate) -> bool) -> bool {
        let ends = self.steps.iter().skip(1).map(|step| Some(step.at)).chain([self.period]);
        let lasts = |(step, end): (&Step, Option<Duration>)| end.is_none_or(|end| end - step.at >= length);
        self.steps.iter().zip(ends).filter(|(step, _)| step.rate.is_some_and(&suffices)).any(lasts)
    }

    /// The next position, and when it begins.
    pub(super) fn after(&self, position: Position) -> Option<(Position, Instant)> {
        let next = position.next(self.steps.len(), self.period)?;
        Some((next, Instant::ZERO + next.base + self.steps[next.index].at))
    }
}

impl Opportunities {
    /// The first opportunity at or after `at`.
    pub(super) fn position(&self, at: Instant) -> Position {
        let offset = at.since(Instant::ZERO);
        let base = base(offset, self.period);
        // An opportunity at the end of a period falls on the start of the next one.
        let earlier = base.saturating_sub(self.period);
        let index = self.at.partition_point(|time| *time < offset - earlier);
        if index < self.at.len() {
            return Position { base: earlier, index };
        }
        let index = self.at.partition_point(|time| *time < offset - base);
        if index < self.at.len() { Position { base, index } } else { Position { base: base + self.period, index: 0 } }
    }

    /// The time of a position.
    pub(super) fn time(&self, position: Position) -> Instant {
        Instant::ZERO + position.base + self.at[position.index]
    }

    /// The position behind this one.
    pub(super) fn after(&self, position: Position) -> Position {
        position.next(self.at.len(), Some(self.period)).expect("it has a period")
    }
}
