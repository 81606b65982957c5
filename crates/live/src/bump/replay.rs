//! Recorded packets through other queues: what a policy would have done with the traffic that came.
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
//!
//! The first packets of the record fill the queues, and the caller compares what comes behind them.
//! A replay of the queues that were in force gives the check: it differs from what happened by the
//! start and by these limits alone.

use std::sync::Arc;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{
    AckFields, AckList, FlowAddresses, FlowDirectory, FlowId, FlowKey, HashKey, MAX_HEADER_LEN, Mark, Meta, Packet,
    Segment,
};
use lastmile_queueing::Environment;
use lastmile_queueing::ack::Handshakes;
use lastmile_queueing::discipline::{DropReason, DropSink};
use lastmile_queueing::line::{Config, Line, Observer};
use lastmile_queueing::random::Stream;
use lastmile_queueing::spec::{BuildError, Spec};
use lastmile_units::{Duration, Instant};

use super::HopState;
use super::direction::state;
use super::record::Record;
use super::waits::Waits;

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

/// One direction of a replay.
struct Side {
    line: Line<Recorded>,
    waits: Waits,
}

struct Watch<'a>(&'a mut Waits);

impl DropSink<Recorded> for Watch<'_> {
    /// The line counts it.
    fn dropped(&mut self, _now: Instant, _packet: Recorded, _reason: DropReason) {}
}

impl Observer<Recorded> for Watch<'_> {
    fn transmitted(&mut self, _start: Instant, _end: Instant, waited: Duration, packet: &Recorded) {
        self.0.record(waited, packet);
    }
}

impl Side {
    fn new((spec, link_layer): (&Spec, LinkLayer), environment: &Environment) -> Result<Self, BuildError> {
        let environment = Environment { link_layer, ..environment.clone() };
        let config = Config::new(None, link_layer, Duration::ZERO);
        // The wire loses nothing, so that its stream is not used.
        let line = Line::new(&config, spec.build_in(&environment)?, Stream::new(0, "no losses"));
        Ok(Self { line, waits: Waits::new() })
    }

    fn arrive(&mut self, packet: Recorded) {
        let now = packet.meta.arrived;
        self.line.enqueue(now, packet, &mut Watch(&mut self.waits));
        while self.line.take_arrival(now, &mut Watch(&mut self.waits)).is_some() {}
    }

    fn go_on(&mut self, now: Instant) -> HopState {
        self.line.transmit(now, &mut Watch(&mut self.waits));
        while self.line.take_arrival(now, &mut Watch(&mut self.waits)).is_some() {}
        state(&self.line, &self.waits, now)
    }
}

/// Sends the packets of both directions through `queues`, built anew, and shows the hops at each of
/// `times`, which ascend: up, then down. Packets behind the last of them are left out.
///
/// # Errors
/// A queue that its line cannot have.
pub(crate) fn replay(
    records: &[Record; 2],
    queues: [(&Spec, LinkLayer); 2],
    hash_key: HashKey,
    times: &[Instant],
    look: &mut dyn FnMut(Instant, Vec<HopState>),
) -> Result<(), BuildError> {
    let mut environment = Environment::new(queues[0].1).with_handshakes(Arc::new(Handshakes::new(hash_key)));
    environment.hash_key = hash_key;
    let [up, down] = queues;
    let mut sides = [Side::new(up, &environment)?, Side::new(down, &environment)?];
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
            }
        }
        look(*time, sides.iter_mut().map(|side| side.go_on(*time)).collect());
    }
    Ok(())
}
