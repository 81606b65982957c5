//! Flows: their two ends, and where the state of each is.

use lastmile_packet::FlowId;

use crate::event::Token;

/// The two ends of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Side {
    /// Where the data comes from.
    From = 0,
    /// Where it goes.
    To = 1,
}

impl Side {
    /// The end that a packet of this flow is bound for.
    #[inline]
    pub(crate) fn bound_for(flow: FlowId) -> Self {
        if flow.index() & 1 == 0 { Self::To } else { Self::From }
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

/// What a flow is. Its path and its state are looked up together, for every packet, so both take eight bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowEntry {
    pub(crate) traffic: u32,
    /// The kind of its place in the upper bits, the index in the lower.
    place: u32,
}

/// Where a flow's state is: an index into the hosts' list of its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Transfer(u32),
    Datagrams(u32),
    Ping(u32),
    /// A web user, a swarm: what opens connections of its own.
    Web(u32),
    Swarm(u32),
    /// A connection that one of them opened.
    Owned(u32),
    /// A replay, or one of the flows that it replays.
    Replay(u32),
    /// Such a connection is over: what still arrives finds nobody.
    Gone,
}

impl FlowEntry {
    pub(crate) fn new(traffic: u32, place: Place) -> Self {
        Self { traffic, place: place.packed() }
    }

    /// Where its state is.
    #[inline]
    pub(crate) fn place(self) -> Place {
        let index = self.place & (Token::INDEX_LIMIT - 1);
        match self.place >> Token::INDEX_BITS {
            0 => Place::Transfer(index),
            1 => Place::Datagrams(index),
            2 => Place::Ping(index),
            3 => Place::Web(index),
            4 => Place::Swarm(index),
            5 => Place::Owned(index),
            6 => Place::Replay(index),
            _ => Place::Gone,
        }
    }

    /// Its state is elsewhere from now on.
    pub(crate) fn move_to(&mut self, place: Place) {
        self.place = place.packed();
    }
}

impl Place {
    fn packed(self) -> u32 {
        let (kind, index) = match self {
            Self::Transfer(index) => (0, index),
            Self::Datagrams(index) => (1, index),
            Self::Ping(index) => (2, index),
            Self::Web(index) => (3, index),
            Self::Swarm(index) => (4, index),
            Self::Owned(index) => (5, index),
            Self::Replay(index) => (6, index),
            Self::Gone => (7, 0),
        };
        assert!(index < Token::INDEX_LIMIT, "a network has fewer flows: it was checked");
        kind << Token::INDEX_BITS | index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_tells_its_place() {
        for index in [0, 1, 77, Token::INDEX_LIMIT - 1] {
            let several =
                [Place::Transfer, Place::Datagrams, Place::Ping, Place::Web, Place::Swarm, Place::Owned, Place::Replay];
            for place in several.map(|kind| kind(index)).into_iter().chain([Place::Gone]) {
                let entry = FlowEntry::new(5, place);
                assert_eq!((entry.traffic, entry.place()), (5, place));
                let mut moved = FlowEntry::new(5, Place::Gone);
                moved.move_to(place);
                assert_eq!(moved.place(), place);
            }
        }
    }
}
