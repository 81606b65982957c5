//! Counters of the directions of a bump.

use lastmile_model::outcome::{Buckets, GrantsOutcome, Waits};
use lastmile_queueing::Backlog;
use lastmile_queueing::line::{Count, Stats, grants};
use lastmile_units::{BitRate, CellCount, Instant};

use super::waits::{Crossed, WaitCounts};
use crate::io::{Counters, Refusal};

/// The counters of one direction.
#[derive(Clone, Debug)]
pub struct DirectionReport {
    /// Packets and IP bytes read from the port on the sending side.
    pub received: Count,
    /// Of those, longer than the MTU and dropped for it.
    pub oversize: Count,
    /// Of those, carried untouched because their headers could not be read: damaged, cut short
    /// ([`lastmile_packet::ParseError`], [`lastmile_packet::FrameError`]).
    pub unreadable: u64,
    /// Of those, frames carried untouched that are not of IP, such as ARP.
    pub not_ip: u64,
    /// Flows that lost their number to new ones of this direction, since more came than have one at
    /// a time. A flow that continues gets another number, and only its state is lost.
    pub evicted: u64,
    /// The lines, in the order in which packets cross them.
    pub hops: Vec<HopReport>,
    /// Packets that the port on the receiving side took.
    pub sent: Count,
    /// Packets that it did not take, by [`Refusal::index`].
    pub refused: [Count; Refusal::ALL.len()],
    /// The counters of the port on the sending side before packets are handed over. Packets dropped there are not among
    /// the received.
    pub port: Counters,
    /// How often it slept for longer than is made up for, while packets waited ([`super::Bump::make_up_for_at_most`]).
    pub overslept: u64,
    /// Nanoseconds from when a packet was due at the receiving port to when its batch was sent there.
    pub lateness: Buckets,
}

impl DirectionReport {
    /// True when every packet that was received is accounted for, at every hop.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        let mut coming = self.received.packets - self.oversize.packets;
        for hop in &self.hops {
            if hop.line.enqueued.packets != coming || !hop.is_balanced() {
                return false;
            }
            coming = hop.line.arrived.packets;
        }
        coming == self.sent.packets + sum(&self.refused)
    }

    /// The hop of this name.
    #[must_use]
    pub fn hop(&self, name: &str) -> Option<&HopReport> {
        self.hops.iter().find(|hop| hop.name == name)
    }
}

/// The counters of one line.
#[derive(Clone, Debug)]
pub struct HopReport {
    /// Its name.
    pub name: String,
    /// Packets carried, and drops by reason.
    pub line: Stats,
    /// Cells on the wire, on a line of cells.
    pub cells: Option<CellCount>,
    /// The backlog of the queue.
    pub queued: Backlog,
    /// The rate that a controller has given its shaper, if one has.
    pub shaper_rate: Option<BitRate>,
    /// Packets on the wire.
    pub in_flight: Count,
    /// Every counter of the queue and of those below it.
    pub queue_counters: Vec<CounterValue>,
    /// The backlog of each class of the scheduler, with the index of the class below `classes` in the paths of
    /// `queue_counters`.
    pub class_backlogs: Vec<(usize, Backlog)>,
    /// The most that has waited in the queue at a time, in packets and in IP bytes (not always of the same moment).
    pub most_queued: Backlog,
    /// Nanoseconds that packets waited in the queue, from arrival to the start of transmission.
    pub waited: Buckets,
    /// The waits of pure ACKs alone.
    pub acks_waited: Buckets,
    /// The waits by the class that rules gave the packet (its number), since the queue in force is there. Classes
    /// behind the last one that had a packet are left out; packets that no rules saw are in none.
    pub class_waited: Vec<Buckets>,
    /// Packets that did not start at once, since the line was busy or the queue held them back:
    /// what tc(8) calls overlimits.
    pub overlimits: u64,
    /// Requests and grants; `None` on a line without them.
    pub grants: Option<GrantsOutcome>,
}

impl HopReport {
    /// Packets dropped, for whatever reason.
    #[must_use]
    pub fn dropped_packets(&self) -> u64 {
        sum(&self.line.dropped)
    }

    fn is_balanced(&self) -> bool {
        let line = &self.line;
        let waiting = self.queued.packets.as_u64() + self.in_flight.packets;
        line.enqueued.packets + line.created.packets == line.arrived.packets + self.dropped_packets() + waiting
    }
}

/// How a hop stands at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HopGlance {
    /// The backlog of the queue.
    pub queued: Backlog,
    /// The rate that a controller has given its shaper, if one has.
    pub shaper_rate: Option<BitRate>,
    /// Bits that its wire has carried by now.
    pub wire_bits: u64,
    /// Packets that it has dropped by now.
    pub dropped_packets: u64,
    /// Waits of packets that left the queue since the last glance.
    pub waited: Waits,
    /// Waits of pure ACKs alone.
    pub acks_waited: Waits,
}

/// All hops at a moment, for a display that asks several times a second.
#[derive(Clone, Debug)]
pub struct States {
    /// The moment.
    pub at: Instant,
    /// The hops: those up, then those down.
    pub hops: Vec<HopState>,
    /// Delays over all hops of a direction, up and down, since packets are recorded ([`super::Bump::record`]).
    pub crossed: [Crossed; 2],
}

/// A hop at a moment, for a display that asks several times a second. All counts are since the
/// start.
#[derive(Clone, Default, Debug)]
pub struct HopState {
    /// The backlog of the queue.
    pub queued: Backlog,
    /// The rate that a controller has given its shaper, if one has.
    pub shaper_rate: Option<BitRate>,
    /// Bits that its wire has carried.
    pub wire_bits: u64,
    /// Packets carried, and drops by reason.
    pub line: Stats,
    /// Packets that the port in front of the first hop dropped, and those that the port behind the last one did not
    /// take, by their names in results, zeros included.
    pub port_drops: Vec<(&'static str, u64)>,
    /// Waits in the queue, from arrival to the start of transmission.
    pub waited: WaitCounts,
    /// The waits of pure ACKs alone.
    pub acks_waited: WaitCounts,
    /// The waits by class, as [`HopReport::class_waited`].
    pub class_waited: Vec<WaitCounts>,
    /// The backlog of each class, by its number in the paths of `queue_counters`.
    pub class_queued: Vec<(usize, Backlog)>,
    /// Every counter of the queue and of those below it.
    pub queue_counters: Vec<CounterValue>,
    /// Requests and grants; `None` on a line without them.
    pub grants: Option<grants::Counts>,
}

impl HopState {
    /// Packets dropped so far, for whatever reason, those of the ports beside it included.
    #[must_use]
    pub fn dropped_packets(&self) -> u64 {
        sum(&self.line.dropped) + self.port_drops.iter().map(|(_, packets)| packets).sum::<u64>()
    }
}

fn sum(counts: &[Count]) -> u64 {
    counts.iter().map(|count| count.packets).sum()
}

/// One counter of one discipline, as [`lastmile_queueing::Counter`] shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CounterValue {
    /// Where the discipline stands below the root; empty for the root.
    pub path: String,
    /// The kind of the discipline.
    pub kind: &'static str,
    /// The name of the counter.
    pub name: &'static str,
    /// The count.
    pub value: u64,
}
