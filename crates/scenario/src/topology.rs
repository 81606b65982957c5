//! Nodes and links, and the one question about them: is there exactly one way from each node to each other?
//!
//! Packets take the path with the fewest links. Where there are two ways, which one they take would hang on a
//! tie, or on a link that someone adds elsewhere, and links would stand idle unnoticed. So a loop of links is
//! an error. One-way links may well form a ring (a satellite down, a telephone line up): there is still one
//! way from each node to each other.

use core::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use lastmile_model::{Link, Node, NodeIndex};
use lastmile_units::Duration;

use crate::atm::link::CellLine;
use crate::atm::switch::Switch;
use crate::diagnostics::did_you_mean;
use crate::reader::Table;
use crate::tcp::Mtu;

mod check;
mod keys;
mod path;
mod read;

pub(crate) use keys::{BACK, FROM, LINK, NAME, NODE, TO};
pub(crate) use path::path;

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

    /// True if something is missing because of an error in the file: errors that follow from it are not reported.
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
        let search = || path(&self.nodes, &self.links, from, to).is_some();
        *self.leads.borrow_mut().entry((from, to)).or_insert_with(search)
    }

    pub(crate) fn add_link(&mut self, mut link: Link, table: &Table<'d>) {
        let shapes = !link.hop.queue.shapers().is_empty();
        if let Some(grants) = link.hop.line.grants.as_mut().filter(|_| shapes) {
            grants.buffer = Some(grants.buffer_behind_shaper());
        }
        self.links.push(link);
        self.tables.push(table.clone());
    }

    /// The classes of the first port that has any.
    pub(crate) fn classes(&self) -> &[String] {
        let ports = self.cells.iter().map(|(_, line)| &line.port.classes);
        ports.into_iter().find(|classes| !classes.is_empty()).map_or(&[], Vec::as_slice)
    }

    /// The least MTU of the links of these ways from one node to another.
    pub(crate) fn mtu(&self, ways: &[(NodeIndex, NodeIndex)]) -> Mtu<'_> {
        let ways = ways.iter().map(|(from, to)| path(&self.nodes, &self.links, *from, *to));
        let links = ways.flatten().flatten().map(|link| &self.links[link]);
        let least =
            links.filter_map(|link| Some((link.hop.line.link_layer.mtu()?.get(), link.hop.name.as_str()))).min();
        Mtu { bytes: least.map(|(bytes, _)| bytes), link: least.map_or("", |(_, name)| name) }
    }

    /// Adds an error about a link.
    pub(crate) fn error_at(&self, link: usize, key: &'static str, message: String, hint: &str) {
        self.tables[link].error(key, message, Some(hint.into()));
    }
}
