//! Simulated lines on which detection is tried, and a table of what came out.

use core::fmt::{Display, Formatter};

use lastmile_linklayer::{Framing, LinkLayer, PRESETS};
use lastmile_queueing::Limit;
use lastmile_units::{BitRate, ByteCount, Duration, PacketCount, Ratio, WireBytes};

use crate::simulated::{Before, Jitter, Queue, Side, Simulated};
use lastmile_measure::Error;
use lastmile_measure::detect::{self, Buffer, Detection, Discipline, Kind, Limiter, Options, Unit, Verdict, detect};
use lastmile_measure::report::Estimate;

/// A line and its name.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Its name in the table.
    pub name: String,
    /// From the server to the client.
    pub down: Side,
    /// From the client to the server.
    pub up: Side,
    /// Largest IP packet.
    pub mtu: u16,
}

/// The result for one way of a case.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The case and the way.
    pub case: String,
    /// The names, or why there is none.
    pub named: String,
    /// Probability of the first candidate.
    pub probability: f64,
    /// Whether the name is wrong.
    pub wrong: bool,
    /// Time of the whole detection in seconds.
    pub took_s: f64,
    /// Relative error of the gross rate, where it is claimed.
    pub rate_error: Option<f64>,
    /// Whether the interval of the gross rate covers the true rate, where there is one.
    pub rate_covered: Option<bool>,
    /// Relative half-width of that interval, where the rate is claimed.
    pub rate_within: Option<f64>,
    /// Whether the interval of the buffer covers the true one, where there is one.
    pub buffer_covered: Option<bool>,
    /// Relative error of the buffer, where it is claimed.
    pub buffer_error: Option<f64>,
    /// Line, shaper or policer, as found.
    pub limiter: String,
    /// Whether a shaper or policer was found that is not there, or the other way round.
    pub limiter_wrong: bool,
    /// The kind of the queue, as found.
    pub queue: String,
    /// Whether it is sure, and wrong.
    pub queue_wrong: bool,
}

const MBIT: u64 = 1_000_000;

fn side(bps: u64, preset: &str, buffer: u64) -> Side {
    Side {
        rate: BitRate::from_bps(bps).expect("a rate above zero"),
        link: LinkLayer::from_name(preset).expect("a preset"),
        delay: Duration::from_ms(10),
        buffer: Limit::Bytes(ByteCount::new(buffer)),
        queue: Queue::Fifo,
        before: Before::Nothing,
        jitter: Jitter::EachPacket(Duration::from_ms(5)),
        loss: Ratio::ZERO,
        cross: None,
        stalls: None,
    }
}

fn case(preset: &str, rates: (u64, u64), buffers: (u64, u64)) -> Case {
    let (down, up) = (side(rates.0, preset, buffers.0), side(rates.1, preset, buffers.1));
    let name = format!("{preset} {}/{} {}/{} kB", short(rates.0), short(rates.1), buffers.0 / 1000, buffers.1 / 1000);
    let mtu = down.link.mtu().map_or(1500, core::num::NonZeroU16::get);
    Case { name, down, up, mtu }
}

fn short(bps: u64) -> String {
    if bps.is_multiple_of(MBIT) { format!("{}M", bps / MBIT) } else { format!("{}k", bps / 1_000) }
}

const BUFFERS: [(u64, u64); 3] = [(32_000, 206_000), (64_000, 64_000), (206_000, 32_000)];

/// Every ATM preset at four pairs of rates, each with other buffers.
pub(crate) fn adsl() -> Vec<Case> {
    let rates = [(512_000, 512_000), (2 * MBIT, 512_000), (8 * MBIT, 768_000), (16 * MBIT, MBIT)];
    let atm = PRESETS.iter().filter(|preset| preset.link.framing() == Framing::Atm);
    let of = |(number, preset): (usize, &lastmile_linklayer::Preset)| {
        rates
            .iter()
            .enumerate()
            .map(move |(i, &rates)| case(preset.name, rates, BUFFERS[(number + i) % 3]))
            .collect::<Vec<_>>()
    };
    atm.enumerate().flat_map(of).collect()
}

/// Lines without cells, to 300 Mbit/s, each with three pairs of buffers.
pub(crate) fn fast() -> Vec<Case> {
    let lines = [
        ("bridged-ptm", [(50 * MBIT, 10 * MBIT), (100 * MBIT, 40 * MBIT), (300 * MBIT, 50 * MBIT)]),
        ("pppoe-ptm", [(50 * MBIT, 10 * MBIT), (100 * MBIT, 40 * MBIT), (300 * MBIT, 50 * MBIT)]),
        ("docsis", [(20 * MBIT, 2 * MBIT), (100 * MBIT, 10 * MBIT), (300 * MBIT, 25 * MBIT)]),
        ("ethernet", [(10 * MBIT, 10 * MBIT), (100 * MBIT, 100 * MBIT), (300 * MBIT, 300 * MBIT)]),
        ("ether-vlan", [(10 * MBIT, 10 * MBIT), (100 * MBIT, 100 * MBIT), (300 * MBIT, 300 * MBIT)]),
        ("ip", [(MBIT, MBIT), (30 * MBIT, 5 * MBIT), (300 * MBIT, 100 * MBIT)]),
    ];
    let of = |(preset, rates): &(&str, [(u64, u64); 3])| {
        let preset = preset.to_string();
        let each = |(rates, buffers): (&(u64, u64), (u64, u64))| case(&preset, *rates, buffers);
        rates.iter().flat_map(|rates| BUFFERS.map(|buffers| (rates, buffers))).map(each).collect::<Vec<_>>()
    };
    lines.iter().flat_map(of).collect()
}

/// Lines behind shapers and policers, with loss, cross traffic, drifting delay, and buffers that count packets.
pub(crate) fn hard() -> Vec<Case> {
    let frame = LinkLayer::from_name("docsis").expect("a preset");
    let ip = LinkLayer::from_name("ip").expect("a preset");
    let mbit = BitRate::from_mbit_per_s;
    let mut cases = Vec::new();
    let mut add = |name: &str, case: Case, change: &dyn Fn(&mut Side)| {
        let mut case = Case { name: format!("{name}: {}", case.name), ..case };
        change(&mut case.down);
        change(&mut case.up);
        cases.push(case);
    };
    let vdsl = || case("bridged-ptm", (100 * MBIT, 40 * MBIT), (206_000, 64_000));
    let adsl = || case("pppoe-llcsnap", (8 * MBIT, 768_000), (64_000, 32_000));
    add("shaper 20M, 64 kB", vdsl(), &|side| side.before = Before::Shaper(mbit(20), WireBytes::new(64_000), frame));
    add("shaper 30M, 20 kB", vdsl(), &|side| side.before = Before::Shaper(mbit(30), WireBytes::new(20_000), frame));
    add("boost 5 MB over 20M", vdsl(), &|side| {
        side.before = Before::Shaper(mbit(20), WireBytes::new(5_000_000), frame);
    });
    add("policer 20M, 100 kB", vdsl(), &|side| side.before = Before::Policer(mbit(20), WireBytes::new(100_000), ip));
    add("policer 5M, 30 kB", vdsl(), &|side| side.before = Before::Policer(mbit(5), WireBytes::new(30_000), frame));
    for (name, line) in [("vdsl", vdsl()), ("adsl", adsl())] {
        add(&format!("loss 0.5 %, {name}"), line.clone(), &|side| {
            side.loss = Ratio::from_ppm(5_000).unwrap_or_default();
        });
        add(&format!("cross traffic 10 %, {name}"), line.clone(), &|side| {
            side.cross = BitRate::from_bps(side.rate.as_bps() / 10);
        });
        add(&format!("delay drifts 5 ms, {name}"), line.clone(), &|side| {
            side.jitter = Jitter::Spans(Duration::from_ms(5), Duration::from_ms(50));
        });
        add(&format!("100 packets, {name}"), line, &|side| side.buffer = Limit::Packets(PacketCount::new(100)));
    }
    add("framing of no preset", adsl(), &|side| {
        side.link = LinkLayer::new(19, Framing::Atm).expect("an overhead in range");
    });
    cases
}

/// Lines whose queues do more than drop what does not fit.
pub(crate) fn queues() -> Vec<Case> {
    let lines = || {
        [
            case("pppoe-llcsnap", (8 * MBIT, 768_000), (64_000, 32_000)),
            case("docsis", (20 * MBIT, 3 * MBIT), (206_000, 64_000)),
            case("bridged-ptm", (100 * MBIT, 40 * MBIT), (206_000, 64_000)),
            case("docsis", (300 * MBIT, 50 * MBIT), (206_000, 64_000)),
        ]
    };
    let queues = [("codel", Queue::Codel), ("pie", Queue::Pie), ("fq-codel", Queue::FqCodel), ("sfq", Queue::Sfq)];
    let of = |(name, queue)| {
        lines().map(|mut case: Case| {
            for side in [&mut case.down, &mut case.up] {
                (side.queue, side.buffer) = (queue, Limit::Packets(PacketCount::new(1_000)));
                if queue == Queue::Sfq {
                    side.buffer = Limit::Packets(PacketCount::new(127));
                }
            }
            let line = case.name.rsplit_once(' ').map_or("", |(line, _)| line);
            Case { name: format!("{name}: {line}"), ..case }
        })
    };
    queues.into_iter().flat_map(of).collect()
}

/// All cases.
pub(crate) fn all() -> Vec<Case> {
    [adsl(), fast(), hard(), queues()].concat()
}

impl Case {
    /// Detects the line and compares with the truth.
    ///
    /// # Errors
    /// As [`detect`].
    pub(crate) fn run(&self, seed: u64) -> Result<[Row; 2], Error> {
        let mut path = Simulated::new(self.down, self.up, ByteCount::new(u64::from(self.mtu)), true, seed)?;
        let options = Options::default();
        let detection = detect(&mut path, &options, &mut |_| {})?;
        let ended = || Error::Unsupported(detection.warnings.join("; "));
        let (down, up) = (detection.down.as_ref().ok_or_else(ended)?, detection.up.as_ref().ok_or_else(ended)?);
        Ok([self.row("down", &self.down, down, &detection), self.row("up", &self.up, up, &detection)])
    }

    fn row(&self, way: &str, truth: &Side, found: &detect::Side, detection: &Detection) -> Row {
        let candidate = found.encapsulation.candidates.first();
        let names = candidate.map_or(String::new(), |candidate| match candidate.presets.as_slice() {
            [] => format!("{} bytes, {}", candidate.overhead_bytes, candidate.framing),
            presets => presets.join("="),
        });
        let named = match found.encapsulation.verdict {
            Verdict::Sure => names,
            Verdict::NotSure => format!("not sure: {names}"),
            Verdict::Shaper => format!("shaper hides it, counts {names}"),
            Verdict::Policer => "policer hides it".to_owned(),
            Verdict::Misfit => "not sure: nothing fits".to_owned(),
            Verdict::Unloaded => "not sure: too fast".to_owned(),
        };
        let is = |link: LinkLayer| {
            candidate.is_some_and(|candidate| {
                let of_preset = candidate
                    .presets
                    .iter()
                    .any(|name| LinkLayer::from_name(name).is_some_and(|known| same(known, link)));
                let explicit = candidate.presets.is_empty() && candidate.overhead_bytes == link.overhead();
                of_preset || explicit
            })
        };
        let (rate, hidden) = match truth.before {
            Before::Nothing => (truth.rate, false),
            Before::Shaper(rate, ..) | Before::Policer(rate, ..) => (rate, true),
        };
        let sure = found.encapsulation.verdict == Verdict::Sure;
        let counted = match truth.before {
            Before::Nothing => truth.link,
            Before::Shaper(_, _, link) | Before::Policer(_, _, link) => link,
        };
        let claimed = matches!(found.encapsulation.verdict, Verdict::Sure | Verdict::Shaper);
        let true_bps = rate.as_bps() as f64;
        let limiter_right = matches!(
            (truth.before, found.limiter),
            (_, Limiter::Unknown)
                | (Before::Nothing, Limiter::Line)
                | (Before::Shaper(..), Limiter::Shaper { .. })
                | (Before::Policer(..), Limiter::Policer { .. })
        );
        Row {
            case: format!("{} {way}", self.name),
            named,
            probability: candidate.map_or(0.0, |candidate| candidate.probability),
            wrong: sure && (hidden || !is(counted)),
            took_s: detection.took_s,
            rate_error: found.gross_bps.filter(|_| claimed && is(counted)).map(|rate| rate.value / true_bps - 1.0),
            rate_covered: found.gross_bps.filter(|_| !hidden).map(|rate| rate.low <= true_bps && true_bps <= rate.high),
            rate_within: found
                .gross_bps
                .filter(|_| claimed && is(counted))
                .map(|rate| (rate.high - rate.low) / 2.0 / true_bps),
            buffer_covered: found.buffer.and_then(|buffer| buffer_covered(&buffer, truth.buffer)),
            buffer_error: found.buffer.and_then(|buffer| buffer_error(&buffer, truth.buffer)),
            limiter: limiter(&found.limiter),
            limiter_wrong: !limiter_right,
            queue: queue(found),
            queue_wrong: found.discipline.as_ref().is_some_and(|found| !found.kinds.contains(&kind(truth.queue))),
        }
    }
}

fn same(a: LinkLayer, b: LinkLayer) -> bool {
    a.overhead() == b.overhead() && a.framing() == b.framing()
}

fn buffer_error(found: &Buffer, truth: Limit) -> Option<f64> {
    match (truth, found.unit) {
        (Limit::Bytes(bytes), Unit::Bytes | Unit::Unknown | Unit::WireBytes) => {
            Some(found.bytes.value / bytes.as_u64() as f64 - 1.0)
        }
        (Limit::Packets(packets), Unit::Packets | Unit::Unknown) => {
            Some(found.packets.value / packets.as_u64() as f64 - 1.0)
        }
        // The wrong unit is an error of the whole.
        (Limit::Bytes(_), Unit::Packets) | (Limit::Packets(_), Unit::Bytes | Unit::WireBytes) => Some(1.0),
        (Limit::Cells(_) | Limit::Wire(_), _) => None,
    }
}

fn buffer_covered(found: &Buffer, truth: Limit) -> Option<bool> {
    let within = |estimate: Estimate, truth: u64| estimate.low <= truth as f64 && truth as f64 <= estimate.high;
    match truth {
        Limit::Bytes(bytes) => Some(within(found.bytes, bytes.as_u64())),
        Limit::Packets(packets) => Some(within(found.packets, packets.as_u64())),
        Limit::Cells(_) | Limit::Wire(_) => None,
    }
}

fn limiter(limiter: &Limiter) -> String {
    match limiter {
        Limiter::Line => "line".to_owned(),
        Limiter::Unknown => "unknown".to_owned(),
        Limiter::Shaper { bucket_bytes, .. } => format!("shaper {:.0} kB", bucket_bytes.value / 1e3),
        Limiter::Policer { bucket_bytes } => format!("policer {:.0} kB", bucket_bytes.value / 1e3),
    }
}

fn kind(queue: Queue) -> Kind {
    match queue {
        Queue::Fifo => Kind::Fifo,
        Queue::Codel => Kind::Codel,
        Queue::Pie => Kind::Pie,
        Queue::FqCodel => Kind::FqCodel,
        Queue::Sfq => Kind::Sfq,
    }
}

/// The kind of the queue, or those that are left.
fn queue(found: &detect::Side) -> String {
    let names = |found: &Discipline| found.kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(" or ");
    match &found.discipline {
        None => "-".to_owned(),
        Some(found) if found.sure().is_some() => names(found),
        Some(found) => format!("not sure: {}", names(found)),
    }
}

/// The heading of a Markdown table of [`Row`]s.
pub(crate) const HEADING: &str = "\
| case | named | sure | time | rate's error | its 95 % interval | buffer's error | limited by | queue |
| --- | --- | ---: | ---: | ---: | ---: | ---: | --- | --- |
";

impl Display for Row {
    fn fmt(&self, f: &mut Formatter<'_>) -> core::fmt::Result {
        let percent = |error: Option<f64>| error.map_or("-".to_owned(), |error| format!("{:+.2} %", error * 100.0));
        let wrong = |is: bool| if is { "WRONG " } else { "" };
        write!(
            f,
            "| {} | {}{} | {:.2} % | {:.0} s | {} | {} | {} | {}{} | {}{} |",
            self.case,
            wrong(self.wrong),
            self.named,
            self.probability * 100.0,
            self.took_s,
            percent(self.rate_error),
            self.rate_within.map_or("-".to_owned(), |within| format!("\u{b1}{:.2} %", within * 100.0)),
            percent(self.buffer_error),
            wrong(self.limiter_wrong),
            self.limiter,
            wrong(self.queue_wrong),
            self.queue
        )
    }
}
