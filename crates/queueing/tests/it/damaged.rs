//! Damaged segments among sound ones, in front of every regulator: each damaged one departs bit for
//! bit, and the sound ones depart as they would without it.

use core::net::Ipv4Addr;

use lastmile_packet::{
    FlowAddresses, FlowId, Frame, IpAddresses, Meta, Options, Packet, Protocol, SackBlock, SeqNumber, SynOptions,
    TcpFlags, checksums_hold, header_len, write_packet,
};
use lastmile_queueing::ack::{cake as cake_filter, clamp, collapsing, filter, pacing, regenerator, sad};
use lastmile_queueing::spec::{Over, Spec};
use lastmile_queueing::{DropReason, Environment, Limit, Match, Node, Overflow, ack};
use lastmile_units::{BitRate, ByteCount, Duration, Instant, PacketCount};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};

/// The next packet of a flow's receiver.
#[derive(Clone, Copy, Debug)]
enum Step {
    Advance(u8),
    Duplicate,
    /// A repeated number, and SACK blocks over this many segments beyond the next.
    Selective(u8),
    Window(u16),
    Data(u8),
    Flagged,
    /// An ACK for this many segments, with the list of as many before it.
    Listed(u8),
}

/// Operations on a regulator.
#[derive(Clone, Debug)]
enum Op {
    Sound {
        flow: usize,
        step: Step,
    },
    /// A copy of the packet that would be next, some of its bits flipped.
    Damaged {
        flow: usize,
        step: Step,
        bits: Vec<Index>,
    },
    /// This many sound packets depart.
    Dequeue(u8),
    Wait(u8),
}

const FLOWS: usize = 2;

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let step = || {
        prop_oneof![
            6 => (1..6_u8).prop_map(Step::Advance),
            2 => Just(Step::Duplicate),
            2 => (1..4_u8).prop_map(Step::Selective),
            1 => (0..2000_u16).prop_map(Step::Window),
            2 => (1..200_u8).prop_map(Step::Data),
            1 => Just(Step::Flagged),
            1 => (1..5_u8).prop_map(Step::Listed),
        ]
    };
    let sound = (0..FLOWS, step()).prop_map(|(flow, step)| Op::Sound { flow, step });
    let bits = prop::collection::vec(any::<Index>(), 1..4);
    let damaged = (0..FLOWS, step(), bits).prop_map(|(flow, step, bits)| Op::Damaged { flow, step, bits });
    let op = prop_oneof![
        4 => sound,
        4 => damaged,
        1 => (1..4_u8).prop_map(Op::Dequeue),
        1 => (1..20_u8).prop_map(Op::Wait),
    ];
    prop::collection::vec(op, 1..80)
}

/// The receiver of a flow.
#[derive(Clone, Copy)]
struct Receiver {
    flow: usize,
    acked: u32,
    window: u16,
    seq: u32,
}

impl Receiver {
    fn new(flow: usize) -> Self {
        Self { flow, acked: 1000, window: 500, seq: 1 }
    }

    /// The bytes of a packet of this flow.
    fn write(&self, flags: TcpFlags, payload: u16, options: Options) -> Vec<u8> {
        let mut meta = Meta {
            protocol: Protocol::Tcp,
            flags,
            seq: SeqNumber::new(self.seq),
            ack: SeqNumber::new(self.acked),
            window: self.window,
            ..Meta::default()
        };
        meta.set_options(options);
        meta.header_len = header_len(Protocol::Tcp, false, &options);
        meta.ip_len = u16::from(meta.header_len) + payload;
        let ip = IpAddresses::V4 { source: Ipv4Addr::new(10, 0, 0, 1), destination: Ipv4Addr::new(10, 0, 0, 2) };
        let addresses = FlowAddresses { ip, source_port: 1000 + self.flow as u16, destination_port: 80 };
        let mut bytes = Vec::new();
        write_packet(&meta, &addresses, &mut bytes);
        bytes
    }

    fn syn_ack(&self) -> Vec<u8> {
        let options = SynOptions { mss: Some(1000), window_scale: Some(7), sack_permitted: true };
        self.write(TcpFlags::SYN.with(TcpFlags::ACK), 0, Options::syn(options))
    }

    fn next(&mut self, step: Step) -> Vec<u8> {
        let (mut flags, mut payload, mut options) = (TcpFlags::ACK, 0, Options::NONE);
        match step {
            Step::Advance(segments) => self.acked += 1000 * u32::from(segments),
            Step::Duplicate => {}
            Step::Selective(segments) => {
                let left = SeqNumber::new(self.acked + 1000);
                options = options.with_sack(&[SackBlock { left, right: left.add(1000 * u32::from(segments)) }]);
            }
            Step::Window(window) => self.window = window,
            Step::Data(bytes) => payload = u16::from(bytes),
            Step::Flagged => flags = flags.with(TcpFlags::ECE),
            Step::Listed(before) => {
                let mut list = lastmile_packet::AckList::EMPTY;
                for _ in 0..before {
                    assert!(list.push(1000, lastmile_packet::AckList::MAX_OPTION_BYTES));
                }
                options = options.with_list(&list);
                self.acked += 1000 * u32::from(before);
            }
        }
        let bytes = self.write(flags, payload, options);
        self.seq += u32::from(payload);
        bytes
    }
}

/// A packet of the flow that its bytes name; damage may make it another.
fn frame(flow: usize, bytes: Vec<u8>) -> Frame {
    const OTHER: usize = 99;
    let (mut frame, key) = Frame::new(bytes);
    let same = key.is_ok_and(|key| {
        key.protocol == 6 && key.addresses.source_port == 1000 + flow as u16 && key.addresses.destination_port == 80
    });
    frame.meta_mut().flow = FlowId::new(if same { flow } else { OTHER } as u32);
    frame
}

/// `None`: the result has no damage that a checksum detects.
fn flipped(mut bytes: Vec<u8>, bits: &[Index]) -> Option<Vec<u8>> {
    for bit in bits {
        let bit = bit.index(8 * bytes.len());
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    (checksums_hold(&bytes) != Ok(true)).then_some(bytes)
}

/// A regulator with its input and output.
struct Trial {
    node: Node<Frame>,
    now: Instant,
    receivers: [Receiver; FLOWS],
    damaged_in: Vec<Vec<u8>>,
    damaged_out: Vec<Vec<u8>>,
    sound_out: Vec<(Instant, Vec<u8>)>,
    dropped: Vec<(Vec<u8>, DropReason)>,
}

impl Trial {
    fn new(spec: &Spec) -> Self {
        Self {
            node: spec.build_in(&Environment::default()).expect("a regulator"),
            now: Instant::ZERO,
            receivers: std::array::from_fn(Receiver::new),
            damaged_in: Vec::new(),
            damaged_out: Vec::new(),
            sound_out: Vec::new(),
            dropped: Vec::new(),
        }
    }

    fn enqueue(&mut self, flow: usize, bytes: Vec<u8>) {
        let dropped = &mut self.dropped;
        let mut drops = |_, packet: Frame, reason| dropped.push((packet.bytes().to_vec(), reason));
        self.node.enqueue(self.now, frame(flow, bytes), &mut drops);
    }

    /// Dequeues packets until a sound one has departed. False: nothing is ready.
    fn dequeue(&mut self) -> bool {
        loop {
            let dropped = &mut self.dropped;
            let mut drops = |_, packet: Frame, reason| dropped.push((packet.bytes().to_vec(), reason));
            let Some(packet) = self.node.dequeue(self.now, &mut drops) else { return false };
            let bytes = packet.bytes().to_vec();
            if checksums_hold(&bytes) == Ok(true) {
                self.sound_out.push((self.now, bytes));
                return true;
            }
            self.damaged_out.push(bytes);
        }
    }

    fn run(mut self, ops: &[Op], with_damaged: fn(&Frame) -> bool) -> Self {
        for flow in 0..FLOWS {
            self.enqueue(flow, self.receivers[flow].syn_ack());
            self.dequeue();
        }
        for op in ops {
            match op {
                Op::Sound { flow, step } => {
                    let bytes = self.receivers[*flow].next(*step);
                    self.enqueue(*flow, bytes);
                }
                Op::Damaged { flow, step, bits } => {
                    let damaged = flipped({ self.receivers[*flow] }.next(*step), bits);
                    let Some(bytes) = damaged else { continue };
                    let damaged = frame(*flow, bytes.clone());
                    if with_damaged(&damaged) {
                        self.damaged_in.push(bytes.clone());
                        self.enqueue(*flow, bytes);
                    }
                }
                Op::Dequeue(count) => {
                    for _ in 0..*count {
                        self.dequeue();
                    }
                }
                Op::Wait(ms) => self.now += Duration::from_ms(u64::from(*ms)),
            }
        }
        self.now += Duration::from_s(10);
        while self.dequeue() {}
        self
    }
}

/// Tests a regulator among damaged packets of this kind.
fn hold(spec: &Spec, damages: fn(&Frame) -> bool) {
    let config = Config { failure_persistence: None, cases: 512, ..Config::default() };
    let outcome = TestRunner::new(config).run(&ops(), |ops| {
        let without = Trial::new(spec).run(&ops, |_| false);
        let with = Trial::new(spec).run(&ops, damages);
        prop_assert_eq!(&with.sound_out, &without.sound_out);
        prop_assert_eq!(&with.dropped, &without.dropped);
        let sorted = |mut packets: Vec<Vec<u8>>| {
            packets.sort();
            packets
        };
        prop_assert_eq!(sorted(with.damaged_out), sorted(with.damaged_in));
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

const ANY: fn(&Frame) -> bool = |_| true;
/// TCP without payload, even after the damage.
const SHORT: fn(&Frame) -> bool = |frame| frame.meta().protocol == Protocol::Tcp && frame.meta().payload_len() == 0;

fn queue() -> Box<Spec> {
    Box::new(Spec::fifo(100_000))
}

fn limit() -> (Limit, Overflow) {
    (Limit::Packets(PacketCount::new(100_000)), Overflow::Tail)
}

#[test]
fn sad_takes_nothing_from_a_damaged_ack() {
    for duplicates in [sad::Duplicates::Keep, sad::Duplicates::Count] {
        for report in [sad::Report::None, sad::Report::List, sad::Report::Signal] {
            hold(
                &Spec::Sad(Over { config: sad::Config { duplicates, report, exempt: Match::Never }, queue: queue() }),
                ANY,
            );
        }
    }
}

#[test]
fn the_filter_drops_nothing_for_a_damaged_ack() {
    let (limit, drop) = limit();
    for duplicates in [filter::Duplicates::Keep, filter::Duplicates::Remove] {
        let rules = filter::Rules { duplicates, ..filter::Rules::default() };
        hold(&Spec::AckFilter(filter::Config { limit, drop, rules }), ANY);
    }
}

#[test]
fn no_ack_collapses_into_a_damaged_one() {
    let (limit, drop) = limit();
    hold(&Spec::AckCollapsing(collapsing::Config { limit, drop, exempt: Match::Never }), ANY);
}

#[test]
fn the_filter_of_cake_drops_nothing_for_a_damaged_segment() {
    let (limit, drop) = limit();
    for mode in [cake_filter::Mode::Normal, cake_filter::Mode::Aggressive] {
        let rules = cake_filter::Rules { mode, exempt: Match::Never };
        hold(&Spec::CakeAckFilter(ack::cake::Config { limit, drop, rules }), ANY);
    }
}

/// One queue, so that damaged packets take no other queue's turn. They still separate their
/// neighbours.
#[test]
fn cake_drops_nothing_for_a_damaged_ack() {
    for mode in [cake_filter::Mode::Normal, cake_filter::Mode::Aggressive] {
        let config = lastmile_queueing::cake::Config {
            ack_filter: Some(mode),
            isolation: lastmile_queueing::cake::Isolation::FlowBlind,
            rtt: Duration::from_s(100),
            ..Default::default()
        };
        hold(&Spec::Cake(config), SHORT);
    }
}

/// A damaged segment with payload releases the ACKs ahead of it, as any other does.
#[test]
fn a_damaged_ack_paces_no_other() {
    let config =
        pacing::Config { rate: BitRate::from_mbit_per_s(1), max_hold: Duration::from_ms(30), exempt: Match::Never };
    hold(&Spec::AckPacing(Over { config, queue: queue() }), SHORT);
}

#[test]
fn a_regenerator_restores_nothing_from_a_damaged_ack() {
    let knows = [regenerator::Know::List, regenerator::Know::Signal, regenerator::Know::Interpolate { stride: 1000 }];
    for know in knows {
        for release in [regenerator::Release::Burst, regenerator::Release::Paced { hold: Duration::from_ms(20) }] {
            let config = regenerator::Config { know, release, ..Default::default() };
            hold(&Spec::AckRegenerator(Over { config, queue: queue() }), ANY);
        }
    }
}

#[test]
fn a_clamp_learns_nothing_from_a_damaged_segment() {
    let config = clamp::Config {
        target: clamp::Target::Window(ByteCount::new(4000)),
        mss: ByteCount::new(1000),
        exempt: Match::Never,
    };
    hold(&Spec::WindowClamp(Over { config, queue: queue() }), ANY);
}
