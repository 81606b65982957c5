//! The transmitter: when a transmission may begin, and when it ends.

use std::sync::Arc;

use lastmile_linklayer::Pieces;
use lastmile_units::{BitRate, Duration, Instant, Serialiser, WireBytes};

use super::Config;
use super::grants::Station;
use super::trace::{Opportunities, Position, Step, Steps, Trace};
use crate::random::Stream;

const PS_PER_S: u128 = 1_000_000_000_000;

/// A transmitter of one line. Times only move forwards.
pub(super) enum Transmitter {
    /// Transmission takes no time.
    Instantaneous,
    /// A constant rate.
    Constant(Serialiser),
    /// Rate, delay and loss that change.
    Steps(Stepping),
    /// Blocks of bytes at stated times.
    Opportunities(Blocks),
    /// Spans that a head end grants on request. The line itself asks it what to send when
    /// ([`Station`]).
    Granted(Box<Station>),
}

impl Transmitter {
    /// The transmitter of a line whose random numbers come from children of `random`.
    pub(super) fn new(config: &Config, random: &Stream) -> Self {
        if let Some(grants) = &config.grants {
            return Self::Granted(Box::new(Station::new(grants, random)));
        }
        match (&config.trace, config.rate) {
            (Some(Trace::Steps(steps)), _) => Self::Steps(Stepping::new(Arc::clone(steps))),
            (Some(Trace::Opportunities(opportunities)), _) => {
                Self::Opportunities(Blocks::new(Arc::clone(opportunities)))
            }
            (None, Some(rate)) => Self::Constant(Serialiser::new(rate)),
            (None, None) => Self::Instantaneous,
        }
    }

    /// When a transmission that could begin at `at` may begin: after an outage, or at the next
    /// opportunity.
    #[inline]
    pub(super) fn ready(&self, at: Instant) -> Instant {
        match self {
            Self::Instantaneous | Self::Constant(_) | Self::Granted(_) => at,
            Self::Steps(stepping) => stepping.steps.sending(at).1,
            Self::Opportunities(blocks) => blocks.ready(at),
        }
    }

    /// Sends `wire` bytes from `start` on and returns the end. `back_to_back`: the transmission
    /// before ended at `start`.
    #[inline]
    pub(super) fn send(&mut self, start: Instant, wire: WireBytes, back_to_back: bool) -> Instant {
        match self {
            Self::Instantaneous => start,
            Self::Constant(serialiser) => {
                if !back_to_back {
                    serialiser.restart();
                }
                start + serialiser.advance(wire)
            }
            Self::Steps(stepping) => stepping.send(start, wire, back_to_back),
            Self::Opportunities(blocks) => blocks.send(start, wire),
            Self::Granted(station) => station.send(start, wire.as_u64(), back_to_back, true),
        }
    }

    /// Whether a transmission takes time.
    #[inline]
    pub(super) fn takes_time(&self) -> bool {
        !matches!(self, Self::Instantaneous)
    }

    /// The time from `start` to the end of `pieces` sent one behind the other without interruption,
    /// if the capacity stays as it is at `start`.
    pub(super) fn time_for(&self, start: Instant, pieces: Pieces) -> Duration {
        match self {
            Self::Instantaneous => Duration::ZERO,
            Self::Constant(serialiser) => pieces.map(|piece| serialiser.rate().time_for(piece)).sum(),
            Self::Granted(station) => station.rate().time_for(pieces.sum()),
            Self::Steps(_) => {
                let rate = self.step(start).and_then(|step| step.rate);
                rate.map_or(Duration::ZERO, |rate| pieces.map(|piece| rate.time_for(piece)).sum())
            }
            Self::Opportunities(blocks) => {
                let wire = pieces.sum();
                blocks.opportunities.time(blocks.end_of(start, wire).0).since(start)
            }
        }
    }

    /// The step that holds at `at`, on a line whose delay and loss change.
    #[inline]
    pub(super) fn step(&self, at: Instant) -> Option<Step> {
        match self {
            Self::Steps(stepping) => Some(stepping.steps.at(stepping.steps.position(at))),
            Self::Granted(station) => station.step(at),
            _ => None,
        }
    }

    /// Bits that the last transmission, which ends at `end`, has not sent by `now`.
    pub(super) fn unsent(&self, now: Instant, end: Instant) -> u128 {
        match self {
            Self::Instantaneous => 0,
            Self::Constant(serialiser) => {
                u128::from(end.since(now).as_ps()) * u128::from(serialiser.rate().as_bps()) / PS_PER_S
            }
            Self::Granted(station) => {
                u128::from(end.since(now).as_ps()) * u128::from(station.rate().as_bps()) / PS_PER_S
            }
            Self::Steps(stepping) => {
                let work = |at: Instant| stepping.steps.work_by(at.since(Instant::ZERO));
                (work(end).saturating_sub(work(now)) / PS_PER_S).min(stepping.last_bits.into())
            }
            Self::Opportunities(blocks) => {
                let work = |at: Instant| blocks.opportunities.work_by(at.since(Instant::ZERO)) / PS_PER_S;
                let until_end = work(end).saturating_sub(work(now)).saturating_sub(u128::from(blocks.left) * 8);
                until_end.min(blocks.last_bits.into())
            }
        }
    }
}

/// A rate that changes.
pub(super) struct Stepping {
    steps: Arc<Steps>,
    /// Work that the last transmission left to the next, in bits times 10^-12: ends are whole
    /// picoseconds.
    remainder: u128,
    /// Bits of the last transmission.
    last_bits: u64,
}

impl Stepping {
    fn new(steps: Arc<Steps>) -> Self {
        Self { steps, remainder: 0, last_bits: 0 }
    }

    /// Sends `wire` bytes from `start` on and returns the end.
    fn send(&mut self, start: Instant, wire: WireBytes, back_to_back: bool) -> Instant {
        let carried = if back_to_back { self.remainder } else { 0 };
        let bits = wire.as_u64() * 8;
        let mut work = u128::from(bits) * PS_PER_S + carried;
        let steps = &self.steps;
        let (mut position, mut at) = steps.sending(start);
        loop {
            let rate = u128::from(steps.at(position).rate.map_or(0, BitRate::as_bps));
            match steps.after(position) {
                // A transmission that ends with a step ends in it.
                Some((next, begins)) if work > rate * u128::from(begins.since(at).as_ps()) => {
                    work -= rate * u128::from(begins.since(at).as_ps());
                    (position, at) = (next, begins);
                }
                _ => {
                    at += Duration::from_ps(u64::try_from(work / rate).unwrap_or(u64::MAX));
                    self.remainder = work % rate;
                    break;
                }
            }
        }
        self.last_bits = bits;
        at
    }
}

/// Blocks of bytes at stated times.
pub(super) struct Blocks {
    opportunities: Arc<Opportunities>,
    /// The opportunity of the last transmission.
    position: Position,
    /// Bytes of it that are not used.
    left: u64,
    /// Bits of the last transmission.
    last_bits: u64,
}

impl Blocks {
    fn new(opportunities: Arc<Opportunities>) -> Self {
        let left = opportunities.bytes().as_u64();
        Self { opportunities, position: Position::default(), left, last_bits: 0 }
    }

    /// The first opportunity at or after `at` that is not used up, and its bytes. Opportunities
    /// that pass while nothing is ready are lost.
    fn next(&self, at: Instant) -> (Position, u64) {
        let whole = self.opportunities.bytes().as_u64();
        match self.opportunities.position(at) {
            position if position > self.position => (position, whole),
            _ if self.left > 0 => (self.position, self.left),
            _ => (self.opportunities.after(self.position), whole),
        }
    }

    fn ready(&self, at: Instant) -> Instant {
        self.opportunities.time(self.next(at).0)
    }

    /// The opportunity in which a transmission of `wire` bytes from `start` on ends, and the bytes
    /// that it leaves of it.
    fn end_of(&self, start: Instant, wire: WireBytes) -> (Position, u64) {
        let (mut position, mut left) = self.next(start);
        let mut bytes = wire.as_u64();
        while bytes > left {
            bytes -= left;
            (position, left) = (self.opportunities.after(position), self.opportunities.bytes().as_u64());
        }
        (position, left - bytes)
    }

    fn send(&mut self, start: Instant, wire: WireBytes) -> Instant {
        (self.position, self.left) = self.end_of(start, wire);
        self.last_bits = wire.as_u64() * 8;
        self.opportunities.time(self.position)
    }
}
