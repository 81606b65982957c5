//! The kinds of events, and their packed form in the pending set.

use crate::network::flow::{INDEX_BITS, INDEX_LIMIT, Side};
use crate::network::route::LinkIndex;

/// An event of a simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A link's transmitter may take its next packet.
    Transmit(LinkIndex),
    /// A packet reaches the far end of a link.
    Arrive(LinkIndex),
    /// A flow begins.
    Start(u32),
    /// A flow's application stops offering data.
    Stop(u32),
    /// The timer of a TCP endpoint: index of the transfer, and side.
    Timer(u32, Side),
    /// The application of a flow sends its next packet, writes its next data, or continues its session.
    Source(u32),
    /// A packet may leave the links of cells.
    Cells,
    /// The next sample of the series is due.
    Sample,
    /// The `start` of a traffic: a snapshot is due.
    Mark,
}

/// An event in four bytes, so that the pending set stays small: the kind in three bits, and the index of a
/// link, flow or transfer in [`INDEX_BITS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token(u32);

impl Token {
    #[inline]
    fn new(kind: u32, index: u32) -> Self {
        debug_assert!(index < INDEX_LIMIT, "an index of {index} does not fit a token");
        Self(kind << INDEX_BITS | index)
    }

    /// Unpacks the event.
    #[inline]
    pub(crate) fn event(self) -> Event {
        let index = self.0 & (INDEX_LIMIT - 1);
        match self.0 >> INDEX_BITS {
            0 => Event::Transmit(index),
            1 => Event::Arrive(index),
            2 => Event::Start(index),
            3 => Event::Stop(index),
            4 => Event::Timer(index, Side::Sender),
            5 => Event::Timer(index, Side::Receiver),
            6 => Event::Source(index),
            _ if index == 0 => Event::Sample,
            _ if index == 1 => Event::Cells,
            _ => Event::Mark,
        }
    }
}

impl From<Event> for Token {
    #[inline(always)]
    fn from(event: Event) -> Self {
        match event {
            Event::Transmit(link) => Self::new(0, link),
            Event::Arrive(link) => Self::new(1, link),
            Event::Start(flow) => Self::new(2, flow),
            Event::Stop(flow) => Self::new(3, flow),
            Event::Timer(transfer, Side::Sender) => Self::new(4, transfer),
            Event::Timer(transfer, Side::Receiver) => Self::new(5, transfer),
            Event::Source(flow) => Self::new(6, flow),
            Event::Sample => Self::new(7, 0),
            Event::Cells => Self::new(7, 1),
            Event::Mark => Self::new(7, 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_unpacks_to_its_event() {
        for index in [0, 1, 77, INDEX_LIMIT - 1] {
            let timers = [Event::Timer(index, Side::Sender), Event::Timer(index, Side::Receiver)];
            let links = [Event::Transmit(index), Event::Arrive(index)];
            let flows = [Event::Start(index), Event::Stop(index), Event::Source(index)];
            let others = [Event::Sample, Event::Cells, Event::Mark];
            for event in timers.into_iter().chain(links).chain(flows).chain(others) {
                assert_eq!(Token::from(event).event(), event);
            }
        }
    }
}
