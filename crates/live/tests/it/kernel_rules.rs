//! Rules of a policy in the kernel, as a table of nft, give packets the class that the datapath gives them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::thread;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use lastmile_kernel::stab::Device;
use lastmile_kernel::{Configuration, Direction, Request};
use lastmile_linklayer::{LinkLayer, preset};
use lastmile_live::io::PacketSocket;
use lastmile_live::netns::Namespace;
use lastmile_live::tc::{self, Target};
use lastmile_packet::checksum::Sum;
use lastmile_packet::{
    FlowAddresses, Frame, IpAddresses, Meta, Options, Protocol, SackBlock, SeqNumber, TcpFlags, header_len,
    write_packet,
};
use lastmile_queueing::classify::rules::{self, Rule};
use lastmile_queueing::classify::{Bound, Prefix};
use lastmile_queueing::sched::htb;
use lastmile_queueing::sched::tree::{self, Tree};
use lastmile_queueing::spec::Spec;
use lastmile_queueing::{Condition, End, Environment, Match, Matcher as _};
use lastmile_units::{BitRate, ByteCount, Duration, Instant};

use crate::frames::{NOBODY, send};
use crate::hosts::ip;
use crate::world::needs_live;

/// A host whose packets a router forwards through `east`; nobody answers behind it.
struct Forwarded {
    router: Namespace,
    host: PacketSocket,
    _host: Namespace,
}

impl Forwarded {
    fn new() -> Self {
        let named = |role| Namespace::create(&format!("lastmile-{}-{role}", std::process::id())).unwrap();
        let (router, host) = (named("router"), named("host"));
        let at = router.name();
        for (device, end) in [("west", "eth"), ("east", "far")] {
            ip(&format!("-n {at} link add {device} type veth peer name {end} netns {}", host.name()));
            // No neighbour discovery among the packets that are counted.
            for (namespace, device) in [(at, device), (host.name(), end)] {
                ip(&format!("-n {namespace} link set {device} addrgenmode none multicast off arp off"));
                ip(&format!("-n {namespace} link set {device} up"));
            }
        }
        let [a, b, c, d, e, f] = NOBODY;
        ip(&format!("-n {at} link set west address {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}"));
        let settings = [("ipv4/ip_forward", "1"), ("ipv6/conf/all/forwarding", "1")];
        let filters = ["all", "west"].map(|device| (format!("ipv4/conf/{device}/rp_filter"), "0"));
        for (key, value) in settings.map(|(key, value)| (key.to_owned(), value)).into_iter().chain(filters) {
            router.run(|| std::fs::write(format!("/proc/sys/net/{key}"), value)).unwrap().unwrap();
        }
        ip(&format!("-n {at} addr add 10.255.0.1/24 dev west"));
        ip(&format!("-n {at} route add default dev east"));
        ip(&format!("-n {at} -6 route add default dev east"));
        Self { host: PacketSocket::open(Some(&host), "eth").unwrap(), router, _host: host }
    }

    /// Packets and IP bytes that have got the class `yes`, and packets of the class `no`, on this device.
    fn counted(&self, device: &str) -> [u64; 3] {
        let mut command = Command::new("tc");
        command.args(["-s", "class", "show", "dev", device]);
        let shown = self.router.run(|| command.output()).unwrap().unwrap().stdout;
        let shown = String::from_utf8(shown).unwrap();
        let of = |class: &str| {
            let mut lines = shown.lines().skip_while(|line| !line.starts_with(&format!("class htb {class} "))).skip(1);
            let words: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
            [3, 1].map(|at| words[at].parse::<u64>().unwrap())
        };
        let ([packets, bytes], [others, _]) = (of("1a57:10"), of("1a57:11"));
        [packets, bytes, others]
    }

    /// Sends IP packets; returns how many were given the class `yes`, and their bytes.
    fn classified(&mut self, device: &str, packets: &[Vec<u8>]) -> [u64; 2] {
        let before = self.counted(device);
        let frame = |packet: &Vec<u8>| {
            let ether_type: u16 = if packet[0] >> 4 == 4 { 0x0800 } else { 0x86DD };
            Frame::ethernet([&NOBODY[..], &[2, 0, 0, 0, 0, 1], &ether_type.to_be_bytes(), packet].concat()).0
        };
        send(&mut self.host, packets.iter().map(frame).collect());
        let end = StdInstant::now() + StdDuration::from_secs(10);
        loop {
            let after = self.counted(device);
            let [yes, bytes, no] = [0, 1, 2].map(|index| after[index] - before[index]);
            if yes + no >= packets.len() as u64 {
                assert_eq!(yes + no, packets.len() as u64, "packets of somebody else");
                return [yes, bytes];
            }
            assert!(StdInstant::now() < end, "{yes} and {no} of {} packets have come", packets.len());
            thread::sleep(StdDuration::from_millis(2));
        }
    }
}

/// An HTB that no packet waits for, with a class for packets that meet `condition` and one for all others.
fn sorted_by(condition: &Match) -> Spec {
    let class = |name: &str, parent: Option<&str>| tree::Class {
        name: name.into(),
        parent: parent.map(str::to_owned),
        share: htb::Share { ceil: Some(RATE), ..htb::Share::of(RATE) },
        queue: parent.map(|_| Spec::fifo(1000)),
    };
    let classes = vec![class("line", None), class("yes", Some("line")), class("no", Some("line"))];
    let rules = vec![tree::Rule { matches: Match::Class(0), class: "yes".into() }];
    let tree = Tree { classes, rules, default: Some("no".into()) };
    let rule = Rule { matches: condition.clone(), class: 0, last: false };
    let queue = Box::new(Spec::Htb(htb::Config::new(tree)));
    Spec::Rules(rules::Config { rules: vec![rule], otherwise: 1, names: Vec::new(), queue })
}

const RATE: BitRate = BitRate::from_mbit_per_s(1000);

/// The configuration that sorts what leaves, or what comes in.
fn configuration(condition: &Match, up: bool) -> Configuration {
    let (sorted, fifo) = (sorted_by(condition), Spec::fifo(1000));
    let layer: LinkLayer = preset::IP.link;
    let of = |queue| Direction { rate: RATE, layer, queue };
    let configuration = Configuration::new(&Request {
        name: "test",
        about: "",
        notes: vec![],
        up: Some(of(if up { &sorted } else { &fifo })),
        down: (!up).then(|| of(&sorted)),
        classes: &[],
        header: Device::Ethernet,
        largest: ByteCount::new(1500),
    });
    assert_eq!(configuration.left_out, [""; 0], "{condition:?}");
    configuration
}

fn addresses(ipv6: bool, hosts: (u8, u8), ports: (u16, u16)) -> FlowAddresses {
    let ip = if ipv6 {
        let host = |net: u16, host: u8| Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, 0, host.into());
        IpAddresses::V6 { source: host(1, hosts.0), destination: host(2, hosts.1) }
    } else {
        let (source, destination) = (Ipv4Addr::new(198, 51, 100, hosts.0), Ipv4Addr::new(203, 0, 113, hosts.1));
        IpAddresses::V4 { source, destination }
    };
    FlowAddresses { ip, source_port: ports.0, destination_port: ports.1 }
}

fn packet(
    protocol: Protocol,
    flags: TcpFlags,
    options: Options,
    payload: u16,
    class: u8,
    to: &FlowAddresses,
) -> Vec<u8> {
    let mut meta = Meta { protocol, traffic_class: class, flags, ..Meta::default() };
    if protocol == Protocol::Tcp {
        meta.set_options(options);
    }
    meta.header_len = header_len(protocol, to.ip.is_ipv6(), &meta.options());
    meta.ip_len = u16::from(meta.header_len) + payload;
    let mut bytes = Vec::new();
    write_packet(&meta, to, &mut bytes);
    bytes
}

/// Packets of every kind and family, with lengths by which they can be told apart.
fn packets() -> Vec<Vec<u8>> {
    let block = SackBlock { left: SeqNumber::new(1), right: SeqNumber::new(9) };
    let stamped = Options::NONE.with_timestamps(1, 2);
    let mut packets = Vec::new();
    for ipv6 in [false, true] {
        let ports = [(40_000, 80), (22, 40_001), (40_002, 6881), (443, 443)];
        for (number, ports) in (1..).zip(ports) {
            let to = addresses(ipv6, (number, 10 + number), ports);
            let class = [0, 46 << 2, 0x10, 0xFF][usize::from(number) - 1];
            let mut tcp =
                |flags, options, payload| packets.push(packet(Protocol::Tcp, flags, options, payload, class, &to));
            tcp(TcpFlags::ACK, Options::NONE, 0);
            tcp(TcpFlags::ACK, stamped, 0);
            tcp(TcpFlags::ACK, stamped.with_sack(&[block]), 0);
            tcp(TcpFlags::ACK, Options::NONE, 12);
            tcp(TcpFlags::ACK, stamped, 100 + u16::from(number));
            for (flags, payload) in [(0x02, 0), (0x12, 0), (0x11, 0), (0x04, 0), (0x18, 300), (0x50, 0)] {
                tcp(TcpFlags::from_bits(flags), Options::NONE, payload);
            }
            let mut other = |protocol, payload| {
                packets.push(packet(protocol, TcpFlags::default(), Options::NONE, payload, class, &to));
            };
            other(Protocol::Udp, 200 + u16::from(number));
            other(Protocol::EchoRequest, 30);
            other(Protocol::EchoReply, 31);
            other(Protocol::Other, 400 + u16::from(number));
        }
    }
    // The first fragment of a packet, a later one, and a whole packet that must stay one.
    for (fragment, payload) in [(0x2000_u16, 48), (0x0010, 56), (0x4000, 500)] {
        let mut bytes =
            packet(Protocol::Udp, TcpFlags::default(), Options::NONE, payload, 0, &addresses(false, (9, 19), (1, 80)));
        bytes[6..8].copy_from_slice(&fragment.to_be_bytes());
        bytes[10..12].fill(0);
        let checksum = Sum::ZERO.bytes(&bytes[..20]).checksum();
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        packets.push(bytes);
    }
    packets
}

fn prefix(address: IpAddr, bits: u8) -> Prefix {
    Prefix::new(address, bits).unwrap()
}

/// Conditions of every kind that headers can tell.
fn conditions() -> Vec<Match> {
    let port = |end, ports| Match::Port(end, ports);
    let not = |inner| Match::Not(Box::new(inner));
    let v4 = |host| Match::Address(End::Source, prefix(Ipv4Addr::new(198, 51, 100, host).into(), 32));
    let net6 = Match::Address(End::Either, prefix("2001:db8:2::".parse::<IpAddr>().unwrap(), 47));
    let ports =
        || vec![port(End::Destination, 80..=80), port(End::Destination, 81..=90), port(End::Destination, 6881..=6889)];
    let protocols = [Protocol::Tcp, Protocol::Udp, Protocol::EchoRequest, Protocol::EchoReply, Protocol::Other];
    let mut all: Vec<Match> = protocols.into_iter().map(Match::Protocol).collect();
    all.extend([Match::Any, Match::PureAck, Match::SackAck, not(Match::PureAck), not(Match::SackAck)]);
    all.extend([1, 6, 17, 58, 253].map(Match::ProtocolNumber));
    all.extend([Match::Dscp(46), Match::Dscp(0), not(Match::Dscp(4))]);
    all.extend(
        [(0x10, 0x1C), (0xF0, 0xF3), (0, 0)].map(|(value, mask)| Match::TrafficClass { value: value & mask, mask }),
    );
    all.extend([0x02, 0x12, 0x00].map(|bits| Match::TcpFlags(TcpFlags::from_bits(bits))));
    all.push(Match::TcpFlagsOf { set: TcpFlags::SYN, of: TcpFlags::SYN.with(TcpFlags::ACK) });
    for bytes in [39, 40, 52, 64, 300] {
        all.extend([Match::AtMostBytes(bytes), Match::AtLeastBytes(bytes), not(Match::AtMostBytes(bytes))]);
    }
    all.extend([End::Source, End::Destination, End::Either].map(|end| port(end, 443..=443)));
    all.extend([port(End::Source, 0..=1023), Match::OneOf(ports()), not(Match::OneOf(ports()))]);
    all.extend([
        v4(1),
        net6.clone(),
        not(net6.clone()),
        Match::Address(End::Source, prefix(Ipv4Addr::UNSPECIFIED.into(), 0)),
    ]);
    all.push(Match::All(vec![Match::Protocol(Protocol::Tcp), Match::OneOf(ports()), not(Match::PureAck)]));
    all.push(Match::All(vec![v4(2), Match::OneOf(vec![Match::Dscp(46), Match::Dscp(4)])]));
    all.push(Match::All(vec![Match::Protocol(Protocol::Udp), Match::TcpFlags(TcpFlags::SYN)]));
    all.push(not(Match::All(vec![Match::ProtocolNumber(17), Match::Protocol(Protocol::EchoReply)])));
    all.push(Match::OneOf(vec![v4(2), Match::All(vec![Match::PureAck, net6.clone()]), Match::Dscp(4)]));
    let either = Match::OneOf(vec![Match::PureAck, Match::Protocol(Protocol::EchoReply), v4(3)]);
    all.push(Match::All(vec![either.clone(), Match::OneOf(vec![Match::Dscp(46), Match::Dscp(0)]), not(v4(1))]));
    all.push(not(Match::All(vec![either, not(Match::AtMostBytes(60))])));
    all
}

fn compare(device: &str, target: &Target, up: bool, conditions: &[Match]) {
    let (mut forwarded, packets) = (Forwarded::new(), packets());
    for condition in conditions {
        let configuration = configuration(condition, up);
        let lacking = forwarded.router.run(|| tc::apply(&configuration, target)).unwrap().unwrap();
        let lacking = lacking.features;
        assert!(lacking.iter().all(|what| !what.contains("nft")), "{condition:?}: the kernel lacks {lacking:?}");
        let is_meant = |packet: &&Vec<u8>| {
            let (frame, _) = Frame::new(packet.to_vec());
            Condition::new(condition, &Environment::default()).matches(Instant::ZERO, &frame)
        };
        let meant: Vec<u64> = packets.iter().filter(is_meant).map(|packet| packet.len() as u64).collect();
        let expected = [meant.len() as u64, meant.iter().sum()];
        if forwarded.classified(device, &packets) != expected {
            for packet in &packets {
                let one = std::slice::from_ref(packet);
                let yes = forwarded.classified(device, one)[0] == 1;
                assert_eq!(yes, is_meant(&packet), "{condition:?}: {packet:02x?}");
            }
            panic!("{condition:?}: {expected:?} packets and bytes");
        }
        let findings = forwarded.router.run(|| tc::verify(&configuration, target)).unwrap().unwrap().findings;
        let rules: Vec<_> = findings.iter().filter(|finding| finding.name == "rules").collect();
        assert!(rules.len() == 2 && rules.iter().all(|finding| finding.ok), "{rules:?}");
    }
    forwarded.router.run(|| tc::remove(target)).unwrap().unwrap();
}

#[test]
#[ignore = "needs root: real packets"]
fn the_kernel_sorts_what_leaves_as_the_datapath_does() {
    needs_live!();
    let target = Target { device: "east".into(), ifb: "ifb-east".into() };
    compare("east", &target, true, &conditions());
}

/// At the ingress of the device, from where packets pass the intermediate device.
#[test]
#[ignore = "needs root: real packets"]
fn the_kernel_sorts_what_comes_in_as_the_datapath_does() {
    needs_live!();
    let target = Target { device: "west".into(), ifb: "ifb-west".into() };
    compare("ifb-west", &target, false, &conditions());
}

/// Five datagrams of 100 bytes: the first four bring their connection to 400. Of eight SYNs from
/// one host in a minute five are in time.
#[test]
#[ignore = "needs root: real packets"]
fn the_kernel_counts_connections_and_their_bytes() {
    needs_live!();
    let mut forwarded = Forwarded::new();
    let target = Target { device: "east".into(), ifb: "ifb-east".into() };
    let below = Match::ConnectionBytes(Bound::Below, ByteCount::new(450));
    let opens = Match::NewConnections { bound: Bound::Below, count: 5, per: Duration::from_s(60) };
    let marked = Match::All(vec![opens.clone(), Match::Dscp(46)]);
    for ipv6 in [false, true] {
        let datagrams = vec![
            packet(
                Protocol::Udp,
                TcpFlags::default(),
                Options::NONE,
                72 - 20 * u16::from(ipv6),
                0,
                &addresses(ipv6, (1, 2), (5, 6))
            );
            5
        ];
        assert!(datagrams.iter().all(|datagram| datagram.len() == 100));
        let syn = |number: u16, class| {
            packet(Protocol::Tcp, TcpFlags::SYN, Options::NONE, 0, class, &addresses(ipv6, (1, 2), (1000 + number, 80)))
        };
        let syns: Vec<Vec<u8>> = (0..8).map(|number| syn(number, 0)).collect();
        // SYNs that do not meet the other condition take nothing from the bucket.
        let mixed: Vec<Vec<u8>> = (10..26).map(|number| syn(number, if number < 18 { 0 } else { 46 << 2 })).collect();
        for (condition, packets, yes) in [(&below, &datagrams, 4), (&opens, &syns, 5), (&marked, &mixed, 5)] {
            let configuration = configuration(condition, true);
            let lacking = forwarded.router.run(|| tc::apply(&configuration, &target)).unwrap().unwrap();
            assert_eq!(lacking.features, [""; 0], "{condition:?}");
            assert_eq!(forwarded.classified("east", packets)[0], yes, "{condition:?}, IPv6: {ipv6}");
        }
    }
}

#[test]
#[ignore = "needs root: real packets"]
fn two_devices_have_tables_of_their_own() {
    needs_live!();
    let forwarded = Forwarded::new();
    let target = |device: &str| Target { device: device.into(), ifb: format!("ifb-{device}") };
    let configuration = configuration(&Match::PureAck, true);
    for device in ["east", "west"] {
        forwarded.router.run(|| tc::apply(&configuration, &target(device))).unwrap().unwrap();
    }
    let shown = || {
        let mut command = Command::new("nft");
        command.args(["list", "tables"]);
        String::from_utf8(forwarded.router.run(|| command.output()).unwrap().unwrap().stdout).unwrap()
    };
    assert_eq!(shown(), "table inet lastmile-east\ntable inet lastmile-west\n");
    forwarded.router.run(|| tc::remove(&target("east"))).unwrap().unwrap();
    assert_eq!(shown(), "table inet lastmile-west\n");
}
