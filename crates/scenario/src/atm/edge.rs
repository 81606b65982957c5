//! `[[edge]]`: what packets of a class get where they become cells: drop precedence, cell loss priority,
//! contract and path.

use lastmile_model::{Edge, MeterScope, NodeIndex};
use lastmile_queueing::meter::{Color, Config as Meter, conditioner};

use super::Settings;
use super::contract::Contracts;
use crate::queue::{CodePoint, ColorName, Several, meter};
use crate::reader::{Table, Unopened};
use crate::schema::{CODE_POINT, Key, Kind, Section};
use crate::topology::Topology;

const COLOR: Kind = Kind::Words(&["green", "yellow", "red"]);
const COLORS: Kind =
    Kind::Other("`\"green\"`, `\"yellow\"` or `\"red\"`, or a list of them", &[COLOR, Kind::Several(&[COLOR])]);

pub(crate) static EDGE: Section = Section {
    heading: "`[[edge]]`",
    about: "An edge device, where packets of these code points become cells. It colors each green, yellow or red by \
            a token bucket \
            (or by the drop precedence that it came with), writes the color into the code point of an AF class \
            (AFx1, AFx2, AFx3; RFC 2597), and \
            gives its cells one of two loss priorities. Contract and path are those of the virtual channels that \
            their traffic gets.",
    keys: &[
        Key::required("name", Kind::Text, "Name, unique among edges."),
        Key::required(
            "dscp",
            Kind::Other(
                "code point such as 10 or `\"af11\"`, or a list of them",
                &[CODE_POINT, Kind::Several(&[CODE_POINT])],
            ),
            "Whose packets: those of traffic with one of these code points.",
        ),
        Key::optional("at", Kind::Text, "each node at which they become cells", "Only at this node."),
        Key::optional(
            "contract",
            Kind::Text,
            "that of the code point, or none",
            "Contract of their virtual channels, by name, unless the traffic names one.",
        ),
        Key::optional(
            "vp",
            Kind::Text,
            "none",
            "Virtual path of their virtual channels, unless the traffic names one.",
        ),
        Key::optional(
            "meter",
            Kind::Table("[meters](#meters)"),
            "the drop precedence of the code point colors",
            "Meter that colors packets; it counts the bytes of their cells.",
        ),
        Key::with_default(
            "colors",
            Kind::Choice(&["blind", "drop-precedence", "clp"]),
            "blind",
            "For srtcm and trtcm: whether a packet comes with a color, by its drop precedence or cell loss priority.",
        ),
        Key::with_default(
            "per",
            Kind::Choice(&["node", "vc"]),
            "node",
            "Scope of a meter: all packets that become cells at a node, or those of one virtual channel.",
        ),
        Key::optional("low_priority", COLORS, "none", "Colors whose cells have CLP = 1."),
        Key::optional("drop", COLORS, "none", "Colors that are dropped."),
        Key::with_default(
            "back",
            Kind::Flag,
            "false",
            "Packets that come back with one of these code points (ACKs), too.",
        ),
    ],
};

/// All edges of a file, with what finds them.
#[derive(Debug, Default)]
pub(crate) struct Edges {
    classes: Vec<Class>,
}

#[derive(Debug)]
struct Class {
    edge: Edge,
    dscp: Vec<u8>,
    at: Option<NodeIndex>,
    /// Index of the contract.
    contract: Option<usize>,
    path: Option<usize>,
    back: bool,
}

/// The treatment of the packets of one traffic at an edge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// The index of the edge.
    pub(crate) edge: usize,
    /// Index of the contract.
    pub(crate) contract: Option<usize>,
    /// Index of the path.
    pub(crate) path: Option<usize>,
}

impl Edges {
    /// Reads `[[edge]]`.
    pub(crate) fn read(root: &Table<'_>, topology: &Topology<'_>, settings: &Settings, contracts: &Contracts) -> Self {
        let mut edges = Self::default();
        if topology.cells.is_empty() && root.has("edge") && topology.is_complete() {
            let hint = "packets become cells on the links of a [[switch]]";
            root.error("edge", "edge: no links of cells", Some(hint.into()));
        }
        for item in root.tables("edge") {
            if let Some((class, table)) = class(item, topology, settings, contracts) {
                edges.add(class, &table);
            }
        }
        edges
    }

    fn add(&mut self, class: Class, table: &Table<'_>) {
        if self.classes.iter().any(|other| other.edge.name == class.edge.name) {
            table.error("name", format!("a second edge is called {:?}", class.edge.name), None);
        }
        let together = |other: &&Class| other.at.is_none() || class.at.is_none() || other.at == class.at;
        let twice = |other: &Class| class.dscp.iter().find(|dscp| other.dscp.contains(dscp)).copied();
        let other = self.classes.iter().filter(together).find_map(|other| Some((other, twice(other)?)));
        if let Some((other, dscp)) = other {
            let message = format!("{}: code point {dscp} is of edge {:?} already", table.path("dscp"), other.edge.name);
            table.error("dscp", message, Some("a packet belongs to one edge; `at` restricts an edge to a node".into()));
        }
        self.classes.push(class);
    }

    /// The edge of packets with code point `dscp` that become cells at `node`.
    pub(crate) fn find(&self, dscp: u8, node: NodeIndex, back: bool) -> Option<Found> {
        let covers =
            |class: &Class| class.dscp.contains(&dscp) && class.at.is_none_or(|at| at == node) && (class.back || !back);
        let edge = self.classes.iter().position(covers)?;
        let Class { contract, path, .. } = self.classes[edge];
        Some(Found { edge, contract, path })
    }

    /// The edges as the simulator takes them.
    pub(crate) fn into_spec(self) -> Vec<Edge> {
        self.classes.into_iter().map(|class| class.edge).collect()
    }
}

fn class<'d>(
    item: Unopened<'d>,
    topology: &Topology<'_>,
    settings: &Settings,
    contracts: &Contracts,
) -> Option<(Class, Table<'d>)> {
    let table = item.open(&EDGE);
    let name = table.name("name");
    let dscp: Option<Several<CodePoint>> = table.get("dscp");
    let at = topology.find(&table, "at");
    if let Some(switch) = at.filter(|at| topology.switches.contains_key(at)) {
        let message = format!("{:?} is a switch, and what comes to it is cells already", topology.nodes[switch].name);
        table.error("at", message, Some("name the host or router before it".into()));
    }
    let (contract, path) = (contracts.find_index(&table, "contract"), contracts.find_path(&table, "vp"));
    let metered = table.table("meter").map(|meter| meter::read(meter, &settings.link_layer()));
    let colors = table.choice("colors", meter::COMING);
    if table.has("colors") && metered.is_none() {
        table.error("colors", format!("{}: no meter asks for it", table.path("colors")), Some("add a meter".into()));
    }
    let scope = table.choice("per", &[("node", MeterScope::Node), ("vc", MeterScope::Vc)]);
    let back = table.get("back");
    let dscp: Vec<u8> = dscp?.0.into_iter().map(|CodePoint(dscp)| dscp).collect();
    let metered = match metered {
        Some(meter) => Some(meter?.0),
        None => None,
    };
    let [low_priority, drop] = ["low_priority", "drop"].map(|key| chosen(&table, key, metered.as_ref(), &dscp));
    let conditioner = conditioner::Config { meter: metered, coming: colors?, low_priority: low_priority?, drop: drop? };
    let edge = Edge { name: name?, conditioner, scope: scope? };
    Some((Class { edge, dscp, at, contract, path, back: back? }, table))
}

/// The colors that `key` lists, of those that packets can have.
fn chosen(table: &Table<'_>, key: &'static str, meter: Option<&Meter>, dscp: &[u8]) -> Option<[bool; 3]> {
    if !table.has(key) {
        return Some([false; 3]);
    }
    let named: Several<ColorName> = table.optional(key)?;
    let assured = |dscp: &u8| (8..40).contains(dscp) && matches!(dscp & 7, 2 | 4 | 6);
    let (possible, reason) = match meter {
        None if !dscp.iter().any(assured) => {
            (Color::Green, "nothing colors these packets: no meter, and no code point of assured forwarding (AFxy)")
        }
        Some(meter) if !meter.has_red() => (Color::Yellow, "this meter has two answers, green and yellow"),
        _ => (Color::Red, ""),
    };
    let mut chosen = [false; 3];
    for ColorName(color) in named.0 {
        if color > possible {
            let hint = "meters of three colors are srtcm and trtcm";
            table.error(key, format!("{}: {reason}", table.path(key)), Some(hint.into()));
            return None;
        }
        chosen[color as usize] = true;
    }
    Some(chosen)
}
