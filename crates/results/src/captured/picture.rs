//! The data of one direction of a connection that its pictures need.
//!
//! Packets fall into bins of time, each with the extremes of every quantity. Bins begin at a
//! microsecond and double in width when there are more than [`MOST_BINS`], so that a short connection is
//! drawn packet by packet and a long one with every peak. Retransmissions are kept one by one; of more
//! than [`MOST_MARKS`] those of the same cause in the same bin are merged.
//!
//! Cost: constant for each packet; at most a megabyte.

use lastmile_analysis::{Acknowledgement, Data, Kind, Phase};
use lastmile_units::Instant;

pub(super) const MOST_BINS: usize = 1_500;
/// Bins from which on there is memory for all.
const FEW_BINS: usize = 64;
pub(super) const MOST_MARKS: usize = 3_000;

/// The least and the largest value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent<T> {
    pub(super) low: T,
    pub(super) high: T,
}

/// The extremes of a quantity; `low` is above `high` before the first value. Then a value costs two comparisons, and
/// no branch that the processor could predict wrongly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extremes<T>(Extent<T>);

/// A number that an extent is of.
pub(super) trait Bounded: Ord + Copy {
    const LEAST: Self;
    const MOST: Self;
}

impl Bounded for i64 {
    const LEAST: Self = Self::MIN;
    const MOST: Self = Self::MAX;
}

impl Bounded for u64 {
    const LEAST: Self = Self::MIN;
    const MOST: Self = Self::MAX;
}

impl<T: Bounded> Default for Extremes<T> {
    fn default() -> Self {
        Self(Extent { low: T::MOST, high: T::LEAST })
    }
}

impl<T: Bounded> Extremes<T> {
    /// The extent of the values so far; `None` for none.
    pub(super) fn seen(self) -> Option<Extent<T>> {
        (self.0.low <= self.0.high).then_some(self.0)
    }

    fn widen(&mut self, low: T, high: T) {
        self.0 = Extent { low: self.0.low.min(low), high: self.0.high.max(high) };
    }

    fn join(&mut self, other: Self) {
        self.widen(other.0.low, other.0.high);
    }
}

/// A quantity that stays between packets: its extremes, and the value that stays.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Level {
    pub(super) extremes: Extremes<u64>,
    last: u64,
}

impl Level {
    fn set(&mut self, value: u64) {
        self.extremes.widen(value, value);
        self.last = value;
    }

    /// Adds the level after this one.
    fn join(&mut self, next: Self) {
        self.extremes.join(next.extremes);
        if next.extremes.seen().is_some() {
            self.last = next.last;
        }
    }

    /// The values to draw, one above the other; the last is the one that stays.
    pub(super) fn steps(self) -> impl Iterator<Item = u64> {
        let Extent { low, high } = self.extremes.0;
        let steps = if self.last == low { [high, low, low] } else { [low, high, self.last] };
        let between = low < self.last && self.last < high;
        let count = usize::from(low <= high) + usize::from(low < high) + usize::from(between);
        steps.into_iter().take(count)
    }
}

/// A span of time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bin {
    /// The time of its first packet, in microseconds.
    pub(super) at_us: u64,
    /// Offsets of new data.
    pub(super) data: Extremes<i64>,
    /// Offsets that SACK reported.
    pub(super) sack: Extremes<i64>,
    /// The highest offset acknowledged, and the edge of the window.
    pub(super) acked: Option<i64>,
    pub(super) edge: Option<i64>,
    /// Octets acknowledged.
    pub(super) progress: u64,
    pub(super) outstanding: Level,
    pub(super) window: Level,
    pub(super) phase: Phase,
    pub(super) round_trip_us: Extremes<u64>,
    /// Distances between ACKs, and between the data that they acknowledge.
    pub(super) ack_gap_us: Extremes<u64>,
    pub(super) data_gap_us: Extremes<u64>,
}

impl Bin {
    fn sender(&mut self, sender: &lastmile_analysis::Sender) {
        self.outstanding.set(sender.outstanding);
        if let Some(window) = sender.congestion_window {
            self.window.set(window);
        }
        self.phase = sender.phase;
    }

    /// Adds the bin after this one.
    fn add(&mut self, next: &Self) {
        self.data.join(next.data);
        self.sack.join(next.sack);
        self.acked = self.acked.max(next.acked);
        self.edge = next.edge.or(self.edge);
        self.progress += next.progress;
        self.outstanding.join(next.outstanding);
        self.window.join(next.window);
        self.phase = next.phase;
        self.round_trip_us.join(next.round_trip_us);
        self.ack_gap_us.join(next.ack_gap_us);
        self.data_gap_us.join(next.data_gap_us);
    }
}

/// A retransmission, or a packet that the network duplicated or reordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mark {
    pub(super) at_us: u64,
    pub(super) start: i64,
    pub(super) kind: Kind,
}

#[derive(Debug, Default)]
pub(super) struct Picture {
    bins: Vec<Bin>,
    /// Bins are 2^this microseconds wide.
    width: u32,
    marks: Vec<Mark>,
    marks_width: u32,
    bytes: u64,
}

impl Picture {
    pub(super) fn bins(&self) -> usize {
        self.bins.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn all(&self) -> &[Bin] {
        &self.bins
    }

    pub(super) fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// A packet of this direction with data, SYN or FIN.
    pub(super) fn data(&mut self, at: Instant, data: &Data, payload: u16) {
        self.bytes += u64::from(payload);
        let at_us = at.as_ps() / 1_000_000;
        let bin = self.bin(at_us);
        bin.sender(&data.sender);
        if data.kind == Kind::New {
            bin.data.widen(data.start, data.end);
            return;
        }
        self.marks.push(Mark { at_us, start: data.start, kind: data.kind });
        while self.marks.len() > MOST_MARKS {
            self.marks_width += 1;
            let width = self.marks_width;
            self.marks.dedup_by_key(|mark| (mark.at_us >> width, mark.kind));
        }
    }

    /// An acknowledgement of this direction's data.
    pub(super) fn ack(&mut self, at: Instant, ack: &Acknowledgement) {
        let bin = self.bin(at.as_ps() / 1_000_000);
        bin.sender(&ack.sender);
        bin.acked = bin.acked.max(Some(ack.offset));
        if let Some(window) = ack.window {
            bin.edge = Some(ack.offset.saturating_add_unsigned(window));
        }
        bin.progress += ack.advance;
        for (left, right) in ack.sack.iter().filter(|(left, right)| left < right && *left >= ack.offset) {
            bin.sack.widen(*left, *right);
        }
        if let Some(trip) = ack.round_trip {
            bin.round_trip_us.widen(trip.as_us(), trip.as_us());
        }
        if let Some((acks, data)) = ack.spacing {
            bin.ack_gap_us.widen(acks.as_us(), acks.as_us());
            bin.data_gap_us.widen(data.as_us(), data.as_us());
        }
    }

    /// The bin of this time, which is not before the last.
    fn bin(&mut self, at_us: u64) -> &mut Bin {
        if self.is_past(at_us) {
            if self.bins.len() >= MOST_BINS {
                self.merge();
            }
            if self.is_past(at_us) {
                if self.bins.len() == FEW_BINS {
                    // Memory that is not used yet costs nothing, and moving it does.
                    self.bins.reserve_exact(MOST_BINS - FEW_BINS);
                }
                self.bins.push(Bin { at_us, ..Bin::default() });
            }
        }
        self.bins.last_mut().expect("it has just been added")
    }

    /// True for a time after the last bin.
    fn is_past(&self, at_us: u64) -> bool {
        self.bins.last().is_none_or(|last| last.at_us >> self.width < at_us >> self.width)
    }

    /// Doubles the width until a quarter of the bins is gone.
    fn merge(&mut self) {
        while self.bins.len() > MOST_BINS - MOST_BINS / 4 {
            self.width += 1;
            let width = self.width;
            self.bins.dedup_by(|next, bin| {
                let same = next.at_us >> width == bin.at_us >> width;
                if same {
                    bin.add(next);
                }
                same
            });
        }
    }
}
