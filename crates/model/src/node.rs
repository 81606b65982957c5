//! The nodes of a network.

use lastmile_units::Duration;

/// Index of a node in [`crate::Network::nodes`].
pub type NodeIndex = usize;

/// A host or router.
#[derive(Clone, Debug)]
pub struct Node {
    /// Name, unique in the network.
    pub name: String,
    /// Constant delay for forwarding or receiving a packet.
    pub processing: Duration,
}
