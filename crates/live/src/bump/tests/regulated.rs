//! Regulators between ports with Ethernet frames.

use lastmile_packet::{AckFields, Options, Packet as _, SackBlock, SeqNumber, TcpFlags, checksums_hold, header_len};
use lastmile_queueing::ack;
use lastmile_queueing::ack::{clamp, collapsing, filter, handshakes, pacing, sad};
use lastmile_queueing::classify::End;
use lastmile_queueing::sched::priority;
use lastmile_queueing::spec::Over;
use lastmile_units::PacketCount;

use super::*;

/// A pure ACK of the flow from this port.
pub(super) fn ack(port: u16, number: u32) -> Vec<u8> {
    ack_from(Ipv4Addr::new(198, 18, 0, 2), port, number)
}

fn ack_from(source: Ipv4Addr, port: u16, number: u32) -> Vec<u8> {
    let meta = Meta {
        protocol: Protocol::Tcp,
        flags: TcpFlags::ACK,
        ack: SeqNumber::new(number),
        window: 500,
        header_len: 40,
        ip_len: 40,
        ..Meta::default()
    };
    assert_eq!(header_len(Protocol::Tcp, false, &meta.options()), 40);
    let ip = IpAddresses::V4 { source, destination: Ipv4Addr::new(198, 18, 0, 1) };
    let mut bytes = Vec::new();
    write_packet(&meta, &FlowAddresses { ip, source_port: port, destination_port: 80 }, &mut bytes);
    bytes
}

/// An Ethernet II frame of IPv4, padded to the 60 bytes that every frame has.
pub(super) fn padded(packet: &[u8]) -> Vec<u8> {
    let mut frame = [&[2; 12], &[8, 0][..], packet].concat();
    frame.resize(frame.len().max(60), 0);
    frame
}

/// 8 kbit/s without encapsulation: a byte takes a millisecond.
pub(super) fn slow(queue: Spec) -> Vec<Hop> {
    vec![Hop { queue, ..hop("slow", Some(BitRate::from_kbit_per_s(8)), "ip", Duration::ZERO, 0) }]
}

pub(super) fn sad() -> Spec {
    Spec::Sad(Over {
        config: sad::Config { duplicates: sad::Duplicates::Keep, report: sad::Report::None, exempt: Match::Never },
        queue: Box::new(Spec::fifo(1000)),
    })
}

/// The frames that leave when these come at once.
pub(super) fn across(bump: &mut Bump, frames: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let start = Instant::ZERO + Duration::from_ms(bump.reports().0.received.bytes);
    let port = || FakePort { framing: Framing::Ethernet, ..FakePort::default() };
    let (mut a, mut b) = (port(), port());
    a.arriving = frames.into_iter().map(|frame| (start, frame)).collect();
    let clock = FakeClock(Cell::new(start));
    bump.turn(&clock, &mut a, &mut b).unwrap();
    loop {
        let next = a.arriving.front().map(|(at, _)| *at);
        let Some(wake) = [bump.next_wake(), next].into_iter().flatten().min() else { break };
        clock.0.set(wake.max(clock.now()));
        bump.turn(&clock, &mut a, &mut b).unwrap();
    }
    b.sent.into_iter().map(|(_, frame)| frame).collect()
}

pub(super) fn count(bump: &Bump, name: &str) -> u64 {
    let hops = bump.reports().0.hops;
    hops[0].queue_counters.iter().find(|counter| counter.name == name).expect("a counter of this name").value
}

/// The frame ahead of them holds the line while the ACKs come.
#[test]
fn a_damaged_ack_neither_gives_its_values_nor_takes_any() {
    let first = padded(&packet(0, 100));
    let damaged = |number: u32| {
        let mut bytes = ack(1000, number);
        bytes[30] ^= 0x40;
        assert_eq!(checksums_hold(&bytes), Ok(false));
        padded(&bytes)
    };
    let sound = |number: u32| padded(&ack(1000, number));
    let mut bump = bump(slow(sad()));
    let came = vec![first.clone(), damaged(500), sound(1000), damaged(2000), sound(3000), damaged(9000)];
    let left = across(&mut bump, came);
    assert_eq!(left, [first, damaged(500), sound(3000), damaged(2000), damaged(9000)]);
    assert_eq!((count(&bump, "dropped_ack_merged"), count(&bump, "passed_damaged")), (1, 3));
    assert!(bump.reports().0.is_balanced());
}

/// Headers of a link in front of an IPv4 packet, with bytes of PPP padding counted where there is PPPoE.
fn link(kind: u8, packet: &[u8], padding: usize) -> Vec<u8> {
    let mut bytes = vec![2; 12];
    match kind {
        0 => bytes.extend([8, 0]),
        1 => bytes.extend([0x81, 0, 0x20, 7, 8, 0]),
        2 => bytes.extend([0x88, 0xA8, 0, 8, 0x81, 0, 0, 7, 8, 0]),
        3 => {
            let length = (packet.len() + padding + 2) as u16;
            bytes.extend([0x88, 0x64, 0x11, 0, 0x12, 0x34]);
            bytes.extend(length.to_be_bytes());
            bytes.extend([0, 0x21]);
        }
        // LLC and SNAP, MPLS, a third tag: none of them is looked into.
        4 => bytes.extend([0, 80, 0xAA, 0xAA, 3, 0, 0, 0, 8, 0]),
        5 => bytes.extend([0x88, 0x47, 0, 1, 0x11, 64]),
        _ => bytes.extend([0x88, 0xA8, 0, 8, 0x81, 0, 0, 7, 0x81, 0, 0, 9, 8, 0]),
    }
    bytes
}

/// Frames as anybody may send them: of every kind, padded, with trailers, cut off, damaged, or nothing but noise.
fn frames() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let packet_of = prop_oneof![
        3 => (0..2_u16, 0..20_u32).prop_map(|(port, number)| ack(1000 + port, 1000 * number)),
        1 => (28..200_u16).prop_map(|len| packet(0, len)),
        1 => prop::collection::vec(any::<u8>(), 0..80),
    ];
    let bytes = || prop::collection::vec(any::<u8>(), 0..50);
    let framed = (0..7_u8, packet_of, bytes(), bytes()).prop_map(|(kind, packet, padding, trailer)| {
        [link(kind, &packet, padding.len()), packet, padding, trailer].concat()
    });
    let harmed = (framed, any::<prop::sample::Index>(), 0..3_u8).prop_map(|(mut frame, at, harm)| {
        match harm {
            0 => frame.truncate(at.index(frame.len()) + 1),
            1 => {
                let bit = at.index(8 * frame.len());
                frame[bit / 8] ^= 1 << (bit % 8);
            }
            _ => {}
        }
        frame
    });
    prop::collection::vec(harmed, 1..30)
}

/// Every regulator, each over a plain queue.
fn regulators() -> Vec<Spec> {
    let queue = || Box::new(Spec::fifo(1000));
    let (limit, drop, exempt) = (Limit::Packets(PacketCount::new(1000)), Overflow::Tail, Match::Never);
    let pacing =
        pacing::Config { rate: BitRate::from_mbit_per_s(1), max_hold: Duration::from_ms(30), exempt: Match::Never };
    let clamp = clamp::Config {
        target: clamp::Target::Window(ByteCount::new(4000)),
        mss: ByteCount::new(1000),
        exempt: Match::Never,
    };
    vec![
        sad(),
        Spec::AckFilter(filter::Config { limit, drop, rules: Default::default() }),
        Spec::AckCollapsing(collapsing::Config { limit, drop, exempt }),
        Spec::CakeAckFilter(ack::cake::Config { limit, drop, rules: Default::default() }),
        Spec::AckRegenerator(Over { config: Default::default(), queue: queue() }),
        Spec::AckPacing(Over { config: pacing, queue: queue() }),
        Spec::WindowClamp(Over { config: clamp, queue: queue() }),
        Spec::Witness(Over { config: handshakes::Config, queue: queue() }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// A line carries frames of any kind byte for byte and in order.
    #[test]
    fn any_frame_crosses_a_line_byte_for_byte(frames in frames()) {
        let mut bump = bump(slow(Spec::fifo(1000)));
        prop_assert_eq!(across(&mut bump, frames.clone()), frames);
    }

    /// A regulator changes, drops or delays sound ACKs, and nothing else.
    #[test]
    fn behind_a_regulator_all_but_sound_acks_comes_byte_for_byte(frames in frames()) {
        let others = |frames: &[Vec<u8>]| -> Vec<Vec<u8>> {
            let is_sound_ack = |frame: &[u8]| Frame::ethernet(frame.to_vec()).0.meta().pure_ack().is_some();
            frames.iter().filter(|frame| !is_sound_ack(frame)).cloned().collect()
        };
        for spec in regulators() {
            let mut bump = bump(slow(spec.clone()));
            let left = across(&mut bump, frames.clone());
            let (mut left, mut came) = (others(&left), others(&frames));
            if matches!(spec, Spec::AckPacing(_)) {
                // A damaged ACK waits behind those of its flow, and others pass it.
                left.sort();
                came.sort();
            }
            prop_assert_eq!(left, came, "{:?}", spec);
            prop_assert!(bump.reports().0.is_balanced());
        }
    }
}

/// The ACK that waits grows by a SACK block: 12 bytes. Bytes behind it stay, and PPPoE counts its padding still.
#[test]
fn an_ack_that_changes_its_length_keeps_what_stands_behind_it() {
    let plain = ack(1000, 1000);
    let selective = {
        let (mut frame, _) = Frame::new(ack(1000, 2000));
        let block = SackBlock { left: SeqNumber::new(3000), right: SeqNumber::new(4000) };
        let fields = frame.meta().pure_ack().unwrap().fields();
        frame.rewrite_ack(&AckFields { options: Options::NONE.with_sack(&[block]), ..fields });
        frame.into_bytes()
    };
    let (padding, trailer) = ([0xA1; 5], [0xB2; 7]);
    let within = |packet: &[u8], padding: &[u8], trailer: &[u8]| {
        [&link(3, packet, padding.len()), packet, padding, trailer].concat()
    };
    let first = padded(&packet(0, 100));
    let came = vec![first.clone(), within(&plain, &padding, &trailer), within(&selective, &[], &[])];
    let mut bump = bump(slow(sad()));
    assert_eq!(across(&mut bump, came), [first, within(&selective, &padding, &trailer)]);
    assert_eq!(count(&bump, "grown_bytes"), 12);
}

/// Of packets to port 80 the first class, a Smart ACK Dropper.
fn by_port() -> Spec {
    let class = |matches, queue| ClassSpec { matches, queue };
    Spec::Rules(rules::Config {
        rules: vec![rules::Rule { matches: Match::Port(End::Destination, 80..=80), class: 0, last: false }],
        otherwise: 1,
        names: Vec::new(),
        queue: Box::new(Spec::Priority(priority::Config {
            classes: vec![class(Match::Class(0), sad()), class(Match::Any, Spec::fifo(1000))],
        })),
    })
}

/// More flows of one packet each than the table distinguishes. A connection that had two packets keeps its
/// number, one that is new has one, rules say its class, and its ACKs are merged.
#[test]
fn a_flood_of_one_packet_flows_switches_nothing_off() {
    let mut bump = bump(slow(by_port()));
    let key_of = |port| *Frame::new(ack(port, 0)).0.flow_key().unwrap();
    across(&mut bump, vec![padded(&ack(1, 1000)), padded(&ack(1, 2000))]);
    let settled = bump.flows.get(&key_of(1));
    assert!(settled.is_some());

    let flood = MAX_FLOWS + 1000;
    let scanned = |n: u32| padded(&ack_from(Ipv4Addr::from_bits((10 << 24) + n), 7, 1));
    across(&mut bump, (0..flood).map(scanned).collect());
    assert_eq!((bump.flows.get(&key_of(1)), bump.reports().0.evicted), (settled, u64::from(flood + 1 - MAX_FLOWS)));

    let merged = count(&bump, "dropped_ack_merged");
    let first = padded(&ack(2, 1000));
    let later: Vec<_> = (3..6).map(|port| padded(&ack(port, 9))).collect();
    let came =
        [vec![first.clone(), padded(&ack(2, 2000)), padded(&ack(2, 3000))], later.clone(), vec![padded(&ack(2, 4000))]];
    let left = across(&mut bump, came.concat());
    assert_eq!(left, [vec![first, padded(&ack(2, 4000))], later].concat());
    assert_eq!(count(&bump, "dropped_ack_merged") - merged, 2);
    assert!(bump.flows.get(&key_of(2)).is_some());
}
