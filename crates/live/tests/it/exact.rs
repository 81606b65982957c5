//! Rates under overload, size by size and preset by preset: the closed form is the rate of the line
//! over the bytes that a packet takes on it.
//!
//! A few sizes of a few presets, or every seventh size and both sides of each corner on all of them
//! where `LASTMILE_LONG` is set (`make exactness`); `LASTMILE_PRESETS` names presets, with commas
//! between them.

use std::ops::Range;
use std::thread;
use std::time::Duration as StdDuration;

use lastmile_linklayer::preset::{self, PRESETS, Preset};
use lastmile_linklayer::{Framing, LinkLayer};
use lastmile_live::clock::{Clock as _, MonotonicClock};
use lastmile_live::emulate;
use lastmile_live::io::PacketSocket;
use lastmile_live::shape::{self, Direction, Tuning};
use lastmile_model::Hop;
use lastmile_queueing::meter::tbf;
use lastmile_queueing::spec::{Over, Spec};
use lastmile_queueing::{Limit, Overflow, fifo, line};
use lastmile_units::{BitRate, ByteCount, Duration};

use crate::bridge::across;
use crate::frames::{datagram, everything, read_datagram, send};
use crate::hosts::Hosts;
use crate::shape::{config, shaping_by, unshaped};
use crate::world::{TOLERANCE, deviation, deviation_over, is_long, needs_live};

const RATE: BitRate = BitRate::from_mbit_per_s(5);
const SMALLEST: u64 = 40;
const LARGEST: u64 = 1500;

/// The time for which a size is measured, in s.
const SPANS: [f64; 5] = [0.2, 0.4, 0.8, 1.6, 3.2];

/// Asleep until a packet is due: later than a program that stays awake, and just as exact; and then before all else.
const TUNING: Tuning = Tuning { spin: Duration::ZERO, spin_percent: 100, awake: Duration::ZERO, realtime: true };

/// Bytes on the wire, worked out from the headers that the preset lists.
fn wire_bytes(preset: &Preset, ip_len: u64) -> u64 {
    let headers: u64 = preset.headers.iter().map(|header| u64::from(header.bytes)).sum();
    let frame = (ip_len + headers).max(preset.link.min_frame().into());
    match preset.link.framing() {
        Framing::None => frame,
        // 48 bytes of payload a cell, 53 on the wire.
        Framing::Atm => frame.div_ceil(48) * 53,
        // A sync byte for each 64.
        Framing::Ptm => frame + frame.div_ceil(64),
    }
}

/// Every seventh size, the largest, and both sides of each corner: where one byte more costs more
/// than the byte before it did.
fn all_sizes(preset: &Preset) -> Vec<u64> {
    let step = |size| wire_bytes(preset, size + 1) - wire_bytes(preset, size);
    let corners = (SMALLEST + 1..LARGEST).filter(|&size| step(size) > step(size - 1)).flat_map(|size| [size, size + 1]);
    let mut sizes: Vec<u64> = (SMALLEST..LARGEST).step_by(7).chain([LARGEST]).chain(corners).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The ends, the first and one of the last corners, and one in between.
fn some_sizes(preset: &Preset) -> Vec<u64> {
    let step = |size| wire_bytes(preset, size + 1) - wire_bytes(preset, size);
    let corner = |from: Range<u64>| from.into_iter().find(|&size| step(size) > step(size - 1));
    let corners = [corner(SMALLEST + 1..LARGEST), corner(1400..LARGEST)].into_iter().flatten();
    let corners = corners.flat_map(|size| [size, size + 1]);
    let mut sizes: Vec<u64> = corners.chain([SMALLEST, 576, LARGEST]).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[test]
fn sizes_are_those_of_the_claim() {
    // 209 + 1 sizes, and 31 corners of which some are among them.
    let sizes = all_sizes(&preset::BRIDGED_VCMUX_FCS);
    assert!([40, 47, 68, 69, 116, 117, 1460, 1461, 1496, 1500].iter().all(|size| sizes.contains(size)), "{sizes:?}");
    assert_eq!(some_sizes(&preset::BRIDGED_VCMUX_FCS), [40, 68, 69, 576, 1412, 1413, 1500]);
    // Padded up to 46 bytes, and never a corner again.
    assert_eq!(some_sizes(&preset::ETHERNET), [40, 46, 47, 576, 1500]);
    for preset in PRESETS {
        for size in all_sizes(preset) {
            let shown = preset.link.on_wire(ByteCount::new(size)).as_u64();
            assert_eq!(wire_bytes(preset, size), shown, "{} {size}", preset.name);
        }
    }
}

/// Datagrams from one side to the other, between hosts that know nothing of them.
struct Stream {
    from: PacketSocket,
    to: PacketSocket,
    clock: MonotonicClock,
}

impl Stream {
    fn new(hosts: &Hosts) -> Self {
        let open = |host| PacketSocket::open(Some(host), "eth").unwrap();
        Self { from: open(&hosts.left), to: open(&hosts.right), clock: MonotonicClock::start() }
    }

    /// When `count` datagrams came, by the kernel's clock, in ns; all of them and in order. They
    /// leave one every `interval_ns`, and all are sent at once, so that the queue never runs empty,
    /// whatever keeps the sender from its work. `None` if one is missing.
    fn arrivals(&mut self, ip_len: u64, interval_ns: f64, count: usize) -> Option<Vec<f64>> {
        let Self { from, to, clock } = self;
        let (start, mut sent, mut came) = (clock.now(), 0, Vec::with_capacity(count));
        let patience = 2.0 * interval_ns * count as f64 + 5e9;
        while came.len() < count && ((clock.now() - start).as_ns() as f64) < patience {
            // No faster than the kernel hands them over.
            let next = count.min(sent + 32);
            send(from, (sent..next).map(|number| datagram(number as u32, 0, ip_len as u16)).collect());
            sent = next;
            let mut in_order = true;
            everything(to, clock, &mut |at, bytes| {
                if let Some((_, len, number)) = read_datagram(bytes) {
                    in_order &= u64::from(len) == ip_len && number as usize == came.len();
                    came.push((at - start).as_ns() as f64);
                }
            });
            if !in_order {
                break;
            }
            thread::sleep(StdDuration::from_micros(if sent < count { 50 } else { 500 }));
        }
        if came.len() == count {
            return Some(came);
        }
        // Packets still in flight belong to no size.
        thread::sleep(StdDuration::from_secs_f64(interval_ns * count as f64 * 1e-9));
        everything(to, clock, &mut |_, _| ());
        None
    }

    /// The relative error of the rate of this size, and how often it was looked at.
    fn deviation(&mut self, wire_bytes: u64, ip_len: u64) -> (f64, usize) {
        let interval_ns = wire_bytes as f64 * 8e9 / RATE.as_bps() as f64;
        deviation_over(SPANS, |span| {
            let count = (span * 1e9 / interval_ns) as usize;
            self.arrivals(ip_len, interval_ns, count).map_or(f64::INFINITY, |at| deviation(&at, interval_ns))
        })
    }
}

/// Every size on one preset: those that are off too far, and a line about the others.
#[expect(clippy::print_stderr, reason = "a measurement that the test is about")]
fn measure(preset: &Preset, hosts: &Hosts) -> Vec<String> {
    let sizes = if is_long() { all_sizes(preset) } else { some_sizes(preset) };
    let mut stream = Stream::new(hosts);
    let (mut worst, mut again, mut wrong) = (0.0_f64, 0, Vec::new());
    for &size in &sizes {
        let (deviation, looks) = stream.deviation(wire_bytes(preset, size), size);
        worst = worst.max(deviation.abs());
        again += usize::from(looks > 1);
        if deviation.abs() >= TOLERANCE {
            wrong.push(format!("{} {size} bytes: {deviation:+.1e}", preset.name));
        }
    }
    eprintln!("{:<20} {} sizes, worst {worst:.1e}, {again} looked at again", preset.name, sizes.len());
    wrong
}

/// Those that are named in `LASTMILE_PRESETS`, or all of them, or some.
fn presets() -> impl Iterator<Item = &'static Preset> {
    let some = [preset::IPOA_VCMUX, preset::BRIDGED_LLCSNAP_FCS, preset::PPPOE_PTM, preset::DOCSIS].map(|it| it.name);
    let named = std::env::var("LASTMILE_PRESETS").ok().or_else(|| (!is_long()).then(|| some.join(",")));
    let is_meant = move |preset: &&Preset| named.iter().all(|names| names.split(',').any(|name| name == preset.name));
    PRESETS.iter().filter(is_meant)
}

fn queue() -> Spec {
    Spec::Fifo(fifo::Config { limit: Limit::Bytes(ByteCount::new(20_000_000)), drop: Overflow::Tail })
}

/// A bucket of one packet in front of a line that takes what comes.
fn shaped(link_layer: LinkLayer) -> Direction {
    let largest = ByteCount::new(LARGEST);
    let burst = link_layer.on_wire(largest);
    let (queue, catch_up) = (Box::new(queue()), Duration::ZERO);
    Direction {
        queue: Spec::Tbf(Over { config: tbf::Config { rate: RATE, burst, peak: None, largest, catch_up }, queue }),
        link_layer,
    }
}

fn emulated(link_layer: LinkLayer) -> emulate::Config {
    let config = line::Config::new(Some(RATE), link_layer, Duration::from_ms(1));
    let hop = Hop { name: "line".into(), line: config, queue: queue() };
    emulate::Config { tuning: TUNING, ..emulate::Config::new(vec![hop.clone()], vec![hop]) }
}

#[test]
#[ignore = "needs root: real packets"]
fn the_middlebox_lets_packets_go_at_the_rate_that_their_size_has_on_each_preset() {
    needs_live!();
    let hosts = Hosts::new(true);
    let wrong = presets().flat_map(|preset| {
        let config = shape::Config { tuning: TUNING, ..config(&hosts, shaped(preset.link), unshaped()) };
        shaping_by(&config, |_| measure(preset, &hosts)).1
    });
    assert_eq!(wrong.collect::<Vec<_>>(), [""; 0]);
}

#[test]
#[ignore = "needs root: real packets"]
fn the_emulated_line_takes_packets_at_the_rate_that_their_size_has_on_each_preset() {
    needs_live!();
    let hosts = Hosts::new(true);
    let wrong = presets().flat_map(|preset| across(&hosts, emulated(preset.link), || measure(preset, &hosts)).1);
    assert_eq!(wrong.collect::<Vec<_>>(), [""; 0]);
}
