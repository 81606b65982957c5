//! From a policy on its line to the steps of a kernel set-up.

use lastmile_linklayer::stab::Device;
use lastmile_linklayer::{Framing, LinkLayer};
use lastmile_queueing::{Match, Spec};
use lastmile_units::{BitRate, ByteCount};

use crate::accounting::Accounting;
use crate::bpf::{self, Program};
use crate::command::{Command, DEVICE, Expected, IFB, Object, Step, Value};
use crate::leaf::{self, Place};
use crate::marks::Marks;
use crate::tree::{Class, Tree};
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
    /// The upstream: packets that the device transmits.
    pub up: Direction<'a>,
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
    /// The path of a flood.
    pub flood: Flood,
}

impl Configuration {
    /// The nearest set-up for a policy.
    #[must_use]
    pub fn new(request: &Request<'_>) -> Self {
        let Request { up, header, largest, .. } = request;
        let accounting = Accounting::new(up.layer, *header, *largest);
        let mut about = vec![request.about.to_owned()];
        about.retain(|line| !line.is_empty());
        about.push(format!("Upstream {} on the wire: {}.", up.rate, up.layer));
        about.extend(request.notes.iter().cloned());
        about.extend(accounting.remarks());
        if !matches!(up.queue, Spec::Cake(_)) {
            about.push(CONVERSIONS.to_owned());
        }
        let mut making = Making { steps: Vec::new(), left_out: Vec::new(), header: *header };
        let flood = making.direction(DEVICE, up, request.classes, &accounting);
        let mut has_ifb = false;
        if let Some(down) = &request.down {
            let accounting = Accounting::new(down.layer, *header, *largest);
            about.push(format!("Downstream {} on the wire: {}.", down.rate, down.layer));
            has_ifb = making.downstream(down, &accounting);
        }
        let Making { steps, mut left_out, .. } = making;
        left_out.dedup();
        Self { name: request.name.to_owned(), about, left_out, steps, has_ifb, flood }
    }
}

/// A configuration under construction.
struct Making {
    steps: Vec<Step>,
    left_out: Vec<String>,
    header: Device,
}

impl Making {
    fn downstream(&mut self, down: &Direction<'_>, accounting: &Accounting) -> bool {
        self.steps.push(Step::Heading("The downstream".to_owned()));
        if let Some((steps, remarks)) = ingress::police(down.queue, accounting) {
            self.steps.extend(steps);
            self.left_out.extend(remarks);
            return false;
        }
        let below = match down.queue {
            Spec::Rules(rules) => &*rules.queue,
            other => other,
        };
        if !matches!(below, Spec::Tbf { .. } | Spec::Htb(_) | Spec::Cake(_)) {
            let remark = "downstream: a queue without a shaper at the rate of the line does not move the queue from \
             the far end to this device";
            self.left_out.push(remark.to_owned());
        }
        self.direction(IFB, down, &[], accounting);
        self.steps.extend(ingress::redirect_steps());
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
            let words = format!("tc qdisc add dev {device} root handle {MAJOR:x}: {}", discipline.words);
            let expected = Expected {
                object: Object::Qdisc { device, parent: "root".to_owned() },
                name: "cake".to_owned(),
                values: discipline.values,
            };
            let about = "overhead counts from the IP packet, independent of the device's header";
            self.steps.push(Step::run(about, Command::new(&words).leaving(expected)));
            return flood(config.bandwidth.unwrap_or(direction.rate));
        }
        let tree = Tree::new(direction.queue, direction.rate, names, accounting);
        self.left_out.extend(tree.remarks.iter().cloned());
        let otherwise = tree.otherwise_rate().unwrap_or(direction.rate);
        if tree.by_priority {
            self.by_priority(device, &tree, accounting);
        } else {
            self.root(device, tree.otherwise, accounting);
            self.shares(device, &tree, accounting);
            self.rules(device, &tree, MAJOR, |minor| MAJOR << 16 | minor);
        }
        flood(otherwise)
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

    fn shares(&mut self, device: &'static str, tree: &Tree<'_>, accounting: &Accounting) {
        for class in &tree.classes {
            self.steps.push(class_step(device, class, accounting));
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
        let default = tree.classes.iter().position(|class| class.minor == tree.otherwise).unwrap_or(1).max(1) - 1;
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
        let band = |minor: u32| {
            let band = classes.iter().zip(1_u32..).find(|(class, _)| class.minor == minor);
            handle << 16 | band.map_or(1, |(_, band)| band)
        };
        self.rules(device, tree, handle, band);
        let then = core::mem::take(&mut self.steps);
        let (said, leaves) = (self.left_out.len(), classes.iter().filter_map(|class| Some((class, class.queue?))));
        for ((class, queue), handle) in leaves.zip(QUEUES..) {
            self.steps.push(class_step(device, class, accounting));
            let parent = format!("{MAJOR:x}:{:x}", class.minor);
            self.queue(device, &parent, handle, class, queue, accounting);
        }
        self.rules(device, tree, MAJOR, |minor| MAJOR << 16 | minor);
        // The other branch has already made these remarks.
        self.left_out.truncate(said);
        let otherwise = core::mem::replace(&mut self.steps, outside);
        let about = vec!["strict priority, the most urgent first".to_owned()];
        let lacking = "prio: HTB classes with one priority each".to_owned();
        self.steps.push(Step::Choice { about, first, then, lacking, otherwise });
    }

    /// The rules at `major:`, as one program; `class` returns the handle of a class by its number.
    fn rules(&mut self, device: &'static str, tree: &Tree<'_>, major: u32, class: impl Fn(u32) -> u32) {
        if tree.rules.is_empty() {
            return;
        }
        let marks = if device == DEVICE { Marks::of_rules(tree.listed) } else { Marks::default() };
        let name = |minor| tree.class(minor).map_or("", |class| class.name.as_str());
        let mut included: Vec<(bpf::Rule<'_>, &str)> = Vec::new();
        for rule in &tree.rules {
            match bpf::obstacle(rule.matches, &marks) {
                Some(why) => {
                    let rule = format!("{} -> {}", words::condition(rule.matches), name(rule.minor));
                    self.left_out.push(format!("the rule \"{rule}\": {why}; left out"));
                }
                None => {
                    included.push((bpf::Rule { matches: rule.matches, class: class(rule.minor) }, name(rule.minor)));
                }
            }
        }
        let of = |included: &[(bpf::Rule<'_>, &str)]| {
            let rules: Vec<bpf::Rule<'_>> = included.iter().map(|(rule, _)| *rule).collect();
            Program::new(&rules, class(tree.otherwise), self.header, &marks)
        };
        let mut program = of(&included);
        while program.len() > bpf::MOST {
            if let Some((rule, name)) = included.pop() {
                let rule = format!("{} -> {name}", words::condition(rule.matches));
                self.left_out.push(format!("the rule \"{rule}\": the program is too long; left out"));
            }
            program = of(&included);
        }
        self.steps.push(Step::Heading("Classification: the first rule that matches decides".to_owned()));
        self.steps.extend(marks.steps());
        let mut about = vec![
            "one program, which returns the class; one part per rule".to_owned(),
            "part 1 reads the headers".to_owned(),
        ];
        for ((rule, name), part) in included.iter().zip(2..) {
            about.push(format!("part {part}: {} -> {name}", words::condition(rule.matches)));
        }
        about.push(format!("part {}: unmatched -> {}", included.len() + 2, name(tree.otherwise)));
        let pure_ack = included.iter().find(|(rule, _)| *rule.matches == Match::PureAck);
        let ack = pure_ack.map(|(rule, _)| rule.class);
        self.steps.push(filter(device, major, about, &program, ack));
    }
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

/// The filter. Without the kernel's BPF classifier, `u32` filters for pure ACKs, whose class is
/// `ack`.
fn filter(device: &'static str, major: u32, about: Vec<String>, program: &Program, ack: Option<u32>) -> Step {
    let parent = format!("{major:x}:");
    let words = format!("tc filter add dev {device} parent {parent} protocol all pref 1 bpf bytecode");
    let values = vec![("kind", Value::Text("bpf".to_owned())), ("bytecode", Value::Bytecode(program.lines().concat()))];
    let object = Object::Filter { device, parent: parent.clone(), preference: 1 };
    let expected = Expected { object, name: "rules".to_owned(), values };
    let first =
        Command::new(&words).word(program.lines().join("\n")).words(&format!("flowid {parent}1")).leaving(expected);
    let lacking = "the BPF classifier: u32 classifies pure ACKs, and no other rule".to_owned();
    let otherwise = ack.map_or_else(Vec::new, |class| u32_pure_acks(device, &parent, class));
    Step::Choice { about, first, then: vec![], lacking, otherwise }
}

/// Pure ACKs by `u32`, which cannot subtract: for each size of the TCP header the length of an IP
/// packet without payload.
fn u32_pure_acks(device: &'static str, parent: &str, class: u32) -> Vec<Step> {
    let flowid = format!("flowid {:x}:{:x}", class >> 16, class & 0xffff);
    let add = format!("tc filter add dev {device} parent {parent}");
    let words = |header: u32| {
        let tcp = 20 + 4 * header;
        // Five words of IP header, no fragment, TCP, and in it no flag but ACK.
        let v4 = format!(
            "{add} protocol ip pref 2 u32 match u8 0x45 0xff at 0 match u16 {:#06x} 0xffff at 2 match u16 0 0x3fff \
             at 6 \
             match u8 6 0xff at 9 match u8 {:#04x} 0xf0 at 32 match u8 0x10 0xff at 33 {flowid}",
            20 + tcp,
            header * 16 + 80,
        );
        let v6 = format!(
            "{add} protocol ipv6 pref 3 u32 match u16 {tcp:#06x} 0xffff at 4 match u8 6 0xff at 6 \
             match u8 {:#04x} 0xf0 at 52 match u8 0x10 0xff at 53 {flowid}",
            header * 16 + 80,
        );
        [v4, v6]
    };
    let steps = (0..=10).flat_map(words).map(|words| Step::run("", Command::new(&words)));
    steps.collect()
}

#[cfg(test)]
mod tests;
