//! `[access]`: client - CPE - line - DSLAM - gateway - server.

use lastmile_linklayer::preset;
use lastmile_queueing::compress::Compression;
use lastmile_queueing::spec::Spec;
use lastmile_sim::spec::NodeIndex;
use lastmile_units::{BitRate, Duration, Ratio};

use crate::diagnostics::Place;
use crate::line::{self, Defaults, LineSpec};
use crate::policy::{self, Policy};
use crate::queue::{self, Remedy};
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};
use crate::topology::Topology;

pub(crate) static ACCESS: Section = Section {
    heading: "`[access]`",
    about: "An access line with all that stands around it: `client` - `cpe` - line - `dslam` - `gateway` - `server`. Its links are \
            called `down` and `up` (the line), `cpe-client` and `client-cpe` (the LAN), `gateway-dslam` and `dslam-gateway` \
            (aggregation), `server-gateway` and `gateway-server` (backbone). Other `[[link]]`s may join at any of its nodes.",
    keys: &[
        Key::required("down", Kind::Table("`[access.down]`, `[access.up]`"), "The line towards the client."),
        Key::required("up", Kind::Table("`[access.down]`, `[access.up]`"), "The line from the client."),
        line::ENCAPSULATION,
        line::OAM,
        line::COMPRESSION,
        line::SLOTS,
        Key::with_default(
            "remedy",
            Kind::Choice(&["none", "sad", "ack-filter", "ack-priority", "sad-priority"]),
            "none",
            "What is done about ACKs that wait upstream: short for wrapping the queue of `up`, see [remedies](#remedies).",
        ),
        Key::optional(
            "policy",
            Kind::Text,
            "none",
            "A [policy](policy.md) in place of the queue of `up` (and, if it has one for it, of `down`): the name of one that comes with \
             the program, such as \"sad-cbq\", or the path of a file, seen from this one.",
        ),
        Key::optional("lan", Kind::Table("`[access.lan]`"), "its defaults", "Between client and CPE."),
        Key::optional("aggregation", Kind::Table("`[access.lan]`"), "its defaults", "Between DSLAM and gateway."),
        Key::optional("backbone", Kind::Table("`[access.lan]`"), "its defaults", "Between gateway and server."),
        Key::optional("processing", Kind::Table("`[access.processing]`"), "no delays", "Processing delays."),
    ],
};

pub(crate) static DIRECTION: Section = Section {
    heading: "`[access.down]`, `[access.up]`",
    about: "One direction of the line. What is left out of encapsulation, OAM cells and header compression is as `[access]` says.",
    keys: &[
        Key::required("rate", Kind::Rate, "Rate of the wire, headers and cells included."),
        line::DELAY,
        line::LOSS,
        line::QUEUE,
        line::ENCAPSULATION,
        line::OAM,
        line::COMPRESSION,
        line::SLOTS,
    ],
};

macro_rules! hop {
    ($name:ident, $heading:literal, $about:literal, $rate:literal, $delay:literal, $layer:literal) => {
        pub(crate) static $name: Section = Section {
            heading: $heading,
            about: $about,
            keys: &[
                Key::with_default("rate", Kind::Rate, $rate, line::RATE.doc),
                Key::with_default("delay", Kind::Time, $delay, line::DELAY.doc).at_most(line::MAX_DELAY),
                line::LOSS,
                Key::with_default(
                    "encapsulation",
                    Kind::Other("name of a preset, or a table"),
                    $layer,
                    line::ENCAPSULATION.doc,
                ),
                Key::optional(
                    "queue",
                    Kind::Table("[queues](#queues)"),
                    "FIFO of 1000 packets",
                    "The queues at both ends.",
                ),
            ],
        };
    };
}

hop!(LAN, "`[access.lan]`", "Between client and CPE, the same both ways.", "100 Mbit/s", "0 ms", "ethernet");
hop!(
    AGGREGATION,
    "`[access.aggregation]`",
    "Between DSLAM and gateway, the same both ways.",
    "1 Gbit/s",
    "0 ms",
    "ethernet"
);
hop!(
    BACKBONE,
    "`[access.backbone]`",
    "Between gateway and server, the same both ways.",
    "1 Gbit/s",
    "10 ms",
    "ethernet"
);

pub(crate) static PROCESSING: Section = Section {
    heading: "`[access.processing]`",
    about: "Constant delay of a packet that a node forwards or receives.",
    keys: &[
        Key::with_default("client", Kind::Time, "0 ms", "In the client.").at_most("10 s"),
        Key::with_default("cpe", Kind::Time, "0 ms", "In the modem or router.").at_most("10 s"),
        Key::with_default("dslam", Kind::Time, "0 ms", "In the DSLAM.").at_most("10 s"),
        Key::with_default("gateway", Kind::Time, "0 ms", "In the gateway.").at_most("10 s"),
        Key::with_default("server", Kind::Time, "0 ms", "In the server.").at_most("10 s"),
    ],
};

/// The access line of a file.
#[derive(Clone, Debug)]
pub struct Access {
    /// The line towards the client.
    pub down: LineSpec,
    /// The line from the client, its remedy included.
    pub up: LineSpec,
    /// What is done about ACKs that wait upstream.
    pub remedy: Remedy,
    /// The policy that the queues come from, if the file names one.
    pub policy: Option<Policy>,
    /// Index of the link `down` in the network.
    pub down_link: usize,
    /// Index of the link `up` in the network.
    pub up_link: usize,
    /// Index of the node `client` in the network.
    pub client: NodeIndex,
    /// Index of the node `server` in the network.
    pub server: NodeIndex,
}

/// Adds the nodes of the access line, before any other: client, CPE, DSLAM, gateway, server.
pub(crate) fn add_nodes(table: &Table<'_>, topology: &mut Topology<'_>) -> [NodeIndex; 5] {
    let processing = table.table("processing").map(|processing| processing.open(&PROCESSING));
    let delay = |name: &'static str| match &processing {
        Some(processing) => processing.get(name).unwrap_or(Duration::ZERO),
        None => Duration::ZERO,
    };
    let names = ["client", "cpe", "dslam", "gateway", "server"];
    names.map(|name| topology.add_node(name, delay(name)).expect("these are the first nodes"))
}

/// Reads the line and its surroundings, and adds the links between `nodes`.
pub(crate) fn read<'d>(table: &Table<'d>, nodes: [NodeIndex; 5], topology: &mut Topology<'d>) -> Option<Access> {
    let shared = Defaults {
        link_layer: line::shared_layer(table, preset::IP.link),
        compression: line::compression(table, Compression::None),
        ..Defaults::default()
    };
    let down = direction(table, "down", &shared);
    let up = direction(table, "up", &shared);
    let remedy = table.choice("remedy", Remedy::NAMES);
    let up = up.zip(remedy).and_then(|(up, remedy)| {
        let queue = queue::with_remedy(table, up.queue.clone(), remedy)?;
        Some(LineSpec { queue, ..up })
    });
    let policy = policy(table, down.as_ref(), up.as_ref());
    let lan = hop(table, "lan", &LAN);
    let aggregation = hop(table, "aggregation", &AGGREGATION);
    let backbone = hop(table, "backbone", &BACKBONE);
    let [client, cpe, dslam, gateway, server] = nodes;
    let (mut down, mut up, lan, policy) = (down?, up?, lan?, policy?);
    if let Some(policy) = &policy {
        up.queue = policy.up.clone();
        down.queue = policy.down.clone().unwrap_or(down.queue);
    }
    let (aggregation, backbone) = (aggregation?, backbone?);
    let links = [
        (&backbone, "server-gateway", server, gateway),
        (&aggregation, "gateway-dslam", gateway, dslam),
        (&down, "down", dslam, cpe),
        (&lan, "cpe-client", cpe, client),
        (&lan, "client-cpe", client, cpe),
        (&up, "up", cpe, dslam),
        (&aggregation, "dslam-gateway", dslam, gateway),
        (&backbone, "gateway-server", gateway, server),
    ];
    for (line, name, from, to) in links {
        topology.add_link(line.link(name.into(), from, to), table);
    }
    Some(Access { down, up, remedy: remedy?, policy, down_link: 2, up_link: 5, client, server })
}

/// The policy that the file names, on this line. `None` if it is wrong.
fn policy(table: &Table<'_>, down: Option<&LineSpec>, up: Option<&LineSpec>) -> Option<Option<Policy>> {
    let Some(name) = table.optional::<String>("policy") else {
        return if table.has("policy") { None } else { Some(None) };
    };
    if table.has("remedy") && table.optional::<String>("remedy").is_some_and(|remedy| remedy != "none") {
        let hint = "a policy has remedies of its own: leave out one of them";
        table.error("remedy", "both a remedy and a policy", Some(hint.into()));
        return None;
    }
    let (down, up) = (down?, up?);
    let line = policy::Line { up: up.rate?, down: down.rate?, up_layer: up.link_layer, down_layer: down.link_layer };
    match Policy::load(&name, table.directory().as_deref(), Some(line)) {
        Ok(policy) => {
            table.adopt(&policy.warnings);
            Some(Some(policy))
        }
        Err(report) => {
            // What is wrong inside the file is told there; that there is none, here.
            match report.findings() {
                [only] if matches!(only.place, Place::WholeFile { .. }) => {
                    table.error(
                        "policy",
                        format!("{}: {:?}: {}", table.path("policy"), name, only.message),
                        only.hint.clone(),
                    );
                }
                _ => table.adopt(&report),
            }
            None
        }
    }
}

fn direction(table: &Table<'_>, key: &'static str, shared: &Defaults) -> Option<LineSpec> {
    let own = table.required_table(key)?.open(&DIRECTION);
    if !own.has("rate") {
        own.missing("rate");
    }
    LineSpec::read(&own, shared).filter(|line| line.rate.is_some())
}

fn hop(table: &Table<'_>, key: &'static str, section: &'static Section) -> Option<LineSpec> {
    let own = match table.table(key) {
        Some(own) => own.open(section),
        None if table.has(key) => return None,
        None => table.empty(key, section),
    };
    let rate = own.get::<BitRate>("rate");
    let delay = own.get::<Duration>("delay");
    let loss = own.get::<Ratio>("loss");
    let layer = match line::encapsulation(&own) {
        Some(layer) => layer,
        None if own.has("encapsulation") => return None,
        None => line::named_layer(&own, &own.get::<String>("encapsulation")?)?,
    };
    let queue = match own.table("queue") {
        Some(queue) => queue::read(queue, &layer),
        None => Some(Spec::fifo(1000)),
    };
    Some(LineSpec {
        rate: Some(rate?),
        link_layer: layer,
        delay: delay?,
        loss: loss?,
        compression: Compression::None,
        queue: queue?,
    })
}
