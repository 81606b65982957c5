//! Meters and policers.

use lastmile_linklayer::LinkLayer;
use lastmile_queueing::Match;
use lastmile_queueing::meter::policer::{self, Action, Coming, Remark, Rule, Then};
use lastmile_queueing::meter::{Bucket, Config, MeterError, car, gcra, police, srtcm, trtcm};
use lastmile_queueing::spec::{Over, Problem, Spec};
use lastmile_units::{BitRate, ByteCount, Duration, WireBytes};

use super::matching::matching;
use super::{BELOW, DROP, LIMIT, Readable, Wire, below};
use crate::reader::{Table, Tagged, Unopened, Variant};
use crate::schema::{Key, Kind, Section};

const ACTIONS: Kind = Kind::Choice(&[
    "transmit",
    "drop",
    "continue",
    "set-dscp-transmit",
    "set-dscp-continue",
    "set-clp-transmit",
    "set-clp-continue",
]);

/// The keys of one rule, in the table of a policer or in its `rules`.
macro_rules! with_rule_keys {
    ($meter:expr; $($more:expr),* $(,)?) => {
        &[
            $meter,
            Key::optional("match", Kind::Table("[matches](#matches)"), "every packet", "Which packets are metered. \
                The others pass."),
            Key::with_default(
                "colors",
                Kind::Choice(&["blind", "drop-precedence", "clp"]),
                "blind",
                "The color that packets come with, for `srtcm` and `trtcm`: none; by their drop precedence (AFx1 \
                 green, AFx2 yellow, AFx3 \
                 red; RFC 2597); by their cell loss priority (1 is yellow).",
            ),
            Key::with_default("conform", ACTIONS, "transmit", "Action for a packet that conforms (green)."),
            Key::with_default("exceed", ACTIONS, "drop", "Action for a packet that exceeds (yellow)."),
            Key::with_default("violate", ACTIONS, "drop", "Action for a packet that violates (red); only `srtcm` and \
                               `trtcm` have such."),
            Key::optional("conform_dscp", Kind::Count, "needed for `set-dscp`", "The code point that it \
                gets.").at_most("63"),
            Key::optional("exceed_dscp", Kind::Count, "needed for `set-dscp`", "The code point that it \
                gets.").at_most("63"),
            Key::optional("violate_dscp", Kind::Count, "needed for `set-dscp`", "The code point that it \
                gets.").at_most("63"),
            $($more),*
        ]
    };
}

static RULE: Section = Section {
    heading: "Rules of a policer",
    about: "A rule names the packets, their meter, and the actions. `continue` sends a packet, as re-marked, on to the \
            next rule that matches \
            it; without one it passes.",
    keys: with_rule_keys![
        Key::required("meter", Kind::Table("[meters](#meters)"), "Meter that decides which packets conform.");
    ],
};

static METER: Section = Section {
    heading: "Meters",
    about: "A meter decides which packets conform. Rates and bursts count bytes on the wire, headers and cells \
            included.",
    keys: &[
        Key::required(
            "kind",
            Kind::Choice(&["token-bucket", "car", "srtcm", "trtcm", "gcra", "police"]),
            "Kind of meter.",
        ),
        Key::with_default(
            "largest",
            Kind::Bytes,
            "1500 B",
            "The largest IP packet to expect. A meter with which it could not conform is refused.",
        )
        .at_least("1 B")
        .at_most("65535 B"),
    ],
};

const RATE: Key = Key::required("rate", Kind::Rate, "Rate on the wire, headers and cells included.");
const BURST: Key = Key::required("burst", Kind::WireBytes, "Burst that conforms after a pause.");

static TOKEN_BUCKET: Section =
    Section { heading: "Meter `token-bucket`", about: "A rate and a burst above it.", keys: &[RATE, BURST] };

static CAR: Section = Section {
    heading: "Meter `car`",
    about: "Committed access rate: a token bucket that lends tokens, and lends less the longer it has lent.",
    keys: &[
        RATE,
        BURST,
        Key::optional(
            "extended_burst",
            Kind::WireBytes,
            "`burst`: nothing is lent",
            "The most compounded debt; at least `burst`.",
        ),
    ],
};

static SRTCM: Section = Section {
    heading: "Meter `srtcm`",
    about: "Single rate three color marker (RFC 2697).",
    keys: &[
        Key::required("rate", Kind::Rate, "Committed information rate, on the wire."),
        Key::required("burst", Kind::WireBytes, "Committed burst size; zero: nothing is green."),
        Key::required("excess_burst", Kind::WireBytes, "Excess burst size; zero: nothing is yellow."),
    ],
};

static TRTCM: Section = Section {
    heading: "Meter `trtcm`",
    about: "Two rate three color marker (RFC 2698).",
    keys: &[
        Key::required("rate", Kind::Rate, "Committed information rate, on the wire."),
        Key::required("burst", Kind::WireBytes, "Committed burst size."),
        Key::required("peak", Kind::Rate, "Peak information rate, on the wire; at least `rate`."),
        Key::required("peak_burst", Kind::WireBytes, "Peak burst size."),
    ],
};

static GCRA: Section = Section {
    heading: "Meter `gcra`",
    about: "Generic cell rate algorithm (ITU-T I.371), for lines that have cells. The cells of a packet conform \
            together or not at all.",
    keys: &[
        Key::required("rate", Kind::Rate, "Cell rate, as the 424 bits that each cell takes on the wire."),
        Key::required(
            "tolerance",
            Kind::Time,
            "tau: how early a cell may come. All cells of the largest packet but the first are early.",
        ),
    ],
};

static POLICE: Section = Section {
    heading: "Meter `police`",
    about: "The ingress policer of Linux (tc-police).",
    keys: &[
        RATE,
        BURST,
        Key::optional("peak", Kind::Rate, "as fast as the line", "The rate within a burst; above `rate`."),
        Key::optional(
            "mtu",
            Kind::WireBytes,
            "what `largest` takes on the wire",
            "The largest packet on the wire; a larger one exceeds.",
        ),
    ],
};

#[derive(Clone, Copy)]
enum Form {
    TokenBucket,
    Car,
    SrTcm,
    TrTcm,
    Gcra,
    Police,
}

const METERS: [Variant<Form>; 6] = [
    Variant { name: "token-bucket", section: &TOKEN_BUCKET, value: Form::TokenBucket },
    Variant { name: "car", section: &CAR, value: Form::Car },
    Variant { name: "srtcm", section: &SRTCM, value: Form::SrTcm },
    Variant { name: "trtcm", section: &TRTCM, value: Form::TrTcm },
    Variant { name: "gcra", section: &GCRA, value: Form::Gcra },
    Variant { name: "police", section: &POLICE, value: Form::Police },
];

/// The kinds of meters.
pub(crate) fn kinds() -> Tagged {
    Tagged::new(&METER, "kind", &METERS)
}

/// The colors that packets come with, as files name them.
pub(crate) const COMING: &[(&str, Coming)] =
    &[("blind", Coming::Blind), ("drop-precedence", Coming::DropPrecedence), ("clp", Coming::CellLossPriority)];

impl Readable for Over<policer::Config> {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"policer\"`",
        about: "Meters packets as they arrive, and passes, drops or re-marks each before it reaches the queue \
                below. The table itself may be the rule. Several are given as `rules`; the first that matches a \
                packet meters it.",
        keys: with_rule_keys![
            Key::optional("meter", Kind::Table("[meters](#meters)"), "given in `rules`", "Meter that decides which \
                           packets conform.");
            Key::optional(
                "rules",
                Kind::Tables("[rules](#rules-of-a-policer)"),
                "the one in this table",
                "The rules, at most 64."
            ),
            BELOW,
            LIMIT,
            DROP,
        ],
    };
    const PARTS: &'static [&'static Section] = &[&RULE, &METER, &TOKEN_BUCKET, &CAR, &SRTCM, &TRTCM, &GCRA, &POLICE];

    fn read(table: &Table<'_>, wire: &Wire, depth: usize) -> Option<Self> {
        let rules = rules(table, &wire.layer);
        let queue = below(table, wire, depth);
        Some(Self::new(policer::Config { rules: rules? }, queue?))
    }
}

fn rules(table: &Table<'_>, link_layer: &LinkLayer) -> Option<Vec<Rule>> {
    if !table.has("rules") {
        return Some(vec![rule(table, link_layer)?]);
    }
    for key in RULE.keys {
        if table.has(key.name) {
            table.error(key.name, format!("both {} and rules, which have their own", key.name), None);
        }
    }
    let items = table.tables("rules");
    if items.is_empty() || items.len() > Spec::MAX_RULES {
        let problem = Problem::Rules(items.len());
        table.error("rules", format!("{}: {problem}", table.path("rules")), None);
        return None;
    }
    // Every rule is read, so that one pass finds all that is wrong.
    let rules: Vec<Option<Rule>> = items.into_iter().map(|item| rule(&item.open(&RULE), link_layer)).collect();
    rules.into_iter().collect()
}

fn rule(table: &Table<'_>, link_layer: &LinkLayer) -> Option<Rule> {
    let matches = match table.table("match") {
        Some(condition) => matching(condition),
        None => Some(Match::Any),
    };
    let coming = table.choice("colors", COMING);
    let [conform, exceed, violate] =
        [("conform", "conform_dscp"), ("exceed", "exceed_dscp"), ("violate", "violate_dscp")]
            .map(|(key, dscp)| action(table, key, dscp));
    let meter = table.required_table("meter").and_then(|meter| read(meter, link_layer));
    let (meter, largest) = meter?;
    let (matches, coming, conform, exceed, violate) = (matches?, coming?, conform?, exceed?, violate?);
    Some(Rule { matches, meter, coming, largest, conform, exceed, violate })
}

fn action(table: &Table<'_>, key: &'static str, dscp_key: &'static str) -> Option<Action> {
    #[derive(Clone, Copy)]
    enum Sets {
        Nothing,
        Dscp,
        Clp,
    }
    let words = &[
        ("transmit", (Sets::Nothing, Then::Transmit)),
        ("drop", (Sets::Nothing, Then::Drop)),
        ("continue", (Sets::Nothing, Then::Continue)),
        ("set-dscp-transmit", (Sets::Dscp, Then::Transmit)),
        ("set-dscp-continue", (Sets::Dscp, Then::Continue)),
        ("set-clp-transmit", (Sets::Clp, Then::Transmit)),
        ("set-clp-continue", (Sets::Clp, Then::Continue)),
    ];
    let dscp: Option<u64> = table.optional(dscp_key);
    let (sets, then) = table.choice(key, words)?;
    let mark = match sets {
        Sets::Dscp if !table.has(dscp_key) => {
            let hint = format!("add {dscp_key}, a number from 0 to 63");
            table.error(key, format!("{}: which code point is to be set?", table.path(key)), Some(hint));
            return None;
        }
        Sets::Dscp => Some(Remark::Dscp(u8::try_from(dscp?).ok()?)),
        Sets::Nothing | Sets::Clp if table.has(dscp_key) => {
            let message = format!("{dscp_key} without an action that sets it");
            table.error(dscp_key, message, Some(format!("{key} = \"set-dscp-transmit\"")));
            return None;
        }
        Sets::Clp => Some(Remark::Clp),
        Sets::Nothing => None,
    };
    Some(Action { mark, then })
}

/// A meter, and the largest packet that it expects.
pub(crate) fn read(meter: Unopened<'_>, link_layer: &LinkLayer) -> Option<(Config, ByteCount)> {
    let (form, table) = meter.open_kind(&METER, &METERS)?;
    meter_of(form, &table, link_layer)
}

fn meter_of(form: Form, table: &Table<'_>, link_layer: &LinkLayer) -> Option<(Config, ByteCount)> {
    let largest: Option<ByteCount> = table.get("largest");
    let rate: Option<BitRate> = table.get("rate");
    let burst: Option<WireBytes> = if matches!(form, Form::Gcra) { None } else { table.get("burst") };
    let config = match form {
        Form::TokenBucket => Config::TokenBucket { rate: rate?, burst: burst? },
        Form::Car => {
            let extended: Option<WireBytes> = table.optional("extended_burst");
            let (rate, burst) = (rate?, burst?);
            Config::Car(car::Config { rate, burst, extended: extended.unwrap_or(burst) })
        }
        Form::SrTcm => {
            let ebs: Option<WireBytes> = table.get("excess_burst");
            Config::SrTcm(srtcm::Config { cir: rate?, cbs: burst?, ebs: ebs? })
        }
        Form::TrTcm => {
            let (pir, pbs) = (table.get::<BitRate>("peak"), table.get::<WireBytes>("peak_burst"));
            Config::TrTcm(trtcm::Config { pir: pir?, pbs: pbs?, cir: rate?, cbs: burst? })
        }
        Form::Gcra => {
            let tolerance: Option<Duration> = table.get("tolerance");
            Config::Gcra(gcra::Config { rate: rate?, tolerance: tolerance? })
        }
        Form::Police => {
            let (peak, mtu) = (table.optional::<BitRate>("peak"), table.optional::<WireBytes>("mtu"));
            let mtu = mtu.unwrap_or_else(|| link_layer.on_wire(largest.unwrap_or_default()));
            Config::Police(police::Config { rate: rate?, burst: burst?, peak, mtu })
        }
    };
    let largest = largest?;
    checked(table, &config, largest, link_layer).then_some((config, largest))
}

/// Whether the meter can stand on this line; if not, an error at the key that is to blame.
fn checked(table: &Table<'_>, config: &Config, largest: ByteCount, link_layer: &LinkLayer) -> bool {
    let takes = link_layer.on_wire(largest);
    let wrong = if config.counts_cells() && link_layer.cells(largest).is_none() {
        MeterError::NoCells
    } else {
        match config.check(takes) {
            Ok(()) => return true,
            Err(wrong) => wrong,
        }
    };
    let (key, about_size) = match wrong {
        MeterError::BurstTooSmall { bucket, .. } => (key_of(bucket), true),
        MeterError::ToleranceTooShort { .. } => ("tolerance", true),
        MeterError::NoBurst => ("burst", false),
        MeterError::ExtendedBelowBurst { .. } => ("extended_burst", false),
        MeterError::PeakBelowCommitted { .. } | MeterError::PeakNotAboveRate { .. } => ("peak", false),
        MeterError::NoCells => ("kind", false),
    };
    let hint = about_size.then(|| format!("a packet of {largest} takes {takes} on this line"));
    table.error(key, format!("{}: {wrong}", table.path(key)), hint);
    false
}

/// The key that gives the size of a bucket.
const fn key_of(bucket: Bucket) -> &'static str {
    match bucket {
        Bucket::Burst | Bucket::Extended | Bucket::Committed => "burst",
        Bucket::Excess => "excess_burst",
        Bucket::Peak => "peak_burst",
        Bucket::Mtu => "mtu",
    }
}
