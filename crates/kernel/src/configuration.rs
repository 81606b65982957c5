//! From a policy on its line to the steps of a kernel set-up.

use crate::stab::Device;
use lastmile_linklayer::{Framing, LinkLayer};
use lastmile_queueing::Spec;
use lastmile_queueing::sched::hfsc::ServiceCurve;
use lastmile_queueing::sched::hfsc::curve::Initial;
use lastmile_units::{BitRate, ByteCount};

use crate::accounting::Accounting;
use crate::command::{Command, DEVICE, Expected, IFB, Object, Step, Value};
use crate::leaf::{self, Place};
use crate::nft::{self, Handle, Memory};
use crate::tree::{Class, Scheduler, Tree};
use crate::{cake, ingress, words};

/// The handle of a set-up at the root of a device, which identifies it.
pub const MAJOR: u32 = 0x1a57;
/// The first handle of the queues below the root.
const QUEUES: u32 = MAJOR + 1;

/// A remark for every set-up with HTB.
const CONVERSIONS: &str = "Rates are those of the wire, in whole bytes a second. Limits in bytes \
    count bytes on the wire, for an equal number of large packets. Bursts are at least three of the largest \
    packets: a kernel that wakes up late loses the excess.";

/// One direction of a line.
#[derive(Clone, Copy, Debug)]
pub struct Direction<'a> {
    /// The available rate, on the wire.
    pub rate: BitRate,
    /// The conversion of IP packets to bytes on the wire.
    pub layer: LinkLayer,
    /// The queue.
    pub queue: &'a Spec,
}

/// A policy, and the device that it applies to.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The policy's name.
    pub name: &'a str,
    /// The policy's purpose, one line.
    pub about: &'a str,
    /// Further remarks for the top, such as the source of a rate.
    pub notes: Vec<String>,
    /// The upstream, if it is shaped: packets that the device transmits.
    pub up: Option<Direction<'a>>,
    /// The downstream, if the policy has one: packets that the device receives.
    pub down: Option<Direction<'a>>,
    /// Names of the upstream's classes, by their number.
    pub classes: &'a [String],
    /// The kind of device, by its bytes in front of an IP packet.
    pub header: Device,
    /// The largest expected IP packet.
    pub largest: ByteCount,
}

/// The path of a flood of unmatched UDP packets, for a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flood {
    /// Rate on the wire.
    pub rate: BitRate,
    /// The conversion of IP packets to bytes on the wire.
    pub layer: LinkLayer,
    /// The largest expected IP packet.
    pub largest: ByteCount,
    /// True if CAKE counts it, for which a partial PTM block counts as whole; HTB uses the mean.
    pub by_cake: bool,
}

impl Flood {
    /// Packets of `ip` bytes a second, by the closed form of the line.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for comparing and printing")]
    pub fn packets_per_s(&self, ip: ByteCount) -> f64 {
        let rate = match self.layer.oam() {
            Some(share) => share.user_rate(self.rate).unwrap_or(self.rate),
            None => self.rate,
        };
        let bits = match self.layer.framing() {
            Framing::Ptm if !self.by_cake => self.layer.frame(ip) as f64 * 8.0 * 65.0 / 64.0,
            _ => self.layer.on_wire(ip).bits() as f64,
        };
        rate.as_bps() as f64 / bits
    }
}

/// The nearest set-up of the kernel for a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Configuration {
    /// The policy's name.
    pub name: String,
    /// Remarks for the top: the policy's purpose, the line, the byte accounting.
    pub about: Vec<String>,
    /// Parts of the policy that cannot be expressed, and their substitutes.
    pub left_out: Vec<String>,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// True if the steps create an intermediate device.
    pub has_ifb: bool,
    /// The kind of device that the size table counts for; `None` where none is set up.
    pub counts_for: Option<Device>,
    /// Something counts large segments as one packet; CAKE splits them.
    pub joins_segments: bool,
    /// The path of a flood; `None` if the upstream is not shaped.
    pub flood: Option<Flood>,
}

impl Configuration {
    /// The nearest set-up for a policy.
    #[must_use]
    pub fn new(request: &Request<'_>) -> Self {
        let Request { up, down, header, largest, .. } = request;
        let mut about = vec![request.about.to_owned()];
        about.retain(|line| !line.is_empty());
        about.push(up.map_or_else(
            || "The upstream is not shaped.".to_owned(),
            |up| format!("Upstream {} on the wire: {}.", up.rate, up.layer),
        ));
        about.extend(request.notes.iter().cloned());
        let shaped = up.as_ref().or(down.as_ref());
        let by_htb = [up, down].into_iter().flatten().any(|shaped| !matches!(shaped.queue, Spec::Cake(_)));
        about.extend(shaped.iter().flat_map(|shaped| Accounting::new(shaped.layer, *header, *largest).remarks(by_htb)));
        if by_htb {
            about.push(CONVERSIONS.to_owned());
        }
        let mut making =
            Making { steps: Vec::new(), left_out: Vec::new(), header: *header, counts_frames: false, polices: false };
        let flood = up
            .as_ref()
            .map(|up| making.direction(DEVICE, up, request.classes, &Accounting::new(up.layer, *header, *largest)));
        let mut has_ifb = false;
        if let Some(down) = down {
            let accounting = Accounting::new(down.layer, *header, *largest);
            about.push(format!("Downstream {} on the wire: {}.", down.rate, down.layer));
            has_ifb = making.downstream(down, &accounting);
        }
        let Making { steps, mut left_out, header, counts_frames, polices } = making;
        left_out.dedup();
        let (counts_for, joins_segments) = (counts_frames.then_some(header), counts_frames || polices);
        Self { name: request.name.to_owned(), about, left_out, steps, has_ifb, counts_for, joins_segments, flood }
    }
}

/// A configuration under construction.
struct Making {
    steps: Vec<Step>,
    left_out: Vec<String>,
    header: Device,
    /// A size table counts from the frames of the device.
    counts_frames: bool,
    /// A policer stands on the way in.
    polices: bool,
}

impl Making {
    fn downstream(&mut self, down: &Direction<'_>, accounting: &Accounting) -> bool {
        self.steps.push(Step::Heading("The downstream".to_owned()));
        if let Some((steps, remarks)) = ingress::police(down.queue, accounting) {
            self.steps.extend(steps);
            self.left_out.extend(remarks);
            self.polices = true;
            return false;
        }
        let below = match down.queue {
            Spec::Rules(rules) => &*rules.queue,
            other => other,
        };
        if !matches!(below, Spec::Tbf(_) | Spec::Htb(_) | Spec::Cake(_)) {
            let remark = "downstream: a queue that does not shape, at the rate of the line, leaves the queue at the \
                          far end where it is";
            self.left_out.push(remark.to_owned());
        }
        self.direction(IFB, down, &[], accounting);
        true
    }

    /// Sets up the packets that `device` transmits, and returns the path of a flood.
    fn direction(
        &mut self,
        device: &'static str,
        direction: &Direction<'_>,
        names: &[String],
        accounting: &Accounting,
    ) -> Flood {
        let by_cake = matches!(direction.queue, Spec::Cake(_));
        let flood = |rate| Flood { rate, layer: direction.layer, largest: accounting.largest(), by_cake };
        if device == IFB {
            self.steps.extend(ingress::device_steps());
        }
        if let Spec::Cake(config) = direction.queue {
            self.steps.push(Step::Heading("CAKE, which shapes and schedules".to_owned()));
            let config = lastmile_queueing::cake::Config {
                bandwidth: config.bandwidth.or(Some(direction.rate)),
                ..config.clone()
            };
            let discipline = cake::discipline(&config, accounting);
            self.left_out.extend(cake::remarks(&config, accounting));
            let words = format!("tc qdisc add dev {device} root handle {MAJOR:x}: {}", discipline.words);
            let expected = Expected {
                object: Object::Qdisc { device, parent: "root".to_owned() },
                name: "cake".to_owned(),
                values: discipline.values,
            };
            let about = "overhead counts from the IP packet, independent of the device's header";
            self.steps.push(Step::run(about, Command::new(&words).leaving(expected)));
            self.steps.extend(redirected(device));
            return flood(config.bandwidth.unwrap_or(direction.rate));
        }
        self.counts_frames = true;
        let tree = Tree::new(direction.queue, direction.rate, names, accounting);
        self.left_out.extend(tree.remarks.iter().cloned());
        let otherwise = tree.otherwise_rate().unwrap_or(direction.rate);
        match tree.scheduler {
            Scheduler::Prio => self.by_priority(device, &tree, accounting),
            Scheduler::Htb => self.by_rates(device, &tree, accounting),
            Scheduler::Hfsc => self.by_curves(device, &tree, accounting),
        }
        flood(otherwise)
    }

    /// Classes of HTB.
    fn by_rates(&mut self, device: &'static str, tree: &Tree<'_>, accounting: &Accounting) {
        // tc-htb(8): without a default class such packets are not shaped.
        self.root(device, tree.otherwise.unwrap_or(0), accounting);
        self.shares(device, tree, accounting, class_step);
        self.rules(device, tree, of_htb);
    }

    /// Classes of HFSC, or else of HTB.
    fn by_curves(&mut self, device: &'static str, tree: &Tree<'_>, accounting: &Accounting) {
        let stab = accounting.stab();
        let default = tree.otherwise.unwrap_or(0);
        let words = format!("tc qdisc add dev {device} root handle {MAJOR:x}: {stab} hfsc default 0x{default:x}");
        let object = Object::Qdisc { device, parent: "root".to_owned() };
        let values = vec![("kind", Value::Text("hfsc".to_owned()))];
        let first = Command::new(&words).leaving(Expected { object, name: "hfsc".to_owned(), values });
        let outside = core::mem::take(&mut self.steps);
        self.shares(device, tree, accounting, curve_step);
        self.rules(device, tree, of_htb);
        let then = core::mem::take(&mut self.steps);
        let said = self.left_out.len();
        self.by_rates(device, tree, accounting);
        // The other branch has reported it.
        self.left_out.truncate(said);
        let otherwise = core::mem::replace(&mut self.steps, outside);
        let about = vec!["service curves, which shape by bytes on the wire".to_owned()];
        let lacking = "hfsc: HTB classes with the long-run rates of the curves".to_owned();
        self.steps.push(Step::Choice { about, first, then, lacking, otherwise });
    }

    fn root(&mut self, device: &'static str, default: u32, accounting: &Accounting) {
        let stab = accounting.stab();
        self.steps.push(Step::Heading("HTB, which shapes by bytes on the wire".to_owned()));
        let words = format!("tc qdisc add dev {device} root handle {MAJOR:x}: {stab} htb default 0x{default:x}");
        let number = |number: u32| Value::Number(number.into());
        let mut values = vec![
            ("kind", Value::Text("htb".to_owned())),
            ("handle", Value::Text(format!("{MAJOR:x}:"))),
            ("default", number(default)),
            ("stab.linklayer", Value::Text(stab.linklayer.to_string())),
        ];
        // tc prints no zeros.
        if stab.overhead != 0 {
            values.push(("stab.overhead", Value::Number(stab.overhead.into())));
        }
        if stab.mpu > 0 {
            values.push(("stab.mpu", number(stab.mpu)));
        }
        if stab.mpu > 0 || accounting.layer().cells(accounting.largest()).is_some() {
            values.extend([("stab.mtu", number(stab.mtu)), ("stab.tsize", number(stab.tsize))]);
        }
        let expected =
            Expected { object: Object::Qdisc { device, parent: "root".to_owned() }, name: "htb".to_owned(), values };
        let about = match self.header.header() {
            0 => "stab counts from the IP packet: this device has no header in front of it".to_owned(),
            header => format!(
                "stab counts from the frame, which has {header} bytes in front of the IP packet: {} - {header} = {}",
                accounting.layer().overhead(),
                stab.overhead
            ),
        };
        self.steps.push(Step::run(about, Command::new(&words).leaving(expected)));
    }

    fn shares(
        &mut self,
        device: &'static str,
        tree: &Tree<'_>,
        accounting: &Accounting,
        step: fn(&'static str, &Class<'_>, &Accounting) -> Step,
    ) {
        for class in &tree.classes {
            self.steps.push(step(device, class, accounting));
        }
        let leaves = tree.classes.iter().filter_map(|class| Some((class, class.queue?)));
        for ((class, queue), handle) in leaves.zip(QUEUES..) {
            let parent = format!("{MAJOR:x}:{:x}", class.minor);
            self.queue(device, &parent, handle, class, queue, accounting);
        }
    }

    fn queue(
        &mut self,
        device: &'static str,
        parent: &str,
        handle: u32,
        class: &Class<'_>,
        queue: &Spec,
        accounting: &Accounting,
    ) {
        let handle = format!("{handle:x}:");
        let place = Place { device, parent, handle: &handle, name: &class.name, rate: class.ceil, accounting };
        let (step, remarks) = leaf::step(&place, queue);
        self.steps.push(step);
        self.left_out.extend(remarks);
    }

    /// `prio` below one class that shapes, or else classes of HTB.
    fn by_priority(&mut self, device: &'static str, tree: &Tree<'_>, accounting: &Accounting) {
        let Some((line, classes)) = tree.classes.split_first() else { return };
        self.root(device, line.minor, accounting);
        self.steps.push(class_step(device, line, accounting));
        let bands = classes.len().max(2);
        let default = tree.classes.iter().position(|class| Some(class.minor) == tree.otherwise).unwrap_or(1).max(1) - 1;
        let map = vec![default.to_string(); 16].join(" ");
        let parent = format!("{MAJOR:x}:{:x}", line.minor);
        let handle = QUEUES;
        let object = Object::Qdisc { device, parent: parent.clone() };
        let values = vec![("kind", Value::Text("prio".to_owned()))];
        let words =
            format!("tc qdisc add dev {device} parent {parent} handle {handle:x}: prio bands {bands} priomap {map}");
        let first = Command::new(&words).leaving(Expected { object, name: "prio".to_owned(), values });

        let outside = core::mem::take(&mut self.steps);
        for (class, band) in classes.iter().zip(1_u32..) {
            let Some(queue) = class.queue else { continue };
            self.queue(device, &format!("{handle:x}:{band:x}"), handle + band, class, queue, accounting);
        }
        let band = |class: Option<u32>| {
            let band = classes.iter().zip(1_u32..).find(|(of, _)| Some(of.minor) == class);
            Handle { major: handle, minor: band.map_or(1, |(_, band)| band) }
        };
        self.rules(device, tree, band);
        let then = core::mem::take(&mut self.steps);
        let (said, leaves) = (self.left_out.len(), classes.iter().filter_map(|class| Some((class, class.queue?))));
        for ((class, queue), handle) in leaves.zip(QUEUES..) {
            self.steps.push(class_step(device, class, accounting));
            let parent = format!("{MAJOR:x}:{:x}", class.minor);
            self.queue(device, &parent, handle, class, queue, accounting);
        }
        self.steps.extend(tree.otherwise.map(|minor| without_default(device, minor)));
        self.rules(device, tree, of_htb);
        // The other branch has reported it.
        self.left_out.truncate(said);
        let otherwise = core::mem::replace(&mut self.steps, outside);
        let about = vec!["strict priority, the most urgent first".to_owned()];
        let lacking = "prio: HTB classes with one priority each".to_owned();
        self.steps.push(Step::Choice { about, first, then, lacking, otherwise });
    }

    /// The rules as a table of nft; `class` gives the handle of a class by its number.
    fn rules(&mut self, device: &'static str, tree: &Tree<'_>, class: impl Fn(Option<u32>) -> Handle) {
        if tree.rules.is_empty() {
            self.steps.extend(redirected(device));
            return;
        }
        let name = |minor: Option<u32>| match minor.and_then(|minor| tree.class(minor)) {
            Some(class) => class.name.as_str(),
            None => "unshaped",
        };
        let memory = if device == DEVICE { Memory::Kept } else { Memory::None };
        let (mut about, mut rules) = (Vec::new(), Vec::new());
        for rule in &tree.rules {
            let words = format!("{} -> {}", words::condition(rule.matches), name(rule.class));
            match nft::obstacle(rule.matches, memory) {
                Some(why) => self.left_out.push(format!("the rule \"{words}\": {why}; left out")),
                None => {
                    about.push(words);
                    rules.push(nft::Rule { matches: rule.matches, class: class(rule.class) });
                }
            }
        }
        about.push(format!("all others -> {}", name(tree.otherwise)));
        self.steps.push(Step::Heading("The class of a packet: the first rule that matches decides".to_owned()));
        let otherwise = class(tree.otherwise);
        let load = |memory, lacking: &str, instead| Step::Choice {
            about: vec![],
            first: nft::command(device, &rules, otherwise, memory),
            then: vec![],
            lacking: lacking.to_owned(),
            otherwise: instead,
        };
        let without = load(Memory::None, NO_RULES, redirected(device));
        let mut step = match memory {
            Memory::Kept if nft::asks_for_memory(&rules) => load(memory, NO_MEMORY, vec![without]),
            _ => without,
        };
        if let Step::Choice { about: of_step, .. } = &mut step {
            *of_step = about;
        }
        self.steps.push(step);
    }
}

/// Sends what comes in through the intermediate device, where no table of nft does.
fn redirected(device: &str) -> Vec<Step> {
    if device == IFB { ingress::redirect_steps() } else { vec![] }
}

/// Said where connections are not tracked.
const NO_MEMORY: &str = "connection tracking: rules that ask for connections or hosts never match";
/// Said where no table can be loaded.
const NO_RULES: &str = "nft(8), or what its table needs: every packet goes to the default class";

/// The class of packets that no rule has seen, where the default of the root has classes below it: HTB sends packets to
/// such a class ahead of all, unshaped. HTB looks at the priority of a packet first.
fn without_default(device: &str, minor: u32) -> Step {
    let words = format!("tc filter add dev {device} parent {MAJOR:x}: protocol all u32 match u32 0 0 classid");
    Step::Choice {
        about: vec!["packets without a class by the rules".to_owned()],
        first: Command::new(&words).word(format!("{MAJOR:x}:{minor:x}")),
        then: vec![],
        lacking: "the u32 classifier: packets without a class by the rules are not shaped".to_owned(),
        otherwise: vec![],
    }
}

/// The handle of a class of HTB. HTB does not shape packets of the number 0.
fn of_htb(class: Option<u32>) -> Handle {
    Handle { major: MAJOR, minor: class.unwrap_or(0) }
}

/// A class of HFSC. tc prints its curves as text alone, so that none is read back.
fn curve_step(device: &'static str, class: &Class<'_>, accounting: &Accounting) -> Step {
    let Class { minor, parent, name, curves, .. } = class;
    let above = parent.map_or_else(|| format!("{MAJOR:x}:"), |parent| format!("{MAJOR:x}:{parent:x}"));
    let id = format!("{MAJOR:x}:{minor:x}");
    let rate = |rate: BitRate| accounting.stab_rate(rate).as_bps();
    let curve = |kind: &str, curve: Option<ServiceCurve>| match curve {
        None => String::new(),
        Some(ServiceCurve { initial: None, rate: m2 }) => format!(" {kind} m2 {}bit", rate(m2)),
        Some(ServiceCurve { initial: Some(Initial { rate: m1, duration }), rate: m2 }) => {
            let (m1, m2) = (m1.map_or(0, rate), rate(m2));
            format!(" {kind} m1 {m1}bit d {}us m2 {m2}bit", duration.as_us())
        }
    };
    let curves =
        [curve("rt", curves.real_time), curve("ls", curves.link_share), curve("ul", curves.upper_limit)].concat();
    let words = format!("tc class add dev {device} parent {above} classid {id} hfsc{curves}");
    let expected = Expected { object: Object::Class { device, id }, name: format!("class {name}"), values: vec![] };
    Step::run(format!("class {name}"), Command::new(&words).leaving(expected))
}

fn class_step(device: &'static str, class: &Class<'_>, accounting: &Accounting) -> Step {
    let Class { minor, parent, name, burst, cburst, priority, quantum, .. } = class;
    let (rate, ceil) = (accounting.stab_rate(class.rate), accounting.stab_rate(class.ceil));
    let above = parent.map_or_else(|| format!("{MAJOR:x}:"), |parent| format!("{MAJOR:x}:{parent:x}"));
    let id = format!("{MAJOR:x}:{minor:x}");
    let words = format!(
        "tc class add dev {device} parent {above} classid {id} htb rate {}bit ceil {}bit burst {burst} cburst \
         {cburst} prio \
         {priority} quantum {quantum}",
        rate.as_bps(),
        ceil.as_bps(),
    );
    let mut values = vec![
        ("rate", Value::Rate(rate)),
        ("ceil", Value::Rate(ceil)),
        ("burst", Value::Burst { bytes: *burst, rate }),
        ("cburst", Value::Burst { bytes: *cburst, rate: ceil }),
    ];
    if class.queue.is_some() {
        let number = |number: u64| Value::Number(i64::try_from(number).unwrap_or(i64::MAX));
        values.extend([("prio", number((*priority).into())), ("quantum", number(*quantum))]);
    }
    let expected = Expected { object: Object::Class { device, id }, name: format!("class {name}"), values };
    let about = format!("class {name}: {} guaranteed, {} at most", class.rate, class.ceil);
    Step::run(about, Command::new(&words).leaving(expected))
}

#[cfg(test)]
mod tests;
