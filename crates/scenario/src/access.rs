//! `[access]`: client - CPE - line - DSLAM - gateway - server.

use lastmile_linklayer::preset;
use lastmile_model::{AccessLine, Autorate, Hop, Link, NodeIndex};
use lastmile_queueing::compress::Compression;
use lastmile_queueing::line::Config;
use lastmile_queueing::spec::Spec;
use lastmile_units::{BitRate, Duration, Ratio};

use crate::delay::MAX_DELAY;
use crate::diagnostics::Place;
use crate::impairments;
use crate::line::{self, Defaults};
use crate::policy::{self, Policy, Position, autorate};
use crate::queue;
use crate::reader::{Table, Unopened};
use crate::schema::{Key, Kind, Section};
use crate::topology::Topology;
use crate::{grants, provider, trace};

pub(crate) static ACCESS: Section = Section {
    heading: "`[access]`",
    about: "An access line with all that stands around it: `client` - `cpe` - line - `dslam` - `gateway` - \
            `server`. Its links are \
            called `down` and `up` (the line), `cpe-client` and `client-cpe` (the LAN), `gateway-dslam` and \
            `dslam-gateway` \
            (aggregation), `server-gateway` and `gateway-server` (backbone). A policy with a middlebox puts a node \
            `middlebox` between CPE and LAN, and \
            links `middlebox-down` and `middlebox-up`. Other `[[link]]`s may join at any of its nodes. With `lines` \
            above one, as many equal lines meet in the DSLAM and share the aggregation: clients, CPEs and the links \
            of each line are numbered \
            (`client-1`, `cpe-1`, `down-1`, `up-1`, `cpe-client-1`, `client-cpe-1`, and so on).",
    keys: &[
        Key::with_default(
            "lines",
            Kind::Count,
            "1",
            "Number of lines. Traffic runs on each of them, unless it names its `line`; results compare them.",
        )
        .at_least("1")
        .at_most("2000"),
        Key::required("down", Kind::Table("`[access.down]`, `[access.up]`"), "The line towards the client."),
        Key::required("up", Kind::Table("`[access.down]`, `[access.up]`"), "The line from the client."),
        line::ENCAPSULATION,
        line::MTU,
        line::OAM,
        line::COMPRESSION,
        line::SLOTS,
        Key::optional(
            "policy",
            Kind::Text,
            "none",
            "A [policy](policy.md) in place of the queue of `up`, or in a middlebox before and behind the line, as \
             it says: the name of a built-in one, such as \"sad-cbq\", or the path of a file, relative to this one. \
             `\"none\"`: no policy, the \
             line's own queues. Where the queue of a direction is a token bucket or a policer, as that of a provider, \
             the policy takes the smaller of its rate and the line's, and in the modem the place of the queue within.",
        ),
        Key::optional("lan", Kind::Table("`[access.lan]`"), "its defaults", "The network between client and CPE."),
        Key::optional(
            "aggregation",
            Kind::Table("`[access.aggregation]`"),
            "its defaults",
            "The network between DSLAM and gateway.",
        ),
        Key::optional(
            "backbone",
            Kind::Table("`[access.backbone]`"),
            "its defaults",
            "The network between gateway and server.",
        ),
        Key::optional("processing", Kind::Table("`[access.processing]`"), "no delays", "Processing delays."),
    ],
};

pub(crate) static DIRECTION: Section = Section {
    heading: "`[access.down]`, `[access.up]`",
    about: "One direction of the line. Encapsulation, MTU, OAM cells and header compression are those of \
            `[access]` unless given here.",
    keys: &[
        Key::optional("rate", Kind::Rate, "the trace has it", "Rate of the wire, headers and cells included."),
        trace::TRACE,
        grants::GRANTS,
        line::DELAY,
        impairments::LOSS,
        impairments::JITTER,
        impairments::REORDER,
        impairments::DUPLICATE,
        impairments::BIT_ERROR_RATE,
        line::QUEUE,
        line::ENCAPSULATION,
        line::MTU,
        line::OAM,
        line::COMPRESSION,
        line::SLOTS,
        line::INTERLEAVE,
    ],
};

macro_rules! hop {
    ($name:ident, $heading:literal, $about:literal, $delay:literal, $layer:literal) => {
        pub(crate) static $name: Section = Section {
            heading: $heading,
            about: $about,
            keys: &[
                Key::optional(
                    "rate",
                    Kind::Rate,
                    "1 Gbit/s, or twice the rate of the lines behind it where that is more",
                    line::RATE.doc,
                ),
                Key::with_default("delay", Kind::Time, $delay, line::DELAY.doc).at_most(MAX_DELAY),
                line::LOSS,
                Key::with_default(
                    "encapsulation",
                    Kind::Other("name of a preset, or a table", line::LAYERS),
                    $layer,
                    line::ENCAPSULATION.doc,
                ),
                line::MTU,
                Key::optional(
                    "queue",
                    Kind::Table("[queues](#queues)"),
                    "FIFO of 1000 packets, or of 100 ms where that is more",
                    "The queues at both ends.",
                ),
            ],
        };
    };
}

hop!(LAN, "`[access.lan]`", "Between client and CPE, the same both ways.", "0 ms", "ethernet");
hop!(AGGREGATION, "`[access.aggregation]`", "Between DSLAM and gateway, the same both ways.", "0 ms", "ethernet");
hop!(BACKBONE, "`[access.backbone]`", "Between gateway and server, the same both ways.", "10 ms", "ethernet");

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
    pub down: Hop,
    /// The line from the client, with the queue of a policy in the modem.
    pub up: Hop,
    /// The policy that the queues come from, if the file names one.
    pub policy: Option<Policy>,
    /// Index of the link `down` in the network, of several lines that of the first.
    pub down_link: usize,
    /// Index of the link `up` in the network, of several lines that of the first.
    pub up_link: usize,
    /// Index of the node `client` in the network, of several lines that of the first.
    pub client: NodeIndex,
    /// Index of the node `server` in the network.
    pub server: NodeIndex,
}

/// The nodes of the access lines.
pub(crate) struct Nodes {
    /// Client and CPE of each line.
    lines: Vec<(NodeIndex, NodeIndex)>,
    dslam: NodeIndex,
    gateway: NodeIndex,
    server: NodeIndex,
}

impl Nodes {
    /// The clients, and the server.
    pub(crate) fn ends(&self) -> (Vec<NodeIndex>, NodeIndex) {
        (self.lines.iter().map(|(client, _)| *client).collect(), self.server)
    }
}

/// Opens `[access]`. Hints name what says the same as a key of another table, or as the removed key `remedy`.
pub(crate) fn open(table: Unopened<'_>) -> Table<'_> {
    let remedy = table.text("remedy").unwrap_or_default().to_owned();
    table.open_with_hints(&ACCESS, |key| match key {
        "remedy" => Some(in_place_of_remedy(&remedy)),
        "rtt" | "delay" => Some("`delay` of access.down and of access.up, each half of the round trip".to_owned()),
        _ => None,
    })
}

fn in_place_of_remedy(remedy: &str) -> String {
    let queue = |kind: &str| format!("queue = {{ kind = \"{kind}\", limit = ... }} in [access.up]");
    match remedy {
        "none" => "leave it out: a line without policy has its own queues".to_owned(),
        "sad" | "ack-filter" => format!("policy = \"{remedy}\"; or, to keep the line's own limit, {}", queue(remedy)),
        "ack-priority" => format!("{}; policy = \"ack-priority\" shares by rates", queue("priority")),
        "sad-priority" => {
            "policy = \"sad-priority\"; or, to keep the line's own limit, queue = { kind = \"priority\", \
             classes = [{ match = { pure_ack = true }, queue = { kind = \"sad\", limit = ... } }, { limit = ... }] \
                           } in [access.up]"
                .to_owned()
        }
        _ => "policy = \"NAME\": lastmile policy list names them; or a kind of queue in [access.up]".to_owned(),
    }
}

/// The name of a node or link of a line: its own name with one line, numbered from 1 with several.
fn numbered(name: &str, line: usize, lines: usize) -> String {
    if lines == 1 { name.to_owned() } else { format!("{name}-{}", line + 1) }
}

/// Adds the nodes of the access lines, before any other: client and CPE of each line, DSLAM, gateway, server.
pub(crate) fn add_nodes(table: &Table<'_>, topology: &mut Topology<'_>) -> Nodes {
    let processing = table.table("processing").map(|processing| processing.open(&PROCESSING));
    let delay = |name: &'static str| match &processing {
        Some(processing) => processing.get(name).unwrap_or(Duration::ZERO),
        None => Duration::ZERO,
    };
    let count = table.get::<u64>("lines").and_then(|lines| usize::try_from(lines).ok()).unwrap_or(1);
    let (client, cpe) = (delay("client"), delay("cpe"));
    let mut add = |name: String, delay: Duration| topology.add_node(&name, delay).expect("these are the first nodes");
    let lines = (0..count)
        .map(|line| (add(numbered("client", line, count), client), add(numbered("cpe", line, count), cpe)))
        .collect();
    let [dslam, gateway, server] = ["dslam", "gateway", "server"].map(|name| add(name.to_owned(), delay(name)));
    Nodes { lines, dslam, gateway, server }
}

/// Reads the line and its surroundings, and adds the links between `nodes`: those of the aggregation and the
/// backbone, then line by line.
pub(crate) fn read<'d>(
    table: &Table<'d>,
    nodes: &Nodes,
    topology: &mut Topology<'d>,
) -> Option<(Access, Vec<AccessLine>, Vec<Autorate>)> {
    let mut shared = Defaults::default();
    shared.line.link_layer = line::shared_layer(table, preset::IP.link);
    shared.mtu = line::mtu(table);
    shared.line.compression = line::compression(table, Compression::None);
    shared.start = trace::shared_start(table, [&["down", "trace", "start"], &["up", "trace", "start"]]);
    let down = direction(table, "down", &shared);
    let up = direction(table, "up", &shared);
    let policy = policy(table, down.as_ref(), up.as_ref());
    let fastest = [&down, &up].into_iter().flatten().filter_map(|hop| hop.line.rate).max();
    let count = u64::try_from(nodes.lines.len()).unwrap_or(u64::MAX);
    let lan = hop(table, "lan", &LAN, ample(fastest, 1));
    let aggregation = hop(table, "aggregation", &AGGREGATION, ample(fastest, count));
    let backbone = hop(table, "backbone", &BACKBONE, ample(fastest, count));
    let Nodes { dslam, gateway, server, .. } = *nodes;
    let (down, mut up, lan, policy) = (down?, up?, lan?, policy?);
    let middlebox = Middlebox::of(policy.as_ref());
    if let Some(policy) = policy.as_ref().filter(|policy| policy.place == Position::Modem) {
        up.queue = provider::with_policy(&up.queue, &policy.up);
        queue::wait::warn_of_grants(table, "policy", &up.line, &up.queue);
    }
    let in_modem = policy.as_ref().is_some_and(|policy| policy.place == Position::Modem);
    let instead = in_modem.then_some("with a policy in the modem, whose queues interrupt nothing");
    if !line::can_interleave(table, "down", &down, None) || !line::can_interleave(table, "up", &up, instead) {
        return None;
    }
    let (aggregation, backbone) = (aggregation?, backbone?);
    let add = |topology: &mut Topology<'d>, hop: &Hop, name: &str, from, to| {
        topology.add_link(Link { from, to, hop: Hop { name: name.to_owned(), ..hop.clone() } }, table);
    };
    add(topology, &backbone, "server-gateway", server, gateway);
    add(topology, &aggregation, "gateway-dslam", gateway, dslam);
    let count = nodes.lines.len();
    let per_line = 4 + middlebox.links();
    let (mut lines, mut autorates) = (Vec::new(), Vec::new());
    for (number, &(client, cpe)) in nodes.lines.iter().enumerate() {
        let line = u64::try_from(number).unwrap_or(u64::MAX);
        let (down, up) = (of_line(table, "down", &down, &shared, line)?, of_line(table, "up", &up, &shared, line)?);
        let named = |name: &str| numbered(name, number, count);
        let (behind, before) = middlebox.nodes(cpe, || topology.add_node(&named("middlebox"), Duration::ZERO));
        let mut add = |hop: &Hop, name: &str, from, to| {
            topology.add_link(Link { from, to, hop: Hop { name: named(name), ..hop.clone() } }, table);
        };
        add(&down, "down", dslam, cpe);
        add(&lan, "cpe-client", behind, client);
        add(&lan, "client-cpe", client, before);
        add(&up, "up", cpe, dslam);
        if let Some(queue) = &middlebox.down {
            add(&hop_of(&down, queue), "middlebox-down", cpe, behind);
        }
        if let Some(queue) = &middlebox.up {
            add(&hop_of(&up, queue), "middlebox-up", before, cpe);
        }
        let first = 2 + per_line * number;
        if let Some(controller) = policy.as_ref().and_then(|policy| policy.autorate().cloned()) {
            // Behind the four links of the line stand those of the middlebox, which has both.
            let shapers = [first + 4, first + 5];
            autorates.push(Autorate { controller, shapers, from: behind, reflector: server });
        }
        lines.push(AccessLine { name: named("line"), down: first, up: first + 3 });
    }
    add(topology, &aggregation, "dslam-gateway", dslam, gateway);
    add(topology, &backbone, "gateway-server", gateway, server);
    let client = nodes.lines.first().map(|(client, _)| *client)?;
    Some((Access { down, up, policy, down_link: 2, up_link: 5, client, server }, lines, autorates))
}

/// `hop` as the access line of this number has it: a generated trace is its own.
fn of_line(table: &Table<'_>, key: &'static str, hop: &Hop, shared: &Defaults, number: u64) -> Option<Hop> {
    let own = table.table(key).map(|own| own.open(&DIRECTION));
    if number == 0 || !own.is_some_and(|own| trace::is_generated(&own)) {
        return Some(hop.clone());
    }
    let own = direction(table, key, &Defaults { number: trace::Number::Line(number), ..shared.clone() })?;
    Some(Hop { line: own.line, ..hop.clone() })
}

/// The queues of a middlebox between the CPE and the LAN, by direction.
#[derive(Default)]
struct Middlebox {
    down: Option<Spec>,
    up: Option<Spec>,
}

impl Middlebox {
    fn of(policy: Option<&Policy>) -> Self {
        let Some(policy) = policy else { return Self::default() };
        let before = policy.place == Position::Middlebox;
        let largest = |queue: &Spec, direction: usize| match policy.autorate() {
            Some(controller) => autorate::at_most(queue, controller.rates[direction].max),
            None => queue.clone(),
        };
        let down = policy.down.as_ref().map(|down| largest(&down.queue, 0));
        Self { down, up: before.then(|| largest(&policy.up, 1)) }
    }

    /// The number of its links towards the CPE.
    fn links(&self) -> usize {
        usize::from(self.down.is_some()) + usize::from(self.up.is_some())
    }

    /// Where the LAN begins downstream and where it ends upstream: a node of its own that `add` adds, or the CPE.
    fn nodes(&self, cpe: NodeIndex, add: impl FnOnce() -> Option<NodeIndex>) -> (NodeIndex, NodeIndex) {
        let own = if self.links() > 0 { add().unwrap_or(cpe) } else { cpe };
        (if self.down.is_some() { own } else { cpe }, if self.up.is_some() { own } else { cpe })
    }
}

/// The hop over which a middlebox hands on what it has queued: it counts as the line does, and takes no time itself.
fn hop_of(hop: &Hop, queue: &Spec) -> Hop {
    let line = Config { link_layer: hop.line.link_layer, ..Defaults::default().line };
    Hop { name: hop.name.clone(), line, queue: queue.clone() }
}

/// The policy that the file names, on this line. `None` if it is wrong.
fn policy(table: &Table<'_>, down: Option<&Hop>, up: Option<&Hop>) -> Option<Option<Policy>> {
    let Some(name) = table.optional::<String>("policy") else {
        return if table.has("policy") { None } else { Some(None) };
    };
    if name == policy::ready::NONE {
        return Some(None);
    }
    let (down, up) = (down?, up?);
    let line = policy::Line {
        up: Some(provider::rate(up)?),
        down: Some(provider::rate(down)?),
        up_layer: up.line.link_layer,
        down_layer: down.line.link_layer,
        up_best: Some(provider::best_rate(up)?),
        down_best: Some(provider::best_rate(down)?),
    };
    match Policy::load_from(table.files(), &name, table.directory().as_deref(), Some(line)) {
        Ok(policy) => {
            table.adopt(&policy.warnings);
            Some(Some(policy))
        }
        Err(report) => {
            // The file reports its own errors; a missing file is reported here.
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

fn direction(table: &Table<'_>, key: &'static str, shared: &Defaults) -> Option<Hop> {
    let own = table.required_table(key)?.open(&DIRECTION);
    if !own.has("rate") && !own.has("trace") {
        own.missing("rate");
    }
    let mut hop = line::read(&own, key, shared).filter(|hop| hop.line.rate.is_some())?;
    hop.line.link_layer = line::interleaved(&own, hop.line.link_layer);
    Some(hop)
}

/// The rate of a hop that says nothing about it: never the bottleneck of `lines` lines, the faster direction
/// of which has `fastest`.
fn ample(fastest: Option<BitRate>, lines: u64) -> BitRate {
    let twice = fastest.map_or(0, |rate| rate.as_bps().saturating_mul(2).saturating_mul(lines));
    BitRate::from_bps(twice.max(1_000_000_000)).unwrap_or(BitRate::MAX)
}

fn hop(table: &Table<'_>, key: &'static str, section: &'static Section, ample: BitRate) -> Option<Hop> {
    let own = match table.table(key) {
        Some(own) => own.open(section),
        None if table.has(key) => return None,
        None => table.empty(key, section),
    };
    let rate = own.optional::<BitRate>("rate").unwrap_or(ample);
    let delay = own.get::<Duration>("delay");
    let loss = own.get::<Ratio>("loss");
    let layer = match line::encapsulation(&own) {
        Some(layer) => layer,
        None if own.has("encapsulation") => return None,
        None => line::named_layer(&own, &own.get::<String>("encapsulation")?)?,
    };
    let layer = line::with_mtu(&own, layer, None);
    let wire = line::wire(layer, Some(rate), 1000, Duration::ZERO);
    let queue = match own.table("queue") {
        Some(queue) => queue::read(queue, &wire),
        None => Some(line::default_queue(&wire)),
    };
    let line = Config { loss: loss?, ..Config::new(Some(rate), layer, delay?) };
    Some(Hop { name: key.to_owned(), line, queue: queue? })
}
