//! Classes of a policy as classes of the kernel's HTB (tc-htb(8)), and the rules that lead to them.
//!
//! | scheduler | becomes |
//! | --- | --- |
//! | `htb` | HTB: rate, ceil, priority |
//! | `hfsc` | HFSC below one class of the whole line, or else HTB by the rates of the curves |
//! | `cbq` | HTB, with one class of the whole rate above classes that may borrow. No CBQ from Linux 6.3 on |
//! | `custom` | HTB: the guaranteed share of a queue is its rate, and quanta divide the rest in proportion |
//! | `priority` | `prio` below one class, or else HTB with a minimal rate and a priority each |
//! | one queue | HTB with one class, so that packets queue here and not in the modem |
//!
//! Bursts are at least three packets of the largest size, because a kernel that wakes up late loses
//! rate above the burst. Quanta are at least one such packet, and all are scaled by one factor: HTB
//! sends a whole packet per turn, and smaller quanta would not divide the rate.

use lastmile_queueing::meter::tbf;
use lastmile_queueing::sched::{cbq, custom, hfsc, htb, priority, tree};
use lastmile_queueing::spec::{ClassSpec, Over};
use lastmile_queueing::{Match, Spec};
use lastmile_units::{BitRate, WireBytes};

use crate::accounting::Accounting;
use crate::order;

/// The fewest packets of the largest size in a burst.
const BURST_PACKETS: u64 = 3;
/// The guaranteed rate of a class with a priority only, because HTB needs a rate above zero.
const NEXT_TO_NOTHING: u64 = 8_000;
/// The number of the whole line's class, and of the first class below it.
const LINE: u32 = 1;
const FIRST: u32 = 0x10;

/// A class of the kernel's HTB.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Class<'a> {
    /// The number; the handle is `MAJOR:minor`.
    pub(crate) minor: u32,
    pub(crate) parent: Option<u32>,
    pub(crate) name: String,
    /// The guaranteed rate, on the wire.
    pub(crate) rate: BitRate,
    /// The highest rate, on the wire.
    pub(crate) ceil: BitRate,
    /// Burst at `rate`, in bytes.
    pub(crate) burst: u64,
    /// Burst at `ceil`, in bytes.
    pub(crate) cburst: u64,
    pub(crate) priority: u8,
    /// Bytes per turn.
    pub(crate) quantum: u64,
    /// The queue of its packets; `None` for a class with child classes.
    pub(crate) queue: Option<&'a Spec>,
    /// The service curves of the class, where the scheduler is HFSC.
    pub(crate) curves: hfsc::Share,
}

/// The scheduler of the kernel that is nearest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scheduler {
    Htb,
    /// `prio` below one class of HTB.
    Prio,
    Hfsc,
}

/// A rule of the kernel; the first matching one decides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rule<'a> {
    pub(crate) matches: &'a Match,
    /// The number of the class. `None`: unshaped, as [`Tree::otherwise`].
    pub(crate) class: Option<u32>,
}

/// A shaper: its classes, and the rules that assign packets to them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tree<'a> {
    pub(crate) classes: Vec<Class<'a>>,
    pub(crate) rules: Vec<Rule<'a>>,
    /// The number of the class for packets that no rule matches. `None`: HTB sends them ahead of all classes, unshaped.
    pub(crate) otherwise: Option<u32>,
    pub(crate) scheduler: Scheduler,
    pub(crate) remarks: Vec<String>,
}

impl<'a> Tree<'a> {
    /// The tree of a queue on a line of `rate`. Classes take their names from `names` unless the
    /// queue names them.
    pub(crate) fn new(queue: &'a Spec, rate: BitRate, names: &[String], accounting: &Accounting) -> Self {
        let mut plan = Plan { accounting, rate, names, classes: Vec::new(), takes: Vec::new(), remarks: Vec::new() };
        let queue = plan.below_shaper(queue);
        let (listed, below) = match queue {
            Spec::Rules(config) => (Some(config), plan.below_shaper(config.queue.as_ref())),
            other => (None, other),
        };
        let default = plan.scheduler(below);
        let Plan { classes, takes, remarks, .. } = plan;
        let number = |class: u16| {
            let of = |(matches, minor): &(&Match, u32)| (**matches == Match::Class(class)).then_some(*minor);
            takes.iter().find_map(of).or(default)
        };
        let (rules, otherwise) = match listed {
            Some(config) => {
                let order = order::first_match(&config.rules).into_iter();
                let rule = |place: usize| {
                    let rule = &config.rules[place];
                    Rule { matches: &rule.matches, class: number(rule.class) }
                };
                (order.map(rule).collect(), number(config.otherwise))
            }
            None => {
                let rules = takes.iter().map(|(matches, minor)| Rule { matches, class: Some(*minor) });
                (rules.collect(), default)
            }
        };
        let scheduler = match below {
            Spec::Priority(_) => Scheduler::Prio,
            Spec::Hfsc(_) => Scheduler::Hfsc,
            _ => Scheduler::Htb,
        };
        Self { classes, rules, otherwise, scheduler, remarks }
    }

    /// The class of this number.
    pub(crate) fn class(&self, minor: u32) -> Option<&Class<'a>> {
        self.classes.iter().find(|class| class.minor == minor)
    }

    /// The highest rate of unmatched packets. Nothing lends to a class of HTB without a parent: its rate is the limit.
    pub(crate) fn otherwise_rate(&self) -> Option<BitRate> {
        let mut class = self.class(self.otherwise?)?;
        let mut rate = class.ceil;
        while let Some(above) = class.parent.and_then(|parent| self.class(parent)) {
            rate = rate.min(above.ceil);
            class = above;
        }
        Some(rate.min(class.rate))
    }
}

/// A tree under construction.
struct Plan<'a, 'b> {
    accounting: &'b Accounting,
    rate: BitRate,
    names: &'b [String],
    classes: Vec<Class<'a>>,
    /// The conditions of the classes, in the order of evaluation.
    takes: Vec<(&'a Match, u32)>,
    remarks: Vec<String>,
}

impl<'a> Plan<'a, '_> {
    /// Rules and schedulers below a token bucket, as in a policy with a share of the line: its rate becomes that of the
    /// line's class, since the kernel's classes shape. Other queues stay as they are.
    fn below_shaper(&mut self, queue: &'a Spec) -> &'a Spec {
        let Spec::Tbf(Over { config, queue: below }) = queue else { return queue };
        let classed = matches!(
            **below,
            Spec::Rules(_) | Spec::Htb(_) | Spec::Hfsc(_) | Spec::Cbq(_) | Spec::Custom(_) | Spec::Priority(_)
        );
        if !classed {
            return queue;
        }
        self.without_peak(config);
        self.rate = config.rate.min(self.rate);
        below
    }

    fn without_peak(&mut self, config: &tbf::Config) {
        if config.peak.is_some() {
            self.remarks.push("the peak rate of a token bucket: HTB has none; left out".to_owned());
        }
    }

    /// Adds the classes of a scheduler; returns the number of its default class, if it has one.
    fn scheduler(&mut self, queue: &'a Spec) -> Option<u32> {
        match queue {
            Spec::Htb(config) => self.htb(config),
            Spec::Hfsc(config) => Some(self.hfsc(config)),
            Spec::Cbq(config) => Some(self.cbq(config)),
            Spec::Custom(config) => Some(self.custom(config)),
            Spec::Priority(priority::Config { classes }) => Some(self.priority(classes)),
            Spec::Tbf(Over { config, queue }) => {
                self.without_peak(config);
                self.line(config.rate, Some(config.burst.as_u64()), Some(queue));
                Some(LINE)
            }
            other => {
                self.line(self.rate, None, Some(other));
                Some(LINE)
            }
        }
    }

    fn bytes(&self, burst: Option<u64>) -> u64 {
        burst.unwrap_or(0).max(BURST_PACKETS * self.accounting.largest_counted().as_u64())
    }

    /// Adds the class of the whole line.
    fn line(&mut self, rate: BitRate, burst: Option<u64>, queue: Option<&'a Spec>) {
        let (burst, quantum) = (self.bytes(burst), self.accounting.largest_counted().as_u64());
        let name = "line".to_owned();
        let line = Class {
            minor: LINE,
            parent: None,
            name,
            rate,
            ceil: rate,
            burst,
            cburst: burst,
            priority: 0,
            quantum,
            queue,
            curves: hfsc::Share::default(),
        };
        self.classes.push(line);
    }

    fn htb(&mut self, config: &'a htb::Config) -> Option<u32> {
        let minors = minors(config.tree.classes.iter().map(|class| class.parent.is_none()));
        let minor = |name: &str| {
            let place = config.tree.classes.iter().position(|class| class.name == name);
            place.and_then(|place| minors.get(place).copied())
        };
        for (class, number) in config.tree.classes.iter().zip(&minors) {
            let share = &class.share;
            self.classes.push(Class {
                minor: *number,
                parent: class.parent.as_deref().and_then(minor),
                name: class.name.clone(),
                rate: share.rate,
                ceil: share.ceil.unwrap_or(share.rate),
                burst: self.bytes(share.burst.map(WireBytes::as_u64)),
                cburst: self.bytes(share.cburst.map(WireBytes::as_u64)),
                priority: share.priority,
                quantum: share.quantum.map_or_else(|| htb::quantum(share.rate, config.r2q), WireBytes::as_u64),
                queue: class.queue.as_ref(),
                curves: hfsc::Share::default(),
            });
        }
        self.scale_quanta();
        self.takes = config.tree.rules.iter().filter_map(|rule| Some((&rule.matches, minor(&rule.class)?))).collect();
        config.tree.default.as_deref().and_then(minor)
    }

    /// Classes below one of the whole line. For HTB a class has the long-run rate of its guarantees, the long-run rate
    /// of its limit, and quanta by the shares.
    fn hfsc(&mut self, config: &'a hfsc::Config) -> u32 {
        self.line(self.rate, None, None);
        let whole = Some(hfsc::ServiceCurve::linear(self.rate));
        self.classes[0].curves = hfsc::Share { real_time: None, link_share: whole, upper_limit: whole };
        let classes = &config.tree.classes;
        let minor = |name: &str| {
            let place = classes.iter().position(|class| class.name == name)?;
            Some(FIRST + u32::try_from(place).unwrap_or(0))
        };
        for (class, number) in classes.iter().zip(FIRST..) {
            let curves = class.share;
            let guaranteed =
                guaranteed(config, &class.name, classes.len()).max(NEXT_TO_NOTHING).min(self.rate.as_bps());
            let burst = self.bytes(None);
            let share = curves.link_share.or(curves.real_time).map_or(self.rate, |curve| curve.rate);
            self.classes.push(Class {
                minor: number,
                parent: class.parent.as_deref().map_or(Some(LINE), minor),
                name: class.name.clone(),
                rate: BitRate::from_bps(guaranteed).unwrap_or(self.rate),
                ceil: curves.upper_limit.map_or(self.rate, |curve| curve.rate.min(self.rate)),
                burst,
                cburst: burst,
                priority: 0,
                quantum: htb::quantum(share, htb::R2Q),
                queue: class.queue.as_ref(),
                curves,
            });
        }
        self.scale_quanta();
        self.takes = config.tree.rules.iter().filter_map(|rule| Some((&rule.matches, minor(&rule.class)?))).collect();
        let last = classes.iter().rev().find(|class| class.queue.is_some());
        let default = config.tree.default.as_deref().or_else(|| last.map(|class| class.name.as_str()));
        default.and_then(minor).unwrap_or(LINE)
    }

    fn cbq(&mut self, config: &'a cbq::Config) -> u32 {
        self.remarks.push(
            "CBQ: HTB lends unused rate by priority, and then by quanta; Linux has no CBQ from 6.3 on".to_owned(),
        );
        let classes = &config.tree.classes;
        let rate = |class: &tree::Class<cbq::Share>| match class.share.share {
            cbq::Portion::Rate(rate) => rate,
            cbq::Portion::Share(share) => share.of_rate(config.rate).unwrap_or(config.rate),
        };
        // Nothing lends to a class of HTB without a parent.
        let borrows = |class: &tree::Class<cbq::Share>| class.share.borrow && rate(class) < config.rate;
        let top = classes.iter().any(|class| class.parent.is_none() && borrows(class)).then_some(LINE);
        let minors = if top.is_some() {
            self.line(config.rate, None, None);
            (FIRST..).take(classes.len()).collect()
        } else {
            minors(classes.iter().map(|class| class.parent.is_none()))
        };
        let minor = |name: &str| {
            let place = classes.iter().position(|class| class.name == name);
            place.and_then(|place| minors.get(place).copied())
        };
        for (class, number) in classes.iter().zip(&minors) {
            let share = &class.share;
            if share.isolated {
                self.remarks.push(format!("class {}: isolated; HTB lends its unused rate", class.name));
            }
            let rate = rate(class);
            let burst = self.bytes(share.burst.map(WireBytes::as_u64));
            self.classes.push(Class {
                minor: *number,
                parent: class.parent.as_deref().map_or(top, minor),
                name: class.name.clone(),
                rate,
                ceil: if share.borrow { config.rate } else { rate },
                burst,
                cburst: burst,
                priority: share.priority,
                quantum: htb::quantum(rate, htb::R2Q),
                queue: class.queue.as_ref(),
                curves: hfsc::Share::default(),
            });
        }
        self.scale_quanta();
        self.takes = config.tree.rules.iter().filter_map(|rule| Some((&rule.matches, minor(&rule.class)?))).collect();
        let last = classes.iter().rev().find(|class| class.queue.is_some());
        let default = config.tree.default.as_deref().or_else(|| last.map(|class| class.name.as_str()));
        default.and_then(minor).unwrap_or(LINE)
    }

    fn custom(&mut self, config: &'a custom::Config) -> u32 {
        self.remarks.push("custom queueing by byte counts: HTB's rates and quanta in that proportion".to_owned());
        let largest = self.accounting.largest_counted().as_u64();
        let bytes = |count: custom::Count| match count {
            custom::Count::Bytes(bytes) => bytes.as_u64(),
            custom::Count::Packets(packets) => packets.as_u64().saturating_mul(largest),
        };
        let all: u128 = config.classes.iter().map(|class| u128::from(bytes(class.count))).sum();
        self.line(self.rate, None, None);
        for (class, minor) in config.classes.iter().zip(FIRST..) {
            let count = bytes(class.count);
            let bps = u128::from(self.rate.as_bps()) * u128::from(count) / all.max(1);
            let rate = u64::try_from(bps).ok().and_then(BitRate::from_bps).unwrap_or(self.rate);
            self.leaf(minor, &class.class, rate, 0, count);
        }
        self.scale_quanta();
        FIRST + last(config.classes.len())
    }

    fn priority(&mut self, classes: &'a [ClassSpec]) -> u32 {
        self.line(self.rate, None, None);
        let quantum = self.accounting.largest_counted().as_u64();
        let rate = BitRate::from_bps(NEXT_TO_NOTHING).unwrap_or(self.rate).min(self.rate);
        for (class, minor) in classes.iter().zip(FIRST..) {
            let priority = u8::try_from(minor - FIRST).unwrap_or(u8::MAX).min(7);
            self.leaf(minor, class, rate, priority, quantum);
        }
        if classes.len() > 8 {
            self.remarks.push("more than eight priorities: HTB has eight; the last share one".to_owned());
        }
        FIRST + last(classes.len())
    }

    /// Adds a class below the line that may use all of its rate.
    fn leaf(&mut self, minor: u32, class: &'a ClassSpec, rate: BitRate, priority: u8, quantum: u64) {
        let name = match class.matches {
            Match::Class(number) => self.names.get(usize::from(number)).cloned(),
            _ => None,
        };
        let burst = self.bytes(None);
        self.takes.push((&class.matches, minor));
        self.classes.push(Class {
            minor,
            parent: Some(LINE),
            name: name.unwrap_or_else(|| format!("class {}", minor - FIRST)),
            rate,
            ceil: self.rate,
            burst,
            cburst: burst,
            priority,
            quantum,
            queue: Some(&class.queue),
            curves: hfsc::Share::default(),
        });
    }

    /// Scales all quanta by one factor, so that the smallest is a packet of the largest size.
    fn scale_quanta(&mut self) {
        let largest = self.accounting.largest_counted().as_u64();
        let smallest = self.classes.iter().map(|class| class.quantum).min().unwrap_or(largest).max(1);
        if smallest >= largest {
            return;
        }
        for class in &mut self.classes {
            let raised = u128::from(class.quantum) * u128::from(largest) / u128::from(smallest);
            class.quantum = u64::try_from(raised).unwrap_or(u64::MAX);
        }
    }
}

/// The long-run rate of the guarantees of a class of HFSC and of those below it, in bit/s. `depth` ends a circle.
fn guaranteed(config: &hfsc::Config, name: &str, depth: usize) -> u64 {
    let classes = &config.tree.classes;
    let own = classes.iter().find(|class| class.name == name).and_then(|class| class.share.real_time);
    let below = classes.iter().filter(|class| depth > 0 && class.parent.as_deref() == Some(name));
    let below = below.fold(0_u64, |sum, class| sum.saturating_add(guaranteed(config, &class.name, depth - 1)));
    below.saturating_add(own.map_or(0, |curve| curve.rate.as_bps()))
}

fn last(count: usize) -> u32 {
    u32::try_from(count.saturating_sub(1)).unwrap_or(0)
}

/// Numbers of classes: the line's for the first if it has no parent, and from [`FIRST`] on for the others.
fn minors(roots: impl Iterator<Item = bool>) -> Vec<u32> {
    let number = |(place, root): (usize, bool)| {
        if place == 0 && root { LINE } else { FIRST - 1 + u32::try_from(place).unwrap_or(0) }
    };
    let minors: Vec<u32> = roots.enumerate().map(number).collect();
    minors
}
