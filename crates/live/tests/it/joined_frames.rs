//! Segments that the kernel joins on its way in (GRO) leave the middlebox unchanged, in tunnels
//! too; frames that AF_XDP cannot carry are refused.

use std::process::Command;

use lastmile_live::Error;
use lastmile_live::io::{Offloads, PacketSocket, Path};
use lastmile_live::shape::{Config, World};
use lastmile_packet::Frame;
use lastmile_packet::checksum::Sum;

use crate::frames::{ethernet, everything_until, send};
use crate::hosts::{Hosts, ip};
use crate::shape::{config, shaping_by, unshaped};
use crate::world::needs_live;

/// Segments of each flow, sent one after the other.
const SEGMENTS: u16 = 24;
const PAYLOAD: usize = 500;

/// Sets features of a device; false where there is no ethtool(8) or the device lacks one of them.
fn features(namespace: &str, device: &str, settings: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, "ethtool", "-K", device]).args(settings.split(' '));
    command.output().is_ok_and(|output| output.status.success())
}

/// An IP packet with right checksums, whose transport begins with a header that has a checksum at `field`, if any.
fn packet(ipv6: bool, protocol: u8, number: u16, mut carried: Vec<u8>, field: Option<usize>) -> Vec<u8> {
    let len = carried.len() as u16;
    let mut header = if ipv6 {
        let mut header = vec![0x60, 0, 0, 0];
        header.extend(len.to_be_bytes());
        header.extend([protocol, 64]);
        for end in [2, 1] {
            header.extend([0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end]);
        }
        header
    } else {
        let mut header = vec![0x45, 0];
        header.extend((len + 20).to_be_bytes());
        header.extend((7000 + number).to_be_bytes());
        header.extend([0x40, 0, 64, protocol, 0, 0, 198, 18, 0, 2, 198, 18, 0, 1]);
        let checksum = Sum::ZERO.bytes(&header).checksum();
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        header
    };
    if let Some(at) = field {
        let addresses = if ipv6 { &header[8..40] } else { &header[12..20] };
        let sum = Sum::ZERO.bytes(addresses).word(u16::from(protocol)).word(len).bytes(&carried).checksum();
        carried[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    header.extend(carried);
    header
}

/// A full segment of a download, the one of this number.
fn segment(ipv6: bool, number: u16) -> Vec<u8> {
    let mut tcp = [80_u16.to_be_bytes(), 50_000_u16.to_be_bytes()].concat();
    tcp.extend((u32::from(number) * PAYLOAD as u32).to_be_bytes());
    tcp.extend([0, 0, 0, 9, 0x80, 0x10, 0x20, 0, 0, 0, 0, 0, 1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 6]);
    tcp.extend((0..PAYLOAD).map(|byte| (byte as u16 ^ number) as u8));
    packet(ipv6, 6, number, tcp, Some(16))
}

fn datagram(number: u16) -> Vec<u8> {
    let mut udp = [40_000_u16.to_be_bytes(), 40_001_u16.to_be_bytes()].concat();
    udp.extend((PAYLOAD as u16 + 8).to_be_bytes());
    udp.extend([0, 0]);
    udp.extend((0..PAYLOAD).map(|byte| (byte as u16 ^ number) as u8));
    packet(false, 17, number, udp, Some(6))
}

/// Makes the frame of this number of a flow.
type FrameOf = fn(u16) -> Vec<u8>;

/// The encapsulation of a flow's packets, by name.
fn flows() -> Vec<(&'static str, FrameOf)> {
    const V4: u16 = 0x0800;
    const V6: u16 = 0x86DD;
    vec![
        ("TCP", |n| ethernet(V4, &segment(false, n))),
        ("TCP over IPv6", |n| ethernet(V6, &segment(true, n))),
        ("UDP", |n| ethernet(V4, &datagram(n))),
        ("6in4", |n| ethernet(V4, &packet(false, 41, n, segment(true, n), None))),
        ("IP in IP", |n| ethernet(V4, &packet(false, 4, n, segment(false, n), None))),
        ("IPv4 in IPv6", |n| ethernet(V6, &packet(true, 4, n, segment(false, n), None))),
        ("IPv6 in IPv6", |n| ethernet(V6, &packet(true, 41, n, segment(true, n), None))),
        ("GRE", |n| ethernet(V4, &packet(false, 47, n, [vec![0, 0, 8, 0], segment(false, n)].concat(), None))),
        ("GRE over IPv6", |n| ethernet(V6, &packet(true, 47, n, [vec![0, 0, 8, 0], segment(false, n)].concat(), None))),
        ("PPPoE", |n| {
            let inner = segment(false, n);
            let mut session = vec![0x11, 0, 0, 1];
            session.extend((inner.len() as u16 + 2).to_be_bytes());
            session.extend([0, 0x21]);
            ethernet(0x8864, &[session, inner].concat())
        }),
    ]
}

/// Sends every flow through a middlebox whose interface to the LAN has these features, and says what was done to them.
#[expect(clippy::print_stderr, reason = "which flows this kernel joins")]
fn pass(path: Path, settings: &str) -> Option<Offloads> {
    let hosts = Hosts::new(true);
    // A veth joins frames only if its other end cuts none.
    if !features(hosts.left.name(), "eth", "tso off") || !features(hosts.middle.name(), "west", settings) {
        return None;
    }
    // Frames that come one by one are joined if each is held until others had time to come.
    let held =
        "echo 3000000 >/sys/class/net/west/gro_flush_timeout; echo 100 >/sys/class/net/west/napi_defer_hard_irqs";
    let mut holding = Command::new("ip");
    assert!(holding.args(["netns", "exec", hosts.middle.name(), "sh", "-c", held]).status().unwrap().success());
    let (snapshot, ()) = shaping_by(&Config { path, ..config(&hosts, unshaped(), unshaped()) }, |handle| {
        let open = |host| PacketSocket::open(Some(host), "eth").unwrap();
        let (mut from, mut to) = (open(&hosts.left), open(&hosts.right));
        for (name, frame_of) in flows() {
            let before = handle.report().unwrap().up.port.offloads;
            let frames: Vec<Vec<u8>> = (0..SEGMENTS).map(frame_of).collect();
            send(&mut from, frames.iter().map(|frame| Frame::ethernet(frame.clone()).0).collect());
            let came = everything_until(&mut to, |came| came.len() >= frames.len());
            let after = handle.report().unwrap().up.port.offloads;
            eprintln!("{path}, {settings}: {name}: {} pieces cut", after.cut - before.cut);
            assert_eq!(came.len(), frames.len(), "{path}, {settings}: {name}");
            assert!(came == frames, "{path}, {settings}: {name} changed");
        }
    });
    assert_eq!(snapshot.up.port.offloads.refused, 0);
    Some(snapshot.up.port.offloads)
}

#[test]
#[ignore = "needs root: real packets"]
fn what_the_kernel_has_joined_leaves_as_it_came() {
    needs_live!();
    let joined = pass(Path::PacketSockets, "gro on");
    assert!(joined.is_none_or(|offloads| offloads.cut >= 4), "nothing was joined: {joined:?}");
    for settings in ["gro on rx-udp-gro-forwarding on", "gro on rx-gro-list on"] {
        let joined = pass(Path::PacketSockets, settings);
        assert!(joined.is_none_or(|offloads| offloads.cut > 0), "{settings}: nothing was joined: {joined:?}");
    }
    pass(Path::Xdp, "gro on");
    pass(Path::PacketSockets, "gro off");
}

#[test]
#[ignore = "needs root: real packets"]
fn af_xdp_refuses_packets_that_it_could_not_carry() {
    needs_live!();
    let hosts = Hosts::new(true);
    for (namespace, device) in [(&hosts.left, "eth"), (&hosts.middle, "west"), (&hosts.middle, "east")] {
        ip(&format!("-n {} link set {device} mtu 9000", namespace.name()));
    }
    let build = |path| World::build(&Config { path, ..config(&hosts, unshaped(), unshaped()) });
    let refused = build(Path::Xdp).err().unwrap();
    assert!(matches!(&refused, Error::PacketsTooLong { name, mtu: 9000, most: 3818 } if name == "west"), "{refused}");
    assert!(refused.hint().unwrap().contains("--path packet-sockets"));
    let world = build(Path::Auto).unwrap();
    assert!(world.paths().iter().all(|path| path.contains("packet sockets")), "{:?}", world.paths());
}
