//! The table of a Smart ACK Dropper: what is known of the pure ACKs that wait, by flow.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use lastmile_packet::{AckFields, AckList, Meta, Options, Protocol, SeqNumber, TcpFlags};

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
    pub(super) fn pass(&mut self, meta: &Meta) {
        // A signal tells of the ACK behind it: nothing may be merged past both.
        if !matches!(meta.protocol, Protocol::Tcp | Protocol::AckSignal) {
            return;
        }
        if !meta.is_pure_ack() {
            if let Some(record) = self.flows.get_mut(&meta.flow) {
                record.last.open = false;
                if meta.protocol == Protocol::Tcp && meta.flags.contains(TcpFlags::ACK) {
                    record.newest.note(meta);
                }
            }
            return;
        }
        match self.flows.entry(meta.flow) {
            Entry::Vacant(place) => {
                place.insert(Record { last: Waiting::closed(meta), ..Record::new(meta) });
            }
            Entry::Occupied(place) => {
                let record = place.into_mut();
                record.newest.note(meta);
                record.push(Waiting::closed(meta));
            }
        }
    }

    /// Strikes a pure ACK that leaves the queue, whichever way.
    pub(super) fn take(&mut self, meta: &Meta) -> Option<Waiting> {
        let Entry::Occupied(mut place) = self.flows.entry(meta.flow) else {
            debug_assert!(false, "every pure ACK in the queue has a record");
            return None;
        };
        let record = place.get_mut();
        let carrier = Carrier::of(meta);
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
    pub(super) fn new(meta: &Meta) -> Self {
        Self { newest: Newest::of(meta), last: Waiting::open(meta), earlier: VecDeque::new() }
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
    const fn of(meta: &Meta) -> Self {
        Self { seq: meta.seq, fields: meta.ack_fields() }
    }
}

impl Waiting {
    pub(super) const fn open(meta: &Meta) -> Self {
        Self {
            carrier: Carrier::of(meta),
            traffic_class: meta.traffic_class,
            open: true,
            newest: meta.ack_fields(),
            suppressed: Suppressed { merged: 0, duplicates: 0 },
            list: AckList::EMPTY,
        }
    }

    pub(super) const fn closed(meta: &Meta) -> Self {
        Self { open: false, ..Self::open(meta) }
    }

    /// True when nothing is lost if this ACK leaves with what `newer` says.
    pub(super) fn may_become(&self, newer: &Meta) -> bool {
        self.carrier.seq == newer.seq
            && self.traffic_class == newer.traffic_class
            && stands_for(&self.newest, &newer.ack_fields())
    }

    /// Notes that the newest number gives way to that of `newer`. False, and nothing changes: it cannot be told.
    pub(super) fn tell(&mut self, newer: &Meta, room: usize) -> bool {
        let stamped = |options: &Options| options.timestamps().is_some();
        stamped(&self.newest.options) == stamped(&newer.options())
            && self.list.push(newer.ack.distance_from(self.newest.ack), room)
    }
}
