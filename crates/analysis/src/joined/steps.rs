//! Times at which a clock was set.
//!
//! The offset of two clocks is at most what a packet there seems to take, and at least what one back does, of which
//! the delay is subtracted. Within a stretch without a step it moves no faster than clocks drift. Packets that
//! contradict the bounds of those before, several in a row, show a step; one alone is a wrong pair, and is left out.
//!
//! A step begins where the fastest round trips of both sides are longest: packets on the wrong side of it shorten that
//! side's. A step of less than the fastest round trip contradicts nothing, and does not show.

/// The fastest drift of two clocks, seconds a second: NTP corrects each within 500 ppm (`MAXFREQ` of RFC 5905).
pub const MOST_DRIFT: f64 = 1e-3;
/// The least step. Times of packets are wrong by less.
pub(super) const LEAST_S: f64 = 1e-3;
/// Packets in a row that show a step.
const AGREE: usize = 4;
/// Packets behind these that the step is found with.
const BEHIND: usize = 64;

/// A packet at both captures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    /// Its number at each.
    pub(super) numbers: [u32; 2],
    /// Its time at the first, and how much later it is at the second, in nanoseconds.
    pub(super) at: i64,
    pub(super) later: i64,
}

/// A part of the captures in which no clock was set.
pub(super) struct Stretch {
    /// The number of its first packet.
    pub(super) number: u32,
    /// Packets: time, and how much later.
    pub(super) there: Vec<(i64, i64)>,
    pub(super) back: Vec<(i64, i64)>,
}

/// A packet: number, time, how much later, and 0 for there or 1 for back.
type Seen = (u32, i64, i64, usize);

/// The bounds of the offset in nanoseconds, as of a time.
#[derive(Clone, Copy)]
struct Bounds {
    at: i64,
    /// At most, from packets there, and at least, from packets back.
    most: f64,
    least: f64,
}

impl Bounds {
    const NONE: Self = Self { at: i64::MIN, most: f64::INFINITY, least: f64::NEG_INFINITY };

    /// The bounds at a later time. An earlier one is of a packet out of order, or of a clock that was set.
    fn moved(self, at: i64) -> Self {
        let drift = at.saturating_sub(self.at).max(0) as f64 * MOST_DRIFT;
        Self { at: self.at.max(at), most: self.most + drift, least: self.least - drift }
    }

    fn contradicted(&self, (_, _, later, way): Seen) -> bool {
        let (later, error) = (later as f64, LEAST_S * 1e9);
        if way == 0 { later < self.least - error } else { later > self.most + error }
    }

    fn add(&mut self, (_, _, later, way): Seen) {
        let later = later as f64;
        if way == 0 {
            self.most = self.most.min(later);
        } else {
            self.least = self.least.max(later);
        }
    }

    /// The fastest round trip.
    fn trip(&self) -> f64 {
        self.most - self.least
    }
}

/// The parts without a step, in the order of this capture.
pub(super) fn parts(there: &[Pair], back: &[Pair], order: usize) -> Vec<Stretch> {
    let seen = |way: usize| move |pair: &Pair| (pair.numbers[order], pair.at, pair.later, way);
    let mut all: Vec<Seen> = there.iter().map(seen(0)).chain(back.iter().map(seen(1))).collect();
    all.sort_unstable();
    let mut parts = Vec::new();
    let mut rest = &all[..];
    while !rest.is_empty() {
        let count = until_step(rest);
        parts.push(stretch(&rest[..count]));
        rest = &rest[count..];
    }
    parts
}

/// The packets before the first step.
fn until_step(all: &[Seen]) -> usize {
    let mut bounds = Bounds::NONE;
    // Of each direction, the contradictions in a row.
    let mut against = [0; 2];
    for (number, one) in all.iter().enumerate() {
        bounds = bounds.moved(one.1);
        if !bounds.contradicted(*one) {
            against[one.3] = 0;
            bounds.add(*one);
            continue;
        }
        against[one.3] += 1;
        if against[one.3] == AGREE {
            let to = all.len().min(number + 1 + BEHIND);
            return split(&all[..to], number);
        }
    }
    all.len()
}

/// Where both sides have the longest trips; the step is before packet `last`.
fn split(all: &[Seen], last: usize) -> usize {
    let mut bounds = Bounds::NONE;
    let before: Vec<f64> = all[..last].iter().map(|one| trip_with(&mut bounds, one.1, *one)).collect();
    let mut bounds = Bounds::NONE;
    let mut after: Vec<f64> = all.iter().rev().map(|one| trip_with(&mut bounds, -one.1, *one)).collect();
    after.reverse();
    let trips = |count: usize| before[count - 1] + after[count];
    let finite = || (1..=last).filter(|count| trips(*count).is_finite());
    let most = finite().map(trips).fold(f64::NEG_INFINITY, f64::max);
    // Slow packets contradict no side. After a step forward those there are slower still on the wrong side of it, and
    // before it those back.
    let slower = usize::from(all[last].3 == 0);
    let mut excess = 0;
    let excesses: Vec<i64> = all.iter().map(|one| (excess += if one.3 == slower { -1 } else { 1 }, excess).1).collect();
    let likely = finite().filter(|count| trips(*count) >= most - LEAST_S * 1e9);
    likely.max_by_key(|count| excesses[count - 1]).unwrap_or(last + 1 - AGREE)
}

/// The fastest round trip of the packets up to this one, at this time.
fn trip_with(bounds: &mut Bounds, at: i64, one: Seen) -> f64 {
    *bounds = bounds.moved(at);
    bounds.add(one);
    bounds.trip()
}

/// A part, without packets that contradict those before.
fn stretch(all: &[Seen]) -> Stretch {
    let mut bounds = Bounds::NONE;
    let mut pairs = [Vec::new(), Vec::new()];
    for one in all {
        bounds = bounds.moved(one.1);
        if !bounds.contradicted(*one) {
            bounds.add(*one);
            pairs[one.3].push((one.1, one.2));
        }
    }
    let [there, back] = pairs;
    Stretch { number: all.first().map_or(0, |one| one.0), there, back }
}
