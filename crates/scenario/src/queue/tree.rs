//! Schedulers that share a link by a tree of named classes: CBQ and HTB.

use core::iter;
use std::collections::{BTreeMap, BTreeSet};

use lastmile_queueing::sched::tree::{self, Rule, Tree, TreeError, Wrong};
use lastmile_queueing::sched::{cbq, hfsc, htb};
use lastmile_queueing::spec::{Problem, Spec};
use lastmile_units::{BitRate, ByteCount, Duration, Limit, WireBytes};

use super::matching::matching;
use super::{BELOW, CLASS_LIMIT, DROP, Readable, Wire, below};
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};
use crate::value::Portion;

pub(super) const CLASSES: Key = Key::required(
    "classes",
    Kind::Tables("the classes below"),
    "The classes, in any order, each with the name of its parent.",
);
const LARGEST: Key = Key::with_default("largest", Kind::Bytes, "1500 B", "The largest IP packet to expect.")
    .at_least("1 B")
    .at_most("65535 B");
pub(super) const NAME: Key = Key::required("name", Kind::Text, "Its name, by which others refer to it.");
pub(super) const PARENT: Key =
    Key::optional("parent", Kind::Text, "none: it is below the link", "The name of the class above.");
const PRIORITY: Key =
    Key::with_default("priority", Kind::Count, "0", "Order of service: 0, the most urgent, to 7.").at_most("7");
pub(super) const MATCH: Key = Key::optional(
    "match",
    Kind::Table("[matches](#matches)"),
    "no packet",
    "Which packets belong to it; the first class in the list that matches has the packet.",
);

static CBQ_CLASS: Section = Section {
    heading: "`classes` of `kind = \"cbq\"`",
    about: "A class of CBQ. One that is the parent of another has neither a queue nor a match.",
    keys: &[
        NAME,
        PARENT,
        Key::required(
            "share",
            Kind::Other("share or rate", &[Kind::Share, Kind::Rate]),
            "Guarantee: a share of the whole link, at every depth, such as \"40 %\"; or a rate.",
        ),
        Key::with_default(
            "borrow",
            Kind::Flag,
            "true",
            "Whether it may use the rate that others leave; if not, it \
                           is bounded.",
        ),
        Key::with_default("isolated", Kind::Flag, "false", "Whether others may not use the rate that it leaves."),
        PRIORITY,
        Key::optional("burst", Kind::WireBytes, "20 packets of `largest`", "Burst after a pause."),
        MATCH,
        BELOW,
        CLASS_LIMIT,
        DROP,
    ],
};

static HTB_CLASS: Section = Section {
    heading: "`classes` of `kind = \"htb\"`",
    about: "A class of HTB. One that is the parent of another has neither a queue nor a match.",
    keys: &[
        NAME,
        PARENT,
        Key::required("rate", Kind::Rate, "Guaranteed rate. Classes below share it."),
        Key::optional("ceil", Kind::Rate, "its rate", "Its largest rate; no effect in a class without a parent."),
        Key::optional(
            "burst",
            Kind::WireBytes,
            "one packet of `largest`",
            "Burst after a pause, at the speed of `ceil`.",
        ),
        Key::optional(
            "cburst",
            Kind::WireBytes,
            "one packet of `largest`",
            "Burst after a pause at the speed of the line; where `ceil` is the rate, no burst is larger.",
        ),
        PRIORITY,
        Key::optional(
            "quantum",
            Kind::WireBytes,
            "by `r2q`, 1000 to 200000",
            "Bytes that it sends in a turn among classes of its priority.",
        ),
        MATCH,
        BELOW,
        CLASS_LIMIT,
        DROP,
    ],
};

impl Readable for cbq::Config {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"cbq\"`",
        about: "Class-based queueing: each class has a share of the link, and borrows what others leave unless it \
                is bounded.",
        keys: &[
            Key::required("rate", Kind::Rate, "Rate of the link on the wire, of which shares are shares."),
            CLASSES,
            Key::optional(
                "default",
                Kind::Text,
                "the last class that takes packets",
                "The class of packets that no class matches.",
            ),
            LARGEST,
        ],
    };
    const PARTS: &'static [&'static Section] = &[&CBQ_CLASS];

    fn read(table: &Table<'_>, wire: &Wire, depth: usize) -> Option<Self> {
        let rate: Option<BitRate> = table.get("rate");
        let largest: Option<ByteCount> = table.get("largest");
        let share = |class: &Table<'_>| {
            let share: Option<Portion> = class.get("share");
            let (borrow, isolated) = (class.get("borrow"), class.get("isolated"));
            let (priority, burst) = (priority(class), class.optional("burst"));
            let share = match share? {
                Portion::Share(share) => cbq::Portion::Share(share),
                Portion::Rate(rate) => cbq::Portion::Rate(rate),
            };
            Some(cbq::Share { share, borrow: borrow?, isolated: isolated?, priority: priority?, burst })
        };
        let items = items(table, &CBQ_CLASS);
        // A class that borrows may have all that the line sends.
        let wire = &Wire { rate: wire.rate.or(rate), ..*wire };
        let bounded = ceilings(&items, |class| match (class.get("share")?, class.get("borrow")?) {
            (_, true) => None,
            (Portion::Share(share), false) => share.of_rate(rate?),
            (Portion::Rate(rate), false) => Some(rate),
        });
        let tree = classes(table, &items, (share, &bounded), wire, depth);
        let config = Self { tree: tree?, rate: rate?, largest: largest? };
        checked(table, &items, &config.tree, config.check(&wire.layer), "share")?;
        Some(config)
    }
}

impl Readable for htb::Config {
    const SECTION: &'static Section = &Section {
    heading: "`kind = \"htb\"`",
    about: "Hierarchical token bucket: each class has a guaranteed rate and a ceiling, and borrows in between. \
            Sizes are those on the wire.",
    keys: &[
        CLASSES,
        Key::optional("default", Kind::Text, "none: they depart first and unshaped", "The class of packets that no \
                       class matches."),
        LARGEST,
        Key::with_default(
            "r2q",
            Kind::Count,
            "10",
            "A class without a quantum has its rate in bytes a second by this.",
        )
        .at_least("1")
        .at_most("1000000"),
        Key::with_default(
            "hysteresis",
            Kind::Flag,
            "false",
            "Classes change their mode a burst late, as `htb_hysteresis` of Linux.",
        ),
        Key::with_default(
            "timer",
            Kind::Time,
            "0 ms",
            "Tick of the clock by which classes that wait for tokens are looked at again: \"10 ms\" as Linux 2.4 at \
             100 Hz; \"0 ms\" is exact.",
        )
        .at_most("1 s"),
        Key::with_default(
            "direct_limit",
            Kind::Limit,
            "1000 packets",
            "Largest backlog of packets without a class, in packets.",
        ),
    ],
};
    const PARTS: &'static [&'static Section] = &[&HTB_CLASS];

    fn read(table: &Table<'_>, wire: &Wire, depth: usize) -> Option<Self> {
        let largest: Option<ByteCount> = table.get("largest");
        let r2q: Option<u64> = table.get("r2q");
        let hysteresis: Option<bool> = table.get("hysteresis");
        let timer: Option<Duration> = table.get("timer");
        let direct_limit: Option<Limit> = table.get("direct_limit");
        let share = |class: &Table<'_>| {
            let (rate, ceil): (Option<BitRate>, Option<BitRate>) = (class.get("rate"), class.optional("ceil"));
            let wire = |key| -> Option<WireBytes> { class.optional(key) };
            let (burst, cburst, quantum) = (wire("burst"), wire("cburst"), wire("quantum"));
            let priority = priority(class);
            Some(htb::Share { rate: rate?, ceil, burst, cburst, priority: priority?, quantum })
        };
        let items = items(table, &HTB_CLASS);
        let ceilings = ceilings(&items, |class| {
            let ceil = class.optional("ceil").filter(|_| class.has("parent"));
            ceil.or_else(|| class.optional("rate"))
        });
        warn_of_ceilings(&items);
        if let Some(largest) = largest {
            warn_of_bursts(&items, wire.layer.on_wire(largest));
        }
        let tree = classes(table, &items, (share, &ceilings), wire, depth);
        let Limit::Packets(direct_limit) = direct_limit? else {
            let message =
                format!("{}: a limit in packets is expected, such as \"1000 packets\"", table.path("direct_limit"));
            table.error("direct_limit", message, None);
            return None;
        };
        let r2q = u32::try_from(r2q?).ok()?;
        let (hysteresis, timer) = (hysteresis?, timer?);
        let config = Self { tree: tree?, largest: largest?, r2q, hysteresis, timer, direct_limit };
        checked(table, &items, &config.tree, config.check(&wire.layer), "rate")?;
        if config.tree.rules.is_empty() && config.tree.default.is_none() {
            let message = format!("{}: no class matches a packet, so that all depart unshaped", table.path("classes"));
            let leaf = config.tree.classes.iter().rfind(|class| class.queue.is_some());
            let hint = leaf.map(|leaf| format!("default = {:?}", leaf.name));
            table.warning("classes", message, hint);
        }
        Some(config)
    }
}

/// Warns of ceilings of classes without a parent, which have nobody to borrow from.
fn warn_of_ceilings(items: &[Table<'_>]) {
    for class in items.iter().filter(|class| !class.has("parent")) {
        let (rate, ceil): (Option<BitRate>, Option<BitRate>) = (class.optional("rate"), class.optional("ceil"));
        if let Some(rate) = rate.filter(|rate| ceil.is_some_and(|ceil| ceil > *rate)) {
            let message = format!(
                "{}: no effect in a class without a parent, which has nobody to borrow from and sends at its rate of \
                 {rate}",
                class.path("ceil")
            );
            class.warning("ceil", message, Some("a larger rate, or a class above it with one".into()));
        }
    }
}

/// Warns of bursts beyond that of a ceiling which is the rate. `packet` is the burst of a ceiling without one.
fn warn_of_bursts(items: &[Table<'_>], packet: WireBytes) {
    for class in items {
        let (rate, ceil): (Option<BitRate>, Option<BitRate>) = (class.optional("rate"), class.optional("ceil"));
        let (burst, cburst): (Option<WireBytes>, Option<WireBytes>) =
            (class.optional("burst"), class.optional("cburst"));
        let cburst = cburst.unwrap_or(packet);
        if ceil.is_none_or(|ceil| Some(ceil) == rate) && burst.is_some_and(|burst| burst > cburst) {
            let message = format!(
                "{}: no effect beyond cburst, {cburst}, since the ceil of the class is its rate",
                class.path("burst")
            );
            class.warning("burst", message, Some("a larger cburst, or a larger ceil".into()));
        }
    }
}

/// Says at `key` if classes are promised more than the line has, or the shaper or class above them. `rate` is that of
/// the line.
pub(crate) fn within(table: &Table<'_>, key: &'static str, spec: &Spec, rate: Option<BitRate>) -> Option<()> {
    let mut waiting = vec![(spec, rate)];
    while let Some((spec, available)) = waiting.pop() {
        if let Some(Err(problem)) = available.map(|available| spec.check_link(available)) {
            let of = if available == rate { "" } else { ", the rate of the shaper or class above" };
            let hint = if let Problem::Tree(error) = &problem { consequence(error) } else { None };
            table.error(key, format!("{}: {problem}{of}", table.path(key)), hint);
            return None;
        }
        waiting.extend(below_at(spec, available));
    }
    Some(())
}

/// The queues right below, each with what it has of `rate`.
fn below_at(spec: &Spec, rate: Option<BitRate>) -> Vec<(&Spec, Option<BitRate>)> {
    let least = |own: Option<BitRate>| own.into_iter().chain(rate).min();
    match spec {
        Spec::Tbf(shaper) => vec![(&shaper.queue, least(Some(shaper.config.rate)))],
        Spec::Htb(config) => {
            let most = |class: &tree::Class<htb::Share>| {
                Some(class.share.ceil.filter(|_| class.parent.is_some()).unwrap_or(class.share.rate))
            };
            leaves(&config.tree, most).into_iter().map(|(_, queue, ceiling)| (queue, least(ceiling))).collect()
        }
        Spec::Cbq(config) => {
            let most = |class: &tree::Class<cbq::Share>| match class.share.share {
                _ if class.share.borrow => None,
                cbq::Portion::Share(share) => share.of_rate(config.rate),
                cbq::Portion::Rate(rate) => Some(rate),
            };
            leaves(&config.tree, most).into_iter().map(|(_, queue, ceiling)| (queue, least(ceiling))).collect()
        }
        Spec::Hfsc(config) => {
            let most = |class: &tree::Class<hfsc::Share>| class.share.upper_limit.map(|limit| limit.rate);
            // A guarantee passes the upper limits, and nothing else serves a leaf without a share.
            let passed = |leaf: &hfsc::Share, ceiling: Option<BitRate>| match leaf {
                hfsc::Share { real_time: Some(curve), link_share: None, .. } => Some(curve.rate),
                hfsc::Share { real_time: Some(curve), .. } => ceiling.map(|ceiling| curve.rate.max(ceiling)),
                _ => ceiling,
            };
            let leaves = leaves(&config.tree, most).into_iter();
            leaves.map(|(leaf, queue, ceiling)| (queue, least(passed(&leaf.share, ceiling)))).collect()
        }
        other => other.below().into_iter().map(|below| (below, rate)).collect(),
    }
}

/// The leaves of a tree and their queues, each with the least rate that `most` gives for its class and those above.
fn leaves<'a, S>(
    tree: &'a Tree<S>,
    most: impl Fn(&tree::Class<S>) -> Option<BitRate>,
) -> Vec<(&'a tree::Class<S>, &'a Spec, Option<BitRate>)> {
    let named: BTreeMap<&str, &tree::Class<S>> = tree.classes.iter().map(|class| (&*class.name, class)).collect();
    let above =
        |leaf| iter::successors(Some(leaf), |class: &&'a tree::Class<S>| named.get(class.parent.as_deref()?).copied());
    let leaf = |leaf: &'a tree::Class<S>| Some((leaf, leaf.queue.as_ref()?, above(leaf).filter_map(&most).min()));
    tree.classes.iter().filter_map(leaf).collect()
}

fn priority(class: &Table<'_>) -> Option<u8> {
    class.get::<u64>("priority").and_then(|priority| u8::try_from(priority).ok())
}

/// Says what is wrong with a tree at the key that is at fault; `guarantee` is the key of what a class has for itself.
pub(super) fn checked<S>(
    table: &Table<'_>,
    items: &[Table<'_>],
    tree: &Tree<S>,
    check: Result<(), TreeError>,
    guarantee: &'static str,
) -> Option<()> {
    let Err(error) = check else { return Some(()) };
    let class = |name: &str| tree.classes.iter().rposition(|class| class.name == name).and_then(|at| items.get(at));
    let (at, key) = match &error {
        TreeError::Class { class: name, wrong } => {
            class(name).map_or((table, "classes"), |item| (item, key_of(wrong, guarantee)))
        }
        // Rules stand in the classes that they lead to.
        TreeError::Unknown(_) | TreeError::NoLeaf(_) => (table, "default"),
        TreeError::Count(_)
        | TreeError::MoreThanLink { .. }
        | TreeError::SharesOfMore { .. }
        | TreeError::RealTime { .. } => (table, "classes"),
    };
    at.error(key, format!("{}: {error}", at.path(key)), consequence(&error));
    None
}

fn key_of(wrong: &Wrong, guarantee: &'static str) -> &'static str {
    match wrong {
        Wrong::NoName | Wrong::NameTwice => "name",
        Wrong::UnknownParent(_) | Wrong::Circle | Wrong::TooDeep => "parent",
        Wrong::QueueOfInner | Wrong::NoQueue => "queue",
        Wrong::Priority(_) => "priority",
        Wrong::CeilBelowRate { .. } => "ceil",
        Wrong::MoreThanRate { .. } | Wrong::NoShare => guarantee,
        Wrong::BurstTooSmall { .. } => "burst",
        Wrong::CeilBurstTooSmall { .. } => "cburst",
        Wrong::ZeroQuantum => "quantum",
        Wrong::NoCurve | Wrong::InnerWithoutShare => "ls",
        Wrong::RealTimeOfInner => "rt",
        Wrong::LimitWithoutShare => "ul",
        Wrong::EmptyPiece => "name",
    }
}

/// The consequence, as a hint.
fn consequence(error: &TreeError) -> Option<String> {
    let hint = match error {
        TreeError::MoreThanLink { .. }
        | TreeError::RealTime { .. }
        | TreeError::Class { wrong: Wrong::MoreThanRate { .. }, .. } => {
            "when all classes have packets, the guarantees would not hold; lower one of them"
        }
        TreeError::Class { wrong: Wrong::BurstTooSmall { .. } | Wrong::CeilBurstTooSmall { .. }, .. } => {
            "such a packet would never depart in time"
        }
        TreeError::Class { wrong: Wrong::Circle, .. } => {
            "none of them would ever send; a class on the link has no parent"
        }
        TreeError::Unknown(_) => "what no class matches would have nowhere to go",
        _ => return None,
    };
    Some(hint.into())
}

/// The tables of the classes.
pub(super) fn items<'d>(table: &Table<'d>, section: &'static Section) -> Vec<Table<'d>> {
    if !table.has("classes") {
        table.missing("classes");
    }
    table.tables("classes").into_iter().map(|item| item.open(section)).collect()
}

/// The ceiling of each class: the least of its `own` and of those above it.
pub(crate) fn ceilings(items: &[Table<'_>], own: impl Fn(&Table<'_>) -> Option<BitRate>) -> Vec<Option<BitRate>> {
    let own: Vec<Option<BitRate>> = items.iter().map(own).collect();
    let numbered = items.iter().zip(0..);
    let numbers: BTreeMap<String, usize> = numbered.filter_map(|(class, n)| Some((class.name("name")?, n))).collect();
    let parent = |class: &Table<'_>| numbers.get(&class.optional_name("parent")?).copied();
    let parents: Vec<Option<usize>> = items.iter().map(parent).collect();
    // The check of the tree refuses parents that lead round in a circle, and deeper trees.
    let above = |class| iter::successors(Some(class), |class: &usize| parents[*class]).take(tree::MAX_DEPTH);
    (0..items.len()).map(|class| above(class).filter_map(|class| own[class]).min()).collect()
}

/// The classes of a tree, with `share` for what its scheduler wants to know of each, and their ceilings.
pub(super) fn classes<S>(
    table: &Table<'_>,
    items: &[Table<'_>],
    (share, ceilings): (impl Fn(&Table<'_>) -> Option<S>, &[Option<BitRate>]),
    wire: &Wire,
    depth: usize,
) -> Option<Tree<S>> {
    let parents: Vec<Option<String>> = items.iter().map(|class| class.optional_name("parent")).collect();
    let inner: BTreeSet<&String> = parents.iter().flatten().collect();
    let default = table.optional_name("default");
    let mut tree = Tree { classes: Vec::new(), rules: Vec::new(), default };
    // The check of the tree refuses one without classes.
    let mut complete = table.has("classes");
    for ((class, parent), ceiling) in items.iter().zip(&parents).zip(ceilings) {
        let (name, share) = (class.name("name"), share(class));
        let matches = class.table("match").map(matching);
        let queue = if name.as_ref().is_some_and(|name| inner.contains(name)) {
            for key in ["match", "queue", "limit", "drop"] {
                if class.has(key) {
                    let message = format!("{key} of a class with classes below it, which takes no packets itself");
                    class.error(key, message, None);
                    complete = false;
                }
            }
            None
        } else {
            let queue = below(class, &wire.shaped_to(*ceiling).within(), depth);
            complete &= queue.is_some();
            queue
        };
        let (Some(name), Some(share)) = (name, share) else {
            complete = false;
            continue;
        };
        match matches {
            Some(Some(matches)) => tree.rules.push(Rule { matches, class: name.clone() }),
            Some(None) => complete = false,
            None => complete &= !class.has("match"),
        }
        tree.classes.push(tree::Class { name, parent: parent.clone(), share, queue });
    }
    complete.then_some(tree)
}
