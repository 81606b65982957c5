//! Where a tree of disciplines stands: the line below it, and what is known of the flows in it.

use std::sync::Arc;

use lastmile_linklayer::{LinkLayer, preset};
use lastmile_packet::{FlowDirectory, HashKey, NumberedFlows};

use crate::ack::Handshakes;

/// What [`crate::Spec::build_in`] builds a tree for.
#[derive(Clone)]
pub struct Environment {
    /// What an IP packet costs on the line.
    pub link_layer: LinkLayer,
    /// Addresses and first payload bytes of flows whose packets do not say them.
    pub flows: Arc<dyn FlowDirectory>,
    /// Key of the hashes of tables of connections and hosts: random ones wherever strangers choose addresses and ports.
    pub hash_key: HashKey,
    /// What trees of both directions know of handshakes: one value for all that stand in one place.
    pub handshakes: Arc<Handshakes>,
}

impl Environment {
    /// A line over which packets with bytes go, or simulated ones that are known by their number alone.
    #[must_use]
    pub fn new(link_layer: LinkLayer) -> Self {
        Self { link_layer, flows: Arc::new(NumberedFlows), hash_key: HashKey::default(), handshakes: Arc::default() }
    }

    /// The same with another directory of flows.
    #[must_use]
    pub fn with_flows(self, flows: Arc<dyn FlowDirectory>) -> Self {
        Self { flows, ..self }
    }

    /// The same beside trees that know of these handshakes.
    #[must_use]
    pub fn with_handshakes(self, handshakes: Arc<Handshakes>) -> Self {
        Self { handshakes, ..self }
    }
}

/// A line that costs nothing beside the IP packet.
impl Default for Environment {
    fn default() -> Self {
        Self::new(preset::IP.link)
    }
}
