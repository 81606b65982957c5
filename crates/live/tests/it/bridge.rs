//! Frames between two interfaces: through packet sockets and AF_XDP, on a bridge of the kernel that
//! carries on when the program is gone.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use lastmile_linklayer::LinkLayer;
use lastmile_live::clock::MonotonicClock;
use lastmile_live::emulate::{Config, Outcome, Place, World};
use lastmile_live::holder::Program;
use lastmile_live::io::{Interface, PacketSocket, Path, Port, offload};
use lastmile_live::netns::Namespace;
use lastmile_live::probe::{Ping, ping};
use lastmile_live::stop::Stop;
use lastmile_model::Hop;
use lastmile_packet::Frame;
use lastmile_queueing::spec::Spec;
use lastmile_queueing::{Limit, Overflow, fifo, line};
use lastmile_units::{BitRate, ByteCount, Duration};

use crate::frames::{everything_until, numbered, send};
use crate::hosts::{AtEnd, Hosts, ip};
use crate::line::download;
use crate::world::{adsl, crossing, is_long, needs_live, two_megabit_first};

/// No test takes as long.
const LONGEST: Duration = Duration::from_s(1200);

pub(crate) const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

fn place(hosts: &Hosts, port: &str) -> Place {
    Place::Interface { namespace: Some(hosts.middle.name().to_owned()), name: port.to_owned() }
}

/// The line of `config` between the two ports.
pub(crate) fn between(hosts: &Hosts, config: Config) -> Config {
    Config { client: place(hosts, "west"), server: place(hosts, "east"), ..config }
}

/// Carries frames along the line while `work` runs.
pub(crate) fn across<T>(hosts: &Hosts, config: Config, work: impl FnOnce() -> T) -> (Outcome, T) {
    let mut world = World::build(&between(hosts, config)).unwrap();
    let stop = Stop::new().unwrap();
    let handle = stop.handle().unwrap();
    thread::scope(|scope| {
        let carrier = scope.spawn(|| world.run(&stop, Some(LONGEST)).unwrap());
        let ending = AtEnd(|| handle.stop());
        let done = work();
        thread::sleep(StdDuration::from_millis(50));
        drop(ending);
        let outcome = carrier.join().unwrap();
        for direction in [&outcome.up, &outcome.down] {
            assert!(direction.is_balanced(), "{direction:?}");
            assert_eq!((direction.port.dropped_unread, direction.port.offloads.refused), (0, 0));
        }
        (outcome, done)
    })
}

/// A wire that adds nothing.
pub(crate) fn wire() -> Config {
    let hop = Hop {
        name: "wire".into(),
        line: line::Config::new(None, LinkLayer::from_name("ip").unwrap(), Duration::ZERO),
        queue: Spec::Fifo(fifo::Config { limit: Limit::Bytes(ByteCount::new(10_000_000)), drop: Overflow::Tail }),
    };
    Config::new(vec![hop.clone()], vec![hop])
}

pub(crate) fn pings(from: &Namespace, count: u16, interval: Duration) -> lastmile_live::probe::Replies {
    let request = Ping { target: RIGHT.into(), count, interval, ip_len: 84, patience: Duration::from_s(1) };
    from.run(|| ping(&request)).unwrap().unwrap()
}

/// With a bridge of the kernel below, which would carry every frame a second time, and much faster, if it could.
#[test]
#[ignore = "needs root: real packets"]
fn a_ping_between_two_interfaces_takes_as_long_as_the_line_says() {
    needs_live!();
    for path in [Path::PacketSockets, Path::Xdp] {
        ping_takes_as_long_as_the_line_says(path);
    }
}

#[expect(clippy::print_stderr, reason = "a measurement that the test is about")]
fn ping_takes_as_long_as_the_line_says(path: Path) {
    let hosts = Hosts::new(true);
    // The bridge carries frames on its own, and learns where the hosts are.
    assert_eq!(pings(&hosts.left, 5, Duration::from_ms(20)).sorted().len(), 5);
    let config = Config { path, ..two_megabit_first() };
    let exact = crossing(&config.up[0], 84) + crossing(&config.down[0], 84);
    let (outcome, replies) = across(&hosts, config, || pings(&hosts.left, 100, Duration::from_ms(20)));
    let times = replies.sorted();
    assert_eq!((times.len(), replies.duplicates), (100, 0), "{replies:?}");
    eprintln!("{path}: exact {exact}: min {} median {} p99 {}", times[0], times[50], times[98]);
    assert!(times[0] + Duration::from_us(20) > exact, "{} < {exact}", times[0]);
    // On a busy machine half of the packets and more wait for a processor.
    assert!(times[10].saturating_sub(exact) < Duration::from_ms(1), "tenth {}, exact {exact}", times[10]);
    assert!(outcome.up.sent.packets >= 100, "{:?}", outcome.up.sent);
}

/// The hosts leave checksums and segmentation to devices that do neither, as they do by default on veth; or do both.
#[test]
#[ignore = "needs root: real packets"]
fn tcp_gets_the_lines_payload_rate_with_everything_offloaded_and_with_nothing() {
    needs_live!();
    for path in [Path::PacketSockets, Path::Xdp] {
        for offloaded in [true, false] {
            tcp_gets_the_lines_payload_rate(path, offloaded);
        }
    }
}

#[expect(clippy::print_stderr, reason = "a measurement that the test is about")]
fn tcp_gets_the_lines_payload_rate(path: Path, offloaded: bool) {
    let hosts = Hosts::new(false);
    if !offloaded {
        for host in [&hosts.left, &hosts.right] {
            offload::switch_off(Some(host), "eth").unwrap();
        }
    }
    let down = adsl(BitRate::from_mbit_per_s(8), Duration::from_ms(4));
    // AF_XDP does not say when a frame came: who reads it goes before all else.
    let config = Config { path, down: vec![down], ..two_megabit_first() };
    let exact = 8e6 * 1448.0 / (32.0 * 53.0);
    let (outcome, goodput) =
        across(&hosts, config, || download(&hosts.left, &hosts.right, SocketAddrV4::new(RIGHT, 9000), exact));
    let (up, down) = (outcome.up.port.offloads, outcome.down.port.offloads);
    eprintln!("{path}: TCP: {:.3} Mbit/s, the line's payload rate is {:.3}; {down:?}", goodput / 1e6, exact / 1e6);
    assert!(goodput > 0.95 * exact && goodput < 1.01 * exact, "{goodput} bit/s, exact {exact}");
    // With a program in its driver a veth makes its other end cut.
    let cut = offloaded && path == Path::PacketSockets;
    assert_eq!((down.cut > 0, down.segments > down.cut), (cut, cut), "{down:?}");
    assert_eq!((up.finished > 0, down.finished > 0), (offloaded, offloaded), "{up:?} {down:?}");
}

/// A veth may hand over VLAN tags beside the frame, where AF_XDP would lose them.
#[test]
#[ignore = "needs root: network namespaces"]
fn the_packet_path_is_chosen_by_what_the_device_does_and_says_so() {
    needs_live!();
    let hosts = Hosts::new(false);
    let path = |wish| Interface::open(Some(&hosts.middle), "west", wish, Program::Emulate).unwrap().path;
    let chosen = path(Path::Auto);
    assert!(chosen.starts_with("packet sockets, because AF_XDP would lose the VLAN tags"), "{chosen}");
    let asked = path(Path::PacketSockets);
    assert!(asked.starts_with("packet sockets, as asked for; bypass by "), "{asked}");
    let asked = path(Path::Xdp);
    assert!(asked.starts_with("AF_XDP native copy, as asked for; VLAN tags that west takes off are lost"), "{asked}");
}

/// Frames that the program understands, and others, come out byte for byte.
#[test]
#[ignore = "needs root: real packets"]
fn frames_of_every_kind_pass_unchanged() {
    needs_live!();
    for path in [Path::PacketSockets, Path::Xdp] {
        frames_pass_unchanged(path);
    }
}

fn frames_pass_unchanged(path: Path) {
    let hosts = Hosts::new(false);
    let ethernet = |behind: &[u8]| [&[0xFF; 6][..], &[2, 0, 0, 0, 0, 9], behind].concat();
    let mut udp = vec![0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2, 0, 7, 0, 9, 0, 26, 0, 0];
    udp.resize(46, 7);
    let frames = [
        ethernet(&[&[0x08, 0x00], &udp[..]].concat()),
        ethernet(&[&[0x81, 0x00, 0x20, 0x07, 0x08, 0x00], &udp[..]].concat()),
        ethernet(&[&[0x88, 0xA8, 0x00, 0x08, 0x81, 0x00, 0x00, 0x07, 0x08, 0x00], &udp[..]].concat()),
        ethernet(&[&[0x88, 0x64, 0x11, 0x00, 0x12, 0x34, 0x00, 48, 0x00, 0x21], &udp[..]].concat()),
        ethernet(&[&[0x88, 0x63, 0x11, 0x09, 0x00, 0x00, 0x00, 0x04, 1, 1, 0, 0], &[0; 34][..]].concat()),
        ethernet(&[&[0x08, 0x06], &[1; 46][..]].concat()),
        ethernet(&[&[0x88, 0xB5], &[0xAB; 200][..]].concat()),
        ethernet(&[&[0x00, 0x26, 0x42, 0x42, 0x03], &[3; 43][..]].concat()),
    ];
    let (outcome, came) = across(&hosts, Config { path, ..wire() }, || {
        let mut from = PacketSocket::open(Some(&hosts.left), "eth").unwrap();
        let mut to = PacketSocket::open(Some(&hosts.right), "eth").unwrap();
        send(&mut from, frames.iter().map(|frame| Frame::ethernet(frame.clone()).0).collect());
        everything_until(&mut to, |came| came.len() == frames.len())
    });
    assert_eq!(came, frames);
    // PPPoE discovery, ARP, an experimental protocol and LLC.
    assert_eq!((outcome.up.received.packets, outcome.up.not_ip, outcome.up.unreadable), (8, 4, 0));
}

/// With fewer on their way than any queue of the kernel holds, all of them come, in order.
#[test]
#[ignore = "needs root: real packets"]
fn frames_come_out_as_many_as_went_in_and_in_order() {
    needs_live!();
    for path in [Path::PacketSockets, Path::Xdp] {
        many_frames(path);
    }
}

fn many_frames(path: Path) {
    let count = if is_long() { 500_000 } else { 20_000 };
    const ON_THEIR_WAY: u32 = 128;
    let hosts = Hosts::new(false);
    let mut from = PacketSocket::open(Some(&hosts.left), "eth").unwrap();
    let mut to = PacketSocket::open(Some(&hosts.right), "eth").unwrap();
    let frame = |number: u32| {
        let mut bytes = [&[2; 12][..], &[0x88, 0xB5], &number.to_be_bytes()].concat();
        bytes.resize(60, 0);
        Frame::ethernet(bytes).0
    };
    let (outcome, came) = across(&hosts, Config { path, ..wire() }, || {
        let (clock, start) = (MonotonicClock::start(), StdInstant::now());
        let (mut sent, mut came) = (0, 0);
        while came < count && start.elapsed() < StdDuration::from_secs(50) {
            let next = count.min(came + ON_THEIR_WAY).min(sent + 64);
            from.send(&mut (sent..next).map(frame).collect(), &mut |_, result| assert_eq!(result, Ok(())));
            sent = next;
            to.receive(&clock, 64, &mut |_, frame| {
                assert_eq!(frame[14..18], came.to_be_bytes());
                came += 1;
            })
            .unwrap();
        }
        came
    });
    assert_eq!(came, count, "{outcome:?}");
    assert_eq!(outcome.up.sent.packets, u64::from(count));
}

/// An interface that goes down and comes back takes the line with it and gives it back.
#[test]
#[ignore = "needs root: real packets"]
fn an_interface_may_go_down_and_come_up_again() {
    needs_live!();
    for path in [Path::PacketSockets, Path::Xdp] {
        an_interface_goes_down_and_comes_up(path);
    }
}

fn an_interface_goes_down_and_comes_up(path: Path) {
    let hosts = Hosts::new(true);
    let (outcome, replies) = across(&hosts, Config { path, ..wire() }, || {
        let first = pings(&hosts.left, 10, Duration::from_ms(10));
        let middle = hosts.middle.name();
        ip(&format!("-n {middle} link set east down"));
        thread::sleep(StdDuration::from_millis(100));
        let none = pings(&hosts.left, 5, Duration::from_ms(10));
        ip(&format!("-n {middle} link set east up"));
        thread::sleep(StdDuration::from_millis(500));
        [first, none, pings(&hosts.left, 10, Duration::from_ms(10))]
    });
    assert_eq!(replies.map(|replies| replies.sorted().len()), [10, 0, 10], "{path}: {outcome:?}");
}

/// The run ends with an error where an interface is removed, also where it went down some time before.
#[test]
#[ignore = "needs root: real packets"]
fn an_interface_that_is_removed_ends_the_run_with_an_error() {
    needs_live!();
    for (path, down_first) in [(Path::PacketSockets, false), (Path::PacketSockets, true), (Path::Xdp, false)] {
        let hosts = Hosts::new(false);
        let mut world = World::build(&between(&hosts, Config { path, ..wire() })).unwrap();
        let result = thread::scope(|scope| {
            let carrier = scope.spawn(|| world.run(&Stop::new().unwrap(), Some(Duration::from_s(20))));
            thread::sleep(StdDuration::from_millis(200));
            if down_first {
                ip(&format!("-n {} link set east down", hosts.middle.name()));
                thread::sleep(StdDuration::from_millis(300));
            }
            ip(&format!("-n {} link del east", hosts.middle.name()));
            carrier.join().unwrap()
        });
        let error = result.err().unwrap_or_else(|| panic!("{path}: nobody noticed, down first: {down_first}"));
        let error = error.to_string();
        assert!(error.contains("reading packets"), "{path}: {error}");
        assert!(path == Path::Xdp || error.contains("the interface was removed"), "{path}: {error}");
    }
}

/// Where the child finds its interfaces.
const MIDDLE: &str = "LASTMILE_TEST_MIDDLE";

/// By what it carries frames.
const PATH: &str = "LASTMILE_TEST_PATH";

/// No test: the program that the next one kills.
#[test]
#[ignore = "a part of another test"]
fn the_program_in_the_middle() {
    let Ok(middle) = std::env::var(MIDDLE) else { return };
    let place = |port: &str| Place::Interface { namespace: Some(middle.clone()), name: port.to_owned() };
    let path = Path::ALL.into_iter().find(|path| std::env::var(PATH).as_deref() == Ok(path.name())).unwrap();
    let config = Config { client: place("west"), server: place("east"), path, ..wire() };
    let mut world = World::build(&config).unwrap();
    say_ready();
    world.run(&Stop::new().unwrap(), Some(Duration::from_s(30))).unwrap();
}

/// Datagrams go on across the start of the program, its kill by SIGKILL, and a second start.
#[test]
#[ignore = "needs root: real packets"]
fn the_line_lives_when_the_program_is_killed() {
    needs_live!();
    for path in [Path::PacketSockets, Path::Xdp] {
        the_line_lives(path);
    }
}

#[expect(clippy::print_stderr, reason = "a measurement that the test is about")]
fn the_line_lives(path: Path) {
    let hosts = Hosts::new(true);
    let start = || {
        let mut command = part("bridge::the_program_in_the_middle");
        started(command.env(MIDDLE, hosts.middle.name()).env(PATH, path.name()))
    };
    numbered(&hosts.left, &hosts.right, |datagrams| {
        let mut gaps_ms = vec![datagrams.gap_ms()];
        for _ in 0..2 {
            let mut child = start();
            gaps_ms.push(datagrams.gap_ms());
            child.kill().unwrap();
            child.wait().unwrap();
            gaps_ms.push(datagrams.gap_ms());
        }
        eprintln!(
            "{path}: gaps at the begin, and at two starts and kills: {gaps_ms:?} ms; {} doubled",
            datagrams.doubled()
        );
        assert!(gaps_ms.iter().all(|gap_ms| *gap_ms < 500), "{gaps_ms:?} ms");
        // Between the tap and what drops behind it a frame can pass twice.
        assert!(datagrams.doubled() < 50, "{} came twice", datagrams.doubled());
    });
}

/// The reports of the other tests' parts when packets go through them.
const READY: &str = "packets are carried";

/// Said by a part of another test.
#[expect(clippy::print_stdout, reason = "the test that has started it waits for that")]
pub(crate) fn say_ready() {
    println!("{READY}");
}

/// This program, to run the part of a test that has this name.
pub(crate) fn part(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "--nocapture", name]);
    command
}

/// Started, and carrying packets.
pub(crate) fn started(command: &mut Command) -> Child {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains(READY)), "it ended at once");
    child
}
