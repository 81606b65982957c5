//! Random traffic: several flows of typical access line packets, and possible faults of each.

use std::cell::Cell;
use std::ops::Deref;

use lastmile_packet::{
    AckFields, AckList, FlowDirectory, FlowId, MAX_HEADER_LEN, Meta, Options, Packet, Protocol, SackBlock, Segment,
    SeqNumber, TcpFlags,
};
use lastmile_units::{Duration, Instant};
use proptest::prelude::*;

/// A packet with an identity that survives changes of its header.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    /// Its number, in the order of arrival, times [`IDS_PER_PACKET`]. Packets made from it have smaller
    /// numbers.
    pub(crate) id: usize,
    meta: Meta,
    made: Cell<usize>,
}

/// Numbers reserved for packets made from one packet.
const IDS_PER_PACKET: usize = 1 << 20;

/// The only packet of its test, or one whose identity does not matter.
impl From<Meta> for Probe {
    fn from(meta: Meta) -> Self {
        Self { id: IDS_PER_PACKET, meta, made: Cell::new(0) }
    }
}

impl Deref for Probe {
    type Target = Meta;

    fn deref(&self) -> &Meta {
        &self.meta
    }
}

impl Probe {
    fn made(&self, meta: Meta) -> Self {
        self.made.set(self.made.get() + 1);
        Self { id: self.id - IDS_PER_PACKET + self.made.get(), meta, made: Cell::new(0) }
    }
}

impl Packet for Probe {
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

    fn duplicate(&self) -> Self {
        self.made(self.meta)
    }

    fn signal(&self, list: &AckList) -> Self {
        self.made(self.meta.signal(list))
    }

    fn set_window(&mut self, window: u16) {
        self.meta.set_window(window);
    }

    fn set_traffic_class(&mut self, traffic_class: u8) {
        self.meta.set_traffic_class(traffic_class);
    }

    fn headers(&self, flows: &dyn FlowDirectory, out: &mut [u8; MAX_HEADER_LEN]) -> usize {
        self.meta.headers(flows, out)
    }
}

/// The next packet of a flow's receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// A pure ACK for this many more segments.
    Advance(u8),
    /// A repeated ACK.
    Duplicate,
    /// A repeated ACK with SACK blocks: this many segments have arrived beyond the hole.
    DuplicateWithSack(u8),
    /// An ACK that advances and still has SACK blocks; the first is a D-SACK if the flag is set.
    AdvanceWithSack(u8, bool),
    /// A repeated number with another window.
    Window(u16),
    /// A reordered ACK.
    Old,
    /// A keep-alive probe.
    KeepAlive,
    /// Data that carries the newest ACK number.
    Data(u16),
    /// Data of an ECN-capable sender.
    CapableData(u16),
    /// An ACK with another flag.
    Flagged(TcpFlags),
    /// An ACK with an unknown option.
    UnknownOption,
    /// An ACK with a congestion mark in its IP header.
    CongestionMarked,
    /// An ACK that advances, of another class of service.
    OtherClass(u8),
    /// An ACK that advances, without the timestamps that its flow may have.
    Unstamped,
    /// An ACK for this many segments, with the list of as many ACKs before it, the last a
    /// duplicate.
    Listed(u8),
    /// A signal of this many ACKs ahead of the one that acknowledges the last of them.
    Signal(u8),
    /// A datagram of a flow of its own.
    Datagram(u16),
}

/// Operations on a discipline.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Enqueue { flow: u8, step: Step },
    Dequeue,
    Wait(Duration),
    WaitUntilReady,
}

pub(crate) const FLOWS: u8 = 4;

const FLAGS: [TcpFlags; 7] =
    [TcpFlags::SYN, TcpFlags::FIN, TcpFlags::RST, TcpFlags::ECE, TcpFlags::CWR, TcpFlags::PSH, TcpFlags::URG];

/// Steps by weight, each from three numbers. A union of strategies would prepare a random generator for each kind of
/// step that it does not take, which costs more than the disciplines.
fn step() -> impl Strategy<Value = Step> {
    (0..33_u8, any::<u16>(), any::<bool>()).prop_map(|(kind, number, flag)| {
        let up_to = |most: u16| 1 + number % most;
        let few = |most: u16| up_to(most) as u8;
        match kind {
            0..8 => Step::Advance(few(3)),
            8..11 => Step::Duplicate,
            11..14 => Step::DuplicateWithSack(few(5)),
            14..16 => Step::AdvanceWithSack(few(5), flag),
            16 => Step::Window(number % 4 * 1000),
            17 => Step::Old,
            18 => Step::KeepAlive,
            19..22 => Step::Data(if flag { 1460 } else { up_to(1459) }),
            22..24 => Step::CapableData(up_to(1459)),
            24 => Step::Flagged(FLAGS[usize::from(number) % FLAGS.len()]),
            25 => Step::UnknownOption,
            26 => Step::CongestionMarked,
            27 => Step::OtherClass(few(2) << 2),
            28 => Step::Unstamped,
            29 => Step::Listed(few(3)),
            30 => Step::Signal(few(3)),
            _ => Step::Datagram(up_to(1471)),
        }
    })
}

pub(crate) fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        10 => (0..FLOWS, step()).prop_map(|(flow, step)| Op::Enqueue { flow, step }),
        4 => Just(Op::Dequeue),
        1 => (0..20_000_000_000_u64).prop_map(|ps| Op::Wait(Duration::from_ps(ps))),
        1 => Just(Op::WaitUntilReady),
    ];
    prop::collection::vec(op, 1..200)
}

/// The receivers of all flows: they turn steps into packets.
pub(crate) struct Receivers {
    flows: Vec<Receiver>,
    sent: usize,
}

struct Receiver {
    seq: SeqNumber,
    ack: SeqNumber,
    window: u16,
    timestamps: bool,
}

const SEGMENT: u32 = 1460;

impl Receivers {
    pub(crate) fn new() -> Self {
        let flows = (0..FLOWS)
            .map(|flow| Receiver {
                seq: SeqNumber::new(1000),
                // One flow wraps around early.
                ack: SeqNumber::new(if flow == 0 { u32::MAX - 5 * SEGMENT } else { 50_000 }),
                window: 8000,
                timestamps: flow % 2 == 1,
            })
            .collect();
        Self { flows, sent: 0 }
    }

    pub(crate) fn step(&mut self, now: Instant, flow: u8, step: Step) -> Probe {
        let id = self.sent;
        self.sent += 1;
        let list = match step {
            Step::Listed(segments) | Step::Signal(segments) => listed(segments),
            _ => AckList::EMPTY,
        };
        let this = &mut self.flows[usize::from(flow)];
        let mut meta = Meta {
            arrived: now,
            flow: FlowId::new(u32::from(flow)),
            flags: TcpFlags::ACK,
            header_len: 40,
            ip_id: id as u16,
            ..Meta::default()
        };
        let mut options = Options::NONE;
        let mut payload = 0;
        match step {
            Step::Listed(segments) => {
                this.ack = this.ack.add(u32::from(segments) * SEGMENT);
                options = options.with_list(&list);
            }
            Step::Advance(segments) => this.ack = this.ack.add(u32::from(segments) * SEGMENT),
            Step::AdvanceWithSack(segments, dsack) => {
                this.ack = this.ack.add(SEGMENT);
                options = beyond(this.ack, segments, dsack);
            }
            Step::DuplicateWithSack(segments) => options = beyond(this.ack, segments, false),
            Step::Window(window) => this.window = window,
            Step::Data(bytes) => payload = bytes,
            Step::CapableData(bytes) => {
                payload = bytes;
                meta.traffic_class = 2;
            }
            Step::Flagged(flag) => meta.flags = TcpFlags::ACK.with(flag),
            Step::UnknownOption => options = options.with_unknown(),
            Step::CongestionMarked => meta.traffic_class = 3,
            Step::OtherClass(class) => {
                this.ack = this.ack.add(SEGMENT);
                meta.traffic_class = class;
            }
            Step::Unstamped => this.ack = this.ack.add(SEGMENT),
            Step::Duplicate | Step::Old | Step::KeepAlive | Step::Signal(_) | Step::Datagram(_) => {}
        }
        meta.ack = if matches!(step, Step::Old) { this.ack.sub(SEGMENT) } else { this.ack };
        meta.seq = if matches!(step, Step::KeepAlive) { this.seq.sub(1) } else { this.seq };
        meta.window = this.window;
        if this.timestamps && !matches!(step, Step::Unstamped) {
            options = options.with_timestamps(id as u32, id as u32 / 2);
        }
        if let Step::Datagram(bytes) = step {
            meta = Meta { flow: FlowId::new(u32::from(flow + FLOWS)), protocol: Protocol::Udp, header_len: 28, ..meta };
            (payload, options) = (bytes, Options::NONE);
        } else {
            this.seq = this.seq.add(u32::from(payload));
        }
        meta.set_options(options);
        meta.header_len += options.header_bytes() + options.list_header_bytes(false);
        meta.ip_len = u16::from(meta.header_len) + payload;
        if let Step::Signal(segments) = step {
            meta.ack = meta.ack.add(u32::from(segments) * SEGMENT);
            meta = meta.signal(&list);
        }
        Probe { id: (id + 1) * IDS_PER_PACKET, meta, made: Cell::new(0) }
    }
}

fn listed(segments: u8) -> AckList {
    let mut list = AckList::EMPTY;
    for step in (1..segments).map(|_| SEGMENT).chain([0]) {
        assert!(list.push(step, AckList::MAX_OPTION_BYTES));
    }
    list
}

/// One block from the second missing segment on, or two with a hole of their own; behind a D-SACK
/// if requested.
fn beyond(ack: SeqNumber, segments: u8, dsack: bool) -> Options {
    let block = |from: u32, to: u32| SackBlock { left: ack.add(from * SEGMENT), right: ack.add(to * SEGMENT) };
    let segments = u32::from(segments);
    let mut blocks = Vec::new();
    if dsack {
        blocks.push(SackBlock { left: ack.sub(SEGMENT), right: ack });
    }
    blocks.push(block(1, 1 + segments));
    if segments % 3 == 0 {
        blocks.push(block(segments + 2, segments + 4));
    }
    Options::NONE.with_sack(&blocks)
}
