//! The middlebox with six classes and a Smart ACK Dropper, and the emulated line, under long loads.
//! Every packet is accounted for, no flow is reordered, and memory does not grow; also with a new
//! flow for every packet, and with many concurrent backlogged flows.
//!
//! The tests need root and network namespaces, so they run only on request
//! (`scripts/live-tests.sh`), and for long with `LASTMILE_LONG` (`make soak`). A number above 1 in
//! it is the number of packets, and each hundredth of them is reported by a line on standard error.

use std::fs;
use std::thread;

use lastmile_linklayer::LinkLayer;
use lastmile_live::clock::{Clock as _, MonotonicClock};
use lastmile_live::emulate;
use lastmile_live::io::{Path, Port as _};
use lastmile_live::netns::Namespace;
use lastmile_live::shape::{Config, Direction, Snapshot, Tuning, World};
use lastmile_live::stop::Stop;
use lastmile_model::Hop;
use lastmile_queueing::spec::Spec;
use lastmile_queueing::{DropReason, line};
use lastmile_scenario::policy::{Line, Policy, ready};
use lastmile_units::{BitRate, Duration, Instant, Ratio};

#[path = "../../../live/tests/it/frames.rs"]
#[expect(dead_code, reason = "the tests of the live crate use more of it")]
mod frames;
mod load;

use crate::hosts::{AtEnd, Hosts};
use crate::live::can_run;
use load::{KINDS, Load, packet};

/// Six classes, with pure ACKs in one of their own behind a Smart ACK Dropper with space for
/// `acks`.
fn policy(up: BitRate, down: BitRate, acks: u32) -> Policy {
    let text = ready::text("adsl-optimizer").unwrap();
    let sad = format!("regulate = {{ kind = \"sad\", limit = \"{acks} packets\" }}");
    let own = "regulate = { kind = \"sfq\", perturb = \"10 s\", limit = \"50 packets\" }";
    let with_sad = text.replacen(own, &sad, 1).replace("kind = \"sfq\", perturb = \"10 s\"", "kind = \"fifo\"");
    assert!(with_sad.find(&sad) < with_sad.find("[[class]]"), "the first limit is that of the ACKs");
    let layer = LinkLayer::from_name("pppoa-vcmux").unwrap();
    let line = Line::steady(up, down, layer, layer);
    let policy =
        Policy::parse("six-classes-and-sad", &with_sad, Some(line)).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(policy.classes.len(), 6);
    policy
}

/// Packets that the kernel dropped at the four devices.
fn dropped_by_the_kernel(hosts: &Hosts) -> u64 {
    // proc_net_dev(5): the fourth of eight counters for received packets, and the fourth for sent
    // ones.
    let drops = |place: &Namespace| -> u64 {
        let table = place.run(|| fs::read_to_string("/proc/thread-self/net/dev")).unwrap().unwrap();
        let of_device = |line: &str| -> u64 {
            let counters: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            counters[3] + counters[11]
        };
        table.lines().filter_map(|line| Some(of_device(line.split_once(':')?.1))).sum()
    };
    [&hosts.left, &hosts.middle, &hosts.right].into_iter().map(drops).sum()
}

/// Memory of this process that is in use, in bytes: the second field of proc_pid_statm(5), in
/// pages.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// The results of a load.
struct Outcome {
    snapshot: Snapshot,
    came: u64,
    sent: u64,
}

/// The program sleeps until a packet is due.
const TUNING: Tuning = Tuning { spin: Duration::ZERO, realtime: false, awake: Duration::ZERO, spin_percent: 0 };

/// Runs a middlebox by `policy` under a load: [`settle`].
fn under_load(policy: &Policy, flows: usize, load: impl FnOnce(&mut Load<'_>)) -> Outcome {
    let hosts = Hosts::new(true);
    let world = World::build(&Config {
        namespace: Some(hosts.middle.name().to_owned()),
        lan: "west".into(),
        wan: "east".into(),
        make_bridge: None,
        up: Direction { queue: policy.up.clone(), link_layer: policy.line.up_layer },
        down: Direction { queue: Spec::fifo(1000), link_layer: policy.line.down_layer },
        path: Path::default(),
        tuning: TUNING,
        records: false,
    });
    let (world, stop) = (world.unwrap(), Stop::new().unwrap());
    let handle = world.handle();
    let (report, end) = (|| handle.report().unwrap(), || handle.stop());
    settle(&hosts, flows, load, || world.run(&stop).unwrap(), &report, &end)
}

/// Runs an emulated line under a load. It loses one packet of a thousand, and its queue is shorter
/// than a burst.
fn along_a_line(flows: usize, load: impl FnOnce(&mut Load<'_>)) -> Outcome {
    let hosts = Hosts::new(true);
    let place =
        |name: &str| emulate::Place::Interface { namespace: Some(hosts.middle.name().to_owned()), name: name.into() };
    // Every machine sends more than this rate, also one with other work.
    let line = line::Config {
        loss: Ratio::from_ppm(1_000).unwrap(),
        ..line::Config::new(
            Some(BitRate::from_mbit_per_s(100)),
            LinkLayer::from_name("pppoa-vcmux").unwrap(),
            Duration::from_ms(1),
        )
    };
    let hop = Hop { name: "line".into(), line, queue: Spec::fifo(40) };
    let config = emulate::Config::new(vec![hop.clone()], vec![hop]);
    let config = emulate::Config { client: place("west"), server: place("east"), tuning: TUNING, ..config };
    let (mut world, stop) = (emulate::World::build(&config).unwrap(), Stop::new().unwrap());
    let handle = world.handle();
    let (report, end) = (|| handle.report().unwrap(), || handle.stop());
    let carry = || {
        let emulate::Outcome { elapsed, up, down, .. } = world.run(&stop, None).unwrap();
        Snapshot { uptime: elapsed, hand_overs: 0, up, down }
    };
    settle(&hosts, flows, load, carry, &report, &end)
}

/// Applies a load to the program that `carry` runs until the `end`. Every packet is received in
/// order, was dropped for a reason, or is in a counter of the kernel.
#[expect(clippy::print_stderr, reason = "a measurement that the tests are about")]
fn settle(
    hosts: &Hosts,
    flows: usize,
    load: impl FnOnce(&mut Load<'_>),
    carry: impl FnOnce() -> Snapshot + Send,
    report: &dyn Fn() -> Snapshot,
    end: &dyn Fn(),
) -> Outcome {
    let before = dropped_by_the_kernel(hosts);
    let (snapshot, mut driver) = thread::scope(|scope| {
        let carrier = scope.spawn(carry);
        let ending = AtEnd(end);
        let mut driver = Load::new(hosts, report, flows);
        load(&mut driver);
        driver.finish();
        drop(ending);
        (carrier.join().unwrap(), driver)
    });
    driver.receive();
    let (up, unread) = (&snapshot.up, snapshot.up.port.dropped_unread);
    let by_kernel = dropped_by_the_kernel(hosts) - before;
    let unheard = driver.to.counters().unwrap().dropped_unread;
    let dropped = |reason: DropReason| up.hops[0].line.dropped[reason.index()].packets;
    let reasons = DropReason::ALL.into_iter().filter(|reason| dropped(*reason) > 0);
    let reasons: Vec<String> = reasons.map(|reason| format!("{} {}", dropped(reason), reason.name())).collect();
    let (received, left) = (up.received.packets, up.sent.packets);
    let Load { sent, came, overtaken, unknown, .. } = driver;
    eprintln!(
        "{sent} sent, {received} came in, {left} went out, {came} came; dropped: {}; by the kernel: \
         {by_kernel} at the devices, {unread} and \
         {unheard} unread; {overtaken} overtaken",
        reasons.join(", ")
    );
    assert!(up.is_balanced(), "{up:?}");
    assert_eq!((unknown, overtaken), (0, 0));
    assert_eq!((sent - received) + (left - came), by_kernel + unread + unheard, "lost and counted by nobody");
    Outcome { snapshot, came, sent }
}

/// True if every test may take minutes.
fn is_long() -> bool {
    std::env::var_os("LASTMILE_LONG").is_some()
}

/// The number of packets from the variable, or `short`, or `long`.
fn packets(short: u64, long: u64) -> u64 {
    match std::env::var("LASTMILE_LONG") {
        Ok(count) => count.parse().ok().filter(|count| *count > 1).unwrap_or(long),
        Err(_) => short,
    }
}

/// Records speed and memory a hundred times during a run.
struct Watch {
    packets: u64,
    clock: MonotonicClock,
    began: Instant,
    memory: Vec<u64>,
    rates: Vec<f64>,
}

impl Watch {
    const LOOKS: u64 = 100;

    fn new(packets: u64) -> Self {
        let clock = MonotonicClock::start();
        Self { packets, clock, began: clock.now(), memory: Vec::new(), rates: Vec::new() }
    }

    #[expect(clippy::print_stderr, reason = "who waits for long wants to see that it goes on")]
    fn at(&mut self, sent: u64) {
        let looks = self.rates.len() as u64 + 1;
        if sent < self.packets / Self::LOOKS * looks {
            return;
        }
        let now = self.clock.now();
        let rate = (self.packets / Self::LOOKS) as f64 / (now - self.began).as_secs_f64();
        self.began = now;
        self.rates.push(rate);
        self.memory.push(resident());
        if is_long() {
            let mib = resident() as f64 / MIB as f64;
            let left = self.packets.saturating_sub(sent) as f64 / rate;
            eprintln!("{looks} %: {sent} packets, {rate:.0} a second, {mib:.1} MiB; {left:.0} s to go");
        }
    }

    /// The largest growth of memory after this number of hundredths of the run.
    #[expect(clippy::print_stderr, reason = "a measurement that the tests are about")]
    fn growth_since(&self, hundredths: usize) -> u64 {
        let each = |index: usize| index % 10 == 9;
        let tenths = |index: usize, text: String| each(index).then_some(text);
        let mib = self.memory.iter().enumerate();
        let mib: Vec<_> =
            mib.filter_map(|(i, bytes)| tenths(i, format!("{:.1}", *bytes as f64 / MIB as f64))).collect();
        let rates: Vec<String> = self.rates.chunks(10).map(|ten| format!("{:.0}", harmonic_mean(ten) / 1e3)).collect();
        eprintln!("resident MiB: {}; thousand packets/s: {}", mib.join(" "), rates.join(" "));
        let base = self.memory[hundredths - 1];
        self.memory[hundredths..].iter().map(|bytes| bytes.saturating_sub(base)).max().unwrap()
    }
}

/// The mean of rates over equal numbers of packets.
fn harmonic_mean(rates: &[f64]) -> f64 {
    rates.len() as f64 / rates.iter().map(|rate| 1.0 / rate).sum::<f64>()
}

const MIB: u64 = 1 << 20;

/// Number of flows that send in turn.
const FLOWS: u32 = 60;

/// Sends `count` packets of these flows.
fn of_some_flows(load: &mut Load<'_>, count: u64, watch: &mut Watch) {
    let mut places = [0_u32; FLOWS as usize];
    while load.sent < count {
        let batch = (0..64.min(count - load.sent)).map(|index| {
            let flow = ((load.sent + index) % u64::from(FLOWS)) as u32;
            let place = &mut places[flow as usize];
            // Each pure ACK acknowledges new data.
            *place = place.wrapping_add(100);
            packet(flow, *place)
        });
        let batch = batch.collect();
        load.send(2048, batch);
        watch.at(load.sent);
    }
}

/// Checks that all packets are accounted for, and that some were dropped for each of these reasons.
fn is_accounted_for(outcome: &Outcome, count: u64, reasons: [DropReason; 2]) {
    assert_eq!(outcome.sent, count);
    assert!(outcome.came > count / 50, "hardly anything came");
    let dropped = reasons.map(|reason| outcome.snapshot.up.hops[0].line.dropped[reason.index()].packets);
    assert!(!dropped.contains(&0), "{reasons:?}: {dropped:?}");
}

#[test]
#[ignore = "needs root: real packets"]
fn what_goes_in_comes_out_in_order_or_is_counted() {
    if !can_run() {
        return;
    }
    let count = packets(300_000, 100_000_000);
    // Every machine sends more than this rate (from 40 000 packets/s on), and more ACKs than their
    // class carries (from 25 000).
    let policy = policy(BitRate::from_mbit_per_s(100), BitRate::from_mbit_per_s(100), 200);
    let mut watch = Watch::new(count);
    let outcome = under_load(&policy, FLOWS as usize, |load| of_some_flows(load, count, &mut watch));
    is_accounted_for(&outcome, count, [DropReason::Tail, DropReason::AckMerged]);
    assert!(watch.growth_since(20) < 4 * MIB);
}

#[test]
#[ignore = "needs root: real packets"]
fn what_goes_into_an_emulated_line_comes_out_in_order_or_is_counted() {
    if !can_run() {
        return;
    }
    let count = packets(100_000, 100_000_000);
    let mut watch = Watch::new(count);
    let outcome = along_a_line(FLOWS as usize, |load| of_some_flows(load, count, &mut watch));
    is_accounted_for(&outcome, count, [DropReason::Tail, DropReason::WireLoss]);
    assert!(watch.growth_since(20) < 4 * MIB);
}

/// Each packet is a flow of its own, as in a scan: after a quarter of a million of them each evicts
/// an earlier one.
#[test]
#[ignore = "needs root: real packets"]
fn ever_new_flows_take_bounded_memory_and_bounded_time() {
    if !can_run() {
        return;
    }
    let count = packets(500_000, 20_000_000);
    let policy = policy(BitRate::from_mbit_per_s(400), BitRate::from_mbit_per_s(1000), 200);
    let mut watch = Watch::new(count);
    let outcome = under_load(&policy, 0, |load| {
        while load.sent < count {
            let batch = (0..64.min(count - load.sent)).map(|index| packet((load.sent + index) as u32, 1)).collect();
            load.send(2048, batch);
            watch.at(load.sent);
        }
    });
    let up = &outcome.snapshot.up;
    assert_eq!(up.evicted, up.received.packets - (1 << 18), "all but as many as have a number");
    // Every table is then full.
    assert!(watch.growth_since(60) < 4 * MIB);
    let (first, last) = (harmonic_mean(&watch.rates[..10]), harmonic_mean(&watch.rates[90..]));
    assert!(last > first / 3.0, "{first} packets/s became {last}");
}

/// One ACK of each flow waits, then another arrives: every flow is found, and each dropped ACK is
/// replaced by another.
#[test]
#[ignore = "needs root: real packets"]
fn very_many_flows_wait_at_once() {
    if !can_run() {
        return;
    }
    let flows = if is_long() { 100_000 } else { 20_000 };
    // One ACK of each takes ten times as long to transmit as an idle machine needs to send it.
    let policy = policy(BitRate::from_mbit_per_s(4), BitRate::from_mbit_per_s(20), 2 * flows);
    let outcome = under_load(&policy, (KINDS * flows) as usize, |load| {
        for place in 1..=2 {
            for first in (0..flows).step_by(50) {
                load.send(u64::MAX, (first..first + 50).map(|flow| packet(KINDS * flow, place)).collect());
                if first % 5000 == 0 {
                    load.wait_until_read();
                }
            }
        }
        assert!(load.finish());
        let missing = load.last.iter().step_by(KINDS as usize).filter(|last| **last != 2).count();
        assert_eq!(missing, 0, "flows of which the newest ACK did not come");
    });
    let (up, hop) = (&outcome.snapshot.up, &outcome.snapshot.up.hops[0]);
    let merged = hop.line.dropped[DropReason::AckMerged.index()].packets;
    assert_eq!(up.evicted, 0);
    assert_eq!(merged + outcome.came, u64::from(2 * flows));
    let waited = hop.most_queued.packets.as_u64();
    assert!(waited > u64::from(flows) / 4 && merged > u64::from(flows) / 10, "{waited} waited, {merged} merged");
}
