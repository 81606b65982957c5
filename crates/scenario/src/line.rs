//! One direction of a line as a file describes it: rate, encapsulation, delay, loss, queue. Both clocks build from it.

use core::num::NonZeroU16;

use lastmile_linklayer::fixed_ratio::FixedRatio;
use lastmile_linklayer::multilink::{Multilink, SequenceNumber};
use lastmile_linklayer::{Framing, Interleave, LinkLayer, OamShare, PRESETS, Preset, preset};
use lastmile_model::Hop;
use lastmile_queueing::compress::Compression;
use lastmile_queueing::line::Config;
use lastmile_queueing::line::trace::Trace;
use lastmile_queueing::spec::Spec as QueueSpec;
use lastmile_queueing::{Overflow, fifo};
use lastmile_units::{BitRate, ByteCount, Duration, Ratio};

use crate::delay::MAX_DELAY;
use crate::diagnostics::{did_you_mean, nearest};
use crate::impairments;
use crate::queue::{self, Wire};
use crate::reader::{Table, Unopened};
use crate::schema::{Key, Kind, Section};
use crate::{grants, trace};

/// Buffer of a line that says nothing about it, where 100 packets are less: about one long round trip, the
/// classic rule.
const DEFAULT_BUFFER: Duration = Duration::from_ms(100);

/// Forms of an encapsulation.
pub(crate) const LAYERS: &[Kind] = &[Kind::Encapsulation, Kind::Table("`encapsulation = { ... }`")];

pub(crate) const RATE: Key =
    Key::optional("rate", Kind::Rate, "transmission takes no time", "Rate of the wire, headers and cells included.");
pub(crate) const DELAY: Key =
    Key::with_default("delay", Kind::Time, "0 ms", "Propagation delay, one way.").at_most(MAX_DELAY);
/// The key that opens `section`: the other direction of a link.
pub(crate) const fn back(section: &'static str) -> Key {
    Key::optional("back", Kind::Table(section), "the same as the way there", "Other values for the way back.")
}
pub(crate) const LOSS: Key =
    Key::with_default("loss", Kind::Share, "0 %", "Share of packets lost on the wire, at random.");
pub(crate) const ENCAPSULATION: Key = Key::optional(
    "encapsulation",
    Kind::Other("name of a preset, or a table", LAYERS),
    "`\"ip\"`: bare IP packets",
    "Headers and framing, which decide the cost of an IP packet on this wire. See [encapsulations](#encapsulations).",
);
pub(crate) const MTU: Key = Key::optional(
    "mtu",
    Kind::Bytes,
    "1500 B over Ethernet, 1492 B over PPPoE, none over other encapsulations",
    "The largest IP packet that the link carries.",
)
.at_least("68 B")
.at_most("65535 B");
pub(crate) const OAM: Key = Key::optional(
    "oam",
    Kind::Count,
    "no OAM cells",
    "One cell in `oam` belongs to operation and maintenance; `27` is the share of ITU-T I.432. Only over ATM.",
)
.at_least("2")
.at_most("65535");
pub(crate) const COMPRESSION: Key = Key::optional(
    "header_compression",
    Kind::Other("`\"none\"`, `\"vj\"` or a share such as `\"10 %\"`", &[Kind::Choice(&["none", "vj"]), Kind::Share]),
    "`\"none\"`",
    "TCP/IP header compression: with the state of RFC 1144, or as a model in which this share of every header remains.",
);
pub(crate) const SLOTS: Key =
    Key::optional("vj_slots", Kind::Count, "16", "Connections that RFC 1144 header compression remembers at each end.")
        .at_least("1")
        .at_most("256");
pub(crate) const INTERLEAVE: Key = Key::optional(
    "interleave",
    Kind::Other(
        "`\"none\"`, `\"cells\"`, or a size such as `\"160 B\"`",
        &[Kind::Choice(&["none", "cells"]), Kind::Bytes],
    ),
    "`\"none\"`",
    "Where something more urgent may interrupt the packet that is being sent: behind each of its cells, every class \
     having a virtual channel of \
     its own, or behind PPP multilink fragments of this size (RFC 1990 and 2686). The queue says what is more \
     urgent: its kind is \
     `\"priority\"`.",
);
pub(crate) const QUEUE: Key = Key::optional(
    "queue",
    Kind::Table("[queues](#queues)"),
    "FIFO of 100 packets, or where that is more of 100 ms and the longest wait for a grant",
    "The queue in front of the transmitter.",
);

/// The values of a direction whose table leaves something out.
#[derive(Clone)]
pub(crate) struct Defaults {
    pub(crate) line: Config,
    /// `None`: [`default_queue`] of its rate.
    pub(crate) queue: Option<QueueSpec>,
    /// The MTU that the file states; `None`: that of the direction's encapsulation.
    pub(crate) mtu: Option<NonZeroU16>,
    /// The access line or link: generated traces differ by line.
    pub(crate) number: trace::Number,
    /// The point at which a trace begins that does not say it.
    pub(crate) start: Duration,
}

impl Default for Defaults {
    fn default() -> Self {
        let line = Config::new(None, preset::IP.link, Duration::ZERO);
        Self { line, queue: None, mtu: None, number: trace::Number::Line(0), start: Duration::ZERO }
    }
}

/// The wire of a link, on which a queue that leaves out its limit holds `least` packets, or where that is more
/// [`DEFAULT_BUFFER`] and `wait`, for which packets stay in it whatever the load.
pub(crate) fn wire(layer: LinkLayer, rate: Option<BitRate>, least: u32, wait: Duration) -> Wire {
    Wire::new(layer, rate).with_buffer(least, DEFAULT_BUFFER + wait)
}

/// The queue of a link that says nothing about it.
pub(crate) fn default_queue(wire: &Wire) -> QueueSpec {
    QueueSpec::Fifo(fifo::Config { limit: wire.unsaid_limit(), drop: Overflow::Tail })
}

/// Reads the keys of a direction. `None` if its queue is wrong.
pub(crate) fn read(table: &Table<'_>, name: &str, defaults: &Defaults) -> Option<Hop> {
    read_with(table, name, defaults, Inherited::default())
}

/// Values that the way back of a link takes from the way there, to be read for its own line.
#[derive(Default)]
pub(crate) struct Inherited<'t, 'd> {
    /// The queue, if the table has none.
    pub(crate) queue: Option<Unopened<'d>>,
    /// The way there, whose trace is read if the table has neither trace nor rate.
    pub(crate) there: Option<&'t Table<'d>>,
}

/// As [`read`], with what the line takes from another.
pub(crate) fn read_with<'d>(
    table: &Table<'d>,
    name: &str,
    defaults: &Defaults,
    inherited: Inherited<'_, 'd>,
) -> Option<Hop> {
    let link_layer = with_mtu(table, shared_layer(table, defaults.line.link_layer), defaults.mtu);
    let shared_rate = defaults.line.grants.as_ref().map_or(defaults.line.rate, |grants| Some(grants.rate));
    let rate = table.optional("rate").or(shared_rate);
    let delay = table.optional("delay").unwrap_or(defaults.line.delay);
    let compression = compression(table, defaults.line.compression);
    let mut line = Config { rate, delay, trace: None, grants: None, link_layer, compression, ..defaults.line.clone() };
    match inherited.there {
        Some(there) if there.has("trace") && !table.has("trace") && !table.has("rate") => {
            // Steps that leave something out take it from this direction.
            line.rate = there.optional("rate");
            line.delay = table.optional("delay").or(there.optional("delay")).unwrap_or_default();
            impairments::read(table, &mut line)?;
            trace::read(there, &mut line, defaults.number, defaults.start)?;
        }
        _ => {
            impairments::read(table, &mut line)?;
            trace::read(table, &mut line, defaults.number, defaults.start)?;
        }
    }
    line.link_layer = with_tun_header(link_layer, line.trace.as_ref());
    let link_layer = line.link_layer;
    match &defaults.line.grants {
        Some(inherited) if ["grants", "rate", "trace"].iter().all(|key| !table.has(key)) => {
            grants::give(table, &mut line, inherited.as_ref().clone());
        }
        _ => grants::read(table, &mut line)?,
    }
    let rate = line.rate;
    // A rate that is wrong is reported once: limits in time, which need a rate, are read by another one.
    let stand_in = table.has("rate").then_some(BitRate::from_mbit_per_s(1));
    let wait = line.grants.as_ref().map_or(Duration::ZERO, |grants| grants.longest_wait());
    let wire = wire(link_layer, rate.or(stand_in), 100, wait);
    let queue = match (table.table("queue").or(inherited.queue), &defaults.queue) {
        (Some(queue), _) => queue::read(queue, &wire),
        (None, Some(queue)) => queue::checked(table, queue, &link_layer),
        (None, None) => Some(default_queue(&wire)),
    };
    let queue = queue?;
    queue::tree::within(table, "queue", &queue, rate)?;
    warn_of_another_service_flow(table, &line, &queue);
    queue::wait::warn_of_grants(table, "queue", &line, &queue);
    Some(Hop { name: name.to_owned(), line, queue })
}

/// The header of a packet from a TUN device, four bytes of flags and protocol.
const TUN: LinkLayer = match LinkLayer::new(4, Framing::None) {
    Ok(layer) => layer,
    Err(_) => preset::IP.link,
};

/// Over plain IP the packets of mahimahi count with the header of its TUN device, so that one of 1500 bytes takes a
/// whole opportunity.
fn with_tun_header(layer: LinkLayer, trace: Option<&Trace>) -> LinkLayer {
    let is_plain = layer.with_mtu(None) == preset::IP.link;
    match trace {
        Some(Trace::Opportunities(_)) if is_plain => TUN.with_mtu(layer.mtu()),
        _ => layer,
    }
}

/// Warns of a DOCSIS-PIE whose service flow is faster than that of the grants: it would see no queue.
fn warn_of_another_service_flow(table: &Table<'_>, line: &Config, queue: &QueueSpec) {
    let granted = line.grants.as_ref().and_then(|grants| grants.mean_rate());
    if let (QueueSpec::DocsisPie(pie), Some(granted)) = (queue, granted)
        && pie.sustained > granted
    {
        let message = format!(
            "{}.sustained: {}, where grants have {granted}: PIE would reckon with a shorter queue",
            table.path("queue"),
            pie.sustained
        );
        table.warning("queue", message, Some(format!("sustained = \"{granted}\"")));
    }
}

/// The MTU that the table gives.
pub(crate) fn mtu(table: &Table<'_>) -> Option<NonZeroU16> {
    table.optional::<ByteCount>("mtu").and_then(|mtu| NonZeroU16::new(u16::try_from(mtu.as_u64()).ok()?))
}

/// `layer` with the MTU that the table gives, or else with `shared`; with neither, with its own.
pub(crate) fn with_mtu(table: &Table<'_>, layer: LinkLayer, shared: Option<NonZeroU16>) -> LinkLayer {
    let given = mtu(table).or(shared);
    if given.is_some() { layer.with_mtu(given) } else { layer }
}

/// A custom encapsulation.
pub(crate) static CUSTOM: Section = Section {
    heading: "`encapsulation = { ... }`",
    about: "An encapsulation of one's own: `overhead` is added to the IP packet, the sum raised to `minimum`, then \
            framed. \
            For ATM the 8-byte AAL5 trailer is part of the overhead.",
    keys: &[
        Key::required(
            "overhead",
            Kind::Count,
            "Bytes around each IP packet; negative where a device counts more than the line carries.",
        )
        .at_least("-64")
        .at_most("512"),
        Key::with_default(
            "framing",
            Kind::Choice(&["none", "atm", "ptm"]),
            "none",
            "Framing: none, cells of 53 bytes, or 64/65 blocks.",
        ),
        Key::with_default("minimum", Kind::Count, "0", "Least bytes of packet and overhead together, before framing.")
            .at_most("1024"),
    ],
};

/// The link layer at `encapsulation`, without OAM cells; `None` without it or if it is wrong.
pub(crate) fn encapsulation(table: &Table<'_>) -> Option<LinkLayer> {
    if table.has_table("encapsulation") {
        return custom(table);
    }
    let name: String = table.optional("encapsulation")?;
    named_layer(table, &name)
}

/// Encapsulation and OAM share of a table; where that leaves them out or has them wrong, `base`.
pub(crate) fn shared_layer(table: &Table<'_>, base: LinkLayer) -> LinkLayer {
    let own = encapsulation(table);
    let layer = own.unwrap_or(base);
    if let Some(cells) = table.optional::<u64>("oam") {
        let share = u16::try_from(cells).ok().and_then(OamShare::one_in);
        // A share out of range is reported where it is read.
        let Some(share) = share else { return layer };
        // With a wrong encapsulation the share may well be right.
        let known = own.is_some() || !table.has("encapsulation");
        return layer.with_oam(share).unwrap_or_else(|error| {
            if known {
                table.error("oam", format!("{}: {error}", table.path("oam")), None);
            }
            layer
        });
    }
    match (own, base.oam()) {
        // An encapsulation of its own over the same cells; over anything else there are none.
        (Some(layer), Some(share)) => layer.with_oam(share).unwrap_or(layer),
        _ => layer,
    }
}

/// The preset called `name`, or an error at `encapsulation`.
pub(crate) fn named_layer(table: &Table<'_>, name: &str) -> Option<LinkLayer> {
    let found = LinkLayer::from_name(name);
    if found.is_none() {
        let hint = layer_meant(name).unwrap_or_else(|| {
            let known: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
            format!(
                "known: {}; or words of tc-cake(8), such as \"pppoe-ptm ether-vlan\" or \"ptm overhead 34\"",
                known.join(", ")
            )
        });
        table.error("encapsulation", format!("unknown encapsulation {name:?}"), Some(hint));
    }
    found
}

/// `did you mean "pppoa-vcmux"?`: where a name of no link layer is close to one, also behind tunnels and with a VLAN.
#[must_use]
pub fn layer_meant(name: &str) -> Option<String> {
    let tagged = name.strip_suffix("-vlan").map(|plain| format!("{plain} ether-vlan"));
    if let Some(tagged) = tagged.filter(|words| LinkLayer::from_name(words).is_some()) {
        return Some(format!("did you mean {tagged:?}?"));
    }
    match name.rsplit_once('/') {
        Some((tunnel, carrier)) if LinkLayer::from_name(carrier).is_none() => {
            let known = nearest(carrier, Preset::candidates(carrier))?;
            Some(format!("did you mean \"{tunnel}/{known}\"?"))
        }
        _ => did_you_mean(name, Preset::candidates(name)),
    }
}

fn custom(table: &Table<'_>) -> Option<LinkLayer> {
    let custom = table.table("encapsulation")?.open(&CUSTOM);
    let framing = custom.choice("framing", &[("none", Framing::None), ("atm", Framing::Atm), ("ptm", Framing::Ptm)]);
    let overhead = custom.get::<i64>("overhead");
    let minimum = custom.get::<u64>("minimum");
    let (overhead, minimum) = (i32::try_from(overhead?).ok()?, u32::try_from(minimum?).ok()?);
    LinkLayer::new(overhead, framing?)
        .and_then(|layer| layer.with_min_frame(minimum))
        .inspect_err(|error| table.error("encapsulation", format!("{}: {error}", table.path("encapsulation")), None))
        .ok()
}

/// `layer` as `interleave` has it; as it is where that is left out or wrong.
pub(crate) fn interleaved(table: &Table<'_>, layer: LinkLayer) -> LinkLayer {
    let key = "interleave";
    let Some(text) = table.optional::<String>(key) else { return layer };
    let interleave = match text.as_str() {
        "none" => Interleave::Never,
        "cells" => Interleave::Cells,
        size => {
            let Some(fragments) = fragments(table, key, size) else { return layer };
            Interleave::Fragments(fragments)
        }
    };
    layer.with_interleave(interleave).unwrap_or_else(|error| {
        let hint = "such as encapsulation = \"pppoa-vcmux\"";
        table.error(key, format!("{}: {error}", table.path(key)), Some(hint.into()));
        layer
    })
}

/// PPP multilink fragments of `size`, with the long header; `None` and an error at `key` if it is no size or
/// no fragment is like that.
fn fragments(table: &Table<'_>, key: &'static str, size: &str) -> Option<Multilink> {
    let sequence = SequenceNumber::Long;
    let Ok(bytes) = size.parse::<ByteCount>() else {
        let hint = "\"none\", \"cells\", or the size of PPP multilink fragments, such as \"160 B\"";
        table.error(key, format!("unknown {key} {size:?}"), Some(hint.into()));
        return None;
    };
    let fragments = Multilink::new(bytes, sequence);
    if fragments.is_none() {
        let (least, most) = (ByteCount::new(sequence.bytes()), Multilink::MAX_FRAGMENT);
        let message = format!(
            "{}: fragments of {bytes}; from {least}, as long as the header of each, to {most}",
            table.path(key)
        );
        table.error(key, message, Some("such as \"160 B\"".into()));
    }
    fragments
}

/// Checks a line whose packets may be interrupted; an error is reported at `key`, the line itself. True if
/// the line is in order. `instead` names the queue that replaces the one of the line's own table.
pub(crate) fn can_interleave(table: &Table<'_>, key: &'static str, hop: &Hop, instead: Option<&str>) -> bool {
    if hop.line.link_layer.interleave() == Interleave::Never {
        return true;
    }
    if hop.line.grants.is_some() {
        table.error(key, format!("{}: interleave on a line with grants", table.path(key)), None);
        return false;
    }
    if !matches!(hop.queue, QueueSpec::Priority(_)) {
        let (found, hint) = match instead {
            Some(instead) => (instead, "leave out one of them"),
            None => (
                "without a queue of kind \"priority\"",
                "queue = { kind = \"priority\", classes = [...] }: a class may interrupt those below it",
            ),
        };
        table.error(key, format!("{}: interleave {found}", table.path(key)), Some(hint.into()));
        return false;
    }
    if matches!(hop.line.compression, Compression::Rfc1144 { .. }) {
        let hint = "header_compression = \"none\" on this direction";
        let message = format!(
            "{}: interleave with header_compression = \"vj\", whose packets must arrive in the order in which they \
             were compressed",
            table.path(key)
        );
        table.error(key, message, Some(hint.into()));
        return false;
    }
    true
}

/// Header compression of a table; where that leaves it out or has it wrong, `base`.
pub(crate) fn compression(table: &Table<'_>, base: Compression) -> Compression {
    let slots = table.optional::<u64>("vj_slots").and_then(|slots| u16::try_from(slots).ok());
    let chosen = if table.has("header_compression") { named_compression(table) } else { Some(base) };
    match (chosen, slots) {
        (Some(Compression::Rfc1144 { .. }), Some(slots)) => Compression::Rfc1144 { slots },
        (Some(compression), Some(_)) => {
            table.error("vj_slots", "vj_slots without header_compression = \"vj\"", None);
            compression
        }
        (chosen, _) => chosen.unwrap_or(base),
    }
}

fn named_compression(table: &Table<'_>) -> Option<Compression> {
    let key = "header_compression";
    let text: String = table.optional(key)?;
    match text.as_str() {
        "none" => Some(Compression::None),
        "vj" => Some(Compression::Rfc1144 { slots: RFC1144_SLOTS }),
        share => match share.parse::<Ratio>() {
            Ok(remaining) => Some(Compression::FixedRatio(FixedRatio::new(remaining))),
            Err(_) => {
                let hint = "\"none\", \"vj\" (RFC 1144), or the share of a header that remains, such as \"10 %\"";
                table.error(key, format!("unknown {key} {text:?}"), Some(hint.into()));
                None
            }
        },
    }
}

/// RFC 1144, section 3.2.2, leaves the number open and its code has 16.
const RFC1144_SLOTS: u16 = 16;
