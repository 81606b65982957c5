//! Virtual channels for all traffic that crosses links of cells, and the network of cells that the simulator runs.

use lastmile_atm::network::{Abr, Upc};
use lastmile_atm::{LinkId, LinkSpec, Network as CellNetwork, NetworkSpec, NodeId, Queues, VcId, VcSpec, VpId};
use lastmile_model::{Atm, Circuit, Traffic};
use lastmile_units::Duration;

use super::Settings;
use super::contract::{Contracts, Service};
use super::edge::Edges;
use crate::reader::Table;
use crate::topology::{self, Topology};
use crate::traffic::answered;

/// First virtual channel identifier that is not reserved (ITU-T I.361).
const FIRST_VCI: usize = 32;
/// As many as have an identifier.
const MOST_VCS: usize = 65_536 - FIRST_VCI;

/// Virtual channels of one traffic, one way, over one run of links of cells.
struct Plan<'a, 'd> {
    traffic: usize,
    back: bool,
    /// Links of the topology.
    links: Vec<usize>,
    service: Option<&'a Service>,
    policed: bool,
    edge: Option<usize>,
    path: Option<usize>,
    names: Vec<String>,
    table: &'a Table<'d>,
}

/// The network of cells; `None` without links of cells, or if something is wrong.
pub(crate) fn build<'d>(
    root: &Table<'d>,
    topology: &Topology<'d>,
    settings: &Settings,
    (contracts, edges): (&Contracts, Edges),
    traffic: &[(Traffic, Table<'d>)],
) -> Option<Atm> {
    if topology.cells.is_empty() {
        for (_, table) in traffic {
            if let Some(key) = ["contract", "back_contract", "vp", "vc"].into_iter().find(|key| table.has(key)) {
                let hint = "virtual channels are on links of a [[switch]]";
                table.error(key, format!("{}: no links of cells", table.path(key)), Some(hint.into()));
                break;
            }
        }
        return None;
    }
    let plans = plans(topology, contracts, &edges, traffic)?;
    let mut spec = NetworkSpec::new();
    spec.trains = settings.trains;
    let (ids, links) = links(&mut spec, topology);
    let id = |link: usize| ids[links.iter().position(|own| *own == link).expect("a link of cells")];
    let entry = |plan: &Plan<'_, '_>| id(plan.links[usize::from(plan.links.len() > 1)]);
    let paths = paths(&mut spec, contracts, &plans, &entry);
    let mut circuits = Vec::new();
    let classes = topology.classes();
    for plan in &plans {
        let route: Vec<LinkId> = plan.links.iter().map(|link| id(*link)).collect();
        let back: Option<Vec<LinkId>> =
            plan.links.iter().rev().map(|link| Some(id(turned(topology, *link)?))).collect();
        let vcs = plan.names.iter().map(|name| {
            let vci = u16::try_from(FIRST_VCI + spec.vcs.len()).expect("they were counted");
            let path = plan.path;
            let vpi = path.and_then(|path| u16::try_from(path + 1).ok()).unwrap_or(0);
            let mut vc = VcSpec::new(name.clone(), vci, route.clone());
            (vc.vpi, vc.vp, vc.encapsulation) = (vpi, path.and_then(|path| paths[path]), settings.encapsulation);
            if let Some(service) = plan.service {
                vc.pcr = service.shape;
                vc.low_priority = service.low_priority;
                vc.abr = service.abr.map(|abr| Abr {
                    parameters: abr.parameters,
                    back: back.clone().unwrap_or_default(),
                    edge_limit: abr.edge_limit,
                });
                let class = service.class.as_ref().and_then(|name| classes.iter().position(|known| known == name));
                (vc.class, vc.priority, vc.weight) = (class.unwrap_or(0), service.priority, service.weight);
                vc.upc = service.contract.filter(|_| plan.policed).map(|contract| Upc { at: entry(plan), contract });
            }
            spec.vc(vc)
        });
        let Plan { traffic, back, edge, service, .. } = *plan;
        let hold = service.and_then(|service| service.abr?.hold).filter(|_| !back);
        let contract = service.map(|service| service.name.clone());
        circuits.push(Circuit { traffic, back, vcs: vcs.collect::<Vec<VcId>>(), contract, edge, hold });
    }
    // Checks that need the whole network.
    if let Err(error) = CellNetwork::new(&spec) {
        root.error("switch", error.to_string(), None);
        return None;
    }
    Some(Atm { network: spec, links, circuits, edges: edges.into_spec() })
}

/// All links of cells: their ids, and which links of the topology they are.
fn links(spec: &mut NetworkSpec, topology: &Topology<'_>) -> (Vec<LinkId>, Vec<usize>) {
    let node = |index: usize| {
        let name = topology.nodes[index].name.clone();
        match topology.switches.get(&index).and_then(|switch| switch.memory) {
            Some(memory) => spec.shared_memory_node(name, memory),
            None => spec.node(name),
        }
    };
    let nodes: Vec<NodeId> = (0..topology.nodes.len()).map(node).collect();
    let mut ids = Vec::new();
    for (index, line) in &topology.cells {
        let link = &topology.links[*index];
        let processing: Duration = topology.nodes[link.to].processing;
        let mut cells = LinkSpec::new(nodes[link.from], nodes[link.to], line.rate, line.delay + processing);
        (cells.pace, cells.queues) = (line.pace, line.port.queues.clone());
        cells.loss_ppb = line.loss.as_parts_per_billion();
        cells.abr = topology.switches.get(&link.from).and_then(|switch| switch.abr);
        ids.push(spec.link(cells));
    }
    (ids, topology.cells.iter().map(|(index, _)| *index).collect())
}

/// The virtual paths that something takes, each policed where the first of its virtual channels enters.
fn paths(
    spec: &mut NetworkSpec,
    contracts: &Contracts,
    plans: &[Plan<'_, '_>],
    entry: &impl Fn(&Plan<'_, '_>) -> LinkId,
) -> Vec<Option<VpId>> {
    let path = |(index, path): (usize, &super::contract::Path)| {
        let mut own = plans.iter().filter(|plan| plan.path == Some(index));
        let at = entry(own.next()?);
        if let Some(other) = own.find(|plan| entry(plan) != at) {
            let message = format!("the virtual channels of path {:?} enter the cells at different switches", path.name);
            other.table.error("vp", message, Some("a path is policed at one link".into()));
        }
        Some(spec.vp(path.name.clone(), path.contract.map(|contract| Upc { at, contract })))
    };
    contracts.paths.iter().enumerate().map(path).collect()
}

fn plans<'a, 'd>(
    topology: &Topology<'d>,
    contracts: &'a Contracts,
    edges: &Edges,
    traffic: &'a [(Traffic, Table<'d>)],
) -> Option<Vec<Plan<'a, 'd>>> {
    let mut plans: Vec<Plan<'a, 'd>> = Vec::new();
    let mut vcs = 0;
    for (index, (traffic, table)) in traffic.iter().enumerate() {
        let [own, back_own] = ["contract", "back_contract"].map(|key| contracts.find(table, key));
        let by_dscp = contracts.services.iter().find(|service| service.dscp.contains(&traffic.ip.dscp));
        let path = contracts.find_path(table, "vp");
        let shared = table.choice("vc", &[("own", false), ("shared", true)])?;
        let ways = [(traffic.from, traffic.to, false), (traffic.to, traffic.from, true)];
        for (from, to, back) in ways.into_iter().filter(|(.., back)| !back || answered(traffic)) {
            let links = topology::path(&topology.nodes, &topology.links, from, to)?;
            for (nth, links) in runs(topology, &links).into_iter().enumerate() {
                let members = if shared { 1 } else { traffic.count };
                vcs += members as usize;
                if vcs > MOST_VCS {
                    let message = format!("more than {MOST_VCS} virtual channels, which have no identifiers left");
                    table.error("count", message, Some("vc = \"shared\" makes one of all".into()));
                    return None;
                }
                let name = |member| vc_name(traffic, (shared, member), back, nth);
                let edge = edges.find(traffic.ip.dscp, topology.links[links[0]].from, back);
                let at_edge = edge.and_then(|edge| edge.contract).map(|contract| &contracts.services[contract]);
                plans.push(Plan {
                    traffic: index,
                    back,
                    service: if back { back_own } else { own }.or(at_edge).or(by_dscp),
                    policed: !back || back_own.is_some() || at_edge.is_some(),
                    edge: edge.map(|edge| edge.edge),
                    path: path.filter(|_| !back).or(edge.and_then(|edge| edge.path)),
                    names: (1..=members).map(name).collect(),
                    links,
                    table,
                });
            }
        }
    }
    let unfit = plans.iter().filter(|plan| !fits(plan, topology)).count();
    (unfit == 0).then_some(plans)
}

/// The link back of a link of cells.
fn turned(topology: &Topology<'_>, link: usize) -> Option<usize> {
    let there = &topology.links[link];
    let back = topology.cells.iter().map(|(index, _)| *index);
    back.into_iter().find(|back| (topology.links[*back].from, topology.links[*back].to) == (there.to, there.from))
}

/// Whether what its contract lets a source send fits the first link; if not, an error.
fn fits(plan: &Plan<'_, '_>, topology: &Topology<'_>) -> bool {
    let first = &topology.links[plan.links[0]];
    let (Some(service), Some(rate)) = (plan.service, first.hop.line.rate) else { return true };
    let peak = service.abr.map(|abr| ("has a peak cell rate of", abr.parameters.pcr, "pcr of kind abr"));
    let shaped = service.shape.map(|shape| ("shapes to", shape, "shape in [[contract]]"));
    let Some((does, source, key)) = peak.or(shaped).filter(|(_, source, _)| *source > rate) else { return true };
    let message = format!("its contract {does} {source}, above {rate} of link {:?}", first.hop.name);
    plan.table.error("contract", message, Some(format!("{key} is at most the rate of the first link")));
    false
}

/// The name of the flow, and a suffix that distinguishes the circuit from others of the flow.
fn vc_name(traffic: &Traffic, (shared, member): (bool, u32), back: bool, nth: usize) -> String {
    let mut name = traffic.name.clone();
    if traffic.count > 1 && !shared {
        name = format!("{name}-{member}");
    }
    if back {
        name.push_str(" back");
    }
    if nth > 0 {
        name = format!("{name} {}", nth + 1);
    }
    name
}

/// The parts of a way that are links of cells from one node that is no switch to the next.
fn runs(topology: &Topology<'_>, links: &[usize]) -> Vec<Vec<usize>> {
    let cells = |link: &usize| topology.cells.iter().any(|(own, _)| own == link);
    let mut runs: Vec<Vec<usize>> = Vec::new();
    for link in links.iter().filter(|link| cells(link)) {
        let inside = topology.switches.contains_key(&topology.links[*link].from);
        match runs.last_mut() {
            Some(run) if inside => run.push(*link),
            _ => runs.push(vec![*link]),
        }
    }
    runs
}

/// Reports ports whose classes are not those of others.
pub(crate) fn check_classes(topology: &Topology<'_>) {
    let known = topology.classes();
    for (index, line) in &topology.cells {
        if matches!(line.port.queues, Queues::Classes(_)) && line.port.classes != known {
            let message = format!("classes {} next to {}", line.port.classes.join(", "), known.join(", "));
            let hint = "ports with classes have the same ones in the same order";
            topology.error_at(*index, "queue", message, hint);
        }
    }
}
