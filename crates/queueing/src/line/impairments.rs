//! Impairments of the wire: losses in bursts, bit errors, jitter, reordering and duplicates.
//!
//! Purpose: the wires that a constant delay and independent losses do not describe. Both clocks
//! use the same code and, for one seed, the same random numbers.
//! Source: the words of netem (tc-netem(8)); the models have their sources in their files.
//! Differs from netem: impairments act behind the transmitter, so a lost packet has used the line
//! and a duplicate has not; correlation keeps the marginal distribution; packets stay in order
//! unless [`Impairments::reorder`] says otherwise. Losses and duplicates count as in sch_netem.c: a packet that is lost
//! and duplicated arrives once, and the copy of another one passes the losses, too. Bit errors spoil a packet with its
//! copy.
//! Cost: a random number or two per impairment and packet; an overtaking packet moves those that
//! it overtakes. A line without impairments pays one branch per packet.

use lastmile_units::{Duration, Instant, Ratio};

use crate::random::Stream;

mod chance;
mod errors;
mod jitter;
mod loss;

pub use chance::Chance;
pub use errors::BitErrorRate;
pub use jitter::{Distribution, Jitter};
pub use loss::{GilbertElliott, LossModel, States};

use chance::Draws;
use errors::Errors;
use jitter::Deviations;
use loss::Losses;

/// Impairments of one direction of a line. The default has none.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Impairments {
    /// Losses that depend on those before, in addition to the independent ones of the line.
    pub loss: Option<LossModel>,
    /// Bits that arrive wrong, which spoil their packet.
    pub bit_errors: Option<BitErrorRate>,
    /// Packets that are duplicated.
    pub duplicate: Option<Chance>,
    /// Variation of the delay.
    pub jitter: Option<Jitter>,
    /// Packets that may overtake others. `None`: packets arrive in the order in which they were
    /// transmitted, however the delay varies.
    pub reorder: Option<Reorder>,
}

impl Impairments {
    /// True if the delay of a packet may be less than the delay of the line.
    #[must_use]
    pub fn may_hasten(&self) -> bool {
        self.jitter.is_some() || self.reorder.is_some()
    }

    /// The least delay of a packet on a wire of this delay.
    #[must_use]
    pub fn least(&self, delay: Duration) -> Duration {
        match self.reorder {
            Some(Reorder::Overtaking { .. }) => Duration::ZERO,
            _ => self.jitter.as_ref().map_or(delay, |jitter| jitter.least(delay)),
        }
    }

    /// True if packets may arrive in another order, or more than once.
    #[must_use]
    pub fn disorders(&self) -> bool {
        self.reorder.is_some() || self.duplicate.is_some()
    }
}

/// The rule by which packets overtake others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reorder {
    /// A packet overtakes an earlier one if its drawn delay is shorter by more than the time between the two.
    ByDelay,
    /// Packets that arrive without delay and jitter, as netem's `reorder`; the others stay in order.
    Overtaking {
        /// The chance that a packet that may overtake does so.
        chance: Chance,
        /// One in this number of packets may overtake, counted from the last that did; 1: each may.
        gap: u32,
    },
}

/// The impairments of a wire, with the random numbers that they draw and what they remember.
#[derive(Debug)]
pub(super) struct Wire {
    loss: Option<Losses>,
    errors: Option<Errors>,
    duplicates: Option<Draws>,
    /// Independent losses of the copies.
    copies: Stream,
    jitter: Option<Deviations>,
    order: Order,
}

/// The order in which packets arrive.
#[derive(Debug)]
enum Order {
    /// As transmitted. Holds the latest arrival.
    Kept(Instant),
    /// As their delays have it.
    ByDelay,
    /// Some arrive at once, the others as transmitted.
    Overtaking { draws: Draws, gap: u32, since: u32, latest: Instant },
}

impl Wire {
    /// `None` without impairments. Every impairment draws from a stream of its own, derived from
    /// `stream`, so that adding one changes no other.
    pub(super) fn new(config: &Impairments, stream: &Stream) -> Option<Box<Self>> {
        if *config == Impairments::default() {
            return None;
        }
        let order = match config.reorder {
            None => Order::Kept(Instant::ZERO),
            Some(Reorder::ByDelay) => Order::ByDelay,
            Some(Reorder::Overtaking { chance, gap }) => {
                let draws = Draws::new(chance, stream.child("reorder"));
                Order::Overtaking { draws, gap, since: 0, latest: Instant::ZERO }
            }
        };
        Some(Box::new(Self {
            loss: config.loss.map(|model| Losses::new(model, stream.child("loss model"))),
            errors: config.bit_errors.map(|rate| Errors::new(rate, stream.child("bit errors"))),
            duplicates: config.duplicate.map(|chance| Draws::new(chance, stream.child("duplicate"))),
            copies: stream.child("copies"),
            jitter: config.jitter.clone().map(|jitter| Deviations::new(jitter, stream.child("jitter"))),
            order,
        }))
    }

    /// Draws whether the loss model loses the next packet.
    pub(super) fn loses(&mut self) -> bool {
        self.loss.as_mut().is_some_and(Losses::next)
    }

    /// Draws whether the copy of a packet is lost: independently with this share, or by the loss model.
    pub(super) fn loses_copy(&mut self, share: Ratio) -> bool {
        self.copies.chance(share.as_parts_per_billion()) | self.loses()
    }

    /// Draws whether one of the next `bits` bits is wrong.
    pub(super) fn spoils(&mut self, bits: u64) -> bool {
        self.errors.as_mut().is_some_and(|errors| errors.within(bits))
    }

    /// Draws whether the next packet is duplicated.
    pub(super) fn duplicates(&mut self) -> bool {
        self.duplicates.as_mut().is_some_and(Draws::next)
    }

    /// The arrival of a packet whose transmission ended at `sent`, on a line of this delay.
    pub(super) fn arrival(&mut self, sent: Instant, delay: Duration) -> Instant {
        if let Order::Overtaking { draws, gap, since, .. } = &mut self.order {
            *since += 1;
            if *since >= *gap && draws.next() {
                *since = 0;
                return sent;
            }
        }
        let arrives = sent + self.jitter.as_mut().map_or(delay, |jitter| jitter.next(delay));
        match &mut self.order {
            Order::Kept(latest) | Order::Overtaking { latest, .. } => {
                *latest = arrives.max(*latest);
                *latest
            }
            Order::ByDelay => arrives,
        }
    }
}
