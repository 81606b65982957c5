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
pub(super) const MOST_MARKS: usize = 3_000;

/// The least and the largest value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent<T> {
    pub(super) low: T,
    pub(super) high: T,
}

fn widen<T: Ord + Copy>(slot: &mut Option<Extent<T>>, low: T, high: T) {
    *slot = Some(slot.map_or(Extent { low, high }, |old| Extent { low: old.low.min(low), high: old.high.max(high) }));
}

fn join<T: Ord + Copy>(slot: &mut Option<Extent<T>>, other: Option<Extent<T>>) {
    if let Some(other) = other {
        widen(slot, other.low, other.high);
    }
}

/// A span of time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bin {
    /// Its number.
    slot: u64,
    /// The time of its first packet, in microseconds.
    pub(super) at_us: u64,
    /// Offsets of new data.
    pub(super) data: Option<Extent<i64>>,
    /// Offsets that SACK reported.
    pub(super) sack: Option<Extent<i64>>,
    /// The highest offset acknowledged, and the edge of the window.
    pub(super) acked: Option<i64>,
    pub(super) edge: Option<i64>,
    /// Octets acknowledged.
    pub(super) progress: u64,
    pub(super) outstanding: Option<Extent<u64>>,
    pub(super) window: Option<Extent<u64>>,
    /// The estimate after the last packet.
    pub(super) window_last: u64,
    pub(super) phase: Phase,
    pub(super) round_trip_us: Option<Extent<u64>>,
    /// Distances between ACKs, and between the data that they acknowledge.
    pub(super) ack_gap_us: Option<Extent<u64>>,
    pub(super) data_gap_us: Option<Extent<u64>>,
}

impl Bin {
    fn sender(&mut self, sender: &lastmile_analysis::Sender) {
        widen(&mut self.outstanding, sender.outstanding, sender.outstanding);
        if let Some(window) = sender.congestion_window {
            widen(&mut self.window, window, window);
            self.window_last = window;
        }
        self.phase = sender.phase;
    }

    /// Adds the bin after this one.
    fn add(&mut self, next: &Self) {
        join(&mut self.data, next.data);
        join(&mut self.sack, next.sack);
        self.acked = self.acked.max(next.acked);
        self.edge = next.edge.or(self.edge);
        self.progress += next.progress;
        join(&mut self.outstanding, next.outstanding);
        join(&mut self.window, next.window);
        if next.window.is_some() {
            self.window_last = next.window_last;
        }
        self.phase = next.phase;
        join(&mut self.round_trip_us, next.round_trip_us);
        join(&mut self.ack_gap_us, next.ack_gap_us);
        join(&mut self.data_gap_us, next.data_gap_us);
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
            widen(&mut bin.data, data.start, data.end);
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
            widen(&mut bin.sack, *left, *right);
        }
        if let Some(trip) = ack.round_trip {
            widen(&mut bin.round_trip_us, trip.as_us(), trip.as_us());
        }
        if let Some((acks, data)) = ack.spacing {
            widen(&mut bin.ack_gap_us, acks.as_us(), acks.as_us());
            widen(&mut bin.data_gap_us, data.as_us(), data.as_us());
        }
    }

    /// The bin of this time, which is not before the last.
    fn bin(&mut self, at_us: u64) -> &mut Bin {
        let slot = at_us >> self.width;
        if self.bins.last().is_none_or(|last| last.slot < slot) {
            if self.bins.len() >= MOST_BINS {
                self.merge();
            }
            let slot = at_us >> self.width;
            if self.bins.last().is_none_or(|last| last.slot < slot) {
                self.bins.push(Bin { slot, at_us, ..Bin::default() });
            }
        }
        self.bins.last_mut().expect("it has just been added")
    }

    /// Doubles the width until a quarter of the bins is gone.
    fn merge(&mut self) {
        while self.bins.len() > MOST_BINS - MOST_BINS / 4 {
            self.width += 1;
            self.bins.iter_mut().for_each(|bin| bin.slot >>= 1);
            self.bins.dedup_by(|next, bin| {
                let same = next.slot == bin.slot;
                if same {
                    bin.add(next);
                }
                same
            });
        }
    }
}
