use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::{Value, json};

use super::tables::Tables;
use super::value::{default_of, plain};
use super::{DRAFT, policy, scenario, scenario_sections};
use crate::diagnostics::Source;
use crate::document::{self, Document};
use crate::schema::Fallback;

fn to_json(value: &document::Value) -> Value {
    use document::Value as Toml;
    match value {
        Toml::String(text) => json!(text),
        Toml::Integer(text) => json!(text.parse::<i64>().unwrap()),
        Toml::Float(text) => json!(text.parse::<f64>().unwrap()),
        Toml::Boolean(flag) => json!(flag),
        Toml::Datetime => Value::Null,
        Toml::Array(items) => items.iter().map(|item| to_json(&item.value)).collect(),
        Toml::Table(table) => object(table),
    }
}

fn object(table: &document::Table) -> Value {
    table
        .entries
        .iter()
        .map(|(key, node)| (key.name.clone(), to_json(&node.value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn toml(text: &str) -> Value {
    object(&Document::parse(Source::new("test.toml", text), &[]).unwrap().root)
}

fn files(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut found, mut folders) = (Vec::new(), vec![root.join(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "toml") {
                found.push(path);
            }
        }
    }
    found
}

#[track_caller]
fn accepts_all(schema: &Value, paths: &[PathBuf]) {
    let validator = jsonschema::draft202012::new(schema).unwrap();
    for path in paths {
        let file = toml(&std::fs::read_to_string(path).unwrap());
        let faults: Vec<String> =
            validator.iter_errors(&file).map(|error| format!("{} {error}", error.instance_path())).collect();
        assert!(faults.is_empty(), "{}: {faults:#?}", path.display());
    }
}

#[test]
fn both_are_schemas_of_their_draft() {
    for schema in [scenario(), policy()] {
        assert_eq!(schema["$schema"], DRAFT);
        jsonschema::draft202012::meta::validate(&schema).unwrap();
    }
}

#[test]
fn every_shipped_scenario_is_valid() {
    let mut paths = files("scenarios");
    paths.extend(files("crates/published/scenarios"));
    assert!(paths.len() > 60, "{} files", paths.len());
    // Files under scenarios/ that are policies are named by scenarios.
    let (policies, scenarios): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| is_policy(path));
    accepts_all(&scenario(), &scenarios);
    accepts_all(&policy(), &policies);
}

fn is_policy(path: &Path) -> bool {
    let file = toml(&std::fs::read_to_string(path).unwrap());
    ["scheduler", "class", "down"].iter().any(|key| file.get(key).is_some())
}

#[test]
fn every_built_in_policy_is_valid() {
    let paths = files("policies");
    assert!(paths.len() >= 10, "{} files", paths.len());
    accepts_all(&policy(), &paths);
}

#[test]
fn every_default_is_a_value_of_its_key() {
    let schema = scenario();
    let tables = Tables::new(&scenario_sections());
    let mut seen = 0;
    for (section, key) in tables.keys() {
        let Fallback::Value(text) = key.fallback else { continue };
        let mut one = tables.value(section, key);
        one["$defs"] = schema["$defs"].clone();
        let validator = jsonschema::draft202012::new(&one).unwrap();
        let default = default_of(key.kind, text);
        assert!(validator.is_valid(&default), "{} {}: {default} in {one}", section.heading, key.name);
        seen += 1;
    }
    assert!(seen > 150, "{seen} defaults");
}

/// No table of the reference is missing, apart from the top level.
#[test]
fn the_schema_leads_to_every_table() {
    let schema = scenario();
    let definitions = schema["$defs"].as_object().unwrap();
    let tables = Tables::new(&scenario_sections());
    let inlined =
        |name: &&str| name.starts_with("kind-") || name.starts_with("meter-") || name.starts_with("trace-generate");
    let missing: Vec<&str> = tables.names().filter(|name| !definitions.contains_key(*name)).collect();
    let missing: Vec<&str> = missing.into_iter().filter(|name| !inlined(name)).collect();
    assert_eq!(missing, ["top-level"]);
}

const LINE: &str = "duration = \"10 s\"\n[access]\ndown = { rate = \"2 Mbit/s\" }\nup = { rate = \"512 kbit/s\" }\n";

fn valid(validator: &Validator, text: &str) -> bool {
    validator.is_valid(&toml(text))
}

#[test]
fn usual_mistakes_are_found() {
    let validator = jsonschema::draft202012::new(&scenario()).unwrap();
    let traffic = |rest: &str| format!("{LINE}[[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\n{rest}");
    assert!(valid(&validator, &traffic("start = \"1.5 s\"\ntcp = { variant = \"reno\" }")));
    for wrong in
        ["strat = \"1 s\"", "start = 1", "start = \"1\"", "start = \"1 kbit/s\"", "tcp = { variant = \"rneo\" }"]
    {
        assert!(!valid(&validator, &traffic(wrong)), "{wrong}");
    }
    let queue = |queue: &str| LINE.replace("512 kbit/s\" }", &format!("512 kbit/s\", queue = {queue} }}"));
    for right in [
        "{ limit = \"100 packets\" }",
        "{ limit = \"100 ms\" }",
        "{ kind = \"fifo\", limit = \"64 KiB\" }",
        "{ kind = \"sad\", queue = { kind = \"tbf\", rate = \"500kbit\", burst = \"3000 wire bytes\" } }",
        "{ kind = \"priority\", classes = [{ match = { dscp = [46, \"af41\"], port = \"80-90\" } }] }",
    ] {
        assert!(valid(&validator, &queue(right)), "{right}");
    }
    for wrong in [
        "{ kind = \"fifi\" }",
        "{ limit = 100 }",
        "{ limit = \"64 K\" }",
        "{ kind = \"codel\", regulate = true }",
        "{ kind = \"sad\", queue = { kind = \"fifo\", rate = \"1 Mbit/s\" } }",
        "{ kind = \"priority\", classes = [{ match = { prot = \"tcp\" } }] }",
    ] {
        assert!(!valid(&validator, &queue(wrong)), "{wrong}");
    }
    assert!(!valid(&validator, &LINE.replace("rate = \"2 Mbit/s\"", "rate = \"2 mbps/s\"")));
    assert!(!valid(&validator, &LINE.replace("access", "acces")));
}

#[test]
fn mistakes_in_a_policy_are_found() {
    let validator = jsonschema::draft202012::new(&policy()).unwrap();
    let class = |rest: &str| format!("[[class]]\nname = \"a\"\nrate = \"20 %\"\n{rest}");
    assert!(valid(&validator, &class("priority = 3\nqueue = { kind = \"fq-codel\" }")));
    for wrong in ["prio = 3", "priority = 8", "queue = \"fq-codel\"", "ceil = \"20\""] {
        assert!(!valid(&validator, &class(wrong)), "{wrong}");
    }
    assert!(!valid(&validator, "[scheduler]\nkind = \"hbt\""));
}

/// Text that the parser of quantities accepts or refuses, and the pattern with it.
#[test]
fn patterns_agree_with_the_parser() {
    use lastmile_units::parse::Quantity;
    use lastmile_units::{BitRate, ByteCount, Duration, Limit, Ratio, WireBytes};
    let texts = [
        "20 ms",
        "20ms",
        " 1.5  s ",
        "5 m",
        "3 min",
        "1. s",
        ".5 s",
        "1,5 s",
        "-1 s",
        "1e3 s",
        "20 µs",
        "512 kbit/s",
        "512kbit",
        "1 Mbps",
        "1 Mb/s",
        "1 MB/s",
        "512 kb",
        "1 MBIT/SEC",
        "1 Mbit/sec",
        "9600 bps",
        "206 kB",
        "64 KiB",
        "64 K",
        "1500 bytes",
        "3 wire bytes",
        "3 wire  bytes",
        "100 packets",
        "1 pkt",
        "10 cells",
        "20 %",
        "20%",
        "5 ppm",
        "0.5 percent",
        "20",
        "",
        "s",
    ];
    let check = |quantity: Quantity, parses: fn(&str) -> bool| {
        let schema = json!({ "type": "string", "pattern": quantity.pattern() });
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        for text in texts {
            assert_eq!(validator.is_valid(&json!(text)), parses(text), "{text:?} as {quantity:?}");
        }
    };
    check(Quantity::Time, |text| text.parse::<Duration>().is_ok());
    check(Quantity::Rate, |text| text.parse::<BitRate>().is_ok());
    check(Quantity::Bytes, |text| text.parse::<ByteCount>().is_ok());
    check(Quantity::WireBytes, |text| text.parse::<WireBytes>().is_ok());
    check(Quantity::Limit, |text| text.parse::<Limit>().is_ok());
    check(Quantity::Share, |text| text.parse::<Ratio>().is_ok());
}

#[test]
fn links_become_words() {
    assert_eq!(plain("A [policy](policy.md) of [[x]], `[a](b)`."), "A policy of [[x]], `[a](b)`.");
    assert_eq!(plain("see [queues](#queues)"), "see queues");
    assert_eq!(plain("`x` and [`kind`](#kind)"), "`x` and `kind`");
}
