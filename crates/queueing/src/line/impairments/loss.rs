//! Losses in bursts.
//!
//! [`GilbertElliott`]: a chain of a good and a bad state, each with a share of losses (Gilbert 1960,
//! Elliott 1963; netem's `loss gemodel`). The mean share of losses is
//! `(p (1-h) + r (1-k)) / (p + r)`, and the bad state lasts `1 / r` packets in the mean. [`States`]:
//! the four states of netem's `loss state` (Salsano, Ludovici, Ordine, Giannuzzi: "Definition of a
//! general and intuitive loss model for packet networks and its implementation in the Netem module
//! in the Linux kernel", 2012): received, lost in a burst, received within a burst, lost alone.
//!
//! Differs from netem: in [`GilbertElliott`] the state after a transition decides about the packet, in
//! netem the state before it. Shares of losses and lengths of bursts are equal.

use lastmile_units::Ratio;

use super::chance::{Chance, Draws};
use crate::random::Stream;

/// The rule by which the wire loses packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossModel {
    /// A share, each loss correlated with the packet before.
    Correlated(Chance),
    /// Two states, each with a share of losses.
    GilbertElliott(GilbertElliott),
    /// Four states.
    States(States),
}

/// A chain of two states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GilbertElliott {
    /// Probability of a transition from the good to the bad state, with each packet: `p`.
    pub to_bad: Ratio,
    /// Probability of a transition from the bad to the good state, with each packet: `r`.
    pub to_good: Ratio,
    /// Share of losses in the bad state: `1-h`.
    pub bad: Ratio,
    /// Share of losses in the good state: `1-k`.
    pub good: Ratio,
}

/// A chain of four states: 1 received in a gap, 2 received within a burst, 3 lost in a burst, 4 lost
/// alone in a gap. The names are those of netem: `p13` is the probability of state 3 after state 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct States {
    /// A burst of losses begins.
    pub p13: Ratio,
    /// A burst of losses ends.
    pub p31: Ratio,
    /// A burst of losses pauses: packets are received.
    pub p32: Ratio,
    /// A burst of losses continues after a pause.
    pub p23: Ratio,
    /// A packet is lost alone.
    pub p14: Ratio,
}

/// A loss model as it stands.
#[derive(Debug)]
pub(super) enum Losses {
    Correlated(Draws),
    GilbertElliott { model: GilbertElliott, is_bad: bool, stream: Stream },
    States { model: States, state: State, stream: Stream },
}

/// The state of the packet before.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    Received,
    ReceivedInBurst,
    LostInBurst,
    LostAlone,
}

impl Losses {
    pub(super) fn new(model: LossModel, stream: Stream) -> Self {
        match model {
            LossModel::Correlated(chance) => Self::Correlated(Draws::new(chance, stream)),
            LossModel::GilbertElliott(model) => Self::GilbertElliott { model, is_bad: false, stream },
            LossModel::States(model) => Self::States { model, state: State::Received, stream },
        }
    }

    /// Whether the next packet is lost.
    pub(super) fn next(&mut self) -> bool {
        match self {
            Self::Correlated(draws) => draws.next(),
            Self::GilbertElliott { model, is_bad, stream } => {
                let leaves = if *is_bad { model.to_good } else { model.to_bad };
                *is_bad ^= stream.chance(leaves.as_parts_per_billion());
                let lost = if *is_bad { model.bad } else { model.good };
                stream.chance(lost.as_parts_per_billion())
            }
            Self::States { model, state, stream } => {
                *state = state.next(model, stream);
                matches!(state, State::LostInBurst | State::LostAlone)
            }
        }
    }
}

impl State {
    fn next(self, model: &States, stream: &mut Stream) -> Self {
        let (first, second, otherwise) = match self {
            Self::Received => ((model.p13, Self::LostInBurst), (model.p14, Self::LostAlone), Self::Received),
            Self::LostInBurst => ((model.p31, Self::Received), (model.p32, Self::ReceivedInBurst), Self::LostInBurst),
            Self::ReceivedInBurst => {
                ((model.p23, Self::LostInBurst), (Ratio::ZERO, Self::Received), Self::ReceivedInBurst)
            }
            // A loss alone is followed by a packet that is received.
            Self::LostAlone => return Self::Received,
        };
        let drawn = stream.below(1_000_000_000);
        let [one, two] = [first.0, second.0].map(|share| u64::from(share.as_parts_per_billion()));
        if drawn < one {
            first.1
        } else if drawn < one + two {
            second.1
        } else {
            otherwise
        }
    }
}
