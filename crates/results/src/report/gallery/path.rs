//! The path of a run as data: the nodes from the client to the server, and the backlog of each link between them.

use std::collections::VecDeque;

use lastmile_text::escape;
use serde::Serialize;

use super::columns::{Columns, thinned};
use crate::Run;
use crate::schema::Link;

/// The most nodes of a path that is drawn.
const MOST_NODES: usize = 10;
/// The most samples of a link.
const SAMPLES: usize = 3_000;

/// The path between the ends of the first flow.
pub(crate) struct Path {
    label: String,
    nodes: Vec<String>,
    links: Vec<Hop>,
    duration_s: f64,
}

struct Hop {
    name: String,
    from: usize,
    to: usize,
    rate_bps: Option<f64>,
    limit_bytes: Option<u64>,
    backlog: Vec<(f64, f64)>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct PathData {
    label: String,
    nodes: Vec<String>,
    links: Vec<HopData>,
}

#[derive(Clone, Debug, Serialize)]
struct HopData {
    name: String,
    from: usize,
    to: usize,
    rate_bps: Option<f64>,
    limit_bytes: Option<u64>,
    /// Indices of the columns of times and bytes; `None` for a link whose queue was not sampled.
    backlog: Option<(usize, usize)>,
}

impl Path {
    /// The path of `run`; `None` if its first flow crosses no link, or too many.
    pub(crate) fn of(run: &Run) -> Option<Self> {
        let links = &run.summary.links;
        let flow = run.summary.flows.iter().find(|flow| !flow.setup.data_path.is_empty())?;
        let of_name = |name: &str| links.iter().find(|link| link.name == name);
        let first = of_name(flow.setup.data_path.first()?)?;
        let last = of_name(flow.setup.data_path.last()?)?;
        // The client is at the left, whatever the direction of the data.
        let (client, server) =
            if &*flow.direction == "down" { (&last.to, &first.from) } else { (&first.from, &last.to) };
        let nodes = between(links, client, server)?;
        if nodes.len() < 2 || nodes.len() > MOST_NODES {
            return None;
        }
        let place = |name: &str| nodes.iter().position(|node| node == name);
        let hop = |link: &Link| {
            let (from, to) = (place(&link.from)?, place(&link.to)?);
            let series = run.series.iter().find(|series| series.name == "queue_bytes" && series.entity == link.name);
            let backlog = series.map(|series| series.points.clone()).unwrap_or_default();
            let (name, rate_bps, limit_bytes) = (link.name.clone(), link.rate_bps, link.limit.queue_limit_bytes);
            (from.abs_diff(to) == 1).then_some(Hop { name, from, to, rate_bps, limit_bytes, backlog })
        };
        let hops = links.iter().filter_map(hop).collect();
        Some(Self { label: run.label.clone(), links: hops, duration_s: run.summary.run.duration_s, nodes })
    }

    pub(super) fn data(&self, columns: &mut Columns) -> PathData {
        let text = |text: &String| escape::line(text).into_owned();
        let hop = |hop: &Hop| HopData {
            name: text(&hop.name),
            from: hop.from,
            to: hop.to,
            rate_bps: hop.rate_bps,
            limit_bytes: hop.limit_bytes,
            backlog: (!hop.backlog.is_empty()).then(|| columns.add(&thinned(&hop.backlog, SAMPLES), self.duration_s)),
        };
        PathData {
            label: text(&self.label),
            nodes: self.nodes.iter().map(text).collect(),
            links: self.links.iter().map(hop).collect(),
        }
    }
}

/// The nodes of the shortest path over `links`.
fn between(links: &[Link], from: &str, to: &str) -> Option<Vec<String>> {
    let mut reached: Vec<(&str, Option<usize>)> = vec![(from, None)];
    let mut open = VecDeque::from([0]);
    while let Some(at) = open.pop_front() {
        let (node, _) = reached[at];
        if node == to {
            let mut path = vec![node.to_owned()];
            let mut step = reached[at].1;
            while let Some(index) = step {
                path.push(reached[index].0.to_owned());
                step = reached[index].1;
            }
            path.reverse();
            return Some(path);
        }
        for link in links.iter().filter(|link| link.from == node) {
            if !reached.iter().any(|(known, _)| *known == link.to) {
                open.push_back(reached.len());
                reached.push((&link.to, Some(at)));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(from: &str, to: &str) -> Link {
        Link { name: format!("{from}-{to}"), from: from.to_owned(), to: to.to_owned(), ..Link::default() }
    }

    #[test]
    fn the_path_is_the_shortest_and_ends_where_no_link_leads() {
        let links = [link("client", "cpe"), link("cpe", "far"), link("far", "server"), link("cpe", "server")];
        assert_eq!(between(&links, "client", "server").unwrap(), ["client", "cpe", "server"]);
        assert_eq!(between(&links, "server", "client"), None);
    }
}
