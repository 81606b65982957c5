//! Frames as a virtual machine hands them over, sound and hostile: with any of the offloads that
//! struct `virtio_net_hdr` has words for, and with words that do not fit the frame. They go through
//! a middlebox between two TAP devices, and along an emulated line.
//!
//! The last two tests go on for `LASTMILE_HOSTILE_S` seconds, three if that is not set.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Command;
use std::thread;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Frame;
use lastmile_packet::checksum::Sum;
use lastmile_queueing::Match;
use lastmile_queueing::ack::sad;
use lastmile_queueing::random::Stream;
use lastmile_queueing::spec::{Over, Spec};
use lastmile_units::Duration;

use super::{PacketSocket, Path, Port as _, offload::Offloads};
use crate::emulate;
use crate::netns::Namespace;
use crate::shape::{Config, Direction, Handle, Snapshot, Tuning, World};
use crate::stop::Stop;
use crate::sys::device;

/// Hands over checksums and pieces of TCP and UDP, fragments of UDP included: `TUN_F_CSUM`, `TSO4`,
/// `TSO6`, `TSO_ECN`, `UFO`, `USO4`, `USO6`.
const EVERY_OFFLOAD: libc::c_uint = 0x7F;
const HEADER_LEN: usize = 10;
const NOBODY: [u8; 12] = [2, 0, 0, 0, 0, 0x99, 2, 0, 0, 0, 0, 0x98];
const NEEDS_CHECKSUM: u8 = 1;

/// Two virtual machines on a bridge.
struct Machines {
    middle: Namespace,
    taps: [File; 2],
}

impl Machines {
    fn new(role: &str) -> Self {
        let middle = Namespace::create(&format!("lastmile-{}-{role}", std::process::id())).unwrap();
        let open = |name: &str| middle.run(|| device::open_tap(name, EVERY_OFFLOAD)).unwrap().unwrap();
        let taps = ["west", "east"].map(open);
        let ip = |arguments: &str| {
            let done = Command::new("ip").args(["-n", middle.name()]).args(arguments.split(' ')).status().unwrap();
            assert!(done.success(), "ip {arguments}");
        };
        ip("link add bridge type bridge forward_delay 0 mcast_snooping 0");
        for device in ["bridge", "west", "east"] {
            ip(&format!("link set {device} addrgenmode none"));
        }
        for port in ["west", "east"] {
            ip(&format!("link set {port} master bridge up"));
        }
        ip("link set bridge up");
        Self { middle, taps }
    }

    /// Shapes while `work` runs.
    fn shaping<T>(&mut self, path: Path, work: impl FnOnce(&mut [File; 2], &Handle) -> T) -> (Snapshot, T) {
        let unshaped = |regulated: bool| {
            let queue = Box::new(Spec::fifo(2000));
            let (duplicates, report) = (sad::Duplicates::Keep, sad::Report::None);
            let sad = Spec::Sad(Over { config: sad::Config { duplicates, report, exempt: Match::Never }, queue });
            let queue = if regulated { sad } else { Spec::fifo(2000) };
            Direction { queue, link_layer: LinkLayer::from_name("bridged-vcmux-fcs").unwrap() }
        };
        let world = World::build(&Config {
            namespace: Some(self.middle.name().to_owned()),
            lan: "west".into(),
            wan: "east".into(),
            make_bridge: None,
            up: unshaped(true),
            down: unshaped(false),
            path,
            tuning: Tuning::default(),
            records: false,
        })
        .unwrap();
        let (stop, handle) = (Stop::new().unwrap(), world.handle());
        thread::scope(|scope| {
            let carrier = scope.spawn(|| world.run(&stop).unwrap());
            let done = work(&mut self.taps, &handle);
            handle.stop();
            let snapshot = carrier.join().unwrap();
            assert!(snapshot.up.is_balanced() && snapshot.down.is_balanced(), "{snapshot:?}");
            (snapshot, done)
        })
    }
}

/// The header in front of a frame.
fn header(flags: u8, kind: u8, size: u16, start: u16, offset: u16) -> Vec<u8> {
    let mut header = vec![flags, kind, 0, 0];
    header.extend([size, start, offset].iter().flat_map(|word| word.to_ne_bytes()));
    header
}

fn ip(protocol: u8, carried: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((carried.len() as u16).wrapping_add(20).to_be_bytes());
    packet.extend([0, 1, 0x40, 0, 64, protocol, 0, 0, 198, 18, 0, 2, 198, 18, 0, 1]);
    let checksum = Sum::ZERO.bytes(&packet).checksum();
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend_from_slice(carried);
    packet
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut datagram = [40_000_u16.to_be_bytes(), port.to_be_bytes()].concat();
    datagram.extend((payload.len() as u16).wrapping_add(8).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend_from_slice(payload);
    datagram
}

fn tcp(payload: &[u8]) -> Vec<u8> {
    let mut segment = vec![0, 80, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 9, 0x50, 0x10, 0x20, 0, 0, 0, 0, 0];
    segment.extend_from_slice(payload);
    segment
}

fn ethernet(kind: u16, packet: &[u8]) -> Vec<u8> {
    [&NOBODY[..], &kind.to_be_bytes(), packet].concat()
}

/// The sound datagram of this number.
fn numbered(number: u32) -> Vec<u8> {
    ethernet(0x0800, &ip(17, &udp(9, &[&b"number"[..], &number.to_be_bytes(), &[0; 20]].concat())))
}

fn number_of(frame: &[u8]) -> Option<u32> {
    (frame.get(42..48)? == b"number").then(|| frame[48..].first_chunk().map(|bytes| u32::from_be_bytes(*bytes)))?
}

/// Hands over a frame; false where the kernel refuses it.
fn give(tap: &mut File, header: &[u8], frame: &[u8]) -> bool {
    tap.write(&[header, frame].concat()).is_ok()
}

/// The packets that have come, without the header.
fn taken(tap: &mut File) -> Vec<Vec<u8>> {
    let mut buffer = vec![0; 70_000];
    let mut came = Vec::new();
    while let Ok(len) = tap.read(&mut buffer) {
        came.push(buffer[HEADER_LEN.min(len)..len].to_vec());
    }
    came
}

/// The packets that come until all sound datagrams up to this number are among them.
fn until(tap: &mut File, last: u32) -> Vec<Vec<u8>> {
    let (start, mut came) = (StdInstant::now(), Vec::new());
    while !came.iter().any(|frame: &Vec<u8>| number_of(frame) == Some(last)) {
        assert!(start.elapsed() < StdDuration::from_secs(10), "datagram {last} does not come");
        thread::sleep(StdDuration::from_micros(200));
        came.append(&mut taken(tap));
    }
    came
}

/// Waits until nothing has come for 5 ms: what a piece becomes can be more than a device holds.
fn quiet(tap: &mut File) {
    let mut latest = StdInstant::now();
    while latest.elapsed() < StdDuration::from_millis(5) {
        if !taken(tap).is_empty() {
            latest = StdInstant::now();
        }
        thread::sleep(StdDuration::from_micros(200));
    }
}

/// UFO is a piece that the kernel cannot say to a packet socket.
#[test]
#[ignore = "needs root: real packets"]
fn a_piece_that_the_kernel_has_no_word_for_is_one_lost_counted_frame() {
    let mut machines = Machines::new("ufo");
    let (snapshot, ()) = machines.shaping(Path::PacketSockets, |[west, east], _| {
        for round in 0..3 {
            assert!(give(west, &header(0, 0, 0, 0, 0), &numbered(2 * round)));
            let piece = ethernet(0x0800, &ip(17, &udp(9, &[7; 4000])));
            assert!(give(west, &header(NEEDS_CHECKSUM, 3, 1480, 34, 6), &piece));
            assert!(give(west, &header(0, 0, 0, 0, 0), &numbered(2 * round + 1)));
            assert_eq!(until(east, 2 * round + 1).len(), 2);
        }
    });
    assert_eq!(snapshot.up.port.offloads, Offloads { refused: 3, ..Offloads::default() });
    assert_eq!(snapshot.up.received.packets, 6);
}

/// VXLAN in a virtual machine: the inner checksum is open, the inner segments are not cut. Small
/// frames get through AF_XDP too.
#[test]
#[ignore = "needs root: real packets"]
fn tcp_in_vxlan_in_a_virtual_machine_comes_whole() {
    for path in [Path::PacketSockets, Path::Xdp] {
        let mut machines = Machines::new("vxlan");
        let outside = |segment: &[u8]| {
            let inner = ethernet(0x0800, &ip(6, segment));
            ethernet(0x0800, &ip(17, &udp(4789, &[&[8, 0, 0, 0, 0, 0, 1, 0][..], &inner].concat())))
        };
        let start = 14 + 20 + 8 + 8 + 14 + 20;
        // The field holds the sum of the pseudo-header alone.
        let with_open = |payload: &[u8]| {
            let mut segment = tcp(payload);
            let sum = Sum::ZERO.bytes(&[198, 18, 0, 2, 198, 18, 0, 1]).word(6).word(segment.len() as u16).fold();
            segment[16..18].copy_from_slice(&sum.to_be_bytes());
            outside(&segment)
        };
        let (snapshot, came) = machines.shaping(path, |[west, east], _| {
            let open = |kind, size| header(NEEDS_CHECKSUM, kind, size, start as u16, 16);
            assert!(give(west, &open(0, 0), &with_open(&[5; 700])));
            let mut expected = 1;
            if path == Path::PacketSockets && give(west, &open(1, 1000), &with_open(&[6; 3500])) {
                expected += 4;
            }
            assert!(give(west, &header(0, 0, 0, 0, 0), &numbered(1)));
            let mut came = until(east, 1);
            came.pop();
            assert_eq!(came.len(), expected, "{path}");
            came
        });
        assert_eq!(snapshot.up.port.offloads.finished, 1, "{path}");
        for frame in &came {
            let segment = &frame[start..];
            let sum = Sum::ZERO.bytes(&[198, 18, 0, 2, 198, 18, 0, 1]).word(6).word(segment.len() as u16);
            assert_eq!(sum.bytes(segment).checksum(), 0, "{path}: the inner checksum");
            assert_eq!(usize::from(u16::from_be_bytes([frame[16], frame[17]])), frame.len() - 14, "{path}");
        }
    }
}

/// Something like a packet, in tunnels or not, with lengths that fit or not.
fn packet(chance: &mut Stream) -> Vec<u8> {
    let many = chance.below(20) == 0;
    let payload = vec![chance.below(256) as u8; chance.below(if many { 60_000 } else { 1600 }) as usize];
    let mut packet = match chance.below(4) {
        0 => ip(17, &udp(chance.below(65_536) as u16, &payload)),
        1 => ip(chance.below(256) as u8, &payload),
        _ => ip(6, &tcp(&payload)),
    };
    for _ in 0..chance.below(4) {
        packet = match chance.below(4) {
            0 => ip(4, &packet),
            1 => ip(47, &[&[0, 0, 8, 0][..], &packet].concat()),
            2 => ip(17, &udp(4789, &[&[8, 0, 0, 0, 0, 0, 1, 0][..], &ethernet(0x0800, &packet)].concat())),
            _ => {
                let mut outer = vec![0x60, 0, 0, 0];
                outer.extend((packet.len() as u16).to_be_bytes());
                outer.extend([4, 64]);
                outer.extend([0x20; 32]);
                outer.extend(&packet);
                outer
            }
        };
    }
    for _ in 0..chance.below(6) {
        let at = chance.below((packet.len() as u64).min(120)) as usize;
        packet[at] = chance.below(256) as u8;
    }
    if chance.below(8) == 0 {
        packet.truncate(chance.below(packet.len() as u64 + 1) as usize);
    }
    packet
}

fn frame(chance: &mut Stream) -> Vec<u8> {
    let packet = packet(chance);
    let kind = [0x0800, 0x0800, 0x86DD, 0x8100, 0x8864, 0x88A8, 0x0806, 46][chance.below(8) as usize];
    let mut frame = match kind {
        0x8100 | 0x88A8 => ethernet(kind, &[&[0, 7, 8, 0][..], &packet].concat()),
        0x8864 => {
            let length = (packet.len() as u16).wrapping_add(2).to_be_bytes();
            ethernet(kind, &[&[0x11, 0, 0, 1][..], &length, &[0, 0x21], &packet].concat())
        }
        kind => ethernet(kind, &packet),
    };
    frame.extend(vec![0xEE; chance.below(3) as usize * 9]);
    frame.truncate(65_000);
    frame
}

/// Words about it that fit now and then.
fn words(frame: &[u8], chance: &mut Stream) -> Vec<u8> {
    let flags = [0, 0, 1, 1, 2, 3][chance.below(6) as usize];
    let kind = [0, 0, 0, 1, 3, 4, 5, 0x81, 0x84][chance.below(9) as usize];
    let start = match chance.below(4) {
        0 => chance.below(frame.len() as u64 + 20) as u16,
        1 => 14 + 20 + 8 + 8 + 14 + 20,
        2 => 14 + 20 + 20,
        _ => 34,
    };
    let offset = [16, 6, 8, 2, chance.below(100) as u16][chance.below(5) as usize];
    let size = [0, 1, 500, 1448, chance.below(65_536) as u16][chance.below(5) as usize];
    header(flags, kind, size, start, offset)
}

fn seconds() -> u64 {
    std::env::var("LASTMILE_HOSTILE_S").ok().and_then(|text| text.parse().ok()).unwrap_or(3)
}

/// Pages in memory, in bytes (proc_pid_statm(5)).
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Sends hostile frames from both sides, and sound ones among them, which all come and come in order.
fn hammered(path: Path) {
    let (mut machines, mut chance) = (Machines::new("hostile"), Stream::new(seconds(), path.name()));
    let (end, mut rounds, mut given, mut first) =
        (StdInstant::now() + StdDuration::from_secs(seconds()), 0_u32, 0_u64, 0);
    let (snapshot, ()) = machines.shaping(path, |taps, handle| {
        while StdInstant::now() < end {
            let [from, to] = taps;
            for _ in 0..100 {
                let frame = frame(&mut chance);
                given += u64::from(give(from, &words(&frame, &mut chance), &frame));
            }
            quiet(to);
            for number in 4 * rounds..4 * rounds + 4 {
                assert!(give(from, &header(0, 0, 0, 0, 0), &numbered(number)));
            }
            let came: Vec<u32> = until(to, 4 * rounds + 3).iter().filter_map(|frame| number_of(frame)).collect();
            assert_eq!(came, (4 * rounds..4 * rounds + 4).collect::<Vec<_>>(), "{path}");
            assert!(handle.report().is_some(), "{path}: it ended");
            taps.swap(0, 1);
            rounds += 1;
            if rounds == 200 {
                first = resident();
            }
        }
    });
    let grown = resident().saturating_sub(first);
    eprintln!("{path}: {given} hostile frames in {rounds} rounds; {} MB more; {:?}", grown >> 20, snapshot.up.port);
    assert!(first == 0 || grown < 100 << 20, "{path}: {grown} bytes more");
}

#[test]
#[ignore = "needs root: real packets"]
fn hostile_frames_leave_packet_sockets_at_work() {
    hammered(Path::PacketSockets);
}

#[test]
#[ignore = "needs root: real packets"]
fn hostile_frames_leave_af_xdp_at_work() {
    hammered(Path::Xdp);
}

/// Damaged packets into a TUN device of an emulated line, with sound pings among them.
#[test]
#[ignore = "needs root: real packets"]
fn hostile_packets_leave_an_emulated_line_at_work() {
    let hop = lastmile_model::Hop {
        name: "wire".into(),
        line: lastmile_queueing::line::Config::new(None, LinkLayer::from_name("ip").unwrap(), Duration::ZERO),
        queue: Spec::fifo(5000),
    };
    let mut world = emulate::World::build(&emulate::Config::new(vec![hop.clone()], vec![hop])).unwrap();
    let client = Namespace::open(world.client().namespace().unwrap().name()).unwrap();
    let device = world.client().device().to_owned();
    let (stop, mut chance) = (Stop::new().unwrap(), Stream::new(seconds(), "tun"));
    let (handle, end) = (stop.handle().unwrap(), StdInstant::now() + StdDuration::from_secs(seconds()));
    let (outcome, given) = thread::scope(|scope| {
        let carrier = scope.spawn(|| world.run(&stop, Some(Duration::from_s(7200))).unwrap());
        let mut port = PacketSocket::open(Some(&client), &device).unwrap();
        let (mut given, mut rounds) = (0_u64, 0_u64);
        while StdInstant::now() < end {
            let mut frames: Vec<Frame> = (0..50)
                .map(|_| {
                    let mut packet = packet(&mut chance);
                    packet.truncate(1500);
                    packet.resize(packet.len().max(1), 0);
                    Frame::new(packet).0
                })
                .collect();
            port.send(&mut frames, &mut |_, result| given += u64::from(result.is_ok()));
            rounds += 1;
            if rounds.is_multiple_of(50) {
                let request = crate::probe::Ping {
                    target: std::net::Ipv4Addr::new(198, 18, 0, 1).into(),
                    count: 3,
                    interval: Duration::from_ms(5),
                    ip_len: 84,
                    patience: Duration::from_s(5),
                };
                let replies = client.run(|| crate::probe::ping(&request)).unwrap().unwrap();
                assert_eq!(replies.sorted().len(), 3, "after {given} packets");
            }
            thread::sleep(StdDuration::from_micros(500));
        }
        handle.stop();
        (carrier.join().unwrap(), given)
    });
    assert!(outcome.up.is_balanced() && outcome.down.is_balanced());
    eprintln!("TUN: {given} hostile packets; {:?} received, {} unreadable", outcome.up.received, outcome.up.unreadable);
    assert!(outcome.up.received.packets >= given, "{:?} of {given}", outcome.up.received);
}
