//! How many packets a second each packet path carries on this machine, one way through one thread: bare (received, read,
//! sent) and through a bump whose one hop is a FIFO without a rate. A thread beside it sends as fast as it can. Packets a
//! second of processor time stay what they are when the machine has other things to do; they count what the thread spends
//! in the kernel as well. Needs root:
//!
//! ```text
//! cargo run --release -p lastmile-live --example forwarder_speed
//! ```
#![expect(clippy::print_stdout, reason = "a program that prints")]

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use lastmile_linklayer::{Framing as LinkFraming, LinkLayer};
use lastmile_live::bump::{Bump, BumpConfig, HopConfig};
use lastmile_live::clock::{Clock, MonotonicClock};
use lastmile_live::io::tun::Settings;
use lastmile_live::io::{Bypass, Device, Framing, PacketSocket, Port, Refusal, Tun, Xdp};
use lastmile_live::lab::Namespace;
use lastmile_packet::{FlowAddresses, Frame, HashKey, IpAddresses, Meta, Protocol, write_packet};
use lastmile_queueing::compress::Compression;
use lastmile_queueing::spec::Spec;
use lastmile_queueing::{Limit, Overflow, line};
use lastmile_units::{Duration, Instant, PacketCount};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const SECONDS: f64 = 2.0;
const BATCH: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Path {
    Tun,
    PacketSockets,
    Xdp,
}

fn main() -> Result<()> {
    println!(
        "{:<16} {:>8} {:>12} {:>12} {:>16} {:>16} {:>8}",
        "path", "IP bytes", "offered/s", "bare/s", "bare/CPU second", "bump/CPU second", "ratio"
    );
    for (path, name) in [(Path::Tun, "TUN"), (Path::PacketSockets, "packet sockets"), (Path::Xdp, "AF_XDP")] {
        for ip_len in [64, 1500] {
            let (mut bare, mut bump) = (Run::default(), Run::default());
            // In turns, so that both meet the same machine; the best of three.
            for _ in 0..3 {
                bare = bare.better(measured(path, ip_len, false)?);
                bump = bump.better(measured(path, ip_len, true)?);
            }
            let Run { offered, carried, per_cpu_second } = bare;
            let ratio = bump.per_cpu_second / per_cpu_second;
            println!(
                "{name:<16} {ip_len:>8} {offered:>12.0} {carried:>12.0} {per_cpu_second:>16.0} {:>16.0} {ratio:>8.2}",
                bump.per_cpu_second
            );
        }
    }
    Ok(())
}

/// Packets a second.
#[derive(Clone, Copy, Default)]
struct Run {
    offered: f64,
    carried: f64,
    per_cpu_second: f64,
}

impl Run {
    fn better(self, other: Self) -> Self {
        if other.per_cpu_second > self.per_cpu_second { other } else { self }
    }
}

/// Seconds that the calling thread has had a processor: the first number of proc_pid_schedstat(5).
fn cpu_seconds() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: u64 = text.split_ascii_whitespace().next().ok_or("an empty schedstat")?.parse()?;
    Ok(nanoseconds as f64 / 1e9)
}

/// Two hosts and what is between them.
struct Hosts {
    left: Namespace,
    _right: Namespace,
    _bypasses: Vec<Bypass>,
    west: Box<dyn Device>,
    east: Box<dyn Device>,
}

impl Hosts {
    fn new(path: Path) -> Result<Self> {
        let named = |role| Namespace::create(&format!("lastmile-{}-{role}", std::process::id()));
        let (left, right) = (named("left")?, named("right")?);
        if path == Path::Tun {
            let west = Box::new(tun(&left, Ipv4Addr::new(198, 18, 0, 2))?);
            let east = Box::new(tun(&right, Ipv4Addr::new(198, 18, 0, 1))?);
            return Ok(Self { left, _right: right, _bypasses: Vec::new(), west, east });
        }
        // The ends in the middle stand in a namespace of their own, which goes with its last device.
        let middle = named("middle")?;
        let mut bypasses = Vec::new();
        let mut devices: Vec<Box<dyn Device>> = Vec::new();
        for (end, port) in [(&left, "west"), (&right, "east")] {
            ip(&format!("-n {} link add {port} type veth peer name eth netns {}", middle.name(), end.name()))?;
            for (namespace, device) in [(end.name(), "eth"), (middle.name(), port)] {
                ip(&format!("-n {namespace} link set {device} addrgenmode none up"))?;
            }
            devices.push(match path {
                Path::Xdp => {
                    let device = Xdp::open(Some(&middle), port)?;
                    if !device.is_native() {
                        println!("{port}: the program runs before the network stack, not in the driver");
                    }
                    Box::new(device)
                }
                _ => {
                    let device = PacketSocket::open(Some(&middle), port)?;
                    bypasses.push(Bypass::hold(Some(&middle), port)?);
                    Box::new(device)
                }
            });
        }
        let (east, west) = (devices.pop().ok_or("two devices")?, devices.pop().ok_or("two devices")?);
        // Its name goes; it lives as long as the sockets in it.
        drop(middle);
        Ok(Self { left, _right: right, _bypasses: bypasses, west, east })
    }
}

fn tun(namespace: &Namespace, address: Ipv4Addr) -> Result<Tun> {
    let settings = Settings { name: "lastmile%d".into(), address, prefix_len: 30, mtu: 1500, default_route: false };
    Ok(Tun::create(Some(namespace), &settings)?)
}

fn ip(arguments: &str) -> Result<()> {
    let output = Command::new("ip").args(arguments.split_whitespace()).output()?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr)).into())
    }
}

fn measured(path: Path, ip_len: u16, bump: bool) -> Result<Run> {
    let Hosts { left, _right, _bypasses, mut west, mut east } = Hosts::new(path)?;
    let over = AtomicBool::new(false);
    let clock = MonotonicClock::start();
    thread::scope(|scope| {
        let sender = scope.spawn(|| offer(&left, path, ip_len, &over));
        let before = cpu_seconds()?;
        let carried =
            if bump { through_bump(&clock, &mut *west, &mut *east) } else { bare(&clock, &mut *west, &mut *east) };
        let busy = cpu_seconds()? - before;
        over.store(true, Ordering::Relaxed);
        let offered = sender.join().map_err(|_| "the sender panicked")??;
        let carried = carried?;
        Ok(Run { offered: offered / SECONDS, carried: carried / SECONDS, per_cpu_second: carried / busy })
    })
}

/// Sends from the left until it is over; returns how many.
fn offer(left: &Namespace, path: Path, ip_len: u16, over: &AtomicBool) -> Result<f64> {
    let mut offered = 0_u64;
    if path == Path::Tun {
        let socket = left.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))??;
        socket.connect(SocketAddrV4::new(Ipv4Addr::new(198, 18, 0, 1), 9))?;
        let payload = vec![0; usize::from(ip_len) - 28];
        while !over.load(Ordering::Relaxed) {
            for _ in 0..BATCH {
                offered += u64::from(socket.send(&payload).is_ok());
            }
        }
        return Ok(offered as f64);
    }
    let mut port = PacketSocket::open(Some(left), "eth")?;
    let frame = frame(ip_len);
    let mut frames: Vec<Frame> = vec![frame; BATCH];
    let mut sent = Vec::with_capacity(BATCH);
    while !over.load(Ordering::Relaxed) {
        port.send(&mut frames, &mut |frame, result| {
            offered += u64::from(result.is_ok());
            sent.push(frame);
        });
        std::mem::swap(&mut frames, &mut sent);
    }
    Ok(offered as f64)
}

/// UDP to a host that is not there.
fn frame(ip_len: u16) -> Frame {
    let meta = Meta { ip_len, protocol: Protocol::Udp, header_len: 28, ..Meta::default() };
    let ip = IpAddresses::V4 { source: Ipv4Addr::new(198, 18, 0, 2), destination: Ipv4Addr::new(198, 18, 0, 1) };
    let mut packet = Vec::new();
    write_packet(&meta, &FlowAddresses { ip, source_port: 7, destination_port: 9 }, &mut packet);
    let link = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    Frame::ethernet([&link[..], &packet].concat()).0
}

fn bare(clock: &MonotonicClock, west: &mut dyn Port, east: &mut dyn Port) -> Result<f64> {
    let (mut frames, mut spare, mut carried) = (Vec::with_capacity(BATCH), Vec::<Vec<u8>>::new(), 0_u64);
    let ethernet = west.framing() == Framing::Ethernet;
    let start = StdInstant::now();
    while start.elapsed().as_secs_f64() < SECONDS {
        let before = carried;
        west.receive(clock, BATCH, &mut |_, bytes| {
            let mut buffer = spare.pop().unwrap_or_default();
            buffer.clear();
            buffer.extend_from_slice(bytes);
            frames.push(if ethernet { Frame::ethernet(buffer).0 } else { Frame::new(buffer).0 });
        })?;
        east.send(&mut frames, &mut |frame, result| {
            carried += u64::from(result.is_ok());
            spare.push(frame.into_bytes());
        });
        rest_if(carried == before);
    }
    Ok(carried as f64)
}

fn through_bump(clock: &MonotonicClock, west: &mut dyn Port, east: &mut dyn Port) -> Result<f64> {
    let hop = HopConfig {
        name: "wire".into(),
        line: line::Config {
            rate: None,
            link_layer: LinkLayer::new(0, LinkFraming::None)?,
            delay: Duration::ZERO,
            loss_ppb: 0,
            compression: Compression::None,
        },
        queue: Spec::Fifo { limit: Limit::Packets(PacketCount::new(1000)), drop: Overflow::Tail },
    };
    let (up, down) = (vec![hop.clone()], vec![hop]);
    let mut bump = Bump::new(&BumpConfig { up, down, mtu: u16::MAX, seed: 1, hash_key: HashKey::default() })?;
    let start = StdInstant::now();
    let mut carried = 0;
    let mut east = Counted { port: east, sent: 0 };
    while start.elapsed().as_secs_f64() < SECONDS {
        bump.turn(clock, west, &mut east)?;
        rest_if(east.sent == carried);
        carried = east.sent;
    }
    Ok(carried as f64)
}

/// Waits for packets, but not for each: what comes meanwhile is a batch.
fn rest_if(idle: bool) {
    if idle {
        thread::sleep(StdDuration::from_micros(20));
    }
}

/// A port that counts what it sends.
struct Counted<'a> {
    port: &'a mut dyn Port,
    sent: u64,
}

impl Port for Counted<'_> {
    fn framing(&self) -> Framing {
        self.port.framing()
    }

    fn receive(
        &mut self,
        clock: &dyn Clock,
        limit: usize,
        take: &mut dyn FnMut(Instant, &[u8]),
    ) -> std::io::Result<Instant> {
        self.port.receive(clock, limit, take)
    }

    fn send(&mut self, frames: &mut Vec<Frame>, done: &mut dyn FnMut(Frame, std::result::Result<(), Refusal>)) {
        self.sent += frames.len() as u64;
        self.port.send(frames, done);
    }
}
