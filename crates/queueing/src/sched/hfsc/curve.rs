//! Service curves of two straight pieces, and the curve of a class as it moves with its backlogs.
//!
//! Published: Stoica, Zhang, Ng 1997, sections IV and V; `rtsc_min`, `rtsc_y2x` and `rtsc_x2y` of sch_hfsc.c.
//! Differs: service is counted in 10^-12 bit, so that rate times time is a product of integers, and a curve is met
//! exactly; times are rounded up to a picosecond. Linux scales slopes to 20 bits. Times are 128 bits wide, since
//! the virtual time of a class with a small weight is many times that of the clock.
//! Cost: a division to find the time of some service.

use core::ops::{Add, AddAssign};

use lastmile_units::{BitRate, Duration, Instant, WireBytes};

use crate::meter::token_bucket::{bytes_in, tokens_for};
use crate::sched::proportion::in_proportion;

/// A service curve of two pieces (tc-hfsc(7): `m1 d m2`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServiceCurve {
    /// The first piece. `None`: the curve is a straight line.
    pub initial: Option<Initial>,
    /// Slope of the second piece, without end (`m2`).
    pub rate: BitRate,
}

/// The first piece of a service curve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Initial {
    /// The slope of the first part (`m1`). `None`: zero, so that service begins late.
    pub rate: Option<BitRate>,
    /// The length of the first part (`d`).
    pub duration: Duration,
}

impl ServiceCurve {
    /// A straight line.
    #[must_use]
    pub const fn linear(rate: BitRate) -> Self {
        Self { initial: None, rate }
    }

    /// A curve whose first piece is steeper, or less steep, than the second.
    #[must_use]
    pub const fn two_pieces(m1: Option<BitRate>, d: Duration, m2: BitRate) -> Self {
        Self { initial: Some(Initial { rate: m1, duration: d }), rate: m2 }
    }

    /// The curve that sends `size` within `time`, and then `rate` (`umax`, `dmax` and `rate` of tc-hfsc(7)): concave if
    /// that takes a higher rate at first, else convex, with the last moment at which `rate` is enough. `None`: faster
    /// than any line.
    #[must_use]
    pub fn within(size: WireBytes, time: Duration, rate: BitRate) -> Option<Self> {
        if time.is_zero() {
            return None;
        }
        let first = Work::of(size).over(time).filter(|first| *first < BitRate::MAX)?;
        if first > rate {
            return Some(Self::two_pieces(Some(first), time, rate));
        }
        let pause = time.saturating_sub(rate.time_for(size));
        Some(if pause.is_zero() { Self::linear(rate) } else { Self::two_pieces(None, pause, rate) })
    }

    /// The curve on a link of `new` in place of `whole`. Its first piece has the same bytes.
    pub(super) fn set_rate(&mut self, whole: BitRate, new: BitRate) {
        self.rate = in_proportion(self.rate, whole, new);
        if let Some(Initial { rate, duration }) = &mut self.initial {
            *rate = rate.map(|rate| in_proportion(rate, whole, new));
            let ps = u128::from(duration.as_ps()) * u128::from(whole.as_bps()) / u128::from(new.as_bps());
            *duration = Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX).max(1));
        }
    }

    /// The service that it guarantees in the first `span`.
    pub(super) fn in_first(&self, span: Duration) -> Work {
        Runtime::new(&Curve::new(self), 0, Work::ZERO).work_by(span.as_ps().into())
    }

    /// The most bytes on the wire that its first piece has ahead of the second.
    pub(super) fn ahead(&self) -> u64 {
        let more = self.slope_at_first().saturating_sub(self.rate.as_bps());
        let duration = self.initial.map_or(Duration::ZERO, |initial| initial.duration);
        BitRate::from_bps(more).map_or(0, |more| bytes_in(more, duration))
    }

    /// The slope at its beginning.
    pub(super) const fn slope_at_first(&self) -> u64 {
        match self.initial {
            Some(Initial { rate: Some(rate), .. }) => rate.as_bps(),
            Some(Initial { rate: None, .. }) => 0,
            None => self.rate.as_bps(),
        }
    }
}

/// Service in 10^-12 bit: rate times time in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Work(u128);

impl Work {
    pub(super) const ZERO: Self = Self(0);

    #[inline]
    pub(super) fn of(size: WireBytes) -> Self {
        Self(tokens_for(size))
    }

    /// Service of a rate in a span.
    pub(super) fn at(rate: BitRate, span: Duration) -> Self {
        Self(crate::meter::token_bucket::tokens_in(rate, span))
    }

    /// The mean rate over a span that is not zero, rounded up.
    pub(super) fn over(self, span: Duration) -> Option<BitRate> {
        let bps = self.0.div_ceil(span.as_ps().into());
        BitRate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX).min(BitRate::MAX.as_bps()))
    }
}

impl Add for Work {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

/// A time in picoseconds: of the clock, or virtual.
pub(super) type Time = u128;

/// A time of the clock; the end of the clock for all that are later.
pub(super) fn instant(time: Time) -> Instant {
    Instant::from_ps(u64::try_from(time).unwrap_or(u64::MAX))
}

/// A service curve with its projections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Curve {
    m1: u64,
    m2: u64,
    /// Length and height of the first piece.
    dx: Time,
    dy: Work,
}

impl Curve {
    pub(super) fn new(curve: &ServiceCurve) -> Self {
        let (m1, m2) = (curve.slope_at_first(), curve.rate.as_bps());
        let dx = curve.initial.map_or(0, |initial| initial.duration.as_ps().into());
        Self { m1, m2, dx, dy: Work(u128::from(m1) * dx) }
    }

    /// True if its first piece is steeper than the second: it promises a short delay.
    const fn is_concave(&self) -> bool {
        self.dx > 0 && self.m1 > self.m2
    }

    /// The curve of eligible times (section IV-B): the curve itself, and for a convex one the straight line of its
    /// second piece, so that the service that it will owe is done ahead.
    pub(super) const fn eligible(&self) -> Self {
        if self.is_concave() { *self } else { Self { dx: 0, dy: Work::ZERO, ..*self } }
    }
}

/// A curve that begins at some time, with some service done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Runtime {
    curve: Curve,
    x: Time,
    y: Work,
    /// Length and height of the first piece, which earlier backlogs may have changed.
    dx: Time,
    dy: Work,
}

impl Runtime {
    pub(super) const fn new(curve: &Curve, x: Time, y: Work) -> Self {
        Self { curve: *curve, x, y, dx: curve.dx, dy: curve.dy }
    }

    /// The first time by which it has reached `work`.
    #[inline]
    pub(super) fn time_of(&self, work: Work) -> Time {
        let Some(above) = work.0.checked_sub(self.y.0) else { return self.x };
        match above.checked_sub(self.dy.0) {
            Some(rest) if rest > 0 || self.dy.0 == 0 => self.x + self.dx + divided(rest, self.curve.m2),
            _ => self.x + divided(above, self.curve.m1),
        }
    }

    /// The service that it has reached at a time.
    pub(super) fn work_by(&self, time: Time) -> Work {
        let Some(span) = time.checked_sub(self.x) else { return self.y };
        match span.checked_sub(self.dx) {
            Some(rest) => Work(self.y.0 + self.dy.0 + u128::from(self.curve.m2) * rest),
            None => Work(self.y.0 + u128::from(self.curve.m1) * span),
        }
    }

    /// A backlog begins at `x` with the service `y`: the curve becomes the lower one of itself and of the service curve
    /// from there on.
    pub(super) fn begin(&mut self, x: Time, y: Work) {
        let reached = self.work_by(x);
        if reached < y || (reached == y && self.curve.is_concave()) {
            return;
        }
        if !self.curve.is_concave() {
            (self.x, self.y) = (x, y);
            return;
        }
        if self.work_by(x + self.curve.dx) >= y + self.curve.dy {
            *self = Self::new(&self.curve, x, y);
            return;
        }
        // The new curve crosses this one: its first piece lasts until there, and from there on both have one slope.
        // While this one is in its own first piece the two are parallel.
        let parallel = (self.x + self.dx).saturating_sub(x);
        let dx = parallel + divided(reached.0 - y.0, self.curve.m1 - self.curve.m2);
        *self = Self { curve: self.curve, x, y, dx, dy: Work(u128::from(self.curve.m1) * dx) };
    }

    /// This curve with the pieces of the eligible curve.
    pub(super) fn eligible(&self) -> Self {
        let curve = self.curve.eligible();
        if self.curve.is_concave() { *self } else { Self::new(&curve, self.x, self.y) }
    }
}

/// `work` over a rate, rounded up.
#[inline]
fn divided(work: u128, rate: u64) -> Time {
    match u64::try_from(work) {
        // Up to 2.3 MB; a 64-bit division is several times cheaper.
        Ok(work) => work.div_ceil(rate).into(),
        Err(_) => work.div_ceil(rate.into()),
    }
}

#[cfg(test)]
mod tests;
