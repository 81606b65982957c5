//! What can happen, and how little room it takes while it is pending.

use crate::flow::Side;
use crate::route::LinkIndex;

/// What can happen.
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
    /// A TCP endpoint asked to be woken: flow and side.
    Timer(u32, Side),
    /// A datagram source sends its next packet.
    Source(u32),
    /// A packet may leave the links of cells.
    Cells,
    /// Time to sample the series.
    Sample,
    /// Some traffic is due to start: time for a snapshot.
    Mark,
}

/// An event in four bytes, so that the pending set stays small: what happens in three bits, and to which link, flow or
/// transfer in [`Token::INDEX_BITS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token(u32);

const _: () = assert!(lastmile_model::Network::FLOW_LIMIT <= Token::INDEX_LIMIT as u64);

impl Token {
    /// What is left beside eight kinds of events.
    pub(crate) const INDEX_BITS: u32 = 29;
    /// Indices are below it.
    pub(crate) const INDEX_LIMIT: u32 = 1 << Self::INDEX_BITS;

    #[inline]
    fn new(kind: u32, index: u32) -> Self {
        debug_assert!(index < Self::INDEX_LIMIT, "an index of {index} does not fit a token");
        Self(kind << Self::INDEX_BITS | index)
    }

    /// The event.
    #[inline]
    pub(crate) fn event(self) -> Event {
        let index = self.0 & (Self::INDEX_LIMIT - 1);
        match self.0 >> Self::INDEX_BITS {
            0 => Event::Transmit(index),
            1 => Event::Arrive(index),
            2 => Event::Start(index),
            3 => Event::Stop(index),
            4 => Event::Timer(index, Side::From),
            5 => Event::Timer(index, Side::To),
            6 => Event::Source(index),
            _ if index == 0 => Event::Sample,
            _ if index == 1 => Event::Cells,
            _ => Event::Mark,
        }
    }
}

impl From<Event> for Token {
    #[inline]
    fn from(event: Event) -> Self {
        match event {
            Event::Transmit(link) => Self::new(0, link),
            Event::Arrive(link) => Self::new(1, link),
            Event::Start(flow) => Self::new(2, flow),
            Event::Stop(flow) => Self::new(3, flow),
            Event::Timer(transfer, Side::From) => Self::new(4, transfer),
            Event::Timer(transfer, Side::To) => Self::new(5, transfer),
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
    fn a_token_tells_its_event() {
        for index in [0, 1, 77, Token::INDEX_LIMIT - 1] {
            let timers = [Event::Timer(index, Side::From), Event::Timer(index, Side::To)];
            let links = [Event::Transmit(index), Event::Arrive(index)];
            let flows = [Event::Start(index), Event::Stop(index), Event::Source(index)];
            let others = [Event::Sample, Event::Cells, Event::Mark];
            for event in timers.into_iter().chain(links).chain(flows).chain(others) {
                assert_eq!(Token::from(event).event(), event);
            }
        }
    }
}
