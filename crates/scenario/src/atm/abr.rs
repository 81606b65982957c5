//! Available bit rate: `kind = "abr"` of `[[contract]]`, and what a switch does for it.

use lastmile_atm::abr::{AbrError, Parameters, erica};
use lastmile_atm::network::AbrPort;
use lastmile_model::AckHold;
use lastmile_units::{BitRate, ByteCount, CellCount, Duration, Ratio};

use crate::reader::{Table, Tagged, Unopened, Variant};
use crate::schema::{Key, Kind, Section};

pub(crate) static ABR: Section = Section {
    heading: "`kind = \"abr\"`",
    about: "Available bit rate (ATM Forum TM 4.1): the source sends at the rate that RM cells bring back, and \
            packets wait for it at the edge. RM cells go \
            both ways and take their share of the links. A scenario with such a contract is computed cell by cell.",
    keys: &[
        Key::required("pcr", Kind::Rate, "Peak cell rate: never above. Not above the rate of the first link."),
        Key::with_default("mcr", Kind::Rate, "4240 bit/s", "Minimum cell rate: never below.").at_least("4240 bit/s"),
        Key::optional(
            "icr",
            Kind::Rate,
            "`pcr`",
            "Initial cell rate, also after a pause of `adtf`; from `mcr` to `pcr`.",
        ),
        Key::with_default(
            "rif",
            Kind::Count,
            "16",
            "Rate increase factor is 1/`rif` of `pcr` an RM cell; a power of two up to 32768.",
        ),
        Key::with_default(
            "rdf",
            Kind::Count,
            "16",
            "Rate decrease factor: 1/`rdf` of the rate goes with an RM cell that reports congestion; a power of two \
             up to 32768.",
        ),
        Key::with_default("nrm", Kind::Count, "32", "One cell in `nrm` is an RM cell; a power of two from 2 to 256."),
        Key::with_default(
            "trm",
            Kind::Time,
            "100 ms",
            "An RM cell is also sent after this time, if two cells have been sent since the last.",
        )
        .at_most("10 s"),
        Key::with_default(
            "cdf",
            Kind::Count,
            "16",
            "Cutoff decrease factor: 1/`cdf` of the rate goes with each RM cell sent while `crm` are missing; a \
             power of two up to 64, or 0 for none.",
        ),
        Key::with_default("crm", Kind::Count, "524288", "RM cells sent since one came back.")
            .at_least("1")
            .at_most("16777215"),
        Key::with_default(
            "adtf",
            Kind::Time,
            "500 ms",
            "After this time without an RM cell sent the rate falls to `icr`.",
        )
        .at_most("1 h"),
        Key::optional(
            "edge_limit",
            Kind::Bytes,
            "all that comes",
            "Buffer of the edge device at the source, for each virtual channel.",
        ),
        Key::with_default(
            "ack_hold",
            Kind::Choice(&["none", "fixed", "dynamic"]),
            "none",
            "The node where packets become cells holds the ACKs back that come for them: each for `hold`, or as \
             long as what waits beyond `hold_above` takes at the allowed rate.",
        ),
        Key::optional("hold", Kind::Time, "20 ms for `fixed`; 1 s for `dynamic`", "How long; at most that long.")
            .at_most("10 s"),
        Key::with_default(
            "hold_above",
            Kind::Bytes,
            "16 kB",
            "For `dynamic`: bytes of packets that may wait without an ACK being held.",
        ),
    ],
};

pub(crate) static PORT: Section = Section {
    heading: "`[switch.abr]`",
    about: "Feedback of the ports of a switch to virtual channels of available bit rate.",
    keys: &[Key::required(
        "kind",
        Kind::Choice(&["efci", "erica"]),
        "Mark cells, or send explicit rates to the sources.",
    )],
};
pub(crate) static EFCI: Section = Section {
    heading: "`kind = \"efci\"`",
    about: "Data cells that find at least `threshold` cells in their queue are marked; the far end reports that to \
            the source by the CI bit of RM cells.",
    keys: &[Key::required("threshold", Kind::Cells, "Backlog from which cells are marked.").at_least("1 cells")],
};
pub(crate) static ERICA: Section = Section {
    heading: "`kind = \"erica\"`",
    about: "Explicit rates by ERICA (Kalyanaraman et al. 2000): fair share of what the target utilisation leaves \
            next to others.",
    keys: &[
        Key::with_default("target", Kind::Share, "95 %", "Target utilisation of each link."),
        Key::with_default("interval", Kind::Time, "5 ms", "Averaging interval.").at_least("10 us").at_most("10 s"),
        Key::with_default("delta", Kind::Share, "10 %", "Overload begins at a load factor of 1 + `delta`."),
    ],
};

const PORTS: &[Variant<bool>] =
    &[Variant { name: "efci", section: &EFCI, value: false }, Variant { name: "erica", section: &ERICA, value: true }];

/// The kinds of switches that control available bit rate.
pub(crate) fn kinds() -> Tagged {
    Tagged::new(&PORT, "kind", PORTS)
}

/// The parameters of a contract of available bit rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abr {
    pub(crate) parameters: Parameters,
    pub(crate) edge_limit: Option<ByteCount>,
    pub(crate) hold: Option<AckHold>,
}

/// Reads the keys of a contract.
pub(crate) fn contract(table: &Table<'_>) -> Option<Abr> {
    let (pcr, mcr) = (table.get::<BitRate>("pcr"), table.get::<BitRate>("mcr"));
    let icr = table.optional::<BitRate>("icr");
    let [rif, rdf, nrm, cdf, crm] = ["rif", "rdf", "nrm", "cdf", "crm"].map(|key| table.get::<u64>(key));
    let [trm, adtf] = ["trm", "adtf"].map(|key| table.get::<Duration>(key));
    let edge_limit = table.optional("edge_limit");
    let hold = hold(table);
    let count = |count: Option<u64>| count.map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    let pcr = pcr?;
    let parameters = Parameters {
        pcr,
        mcr: mcr?,
        icr: icr.unwrap_or(pcr),
        rif: count(rif)?,
        rdf: count(rdf)?,
        nrm: count(nrm)?,
        trm: trm?,
        cdf: count(cdf).map(|cdf| Some(cdf).filter(|cdf| *cdf > 0))?,
        crm: count(crm)?,
        adtf: adtf?,
    };
    if let Err(error) = parameters.check() {
        let key = match error {
            AbrError::MinimumAbovePeak { .. } | AbrError::MinimumTooLow { .. } => "mcr",
            AbrError::Initial { .. } => "icr",
            AbrError::NoPower { name, .. } => name,
            _ => "crm",
        };
        table.error(key, format!("{}: {error}", table.path(key)), None);
        return None;
    }
    Some(Abr { parameters, edge_limit, hold: hold? })
}

/// The outer `None`: something is wrong, which is then in the report.
#[expect(clippy::option_option, reason = "wrong, or none")]
fn hold(table: &Table<'_>) -> Option<Option<AckHold>> {
    let kinds = [("none", 0_u8), ("fixed", 1), ("dynamic", 2)];
    let kind = table.choice("ack_hold", &kinds)?;
    let above = table.get::<ByteCount>("hold_above");
    let time: Option<Duration> = table.optional("hold");
    let asks = [("hold", kind == 0), ("hold_above", kind != 2)];
    if let Some((key, _)) = asks.into_iter().find(|(key, idle)| *idle && table.has(key)) {
        let hint = if key == "hold" { "ack_hold = \"fixed\" or \"dynamic\"" } else { "ack_hold = \"dynamic\"" };
        table.error(key, format!("{}: no ACK is held by it", table.path(key)), Some(hint.into()));
        return None;
    }
    Some(match kind {
        0 => None,
        1 => Some(AckHold::Fixed(time.unwrap_or(Duration::from_ms(20)))),
        _ => Some(AckHold::Dynamic { above: above?, most: time.unwrap_or(Duration::from_s(1)) }),
    })
}

/// Reads what the ports of a switch do.
pub(crate) fn port(table: Unopened<'_>) -> Option<AbrPort> {
    let (measures, table) = table.open_kind(&PORT, PORTS)?;
    if !measures {
        return Some(AbrPort::Efci { threshold: table.get::<CellCount>("threshold")? });
    }
    let (target, delta) = (table.get::<Ratio>("target"), table.get::<Ratio>("delta"));
    let interval = table.get("interval");
    let permille = |share: Ratio| share.as_parts_per_billion() / 1_000_000;
    let config =
        erica::Config { target_permille: permille(target?), interval: interval?, delta_permille: permille(delta?) };
    if let Err(error) = config.check() {
        table.error("target", format!("{}: {error}", table.path("target")), None);
        return None;
    }
    Some(AbrPort::Erica(config))
}
