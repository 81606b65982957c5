//! Transmission by grants: presets of link technologies, and keys that change them.

use core::num::NonZeroU64;
use std::sync::Arc;

use lastmile_queueing::line::Config;
use lastmile_queueing::line::grants::{
    Asks, Bucket, Config as Grants, Contention, Cycle, GrantsError, LARGEST_PACKET, Outstanding, PerRequest, Proactive,
    Requests, Slots, SlotsError, Span,
};
use lastmile_queueing::line::trace::Trace;
use lastmile_units::{BitRate, Duration, Ratio, WireBytes};

use crate::delay::MAX_DELAY;
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};
use crate::trace;

const NONE: &str = "none";

pub(crate) const GRANTS: Key = Key::optional(
    "grants",
    Kind::Other(
        "name of a preset, `\"none\"`, or a table, see `grants = { ... }`",
        &[Kind::Choice(&NAMES), Kind::Choice(&[NONE]), Kind::Table("`grants = { ... }`")],
    ),
    NONE,
    "The line sends only what a head end grants: cable, PON, cellular and satellite upstreams. `\"none\"`: it sends at \
     once, at its `rate`.",
);

/// The values of a link technology.
struct Preset {
    name: &'static str,
    interval: Duration,
    pattern: &'static str,
    /// Requests are made.
    asks: bool,
    request_every: Duration,
    piggyback: bool,
    ahead: Duration,
    packet: bool,
    first: Option<WireBytes>,
    largest: Option<WireBytes>,
    many: bool,
    fragmentation: bool,
    proactive: Option<(WireBytes, Duration)>,
    /// Requested grants are beside proactive ones.
    apart: bool,
}

const DOCSIS: Preset = Preset {
    name: "docsis-3.1",
    interval: Duration::from_ms(2),
    pattern: "U",
    asks: true,
    request_every: Duration::from_ms(2),
    piggyback: true,
    ahead: Duration::from_ms(3),
    packet: false,
    first: None,
    largest: None,
    many: true,
    fragmentation: true,
    proactive: None,
    apart: false,
};

const TDD: Preset = Preset {
    name: "5g-tdd",
    interval: Duration::from_us(500),
    pattern: "DDDSU",
    request_every: Duration::from_ms(5),
    ahead: Duration::from_us(2_500),
    first: Some(WireBytes::new(100)),
    ..DOCSIS
};

const PRESETS: [Preset; 9] = [
    Preset { name: "docsis-1.0", packet: true, many: false, fragmentation: false, ..DOCSIS },
    Preset { name: "docsis-2.0", many: false, ..DOCSIS },
    DOCSIS,
    Preset {
        name: "docsis-lld",
        interval: Duration::from_ms(1),
        request_every: Duration::from_ms(1),
        ahead: Duration::from_ms(1),
        proactive: Some((WireBytes::new(250), Duration::from_ms(1))),
        ..DOCSIS
    },
    Preset {
        name: "pon",
        interval: Duration::from_us(125),
        request_every: Duration::from_us(250),
        ahead: Duration::from_us(500),
        ..DOCSIS
    },
    Preset {
        name: "lte",
        interval: Duration::from_ms(1),
        request_every: Duration::from_ms(10),
        ahead: Duration::from_ms(8),
        first: Some(WireBytes::new(100)),
        ..DOCSIS
    },
    TDD,
    Preset { name: "5g-tdd-down", asks: false, first: None, ..TDD },
    Preset {
        name: "satellite",
        interval: Duration::from_ms(30),
        request_every: Duration::from_ms(30),
        ahead: Duration::from_ms(560),
        apart: true,
        ..DOCSIS
    },
];

const NAMES: [&str; 9] = {
    let mut names = [""; 9];
    let mut number = 0;
    while number < 9 {
        names[number] = PRESETS[number].name;
        number += 1;
    }
    names
};

const AS_KIND: &str = "as `kind` says";
const BURST: &str = "3044 wire bytes (DOCSIS), or a packet and what the rate brings in a round of the pattern where \
                     that is more; with concatenation and no fragmentation in two rounds and `ahead`";
const PEAK_BURST: &str = "a packet and what the rate brings in that time";
/// The default of the largest traffic burst in DOCSIS.
const DOCSIS_BURST: WireBytes = WireBytes::new(3044);

pub(crate) static SECTION: Section = Section {
    heading: "`grants = { ... }`",
    about: "The line may send only what a head end grants. `kind` sets all keys; other keys change single ones. `rate` \
            of the direction is that during a transmission. Figures that need one rate (the default queue, k) take \
            the mean that the pattern and the sustained rate allow. See [grants](../mechanisms/grants.md).",
    keys: &[
        Key::required("kind", Kind::Choice(&NAMES), "The link technology."),
        Key::optional("interval", Kind::Time, AS_KIND, "Length of a slot: MAP interval, PON frame, slot, superframe.")
            .at_least("1 us")
            .at_most("10 s"),
        Key::optional(
            "pattern",
            Kind::Text,
            AS_KIND,
            "Use of the slots, again and again: `U` up, `D` down, `S` special.",
        ),
        Key::optional(
            "special",
            Kind::Share,
            "2 of 14 symbols up, at the end; 10 of 14 down, at the start",
            "The part of an `S` slot for this direction.",
        ),
        Key::with_default("share", Kind::Share, "100 %", "The part of each slot for this station."),
        Key::optional("request_every", Kind::Time, AS_KIND, "Time between two request opportunities.")
            .at_least("1 us")
            .at_most(MAX_DELAY),
        Key::optional("ahead", Kind::Time, AS_KIND, "Least time from a request to its grant: MAP-ahead, round trip.")
            .at_most(MAX_DELAY),
        Key::optional("piggyback", Kind::Flag, AS_KIND, "Granted data carries a request for what remains."),
        Key::optional("concatenation", Kind::Flag, AS_KIND, "A request asks for the backlog, not for one packet."),
        Key::optional(
            "fragmentation",
            Kind::Flag,
            AS_KIND,
            "A packet may be cut at the end of a grant. Without it, requests and grants are for whole packets, at most \
             `largest` together, and a grant extends over slots without a gap.",
        ),
        Key::optional(
            "outstanding",
            Kind::Choice(&["one", "many"]),
            AS_KIND,
            "Requests that may be on the way at once.",
        ),
        Key::optional("largest", Kind::WireBytes, AS_KIND, "The most that one request asks for.")
            .at_least("64 wire bytes"),
        Key::optional(
            "first",
            Kind::WireBytes,
            AS_KIND,
            "Grant for a request at an opportunity, if the request has no size (scheduling request).",
        )
        .at_least("1 wire byte"),
        Key::with_default("minislot", Kind::WireBytes, "1 wire byte", "Grants are rounded up to a multiple of this.")
            .at_least("1 wire byte"),
        Key::with_default("collisions", Kind::Share, "0 %", "Share of requests that collide with those of others."),
        Key::with_default(
            "backoff_start",
            Kind::Count,
            "0",
            "The first attempt waits for up to 2^n - 1 opportunities.",
        )
        .at_most("16"),
        Key::with_default("backoff_end", Kind::Count, "10", "Collisions double this range up to 2^n.").at_most("16"),
        Key::optional(
            "proactive",
            Kind::WireBytes,
            AS_KIND,
            "Size of a grant without a request, which counts towards the requests; `\"0 wire bytes\"`: none.",
        ),
        Key::optional("proactive_every", Kind::Time, "as `interval`", "Time between two grants without a request.")
            .at_least("1 us"),
        Key::optional(
            "sustained",
            Kind::Rate,
            "no bound",
            "Largest mean rate. Requested grants wait for its tokens; proactive grants use them without waiting.",
        ),
        Key::optional("burst", Kind::WireBytes, BURST, "Token bucket of the sustained rate.")
            .at_least("1600 wire bytes"),
        Key::optional(
            "peak",
            Kind::Rate,
            "no bound",
            "Largest rate within a burst, by tokens as those of `sustained`.",
        ),
        Key::optional("peak_burst", Kind::WireBytes, PEAK_BURST, "Token bucket of the peak rate.")
            .at_least("1600 wire bytes"),
        Key::with_default(
            "seed",
            Kind::Count,
            "1",
            "Which random numbers decide collisions and back-off, with the scenario's seed and the link.",
        ),
    ],
};

/// Reads the grants of the direction `line`, if `table` has them; its rate becomes the mean.
pub(crate) fn read(table: &Table<'_>, line: &mut Config) -> Option<()> {
    if !table.has("grants") || table.text_at(&["grants"]) == Some(NONE) {
        return Some(());
    }
    let error = |message: &str| {
        table.error("grants", format!("{}: {message}", table.path("grants")), None);
        None
    };
    let steps = match &line.trace {
        Some(Trace::Steps(steps)) => Some(Arc::clone(steps)),
        Some(Trace::Opportunities(_)) => {
            return error("grants with a packet-delivery trace, which says itself when packets are sent");
        }
        None => None,
    };
    if line.link_layer.oam().is_some() {
        return error("grants with OAM cells, which nothing asks for");
    }
    let peak = line.trace.as_ref().map_or(line.rate, Trace::peak_rate);
    let Some(rate) = peak else {
        // A rate that is wrong has its own error.
        return if table.has("rate") { None } else { error("grants without a rate") };
    };
    let (own, preset) = if table.has_table("grants") {
        let own = table.table("grants")?.open(&SECTION);
        let preset = named(&own, "kind", &own.get::<String>("kind")?, "")?;
        (own, preset)
    } else {
        let name: String = table.optional("grants")?;
        let preset = named(table, "grants", &name, ", none; or a table with `kind` and other keys")?;
        (table.empty("grants", &SECTION), preset)
    };
    let grants = Grants { trace: steps, ..config(&own, preset, rate)? };
    warn_of_the_other_direction(table, preset);
    let sustained = own.optional::<BitRate>("sustained").filter(|sustained| *sustained > rate);
    if let Some(sustained) = sustained {
        let message = format!("{}: {sustained}, above the rate of {rate}, limits nothing", own.path("sustained"));
        own.warning("sustained", message, None);
    }
    warn_of_proactive_rate(&own, &grants);
    warn_of_scheduling_requests(&own, &grants);
    if let Err(wrong) = grants.check() {
        let key = match wrong {
            GrantsError::NeedsFragmentation => "fragmentation",
            GrantsError::BackOff(..) => "backoff_start",
            GrantsError::NoProactive => "proactive_every",
            GrantsError::NeedsConstantRate if grants.fragmentation => "sustained",
            GrantsError::NeedsConstantRate => "fragmentation",
            _ => "interval",
        };
        own.error(key, format!("{}: {wrong}", own.path(key)), None);
        return None;
    }
    give(table, line, grants);
    Some(())
}

/// Gives `line` these grants and them its trace; its rate and its trace become those of the usable spans.
pub(crate) fn give(table: &Table<'_>, line: &mut Config, mut grants: Grants) {
    grants.trace = match &line.trace {
        Some(Trace::Steps(steps)) => Some(Arc::clone(steps)),
        _ => None,
    };
    let most = grants.mean_rate();
    line.trace = grants.usable_trace().map(Trace::Steps);
    let mean = line.trace.as_ref().map_or(most, |usable| trace::nominal(usable, table.root_duration()));
    line.rate = mean.min(most);
    line.grants = Some(Box::new(grants));
}

/// The preset of this name at `key`, or an error that lists all: a name that is near one is near several.
fn named(table: &Table<'_>, key: &'static str, name: &str, or: &str) -> Option<&'static Preset> {
    let preset = PRESETS.iter().find(|preset| preset.name == name);
    if preset.is_none() {
        table.error(key, format!("unknown {key} {name:?}"), Some(format!("known: {}{or}", NAMES.join(", "))));
    }
    preset
}

/// Warns of proactive grants that bring more than the service flow may have: they are made all the same.
fn warn_of_proactive_rate(own: &Table<'_>, grants: &Grants) {
    let Some(brought) = grants.proactive.and_then(|grant| grant.rate()) else { return };
    for key in ["sustained", "peak"] {
        if let Some(limit) = own.optional::<BitRate>(key).filter(|limit| *limit < brought) {
            let message = format!("{}: proactive grants bring {brought}, more than {limit}", own.path(key));
            own.warning(key, message, Some("a smaller `proactive`, or a longer `proactive_every`".into()));
        }
    }
}

/// Warns of requests that obtain their first grant alone: no data reports the backlog.
fn warn_of_scheduling_requests(own: &Table<'_>, grants: &Grants) {
    let Some(Requests { asks: Asks::Backlog { first: Some(_), .. }, piggyback: false, .. }) = grants.requests else {
        return;
    };
    let cycle = Grants { proactive: None, ..grants.clone() }.cycle();
    let Some((rate, Cycle { brings: PerRequest::Bytes(bytes), .. })) =
        cycle.and_then(|cycle| Some((cycle.rate()?, cycle)))
    else {
        return;
    };
    if grants.mean_rate().is_some_and(|mean| rate < mean) {
        let path = own.path("piggyback");
        let message = format!("{path}: `first` without `piggyback`: each request brings {bytes}, at most {rate}");
        own.warning("piggyback", message, None);
    }
}

/// Warns of a station that asks on a downstream, and of one that need not on an upstream.
fn warn_of_the_other_direction(table: &Table<'_>, preset: &Preset) {
    let path = table.path("grants");
    let (downstream, upstream) = (path.ends_with("down.grants"), path.ends_with("up.grants"));
    let (is_for, hint) = match (preset.asks, preset.pattern.contains('D')) {
        (true, true) if downstream => ("an upstream, whose station asks", "grants = \"5g-tdd-down\""),
        (true, _) if downstream => ("an upstream, whose station asks", "leave it out: a downstream needs no grants"),
        (false, _) if upstream => ("a downstream", "grants = \"5g-tdd\""),
        _ => return,
    };
    table.warning("grants", format!("{path}: {:?} is for {is_for}", preset.name), Some(hint.into()));
}

fn config(own: &Table<'_>, preset: &Preset, rate: BitRate) -> Option<Grants> {
    let interval = own.optional("interval").unwrap_or(preset.interval);
    let slots = slots(own, preset, interval)?;
    let proactive = match (own.has("proactive"), preset.proactive) {
        (true, _) => own.optional("proactive").filter(|bytes| *bytes > WireBytes::ZERO),
        (false, of_kind) => of_kind.map(|(bytes, _)| bytes),
    };
    let every = own.optional("proactive_every").or(preset.proactive.map(|(_, every)| every)).unwrap_or(interval);
    let pattern = own.optional("pattern").unwrap_or_else(|| preset.pattern.to_owned());
    let round = interval * u64::try_from(pattern.len().max(1)).unwrap_or(1);
    let requests = requests(own, preset, interval)?;
    let fragmentation = own.optional("fragmentation").unwrap_or(preset.fragmentation);
    // One burst of whole packets answers a request, and tokens come while the next one waits.
    let whole_bursts = !fragmentation && requests.asks != Asks::Packet;
    let span = if whole_bursts { round * 2 + requests.response } else { round };
    let bucket = |rate, burst, least| {
        let rate: BitRate = own.optional(rate)?;
        Some(Bucket { rate, burst: own.optional(burst).unwrap_or_else(|| default_burst(rate, span).max(least)) })
    };
    let limits = [bucket("sustained", "burst", DOCSIS_BURST), bucket("peak", "peak_burst", WireBytes::ZERO)];
    let unit = own.get::<WireBytes>("minislot")?.as_u64();
    if !fragmentation && preset.fragmentation && !preset.name.starts_with("docsis-2") {
        let message = format!("{}: every station of {:?} cuts packets", own.path("fragmentation"), preset.name);
        own.warning("fragmentation", message, None);
    }
    Some(Grants {
        trace: None,
        rate,
        slots,
        requests: preset.asks.then_some(requests),
        unit: NonZeroU64::new(unit).unwrap_or(NonZeroU64::MIN),
        fragmentation,
        proactive: proactive.map(|bytes| Proactive { every, bytes }),
        apart: preset.apart,
        limits: limits.into_iter().flatten().collect(),
        buffer: None,
        seed: own.get("seed")?,
    })
}

/// A packet and what `rate` brings in a `span`: a round of the pattern. Grants are made once in a slot, so a smaller
/// bucket overflows between two of them, and the rate is never reached.
fn default_burst(rate: BitRate, span: Duration) -> WireBytes {
    let bytes = u128::from(rate.as_bps()) * u128::from(span.as_ps()) / 8_000_000_000_000;
    LARGEST_PACKET + WireBytes::new(u64::try_from(bytes).unwrap_or(u64::MAX / 2))
}

fn requests(own: &Table<'_>, preset: &Preset, interval: Duration) -> Option<Requests> {
    // Opportunities once in an interval stay so when the interval changes.
    let of_kind = if preset.request_every == preset.interval { interval } else { preset.request_every };
    let (start, end) = (own.get::<u64>("backoff_start")?, own.get::<u64>("backoff_end")?);
    let collisions: Ratio = own.get("collisions")?;
    let contention = (start > 0 || collisions > Ratio::ZERO).then_some(Contention {
        first: u8::try_from(start).ok()?,
        last: u8::try_from(end).ok()?,
        collisions,
    });
    let most = own.optional("largest").or(preset.largest);
    let first = own.optional("first").or(preset.first);
    let backlog = own.optional("concatenation").unwrap_or(!preset.packet);
    for key in ["largest", "first"] {
        if !backlog && own.has(key) {
            own.warning(key, format!("{}: not used; each request asks for one packet", own.path(key)), None);
        }
    }
    if collisions == Ratio::ONE {
        let message =
            format!("{}: every request collides, so nothing is ever granted by request", own.path("collisions"));
        own.warning("collisions", message, None);
    }
    let many = own.optional_choice("outstanding", &[("one", false), ("many", true)]).unwrap_or(preset.many);
    Some(Requests {
        every: own.optional("request_every").unwrap_or(of_kind),
        contention,
        piggyback: own.optional("piggyback").unwrap_or(preset.piggyback),
        response: own.optional("ahead").unwrap_or(preset.ahead),
        asks: if backlog { Asks::Backlog { most, first } } else { Asks::Packet },
        outstanding: if many { Outstanding::Many } else { Outstanding::One },
    })
}

/// The spans of the pattern in this direction.
fn slots(own: &Table<'_>, preset: &Preset, interval: Duration) -> Option<Slots> {
    let pattern: String = own.optional("pattern").unwrap_or_else(|| preset.pattern.to_owned());
    let (share, down): (Ratio, bool) = (own.get("share")?, !preset.asks);
    let key = if share == Ratio::ZERO { "share" } else { "pattern" };
    let part = |from: u64, to: u64, of: u64| Span {
        start: Duration::from_ps(interval.as_ps() / of * from),
        end: if to == of { interval } else { Duration::from_ps(interval.as_ps() / of * to) },
    };
    let special = match own.optional::<Ratio>("special") {
        Some(special) if down => Span { start: Duration::ZERO, end: of(special, interval) },
        Some(special) => Span { start: interval - of(special, interval), end: interval },
        None if down => part(0, 10, 14),
        None => part(12, 14, 14),
    };
    let mut usable = Vec::new();
    for letter in pattern.chars() {
        let span = match (letter, down) {
            ('S', _) => special,
            ('D', true) | ('U', false) => part(0, 1, 1),
            ('D', false) | ('U', true) => part(0, 0, 1),
            _ => {
                let hint = Some("U (up), D (down) and S (special), such as \"DDDSU\"".to_owned());
                own.error("pattern", format!("{}: {letter:?} is no slot", own.path("pattern")), hint);
                return None;
            }
        };
        usable.push(Span { start: span.start, end: span.start + of(share, span.end - span.start) });
    }
    Slots::new(interval, usable)
        .map_err(|error: SlotsError| own.error(key, format!("{}: {error}", own.path(key)), None))
        .ok()
}

fn of(share: Ratio, span: Duration) -> Duration {
    Duration::from_ps(share.of(span.as_ps()))
}

#[cfg(test)]
mod tests;
