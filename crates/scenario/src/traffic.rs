//! `[[traffic]]`: what runs over the network.

mod context;
mod kinds;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lastmile_model::{Echo, Http, IpFields, Listener, Names, OpenedBy, Source, Steady, Traffic};
use lastmile_tcp::Config;
use lastmile_units::{BitRate, ByteCount, Duration, Instant, WireBytes};

use crate::endpoints::{Ends, Ways, ways};
use crate::queue::CodePoint;
use crate::quic::Transport;
use crate::reader::{Table, Unopened};
use crate::topology::Topology;
use crate::value::SendRate;
use crate::{apps, listener, names, quic, replay, tcp};

pub(crate) use context::Surroundings;
pub(crate) use kinds::{Form, kinds, sections};
use kinds::{KINDS, TRAFFIC};

/// Most flows of a run.
pub(crate) const MOST_FLOWS: u64 = 1_000_000;
/// Most ping requests of a run: each reply is kept.
const MOST_PINGS: u64 = 10_000_000;
/// Packets of datagram sources, unless they say otherwise: those of most lines, of G.711 in 20 ms (RFC 3551),
/// of ping(8).
const PACKET: u16 = 1500;
const CALL_PACKET: u16 = 200;
const PING_PACKET: u16 = 84;
/// Mean time between writes, at least.
const SHORTEST_GAP: Duration = Duration::from_us(1);

/// A `[[traffic]]` of the file: one traffic, or one for each line and way.
struct Item<'d> {
    name: String,
    table: Table<'d>,
    /// Each with what its name ends in.
    members: Vec<(String, Traffic)>,
}

/// Reads all of `[[traffic]]`, each with its table.
pub(crate) fn read<'d>(root: &Table<'d>, around: &Surroundings<'_, '_>) -> Vec<(Traffic, Table<'d>)> {
    let mut items: Vec<Item<'_>> = root.tables("traffic").into_iter().filter_map(|item| one(item, around)).collect();
    name_the_nameless(&mut items);
    let mut read: Vec<(Traffic, Table<'_>)> = Vec::new();
    for Item { name, table, members } in items {
        let named = |(suffix, traffic): (String, Traffic)| Traffic { name: format!("{name}{suffix}"), ..traffic };
        read.extend(members.into_iter().map(|member| (named(member), table.clone())));
    }
    check_names(&read);
    check_amounts(root, &read, around.duration);
    read
}

fn one<'d>(item: Unopened<'d>, around: &Surroundings<'_, '_>) -> Option<Item<'d>> {
    let (form, table) = item.open_kind(&TRAFFIC, &KINDS)?;
    let ways = ways(&table, form);
    let name = if table.has("name") { table.optional_name("name") } else { Some(String::new()) };
    let lines = Ends::read(&table, form, ways.unwrap_or_default(), around);
    let count = table.get::<u64>("count");
    let (start, stop) = times(&table, around.duration);
    let ip = ip_fields(&table, form, around);
    let ends = lines.as_ref().and_then(|lines| lines.first()).map(|(_, ends)| ends);
    let sources = sources(&table, form, ways, ends, ip.unwrap_or_default(), around);
    let listener = match form {
        Form::Voice | Form::Conference => listener::of_voice(&table),
        Form::Poisson | Form::OnOff | Form::Blast | Form::Game => listener::of_datagrams(&table),
        _ => Some(Listener::default()),
    };
    // More than 2^32 - 1 is above the limit and is reported as such.
    let count = u32::try_from(count?).unwrap_or(u32::MAX);
    let (lines, sources, start, ip, listener) = (lines?, sources?, start?, ip?, listener?);
    let mut members = Vec::new();
    for (line, ends) in &lines {
        for (way, source) in ways?.iter().zip(&sources) {
            let (ends, way) = if sources.len() > 1 {
                let ends = ends.turned(*way);
                let label = format!("-{}", ends.label);
                (ends, label)
            } else {
                (ends.clone(), String::new())
            };
            let (direction, names, source) = (ends.label.clone(), Names::default(), source.clone());
            let (from, to) = (ends.from, ends.to);
            let mut traffic =
                Traffic { name: String::new(), direction, from, to, count, start, stop, ip, names, listener, source };
            // Names and ways are the same on every line: their errors are reported once.
            traffic.names = match members.first() {
                Some((_, first)) if sources.len() == 1 => Traffic::clone(first).names,
                _ => names_of(&table, &traffic, &ends),
            };
            if members.is_empty() {
                check_ways(&table, &traffic, around.topology);
            }
            members.push((format!("{line}{way}"), traffic));
        }
    }
    Some(Item { name: name?, table, members })
}

fn names_of(table: &Table<'_>, traffic: &Traffic, ends: &Ends) -> Names {
    // Where nothing is opened the client is that of the access line.
    let opened_by = match traffic.source {
        Source::Bulk { .. } | Source::Quic { .. } | Source::Writes { .. } => traffic.opened_by(),
        _ if traffic.source.transport().is_some() => traffic.opened_by(),
        _ => ends.opened_by,
    };
    let server_sends = opened_by == OpenedBy::Receiver;
    names::read(table, &names::Nature { server_sends, ipv6: traffic.ip.ipv6, count: traffic.count })
}

fn times(table: &Table<'_>, duration: Duration) -> (Option<Instant>, Option<Instant>) {
    let start: Option<Instant> = table.get("start");
    let stop: Option<Instant> = table.optional("stop");
    if let (Some(start), Some(stop)) = (start, stop)
        && stop <= start
    {
        let hint = format!("it starts at {start}");
        table.error("stop", format!("{}: {stop} is not after its start", table.path("stop")), Some(hint));
    }
    if let Some(start) = start
        && start >= Instant::ZERO + duration
        && !duration.is_zero()
    {
        let path = table.path("start");
        let message = if start == Instant::ZERO + duration {
            format!("{path}: {start} is the end of the run, so no time is left for it")
        } else {
            format!("{path}: {start} is past the end of the run, so it never starts")
        };
        table.warning("start", message, Some(format!("the run lasts {duration}")));
    }
    (start, stop)
}

/// The IP headers of a traffic. Captured packets have headers of their own.
fn ip_fields(table: &Table<'_>, form: Form, around: &Surroundings<'_, '_>) -> Option<IpFields> {
    let dscp = if table.has("dscp") { table.optional("dscp") } else { Some(CodePoint(0)) };
    if form == Form::Replay && table.has("ipv6") {
        let message = format!("{}: a replay has the packets of its capture, of either version", table.path("ipv6"));
        table.error("ipv6", message, Some("leave it out".into()));
        return None;
    }
    let ipv6 = table.optional("ipv6").unwrap_or(around.ipv6 && form != Form::Replay);
    dscp.map(|CodePoint(dscp)| IpFields { dscp, ipv6 })
}

/// The sources of a traffic, one for each of its ways.
fn sources(
    table: &Table<'_>,
    form: Form,
    ways: Option<Ways>,
    ends: Option<&Ends>,
    ip: IpFields,
    around: &Surroundings<'_, '_>,
) -> Option<Vec<Source>> {
    if form == Form::Replay {
        let replays = replay::read(table, around.folder, ways?)?;
        return Some(replays.into_iter().map(|replay| Source::Replay(Arc::new(replay))).collect());
    }
    let ways = ways?;
    if ways.len() == 1 {
        return Some(vec![source(table, form, ends, ip, around)?]);
    }
    // Each way has a client of its own, who opens its connection.
    ways.iter().map(|way| source(table, form, ends.map(|ends| ends.turned(*way)).as_ref(), ip, around)).collect()
}

fn source(
    table: &Table<'_>,
    form: Form,
    ends: Option<&Ends>,
    ip: IpFields,
    around: &Surroundings<'_, '_>,
) -> Option<Source> {
    match form {
        Form::Bulk => {
            let bytes: Option<ByteCount> = table.optional("bytes");
            transfer(table, bytes.map(ByteCount::as_u64), ends, ip, around)
        }
        Form::Persistent => transfer(table, None, ends, ip, around),
        Form::Writes => writes(table, ends, ip, around),
        Form::Poisson => {
            let (rate, size) = (table.get("rate"), size(table, (PACKET, ip), mtu_there(ends, around)));
            Some(Source::Poisson { rate: rate?, size: size? })
        }
        Form::OnOff => on_off(table, size(table, (PACKET, ip), mtu_there(ends, around))),
        Form::Voice => {
            let (interval, size) =
                (table.get("interval"), size(table, (CALL_PACKET + ip.more_than_ipv4(), ip), mtu_there(ends, around)));
            Some(Source::Constant { interval: interval?, size: size?, kind: Steady::Voice })
        }
        Form::Blast => {
            let (rate, size) = (table.get::<SendRate>("rate"), size(table, (PACKET, ip), mtu_there(ends, around)));
            let (rate, size): (_, ByteCount) = (rate?, size?);
            let Some(interval) = rate.interval(size) else {
                let message = format!("{}: packets at less than a nanosecond", table.path("rate"));
                table.error("rate", message, None);
                return None;
            };
            Some(Source::Constant { interval, size, kind: Steady::Blast })
        }
        Form::Web => {
            let http = apps::http(table)?;
            let transport = if http == Http::Three { Transport::Quic } else { Transport::Tcp };
            let transport = quic::only_settings_of(table, transport, "http");
            apps::web(table, http, transport.and_then(|transport| settings_of(table, transport, ends, ip, around)))
        }
        Form::Video => apps::video::read(table, own_transport(table, ends, ip, around)),
        Form::Backup => {
            let opened_by = ends.map_or(OpenedBy::Sender, |ends| ends.opened_by);
            apps::backup::read(table, opened_by, own_transport(table, ends, ip, around))
        }
        Form::Conference => apps::conference::read(table, ip),
        Form::Game => apps::game::read(table, path_mtu(ends, around).bytes, ip),
        Form::Swarm => apps::swarm(table, &own_tcp(table, ends, ip, around)),
        // It has a file, see above.
        Form::Replay => None,
        Form::Ping => {
            let (interval, size) =
                (table.get("interval"), size(table, (PING_PACKET + ip.more_than_ipv4(), ip), path_mtu(ends, around)));
            let echo = table.choice("protocol", &[Echo::Icmp, Echo::Udp].map(|echo| (echo.name(), echo)));
            Some(Source::Ping { interval: interval?, size: size?, echo: echo? })
        }
    }
}

/// The TCP of a traffic: its own, or that of the file.
fn own_tcp(table: &Table<'_>, ends: Option<&Ends>, ip: IpFields, around: &Surroundings<'_, '_>) -> Arc<Config> {
    let own = tcp::own(table);
    let settings = own.as_ref().map(|own| tcp::read(own, &around.tcp));
    let settings = settings.as_ref().unwrap_or(&around.tcp);
    let config = settings.on(path_mtu(ends, around), ip).unwrap_or_else(|problem| {
        let (at, key) = own.as_ref().map_or((table, "tcp"), |own| (own, "mss"));
        let hint = "leave mss out, and it follows from the MTU; or give the link a larger mtu";
        at.error(key, format!("{}: {problem}", at.path(key)), Some(hint.into()));
        Config::default()
    });
    Arc::new(config)
}

/// The transport of an application, with its settings.
fn own_transport(
    table: &Table<'_>,
    ends: Option<&Ends>,
    ip: IpFields,
    around: &Surroundings<'_, '_>,
) -> Option<lastmile_model::Transport> {
    settings_of(table, quic::transport(table)?, ends, ip, around)
}

fn settings_of(
    table: &Table<'_>,
    transport: Transport,
    ends: Option<&Ends>,
    ip: IpFields,
    around: &Surroundings<'_, '_>,
) -> Option<lastmile_model::Transport> {
    Some(match transport {
        Transport::Tcp => lastmile_model::Transport::Tcp(own_tcp(table, ends, ip, around)),
        Transport::Quic => lastmile_model::Transport::Quic(quic::read(table, path_mtu(ends, around), ip)?),
    })
}

fn path_mtu<'a>(ends: Option<&Ends>, around: &Surroundings<'a, '_>) -> tcp::Mtu<'a> {
    let ways = |ends: &Ends| [(ends.from, ends.to), (ends.to, ends.from)];
    ends.map_or(tcp::Mtu { bytes: None, link: "" }, |ends| around.topology.mtu(&ways(ends)))
}

/// The MTU of the way there alone, for packets that nothing answers in kind.
fn mtu_there<'a>(ends: Option<&Ends>, around: &Surroundings<'a, '_>) -> tcp::Mtu<'a> {
    ends.map_or(tcp::Mtu { bytes: None, link: "" }, |ends| around.topology.mtu(&[(ends.from, ends.to)]))
}

/// IP bytes of the packets of a source of datagrams, on a path of this MTU.
fn size(table: &Table<'_>, (default, ip): (u16, IpFields), mtu: tcp::Mtu<'_>) -> Option<ByteCount> {
    if !table.has("size") {
        return Some(ByteCount::new(mtu.bytes.map_or(default, |mtu| mtu.min(default)).into()));
    }
    let size: ByteCount = table.optional("size")?;
    let headers = ByteCount::new(ip.datagram_headers().into());
    if size < headers {
        table.error("size", format!("{}: {size} are less than {headers} of headers", table.path("size")), None);
        return None;
    }
    if let Some(bytes) = mtu.bytes.filter(|bytes| size.as_u64() > u64::from(*bytes)) {
        let message = format!("{}: link {:?} carries packets up to {bytes} B (its MTU)", table.path("size"), mtu.link);
        table.error("size", message, Some("smaller packets, or give the link a larger mtu".into()));
        return None;
    }
    Some(size)
}

fn transfer(
    table: &Table<'_>,
    bytes: Option<u64>,
    ends: Option<&Ends>,
    ip: IpFields,
    around: &Surroundings<'_, '_>,
) -> Option<Source> {
    let transport = quic::transport(table)?;
    let request: Option<ByteCount> = table.get("request");
    let opened_by = opened_by(table, ends)?;
    let request = request?.as_u64();
    if request > 0 && opened_by == OpenedBy::Sender {
        let hint = "a request precedes a download: direction = \"down\", or opened_by = \"receiver\"";
        table.error("request", "a request in a transfer that its sender opens", Some(hint.into()));
    }
    if transport == Transport::Quic {
        let quic = quic::read(table, path_mtu(ends, around), ip)?;
        return Some(Source::Quic { quic, bytes, request, opened_by });
    }
    let config = own_tcp(table, ends, ip, around);
    Some(Source::Bulk { sender: Arc::clone(&config), receiver: config, bytes, request, opened_by })
}

fn opened_by(table: &Table<'_>, ends: Option<&Ends>) -> Option<OpenedBy> {
    let asked = table.optional_choice("opened_by", &[("sender", OpenedBy::Sender), ("receiver", OpenedBy::Receiver)]);
    asked.or(ends.map(|ends| ends.opened_by))
}

fn writes(table: &Table<'_>, ends: Option<&Ends>, ip: IpFields, around: &Surroundings<'_, '_>) -> Option<Source> {
    let tcp = own_tcp(table, ends, ip, around);
    let (rate, opened_by) = (table.get::<BitRate>("rate"), opened_by(table, ends));
    let size = table.optional("size").unwrap_or(ByteCount::new(tcp.mss.into()));
    let rate = rate?;
    if rate.time_for(WireBytes::new(size.as_u64())) < SHORTEST_GAP {
        let message =
            format!("{}: {size} at {rate} are handed over more than once in {SHORTEST_GAP}", table.path("rate"));
        table.error("rate", message, Some("hand over more at a time: see size".into()));
        return None;
    }
    Some(Source::Writes { tcp, rate, size, first: table.optional("first"), opened_by: opened_by? })
}

fn on_off(table: &Table<'_>, size: Option<ByteCount>) -> Option<Source> {
    let (rate, peak) = (table.optional::<BitRate>("rate"), table.optional::<BitRate>("peak"));
    let (on, off) = (table.get::<Duration>("on"), table.get::<Duration>("off"));
    let both = "give the mean rate or the peak: the other follows from on and off";
    if table.has("rate") && table.has("peak") {
        table.error("peak", "both rate and peak", Some(both.into()));
    } else if !table.has("rate") && !table.has("peak") {
        table.error("kind", "neither rate nor peak", Some(both.into()));
    }
    let (on, off) = (on?, off?);
    let peak = match (rate, peak) {
        (Some(mean), None) => {
            let whole = u128::from(on.as_ps()) + u128::from(off.as_ps());
            let bps = u64::try_from(u128::from(mean.as_bps()) * whole / u128::from(on.as_ps())).ok();
            let found = bps.and_then(BitRate::from_bps);
            if found.is_none() {
                let message = format!("{}: with these times the peak is above {}", table.path("rate"), BitRate::MAX);
                table.error("rate", message, None);
            }
            found
        }
        (_, peak) => peak,
    };
    Some(Source::OnOff { peak: peak?, on, off, size: size? })
}

/// Both ends can reach each other; a datagram source needs only the way there.
/// True if packets come back.
pub(crate) fn answered(traffic: &Traffic) -> bool {
    let answers = matches!(
        traffic.source,
        Source::Bulk { .. }
            | Source::Quic { .. }
            | Source::Writes { .. }
            | Source::Ping { .. }
            | Source::Conference(_)
            | Source::Game(_)
    );
    answers || traffic.opens()
}

fn check_ways(table: &Table<'_>, traffic: &Traffic, topology: &Topology<'_>) {
    let mut ways = vec![(traffic.from, traffic.to)];
    if answered(traffic) {
        ways.push((traffic.to, traffic.from));
    }
    for (from, to) in ways {
        if let Some(switch) = [from, to].into_iter().find(|node| topology.switches.contains_key(node)) {
            let key = if switch == traffic.from { "from" } else { "to" };
            let message =
                format!("{:?} is a switch, and no traffic begins or ends at one", topology.nodes[switch].name);
            table.error(key, message, Some("link a host to it".into()));
            return;
        }
        if !topology.leads(from, to) {
            let (from, to) = (&topology.nodes[from].name, &topology.nodes[to].name);
            table.error("from", format!("no links lead from {from:?} to {to:?}"), None);
            return;
        }
    }
}

/// Traffic without a name is called by its kind, numbered where that is taken.
fn name_the_nameless(items: &mut [Item<'_>]) {
    let mut taken: BTreeSet<String> = items.iter().map(|item| item.name.clone()).collect();
    let mut numbers: BTreeMap<String, u64> = BTreeMap::new();
    for item in items.iter_mut().filter(|item| item.name.is_empty()) {
        let kind: String = item.table.optional("kind").unwrap_or_default();
        let number = numbers.entry(kind.clone()).or_default();
        while item.name.is_empty() {
            *number += 1;
            let name = if *number == 1 { kind.clone() } else { format!("{kind}{number}") };
            if taken.insert(name.clone()) {
                item.name = name;
            }
        }
    }
}

/// No two flows have one name: `a` with a count of two has `a-1` and `a-2`.
fn check_names(read: &[(Traffic, Table<'_>)]) {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for (traffic, table) in read {
        if counts.insert(&traffic.name, traffic.count).is_some() {
            table.error("name", format!("a second traffic is called {:?}", traffic.name), None);
        }
    }
    for (traffic, table) in read {
        let Some((base, number)) = traffic.name.rsplit_once('-') else { continue };
        let Some(count) = counts.get(base).copied().filter(|count| *count > 1) else { continue };
        if number
            .parse::<u32>()
            .is_ok_and(|number| (1..=count).contains(&number) && !has_leading_zero(number, &traffic.name))
        {
            let message = format!("{:?} is also the name of a flow of {base:?}, which counts {count}", traffic.name);
            table.error("name", message, None);
        }
    }
}

fn has_leading_zero(number: u32, name: &str) -> bool {
    !name.ends_with(&format!("-{number}"))
}

fn check_amounts(root: &Table<'_>, read: &[(Traffic, Table<'_>)], duration: Duration) {
    let flows: u64 = read.iter().map(|(traffic, _)| u64::from(traffic.count)).sum();
    if flows > MOST_FLOWS {
        let largest = read.iter().max_by_key(|(traffic, _)| traffic.count);
        let hint = "each flow takes up to 1 KiB of memory: a million take 1 GB";
        let table = largest.map_or(root, |(_, table)| table);
        let asked = table.optional::<u64>("count").unwrap_or(flows).max(flows);
        table.error("count", format!("{asked} flows are more than a run takes: {MOST_FLOWS}"), Some(hint.into()));
    }
    let pings = |traffic: &Traffic| match traffic.source {
        Source::Ping { interval, .. } => (duration / interval).saturating_mul(u64::from(traffic.count)),
        _ => 0,
    };
    for (traffic, table) in read {
        if pings(traffic) > MOST_PINGS {
            let message = format!("{} pings in {duration} are more than a run keeps: {MOST_PINGS}", pings(traffic));
            table.error("interval", message, Some("a longer interval, or a shorter duration".into()));
        }
    }
}
