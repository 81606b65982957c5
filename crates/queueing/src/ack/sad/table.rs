//! The table of a Smart ACK Dropper: what is known of the pure ACKs that wait, by flow.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use lastmile_packet::{AckFields, AckList, Options, Packet, Protocol, PureAck, SeqNumber, TcpFlags};

use super::Suppressed;
use crate::ack::flow_map::FlowMap;
use crate::ack::{Newest, stands_for};

/// What is known of the pure ACKs that wait, by flow.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) flows: FlowMap<Record>,
}

impl Table {
    /// A packet goes to the queue untouched.
    pub(super) fn pass(&mut self, packet: &impl Packet) {
        let meta = packet.meta();
        if let Some(ack) = meta.pure_ack() {
            match self.flows.entry(ack.flow) {
                Entry::Vacant(place) => {
                    place.insert(Record { last: Waiting::closed(ack), ..Record::new(ack) });
                }
                Entry::Occupied(place) => {
                    let record = place.into_mut();
                    record.newest.note(ack.segment());
                    record.push(Waiting::closed(ack));
                }
            }
            return;
        }
        // Payload is summed only where an ACK waits that it may close.
        let Some(record) = self.flows.get_mut(&meta.flow) else { return };
        if meta.protocol == Protocol::AckSignal {
            // It tells of the ACK behind it: nothing may be merged past both.
            record.last.open = false;
        } else if let Some(segment) = packet.segment() {
            record.last.open = false;
            if segment.flags.contains(TcpFlags::ACK) {
                record.newest.note(segment);
            }
        }
    }

    /// Strikes a pure ACK that leaves the queue, whichever way.
    pub(super) fn take(&mut self, ack: PureAck<'_>) -> Option<Waiting> {
        let Entry::Occupied(mut place) = self.flows.entry(ack.flow) else {
            debug_assert!(false, "every pure ACK in the queue has a record");
            return None;
        };
        let record = place.get_mut();
        let carrier = Carrier::of(ack);
        // What leaves or is dropped from the head is the first, what was refused is the last.
        if record.earlier.front().is_some_and(|first| first.carrier == carrier) {
            return record.earlier.pop_front();
        }
        if record.last.carrier != carrier
            && let Some(index) = record.earlier.iter().position(|waiting| waiting.carrier == carrier)
        {
            return record.earlier.remove(index);
        }
        match record.earlier.pop_back() {
            Some(before) => Some(std::mem::replace(&mut record.last, before)),
            None => Some(place.remove().last),
        }
    }
}

/// The pure ACKs of one flow that wait, in order.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) newest: Newest,
    pub(super) last: Waiting,
    /// Those before the last, all of them closed. Empty unless something stood between two ACKs.
    earlier: VecDeque<Waiting>,
}

impl Record {
    pub(super) fn new(ack: PureAck<'_>) -> Self {
        Self { newest: Newest::of(ack.segment()), last: Waiting::open(ack), earlier: VecDeque::new() }
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        let mut before = std::mem::replace(&mut self.last, waiting);
        before.open = false;
        self.earlier.push_back(before);
    }
}

/// A pure ACK that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    carrier: Carrier,
    pub(super) traffic_class: u8,
    /// The bit of the published table: true while newer ACKs may be merged into this one.
    pub(super) open: bool,
    pub(super) newest: AckFields,
    pub(super) suppressed: Suppressed,
    /// The numbers suppressed, where they are reported.
    pub(super) list: AckList,
}

/// What a pure ACK says in the queue below. Two that say the same are as good as one another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Carrier {
    seq: SeqNumber,
    fields: AckFields,
}

impl Carrier {
    fn of(ack: PureAck<'_>) -> Self {
        Self { seq: ack.seq, fields: ack.fields() }
    }
}

impl Waiting {
    pub(super) fn open(ack: PureAck<'_>) -> Self {
        Self {
            carrier: Carrier::of(ack),
            traffic_class: ack.traffic_class,
            open: true,
            newest: ack.fields(),
            suppressed: Suppressed { merged: 0, duplicates: 0 },
            list: AckList::EMPTY,
        }
    }

    pub(super) fn closed(ack: PureAck<'_>) -> Self {
        Self { open: false, ..Self::open(ack) }
    }

    /// True when nothing is lost if this ACK leaves with what `newer` says.
    pub(super) fn may_become(&self, newer: PureAck<'_>) -> bool {
        self.carrier.seq == newer.seq
            && self.traffic_class == newer.traffic_class
            && stands_for(&self.newest, &newer.fields())
    }

    /// Notes that the newest number gives way to that of `newer`. False, and nothing changes: it cannot be told.
    pub(super) fn tell(&mut self, newer: PureAck<'_>, room: usize) -> bool {
        let stamped = |options: &Options| options.timestamps().is_some();
        stamped(&self.newest.options) == stamped(&newer.options())
            && self.list.push(newer.ack.distance_from(self.newest.ack), room)
    }
}
