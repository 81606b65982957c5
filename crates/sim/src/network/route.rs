//! Paths through the network: fewest links, found once for each pair of ends before the run.

use std::collections::{BTreeMap, VecDeque};

use lastmile_model::{Network, NodeIndex};

/// Index of a link in [`Network::links`].
pub(crate) type LinkIndex = u32;

/// The paths of all flows. A path is a list of links; flows between equal ends share one.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    links: Vec<LinkIndex>,
    known: BTreeMap<(NodeIndex, NodeIndex), PathId>,
}

/// A path in [`Paths`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct PathId {
    first: u32,
    len: u32,
}

impl Paths {
    /// The path with the fewest links from `from` to `to`; of several the one whose links come first in the network's
    /// list. `None` without a path.
    pub(crate) fn find(
        &mut self,
        network: &Network,
        out: &[Vec<LinkIndex>],
        from: NodeIndex,
        to: NodeIndex,
    ) -> Option<PathId> {
        if let Some(path) = self.known.get(&(from, to)) {
            return Some(*path);
        }
        let links = shortest(network, out, from, to)?;
        let count = |n: usize| u32::try_from(n).expect("paths have fewer than 2^32 links in all");
        let path = PathId { first: count(self.links.len()), len: count(links.len()) };
        self.links.extend(links);
        self.known.insert((from, to), path);
        Some(path)
    }

    /// The links of a path, in order.
    #[inline]
    pub(crate) fn links(&self, path: PathId) -> &[LinkIndex] {
        &self.links[path.first as usize..(path.first + path.len) as usize]
    }

    /// The link that follows `link` on a path; `None` at its end.
    #[inline]
    pub(crate) fn after(&self, path: PathId, link: LinkIndex) -> Option<LinkIndex> {
        let links = self.links(path);
        let position = links.iter().position(|l| *l == link)?;
        links.get(position + 1).copied()
    }
}

/// The outgoing links of each node.
pub(crate) fn outgoing(network: &Network) -> Vec<Vec<LinkIndex>> {
    let mut out = vec![Vec::new(); network.nodes.len()];
    for (index, link) in network.links.iter().enumerate() {
        out[link.from].push(u32::try_from(index).expect("fewer than 2^32 links"));
    }
    out
}

/// Breadth-first search.
fn shortest(network: &Network, out: &[Vec<LinkIndex>], from: NodeIndex, to: NodeIndex) -> Option<Vec<LinkIndex>> {
    let mut came_by: BTreeMap<NodeIndex, LinkIndex> = BTreeMap::new();
    let mut frontier = VecDeque::from([from]);
    while let Some(node) = frontier.pop_front() {
        if node == to {
            break;
        }
        for &link in &out[node] {
            let next = network.links[link as usize].to;
            if next != from && !came_by.contains_key(&next) {
                came_by.insert(next, link);
                frontier.push_back(next);
            }
        }
    }
    let mut path = Vec::new();
    let mut node = to;
    while node != from {
        let link = *came_by.get(&node)?;
        path.push(link);
        node = network.links[link as usize].from;
    }
    path.reverse();
    Some(path)
}
