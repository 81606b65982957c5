//! Recorded packets through other hops: what a policy would have done with the traffic that came.
//!
//! The packets arrive at the times at which they did arrive, whatever becomes of them: the replay is
//! an *open loop*. Real senders react to delay and loss, so a replay answers for the queue and not
//! for the connection:
//!
//! - Packets that another policy drops are not retransmitted, and packets that it spares were
//!   retransmitted all the same.
//! - A sender that would be faster or slower under another policy is not.
//! - Payload is not recorded, so that no class is found by the contents of packets: rules about FTP's
//!   data connections and contents match none.
//! - Connections whose handshake is not in the record have no known window scale.
//! - Losses, jitter and duplicates of a wire are drawn from the beginning of their random streams. A
//!   record that begins with the run meets the draws of the run; a later one meets others.
//!
//! The first packets of the record fill the queues, and the caller compares what comes behind them.
//! A replay of the hops that were in force gives the check: it differs from what happened by the
//! start and by these limits alone. Times are those of the run, so that a rate that changes with time
//! changes at the same packets.

use std::sync::Arc;

use lastmile_model::Hop;
use lastmile_packet::{
    AckFields, AckList, FlowAddresses, FlowDirectory, FlowId, FlowKey, HashKey, MAX_HEADER_LEN, Mark, Meta, Packet,
    Segment,
};
use lastmile_queueing::ack::Handshakes;
use lastmile_queueing::discipline::{DropReason, DropSink};
use lastmile_queueing::line::{Line, TransmissionSink};
use lastmile_queueing::spec::BuildError;
use lastmile_units::{Duration, Instant};

use super::direction::{line, state};
use super::record::Record;
use super::waits::{Crossed, HopWaits};
use super::{HopState, States};

/// A packet of a record: its headers, and no payload.
#[derive(Clone, Copy, Debug)]
struct Recorded {
    meta: Meta,
    /// `None` if its bytes were unreadable.
    key: Option<FlowKey>,
}

/// The directory of one flow.
struct One(FlowAddresses);

impl FlowDirectory for One {
    fn addresses(&self, _flow: FlowId) -> FlowAddresses {
        self.0
    }
}

impl Packet for Recorded {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut Meta {
        &mut self.meta
    }

    fn segment(&self) -> Option<Segment<'_>> {
        self.meta.segment()
    }

    fn rewrite_ack(&mut self, newest: &AckFields) {
        self.meta.rewrite_ack(newest);
    }

    fn set_window(&mut self, window: u16) {
        self.meta.set_window(window);
    }

    fn set_traffic_class(&mut self, traffic_class: u8) {
        self.meta.set_traffic_class(traffic_class);
    }

    fn duplicate(&self) -> Self {
        *self
    }

    fn signal(&self, list: &AckList) -> Self {
        Self { meta: self.meta.signal(list), key: self.key }
    }

    fn key(&self, _flows: &dyn FlowDirectory) -> Option<FlowKey> {
        self.key
    }

    fn own_key(&self) -> Option<&FlowKey> {
        self.key.as_ref()
    }

    fn payload<'a>(&'a self, _flows: &'a dyn FlowDirectory) -> &'a [u8] {
        &[]
    }

    fn answer<'a>(&'a self, _flows: &'a dyn FlowDirectory) -> &'a [u8] {
        &[]
    }

    fn headers(&self, _flows: &dyn FlowDirectory, out: &mut [u8; MAX_HEADER_LEN]) -> usize {
        self.key.map_or(0, |key| self.meta.headers(&One(key.addresses), out))
    }
}

/// Checksums of segments with payload are taken for right: their payload is not there to tell.
fn trusted(meta: &Meta) -> Meta {
    if meta.payload_len() == 0 || !meta.mark.unverified() {
        return *meta;
    }
    let mut mark = Mark::default();
    if meta.mark.ipv6() {
        mark.set_ipv6();
    }
    Meta { mark, ..*meta }
}

/// A hop of a replay.
struct ReplayedHop {
    line: Line<Recorded>,
    waits: HopWaits,
}

struct Watch<'a>(&'a mut HopWaits);

impl DropSink<Recorded> for Watch<'_> {
    /// The line counts it.
    fn dropped(&mut self, _now: Instant, _packet: Recorded, _reason: DropReason) {}
}

impl TransmissionSink<Recorded> for Watch<'_> {
    fn transmitted(&mut self, _start: Instant, _end: Instant, waited: Duration, packet: &Recorded) {
        self.0.record(waited, packet);
    }
}

impl ReplayedHop {
    fn enqueue(&mut self, at: Instant, packet: Recorded) {
        self.line.enqueue(at, packet, &mut Watch(&mut self.waits));
    }
}

/// One direction of a replay: its hops, at least one.
struct Side {
    hops: Vec<ReplayedHop>,
    crossed: Crossed,
}

impl Side {
    fn new(hops: &[Hop], (seed, hash_key): (u64, HashKey), handshakes: &Arc<Handshakes>) -> Result<Self, BuildError> {
        let of = |hop| Ok(ReplayedHop { line: line(hop, seed, hash_key, handshakes)?, waits: HopWaits::new() });
        Ok(Self { hops: hops.iter().map(of).collect::<Result<_, _>>()?, crossed: Crossed::default() })
    }

    fn arrive(&mut self, mut packet: Recorded) {
        packet.meta.sent = packet.meta.arrived;
        if let Some(first) = self.hops.first_mut() {
            first.enqueue(packet.meta.arrived, packet);
        }
    }

    /// Lets every hop go on to `now`, as [`super::direction::Direction::send`] does.
    fn go_on(&mut self, now: Instant) {
        for index in 0..self.hops.len() {
            let hop = &mut self.hops[index];
            hop.line.transmit(now, &mut Watch(&mut hop.waits));
            while let Some(packet) = self.take_arrival(index, now) {
                match self.hops.get_mut(index + 1) {
                    Some(next) => next.enqueue(packet.meta.arrived, packet),
                    None => self.crossed.record(&packet),
                }
            }
        }
    }

    fn take_arrival(&mut self, index: usize, now: Instant) -> Option<Recorded> {
        let ReplayedHop { line, waits } = &mut self.hops[index];
        line.take_arrival(now, &mut Watch(waits))
    }

    fn states(&self, now: Instant) -> impl Iterator<Item = HopState> {
        self.hops.iter().map(move |hop| state(&hop.line, &hop.waits, now))
    }
}

/// Sends the packets of both directions through hops, up and down, and shows them at each of `times`,
/// which ascend. The hops are idle when the first packet comes. Packets
/// behind the last of the times are left out.
///
/// # Errors
/// A queue that its line cannot have.
pub(crate) fn replay(
    records: &[Record; 2],
    hops: [&[Hop]; 2],
    (seed, hash_key): (u64, HashKey),
    times: &[Instant],
    look: &mut dyn FnMut(States),
) -> Result<(), BuildError> {
    let handshakes = Arc::new(Handshakes::new(hash_key));
    let [up, down] = hops.map(|hops| Side::new(hops, (seed, hash_key), &handshakes));
    let mut sides = [up?, down?];
    let flows = [0, 1].map(|side: usize| records[side].flows(Instant::ZERO));
    let mut coming = [0, 1].map(|side: usize| records[side].packets(Instant::ZERO).peekable());
    for time in times {
        let due = |packet: Option<&&Meta>| packet.map(|meta| meta.arrived).filter(|arrived| arrived <= time);
        loop {
            let [up, down] = coming.each_mut().map(|packets| due(packets.peek()));
            let side = match (up, down) {
                (Some(up), Some(down)) => usize::from(down < up),
                (Some(_), None) => 0,
                (None, Some(_)) => 1,
                (None, None) => break,
            };
            if let Some(meta) = coming[side].next() {
                let key = flows[side].get(&meta.flow).copied();
                sides[side].arrive(Recorded { meta: trusted(meta), key });
                // A queue may learn from the packets of the other direction, at any hop.
                sides.iter_mut().for_each(|side| side.go_on(meta.arrived));
            }
        }
        sides.iter_mut().for_each(|side| side.go_on(*time));
        look(States {
            at: *time,
            hops: sides.iter().flat_map(|side| side.states(*time)).collect(),
            crossed: sides.each_ref().map(|side| side.crossed.clone()),
        });
    }
    Ok(())
}
