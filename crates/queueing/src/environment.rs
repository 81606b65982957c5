//! The surroundings of a tree of disciplines: the line below it, and knowledge of the flows in it.

use std::sync::Arc;

use lastmile_linklayer::{LinkLayer, preset};
use lastmile_packet::{FlowDirectory, HashKey, NumberedFlows};

use crate::ack::Handshakes;
use crate::random::Stream;

/// Surroundings for which [`crate::Spec::build_in`] builds a tree.
#[derive(Clone)]
pub struct Environment {
    /// Encapsulation of the line.
    pub link_layer: LinkLayer,
    /// Addresses and first payload bytes of flows whose packets do not carry them.
    pub flows: Arc<dyn FlowDirectory>,
    /// Hash key for tables of connections and hosts. Random wherever strangers choose addresses and
    /// ports.
    pub hash_key: HashKey,
    /// Handshakes seen in both directions: one value shared by all trees of one place.
    pub handshakes: Arc<Handshakes>,
    /// The random stream of this tree, from which each discipline takes one of its own. `None`: the seeds of the
    /// disciplines alone decide.
    pub random: Option<Stream>,
}

impl Environment {
    /// A line whose packets carry their bytes, or are simulated and known by their flow number alone.
    #[must_use]
    pub fn new(link_layer: LinkLayer) -> Self {
        let flows = Arc::new(NumberedFlows);
        Self { link_layer, flows, hash_key: HashKey::default(), handshakes: Arc::default(), random: None }
    }

    /// This environment with another directory of flows.
    #[must_use]
    pub fn with_flows(self, flows: Arc<dyn FlowDirectory>) -> Self {
        Self { flows, ..self }
    }

    /// This environment, sharing `handshakes` with other trees.
    #[must_use]
    pub fn with_handshakes(self, handshakes: Arc<Handshakes>) -> Self {
        Self { handshakes, ..self }
    }

    /// This environment, whose disciplines take their random streams from `random`.
    #[must_use]
    pub fn with_random(self, random: Stream) -> Self {
        Self { random: Some(random), ..self }
    }
}

/// A line without overhead: IP packets alone.
impl Default for Environment {
    fn default() -> Self {
        Self::new(preset::IP.link)
    }
}
