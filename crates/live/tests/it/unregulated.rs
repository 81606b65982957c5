//! Packets that regulation must not touch, and packets that nobody understands: it crosses a
//! middlebox that regulates ACKs byte for byte.

use std::thread;
use std::time::Duration as StdDuration;

use lastmile_linklayer::LinkLayer;
use lastmile_live::clock::{Clock as _, MonotonicClock};
use lastmile_live::io::PacketSocket;
use lastmile_live::shape::Direction;
use lastmile_packet::{Frame, Packet as _};
use lastmile_queueing::ack::{collapsing, filter, sad};
use lastmile_queueing::meter::tbf;
use lastmile_queueing::random::Stream;
use lastmile_queueing::spec::{Over, Spec};
use lastmile_queueing::{End, Match, fifo};
use lastmile_units::{BitRate, ByteCount, Duration};

use crate::frames::{ethernet, everything, everything_until, ipv4, seal, send};
use crate::hosts::{Hosts, ip};
use crate::shape::{shaping, unshaped};
use crate::world::{is_long, needs_live};

/// The exception list: what goes to this port.
const EXEMPT: u16 = 9999;

/// The destination of plain ACKs.
const PLAIN: u16 = 8080;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86DD;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ACK: u8 = 0x10;

/// A TCP header without payload, and whatever options.
fn tcp(ack: u32, flags: u8, port: u16, options: &[u8]) -> Vec<u8> {
    assert_eq!(options.len() % 4, 0);
    let offset = (5 + options.len() as u8 / 4) << 4;
    let mut header = [50_000_u16.to_be_bytes(), port.to_be_bytes()].concat();
    header.extend(1_u32.to_be_bytes());
    header.extend(ack.to_be_bytes());
    header.extend([offset, flags, 0x20, 0, 0, 0, 0, 0]);
    header.extend_from_slice(options);
    header
}

fn ip_of(protocol: u8, carried: &[u8]) -> Vec<u8> {
    ipv4(protocol, 0, 20 + carried.len() as u16, carried)
}

fn ipv6_of(next_header: u8, carried: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((carried.len() as u16).to_be_bytes());
    packet.extend([next_header, 64]);
    for end in [2, 1] {
        packet.extend([0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end]);
    }
    packet.extend_from_slice(carried);
    packet
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut datagram = [50_000_u16.to_be_bytes(), port.to_be_bytes()].concat();
    datagram.extend((8 + payload.len() as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend_from_slice(payload);
    datagram
}

/// The ACK that every regulator drops for a newer one, of a flow that sends nothing else.
fn plain_ack(ack: u32) -> Vec<u8> {
    ethernet(IPV4, &ip_of(TCP, &tcp(ack, ACK, PLAIN, &[])))
}

/// An ACK in everything that makes it another thing; and what no regulator knows.
fn left_alone(ack: u32) -> Vec<(&'static str, Vec<u8>)> {
    let number = ack.to_be_bytes();
    let segment = tcp(ack, ACK, 80, &[]);
    let inner = ip_of(TCP, &segment);
    let with_options = |options: &[u8]| ethernet(IPV4, &ip_of(TCP, &tcp(ack, ACK, 80, options)));
    let fragment = |field: u16| {
        let mut packet = inner.clone();
        packet[6..8].copy_from_slice(&field.to_be_bytes());
        seal(&mut packet);
        ethernet(IPV4, &packet)
    };
    let marked = {
        let mut packet = inner.clone();
        packet[1] = 3;
        seal(&mut packet);
        ethernet(IPV4, &packet)
    };
    let ipv6_fragment = [&[TCP, 0, 0, 1, 0, 0, 0, 9][..], &segment].concat();
    let session = |protocol: u16, behind: &[u8]| {
        let mut header = vec![0x11, 0x00, 0x12, 0x34];
        header.extend((2 + behind.len() as u16).to_be_bytes());
        header.extend(protocol.to_be_bytes());
        ethernet(0x8864, &[&header, behind].concat())
    };
    let group = |group: [u8; 6], frame: Vec<u8>| [&group[..], &frame[6..]].concat();
    let data = ip_of(TCP, &[segment.clone(), number.to_vec()].concat());
    let tagged = |tag: &[u8], behind: &[u8]| [tag, &IPV4.to_be_bytes(), behind].concat();
    vec![
        ("QUIC", ethernet(IPV4, &ip_of(UDP, &udp(443, &[&[0x43; 8][..], &number, &[0xA5; 20]].concat())))),
        ("WireGuard", ethernet(IPV4, &ip_of(UDP, &udp(51_820, &[&[4, 0, 0, 0][..], &number, &[7; 40]].concat())))),
        ("OpenVPN over TCP", ethernet(IPV4, &ip_of(TCP, &[tcp(ack, ACK, 1194, &[]), vec![0, 2, 0x38, 1]].concat()))),
        ("ESP", ethernet(IPV4, &ip_of(50, &[&number[..], &[9; 32]].concat()))),
        ("ESP over IPv6", ethernet(IPV6, &ipv6_of(50, &[&number[..], &[9; 32]].concat()))),
        ("AH", ethernet(IPV4, &ip_of(51, &[&[TCP, 4, 0, 0][..], &number, &[0; 16], &segment].concat()))),
        ("GRE", ethernet(IPV4, &ip_of(47, &[&[0, 0, 8, 0][..], &inner].concat()))),
        ("IP in IP", ethernet(IPV4, &ip_of(4, &inner))),
        ("6in4", ethernet(IPV4, &ip_of(41, &ipv6_of(TCP, &segment)))),
        ("SCTP", ethernet(IPV4, &ip_of(132, &[&number[..], &[0; 12]].concat()))),
        ("an experimental option", with_options(&[253, 4, 0xBE, 0xEF])),
        ("Multipath TCP", with_options(&[30, 8, 0x20, 1, 0, 0, 0, 9])),
        ("TCP-AO", with_options(&[29, 16, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
        ("an option of Accurate ECN", with_options(&[172, 5, 0, 0, 1, 1, 1, 1])),
        ("a mark by Accurate ECN", {
            // The bit beside the offset of the data, which ACKs without it do not have.
            let mut segment = segment.clone();
            segment[12] |= 0x01;
            ethernet(IPV4, &ip_of(TCP, &segment))
        }),
        ("a damaged option", with_options(&[8, 40, 0, 0])),
        ("the exception list", ethernet(IPV4, &ip_of(TCP, &tcp(ack, ACK, EXEMPT, &[])))),
        ("FIN", ethernet(IPV4, &ip_of(TCP, &tcp(ack, ACK | 1, 80, &[])))),
        ("URG", ethernet(IPV4, &ip_of(TCP, &tcp(ack, ACK | 0x20, 80, &[])))),
        ("data", ethernet(IPV4, &data)),
        ("a congestion mark", marked),
        ("a first fragment", fragment(0x2000)),
        ("a later fragment", fragment(0x0003)),
        ("an IPv6 fragment", ethernet(IPV6, &ipv6_of(44, &ipv6_fragment))),
        ("VLAN", ethernet(0x8100, &tagged(&[0x20, 0x07], &data))),
        ("QinQ", ethernet(0x88A8, &[&[0x00, 0x08, 0x81, 0x00][..], &tagged(&[0x00, 0x07], &data)].concat())),
        ("MPLS", ethernet(0x8847, &[&[0, 0x01, 0x01, 64][..], &inner].concat())),
        ("PPPoE with IP", session(0x0021, &data)),
        ("PPPoE with LCP", session(0xC021, &[&[9, 1, 0, 8][..], &number].concat())),
        ("PPPoE, compressed", session(0x00FD, &inner)),
        ("PPPoE discovery", ethernet(0x8863, &[&[0x11, 9, 0, 0, 0, 4][..], &number].concat())),
        ("MACsec", ethernet(0x88E5, &[&[0x2C, 0][..], &number, &[1; 48]].concat())),
        ("ARP", ethernet(0x0806, &[&[0, 1, 8, 0, 6, 4, 0, 1][..], &number, &[3; 16]].concat())),
        ("LLDP", group([1, 0x80, 0xC2, 0, 0, 0x0E], ethernet(0x88CC, &[&[2, 7][..], &number, &[4; 40]].concat()))),
        ("LLC", group([1, 0x80, 0xC2, 0, 0, 0], ethernet(38, &[&[0x42, 0x42, 3][..], &number, &[0; 31]].concat()))),
        ("a wrong checksum", {
            let mut packet = inner.clone();
            packet[36] ^= 1;
            ethernet(IPV4, &packet)
        }),
        ("padding and a trailer", ethernet(IPV4, &[&data[..], &[0, 0, 0, 0xFC, 0xFC, 0xFC]].concat())),
        ("a jumbo frame", ethernet(IPV4, &ip_of(UDP, &udp(9, &[&number[..], &[0xEE; 8900]].concat())))),
        ("a jumbo frame of nobody's", ethernet(0x88B5, &[&number[..], &[0xDD; 8900]].concat())),
    ]
}

/// Slow enough that ACKs meet, for packets as long as they come.
fn regulated(rate: BitRate, regulator: Spec) -> Direction {
    let link_layer = LinkLayer::from_name("ethernet").unwrap();
    let largest = ByteCount::new(9000);
    let (burst, queue, catch_up) = (link_layer.on_wire(largest), Box::new(regulator), Duration::ZERO);
    Direction {
        queue: Spec::Tbf(Over { config: tbf::Config { rate, burst, peak: None, largest, catch_up }, queue }),
        link_layer,
    }
}

fn regulators() -> [(&'static str, Spec); 3] {
    let exempt = Match::Port(End::Destination, EXEMPT..=EXEMPT);
    let Spec::Fifo(fifo::Config { limit, drop }) = Spec::fifo(100_000) else { panic!("a FIFO is one") };
    let queue = Box::new(Spec::fifo(100_000));
    let (duplicates, report) = (sad::Duplicates::Keep, sad::Report::None);
    let rules = filter::Rules { exempt: exempt.clone(), ..Default::default() };
    [
        ("SAD", Spec::Sad(Over { config: sad::Config { duplicates, report, exempt: exempt.clone() }, queue })),
        ("ACK filter", Spec::AckFilter(filter::Config { limit, drop, rules })),
        ("ACK collapsing", Spec::AckCollapsing(collapsing::Config { limit, drop, exempt })),
    ]
}

/// One middlebox for each regulator, and five frames of each kind with a newer ACK number in each.
#[test]
#[ignore = "needs root: real packets"]
fn regulation_leaves_alone_what_it_does_not_understand_or_is_told_to() {
    needs_live!();
    const ROUNDS: u32 = 5;
    let hosts = Hosts::new(true);
    let middle = hosts.middle.name();
    for (place, device) in [(hosts.left.name(), "eth"), (hosts.right.name(), "eth"), (middle, "west"), (middle, "east")]
    {
        ip(&format!("-n {place} link set {device} mtu 9100"));
    }
    let acks = || (1..=ROUNDS).map(|round| 1000 * round);
    let sent: Vec<Vec<u8>> = acks()
        .flat_map(|ack| [plain_ack(ack)].into_iter().chain(left_alone(ack).into_iter().map(|(_, frame)| frame)))
        .collect();
    for (name, regulator) in regulators() {
        let up = regulated(BitRate::from_mbit_per_s(8), regulator);
        let (snapshot, came) = shaping(&hosts, up, unshaped(), |handle| {
            let open = |host| PacketSocket::open(Some(host), "eth").unwrap();
            let (mut from, mut to) = (open(&hosts.left), open(&hosts.right));
            for frames in sent.chunks(32) {
                send(&mut from, frames.iter().map(|frame| Frame::ethernet(frame.clone()).0).collect());
            }
            let dropped = || handle.report().unwrap().up.hops[0].dropped_packets() as usize;
            everything_until(&mut to, |came| came.len() + dropped() == sent.len())
        });
        // By its port: an ACK that has taken others in says another number than it did.
        let is_plain = |frame: &Vec<u8>| {
            frame[12..14] == IPV4.to_be_bytes() && frame[23] == TCP && frame[36..38] == PLAIN.to_be_bytes()
        };
        for (kind, (what, _)) in left_alone(0).into_iter().enumerate() {
            let of_kind: Vec<Vec<u8>> = acks().map(|ack| left_alone(ack).swap_remove(kind).1).collect();
            let there: Vec<_> = came.iter().filter(|frame| of_kind.contains(frame)).collect();
            assert!(there.iter().copied().eq(&of_kind), "{name}: {what}: {} of {ROUNDS} came", there.len());
        }
        let others = came.iter().filter(|frame| !is_plain(frame));
        assert!(others.eq(sent.iter().filter(|frame| !is_plain(frame))), "{name}: out of order or changed");
        // The regulator does its work: the newest ACK came, and not all before it.
        let plain = came.iter().filter(|frame| is_plain(frame)).count();
        let newest = came.iter().rfind(|frame| is_plain(frame)).map(|frame| frame[42..46].to_vec());
        assert!(plain < ROUNDS as usize, "{name}: {plain} plain ACKs came");
        assert_eq!(newest, Some((1000 * ROUNDS).to_be_bytes().to_vec()), "{name}");
        assert_eq!(snapshot.up.received.packets, sent.len() as u64, "{name}");
        assert_eq!(snapshot.up.hops[0].dropped_packets(), (ROUNDS as usize - plain) as u64, "{name}");
    }
}

/// The packets that fuzzing begins with.
fn corpus() -> Vec<Vec<u8>> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/packet");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let frame = |path: &std::path::PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with("ethernet") {
            return bytes;
        }
        ethernet(if name.starts_with("v6") { IPV6 } else { IPV4 }, &bytes)
    };
    files.iter().map(frame).collect()
}

/// One of the corpus, damaged: some bytes changed, some cut off or some added; never shorter than a
/// header that the kernel would not take.
fn damaged(corpus: &[Vec<u8>], chance: &mut Stream) -> Vec<u8> {
    const HEADER: u64 = 14;
    let mut frame = corpus[chance.below(corpus.len() as u64) as usize].clone();
    for _ in 0..chance.below(4) {
        // The addresses decide about nothing here.
        let at = 12 + chance.below(frame.len() as u64 - 12) as usize;
        frame[at] = chance.below(256) as u8;
    }
    match chance.below(3) {
        0 => frame.truncate((HEADER + chance.below(frame.len() as u64 - HEADER + 1)) as usize),
        1 => frame.extend((0..chance.below(200)).map(|_| chance.below(256) as u8)),
        _ => {}
    }
    // The kernel looks at tags itself, and drops a frame that ends within them.
    if matches!(frame[12..14], [0x81, 0x00] | [0x88, 0xA8]) {
        frame.resize(frame.len().max(26), 0);
    }
    frame
}

/// ACKs that a regulator may merge are counted, and all other packets come byte for byte and in order.
#[test]
#[ignore = "needs root: real packets"]
fn damaged_packets_are_carried_or_counted() {
    needs_live!();
    let count = if is_long() { 2_000_000 } else { 30_000 };
    let hosts = Hosts::new(true);
    let (corpus, mut chance) = (corpus(), Stream::new(1, "damaged packets"));
    let [(_, sad), ..] = regulators();
    let up = regulated(BitRate::from_mbit_per_s(100), sad);
    let (snapshot, merged) = shaping(&hosts, up, unshaped(), |handle| {
        let open = |host| PacketSocket::open(Some(host), "eth").unwrap();
        let (mut from, mut to, clock) = (open(&hosts.left), open(&hosts.right), MonotonicClock::start());
        let mut merged = 0;
        for _ in 0..count / 300 {
            let sent: Vec<Vec<u8>> = (0..300).map(|_| damaged(&corpus, &mut chance)).collect();
            for frames in sent.chunks(30) {
                send(&mut from, frames.iter().map(|frame| Frame::ethernet(frame.clone()).0).collect());
            }
            let start = clock.now();
            let (mut came, mut dropped) = (Vec::new(), 0);
            while came.len() as u64 + dropped < 300 {
                thread::sleep(StdDuration::from_millis(1));
                everything(&mut to, &clock, &mut |_, frame| came.push(frame.to_vec()));
                let up = handle.report().unwrap().up;
                dropped = up.hops[0].dropped_packets() - merged;
                if clock.now() - start > Duration::from_s(20) {
                    let missing = sent.iter().find(|frame| !came.contains(frame));
                    panic!("{} of 300 came, {dropped} were counted; {up:?}; not {missing:02X?}", came.len());
                }
            }
            // A regulator writes ACKs anew; all else is as it was.
            let kept = |frames: &[Vec<u8>]| -> Vec<Vec<u8>> {
                let is_ack = |frame: &&Vec<u8>| Frame::ethernet((*frame).clone()).0.meta().pure_ack().is_some();
                frames.iter().filter(|frame| !is_ack(frame)).cloned().collect()
            };
            assert!(kept(&sent) == kept(&came), "changed or out of order");
            merged += dropped;
        }
        merged
    });
    let up = &snapshot.up;
    let (received, not_ip, unreadable) = (up.received.packets, up.not_ip, up.unreadable);
    eprintln!("{received} damaged packets: {not_ip} not of IP, {unreadable} unreadable, {merged} ACKs merged");
    assert_eq!(received, count / 300 * 300);
    assert_eq!(up.sent.packets + merged, received);
    assert!(unreadable > count / 20, "{unreadable}");
}
