//! The table of a Smart ACK Dropper: the queued pure ACKs by flow.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use lastmile_packet::{AckFields, AckList, Options, Packet, Protocol, PureAck, SeqNumber, TcpFlags};

use crate::DropReason;
use crate::ack::flow_map::FlowMap;
use crate::ack::{Newest, may_replace, may_stand_for};

/// ACKs that one ACK represents in addition to itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Suppressed {
    /// ACKs that were merged into it.
    pub merged: u32,
    /// Duplicate ACKs that were counted with it.
    pub duplicates: u32,
}

impl Suppressed {
    pub(super) fn count(&mut self, reason: DropReason) {
        match reason {
            DropReason::AckDuplicate => self.duplicates += 1,
            _ => self.merged += 1,
        }
    }
}

/// The queued pure ACKs by flow.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) flows: FlowMap<Record>,
}

impl Table {
    /// Records a packet that goes to the queue unchanged.
    pub(super) fn pass(&mut self, packet: &impl Packet) {
        let meta = packet.meta();
        if let Some(ack) = meta.pure_ack() {
            match self.flows.entry(ack.flow) {
                Entry::Vacant(entry) => {
                    entry.insert(Record { last: QueuedAck::closed(ack), ..Record::new(ack) });
                }
                Entry::Occupied(entry) => {
                    let record = entry.into_mut();
                    record.newest.note(ack.segment());
                    record.push(QueuedAck::closed(ack));
                }
            }
            return;
        }
        // Checksums of payload are computed only if the flow has a queued ACK to close.
        let Some(record) = self.flows.get_mut(&meta.flow) else { return };
        if meta.protocol == Protocol::AckSignal {
            // It describes the ACK behind it: no later ACK may be merged past both.
            record.last.open = false;
        } else if let Some(segment) = packet.segment() {
            record.last.open = false;
            if segment.flags.contains(TcpFlags::ACK) {
                record.newest.note(segment);
            }
        }
    }

    /// Removes the record of a pure ACK that departs from the queue or is dropped.
    pub(super) fn take(&mut self, ack: PureAck<'_>) -> Option<QueuedAck> {
        let Entry::Occupied(mut entry) = self.flows.entry(ack.flow) else {
            debug_assert!(false, "every pure ACK in the queue has a record");
            return None;
        };
        let record = entry.get_mut();
        let carrier = Carrier::of(ack);
        // A departing or head-dropped ACK is the first, a refused one is the last.
        if record.earlier.front().is_some_and(|first| first.carrier == carrier) {
            return record.earlier.pop_front();
        }
        if record.last.carrier != carrier
            && let Some(index) = record.earlier.iter().position(|queued| queued.carrier == carrier)
        {
            return record.earlier.remove(index);
        }
        match record.earlier.pop_back() {
            Some(before) => Some(std::mem::replace(&mut record.last, before)),
            None => Some(entry.remove().last),
        }
    }
}

/// The queued pure ACKs of one flow, in order.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) newest: Newest,
    pub(super) last: QueuedAck,
    /// The ACKs before the last one, all closed. Empty unless other packets are queued between ACKs of the flow.
    earlier: VecDeque<QueuedAck>,
}

impl Record {
    pub(super) fn new(ack: PureAck<'_>) -> Self {
        Self { newest: Newest::of(ack.segment()), last: QueuedAck::open(ack), earlier: VecDeque::new() }
    }

    pub(super) fn push(&mut self, queued: QueuedAck) {
        let mut before = std::mem::replace(&mut self.last, queued);
        before.open = false;
        self.earlier.push_back(before);
    }
}

/// A queued pure ACK.
#[derive(Debug)]
pub(super) struct QueuedAck {
    carrier: Carrier,
    pub(super) traffic_class: u8,
    /// The bit of the published table: true while newer ACKs may be merged into this one.
    pub(super) open: bool,
    /// True if the ACK repeats the number of the previous one.
    pub(super) is_duplicate: bool,
    pub(super) newest: AckFields,
    pub(super) suppressed: Suppressed,
    /// The suppressed numbers, if they are reported.
    pub(super) list: AckList,
}

/// The content of a pure ACK in the queue below. ACKs of equal content are interchangeable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Carrier {
    seq: SeqNumber,
    flags: TcpFlags,
    fields: AckFields,
}

impl Carrier {
    fn of(ack: PureAck<'_>) -> Self {
        Self { seq: ack.seq, flags: ack.flags, fields: ack.fields() }
    }
}

impl QueuedAck {
    pub(super) fn open(ack: PureAck<'_>) -> Self {
        Self {
            carrier: Carrier::of(ack),
            traffic_class: ack.traffic_class,
            open: true,
            is_duplicate: false,
            newest: ack.fields(),
            suppressed: Suppressed { merged: 0, duplicates: 0 },
            list: AckList::EMPTY,
        }
    }

    pub(super) fn closed(ack: PureAck<'_>) -> Self {
        Self { open: false, ..Self::open(ack) }
    }

    /// A duplicate, into which a later one may be merged if it is `open`.
    pub(super) fn duplicate(ack: PureAck<'_>, open: bool) -> Self {
        Self { open, is_duplicate: true, ..Self::open(ack) }
    }

    /// True when no information is lost if this ACK departs with the values of `newer`.
    pub(super) fn may_become(&self, newer: PureAck<'_>) -> bool {
        let Suppressed { merged, duplicates } = self.suppressed;
        self.carrier.seq == newer.seq
            && self.carrier.flags == newer.flags
            && may_stand_for(&newer, merged + duplicates + 2)
            && self.traffic_class == newer.traffic_class
            && may_replace(&self.newest, &newer.fields())
    }

    /// Adds the newest number to the list, as that of `newer` replaces it. False, without a change,
    /// if the list cannot represent it.
    pub(super) fn add_to_list(&mut self, newer: PureAck<'_>, capacity: usize) -> bool {
        let stamped = |options: &Options| options.timestamps().is_some();
        stamped(&self.newest.options) == stamped(&newer.options())
            && self.list.push(newer.ack.distance_from(self.newest.ack), capacity)
    }
}
