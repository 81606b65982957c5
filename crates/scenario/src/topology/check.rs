//! Checks of a whole network: names, parts that no link joins, and loops.

use std::collections::BTreeMap;

use lastmile_model::NodeIndex;

use super::Topology;
use crate::diagnostics::did_you_mean;

impl Topology<'_> {
    pub(super) fn check_names(&self) {
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
    pub(super) fn check_misspelt(&mut self) {
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
    pub(super) fn check_loops(&self) {
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
