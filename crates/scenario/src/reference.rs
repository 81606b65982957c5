//! The reference of the scenario file, printed from the schema that the reader goes by.

use core::fmt::Write as _;
use std::collections::BTreeMap;

use lastmile_linklayer::PRESETS;

use crate::schema::{Fallback, Key, Kind, Section};
use crate::{access, atm, cases, grants, impairments, line, queue, quic, scenario, tcp, topology, trace, traffic};

/// All sections, in the order of the reference, under their chapters.
pub(crate) fn chapters() -> Vec<(&'static str, &'static str, Vec<&'static Section>)> {
    vec![
        ("The run", "", vec![&scenario::ROOT, &scenario::RECORD, &cases::CASE]),
        (
            "The access line",
            "",
            vec![
                &access::ACCESS,
                &access::DIRECTION,
                &access::LAN,
                &access::AGGREGATION,
                &access::BACKBONE,
                &access::PROCESSING,
            ],
        ),
        ("Nodes and links", "", vec![&topology::NODE, &topology::LINK, &topology::BACK]),
        (
            "ATM",
            "",
            vec![
                &atm::ATM,
                &atm::switch::SWITCH,
                &atm::abr::PORT,
                &atm::abr::EFCI,
                &atm::abr::ERICA,
                &atm::link::CELL_LINK,
                &atm::link::CELL_BACK,
                &atm::queue::CELL_QUEUE,
                &atm::queue::TAIL_DROP,
                &atm::queue::PPD,
                &atm::queue::EPD,
                &atm::queue::EPD_PER_VC,
                &atm::queue::SPD,
                &atm::queue::CLASSES,
                &atm::queue::PER_VC,
                &atm::queue::CELL_CLASS,
                &atm::contract::CONTRACT,
                &atm::contract::UBR,
                &atm::contract::CBR,
                &atm::contract::SBR1,
                &atm::contract::SBR2,
                &atm::contract::SBR3,
                &atm::contract::GFR,
                &atm::abr::ABR,
                &atm::contract::VP,
                &atm::edge::EDGE,
            ],
        ),
        ("Encapsulations", ENCAPSULATIONS, vec![&line::CUSTOM]),
        ("Impairments of the wire", "", impairments::sections()),
        ("Capacity over time", "", trace::sections()),
        ("Grants", "", vec![&grants::SECTION]),
        ("Queues", "", queue::sections()),
        ("Traffic", "", traffic::sections()),
        ("TCP", "", vec![&tcp::TCP]),
        ("QUIC", "", quic::sections()),
    ]
}

/// The keys of each table, for editors, each with its meaning. A table has its name in a file, such as `access.up`,
/// which is empty at the top level.
#[must_use]
pub fn keys() -> BTreeMap<String, Vec<(&'static str, &'static str)>> {
    let mut all: BTreeMap<String, Vec<(&'static str, &'static str)>> = BTreeMap::new();
    for (chapter, _, sections) in chapters() {
        for section in sections {
            let headings = section.heading.split('`').skip(1).step_by(2);
            let tables = headings.filter_map(|code| code.strip_prefix('['));
            let mut names: Vec<String> =
                tables.map(|name| name.trim_matches(['[', ']']).to_owned()).filter(|name| !name.is_empty()).collect();
            if names.is_empty() && section.heading == ROOT_HEADING {
                names.push(String::new());
            }
            if names.is_empty() && chapter == TRAFFIC_CHAPTER {
                names.push("traffic".to_owned());
            }
            for name in names {
                let keys = all.entry(name).or_default();
                let new = section.keys.iter().filter(|key| !keys.iter().any(|(known, _)| *known == key.name));
                let new: Vec<_> = new.map(|key| (key.name, key.doc)).collect();
                keys.extend(new);
            }
        }
    }
    all
}

/// The heading of the top level.
const ROOT_HEADING: &str = "Top level";
/// The chapter whose sections are kinds of `[[traffic]]`.
const TRAFFIC_CHAPTER: &str = "Traffic";

const INTRODUCTION: &str = "\
# The scenario file

<!-- Printed from the code by `cargo run -p lastmile-scenario --example reference`; a test holds the two together. -->

A scenario is a [TOML](https://toml.io) file that describes lines, traffic and duration. `lastmile run` simulates it;
`lastmile emulate` takes its `[access]` line. The files in `scenarios/` are examples, from small to large.

```toml
name = \"An upload starves the download\"
duration = \"180 s\"

[access]
encapsulation = \"bridged-vcmux-fcs\"
down = { rate = \"2 Mbit/s\", delay = \"4 ms\", queue = { limit = \"100 packets\" } }
up = { rate = \"512 kbit/s\", delay = \"4 ms\", queue = { limit = \"206 kB\" } }

[[traffic]]
name = \"download\"
kind = \"bulk\"
direction = \"down\"
```

## Values

Values have a unit and are written in quotes. Ambiguous values (`512 kb`, `64 K`) are refused.

| kind | written as |
| --- | --- |
| time | `\"20 ms\"`, `\"1.5 s\"`, `\"3 min\"`: ps, ns, us, ms, s, min, h |
| rate | `\"512 kbit/s\"`, `\"1.544 Mbit/s\"`: bit/s, kbit/s, Mbit/s, Gbit/s; up to 1 Tbit/s |
| size | `\"1500 B\"`, `\"206 kB\"`, `\"64 KiB\"`: IP bytes unless the key says otherwise |
| size on the wire | `\"3392 wire bytes\"`: headers, padding and cells included |
| limit | `\"100 packets\"`, `\"206 kB\"`, `\"1000 cells\"`: the unit says what is counted |
| share | `\"0.1 %\"`, `\"5 ppm\"`: from 0 to 100 % |
| whole number | `64`, without quotes |

## Overrides

`--set key=value` changes a value before the file is read, or adds it. The key is written with dots from the top \
                            level; an entry
of a list is named by its name, a link without one by its ends (`link.A-B.rate`), or by its index from 0. Quotes may \
                            be left out:
`--set access.up.rate=1 Mbit/s` (in a \
                            shell:
`--set \"access.up.rate=1 Mbit/s\"`), `--set traffic.upload.start=10s`, `--set access.up.queue.kind=sad`.
An override is checked like the same line in the file.
";

const ENCAPSULATIONS: &str = "\
`encapsulation` takes one of these names (`lastmile overhead` shows what each costs for any size), `l2tp/` and the \
name of the tunnel's carrier, words of tc-cake(8), such as `pppoe-ptm ether-vlan` or `ptm overhead 34 mpu 68`, or a \
table.";

/// The whole reference, as Markdown.
#[must_use]
pub fn render() -> String {
    let mut text = INTRODUCTION.to_owned();
    for (title, about, sections) in chapters() {
        let _ = write!(text, "\n## {title}\n\n");
        if !about.is_empty() {
            let _ = write!(text, "{}\n\n", paragraph(about));
        }
        if title == "Encapsulations" {
            text.push_str(&presets());
        }
        for section in sections {
            render_section(&mut text, section, title);
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

pub(crate) fn render_section(text: &mut String, section: &Section, chapter: &str) {
    if section.heading != chapter {
        let _ = write!(text, "### {}\n\n", section.heading);
    }
    if !section.about.is_empty() {
        let _ = write!(text, "{}\n\n", paragraph(section.about));
    }
    text.push_str("| key | value | default | meaning |\n| --- | --- | --- | --- |\n");
    for key in section.keys {
        let _ = writeln!(text, "| `{}` | {} | {} | {} |", key.name, value(key), default(key), key.doc);
    }
    text.push('\n');
}

/// The text in lines of at most 150 columns, broken at blanks outside of code.
fn paragraph(text: &str) -> String {
    const WIDTH: usize = 150;
    let (mut lines, mut column, mut in_code) = (String::new(), 0, false);
    let mut word = String::new();
    for piece in text.split(' ') {
        word.push_str(piece);
        in_code ^= piece.matches('`').count() % 2 == 1;
        if in_code {
            word.push(' ');
            continue;
        }
        let width = word.chars().count();
        if column > 0 {
            let fits = column + 1 + width <= WIDTH;
            lines.push(if fits { ' ' } else { '\n' });
            column = if fits { column + 1 } else { 0 };
        }
        lines.push_str(&word);
        column += width;
        word.clear();
    }
    lines + &word
}

fn value(key: &Key) -> String {
    let kind = key.kind.describe();
    match (key.min, key.max) {
        (Some(min), Some(max)) => format!("{kind}, {min} to {max}"),
        (Some(min), None) => format!("{kind}, at least {min}"),
        (None, Some(max)) => format!("{kind}, at most {max}"),
        (None, None) => kind,
    }
}

fn default(key: &Key) -> String {
    match key.fallback {
        Fallback::Required => "required".into(),
        Fallback::Absent(then) => then.into(),
        Fallback::Value(text) if bare(key.kind, text) => format!("`{text}`"),
        Fallback::Value(text) => format!("`\"{text}\"`"),
    }
}

/// True for values that are written without quotes.
fn bare(kind: Kind, text: &str) -> bool {
    match kind {
        Kind::Flag | Kind::Count => true,
        Kind::Other(..) => text.parse::<u64>().is_ok() || matches!(text, "true" | "false"),
        _ => false,
    }
}

fn presets() -> String {
    let mut text = "| name | also | bytes a packet | note |\n| --- | --- | --- | --- |\n".to_owned();
    for preset in PRESETS {
        let also: Vec<String> = preset.aliases.iter().map(|alias| format!("`{alias}`")).collect();
        let _ = writeln!(text, "| `{}` | {} | {} | {} |", preset.name, also.join(", "), preset.link, preset.note);
    }
    text.push('\n');
    text
}
