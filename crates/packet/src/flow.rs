//! Flow identity.

/// A unidirectional flow: one protocol, source and destination address and port. Exact, never a hash: two flows with one
/// identity would have their acknowledgements merged.
///
/// The simulator gives connection `c` the flows `2c` (from the side that opens) and `2c + 1` (back). Live programs intern
/// addresses and ports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct FlowId(u32);

impl FlowId {
    /// The flow with this index.
    #[must_use]
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// The index of the flow.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0
    }
}
