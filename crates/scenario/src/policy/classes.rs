//! Classes and rules of one direction, and the tree that they make.

use std::collections::BTreeSet;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Meta;
use lastmile_queueing::classify::rules;
use lastmile_queueing::sched::hfsc;
use lastmile_queueing::sched::tree::{TreeError, Wrong};
use lastmile_queueing::spec::Spec;
use lastmile_queueing::{Match, fifo};
use lastmile_units::{BitRate, ByteCount, WireBytes};

use super::acks::ack_class;
use super::form::Form;
use super::model::{AckRate, Class, Line, Promise, Rule};
use super::scheduler::{Plan, ROOT};
use super::schema;
use crate::diagnostics::did_you_mean;
use crate::queue::matching::matching;
use crate::queue::{self, Wire};
use crate::reader::Table;
use crate::value::{Burst, Portion};

/// The line, direction and form against which classes are read.
pub(super) struct Around {
    pub(super) line: Line,
    /// The cost of a packet in this direction of the line.
    pub(super) layer: LinkLayer,
    /// The rate that the scheduler may use in this direction.
    pub(super) rate: BitRate,
    pub(super) largest: ByteCount,
    pub(super) form: Form,
    /// Classes of priority 0 pass a drain, whatever the scheduler.
    pub(super) drains: bool,
}

impl Around {
    /// The wire behind the scheduler, at the scheduler's rate.
    pub(super) fn wire(&self) -> Wire {
        Wire::new(self.layer, Some(self.rate))
    }

    pub(super) fn largest_wire(&self) -> WireBytes {
        self.layer.on_wire(self.largest)
    }

    /// `queue` with a target of CoDel that a full packet can keep to: the target is raised to the time
    /// of a packet at the scheduler's rate, and the interval by as much (RFC 8290, section 5.2.1; SQM
    /// does the same on slow lines).
    pub(super) fn patient(&self, mut queue: Spec) -> Spec {
        let (target, interval, largest) = match &mut queue {
            Spec::Codel(codel) => (&mut codel.target, &mut codel.interval, codel.largest),
            Spec::FqCodel(codel) => (&mut codel.target, &mut codel.interval, codel.largest),
            _ => return queue,
        };
        let packet = self.rate.time_for(self.layer.on_wire(largest));
        let raised = packet.saturating_sub(*target);
        *target += raised;
        *interval += raised;
        queue
    }
}

/// The classes, rules and queue of one direction.
pub(super) struct Sharing {
    pub(super) ack: Option<AckRate>,
    pub(super) classes: Vec<Class>,
    pub(super) rules: Vec<Rule>,
    /// The kind of the scheduler, or of the one queue.
    pub(super) kind: String,
    pub(super) queue: Spec,
}

/// The kind of the one queue of `table`, as the file has it.
pub(super) fn kind_of_queue(table: &Table<'_>) -> String {
    let queue = if table.has_table("queue") { table.table("queue") } else { None };
    queue.and_then(|queue| queue.text("kind").map(str::to_owned)).unwrap_or_else(|| "fifo".to_owned())
}

/// Reads `class` and `rule` of `root`, after the class of `ack`, for the scheduler that `scheduler` describes.
pub(super) fn scheduled(
    root: &Table<'_>,
    scheduler: &Table<'_>,
    ack_table: Option<Table<'_>>,
    around: &Around,
) -> Option<Sharing> {
    if scheduler.has("queue") {
        scheduler.error("queue", "a queue together with classes, which have their own", None);
    }
    let items: Vec<Table<'_>> = root.tables("class").into_iter().map(|class| class.open(&schema::CLASS)).collect();
    let inner: BTreeSet<String> = items.iter().filter_map(|class| class.optional_name("parent")).collect();
    let mut read: Vec<(Class, Table<'_>)> = Vec::new();
    let mut ack = None;
    let mut complete = true;
    let has_ack = ack_table.is_some();
    if let Some(table) = ack_table {
        match ack_class(&table, around) {
            Some((rate, class)) => {
                ack = Some(rate);
                read.push((class, table));
            }
            None => complete = false,
        }
    }
    let left = ack.map_or(Some(around.rate), |ack| minus(around.rate, ack.rate));
    let ceilings = queue::tree::ceilings(&items, |class| {
        let ceil = portion(class.optional("ceil"), around.rate)?;
        around.form.ceiling(ceil, portion(class.optional("rate"), left.unwrap_or(around.rate)))
    });
    for (table, ceiling) in items.into_iter().zip(ceilings) {
        match class(&table, around, (left, ceiling), &inner) {
            Some(class) => read.push((class, table)),
            None => complete = false,
        }
    }
    if has_ack && left.is_none() && complete {
        let ack = ack.map_or(around.rate, |ack| ack.rate);
        let message = format!("the ACKs of a full download need {ack}, and the line has {}", around.rate);
        root.error("ack", message, Some("a larger factor, or a fixed rate".into()));
        return None;
    }
    if !complete || !names_are_unique(&read) {
        return None;
    }
    if read.is_empty() {
        root.missing("class");
        return None;
    }
    // Each reports its own errors, so that all errors of a file are reported at once.
    let rates = check_rates(&read, around);
    let default = default_class(scheduler, &read);
    let rules = rules_of(root, &read, ack.is_some());
    let ((), default, rules) = (rates?, default?, rules?);
    warn_of_the_unreached(&read, &rules, &default);
    if around.form == Form::Priority {
        warn_of_equal_priorities(&read);
    }
    let classes: Vec<Class> = read.iter().map(|(class, _)| class.clone()).collect();
    let queue = tree(&read, &classes, &rules, &default, around, root)?;
    Some(Sharing { ack, classes, rules, kind: around.form.name().to_owned(), queue })
}

fn minus(all: BitRate, part: BitRate) -> Option<BitRate> {
    BitRate::from_bps(all.as_bps().checked_sub(part.as_bps())?)
}

/// The class of `table`. `left` is what the ACK class leaves, `ceiling` the least ceiling from the class up, if any.
fn class(
    table: &Table<'_>,
    around: &Around,
    (left, ceiling): (Option<BitRate>, Option<BitRate>),
    inner: &BTreeSet<String>,
) -> Option<Class> {
    let name = table.name("name");
    let parent = table.optional_name("parent");
    let form = around.form;
    if parent.is_some() && !form.has_tree() {
        table.error("parent", "a class above another with a scheduler that knows no such thing", None);
        return None;
    }
    let given: Option<Portion> = table.optional("rate");
    let rate = match (given, left) {
        (Some(Portion::Rate(rate)), _) => Some(rate),
        (Some(Portion::Share(share)), Some(left)) => portion(Some(Portion::Share(share)), left),
        // The ACK class takes everything; an error there reports it.
        (Some(Portion::Share(_)), None) => Some(around.rate),
        (None, _) => None,
    };
    if given.is_none() && !table.has("rate") && form != Form::Priority {
        table.missing("rate");
        return None;
    }
    if table.has("rate") && form == Form::Priority {
        table.warning("rate", "a rate with a scheduler by priority alone, which guarantees none", None);
    }
    if given.is_some() && rate.is_none() {
        table.error("rate", format!("{}: less than a bit per second", table.path("rate")), None);
    }
    let ceil = if table.has("ceil") { portion(table.optional("ceil"), around.rate) } else { Some(around.rate) };
    let priority = priority(table);
    let (burst, cburst) = (burst(table, "burst", around)?, burst(table, "cburst", around)?);
    let name = name?;
    let packet = if table.has("packet") { table.optional("packet")? } else { around.largest };
    let delay = delay(table, packet, around)?;
    let queue = if inner.contains(&name) {
        if delay.is_some() {
            table.error("delay", "a delay of a class with classes below it, which takes no packets itself", None);
        }
        if table.has("queue") {
            table.error("queue", "a queue in a class with classes below it, which takes no packets itself", None);
        }
        None
    } else {
        Some(queue_of(table, "queue", ceiling, around)?)
    };
    let (ceil, priority) = (ceil?, priority?);
    form.warn((table, &["ceil", "priority", "burst", "cburst"]), (ceil, rate), (around.rate, around.drains));
    if let Some(rate) = rate.filter(|rate| *rate > ceil && left.is_some()) {
        let message = format!("{}: a ceil of {ceil} is below the rate of {rate}", table.path("ceil"));
        table.error("ceil", message, None);
        return None;
    }
    let rate = if form == Form::Priority { None } else { Some(rate?) };
    let ceil = form.ceiling(ceil, rate).unwrap_or(around.rate);
    Some(Class { name, parent, rate, ceil, delay, priority, burst, cburst, queue })
}

/// The promise of a class to packets of `size`: only HFSC gives one. The outer `None` is an error.
pub(super) fn delay(table: &Table<'_>, size: ByteCount, around: &Around) -> Option<Option<Promise>> {
    if around.form != Form::Hfsc && table.has("delay") {
        let hint = "the scheduler kind \"hfsc\" gives delays";
        table.error("delay", "a delay with a scheduler that promises none", Some(hint.into()));
        return None;
    }
    let promise = |time| Promise { time, packet: around.layer.on_wire(size) };
    Some(table.optional("delay").map(promise))
}

/// The burst of a class: the largest packet unless the file has another, which lets that packet pass.
pub(super) fn burst(table: &Table<'_>, key: &'static str, around: &Around) -> Option<WireBytes> {
    let largest = around.largest_wire();
    let burst = match table.optional(key) {
        None => return Some(largest),
        Some(Burst::Bytes(burst)) if burst < largest => burst,
        Some(Burst::Bytes(burst)) => return Some(burst),
        Some(Burst::Time(time)) => {
            let bits = u128::from(around.rate.as_bps()) * u128::from(time.as_ps()) / PS_PER_S;
            return Some(WireBytes::new(u64::try_from(bits / 8).unwrap_or(u64::MAX)).max(largest));
        }
    };
    let path = table.path(key);
    let message = format!("{path}: a burst of {burst} is smaller than the largest packet, which takes {largest}");
    table.error(key, message, Some("such a packet would never depart in time".into()));
    None
}

const PS_PER_S: u128 = 1_000_000_000_000;

pub(super) fn priority(table: &Table<'_>) -> Option<u8> {
    table.get::<u64>("priority").and_then(|priority| u8::try_from(priority).ok())
}

/// A share of `whole`, or a rate.
pub(super) fn portion(portion: Option<Portion>, whole: BitRate) -> Option<BitRate> {
    match portion? {
        Portion::Rate(rate) => Some(rate),
        Portion::Share(share) => share.of_rate(whole),
    }
}

/// The queue at `key`, or a FIFO of `limit`, of a class with this ceiling.
pub(super) fn queue_of(table: &Table<'_>, key: &'static str, ceil: Option<BitRate>, around: &Around) -> Option<Spec> {
    let wire = &around.wire().shaped_to(ceil);
    if let Some(queue) = table.table(key) {
        if table.has("limit") {
            let hint = format!("put limit into {}", table.path(key));
            table.error("limit", format!("both limit and {key}, which has its own"), Some(hint));
        }
        return queue::read(queue, wire).map(|queue| around.patient(queue));
    }
    let limit = queue::limit_of(table, "limit", wire)?;
    let spec = Spec::Fifo(fifo::Config { limit, drop: lastmile_queueing::Overflow::Tail });
    queue::checked_at(table, "limit", &spec, &wire.layer)
}

fn names_are_unique(read: &[(Class, Table<'_>)]) -> bool {
    let mut seen = BTreeSet::new();
    let mut unique = true;
    for (class, table) in read {
        if class.name == ROOT {
            let message = format!("a class is called {ROOT:?}, which is the name of the line itself");
            table.error("name", message, None);
            unique = false;
        }
        if !seen.insert(&class.name) {
            table.error("name", format!("a second class is called {:?}", class.name), None);
            unique = false;
        }
    }
    unique
}

/// Checks that the line has the guaranteed rates: an error names the class whose guarantee exceeds the rest.
fn check_rates(read: &[(Class, Table<'_>)], around: &Around) -> Option<()> {
    let mut sum = 0;
    for (class, table) in read.iter().filter(|(class, _)| class.parent.is_none()) {
        sum += class.rate.map_or(0, BitRate::as_bps);
        let Some(guaranteed) = BitRate::from_bps(sum) else { continue };
        if guaranteed > around.rate {
            let message = format!(
                "with class {:?} {guaranteed} are guaranteed, and the line has {}: the guarantees would not hold",
                class.name, around.rate
            );
            table.error("rate", message, Some("lower a rate; percentages are of what the ACK class leaves".into()));
            return None;
        }
    }
    Some(())
}

fn default_class(scheduler: &Table<'_>, read: &[(Class, Table<'_>)]) -> Option<String> {
    let leaves = || read.iter().filter(|(class, _)| class.queue.is_some()).map(|(class, _)| class.name.as_str());
    if let Some(name) = scheduler.optional_name("default") {
        return known_leaf(scheduler, "default", &name, read).then_some(name);
    }
    let found = leaves().find(|name| *name == "default").or_else(|| leaves().next_back());
    if found.is_none() {
        scheduler.error("default", "every class has classes below it: none takes packets", None);
    }
    found.map(str::to_owned)
}

/// True if `name` is a class that takes packets.
fn known_leaf(table: &Table<'_>, key: &'static str, name: &str, read: &[(Class, Table<'_>)]) -> bool {
    let known = || read.iter().map(|(class, _)| class.name.as_str());
    match read.iter().find(|(class, _)| class.name == name) {
        Some((class, _)) if class.queue.is_some() => true,
        Some(_) => {
            table.error(key, format!("class {name:?} has classes below it, and takes no packets itself"), None);
            false
        }
        None => {
            let hint = did_you_mean(name, known())
                .unwrap_or_else(|| format!("known: {}", known().collect::<Vec<_>>().join(", ")));
            let message = format!("no class is called {name:?}: its packets would have nowhere to go");
            table.error(key, message, Some(hint));
            false
        }
    }
}

fn rules_of(root: &Table<'_>, read: &[(Class, Table<'_>)], has_ack: bool) -> Option<Vec<Rule>> {
    let mut rules = Vec::new();
    if let Some((class, _)) = read.first().filter(|_| has_ack) {
        rules.push(Rule { class: class.name.clone(), matches: Match::PureAck, last: false });
    }
    let mut complete = true;
    for item in root.tables("rule") {
        let table = item.open(&schema::RULE);
        let (name, last) = (table.name("class"), table.get("final"));
        let matches = match table.table("match") {
            Some(condition) => matching(condition),
            None if table.has("match") => None,
            None => Some(Match::Any),
        };
        let name = name.filter(|name| known_leaf(&table, "class", name, read));
        match (name, matches, last) {
            (Some(class), Some(matches), Some(last)) => rules.push(Rule { class, matches, last }),
            _ => complete = false,
        }
    }
    complete.then_some(rules)
}

fn warn_of_the_unreached(read: &[(Class, Table<'_>)], rules: &[Rule], default: &str) {
    for (class, table) in read.iter().filter(|(class, _)| class.queue.is_some()) {
        if class.name != default && !rules.iter().any(|rule| rule.class == class.name) {
            let message = format!("no rule leads to class {:?}: it will never have a packet", class.name);
            table.warning("name", message, None);
        }
    }
}

fn warn_of_equal_priorities(read: &[(Class, Table<'_>)]) {
    for (number, (class, table)) in read.iter().enumerate() {
        if let Some((first, _)) = read[..number].iter().find(|(first, _)| first.priority == class.priority) {
            let message = format!(
                "{:?} has the priority of {:?}, which goes first whenever it has a packet",
                class.name, first.name
            );
            let hint = "different priorities, or a kind of scheduler that divides the rate, such as \"htb\"";
            table.warning("priority", message, Some(hint.into()));
        }
    }
}

/// The tree of disciplines, or an error at the class that keeps it from being built.
fn tree(
    read: &[(Class, Table<'_>)],
    classes: &[Class],
    rules: &[Rule],
    default: &str,
    around: &Around,
    root: &Table<'_>,
) -> Option<Spec> {
    let (largest, largest_wire) = (around.largest, around.largest_wire());
    let plan = Plan { classes, default, rate: around.rate, largest, largest_wire };
    let layer = &around.layer;
    let queue = match around.form {
        Form::Htb => {
            let config = plan.htb();
            tell(config.check(layer), read, root)?;
            Spec::Htb(config)
        }
        Form::Cbq => {
            let config = plan.cbq();
            tell(config.check(layer), read, root)?;
            Spec::Cbq(config)
        }
        Form::Hfsc => {
            let config = hfsc(&plan, read)?;
            tell(config.check(), read, root)?;
            Spec::Hfsc(config)
        }
        Form::Custom => plan.custom(),
        Form::Priority | Form::None => plan.priority(),
    };
    let number = |name: &str| {
        let at = classes.iter().position(|class| class.name == name);
        at.and_then(|at| u16::try_from(at).ok())
    };
    let names = classes.iter().map(|class| class.name.clone()).collect();
    let rules = rules
        .iter()
        .map(|rule| {
            let class = number(&rule.class)?;
            Some(rules::Rule { matches: rule.matches.clone(), class, last: rule.last })
        })
        .collect::<Option<Vec<_>>>()?;
    let spec = Spec::Rules(rules::Config { rules, otherwise: number(default)?, names, queue: Box::new(queue) });
    queue::tree::within(root, "class", &spec, Some(around.rate))?;
    if let Err(error) = spec.build::<Meta>(layer) {
        root.error("class", error.problem.to_string(), None);
        return None;
    }
    Some(spec)
}

/// The curves of the classes, or an error at the one whose delay no line could keep.
fn hfsc(plan: &Plan<'_>, read: &[(Class, Table<'_>)]) -> Option<hfsc::Config> {
    match plan.hfsc() {
        Ok(config) => Some(config),
        Err(number) => {
            let (class, table) = &read[number];
            let Promise { time, packet } = class.delay?;
            table.error("delay", format!("a packet of {packet} within {time}: faster than any line"), None);
            None
        }
    }
}

/// Says what is wrong with a tree at the class that is at fault.
fn tell(checked: Result<(), TreeError>, read: &[(Class, Table<'_>)], root: &Table<'_>) -> Option<()> {
    let Err(error) = checked else { return Some(()) };
    let at = match &error {
        TreeError::Class { class, .. } => read.iter().find(|(known, _)| known.name == *class),
        _ => None,
    };
    match (at, &error) {
        (Some((_, table)), TreeError::Class { wrong: Wrong::Circle, .. }) => {
            let hint = "none of them would ever send; a class on the line has no parent";
            table.error("parent", error.to_string(), Some(hint.into()));
        }
        (Some((_, table)), TreeError::Class { wrong: Wrong::UnknownParent(_), .. }) => {
            table.error("parent", error.to_string(), None);
        }
        (Some((_, table)), _) => table.error("rate", error.to_string(), None),
        (None, _) => root.error("class", error.to_string(), None),
    }
    None
}

/// The queue before a direction that nothing shapes: no packet waits there.
pub(super) fn unshaped() -> Spec {
    Spec::fifo(1000)
}

/// A policy knows its line. CAKE's times allow for slow packets only where it knows the rate.
pub(super) fn with_bandwidth(mut queue: Spec, rate: BitRate) -> Spec {
    if let Spec::Cake(cake) = &mut queue {
        cake.bandwidth.get_or_insert(rate);
    }
    queue
}
