//! Queueing delays in front of a hop.

use lastmile_packet::Packet;
use lastmile_units::{Duration, Instant};

use lastmile_model::outcome::{Buckets, Waits};

/// Waits to one digit, each at most 6 % above its value: cheap to copy for displays that ask several times a second.
pub type WaitCounts = Buckets<4>;

/// Queueing delays in front of a hop in nanoseconds: of all packets, and of pure ACKs.
pub(super) struct HopWaits {
    pub(super) all: Buckets,
    pub(super) acks: Buckets,
    /// Times from requests to the starts of their first grants.
    pub(super) grants: Buckets,
    /// By the class that rules gave the packet.
    pub(super) classes: Vec<Buckets>,
    /// Packets that came before then wear classes of an earlier queue.
    classes_since: Instant,
    /// Packets that waited at all.
    pub(super) overlimits: u64,
    /// Since the last glance.
    pub(super) lately: Waits,
    pub(super) acks_lately: Waits,
}

impl HopWaits {
    pub(super) fn new() -> Self {
        Self {
            all: Buckets::default(),
            acks: Buckets::default(),
            grants: Buckets::default(),
            classes: Vec::new(),
            classes_since: Instant::ZERO,
            overlimits: 0,
            lately: Waits::default(),
            acks_lately: Waits::default(),
        }
    }

    /// Classes are those of another queue from now on.
    pub(super) fn begin_classes(&mut self, now: Instant) {
        self.classes.clear();
        self.classes_since = now;
    }

    pub(super) fn record(&mut self, waited: Duration, packet: &impl Packet) {
        let ns = waited.as_ns();
        self.all.record(ns);
        self.lately.add(waited);
        self.overlimits += u64::from(waited > Duration::ZERO);
        if packet.meta().is_pure_ack() {
            self.acks.record(ns);
            self.acks_lately.add(waited);
        }
        if let Some(class) = packet.meta().class
            && packet.meta().arrived >= self.classes_since
        {
            let class = usize::from(class);
            if class >= self.classes.len() {
                // Once a class, and rules have few.
                self.classes.resize(class + 1, Buckets::default());
            }
            self.classes[class].record(ns);
        }
    }
}

/// Delays of the packets that have crossed all hops of a direction, in nanoseconds: from arrival at the first hop to
/// arrival behind the last. Queueing, transmission and propagation are in them, late wake-ups are not.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Crossed {
    /// Delays of all packets.
    pub all: WaitCounts,
    /// Delays of pure ACKs alone.
    pub acks: WaitCounts,
}

impl Crossed {
    /// Counts a packet that arrives behind the last hop. `Meta::sent` is its arrival at the first one.
    #[inline]
    pub(super) fn record(&mut self, packet: &impl Packet) {
        let meta = packet.meta();
        let ns = meta.arrived.since(meta.sent).as_ns();
        self.all.record(ns);
        if meta.is_pure_ack() {
            self.acks.record(ns);
        }
    }
}
