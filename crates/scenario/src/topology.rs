//! Nodes and links, and the one question about them: is there exactly one way from each node to each other?
//!
//! Packets take the path with the fewest links. Where there are two ways, which one they take would hang on a
//! tie, or on a link that someone adds elsewhere, and links would stand idle unnoticed. So a loop of links is
//! an error. One-way links may well form a ring (a satellite down, a telephone line up): there is still one
//! way from each node to each other.

use core::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lastmile_linklayer::preset;
use lastmile_model::{Hop, Link, Node, NodeIndex};
use lastmile_units::Duration;

use crate::atm::Settings;
use crate::atm::circuits;
use crate::atm::link::{CELL_BACK, CELL_LINK, CellLine};
use crate::atm::switch::{self, SWITCH, Switch};
use crate::diagnostics::did_you_mean;
use crate::impairments;
use crate::line::{self, Defaults, Inherited};
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};
use crate::tcp::Mtu;
use crate::{grants, trace};

pub(crate) static NODE: Section = Section {
    heading: "`[[node]]`",
    about: "A host or router. Nodes that links name are there without being listed; list one to give it a \
            processing delay.",
    keys: &[
        Key::required("name", Kind::Text, "Name, unique."),
        Key::with_default(
            "processing",
            Kind::Time,
            "0 ms",
            "Constant delay of a packet that is forwarded or received here.",
        )
        .at_most("10 s"),
    ],
};

/// The keys of every link, of packets or of cells.
pub(crate) const NAME: Key = Key::optional(
    "name",
    Kind::Text,
    "`from-to`; the way back is `to-from`",
    "Name, unique. The way back is called `name-back`.",
);
pub(crate) const FROM: Key = Key::required("from", Kind::Text, "Node at the near end.");
pub(crate) const TO: Key = Key::required("to", Kind::Text, "Node at the far end.");

pub(crate) static LINK: Section = Section {
    heading: "`[[link]]`",
    about: "A link between two nodes, both ways unless `one_way` says otherwise. The way back has the same rate, \
            delay, loss, \
            encapsulation and queue, unless `back` gives its own. Between any two nodes there is one way: a loop of \
            links is an error. \
            (One-way links may form a ring, such as a satellite down and a telephone line up.)",
    keys: &[
        NAME,
        FROM,
        TO,
        Key::with_default("one_way", Kind::Flag, "false", "No way back."),
        line::RATE,
        trace::TRACE,
        grants::GRANTS,
        line::DELAY,
        impairments::LOSS,
        impairments::JITTER,
        impairments::REORDER,
        impairments::DUPLICATE,
        impairments::BIT_ERROR_RATE,
        line::ENCAPSULATION,
        line::MTU,
        Key::optional(
            "framing",
            Kind::Choice(&["none", "atm"]),
            "as `encapsulation` says",
            "Short for `encapsulation = \"ip\"` (none) and `\"aal5\"` (atm).",
        ),
        line::OAM,
        line::COMPRESSION,
        line::SLOTS,
        line::QUEUE,
        line::back("`[link.back]`"),
    ],
};

pub(crate) static BACK: Section = Section {
    heading: "`[link.back]`",
    about: "Other values for the way back of a link. Keys that are left out have the values of the way there.",
    keys: &[
        line::RATE,
        Key::optional("trace", Kind::Table("`trace = { ... }`"), "as there, unless `rate` is given", trace::TRACE.doc),
        grants::GRANTS,
        Key::optional("delay", Kind::Time, "as there", line::DELAY.doc).at_most(line::MAX_DELAY),
        Key::optional("loss", impairments::LOSS.kind, "as there", impairments::LOSS.doc),
        Key::optional("jitter", impairments::JITTER.kind, "as there", impairments::JITTER.doc),
        Key::optional("reorder", impairments::REORDER.kind, "as there", impairments::REORDER.doc),
        Key::optional("duplicate", impairments::DUPLICATE.kind, "as there", impairments::DUPLICATE.doc),
        Key::optional("bit_error_rate", impairments::BIT_ERROR_RATE.kind, "as there", impairments::BIT_ERROR_RATE.doc),
        line::ENCAPSULATION,
        line::MTU,
        line::OAM,
        line::COMPRESSION,
        line::SLOTS,
        Key::optional("queue", Kind::Table("queues"), "as there", line::QUEUE.doc),
    ],
};

/// Most nodes of a network: looking for loops takes time in proportion to their square.
const MOST_NODES: usize = 4096;

/// Nodes and links as they are gathered.
#[derive(Default)]
pub(crate) struct Topology<'d> {
    pub(crate) nodes: Vec<Node>,
    pub(crate) links: Vec<Link>,
    /// The table that each link comes from: for findings about it.
    tables: Vec<Table<'d>>,
    /// The links that carry cells, and their settings.
    pub(crate) cells: Vec<(usize, CellLine)>,
    pub(crate) switches: BTreeMap<NodeIndex, Switch>,
    /// Names of switches, those too of which something is wrong.
    switch_names: BTreeSet<String>,
    by_name: BTreeMap<String, NodeIndex>,
    /// Nodes or links are missing because the file has them wrong.
    incomplete: bool,
    /// Whether links lead from one node to another, as far as it was asked.
    leads: RefCell<BTreeMap<(NodeIndex, NodeIndex), bool>>,
}

impl<'d> Topology<'d> {
    /// Adds a node; `None` if one of that name is there.
    pub(crate) fn add_node(&mut self, name: &str, processing: Duration) -> Option<NodeIndex> {
        if self.by_name.contains_key(name) {
            return None;
        }
        let index = self.nodes.len();
        self.nodes.push(Node { name: name.to_owned(), processing });
        self.by_name.insert(name.to_owned(), index);
        Some(index)
    }

    /// The node called `name`, added if it is not there.
    fn node(&mut self, name: &str) -> NodeIndex {
        match self.by_name.get(name) {
            Some(index) => *index,
            None => self.add_node(name, Duration::ZERO).expect("it was not there"),
        }
    }

    /// The node that `key` names, or an error at it.
    pub(crate) fn find(&self, table: &Table<'_>, key: &'static str) -> Option<NodeIndex> {
        let name: String = table.optional(key)?;
        let found = self.by_name.get(&name).copied();
        if found.is_none() && !self.incomplete {
            let names = self.nodes.iter().map(|node| node.name.as_str());
            let hint = did_you_mean(&name, names.clone()).unwrap_or_else(|| {
                let known: Vec<&str> = names.take(12).collect();
                format!("nodes: {}", known.join(", "))
            });
            table.error(key, format!("no node is called {name:?}"), Some(hint));
        }
        found
    }

    /// Something is missing that the file has wrong: what would follow from that is not told.
    pub(crate) fn incomplete(&mut self) {
        self.incomplete = true;
    }

    /// False if nodes or links are missing because the file has them wrong.
    pub(crate) fn is_complete(&self) -> bool {
        !self.incomplete
    }

    /// True if links lead from `from` to `to`, or might, were all links there. Not to be asked before all are read.
    pub(crate) fn leads(&self, from: NodeIndex, to: NodeIndex) -> bool {
        if self.incomplete {
            return true;
        }
        let search = || way(&self.nodes, &self.links, from, to).is_some();
        *self.leads.borrow_mut().entry((from, to)).or_insert_with(search)
    }

    pub(crate) fn add_link(&mut self, link: Link, table: &Table<'d>) {
        self.links.push(link);
        self.tables.push(table.clone());
    }

    /// The classes of the first port that has any.
    pub(crate) fn classes(&self) -> &[String] {
        let ports = self.cells.iter().map(|(_, line)| &line.port.classes);
        ports.into_iter().find(|classes| !classes.is_empty()).map_or(&[], Vec::as_slice)
    }

    /// The least MTU of the links between two nodes, both ways.
    pub(crate) fn mtu(&self, from: NodeIndex, to: NodeIndex) -> Mtu<'_> {
        let ways = [(from, to), (to, from)].map(|(from, to)| way(&self.nodes, &self.links, from, to));
        let links = ways.into_iter().flatten().flatten().map(|link| &self.links[link]);
        let least =
            links.filter_map(|link| Some((link.hop.line.link_layer.mtu()?.get(), link.hop.name.as_str()))).min();
        Mtu { bytes: least.map(|(bytes, _)| bytes), link: least.map_or("", |(_, name)| name) }
    }

    /// Adds an error about a link.
    pub(crate) fn error_at(&self, link: usize, key: &'static str, message: String, hint: &str) {
        self.tables[link].error(key, message, Some(hint.into()));
    }

    /// Reads `[[node]]`, `[[switch]]` and `[[link]]`.
    pub(crate) fn read(&mut self, root: &Table<'d>, settings: &Settings) {
        for node in root.tables("node") {
            let table = node.open(&NODE);
            let processing = table.get("processing");
            let Some(name) = table.name("name") else { continue };
            let Some(processing) = processing else { continue };
            if self.add_node(&name, processing).is_none() {
                table.error("name", format!("a second node is called {name:?}"), None);
            }
        }
        self.read_switches(root);
        for link in root.tables("link") {
            if ["from", "to"].iter().any(|key| self.is_switch(link.text(key))) {
                self.read_cell_link(&link.open(&CELL_LINK), settings);
            } else {
                self.read_link(&link.open(&LINK));
            }
        }
        circuits::check_classes(self);
        self.check_names();
        if self.nodes.len() > MOST_NODES {
            let message = format!("{} nodes are more than a network has: {MOST_NODES}", self.nodes.len());
            root.error("link", message, None);
            return;
        }
        self.check_loops();
        self.check_misspelt();
    }

    fn read_switches(&mut self, root: &Table<'d>) {
        for switch in root.tables("switch") {
            self.switch_names.extend(switch.text("name").map(str::to_owned));
            let table = switch.open(&SWITCH);
            let Some((name, processing, switch)) = switch::read(&table) else {
                self.incomplete();
                continue;
            };
            match self.add_node(&name, processing) {
                Some(node) => drop(self.switches.insert(node, switch)),
                None => table.error("name", format!("a second node is called {name:?}"), None),
            }
        }
    }

    fn is_switch(&self, name: Option<&str>) -> bool {
        name.is_some_and(|name| self.switch_names.contains(name))
    }

    fn read_cell_link(&mut self, table: &Table<'d>, settings: &Settings) {
        let name = table.optional_name("name");
        let (Some(from), Some(to)) = (table.name("from"), table.name("to")) else {
            self.incomplete();
            return;
        };
        if from == to {
            table.error("to", format!("a loop of links: this one leads from {from:?} to itself"), None);
            self.incomplete();
            return;
        }
        let (near, far) = (self.node(&from), self.node(&to));
        let there = CellLine::read(table, None, self.switches.get(&near));
        let back_table = table.table("back").map(|back| back.open(&CELL_BACK));
        let back = there.as_ref().and_then(|there| match &back_table {
            Some(back) => CellLine::read(back, Some(there), self.switches.get(&far)),
            None => Some(there.turned(self.switches.get(&far))),
        });
        let (Some(there), Some(back)) = (there, back) else {
            self.incomplete();
            return;
        };
        let names = match name {
            Some(name) => (name.clone(), format!("{name}-back")),
            None => (format!("{from}-{to}"), format!("{to}-{from}")),
        };
        for (line, name, [from, to]) in [(there, names.0, [near, far]), (back, names.1, [far, near])] {
            let link = line.link(name, from, to, settings);
            self.cells.push((self.links.len(), line));
            self.add_link(link, table);
        }
    }

    fn read_link(&mut self, table: &Table<'d>) {
        let framing = table.optional_choice("framing", &[("none", preset::IP.link), ("atm", preset::AAL5.link)]);
        if table.has("framing") && table.has("encapsulation") {
            table.error("framing", "both framing and encapsulation", Some("give one of them".into()));
        }
        let mut defaults = Defaults::default();
        defaults.line.link_layer = framing.unwrap_or(preset::IP.link);
        let there = line::read(table, "there", &defaults);
        let back_table = table.table("back").map(|back| back.open(&BACK));
        let one_way: Option<bool> = table.get("one_way");
        let name = table.optional_name("name");
        let (from, to) = (table.name("from"), table.name("to"));
        let (Some(there), Some(from), Some(to)) = (there, from, to) else {
            self.incomplete();
            return;
        };
        let back = match &back_table {
            Some(back) => way_back(back, table, &there),
            None => Some(there.clone()),
        };
        if from == to {
            table.error("to", format!("a loop of links: this one leads from {from:?} to itself"), None);
            self.incomplete();
            return;
        }
        let (near, far) = (self.node(&from), self.node(&to));
        let names = match name {
            Some(name) => (name.clone(), format!("{name}-back")),
            None => (format!("{from}-{to}"), format!("{to}-{from}")),
        };
        let link = |hop: Hop, name, from, to| Link { from, to, hop: Hop { name, ..hop } };
        self.add_link(link(there, names.0, near, far), table);
        match (one_way, &back_table) {
            (Some(true), Some(back)) => {
                table.error("back", format!("{} for a link that is one_way", back.own_path()), None);
            }
            (Some(true), None) => {}
            _ => match back {
                Some(back) => self.add_link(link(back, names.1, far, near), back_table.as_ref().unwrap_or(table)),
                None => self.incomplete(),
            },
        }
    }

    fn check_names(&self) {
        let mut seen = BTreeMap::new();
        for (link, table) in self.links.iter().zip(&self.tables) {
            if let Some((from, to)) = seen.insert(link.hop.name.as_str(), (link.from, link.to)) {
                // Two links between the same nodes are a loop, which says more than two equal names.
                if (from, to) != (link.from, link.to) || table.has("name") {
                    table.error("name", format!("a second link is called {:?}", link.hop.name), None);
                }
            }
        }
    }

    /// Where the network falls apart: reports a node whose name nearly is that of a node in another part.
    fn check_misspelt(&mut self) {
        if self.incomplete {
            return;
        }
        let part = self.parts();
        let size = |node: NodeIndex| part.iter().filter(|other| **other == part[node]).count();
        let found = self.links.iter().enumerate().find_map(|(at, link)| {
            [("from", link.from), ("to", link.to)].into_iter().find_map(|(key, node)| {
                // Short names are all alike, and the mistake is in the smaller part.
                let name = Some(&self.nodes[node].name).filter(|name| name.len() > 2)?;
                let elsewhere = |other: &NodeIndex| part[*other] != part[node] && size(*other) > size(node);
                let others = (0..self.nodes.len()).filter(elsewhere).map(|other| self.nodes[other].name.as_str());
                Some((at, key, name.clone(), did_you_mean(name, others)?))
            })
        });
        if let Some((link, key, name, hint)) = found {
            let message = format!("node {name:?} is not linked to the rest of the network");
            self.tables[link].error(key, message, Some(hint));
            self.incomplete();
        }
    }

    /// For each node the least index of the nodes that links join with it, whichever way they lead.
    fn parts(&self) -> Vec<NodeIndex> {
        let mut part: Vec<NodeIndex> = (0..self.nodes.len()).collect();
        loop {
            let mut settled = true;
            for link in &self.links {
                let least = part[link.from].min(part[link.to]);
                settled &= part[link.from] == least && part[link.to] == least;
                part[link.from] = least;
                part[link.to] = least;
            }
            if settled {
                return part;
            }
        }
    }

    /// Reports the first pair of nodes between which there are two ways.
    fn check_loops(&self) {
        let Some((one, other)) = self.two_ways() else { return };
        let way = |links: &[usize]| {
            let mut names = vec![self.nodes[self.links[links[0]].from].name.as_str()];
            names.extend(links.iter().map(|&link| self.nodes[self.links[link].to].name.as_str()));
            if names.len() > 8 {
                names.splice(4..names.len() - 3, ["..."]);
            }
            names.join(" -> ")
        };
        let last = one.iter().chain(&other).max().expect("a way has a link");
        let message = format!("a loop of links: there are two ways, {} and {}", way(&one), way(&other));
        let hint = "between two nodes there is one way: leave out a link, or make one of them one_way = true";
        self.tables[*last].error("from", message, Some(hint.into()));
    }

    /// Two ways, as links, between the same two nodes, if there are two anywhere.
    ///
    /// A depth-first search meets a node a second time, off its own path, just when two simple paths lead
    /// there. Cost: nodes times links at most, since the first such meeting ends it.
    fn two_ways(&self) -> Option<(Vec<usize>, Vec<usize>)> {
        let mut out = vec![Vec::new(); self.nodes.len()];
        for (index, link) in self.links.iter().enumerate() {
            out[link.from].push(index);
        }
        (0..self.nodes.len()).find_map(|start| self.two_ways_from(start, &out))
    }

    fn two_ways_from(&self, start: NodeIndex, out: &[Vec<usize>]) -> Option<(Vec<usize>, Vec<usize>)> {
        let mut came_by: Vec<Option<usize>> = vec![None; self.nodes.len()];
        let mut on_path = vec![false; self.nodes.len()];
        let mut stack = vec![(start, 0)];
        on_path[start] = true;
        while let Some((node, next)) = stack.last_mut() {
            let Some(&link) = out[*node].get(*next) else {
                on_path[*node] = false;
                stack.pop();
                continue;
            };
            *next += 1;
            let to = self.links[link].to;
            if on_path[to] {
                continue;
            }
            if came_by[to].is_some() {
                let mut other = self.way_back(start, self.links[link].from, &came_by);
                other.push(link);
                return Some((self.way_back(start, to, &came_by), other));
            }
            came_by[to] = Some(link);
            on_path[to] = true;
            stack.push((to, 0));
        }
        None
    }

    /// The links from `start` to `node` by which a search came.
    fn way_back(&self, start: NodeIndex, mut node: NodeIndex, came_by: &[Option<usize>]) -> Vec<usize> {
        let mut links = Vec::new();
        while node != start {
            let link = came_by[node].expect("the search came here");
            links.push(link);
            node = self.links[link].from;
        }
        links.reverse();
        links
    }
}

/// The links of the way from `from` to `to`, if there is one.
pub(crate) fn way(nodes: &[Node], links: &[Link], from: NodeIndex, to: NodeIndex) -> Option<Vec<usize>> {
    let mut came_by: Vec<Option<usize>> = vec![None; nodes.len()];
    let mut out = vec![Vec::new(); nodes.len()];
    for (index, link) in links.iter().enumerate() {
        out[link.from].push(index);
    }
    let mut frontier = VecDeque::from([from]);
    while let Some(node) = frontier.pop_front() {
        for &link in &out[node] {
            let next = links[link].to;
            if next != from && came_by[next].is_none() {
                came_by[next] = Some(link);
                frontier.push_back(next);
            }
        }
    }
    let mut way = Vec::new();
    let mut node = to;
    while node != from {
        let link = came_by[node]?;
        way.push(link);
        node = links[link].from;
    }
    way.reverse();
    Some(way)
}

/// The way back of the link of `there_table`: a capacity in time counts at the rate of its own direction.
fn way_back<'d>(back: &Table<'d>, there_table: &Table<'d>, there: &Hop) -> Option<Hop> {
    let defaults = Defaults { line: there.line.clone(), queue: Some(there.queue.clone()) };
    let there = Some(there_table);
    match there_table.table("queue") {
        Some(queue) if !back.has("queue") => {
            line::read_with(back, "back", &defaults, Inherited { queue: Some(queue), there })
        }
        // Without a queue in the file each direction has the default of its rate.
        None if !there_table.has("queue") => {
            line::read_with(back, "back", &Defaults { queue: None, ..defaults }, Inherited { queue: None, there })
        }
        _ => line::read_with(back, "back", &defaults, Inherited { queue: None, there }),
    }
}
