//! Flow numbers and transfers for connections that web users and swarms open.
//!
//! A connection has a flow number while it is open, so that queues and regulators can distinguish its
//! packets. The numbers follow those of the traffic list. When both ends are done, the next connection takes
//! over its transfer. The number rests for 60 s, as TIME-WAIT keeps a port, so that late packets reach nobody
//! (RFC 9293 recommends up to 4 minutes). The memory of a run thus follows the number of open connections,
//! and the flow table the connections of a minute.

use std::collections::VecDeque;

use lastmile_packet::SeqNumber;
use lastmile_queueing::random::Stream;
use lastmile_units::{Duration, Instant};

use lastmile_model::{Network, number_of};

/// The time for which the number of a closed connection rests.
const REST: Duration = Duration::from_s(60);

/// Free transfers and free flow numbers.
pub(crate) struct ConnectionPool {
    /// Free indices of the hosts' list of transfers.
    free: Vec<u32>,
    /// By traffic or user that opens connections, in the order of the list.
    numbers: Vec<NumberPool>,
    initial_numbers: Stream,
}

/// The flow numbers of the connections of one traffic, or of one of its users ([`Traffic::opening_members`]).
struct NumberPool {
    /// The first flow number of its users. That of the next pool's follows.
    owner: u32,
    /// Numbers used so far.
    count: u32,
    /// Resting numbers with the end of their rest, in order of time.
    resting: VecDeque<(Instant, u32)>,
}

impl ConnectionPool {
    pub(crate) fn new(network: &Network) -> Self {
        let mut next = 0;
        let owners = network.traffic.iter().flat_map(|traffic| {
            let first = next;
            next += traffic.count;
            traffic.opening_members().map(move |member| first + member)
        });
        Self {
            free: Vec::new(),
            numbers: owners.map(|owner| NumberPool { owner, count: 0, resting: VecDeque::new() }).collect(),
            initial_numbers: Stream::new(network.seed, "initial sequence numbers of short connections"),
        }
    }

    fn index_of(&self, owner: u32) -> usize {
        self.numbers.partition_point(|pool| pool.owner <= owner) - 1
    }

    /// Draws the initial sequence numbers of a connection.
    pub(crate) fn initial_numbers(&mut self) -> [SeqNumber; 2] {
        [(); 2].map(|()| SeqNumber::new(self.initial_numbers.bits() as u32))
    }

    /// Takes a flow number for a connection that the user with flow number `owner` opens. Numbers below `first` belong
    /// to other flows.
    pub(crate) fn take_number(&mut self, now: Instant, owner: u32, first: u32) -> u32 {
        let (index, pools) = (self.index_of(owner), self.numbers.len() as u32);
        let pool = &mut self.numbers[index];
        if pool.resting.front().is_some_and(|(until, _)| *until <= now)
            && let Some((_, number)) = pool.resting.pop_front()
        {
            return number;
        }
        pool.count += 1;
        number_of(first, pools, index as u32, pool.count - 1)
    }

    /// Takes the index of a free transfer.
    pub(crate) fn take_transfer(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Gives back the flow number and the transfer of a closed connection that `owner` had opened.
    pub(crate) fn give_back(&mut self, now: Instant, owner: u32, number: u32, transfer: u32) {
        let index = self.index_of(owner);
        self.numbers[index].resting.push_back((now + REST, number));
        self.free.push(transfer);
    }
}
