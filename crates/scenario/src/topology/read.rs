//! Reads nodes, switches and links.

use lastmile_linklayer::preset;
use lastmile_model::{Hop, Link};

use super::Topology;
use super::keys::{BACK, LINK, NODE};
use crate::atm::link::{CELL_BACK, CELL_LINK, CellLine};
use crate::atm::switch::{self, SWITCH};
use crate::atm::{Settings, circuits};
use crate::line::{self, Defaults, Inherited};
use crate::reader::Table;
use crate::trace::{self, Number};

/// Most nodes of a network: looking for loops takes time in proportion to their square.
const MOST_NODES: usize = 4096;

impl<'d> Topology<'d> {
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
        // The first number is that of the first access line, where there is one.
        for (number, link) in (u64::from(root.has("access"))..).zip(root.tables("link")) {
            if ["from", "to"].iter().any(|key| self.is_switch(link.text(key))) {
                self.read_cell_link(&link.open(&CELL_LINK), settings);
            } else {
                self.read_link(&link.open(&LINK), Number::Link(number));
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

    fn read_link(&mut self, table: &Table<'d>, number: Number) {
        let framing = table.optional_choice("framing", &[("none", preset::IP.link), ("atm", preset::AAL5.link)]);
        if table.has("framing") && table.has("encapsulation") {
            table.error("framing", "both framing and encapsulation", Some("give one of them".into()));
        }
        let mut defaults = Defaults { number, ..Defaults::default() };
        defaults.line.link_layer = framing.unwrap_or(preset::IP.link);
        defaults.start = trace::shared_start(table, [&["trace", "start"], &["back", "trace", "start"]]);
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
            Some(back) => way_back(back, table, &there, &defaults),
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
}

/// The way back of the link of `there_table`: a capacity in time counts at the rate of its own direction.
fn way_back<'d>(back: &Table<'d>, there_table: &Table<'d>, there: &Hop, link: &Defaults) -> Option<Hop> {
    let mtu = line::mtu(there_table);
    let (line, queue) = (there.line.clone(), Some(there.queue.clone()));
    let defaults = Defaults { line, queue, mtu, ..link.clone() };
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
