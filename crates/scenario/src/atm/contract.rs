//! `[[contract]]` and `[[vp]]`: what virtual channels and paths may send, and how they are served.

use lastmile_atm::contract::{Contract, ContractError, Peak, Sbr, Sustainable};
use lastmile_units::{BitRate, CellCount, Duration};

use super::abr::{self, Abr};
use crate::diagnostics::did_you_mean;
use crate::queue::{CodePoint, Several};
use crate::reader::{Table, Tagged, Unopened, Variant};
use crate::schema::{CODE_POINT, Key, Kind, Section};

pub(crate) static CONTRACT: Section = Section {
    heading: "`[[contract]]`",
    about: "A traffic contract (ITU-T I.371) that traffic or a virtual path names, and how its cells are served. A \
            policer holds each of its \
            virtual channels to it where they enter the first switch. Rates count 424 bits a cell.",
    keys: &[
        Key::required("name", Kind::Text, "Name, unique among contracts."),
        Key::with_default(
            "kind",
            Kind::Choice(&["ubr", "cbr", "sbr1", "sbr2", "sbr3", "gfr", "abr"]),
            "ubr",
            "Unspecified, constant (DBR), statistical (VBR.1 to VBR.3) or available bit rate, or guaranteed frame \
             rate.",
        ),
        Key::optional(
            "dscp",
            Kind::Other(
                "code point such as 10 or `\"af11\"`, or a list of them",
                &[CODE_POINT, Kind::Several(&[CODE_POINT])],
            ),
            "only traffic that names it",
            "Traffic with one of these code points and no contract of its own has this one.",
        ),
        Key::optional("class", Kind::Text, "the first", "Its queue at ports with classes, by name."),
        Key::with_default(
            "priority",
            Kind::Count,
            "0",
            "At ports with a queue for each VC: a lower number goes first.",
        )
        .at_most("255"),
        Key::with_default("weight", Kind::Count, "1", "Share at such ports.").at_least("1").at_most("65535"),
        Key::optional(
            "shape",
            Kind::Rate,
            "all cells of a packet are there at once",
            "The source spaces the cells of each VC to this rate.",
        ),
        Key::with_default("low_priority", Kind::Flag, "false", "Its cells leave the source with CLP = 1."),
    ],
};

const PCR: Key = Key::required("pcr", Kind::Rate, "Peak cell rate; cells above it are dropped.");
const CDVT: Key = Key::with_default(
    "cdvt",
    Kind::Time,
    "0 ms",
    "Cell delay variation tolerance of the peak rate. With none, the second cell of a packet that comes at a higher \
     rate is above the peak rate, and no packet of two cells arrives.",
)
.at_most("10 s");
const SCR: Key = Key::required("scr", Kind::Rate, "Sustainable cell rate; not above `pcr`.");
const MBS: Key =
    Key::required("mbs", Kind::Cells, "Maximum burst size: cells that may come at the peak rate; at least 1.");
const SCR_CDVT: Key =
    Key::with_default("scr_cdvt", Kind::Time, "0 ms", "Tolerance of the sustainable rate, added to that of `mbs`.")
        .at_most("10 s");

pub(crate) static UBR: Section = Section {
    heading: "`kind = \"ubr\"`",
    about: "Nothing is promised.",
    keys: &[
        Key::optional("pcr", Kind::Rate, "as fast as the link", "Peak cell rate; cells above it are dropped."),
        CDVT,
        Key::with_default("tagging", Kind::Flag, "false", "UBR.2: every cell continues with CLP = 1."),
    ],
};
pub(crate) static CBR: Section =
    Section { heading: "`kind = \"cbr\"`", about: "A peak rate for cells of both priorities.", keys: &[PCR, CDVT] };
pub(crate) static SBR1: Section = Section {
    heading: "`kind = \"sbr1\"`",
    about: "A peak and a sustainable rate for cells of both priorities; cells above it are dropped.",
    keys: &[PCR, CDVT, SCR, MBS, SCR_CDVT],
};
pub(crate) static SBR2: Section = Section {
    heading: "`kind = \"sbr2\"`",
    about: "The sustainable rate counts cells of CLP = 0; cells above it are dropped.",
    keys: &[PCR, CDVT, SCR, MBS, SCR_CDVT],
};
pub(crate) static SBR3: Section = Section {
    heading: "`kind = \"sbr3\"`",
    about: "The sustainable rate counts cells of CLP = 0; cells above it continue with CLP = 1.",
    keys: &[PCR, CDVT, SCR, MBS, SCR_CDVT],
};
pub(crate) static GFR: Section = Section {
    heading: "`kind = \"gfr\"`",
    about: "Whole frames up to a minimum rate.",
    keys: &[
        PCR,
        CDVT,
        Key::required("mcr", Kind::Rate, "Minimum cell rate; not above `pcr`."),
        MBS,
        SCR_CDVT,
        Key::required("mfs", Kind::Cells, "Longest frame; cells beyond are dropped. At most `mbs`."),
        Key::with_default("tagging", Kind::Flag, "false", "GFR.2: frames above the rate go on with CLP = 1."),
    ],
};

pub(crate) static VP: Section = Section {
    heading: "`[[vp]]`",
    about: "A virtual path: virtual channels, those of the traffic that names it, which are policed together.",
    keys: &[
        Key::required("name", Kind::Text, "Name, unique among paths."),
        Key::optional("contract", Kind::Text, "no policer", "Contract that polices all its cells together, by name."),
    ],
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Ubr,
    Cbr,
    Sbr(Sbr),
    Gfr,
    Abr,
}

const KINDS: &[Variant<Form>] = &[
    Variant { name: "ubr", section: &UBR, value: Form::Ubr },
    Variant { name: "cbr", section: &CBR, value: Form::Cbr },
    Variant { name: "sbr1", section: &SBR1, value: Form::Sbr(Sbr::One) },
    Variant { name: "sbr2", section: &SBR2, value: Form::Sbr(Sbr::Two) },
    Variant { name: "sbr3", section: &SBR3, value: Form::Sbr(Sbr::Three) },
    Variant { name: "gfr", section: &GFR, value: Form::Gfr },
    Variant { name: "abr", section: &abr::ABR, value: Form::Abr },
];

/// The kinds of contracts.
pub(crate) fn kinds() -> Tagged {
    Tagged::new(&CONTRACT, "kind", KINDS)
}

/// A contract, and how its cells are served.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) name: String,
    /// `None`: nothing to police.
    pub(crate) contract: Option<Contract>,
    pub(crate) dscp: Vec<u8>,
    pub(crate) class: Option<String>,
    pub(crate) priority: u8,
    pub(crate) weight: u16,
    pub(crate) shape: Option<BitRate>,
    pub(crate) low_priority: bool,
    /// ABR: the sources send at the rate that the network allows.
    pub(crate) abr: Option<Abr>,
}

/// A virtual path, and by which of the contracts it is policed.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) name: String,
    pub(crate) contract: Option<Contract>,
}

/// All contracts and paths of a file. After an error in them, errors of references to them are not reported.
#[derive(Debug, Default)]
pub(crate) struct Contracts {
    pub(crate) services: Vec<Service>,
    pub(crate) paths: Vec<Path>,
    pub(crate) incomplete: bool,
}

impl Contracts {
    /// Reads `[[contract]]` and `[[vp]]`; `classes` are those of the ports, if all could be read.
    pub(crate) fn read(root: &Table<'_>, classes: Option<&[String]>) -> Self {
        let mut contracts = Self::default();
        for item in root.tables("contract") {
            match service(item, classes) {
                Some((service, table)) => {
                    if contracts.services.iter().any(|other| other.name == service.name) {
                        table.error("name", format!("a second contract is called {:?}", service.name), None);
                    }
                    contracts.services.push(service);
                }
                None => contracts.incomplete = true,
            }
        }
        for item in root.tables("vp") {
            let table = item.open(&VP);
            let name = table.name("name");
            let service = contracts.find(&table, "contract");
            let mut contract = service.and_then(|service| service.contract);
            let refused = match contract {
                Some(Contract::Gfr { .. }) => Some("a GFR contract judges frames"),
                _ if service.is_some_and(|service| service.abr.is_some()) => Some("an ABR contract polices nothing"),
                _ => None,
            };
            if let Some(why) = refused {
                let message = format!("{why}, and holds for a virtual channel, not for a path");
                table.error("contract", message, Some("name it in the traffic".into()));
                contract = None;
            }
            let Some(name) = name else {
                contracts.incomplete = true;
                continue;
            };
            if contracts.paths.iter().any(|other| other.name == name) {
                table.error("name", format!("a second path is called {name:?}"), None);
            }
            contracts.paths.push(Path { name, contract });
        }
        contracts
    }

    /// The contract that `key` names, or an error at it.
    pub(crate) fn find(&self, table: &Table<'_>, key: &'static str) -> Option<&Service> {
        self.find_index(table, key).map(|index| &self.services[index])
    }

    /// The contract at this index.
    pub(crate) fn find_index(&self, table: &Table<'_>, key: &'static str) -> Option<usize> {
        let name: String = table.optional(key)?;
        let found = self.services.iter().position(|service| service.name == name);
        if found.is_none() && !self.incomplete {
            let names = self.services.iter().map(|service| service.name.as_str());
            table.error(key, format!("no contract is called {name:?}"), known(&name, names, "contract"));
        }
        found
    }

    /// The path that `key` names, or an error at it.
    pub(crate) fn find_path(&self, table: &Table<'_>, key: &'static str) -> Option<usize> {
        let name: String = table.optional(key)?;
        let found = self.paths.iter().position(|path| path.name == name);
        if found.is_none() && !self.incomplete {
            let names = self.paths.iter().map(|path| path.name.as_str());
            table.error(key, format!("no virtual path is called {name:?}"), known(&name, names, "vp"));
        }
        found
    }
}

/// The nearest of what there is, or all of it.
fn known<'a>(name: &str, names: impl Iterator<Item = &'a str> + Clone, list: &str) -> Option<String> {
    did_you_mean(name, names.clone()).or_else(|| {
        let known: Vec<&str> = names.take(12).collect();
        Some(if known.is_empty() { format!("add a [[{list}]]") } else { format!("known: {}", known.join(", ")) })
    })
}

fn service<'d>(item: Unopened<'d>, classes: Option<&[String]>) -> Option<(Service, Table<'d>)> {
    let (form, table) = item.open_kind(&CONTRACT, KINDS)?;
    let name = table.name("name");
    let (contract, abr) = match form {
        Form::Abr => (Some(None), Some(abr::contract(&table))),
        _ => (contract(&table, form), None),
    };
    let dscp = table.optional::<Several<CodePoint>>("dscp").map(|several| several.0).unwrap_or_default();
    let class = table.optional::<String>("class");
    if let (Some(class), Some(classes)) = (&class, classes)
        && !classes.contains(class)
    {
        let hint = known(class, classes.iter().map(String::as_str), "switch");
        table.error("class", format!("no port has a class {class:?}"), hint);
    }
    let (priority, weight) = (table.get::<u64>("priority"), table.get::<u64>("weight"));
    let (shape, low_priority) = (table.optional("shape"), table.get("low_priority"));
    if form == Form::Abr && table.has("shape") {
        let hint = "a source of available bit rate sends at its allowed rate, pcr at most";
        table.error("shape", format!("{}: together with pcr", table.path("shape")), Some(hint.into()));
    }
    let abr = match abr {
        Some(abr) => Some(abr?),
        None => None,
    };
    let service = Service {
        name: name?,
        contract: contract?,
        dscp: dscp.into_iter().map(|CodePoint(dscp)| dscp).collect(),
        class,
        priority: u8::try_from(priority?).ok()?,
        weight: u16::try_from(weight?).ok()?,
        shape,
        low_priority: low_priority?,
        abr,
    };
    Some((service, table))
}

/// The policing of a contract. The outer `None`: something is wrong, which is then in the report.
#[expect(clippy::option_option, reason = "wrong, or none")]
fn contract(table: &Table<'_>, form: Form) -> Option<Option<Contract>> {
    let cdvt: Option<Duration> = table.get("cdvt");
    if form == Form::Ubr {
        let (rate, tagging) = (table.optional("pcr"), table.get("tagging"));
        let (cdvt, tagging) = (cdvt?, tagging?);
        let peak = rate.map(|rate| Peak { rate, cdvt });
        return Some((peak.is_some() || tagging).then_some(Contract::Ubr { peak, tagging }));
    }
    let pcr: Option<BitRate> = table.get("pcr");
    let contract = match form {
        Form::Ubr | Form::Cbr | Form::Abr => Contract::Dbr { peak: Peak { rate: pcr?, cdvt: cdvt? } },
        Form::Sbr(variant) => {
            let sustainable = sustainable(table, "scr");
            Contract::Sbr { variant, peak: Peak { rate: pcr?, cdvt: cdvt? }, sustainable: sustainable? }
        }
        Form::Gfr => {
            let minimum = sustainable(table, "mcr");
            let (mfs, tagging) = (table.get("mfs"), table.get("tagging"));
            let peak = Peak { rate: pcr?, cdvt: cdvt? };
            Contract::Gfr { peak, minimum: minimum?, mfs: mfs?, tagging: tagging? }
        }
    };
    if let Err(error) = contract.check() {
        let key = match error {
            ContractError::SustainableAbovePeak { .. } if form == Form::Gfr => "mcr",
            ContractError::SustainableAbovePeak { .. } => "scr",
            ContractError::NoBurst => "mbs",
            ContractError::FrameSize { .. } => "mfs",
        };
        table.error(key, format!("{}: {error}", table.path(key)), None);
        return None;
    }
    Some(Some(contract))
}

fn sustainable(table: &Table<'_>, rate: &'static str) -> Option<Sustainable> {
    let (rate, mbs) = (table.get(rate), table.get::<CellCount>("mbs"));
    let cdvt = table.get("scr_cdvt");
    Some(Sustainable { rate: rate?, mbs: mbs?, cdvt: cdvt? })
}
