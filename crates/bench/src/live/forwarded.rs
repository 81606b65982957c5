//! Packets a second between two interfaces by each packet path: bare (received and sent), through a
//! FIFO without a rate, through six classes with the Smart ACK Dropper, and through the policies
//! `cake` and `full-both-ways`.
//!
//! A second thread sends as fast as possible. Packets per second of processor time do not depend on
//! the machine's other load, and include the thread's time in the kernel.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use lastmile_linklayer::LinkLayer;
use lastmile_live::bump::{BATCH, Bump, BumpConfig, HopReport};
use lastmile_live::clock::{Clock, MonotonicClock};
use lastmile_live::io::bypass::Means;
use lastmile_live::io::{Bypass, Device, Framing, PacketSocket, Port, Refusal, Xdp};
use lastmile_live::netns::Namespace;
use lastmile_packet::{Frame, HashKey};
use lastmile_queueing::spec::Spec;
use lastmile_units::{BitRate, Instant};

use super::row::{Result, Row};
use crate::datapath::{Between, hop, long_list, ready_policy, six_classes, unread};
use crate::traffic::Traffic;

/// The shortest warm-up of each configuration.
const WARM_UP_SECONDS: f64 = 0.5;
/// The fewest repetitions of the sender's frames in the warm-up, so that every flow has been seen,
/// even if some frames were dropped.
const WARM_UP_ROUNDS: usize = 3;
/// The length of a turn of one configuration: short, so that all meet the same conditions.
const TURN_SECONDS: f64 = 0.05;
const TURNS: usize = 31;
/// The sleep when no packet waits.
const PAUSE: StdDuration = StdDuration::from_millis(1);
/// Ten times the arrivals, so that the program is the limit.
const LINE: BitRate = BitRate::from_mbit_per_s(100_000);
/// The fewest frames of the sender, so that flows alternate.
const FRAMES: usize = 4096;

/// The configurations between the ports, measured in turn.
const WAYS: [Between; 5] =
    [Between::Bare, Between::Fifo, Between::SixClasses, Between::Policy("cake"), Between::Policy("full-both-ways")];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Path {
    PacketSockets,
    Xdp,
}

impl Path {
    const fn name(self) -> &'static str {
        match self {
            Self::PacketSockets => "packet sockets",
            Self::Xdp => "AF_XDP",
        }
    }
}

fn cases() -> impl Iterator<Item = (Path, u16, u32)> {
    let flows = |path, ip_len| [1_000, 100_000].map(|flows| (path, ip_len, flows));
    let sizes = move |path| [64, 1_500].into_iter().flat_map(move |ip_len| flows(path, ip_len));
    [Path::PacketSockets, Path::Xdp].into_iter().flat_map(sizes)
}

fn name((path, ip_len, flows): (Path, u16, u32)) -> String {
    format!("live: forwarded by {}, {ip_len} bytes, at {flows} flows", path.name())
}

pub(super) fn names() -> Vec<String> {
    cases().map(name).collect()
}

pub(super) fn run(wanted: &str) -> Option<Result<Vec<Row>>> {
    let (path, ip_len, flows) = cases().find(|case| name(*case) == wanted)?;
    Some(measured(path, ip_len, flows))
}

/// The result of one configuration in one turn.
#[derive(Clone, Copy, Default)]
struct Turn {
    /// Packets a second.
    carried: f64,
    per_cpu_second: f64,
}

/// All configurations between the same ports and with the same sender.
fn measured(path: Path, ip_len: u16, flows: u32) -> Result<Vec<Row>> {
    let Hosts { left, _right, _bypasses, mut west, mut east } = Hosts::new(path)?;
    let (over, ready) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut ways = WAYS.into_iter().map(Way::new).collect::<Result<Vec<_>>>()?;
    let clock = MonotonicClock::start();
    let rounds = FRAMES.max(flows as usize) * WARM_UP_ROUNDS;
    let (turns, offered) = thread::scope(|scope| {
        let sender = scope.spawn(|| offer(&left, ip_len, flows, &ready, &over));
        while !ready.load(Ordering::Relaxed) && !sender.is_finished() {
            thread::sleep(StdDuration::from_millis(1));
        }
        let turns = turns(&mut ways, rounds as f64, &clock, &mut *west, &mut *east);
        over.store(true, Ordering::Relaxed);
        let offered = sender.join().map_err(|_| "the sender panicked")??;
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>((turns?, offered))
    })?;
    let rows = ways
        .iter()
        .enumerate()
        .map(|(index, way)| row(path, ip_len, flows, index, &turns, offered, way.dropped_share()));
    Ok(rows.collect())
}

/// The result of each configuration in each turn, after each has carried `warm_up` packets.
fn turns(
    ways: &mut [Way],
    warm_up: f64,
    clock: &MonotonicClock,
    west: &mut dyn Port,
    east: &mut dyn Port,
) -> Result<Vec<[Turn; TURNS]>> {
    for way in &mut *ways {
        let mut carried = 0.0;
        while carried < warm_up {
            let more = way.carry_for(WARM_UP_SECONDS, clock, west, east)?;
            if more == 0.0 {
                return Err("nothing is carried".into());
            }
            carried += more;
        }
    }
    let mut turns = vec![[Turn::default(); TURNS]; ways.len()];
    for turn in 0..TURNS {
        for (way, turns) in ways.iter_mut().zip(&mut turns) {
            let (before, start) = (cpu_seconds()?, StdInstant::now());
            let carried = way.carry_for(TURN_SECONDS, clock, west, east)?;
            let (busy, took) = (cpu_seconds()? - before, start.elapsed().as_secs_f64());
            turns[turn] = Turn { carried: carried / took, per_cpu_second: carried / busy };
        }
    }
    Ok(turns)
}

fn row(
    path: Path,
    ip_len: u16,
    flows: u32,
    index: usize,
    turns: &[[Turn; TURNS]],
    offered: f64,
    dropped_share: f64,
) -> Row {
    let headings = [
        "forwarded by",
        "bytes",
        "flows",
        "way",
        "offered/s",
        "carried/s",
        "of bare",
        "per CPU second",
        "of bare ",
        "from",
        "to",
        "dropped %",
    ];
    let number = |what: fn(&Turn) -> f64| format!("{:.0}", quartiles(turns[index].each_ref().map(what))[1]);
    // Relative to the bare forwarder in the same turn.
    let shares = |what: fn(&Turn) -> f64| {
        quartiles(std::array::from_fn(|turn| what(&turns[index][turn]) / what(&turns[0][turn])))
    };
    let ([_, carried, _], [from, per_cpu, to]) = (shares(|turn| turn.carried), shares(|turn| turn.per_cpu_second));
    let cells = [
        path.name().to_owned(),
        ip_len.to_string(),
        flows.to_string(),
        WAYS[index].name().to_owned(),
        format!("{offered:.0}"),
        number(|turn| turn.carried),
        format!("{carried:.2}"),
        number(|turn| turn.per_cpu_second),
        format!("{per_cpu:.2}"),
        format!("{from:.2}"),
        format!("{to:.2}"),
        format!("{:.2}", 100.0 * dropped_share),
    ];
    Row::new(headings, cells)
}

/// The quartiles of the turns.
fn quartiles(mut values: [f64; TURNS]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[TURNS * quarter / 4])
}

/// Processor time of the calling thread in seconds: the first number of proc_pid_schedstat(5).
fn cpu_seconds() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: u64 = text.split_ascii_whitespace().next().ok_or("an empty schedstat")?.parse()?;
    Ok(nanoseconds as f64 / 1e9)
}

/// Sends from the left until the end, and returns the packets per second.
fn offer(left: &Namespace, ip_len: u16, flows: u32, ready: &AtomicBool, over: &AtomicBool) -> Result<f64> {
    let mut port = PacketSocket::open(Some(left), "eth")?;
    let mut frames = Traffic::new(ip_len, flows).frames(FRAMES.max(flows as usize));
    let mut batches: Vec<Vec<Frame>> = Vec::new();
    while !frames.is_empty() {
        batches.push(frames.split_off(frames.len().saturating_sub(BATCH)));
    }
    let (mut offered, mut sent) = (0_u64, Vec::with_capacity(BATCH));
    ready.store(true, Ordering::Relaxed);
    let start = StdInstant::now();
    while !over.load(Ordering::Relaxed) {
        for batch in &mut batches {
            port.send(batch, &mut |frame, result| {
                offered += u64::from(result.is_ok());
                sent.push(frame);
            });
            std::mem::swap(batch, &mut sent);
            if over.load(Ordering::Relaxed) {
                break;
            }
        }
    }
    Ok(offered as f64 / start.elapsed().as_secs_f64())
}

/// A configuration between the ports.
enum Way {
    Bare { frames: Vec<Frame>, spare: Vec<Frame> },
    Bump(Box<Bump>),
}

impl Way {
    fn new(between: Between) -> Result<Self> {
        let layer = LinkLayer::from_name("ip").ok_or("a preset")?;
        let queues = match between {
            Between::Bare => return Ok(Self::Bare { frames: Vec::with_capacity(BATCH), spare: Vec::new() }),
            Between::Fifo => [(Spec::fifo(1_000), layer), (Spec::fifo(1_000), layer)],
            Between::SixClasses => six_classes(LINE),
            Between::LongList => long_list(),
            Between::Policy(name) => ready_policy(name, LINE),
        };
        let [up, down] = queues.map(|(queue, layer)| vec![hop(queue, layer)]);
        let config = BumpConfig { up, down, mtu: u16::MAX, seed: 1, hash_key: HashKey::default() };
        Ok(Self::Bump(Box::new(Bump::new(&config)?)))
    }

    fn dropped_share(&self) -> f64 {
        let Self::Bump(bump) = self else { return 0.0 };
        let (up, _) = bump.reports();
        let came: u64 = up.hops.iter().map(|hop| hop.line.enqueued.packets).sum();
        let dropped: u64 = up.hops.iter().map(HopReport::dropped_packets).sum();
        dropped as f64 / came.max(1) as f64
    }

    /// Returns the number of carried packets.
    fn carry_for(
        &mut self,
        seconds: f64,
        clock: &MonotonicClock,
        west: &mut dyn Port,
        east: &mut dyn Port,
    ) -> Result<f64> {
        let start = StdInstant::now();
        let mut east = Counted { port: east, sent: 0 };
        while start.elapsed().as_secs_f64() < seconds {
            let before = east.sent;
            match self {
                Self::Bare { frames, spare } => {
                    forward(clock, west, &mut east, frames, spare)?;
                    forward(clock, &mut east, west, frames, spare)?;
                }
                Self::Bump(bump) => bump.turn(clock, west, &mut east)?,
            }
            if east.sent == before {
                // Packets that arrive during the pause are several full batches, as under overload.
                thread::sleep(PAUSE);
            }
        }
        Ok(east.sent as f64)
    }
}

/// One direction of a bare forwarder.
fn forward(
    clock: &MonotonicClock,
    from: &mut dyn Port,
    to: &mut dyn Port,
    frames: &mut Vec<Frame>,
    spare: &mut Vec<Frame>,
) -> Result<()> {
    from.receive(clock, BATCH, &mut |_, bytes| frames.push(unread(bytes, spare)))?;
    to.send(frames, &mut |frame, _| spare.push(frame));
    Ok(())
}

/// A port that counts the packets that it sends.
struct Counted<'a> {
    port: &'a mut dyn Port,
    sent: u64,
}

impl Port for Counted<'_> {
    fn name(&self) -> &str {
        self.port.name()
    }

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

/// Two hosts and the machine between them.
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
        // The inner ends are in a namespace of their own, which is removed with its last device.
        let (left, right, middle) = (named("left")?, named("right")?, named("middle")?);
        let mut bypasses = Vec::new();
        let mut devices: Vec<Box<dyn Device>> = Vec::new();
        for (end, port) in [(&left, "west"), (&right, "east")] {
            ip(&format!("-n {} link add {port} type veth peer name eth netns {}", middle.name(), end.name()))?;
            for (namespace, device) in [(end.name(), "eth"), (middle.name(), port)] {
                ip(&format!("-n {namespace} link set {device} addrgenmode none up"))?;
            }
            devices.push(match path {
                Path::Xdp => Box::new(Xdp::open(Some(&middle), port)?),
                Path::PacketSockets => {
                    let device = PacketSocket::open(Some(&middle), port)?;
                    bypasses.push(Bypass::hold(Some(&middle), port, &[Means::Tcx])?);
                    Box::new(device)
                }
            });
        }
        let (east, west) = (devices.pop().ok_or("two devices")?, devices.pop().ok_or("two devices")?);
        Ok(Self { left, _right: right, _bypasses: bypasses, west, east })
    }
}

fn ip(arguments: &str) -> Result<()> {
    let output = Command::new("ip").args(arguments.split_whitespace()).output()?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr)).into())
    }
}
