//! The middlebox between two interfaces: what passes, how fast, in which order, and what lives on
//! when it is changed or killed.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration as StdDuration;

use lastmile_linklayer::LinkLayer;
use lastmile_live::Error;
use lastmile_live::clock::{Clock as _, MonotonicClock};
use lastmile_live::emulate;
use lastmile_live::io::{PacketSocket, Path};
use lastmile_live::netns::Namespace;
use lastmile_live::shape::{Config, Direction, Handle, Snapshot, Tuning, World};
use lastmile_live::stop::Stop;
use lastmile_packet::Frame;
use lastmile_queueing::meter::tbf;
use lastmile_queueing::sched::priority;
use lastmile_queueing::spec::{ClassSpec, Over, Spec};
use lastmile_queueing::{Limit, Match, Overflow, fifo};
use lastmile_units::{BitRate, ByteCount, Duration, Instant};

use crate::bridge::{RIGHT, between, part, pings, say_ready, started, wire};
use crate::frames::{self, everything, everything_until, numbered, read_datagram, send, wait_until};
use crate::hosts::{AtEnd, Hosts, ip};
use crate::line::download;
use crate::world::{TOLERANCE, deviation, deviation_over, needs_live};

mod restarts;
mod silence;

const LEFT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const LARGEST: ByteCount = ByteCount::new(1500);

fn link_layer() -> LinkLayer {
    LinkLayer::from_name("bridged-vcmux-fcs").unwrap()
}

/// A queue behind a bucket of one packet at this rate.
pub(crate) fn shaped(rate: BitRate, queue: Spec) -> Direction {
    let burst = link_layer().on_wire(LARGEST);
    let queue = Box::new(queue);
    let queue = Spec::Tbf(Over {
        config: tbf::Config { rate, burst, peak: None, largest: LARGEST, catch_up: Duration::ZERO },
        queue,
    });
    Direction { queue, link_layer: link_layer() }
}

pub(crate) fn bytes(limit: u64) -> Spec {
    Spec::Fifo(fifo::Config { limit: Limit::Bytes(ByteCount::new(limit)), drop: Overflow::Tail })
}

pub(crate) fn unshaped() -> Direction {
    Direction { queue: Spec::fifo(1000), link_layer: link_layer() }
}

pub(crate) fn config(hosts: &Hosts, up: Direction, down: Direction) -> Config {
    Config {
        namespace: Some(hosts.middle.name().to_owned()),
        lan: "west".into(),
        wan: "east".into(),
        make_bridge: None,
        up,
        down,
        path: Path::default(),
        tuning: Tuning::default(),
        records: false,
    }
}

/// Shapes while `work` runs.
pub(crate) fn shaping<T>(
    hosts: &Hosts,
    up: Direction,
    down: Direction,
    work: impl FnOnce(&Handle) -> T,
) -> (Snapshot, T) {
    shaping_by(&config(hosts, up, down), work)
}

/// A configuration with every setting given.
pub(crate) fn shaping_by<T>(config: &Config, work: impl FnOnce(&Handle) -> T) -> (Snapshot, T) {
    let world = World::build(config).unwrap();
    let (stop, handle) = (Stop::new().unwrap(), world.handle());
    thread::scope(|scope| {
        let carrier = scope.spawn(|| world.run(&stop).unwrap());
        let _ending = AtEnd(|| handle.stop());
        let done = work(&handle);
        thread::sleep(StdDuration::from_millis(50));
        handle.stop();
        let snapshot = carrier.join().unwrap();
        for direction in [&snapshot.up, &snapshot.down] {
            assert!(direction.is_balanced(), "{direction:?}");
            assert_eq!(direction.port.dropped_unread, 0);
        }
        (snapshot, done)
    })
}

/// The sender of frames, and the receiver.
pub(crate) fn ports(hosts: &Hosts) -> [PacketSocket; 2] {
    [&hosts.left, &hosts.right].map(|host| PacketSocket::open(Some(host), "eth").unwrap())
}

/// Two sockets, the second of which hears what the first sends.
fn sockets(hosts: &Hosts) -> (UdpSocket, UdpSocket) {
    let open = |place: &Namespace, at| place.run(|| UdpSocket::bind(SocketAddrV4::new(at, 9100))).unwrap().unwrap();
    let (sender, receiver) = (open(&hosts.left, LEFT), open(&hosts.right, RIGHT));
    sender.connect(SocketAddrV4::new(RIGHT, 9100)).unwrap();
    receiver.set_read_timeout(Some(StdDuration::from_millis(500))).unwrap();
    (sender, receiver)
}

/// A datagram of `ip_len` bytes as an IP packet, with a number in it.
fn datagram(number: u32, ip_len: usize) -> Vec<u8> {
    let mut payload = vec![0; ip_len - 28];
    payload[..4].copy_from_slice(&number.to_be_bytes());
    payload
}

/// The numbers of the datagrams that come, until `sent` have come or been dropped by the middlebox.
fn numbers(to: &mut PacketSocket, handle: &Handle, sent: u32) -> Vec<u32> {
    let dropped = || handle.report().unwrap().up.hops[0].dropped_packets() as usize;
    let came = everything_until(to, |came| came.len() + dropped() >= sent as usize);
    came.iter().map(|frame| read_datagram(frame).unwrap().2).collect()
}

/// Nothing stays of a bridge where the start fails, before it is made or after.
#[test]
#[ignore = "needs root: network namespaces"]
fn a_bridge_is_made_of_two_interfaces_that_can_be_its_ports_or_not_at_all() {
    needs_live!();
    let hosts = Hosts::new(false);
    let middle = hosts.middle.name();
    let build = |lan: &str, wan: &str, make: Option<&str>| {
        let config = config(&hosts, unshaped(), unshaped());
        let make_bridge = make.map(str::to_owned);
        World::build(&Config { lan: lan.into(), wan: wan.into(), make_bridge, ..config })
    };
    // Each device with what it is a port of.
    let links = || {
        let shown = Command::new("ip").args(["-n", middle, "-o", "link"]).output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        let master = |line: &str| Some(line.split_once(" master ")?.1.split(' ').next()?.to_owned());
        shown.lines().map(|line| (line.split(": ").nth(1).map(str::to_owned), master(line))).collect::<Vec<_>>()
    };
    let failed = |lan, wan| {
        let before = links();
        let error = build(lan, wan, Some("lm0")).map(|_| ()).unwrap_err();
        assert_eq!(links(), before, "{error}");
        error
    };
    ip(&format!("-n {middle} addr add 10.9.0.9/24 dev east"));
    let one = failed("west", "east").to_string();
    assert_eq!(one, "east has the address 10.9.0.9, which nobody would reach once east is a port of a bridge");
    ip(&format!("-n {middle} addr add 2001:db8::9/64 dev east nodad"));
    let two = failed("west", "east");
    assert!(two.to_string().starts_with("east has the addresses 10.9.0.9 and 2001:db8::9, which nobody"), "{two}");
    assert!(two.hint().unwrap().contains("`ip address flush dev east`"), "{two}");
    ip(&format!("-n {middle} addr flush dev east"));
    // Those of a link alone are of the kernel's own making.
    ip(&format!("-n {middle} addr add fe80::9/64 dev east nodad"));
    ip(&format!("-n {middle} addr add 169.254.9.9/16 dev east"));
    ip(&format!("-n {middle} tuntap add dev tun0 mode tun"));
    ip(&format!("-n {middle} link set tun0 up"));
    let tunnel = failed("west", "tun0");
    assert_eq!(tunnel.to_string(), "tun0 cannot be a port of a bridge: its frames are not those of Ethernet");
    assert!(tunnel.hint().unwrap().starts_with("`lastmile tc POLICY --device tun0 --apply` shapes there"), "{tunnel}");
    // No bridge takes the device below a macvlan, which its frames go to: it is refused after the first has joined.
    ip(&format!("-n {middle} link add mv0 link west type macvlan"));
    let second = failed("east", "west");
    assert!(second.to_string().starts_with("making west a port of lm0: "), "{second}");
    ip(&format!("-n {middle} link del mv0"));
    // The bridge is made, and a packet path is not to be had.
    ip(&format!("-n {middle} link set west mtu 9000"));
    let before = links();
    let config = Config { make_bridge: Some("lm0".into()), path: Path::Xdp, ..config(&hosts, unshaped(), unshaped()) };
    let late = World::build(&config).map(|_| ()).unwrap_err();
    assert!(matches!(late, Error::PacketsTooLong { .. }), "{late}");
    assert_eq!(links(), before);
    ip(&format!("-n {middle} link set west mtu 1500"));
    assert_eq!(build("west", "east", Some("lm0")).unwrap().bridge(), "lm0");
    // An interface that was removed and made again is a port of nothing, and becomes one of the bridge.
    let whole = links();
    ip(&format!("-n {middle} link set west nomaster"));
    ip(&format!("-n {middle} link set west mtu 9000"));
    let before = links();
    assert!(World::build(&config).is_err() && links() == before, "it has joined, and leaves");
    ip(&format!("-n {middle} link set west mtu 1500"));
    assert_eq!(build("west", "east", Some("lm0")).unwrap().bridge(), "lm0");
    assert_eq!(links(), whole);
    // A bridge with another port is that of somebody else, and a device of another kind is none.
    ip(&format!("-n {middle} link set west nomaster"));
    ip(&format!("-n {middle} link add other master lm0 type veth peer name end"));
    for (make, odd) in [("lm0", "has other ports: other"), ("end", "is no bridge")] {
        ip(&format!("-n {middle} link set east nomaster"));
        let before = links();
        let hint = build("west", "east", Some(make)).map(|_| ()).unwrap_err().hint().unwrap();
        assert!(hint.starts_with(&format!("{make} exists, and {odd}; another name behind --make-bridge")), "{hint}");
        assert!(hint.contains(&format!("`ip link del {make}`")) && links() == before, "{hint}");
    }
}

#[test]
#[ignore = "needs root: real packets"]
fn what_is_wrong_with_the_interfaces_is_said_with_what_would_help() {
    needs_live!();
    let hosts = Hosts::new(false);
    let build = |lan: &str, wan: &str, make: Option<&str>| {
        let config = config(&hosts, unshaped(), unshaped());
        let make_bridge = make.map(str::to_owned);
        World::build(&Config { lan: lan.into(), wan: wan.into(), make_bridge, ..config })
    };
    let refused = |lan, wan| build(lan, wan, None).map(|_| ()).unwrap_err();
    assert!(matches!(refused("west", "west"), Error::OneInterface { .. }));
    assert!(matches!(refused("west", "eats"), Error::NoInterface { known, .. } if known.contains(&"east".to_owned())));
    let no_bridge = refused("west", "east");
    assert!(no_bridge.hint().unwrap().contains("ip link set west master lastmile0"), "{no_bridge}");
    let middle = hosts.middle.name();
    ip(&format!("-n {middle} link set east down"));
    assert!(matches!(refused("west", "east"), Error::InterfaceDown { name } if name == "east"));
    ip(&format!("-n {middle} link set east up"));
    let world = build("west", "east", Some("lm0")).unwrap();
    assert_eq!(world.bridge(), "lm0");
    let second = refused("west", "east");
    assert!(matches!(&second, Error::InterfaceTaken { name, .. } if name == "west"), "{second}");
    let pid = std::process::id();
    let told = format!("`lastmile shape` (process {pid}) carries what comes in through west already");
    assert_eq!(second.to_string(), told);
    assert!(second.hint().unwrap().starts_with("`lastmile shape stop` (with the --control of its start) ends it;"));
    drop(world);
    // The holder may be an emulated line.
    let emulated = emulate::World::build(&between(&hosts, wire())).unwrap();
    let second = refused("west", "east");
    let told = format!("`lastmile emulate` (process {pid}) carries what comes in through west already");
    assert_eq!(second.to_string(), told);
    let hint = second.hint().unwrap();
    assert!(hint.starts_with(&format!("Ctrl-C at its terminal or `kill {pid}` ends it;")), "{hint}");
    drop(emulated);
    for (lan, wan) in [("lm0", "east"), ("west", "lm0")] {
        let bridge = refused(lan, wan);
        assert!(matches!(&bridge, Error::BridgeItself { name, .. } if name == "lm0"), "{bridge}");
        assert_eq!(
            bridge.to_string(),
            "lm0 is a bridge, not a port of one: packets are carried between two of its ports"
        );
        let hint = bridge.hint().unwrap();
        let ports = hint.strip_prefix("--lan and --wan name its ports, which are ").unwrap();
        assert_eq!(ports.split(", ").collect::<BTreeSet<_>>(), BTreeSet::from(["west", "east"]), "{hint}");
    }
    ip(&format!("-n {middle} link add empty up type bridge"));
    assert_eq!(
        refused("empty", "east").hint().unwrap(),
        "it has no ports; `ip link set INTERFACE master empty` gives it one"
    );
    // It stays, and carries.
    assert_eq!(build("west", "east", None).unwrap().bridge(), "lm0");
    assert_eq!(pings(&hosts.left, 5, Duration::from_ms(50)).sorted().len(), 5);
}

/// UDP on both sides of cell boundaries, more than the line takes, so that most is dropped: the
/// closed form is the wire's rate by the bytes on the wire.
#[test]
#[ignore = "needs root: real packets"]
fn packet_rates_under_overload_are_those_of_the_wire() {
    needs_live!();
    let hosts = Hosts::new(true);
    let rate = BitRate::from_mbit_per_s(4);
    let boundary = |from: u64| {
        let cost = |size| link_layer().on_wire(ByteCount::new(size));
        (from..).find(|&size| cost(size) != cost(size + 1)).unwrap()
    };
    let sizes = [40, 200, 700, 1400].map(boundary).into_iter().flat_map(|size| [size, size + 1]).chain([1500]);
    // Half a second of packets waits, so the queue outlasts what keeps the sender from its work;
    // the shaper goes before all else.
    let config = config(&hosts, shaped(rate, bytes(250_000)), unshaped());
    let config = Config { tuning: Tuning { realtime: true, ..config.tuning }, ..config };
    shaping_by(&config, |_| {
        // One for all, since a port's times never go back.
        let (mut ports, clock) = (ports(&hosts), MonotonicClock::start());
        for size in sizes {
            let interval_ns = link_layer().on_wire(ByteCount::new(size)).as_u64() as f64 * 8e9 / rate.as_bps() as f64;
            let (deviation, looks) = deviation_over([600, 1200, 2400], |span_ms| {
                let arrivals = overloaded(&mut ports, &clock, size, Duration::from_ms(span_ms));
                // The first packets find an empty queue.
                let arrivals: Vec<f64> =
                    arrivals.iter().skip(50).map(|at| at.since(arrivals[0]).as_ns() as f64).collect();
                deviation(&arrivals, interval_ns)
            });
            eprintln!("{size} bytes: {deviation:+.1e} of the closed form, looks: {looks}");
            assert!(deviation.abs() < TOLERANCE, "{size} bytes: {deviation}");
        }
    });
}

/// When the kernel received datagrams of this size that came faster than they might leave, for so
/// long after the first of them.
fn overloaded(
    [from, to]: &mut [PacketSocket; 2],
    clock: &MonotonicClock,
    ip_len: u64,
    lasting: Duration,
) -> Vec<Instant> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let _ending = AtEnd(|| done.store(true, Ordering::Relaxed));
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                send(from, (0..64).map(|_| frames::datagram(0, 0, ip_len as u16)).collect());
                thread::sleep(StdDuration::from_millis(4));
            }
        });
        let mut arrivals: Vec<Instant> = Vec::new();
        while arrivals.first().is_none_or(|first| clock.now().since(*first) < lasting) {
            // Some of the size before may still wait.
            everything(to, clock, &mut |at, frame| {
                arrivals.extend(read_datagram(frame).is_some_and(|(_, len, _)| u64::from(len) == ip_len).then_some(at));
            });
            thread::sleep(StdDuration::from_millis(1));
        }
        arrivals
    })
}

/// Everything that was sent came, was dropped for a reason or waits, and what came is in order.
#[test]
#[ignore = "needs root: real packets"]
fn packets_are_conserved_and_keep_their_order_under_overload() {
    needs_live!();
    const COUNT: u32 = 20_000;
    let hosts = Hosts::new(true);
    let up = shaped(BitRate::from_mbit_per_s(4), Spec::fifo(100));
    let (snapshot, came) = shaping(&hosts, up, unshaped(), |handle| {
        let [mut from, mut to] = ports(&hosts);
        for first in (0..COUNT).step_by(64) {
            send(&mut from, (first..COUNT.min(first + 64)).map(|number| frames::datagram(number, 0, 100)).collect());
            thread::sleep(StdDuration::from_millis(2));
        }
        numbers(&mut to, handle, COUNT)
    });
    assert!(came.is_sorted_by(|a, b| a < b), "reordered or doubled");
    let hop = &snapshot.up.hops[0];
    assert!(hop.dropped_packets() > 1000, "no overload: {hop:?}");
    assert_eq!(hop.queued.packets.as_u64(), 0);
    assert_eq!(snapshot.up.received.packets, u64::from(COUNT));
    assert_eq!(came.len() as u64 + hop.dropped_packets(), u64::from(COUNT), "{hop:?}");
}

/// Other queues are put in again and again while a second's worth of packets waits.
#[test]
#[ignore = "needs root: real packets"]
fn no_packet_is_lost_or_overtaken_when_the_policy_changes() {
    needs_live!();
    const COUNT: u32 = 3000;
    let hosts = Hosts::new(true);
    let policy = |kbit| shaped(BitRate::from_kbit_per_s(kbit), bytes(10_000_000));
    let (snapshot, came) = shaping(&hosts, policy(4000), unshaped(), |handle| {
        let [mut from, mut to] = ports(&hosts);
        for first in (0..COUNT).step_by(10) {
            send(&mut from, (first..first + 10).map(|number| frames::datagram(number, 0, 500)).collect());
            thread::sleep(StdDuration::from_millis(3));
            if first % 500 == 250 {
                handle.hand_over(&policy(4000 + u64::from(first)), &unshaped()).unwrap();
            }
        }
        // One that cannot be: what is in force stays.
        let cells = Direction { link_layer: LinkLayer::from_name("ip").unwrap(), ..unshaped() };
        let small = Spec::Tbf(Over {
            config: tbf::Config {
                rate: BitRate::from_mbit_per_s(1),
                burst: lastmile_units::WireBytes::new(1),
                peak: None,
                largest: LARGEST,
                catch_up: Duration::ZERO,
            },
            queue: Box::new(Spec::fifo(1)),
        });
        let refused = handle.hand_over(&Direction { queue: small, ..cells }, &unshaped());
        assert!(matches!(refused, Err(Error::Queue(_))), "{refused:?}");
        numbers(&mut to, handle, COUNT)
    });
    assert_eq!(came, (0..COUNT).collect::<Vec<_>>());
    assert_eq!((snapshot.hand_overs, snapshot.up.hops[0].dropped_packets()), (6, 0));
    assert!(snapshot.up.hops[0].most_queued.packets.as_u64() > 100, "nothing waited: {:?}", snapshot.up.hops[0]);
}

/// A download beside an upload that would take all of the upstream.
#[test]
#[ignore = "needs root: real packets"]
fn acks_first_keeps_the_download() {
    needs_live!();
    let hosts = Hosts::new(true);
    let classes = [Match::PureAck, Match::Any].map(|matches| ClassSpec { matches, queue: bytes(60_000) });
    let up = shaped(BitRate::from_kbit_per_s(512), Spec::Priority(priority::Config { classes: classes.into() }));
    let down = shaped(BitRate::from_mbit_per_s(2), bytes(30_000));
    let exact = 2e6 * 1448.0 / (32.0 * 53.0);
    let (snapshot, goodput) = shaping(&hosts, up, down, |_| {
        let (sender, receiver) = sockets(&hosts);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    sender.send(&datagram(0, 1500)).unwrap();
                    thread::sleep(StdDuration::from_millis(5));
                }
            });
            let goodput = download(&hosts.left, &hosts.right, SocketAddrV4::new(RIGHT, 9000), exact);
            done.store(true, Ordering::Relaxed);
            drop(receiver);
            goodput
        })
    });
    eprintln!("{:.3} Mbit/s of {:.3} with the upload full", goodput / 1e6, exact / 1e6);
    assert!(goodput > 0.95 * exact && goodput < 1.01 * exact, "{goodput} bit/s, exact {exact}");
    assert!(snapshot.up.hops[0].dropped_packets() > 100, "the upload did not fill the line");
}

/// Damaged, cut short, in pieces or of unknown kinds: it comes out as it went in.
#[test]
#[ignore = "needs root: real packets"]
fn what_cannot_be_understood_is_carried() {
    needs_live!();
    let hosts = Hosts::new(true);
    let ethernet = |kind: u16, behind: &[u8]| {
        let mut frame = [&[0xFF; 6][..], &[2, 0, 0, 0, 0, 9], &kind.to_be_bytes(), behind].concat();
        frame.resize(frame.len().max(60), 0);
        frame
    };
    let udp = |first: u8, len: u8, fragment: u16| {
        let [high, low] = fragment.to_be_bytes();
        let mut ip = vec![first, 0, 0, len, 0, 1, high, low, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2];
        ip.extend([0, 7, 0, 9, 0, 26, 0, 0]);
        ip.resize(46, 7);
        ip
    };
    let mut ipv6 = vec![0x60, 0, 0, 0, 0, 8, 17, 64];
    ipv6.extend([0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1].repeat(2));
    ipv6.extend([0, 7, 0, 9, 0, 8, 0, 0]);
    let frames = [
        ethernet(0x0800, &udp(0x45, 46, 0)),
        // More length than there is, a header of four words, a version that is none, nothing behind the type.
        ethernet(0x0800, &udp(0x45, 255, 0)),
        ethernet(0x0800, &udp(0x44, 46, 0)),
        ethernet(0x0800, &udp(0x75, 46, 0)),
        ethernet(0x0800, &[]),
        // The first fragment, and a later one.
        ethernet(0x0800, &udp(0x45, 46, 0x2000)),
        ethernet(0x0800, &udp(0x45, 46, 0x0005)),
        ethernet(0x86DD, &ipv6),
        ethernet(0x86DD, &ipv6[..20]),
        ethernet(0x8100, &[&[0x20, 0x07, 0x08, 0x00], &udp(0x45, 46, 0)[..]].concat()),
        ethernet(0x8864, &[&[0x11, 0x00, 0x12, 0x34, 0x00, 48, 0x00, 0x21], &udp(0x45, 46, 0)[..]].concat()),
        ethernet(0x8864, &[0x11, 0x00]),
        ethernet(0x0806, &[1; 46]),
        ethernet(0x88B5, &[0xAB; 200]),
        // An 802.3 length in place of a type.
        ethernet(38, &[3; 46]),
    ];
    let up = shaped(BitRate::from_mbit_per_s(10), bytes(100_000));
    let (snapshot, came) = shaping(&hosts, up, unshaped(), |_| {
        let [mut from, mut to] = ports(&hosts);
        send(&mut from, frames.iter().map(|frame| Frame::ethernet(frame.clone()).0).collect());
        everything_until(&mut to, |came| came.len() == frames.len())
    });
    assert_eq!(came, frames);
    assert_eq!(snapshot.up.received.packets, frames.len() as u64);
}
