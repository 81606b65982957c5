//! A bump in the wire: two directions of hops between two ports, apart from all input and output.
//!
//! ```text
//!            receive  +---------------------------------------+  send
//!   port A  --------->| up:   hop 0 -> hop 1 -> ... -> hop n  |-------->  port B
//!           <---------| down: hop m <- ... <- hop 1 <- hop 0  |<--------
//!              send   +---------------------------------------+  receive
//! ```
//!
//! A hop is a [`lastmile_queueing::line::Line`]: of an emulated line one with rate, encapsulation
//! and delay, of a middlebox one without a rate whose queue is a policy's tree. Time and packets
//! come in with every call: [`Bump::turn`] does what one wake-up does. It takes the packets that
//! have arrived, each at its own arrival time, lets the hops go on, and sends what has left the
//! last one. However late the wake-up and however many packets it finds, the hops do what they
//! would have done on time; only the sending itself is late, and how late is measured for every
//! packet.
//!
//! Ports with Ethernet frames give and take whole frames, with the bytes behind the IP packet in
//! them. A packet's length is that of the IP packet; a frame without one (ARP) counts what is
//! behind its Ethernet header. Hops add their own encapsulation to either.
//!
//! Every packet is accounted for ([`DirectionReport::is_balanced`]).
//!
//! Cost per packet: one parse, one flow look-up, one copy of its bytes each way; one reading of the clock a batch.

mod direction;
mod interval;
mod record;
mod replay;
mod report;
mod tap;
mod waits;

use std::io;
use std::sync::Arc;

use lastmile_linklayer::LinkLayer;
use lastmile_model::Hop;
use lastmile_packet::{FlowTable, HashKey};
use lastmile_queueing::ack::Handshakes;
use lastmile_queueing::spec::{BuildError, Spec};
use lastmile_units::{BitRate, Duration, Instant, WireBytes};

use crate::clock::Clock;
use crate::io::{Counters, Port};

pub use direction::BATCH;
use direction::{Direction, Queue};
pub use interval::{Interval, NOTABLE, Waited, intervals, per_second};
use record::Recorder;
pub use record::{FlowTotal, MOST_PACKETS, Record, SPAN};
pub(crate) use replay::replay;
pub use report::{CounterValue, DirectionReport, HopGlance, HopReport, HopState, States};
pub use tap::Tap;
use tap::Taps;
pub use waits::{Crossed, WaitCounts};

/// Flows of both directions with a number at a time; a further one takes the number of the oldest
/// flow of a single packet, see [`FlowTable`].
const MAX_FLOWS: u32 = 1 << 18;

/// The configuration of a bump.
#[derive(Clone, Debug)]
pub struct BumpConfig {
    /// The hops from port A to port B, in this order; at least one.
    pub up: Vec<Hop>,
    /// The hops from port B to port A, in this order; at least one.
    pub down: Vec<Hop>,
    /// Packets longer than this are dropped when they come, and counted ([`DirectionReport::oversize`]).
    pub mtu: u16,
    /// Decides which packets are lost on the wire, where a direction loses any.
    pub seed: u64,
    /// Key of the hashes of flow tables: random where strangers choose the packets.
    pub hash_key: HashKey,
}

/// Queues for both directions, built and ready to be put in ([`Bump::hand_over`]), by any thread.
pub struct Queues {
    up: Queue,
    down: Queue,
}

impl Queues {
    /// Builds both, each for a line with this encapsulation.
    ///
    /// # Errors
    /// A queue that its line cannot have.
    pub fn build(up: (&Spec, LinkLayer), down: (&Spec, LinkLayer), hash_key: HashKey) -> Result<Self, BuildError> {
        let handshakes = Arc::new(Handshakes::new(hash_key));
        let build = |(spec, link_layer)| Queue::build(spec, link_layer, hash_key, &handshakes);
        Ok(Self { up: build(up)?, down: build(down)? })
    }
}

/// Two directions, driven by whoever calls [`Bump::turn`].
pub struct Bump {
    up: Direction,
    down: Direction,
    flows: FlowTable,
    mtu: u16,
    tap: Option<Box<Tap>>,
}

impl Bump {
    /// Nothing on its way yet.
    ///
    /// # Errors
    /// A queue that its line cannot have, such as a limit in cells on a line without cells.
    pub fn new(config: &BumpConfig) -> Result<Self, BuildError> {
        let handshakes = Arc::new(Handshakes::new(config.hash_key));
        Ok(Self {
            up: Direction::new(&config.up, config.seed, config.hash_key, &handshakes)?,
            down: Direction::new(&config.down, config.seed, config.hash_key, &handshakes)?,
            flows: FlowTable::new(MAX_FLOWS, config.hash_key),
            mtu: config.mtu,
            tap: None,
        })
    }

    /// From now on `tap` hears of every packet that passes a hop.
    pub fn set_tap(&mut self, tap: Box<Tap>) {
        self.tap = Some(tap);
    }

    /// From now on no sleep is made up for that was longer than `most`. Without that every one is,
    /// however long, as befits an emulated line. A middlebox would send its debt in one burst,
    /// which stays in the queue of the modem until the margin has drained it: with 1 % of margin a
    /// hundred times as long as it slept.
    pub fn make_up_for_at_most(&mut self, most: Duration) {
        self.up.catch_up = Some(most);
        self.down.catch_up = Some(most);
    }

    /// Gives each direction another queue in front of its first hop. The backlog departs before all
    /// but urgent packets, by the rules of the queue that it waits in: nothing is lost, and no
    /// flow's packets change their order.
    pub fn hand_over(&mut self, queues: Queues) {
        self.up.hand_over(queues.up);
        self.down.hand_over(queues.down);
    }

    /// Gives the shaper of a hop this rate, and returns the bytes on the wire that the hop has sent. Hops up are
    /// numbered first, then those down. A hop without a shaper keeps its rate.
    pub fn steer(&mut self, hop: usize, rate: BitRate) -> WireBytes {
        let Self { up, down, tap, .. } = self;
        let behind = up.hops.len();
        let (direction, first) = if hop < behind { (up, 0) } else { (down, behind) };
        direction.steer(hop - first, rate, &mut Taps { tap: tap.as_deref_mut(), first })
    }

    /// True when no packet waits or is on its way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.up.is_empty() && self.down.is_empty()
    }

    /// When [`Bump::turn`] must be called at the latest, packets or not; `None` while nothing
    /// waits. May change with every turn.
    #[must_use]
    pub fn next_wake(&self) -> Option<Instant> {
        [self.up.next_wake(), self.down.next_wake()].into_iter().flatten().min()
    }

    /// Takes what has arrived at both ports, and sends what is due. Both ports have one framing.
    ///
    /// # Errors
    /// A port is gone.
    pub fn turn(&mut self, clock: &dyn Clock, a: &mut dyn Port, b: &mut dyn Port) -> io::Result<()> {
        debug_assert_eq!(a.framing(), b.framing());
        let Self { up, down, flows, mtu, tap } = self;
        let behind = up.hops.len();
        let mut taps = Taps { tap: tap.as_deref_mut(), first: 0 };
        up.receive(clock, a, flows, *mtu, &mut taps).map_err(|error| at_port(a, &error))?;
        taps.first = behind;
        down.receive(clock, b, flows, *mtu, &mut taps).map_err(|error| at_port(b, &error))?;
        taps.first = 0;
        up.send(clock, b, &mut taps);
        taps.first = behind;
        down.send(clock, a, &mut taps);
        Ok(())
    }

    /// How the hops stand at `now`: those up, then those down. Cheap beside [`Bump::reports`];
    /// waits are counted from one call to the next.
    pub fn glance(&mut self, now: Instant) -> Vec<HopGlance> {
        [&mut self.up, &mut self.down].into_iter().flat_map(|direction| direction.glance(now)).collect()
    }

    /// The hops at `now` for a display, with the counters of both ports. Copies some 10 kB for each hop and each
    /// direction, and 5 kB for each class.
    #[must_use]
    pub fn states(&self, now: Instant, [a, b]: [Counters; 2]) -> States {
        States {
            at: now,
            hops: [self.up.states(now, &a), self.down.states(now, &b)].concat(),
            crossed: [self.up.crossed.clone(), self.down.crossed.clone()],
        }
    }

    /// From now on the headers of packets are recorded, for [`Bump::records`], and the delays over
    /// all hops are counted, for [`Bump::states`].
    pub fn record(&mut self) {
        for direction in [&mut self.up, &mut self.down] {
            direction.kept.recorder.get_or_insert_with(|| Recorder::new(MAX_FLOWS));
        }
    }

    /// The packets that came lately, up and down, if they are recorded.
    #[must_use]
    pub fn records(&self) -> Option<[Record; 2]> {
        Some([self.up.kept.recorder.as_ref()?.record(), self.down.kept.recorder.as_ref()?.record()])
    }

    /// The counters so far: up, then down.
    #[must_use]
    pub fn reports(&self) -> (DirectionReport, DirectionReport) {
        (self.up.report(), self.down.report())
    }
}

/// The error with the name of the device that it is of.
fn at_port(port: &dyn Port, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", port.name()))
}

#[cfg(test)]
mod tests;
