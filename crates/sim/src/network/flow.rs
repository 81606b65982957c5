//! The flow table: for each flow number its traffic and the index of its state.

use lastmile_packet::FlowId;

/// The two ends of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Side {
    /// The source of the data.
    Sender = 0,
    /// The destination of the data.
    Receiver = 1,
}

impl Side {
    /// The destination of the packets of `flow`: even numbers carry data, odd numbers the way back.
    #[inline]
    pub(crate) fn bound_for(flow: FlowId) -> Self {
        if flow.index() & 1 == 0 { Self::Receiver } else { Self::Sender }
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

/// A flow in eight bytes: every packet looks up its traffic, for the route, and its state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowEntry {
    pub(crate) traffic: u32,
    /// The kind of the state in the upper bits, its index in the lower [`INDEX_BITS`].
    state: u32,
}

/// The state of a flow: an index into the list of its kind in the hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StateIndex {
    Transfer(u32),
    Datagrams(u32),
    Ping(u32),
    /// An application that requests data. It opens connections.
    Client(u32),
    /// A swarm. It opens connections.
    Swarm(u32),
    /// A connection that an application or a swarm opened: an index into the transfers.
    Opened(u32),
    /// A replay, or one of the flows that it replays.
    Replay(u32),
    /// A conference or a game.
    Dialogue(u32),
    /// A ping of a controller of shapers, or its clock.
    Autorate(u32),
    /// A connection that is closed. Its late packets are discarded.
    Closed,
}

/// Bits of an index that is packed with one of sixteen kinds into four bytes.
pub(crate) const INDEX_BITS: u32 = 28;
/// Indices are below this limit.
pub(crate) const INDEX_LIMIT: u32 = 1 << INDEX_BITS;

const _: () = assert!(lastmile_model::Network::FLOW_LIMIT <= INDEX_LIMIT as u64);

impl FlowEntry {
    pub(crate) fn new(traffic: u32, state: StateIndex) -> Self {
        Self { traffic, state: state.packed() }
    }

    #[inline]
    pub(crate) fn state(self) -> StateIndex {
        let index = self.state & (INDEX_LIMIT - 1);
        match self.state >> INDEX_BITS {
            0 => StateIndex::Transfer(index),
            1 => StateIndex::Datagrams(index),
            2 => StateIndex::Ping(index),
            3 => StateIndex::Client(index),
            4 => StateIndex::Swarm(index),
            5 => StateIndex::Opened(index),
            6 => StateIndex::Replay(index),
            7 => StateIndex::Dialogue(index),
            8 => StateIndex::Autorate(index),
            _ => StateIndex::Closed,
        }
    }
}

impl StateIndex {
    fn packed(self) -> u32 {
        let (kind, index) = match self {
            Self::Transfer(index) => (0, index),
            Self::Datagrams(index) => (1, index),
            Self::Ping(index) => (2, index),
            Self::Client(index) => (3, index),
            Self::Swarm(index) => (4, index),
            Self::Opened(index) => (5, index),
            Self::Replay(index) => (6, index),
            Self::Dialogue(index) => (7, index),
            Self::Autorate(index) => (8, index),
            Self::Closed => (9, 0),
        };
        assert!(index < INDEX_LIMIT, "Network::check limits the number of flows");
        kind << INDEX_BITS | index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_returns_its_traffic_and_state() {
        for index in [0, 1, 77, INDEX_LIMIT - 1] {
            let kinds = [
                StateIndex::Transfer,
                StateIndex::Datagrams,
                StateIndex::Ping,
                StateIndex::Client,
                StateIndex::Swarm,
                StateIndex::Opened,
                StateIndex::Replay,
                StateIndex::Dialogue,
                StateIndex::Autorate,
            ];
            for state in kinds.map(|kind| kind(index)).into_iter().chain([StateIndex::Closed]) {
                let entry = FlowEntry::new(5, state);
                assert_eq!((entry.traffic, entry.state()), (5, state));
            }
        }
    }
}
