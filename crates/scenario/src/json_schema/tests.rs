//! Without a validator: the tests of the Python package have one, and hold the shipped files and usual mistakes to the
//! schemas.

use super::scenario;
use super::scenario_sections;
use super::tables::Tables;
use super::value::plain;

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

#[test]
fn links_become_words() {
    assert_eq!(plain("A [policy](policy.md) of [[x]], `[a](b)`."), "A policy of [[x]], `[a](b)`.");
    assert_eq!(plain("see [queues](#queues)"), "see queues");
    assert_eq!(plain("`x` and [`kind`](#kind)"), "`x` and `kind`");
}

/// A year may stand without quotes, and no other number.
#[test]
fn the_schema_takes_an_era_as_a_text_and_as_a_number() {
    let schema = scenario();
    let tables = schema["$defs"].as_object().unwrap().values();
    let eras: Vec<_> = tables.map(|table| &table["properties"]["era"]).filter(|era| !era.is_null()).collect();
    assert_eq!(eras.len(), 1);
    assert_eq!(eras[0]["anyOf"], serde_json::json!([{ "enum": ["today", "1999"] }, { "const": 1999 }]));
    assert_eq!(eras[0]["default"], "today");
}
