//! The queue of a class: the kernel's discipline that is nearest to a queue of the policy, and its
//! substitute for kernels that lack even that.
//!
//! Limits in bytes use the bytes of the size table, so that a queue holds the policy's number of
//! large packets. Limits in cells are exact. An ACK regulator becomes CAKE's ACK filter, or is
//! omitted.

use lastmile_queueing::ack::cake::Mode;
use lastmile_queueing::ack::{collapsing, filter};
use lastmile_queueing::aqm::codel::{CeThreshold, Selector};
use lastmile_queueing::fair::{Among, FlowKeys, Per};
use lastmile_queueing::spec::Over;
use lastmile_queueing::{Limit, Overflow, Spec, ack, aqm, fair, fifo};
use lastmile_units::{BitRate, Duration, PacketCount, WireBytes};

use crate::accounting::Accounting;
use crate::cake;
use crate::command::{Command, Expected, Object, Step};
use crate::discipline::Discipline;

/// The limit of a FIFO in place of a queue that has none in packets or bytes.
const DEFAULT_LIMIT: Limit = Limit::Packets(PacketCount::new(1000));

/// The longest wait in a FIFO in place of an AQM, and the packets that it holds on the slowest line.
const SUBSTITUTE_WAIT: Duration = Duration::from_ms(100);
const SUBSTITUTE_PACKETS: u64 = 10;

/// The position of a queue.
pub(crate) struct Place<'a> {
    pub(crate) device: &'static str,
    /// The parent class.
    pub(crate) parent: &'a str,
    /// The handle of the discipline.
    pub(crate) handle: &'a str,
    /// The name of the class.
    pub(crate) name: &'a str,
    /// The highest rate of the class.
    pub(crate) rate: BitRate,
    pub(crate) accounting: &'a Accounting,
}

/// The candidates for a queue, the nearest first, and the parts that cannot be expressed.
#[derive(Debug, Default)]
struct Nearest {
    tried: Vec<Discipline>,
    /// Each with the index of the candidate that it is about; `None` for one about all of them.
    remarks: Vec<(Option<usize>, String)>,
    /// The wait in a full FIFO of the policy's class, where one is the last candidate.
    longest: Option<Duration>,
}

/// The queue of a class, and the parts of it that cannot be expressed.
pub(crate) fn step(place: &Place<'_>, queue: &Spec) -> (Step, Vec<String>) {
    let mut nearest = Nearest::default();
    nearest.find(queue, place);
    if nearest.tried.is_empty() {
        nearest.tried.push(Discipline::new("pfifo").number("limit", 1000));
    }
    let named = |remark: &String| format!("queue of {}: {remark}", place.name);
    let command = |index: usize, discipline: &Discipline| {
        let Place { device, parent, handle, name, .. } = place;
        let words = format!("tc qdisc add dev {device} parent {parent} handle {handle} {}", discipline.words);
        let object = Object::Qdisc { device, parent: (*parent).to_owned() };
        let own = nearest.remarks.iter().filter(|(of, _)| *of == Some(index)).map(|(_, remark)| named(remark));
        Command::new(&words).remarking(own.collect()).leaving(Expected {
            object,
            name: format!("queue {name}"),
            values: discipline.values.clone(),
        })
    };
    let tried = nearest.tried.iter().enumerate().rev();
    let steps = tried.fold(None, |below: Option<(Step, &Discipline)>, (index, discipline)| {
        let first = command(index, discipline);
        let step = match below {
            None => Step::run("", first),
            Some((step, substitute)) => {
                let lacking = lacking(discipline, substitute, nearest.longest);
                let then = discipline.hosts.as_deref().map(|options| by_hosts(place, options)).into_iter().collect();
                Step::Choice { about: vec![], first, then, lacking, otherwise: vec![step] }
            }
        };
        Some((step, discipline))
    });
    let remarks = nearest.remarks.iter().map(|(_, remark)| named(remark)).collect();
    (steps.map_or_else(|| Step::run("", Command::new("tc")), |(step, _)| step), remarks)
}

/// A discipline that a kernel lacks, its substitute, and what a FIFO in its place means for packets.
fn lacking(discipline: &Discipline, substitute: &Discipline, longest: Option<Duration>) -> String {
    let kind = discipline.kind();
    if !substitute.words.contains("fifo") {
        return format!("{kind}: {} in its place", substitute.kind());
    }
    let without = match kind {
        // CAKE in the place of an ACK filter alone.
        "cake" if ["ack-filter", "flowblind"].iter().all(|word| discipline.words.contains(word)) => "no ACK filter",
        "cake" | "fq_codel" | "fq_pie" => "no AQM and no flow isolation",
        "sfq" => "no flow isolation",
        _ => "no AQM",
    };
    let delays = longest
        .map_or_else(String::new, |longest| format!(", delays up to {} ms at the full rate", longest.as_ms().max(1)));
    format!("{kind}: {} in its place ({without}{delays})", substitute.words)
}

/// Divides hosts among the buckets of the queue, by tc-flow(8).
fn by_hosts(place: &Place<'_>, options: &str) -> Step {
    let Place { device, handle, .. } = place;
    let words = format!("tc filter add dev {device} parent {handle} protocol all prio 1 handle 1 flow {options}");
    let lacking = "the flow classifier: each flow has a share, not each host".to_owned();
    Step::Choice { about: vec![], first: Command::new(&words), then: vec![], lacking, otherwise: vec![] }
}

/// The owner of a queue in a scheduler of members.
const fn per<S>(among: &Among<S>) -> Per {
    match among {
        Among::Classes(_) => Per::Flow,
        Among::Flows { per, .. } => *per,
    }
}

/// The number of buckets of a hash; queues for each flow are nearest to the default of tc.
const fn buckets(flows: FlowKeys) -> u32 {
    match flows {
        FlowKeys::Buckets { count, .. } => count.get(),
        FlowKeys::Exact => 1024,
    }
}

impl Nearest {
    /// A remark on the queue, whichever candidate the kernel has.
    fn remark(&mut self, remark: impl Into<String>) {
        self.remarks.push((None, remark.into()));
    }

    /// A remark on the candidate that comes next.
    fn remark_on_next(&mut self, remark: impl Into<String>) {
        self.remarks.push((Some(self.tried.len()), remark.into()));
    }

    /// Descends to the queue that holds packets, and remarks on the omitted parts above it.
    fn find(&mut self, queue: &Spec, place: &Place<'_>) {
        match queue {
            Spec::Fifo(fifo::Config { limit, drop }) => self.fifo(*limit, *drop, place),
            Spec::Sfq(config) => self.sfq(config, place),
            Spec::FqCodel(config) => self.fq_codel(config, place),
            Spec::FqPie(config) => {
                self.pie_burst(config.control.max_burst);
                self.tried.push(fq_pie(config));
                self.without_aqm(Limit::Packets(config.limit), place);
            }
            Spec::Codel(config) => {
                let (target, interval) = self.times(config.target, config.interval, place);
                self.tried.push(codel(config, target, interval, place.accounting));
                self.without_aqm(config.limit, place);
            }
            Spec::Pie(config) => {
                self.pie_burst(config.control.max_burst);
                self.tried.push(pie(config, place.accounting));
                self.without_aqm(config.limit, place);
            }
            Spec::DocsisPie(config) => self.docsis_pie(config, place),
            Spec::DualPi2(config) => self.dualpi2(config, place),
            Spec::Red(config) => {
                self.tried.push(red(config, place.accounting));
                self.fifo(config.limit, Overflow::Tail, place);
            }
            Spec::Cake(config) => self.unshaped_cake(config, place),
            Spec::Sad(Over { queue, .. }) => self.smart_ack_dropper(queue, place),
            Spec::AckFilter(filter::Config { limit, drop, .. })
            | Spec::AckCollapsing(collapsing::Config { limit, drop, .. }) => {
                self.remark("ACKs are filtered by CAKE's rules, or without CAKE not at all");
                self.filtered(Mode::Aggressive, place);
                self.fifo(*limit, *drop, place);
            }
            Spec::CakeAckFilter(ack::cake::Config { limit, drop, rules }) => {
                self.remark("without CAKE in the kernel ACKs are not filtered");
                self.filtered(rules.mode, place);
                self.fifo(*limit, *drop, place);
            }
            Spec::AckPacing(Over { queue, .. }) => self.without("ACK pacing", queue, place),
            Spec::AckRegenerator(Over { queue, .. }) => self.without("ACK regeneration", queue, place),
            Spec::WindowClamp(Over { queue, .. }) => self.without("the window clamp", queue, place),
            Spec::Witness(Over { queue, .. }) => self.find(queue, place),
            Spec::Policer(Over { queue, .. }) => self.without("a policer within the upstream", queue, place),
            Spec::Tbf(Over { queue, .. }) | Spec::Drain(Over { queue, .. }) => {
                self.without("a shaper below a shaper", queue, place);
            }
            Spec::Rules(config) => self.without("rules below rules", &config.queue, place),
            Spec::Supplied(_) => {
                self.remark("the kernel has no discipline that a caller supplies: a FIFO replaces it");
                self.fifo(DEFAULT_LIMIT, Overflow::Tail, place);
            }
            Spec::Drr(among) => self.fair(per(among), place),
            Spec::Wfq(fair::wfq::Config(among)) | Spec::Wf2qPlus(fair::wf2q_plus::Config(among)) => {
                self.fair(per(among), place);
            }
            Spec::Priority(_) | Spec::Custom(_) | Spec::Cbq(_) | Spec::Htb(_) | Spec::Hfsc(_) => {
                self.remark("a scheduler below a class: its first queue replaces all of them");
                match queue.below().first() {
                    Some(first) => self.find(first, place),
                    None => self.fifo(DEFAULT_LIMIT, Overflow::Tail, place),
                }
            }
        }
    }

    /// The kernel cuts larger numbers without a word (`sfq_change`).
    fn sfq(&mut self, config: &fair::sfq::Config, place: &Place<'_>) {
        let flows = u64::from(buckets(config.flows).min(SFQ_FLOWS));
        let depth = config.depth.as_u64().min(SFQ_DEPTH);
        let limit = config.limit.as_u64().min(depth * flows);
        for (most, wanted, of) in [(depth, config.depth, " of a flow"), (limit, config.limit, "")] {
            let wanted = wanted.as_u64();
            if most < wanted {
                self.remark_on_next(format!("the kernel's SFQ holds at most {most} packets{of}, not {wanted}"));
            }
        }
        self.tried.push(sfq(config, limit, depth, flows));
        self.fifo(Limit::Packets(config.limit), Overflow::Tail, place);
    }

    fn fq_codel(&mut self, config: &fair::fq_codel::Config, place: &Place<'_>) {
        let (target, interval) = self.times(config.target, config.interval, place);
        self.tried.push(fq_codel(config, target, interval));
        self.without_aqm(Limit::Packets(config.limit), place);
    }

    fn unshaped_cake(&mut self, config: &lastmile_queueing::cake::Config, place: &Place<'_>) {
        self.remark_on_next("CAKE below a class: without its own shaper");
        let unshaped = lastmile_queueing::cake::Config { bandwidth: None, ..config.clone() };
        self.tried.push(cake::discipline(&unshaped, place.accounting));
        self.without_aqm(DEFAULT_LIMIT, place);
    }

    fn docsis_pie(&mut self, config: &aqm::docsis_pie::Config, place: &Place<'_>) {
        self.remark_on_next(
            "DOCSIS-PIE: the kernel's PIE with its target, period and gains; the wait is measured, drops \
             do not depend on sizes, and bursts are spared by PIE's rule",
        );
        self.tried.push(docsis_pie(config, place.accounting));
        self.without_aqm(config.limit, place);
    }

    fn dualpi2(&mut self, config: &aqm::dualpi2::Config, place: &Place<'_>) {
        let lacking = [
            (config.queue_protection, "does not protect its shallow queue from flows that build it"),
            (config.nqb, "chooses the queue by the ECN field alone, not by the code point NQB"),
            (config.predicted.is_some(), "marks by the sojourn time, not by a predicted wait"),
        ];
        for (_, words) in lacking.into_iter().filter(|(asked, _)| *asked) {
            self.remark_on_next(format!("the kernel's DualPI2 {words}"));
        }
        self.tried.push(dualpi2(config, place.accounting));
        self.without_aqm(config.limit, place);
    }

    fn smart_ack_dropper(&mut self, queue: &Spec, place: &Place<'_>) {
        self.remark(
            "the Smart ACK Dropper rewrites ACKs, which the kernel cannot; CAKE's ACK filter drops \
             old ones instead, or without CAKE every ACK is queued",
        );
        self.filtered(Mode::Aggressive, place);
        self.find(queue, place);
    }

    fn fair(&mut self, per: Per, place: &Place<'_>) {
        self.remark("flows share by sfq, with equal weights, or without sfq by a FIFO");
        self.tried.push(Discipline::new("sfq").number("limit", 127).per(per, 1024));
        self.fifo(Limit::Packets(PacketCount::new(127)), Overflow::Tail, place);
    }

    fn pie_burst(&mut self, burst: Duration) {
        if burst != PIE_BURST {
            self.remark_on_next(format!("the kernel's PIE spares bursts of {PIE_BURST}, not of {burst}"));
        }
    }

    fn without(&mut self, what: &str, queue: &Spec, place: &Place<'_>) {
        self.remark(format!("{what}: the kernel has none; left out"));
        self.find(queue, place);
    }

    /// A FIFO for kernels without this AQM. The limit of an AQM is for bursts, and would be a standing queue here.
    fn without_aqm(&mut self, limit: Limit, place: &Place<'_>) {
        let packet = place.rate.time_for(place.accounting.layer().on_wire(place.accounting.largest()));
        let fit = SUBSTITUTE_WAIT.as_ps() / packet.as_ps().max(1);
        let most = Limit::Packets(PacketCount::new(fit.max(SUBSTITUTE_PACKETS)));
        let is_longer = place.accounting.bytes(limit) > place.accounting.bytes(most);
        self.fifo(if is_longer { most } else { limit }, Overflow::Tail, place);
    }

    fn fifo(&mut self, limit: Limit, drop: Overflow, place: &Place<'_>) {
        if drop == Overflow::Head && !matches!(limit, Limit::Packets(_)) {
            self.remark("the kernel's FIFO in bytes drops arriving packets, not the oldest");
        }
        let packet = || place.accounting.layer().on_wire(place.accounting.largest()).as_u64();
        let bytes = match limit {
            Limit::Packets(count) => count.as_u64().saturating_mul(packet()),
            other => place.accounting.bytes(other),
        };
        self.longest = Some(place.rate.time_for(WireBytes::new(bytes)));
        self.tried.push(match (limit, drop) {
            (Limit::Packets(count), Overflow::Tail) => Discipline::new("pfifo").number("limit", count.as_u64()),
            (Limit::Packets(count), Overflow::Head) => {
                Discipline::new("pfifo_head_drop").number("limit", count.as_u64())
            }
            (Limit::Bytes(_) | Limit::Wire(_) | Limit::Cells(_), _) => {
                Discipline::new("bfifo").number("limit", place.accounting.bytes(limit))
            }
        });
    }

    /// CAKE without a rate, for its ACK filter.
    fn filtered(&mut self, mode: Mode, place: &Place<'_>) {
        self.remark_on_next("CAKE, as the ACK filter, also drops packets that wait for long");
        self.tried.push(cake::ack_filter(mode, place.accounting));
    }

    /// CoDel's times. Linux ignores a queue if the wait is below `target` or the backlog at most an
    /// MTU. With a size table one packet exceeds an MTU, so on a slow line the target must exceed a
    /// packet's transmission time.
    fn times(&mut self, target: Duration, interval: Duration, place: &Place<'_>) -> (Duration, Duration) {
        let packet = place.rate.time_for(place.accounting.layer().on_wire(place.accounting.largest()));
        let least = packet + packet / 2;
        if target >= least {
            return (target, interval);
        }
        self.remark_on_next(format!(
            "CoDel's target is {least}, one and a half packets of the largest size, in place of {target}: with a size \
             table such a packet exceeds the MTU below which the kernel's CoDel drops nothing"
        ));
        (least, interval + (least - target))
    }
}

/// `SFQ_MAX_DEPTH` and `SFQ_MAX_FLOWS` of `sch_sfq` of Linux.
const SFQ_DEPTH: u64 = 127;
const SFQ_FLOWS: u32 = 65_408;

/// tc prints `flows` with its details alone.
fn sfq(config: &fair::sfq::Config, limit: u64, depth: u64, flows: u64) -> Discipline {
    let mut sfq = Discipline::new("sfq")
        .number("limit", limit)
        .number("depth", depth)
        .number("quantum", config.quantum.as_u64())
        .option(&format!("flows {flows}"));
    if let FlowKeys::Buckets { count, .. } = config.flows {
        sfq = sfq.number("divisor", count.get().next_power_of_two().min(65_536).into());
    }
    let perturb = config.perturb.as_ms() / 1000;
    if perturb > 0 {
        sfq = sfq.number("perturb", perturb);
    }
    let sfq = sfq.per(config.per, buckets(config.flows).next_power_of_two().min(65_536));
    if config.drop == Overflow::Head { sfq.option("headdrop") } else { sfq }
}

fn fq_codel(config: &fair::fq_codel::Config, target: Duration, interval: Duration) -> Discipline {
    let mut fq_codel = Discipline::new("fq_codel").number("limit", config.limit.as_u64());
    if let FlowKeys::Buckets { count, .. } = config.flows {
        fq_codel = fq_codel.number("flows", count.get().into());
    }
    let fq_codel = fq_codel
        .number("quantum", config.quantum.as_u64())
        .time("target", target)
        .time("interval", interval)
        .number("memory_limit", config.memory.as_u64());
    let fq_codel = fq_codel.option(ecn(config.ecn)).per(config.per, buckets(config.flows));
    let Some(CeThreshold { delay, selector }) = config.ce_threshold else { return fq_codel };
    let fq_codel = fq_codel.time("ce_threshold", delay);
    if selector == Selector::ALL {
        return fq_codel;
    }
    fq_codel.option(&format!("ce_threshold_selector {:#04x}/{:#04x}", selector.value, selector.mask))
}

fn fq_pie(config: &fair::fq_pie::Config) -> Discipline {
    let percent = config.ecn_prob.as_parts_per_billion().div_ceil(10_000_000);
    let mut fq_pie = Discipline::new("fq_pie").number("limit", config.limit.as_u64());
    if let FlowKeys::Buckets { count, .. } = config.flows {
        fq_pie = fq_pie.number("flows", count.get().into());
    }
    let fq_pie = fq_pie
        .number("quantum", config.quantum.as_u64())
        .number("memory_limit", config.memory.as_u64())
        .number("ecn_prob", percent.into());
    controlled(fq_pie, &config.control).per(config.per, buckets(config.flows))
}

fn codel(config: &aqm::codel::Config, target: Duration, interval: Duration, accounting: &Accounting) -> Discipline {
    let limit = accounting.packets(config.limit);
    let codel = Discipline::new("codel")
        .number("limit", limit)
        .time("target", target)
        .time("interval", interval)
        .option(ecn(config.ecn));
    match config.ce_threshold {
        Some(CeThreshold { delay, .. }) => codel.time("ce_threshold", delay),
        None => codel,
    }
}

/// The fixed `max_burst` of `sch_pie` of Linux, which has no option for it.
const PIE_BURST: Duration = Duration::from_ms(150);

fn pie(config: &aqm::pie::Config, accounting: &Accounting) -> Discipline {
    controlled(Discipline::new("pie").number("limit", accounting.packets(config.limit)), &config.control)
}

/// A discipline with the control of PIE.
fn controlled(discipline: Discipline, control: &aqm::pie::Parameters) -> Discipline {
    discipline
        .time("target", control.target)
        .ticks("tupdate", control.period)
        .number("alpha", control.alpha.into())
        .number("beta", control.beta.into())
        .option(ecn(control.ecn))
}

/// The period and the gains are those of RFC 8034: 16 ms, 0.25 and 2.5 Hz. tc-pie(8) allows a `beta` of at most 32.
fn docsis_pie(config: &aqm::docsis_pie::Config, accounting: &Accounting) -> Discipline {
    let control = aqm::pie::Parameters {
        target: config.target,
        period: Duration::from_ms(16),
        alpha: 4,
        beta: aqm::pie::Parameters::LARGEST_GAIN,
        ..aqm::pie::Parameters::default()
    };
    controlled(Discipline::new("pie").number("limit", accounting.packets(config.limit)), &control)
}

fn dualpi2(config: &aqm::dualpi2::Config, accounting: &Accounting) -> Discipline {
    // tc-dualpi2(8) counts gains in hertz and shares in whole percent.
    let hertz = |gain: u32| format!("{:.6}", f64::from(gain) / 256.0);
    let percent = config.classic_protection.as_parts_per_billion().div_ceil(10_000_000);
    Discipline::new("dualpi2")
        .number("limit", accounting.packets(config.limit))
        .time("target", config.target)
        .time("tupdate", config.period)
        .option(&format!("alpha {}", hertz(config.alpha)))
        .option(&format!("beta {}", hertz(config.beta)))
        .number("coupling_factor", config.coupling.into())
        .time("step_thresh", config.step)
        .number("min_qlen_step", config.min_qlen_step.as_u64())
        .option(&format!("classic_protection {percent}%"))
}

const fn ecn(ecn: bool) -> &'static str {
    if ecn { "ecn" } else { "noecn" }
}

/// RED counts in bytes: a packet counts as one of average size.
fn red(config: &aqm::red::Config, accounting: &Accounting) -> Discipline {
    let average = accounting.counted(config.average_packet).as_u64();
    let bytes = |limit: Limit| match limit {
        Limit::Packets(count) => count.as_u64().saturating_mul(average),
        other => accounting.bytes(other),
    };
    let (min, max) = (bytes(config.min), bytes(config.max));
    let burst = match config.weight {
        aqm::red::Weight::Burst(packets) => packets.as_u64(),
        // The advice of tc-red(8).
        aqm::red::Weight::Advised | aqm::red::Weight::Share(_) => (2 * min + max) / (3 * average.max(1)),
    };
    let chance = config.probability.as_parts_per_billion();
    let mut red = Discipline::new("red")
        .number("limit", bytes(config.limit))
        .number("min", min)
        .number("max", max)
        .option(&format!("avpkt {average} burst {} bandwidth {}bit", burst.max(1), config.bandwidth.as_bps()))
        .option(&format!("probability {}.{:09}", chance / 1_000_000_000, chance % 1_000_000_000));
    if config.ecn {
        red = red.option("ecn");
    }
    if config.hard_drop { red.option("harddrop") } else { red }
}
