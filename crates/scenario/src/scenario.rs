//! A scenario, read and checked: what the rest of lastmile works with.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use lastmile_model::{Echo, IpFields, Listener, Names, Network, NodeIndex, Record, Source, Traffic};
use lastmile_units::{ByteCount, Duration};

use crate::access::{self, Access};
use crate::atm::contract::Contracts;
use crate::atm::edge::Edges;
use crate::atm::{self, circuits};
use crate::cases::{self, Case};
use crate::diagnostics::{Diagnostic, Place, Report, Source as Text};
use crate::document::{self, Document};
use crate::file::{self, Reading};
use crate::files::{Disk, Files};
use crate::kinds::FileKind;
use crate::memory::{self, Need, Recorded};
use crate::overrides::Override;
use crate::reader::{Reader, Table};
use crate::schema::{Key, Kind, Section};
use crate::tcp;
use crate::topology::{self, Topology};
use crate::traffic::{self, Surroundings};

pub(crate) static ROOT: Section = Section {
    heading: "Top level",
    about: "",
    keys: &[
        Key::optional("name", Kind::Text, "the file's name", "Name in the results."),
        Key::optional(
            "duration",
            Kind::Time,
            "required with `[[traffic]]`",
            "Simulated time, such as \"180 s\". A file that only describes a line, for `lastmile emulate`, needs none.",
        )
        .at_least("1 us")
        .at_most("720 h"),
        Key::with_default("seed", Kind::Count, "1", "Seed of every random stream: equal seeds give equal results."),
        Key::with_default(
            "start_jitter",
            Kind::Time,
            "100 ms",
            "Each flow starts up to this much after its `start`, drawn by the seed, and at most a tenth of its time \
             after it: flows that start \
             at one instant keep in step. `\"0 ms\"` starts all on time. Captures are replayed on time.",
        )
        .at_most("1 h"),
        Key::with_default("ipv6", Kind::Flag, "false", "Traffic is IPv6, unless its own `ipv6` says otherwise."),
        Key::optional("record", Kind::Table("`[record]`"), "its defaults", "Records in addition to the totals."),
        Key::optional("tcp", Kind::Table("`[tcp]`"), "its defaults", "TCP settings of all transfers."),
        Key::optional("access", Kind::Table("`[access]`"), "no access line", "An access line with its surroundings."),
        Key::optional("node", Kind::Tables("`[[node]]`"), "none", "Nodes with a processing delay."),
        Key::optional("link", Kind::Tables("`[[link]]`"), "none", "Links outside the access line."),
        Key::optional("atm", Kind::Table("`[atm]`"), "its defaults", "Settings that all links of cells share."),
        Key::optional("switch", Kind::Tables("`[[switch]]`"), "none", "ATM switches: their links carry cells."),
        Key::optional(
            "contract",
            Kind::Tables("`[[contract]]`"),
            "none",
            "Traffic contracts of virtual channels and paths.",
        ),
        Key::optional(
            "edge",
            Kind::Tables("`[[edge]]`"),
            "none",
            "Edge devices, where packets become cells: drop precedence, cell loss priority, contract.",
        ),
        Key::optional("vp", Kind::Tables("`[[vp]]`"), "none", "Virtual paths that are policed as a whole."),
        Key::optional("traffic", Kind::Tables("`[[traffic]]`"), "none", "Sources of traffic."),
        Key::optional("case", Kind::Tables("`[[case]]`"), "none", "Rows of `lastmile compare`."),
    ],
};

pub(crate) static RECORD: Section = Section {
    heading: "`[record]`",
    about: "Records in addition to the totals.",
    keys: &[
        Key::with_default("series", Kind::Flag, "true", "Series over time: rates, queues, windows, ACK numbers."),
        Key::optional(
            "interval",
            Kind::Time,
            "100 ms, or a 10 000th of the duration if that is longer",
            "Time between samples; at most 100 000 samples in a run.",
        )
        .at_least("1 us")
        .at_most("24 h"),
        Key::with_default(
            "flows",
            Kind::Count,
            "64",
            "Number of flows up to which each flow has series and phases of its own.",
        )
        .at_most("1000"),
    ],
};

/// The best-effort probe of a comparison: its name, the IP bytes of a request and of a reply, and the least
/// time between requests.
const PROBE_NAME: &str = "probe";
const PROBE_SIZE: ByteCount = ByteCount::new(84);
const PROBE_INTERVAL: Duration = Duration::from_ms(200);

/// Most samples of a series.
const MOST_SAMPLES: u64 = 100_000;

/// A scenario: what to simulate, and what else the file says.
#[derive(Clone, Debug)]
pub struct Scenario {
    name: String,
    network: Network,
    access: Option<Access>,
    cases: Vec<Case>,
    needs: Vec<Need>,
    warnings: Report,
    /// The keys of the file.
    root: Arc<document::Table>,
}

impl Scenario {
    /// Reads the file at `path` with `overrides` such as `access.up.rate=1 Mbit/s`, each as `--set` has it
    /// ([`Override::set`]).
    ///
    /// # Errors
    /// All that is wrong: the file cannot be read, or what it says cannot be simulated.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Self, Report> {
        Self::parse_with(&path.display().to_string(), &Self::text(path)?, &set(overrides))
    }

    /// The text of the file at `path`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn text(path: &Path) -> Result<String, Report> {
        let name = path.display().to_string();
        file::read(path, Reading::Once)
            .map_err(|problem| Report::of(Diagnostic::error(Place::WholeFile { name }, problem)))
    }

    /// Reads `text`, which messages call `name`, with `overrides` as [`Scenario::load`] takes them.
    ///
    /// # Errors
    /// All that is wrong with either, at least one of it an error.
    pub fn parse(name: &str, text: &str, overrides: &[String]) -> Result<Self, Report> {
        Self::parse_with(name, text, &set(overrides))
    }

    /// Reads `text`, which messages call `name`, with `overrides`. An error in an override is reported where
    /// it was written.
    ///
    /// # Errors
    /// As [`Scenario::parse`].
    pub fn parse_with(name: &str, text: &str, overrides: &[Override]) -> Result<Self, Report> {
        Self::parse_among(Rc::new(Disk), name, text, overrides)
    }

    /// As [`Scenario::parse`], for a text that names some of `files`.
    ///
    /// # Errors
    /// As [`Scenario::parse`].
    pub fn parse_among(files: Rc<dyn Files>, name: &str, text: &str, overrides: &[Override]) -> Result<Self, Report> {
        let document = Document::parse(Text::new(name, text), overrides)?;
        FileKind::Scenario.check(&document, name)?;
        let root = Arc::new(document.root.clone());
        let reader = Reader::with_files(document, files);
        let read = read_root(&reader.root().open(&ROOT), name);
        let (report, _) = reader.finish();
        if report.has_errors() {
            return Err(report);
        }
        let scenario = read.expect("what could not be read is in the report");
        Ok(Self { warnings: report, root, ..scenario })
    }

    /// The text of the file at `key`, such as `access.up.rate`, if there is one in tables alone.
    #[must_use]
    pub fn text_at(&self, key: &str) -> Option<&str> {
        self.root.text_at(&key.split('.').collect::<Vec<_>>())
    }

    /// The name of the scenario in results.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The network to simulate.
    #[must_use]
    pub fn network(&self) -> Network {
        self.network.clone()
    }

    /// The network to simulate, borrowed.
    #[must_use]
    pub fn network_ref(&self) -> &Network {
        &self.network
    }

    /// This scenario with another network: queues or congestion controls are those of the caller.
    #[must_use]
    pub fn with_network(self, network: Network) -> Self {
        Self { network, ..self }
    }

    /// This scenario with no traffic but that for which `keep` holds: a download on its own, to compare with. The
    /// starts and stops of the others still divide phases.
    #[must_use]
    pub fn with_traffic(mut self, keep: impl Fn(&Traffic) -> bool) -> Self {
        let others = self.network.traffic.iter().filter(|traffic| !keep(traffic));
        self.network.record.cuts = others.flat_map(|other| [Some(other.start), other.stop]).flatten().collect();
        self.network.traffic.retain(keep);
        self
    }

    /// This scenario with a best-effort probe: a ping over UDP without a code point from the client of the
    /// first access line to the server, which no policy puts first because it is a ping. Unchanged without an
    /// access line, or if the file has such a ping.
    ///
    /// The probe runs as long as the file's first ping, or all the time. Its requests take at most 1 % of the upstream.
    #[must_use]
    pub fn with_probe(mut self) -> Self {
        // Packets over links of cells need a virtual channel, which is the file's to name.
        let Some(access) = self.access.as_ref().filter(|_| self.network.atm.is_none()) else { return self };
        let is_ping = |traffic: &&Traffic| matches!(traffic.source, Source::Ping { .. });
        let is_probe =
            |traffic: &Traffic| traffic.ip.dscp == 0 && matches!(traffic.source, Source::Ping { echo: Echo::Udp, .. });
        if self.network.traffic.iter().any(is_probe) {
            return self;
        }
        let up = &self.network.links[access.up_link];
        let taken = up.hop.line.rate.map(|rate| rate.time_for(up.hop.line.link_layer.on_wire(PROBE_SIZE)) * 100);
        let interval = taken.unwrap_or_default().max(PROBE_INTERVAL);
        let times = self.network.traffic.iter().find(is_ping).map(|ping| (ping.start, ping.stop));
        let (start, stop) = times.unwrap_or_default();
        let is_free = |name: &str| !self.network.traffic.iter().any(|traffic| traffic.name == name);
        let numbered = (2..).map(|number| format!("{PROBE_NAME}-{number}"));
        let name = std::iter::once(PROBE_NAME.to_owned()).chain(numbered).find(|name| is_free(name));
        self.network.traffic.push(Traffic {
            name: name.expect("there are more numbers than traffics"),
            direction: "up".to_owned(),
            from: access.client,
            to: access.server,
            count: 1,
            start,
            stop,
            ip: IpFields::default(),
            names: Names::default(),
            listener: Listener::default(),
            source: Source::Ping { interval, size: PROBE_SIZE, echo: Echo::Udp },
        });
        self
    }

    /// The access line, if the file has one: for `emulate`, and for the bounds that hold on it.
    #[must_use]
    pub fn access(&self) -> Option<&Access> {
        self.access.as_ref()
    }

    /// The cases that a comparison of the file runs, in its order; none where the file has none.
    #[must_use]
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// The least memory of a run, part by part.
    #[must_use]
    pub fn needs(&self) -> &[Need] {
        &self.needs
    }

    /// Nothing for a scenario with traffic.
    ///
    /// # Errors
    /// A file without `[[traffic]]`, which describes a line and no run.
    pub fn needs_traffic(&self, file: &str) -> Result<(), Report> {
        if !self.network.traffic.is_empty() {
            return Ok(());
        }
        let place = Place::WholeFile { name: file.to_owned() };
        let hint = "add what runs, such as [[traffic]] with kind = \"bulk\" and direction = \"down\"";
        Err(Report::of(Diagnostic::error(place, "no [[traffic]]: nothing runs").hint(hint)))
    }

    /// Warnings: oddities of the file that do not keep it from being simulated.
    #[must_use]
    pub fn warnings(&self) -> &Report {
        &self.warnings
    }

    /// The links that a traffic's packets take, and those back, as indices into the network's list. `None`
    /// where there is no way, which only the way back of a datagram source may lack.
    ///
    /// # Panics
    /// If the network has no such traffic.
    #[must_use]
    pub fn ways(&self, traffic: usize) -> (Option<Vec<usize>>, Option<Vec<usize>>) {
        let Traffic { from, to, .. } = self.network.traffic[traffic];
        (self.way(from, to), self.way(to, from))
    }

    /// The links that packets take from one node to another, as indices into the network's list, if there is a way.
    #[must_use]
    pub fn way(&self, from: NodeIndex, to: NodeIndex) -> Option<Vec<usize>> {
        topology::path(&self.network.nodes, &self.network.links, from, to)
    }

    /// The round-trip time of a traffic over empty queues: a packet of `out` IP bytes there, one of `back`
    /// back. Transmission, propagation and processing; header compression and OAM cells left out. Over links
    /// of cells a packet is not stored on the way. `None` where there is no way back.
    ///
    /// # Panics
    /// If the network has no such traffic.
    #[must_use]
    pub fn base_rtt(&self, traffic: usize, out: ByteCount, back: ByteCount) -> Option<Duration> {
        let (there, here) = self.ways(traffic);
        let there = self.network.unloaded_delay((traffic, false), &there?, &|_| out);
        Some(there + self.network.unloaded_delay((traffic, true), &here?, &|_| back))
    }
}

fn set(overrides: &[String]) -> Vec<Override> {
    overrides.iter().map(|pair| Override::set(pair)).collect()
}

pub(crate) fn read_root(root: &Table<'_>, file: &str) -> Option<Scenario> {
    let name = if root.has("name") {
        root.optional("name")
    } else {
        let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Some(stem.unwrap_or_else(|| file.to_owned()))
    };
    let duration = duration(root);
    let seed: Option<u64> = root.get("seed");
    let start_jitter: Option<Duration> = root.get("start_jitter");
    let record = record(root, duration);
    let tcp = match tcp::own(root) {
        Some(table) => tcp::read(&table, &tcp::Settings::today()),
        None => tcp::Settings::today(),
    };
    let mut topology = Topology::default();
    let mut ends = None;
    let access = root.table("access").and_then(|table| {
        let table = access::open(table);
        let nodes = access::add_nodes(&table, &mut topology);
        ends = Some(nodes.ends());
        access::read(&table, &nodes, &mut topology)
    });
    let (access, lines, autorates) = match access {
        Some((access, lines, autorates)) => (Some(access), lines, autorates),
        None => (None, Vec::new(), Vec::new()),
    };
    let settings = atm::Settings::read(root);
    topology.read(root, &settings);
    if !root.has("access") && !root.has("link") {
        let hint = "describe an [access] line, or nodes with [[link]]";
        root.error("access", "neither [access] nor a [[link]]: nothing to simulate", Some(hint.into()));
        topology.incomplete();
    }
    if root.has("access") && access.is_none() {
        topology.incomplete();
    }
    let cases = cases::read(root, &cases::CASE);
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let (duration_or_zero, ipv6) = (duration.unwrap_or(Duration::ZERO), root.get("ipv6").unwrap_or(false));
    let around = Surroundings { topology: &topology, ends, tcp, ipv6, duration: duration_or_zero, folder };
    let contracts = Contracts::read(root, topology.is_complete().then(|| topology.classes()));
    let traffic = traffic::read(root, &around);
    let cells = if topology.is_complete() && !contracts.incomplete {
        let edges = Edges::read(root, &topology, &settings, &contracts);
        circuits::build(root, &topology, &settings, (&contracts, edges), &traffic)
    } else {
        None
    };
    let topology_is_complete = topology.is_complete();
    let (traffic, tables): (Vec<_>, Vec<_>) = traffic.into_iter().unzip();
    let (record, recorded) = record?;
    let network = Network {
        nodes: topology.nodes,
        links: topology.links,
        traffic,
        duration: duration?,
        seed: seed?,
        start_jitter: start_jitter?,
        record,
        lines,
        atm: cells,
        autorates,
    };
    // A network with errors may lack values from which needs are counted.
    let needs = if topology_is_complete { memory::needs(&network, &recorded, &tables) } else { Vec::new() };
    Some(Scenario { name: name?, network, access, cases, needs, warnings: Report::default(), root: Arc::default() })
}

/// Simulated time; without traffic it does not matter.
fn duration(root: &Table<'_>) -> Option<Duration> {
    if root.has("duration") {
        return root.optional("duration");
    }
    if root.has("traffic") {
        root.missing("duration");
        return None;
    }
    Some(Duration::from_s(1))
}

fn record(root: &Table<'_>, duration: Option<Duration>) -> Option<(Record, Recorded)> {
    let table = match root.table("record") {
        Some(table) => table.open(&RECORD),
        None => root.empty("record", &RECORD),
    };
    let series: Option<bool> = table.get("series");
    let flows: Option<u64> = table.get("flows");
    let given: Option<Duration> = table.optional("interval");
    let duration = duration?;
    let interval = given.unwrap_or_else(|| Duration::from_ms(100).max(duration / 10_000));
    if duration / interval > MOST_SAMPLES {
        let message = format!(
            "{}: {} samples are more than a run keeps: {MOST_SAMPLES}",
            table.path("interval"),
            duration / interval
        );
        let least = duration / MOST_SAMPLES;
        table.error("interval", message, Some(format!("at least {least} for a duration of {duration}")));
    }
    let flow_limit = usize::try_from(flows?).ok()?;
    let recorded = Recorded { interval: table.place("interval"), flows: table.place("flows") };
    Some((Record { interval: series?.then_some(interval), flow_limit, cuts: Vec::new() }, recorded))
}
