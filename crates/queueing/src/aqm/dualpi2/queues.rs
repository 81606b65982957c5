//! The two queues of DualPI2: their packets, their common limit, and whose turn it is.

use std::collections::VecDeque;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{ByteCount, Duration, Instant, Limit, PacketCount, Ratio, WireBytes};

use crate::Backlog;
use crate::aqm::Full;
use crate::fifo::Capacity;

/// One of the two queues, and the number of its class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Queue {
    /// The L queue: for senders that respond to every mark.
    Shallow,
    /// The C queue: for all others.
    Classic,
}

/// A packet of the shallow queue, and if the step applies to it.
#[derive(Clone, Debug)]
struct Shallow<P> {
    packet: P,
    subject_to_step: bool,
}

/// Shares are counted in this many parts.
const PARTS: i64 = 1_000_000_000;

#[derive(Clone, Debug)]
pub(super) struct Queues<P: Packet> {
    shallow: VecDeque<Shallow<P>>,
    classic: VecDeque<P>,
    capacity: Capacity,
    wire: WireBytes,
    link_layer: LinkLayer,
    /// Parts of the rate for the classic queue.
    classic_share: i64,
    /// The turn is the classic queue's while this is positive, in bytes on the wire times parts.
    credit: i64,
    /// The credit while one of the queues is empty.
    initial_credit: i64,
}

impl<P: Packet> Queues<P> {
    /// `None` if the limit is in cells and `link_layer` has none.
    pub(super) fn new(limit: Limit, link_layer: &LinkLayer, share: Ratio, largest: WireBytes) -> Option<Self> {
        let classic_share = i64::from(share.as_parts_per_billion());
        let initial_credit = (2 * classic_share - PARTS) * largest.as_u64() as i64;
        Some(Self {
            shallow: VecDeque::new(),
            classic: VecDeque::new(),
            capacity: Capacity::new(limit, link_layer)?,
            wire: WireBytes::ZERO,
            link_layer: *link_layer,
            classic_share,
            credit: initial_credit,
            initial_credit,
        })
    }

    /// The reason for which the packet cannot be enqueued, if any.
    pub(super) fn refuses(&self, packet: &P) -> Option<Full> {
        Full::of(&self.capacity, packet)
    }

    /// Enqueues a packet that is not refused. The step spares it if it finds at most `spared` others.
    pub(super) fn put(&mut self, queue: Queue, packet: P, spared: PacketCount) {
        self.capacity.take(&packet, self.capacity.size_of(&packet));
        self.wire += self.on_wire(packet.meta().ip_bytes());
        match queue {
            Queue::Classic => self.classic.push_back(packet),
            Queue::Shallow => {
                let subject_to_step = self.shallow.len() as u64 > spared.as_u64();
                self.shallow.push_back(Shallow { packet, subject_to_step });
            }
        }
    }

    /// The queue that sends next: the shallow one, unless the classic one has credit.
    pub(super) fn turn(&self) -> Option<Queue> {
        match (self.shallow.is_empty(), self.classic.is_empty()) {
            (true, true) => None,
            (true, false) => Some(Queue::Classic),
            (false, true) => Some(Queue::Shallow),
            (false, false) if self.credit <= 0 => Some(Queue::Shallow),
            (false, false) => Some(Queue::Classic),
        }
    }

    /// The oldest packet of a queue, and if the step applies to it.
    pub(super) fn pop(&mut self, queue: Queue) -> Option<(P, bool)> {
        let (packet, subject_to_step) = match queue {
            Queue::Classic => (self.classic.pop_front()?, false),
            Queue::Shallow => {
                let Shallow { packet, subject_to_step } = self.shallow.pop_front()?;
                (packet, subject_to_step)
            }
        };
        self.capacity.release(&packet);
        let size = self.on_wire(packet.meta().ip_bytes());
        self.wire -= size;
        let size = size.as_u64() as i64;
        match queue {
            Queue::Shallow if !self.classic.is_empty() => self.credit += size * self.classic_share,
            Queue::Classic if !self.shallow.is_empty() => self.credit -= size * (PARTS - self.classic_share),
            _ => self.credit = self.initial_credit,
        }
        Some((packet, subject_to_step))
    }

    /// The bytes that a packet takes on the wire.
    pub(super) fn on_wire(&self, size: ByteCount) -> WireBytes {
        self.link_layer.on_wire(size)
    }

    /// The age of the head of a queue; zero if it is empty.
    pub(super) fn wait(&self, queue: Queue, now: Instant) -> Duration {
        let head = match queue {
            Queue::Shallow => self.shallow.front().map(|held| &held.packet),
            Queue::Classic => self.classic.front(),
        };
        head.map_or(Duration::ZERO, |packet| now.since(packet.meta().arrived))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.shallow.is_empty() && self.classic.is_empty()
    }

    pub(super) const fn wire(&self) -> WireBytes {
        self.wire
    }

    pub(super) fn backlog(&self) -> Backlog {
        self.capacity.backlog(self.shallow.len() + self.classic.len())
    }
}
