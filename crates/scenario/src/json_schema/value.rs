//! Values of keys: kinds as schemas, meanings as descriptions.

use lastmile_linklayer::{PRESETS, Preset};
use lastmile_units::parse::Quantity;
use serde_json::{Map, Value, json};

use crate::schema::{Fallback, Key, Kind};

/// Where a document has its definitions.
pub(super) const DEFINITIONS: &str = "#/$defs/";

/// The definitions that the text of a link names.
type Linked<'a> = &'a dyn Fn(&str) -> Vec<String>;

/// The schema of a value of this kind.
pub(super) fn of(kind: Kind, linked: Linked<'_>) -> Value {
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Count => json!({ "type": "integer", "minimum": 0 }),
        Kind::Number => json!({ "type": "number", "minimum": 0 }),
        Kind::Exactly(number) => json!({ "const": number }),
        Kind::Time => quantity(Quantity::Time),
        Kind::Rate => quantity(Quantity::Rate),
        Kind::Bytes => quantity(Quantity::Bytes),
        Kind::WireBytes => quantity(Quantity::WireBytes),
        Kind::Cells => quantity(Quantity::Cells),
        Kind::Packets => quantity(Quantity::Packets),
        Kind::Share => quantity(Quantity::Share),
        // A time stands for what departs in it.
        Kind::Limit => json!({ "anyOf": [quantity(Quantity::Limit), quantity(Quantity::Time)] }),
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::Words(words) => {
            json!({ "anyOf": [{ "enum": words }, { "type": "string", "pattern": in_any_case(words) }] })
        }
        Kind::Matching(pattern) => json!({ "type": "string", "pattern": pattern }),
        Kind::Bounded(kind) => {
            let mut inner = of(*kind, linked);
            let pattern = inner["pattern"].as_str().unwrap_or_default();
            inner["pattern"] = json!(format!("^\\s*[<>]{}", pattern.trim_start_matches('^')));
            inner["examples"] = json!([format!("> {}", inner["examples"][0].as_str().unwrap_or_default())]);
            inner
        }
        Kind::Encapsulation => {
            let names: Vec<&str> = PRESETS.iter().flat_map(Preset::names).collect();
            json!({ "anyOf": [{ "enum": names }, { "type": "string", "pattern": "^l2tp/|\\s" }] })
        }
        Kind::Table(link) => any(linked(link).iter().map(|name| reference(name)).collect()),
        Kind::Tables(link) => {
            json!({ "type": "array", "items": any(linked(link).iter().map(|name| reference(name)).collect()) })
        }
        Kind::Several(kinds) => {
            let item = any(kinds.iter().map(|kind| of(*kind, linked)).collect());
            json!({ "type": "array", "minItems": 1, "items": item })
        }
        Kind::Fields(keys) => {
            let mut properties = Map::new();
            for key in keys {
                let mut schema = of(key.kind, linked);
                describe(&mut schema, key);
                properties.insert(key.name.into(), schema);
            }
            json!({ "type": "object", "properties": properties, "additionalProperties": false })
        }
        Kind::Other(_, kinds) => any(kinds.iter().map(|kind| of(*kind, linked)).collect()),
    }
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("{DEFINITIONS}{name}") })
}

fn any(mut schemas: Vec<Value>) -> Value {
    if schemas.len() == 1 { schemas.remove(0) } else { json!({ "anyOf": schemas }) }
}

fn quantity(quantity: Quantity) -> Value {
    json!({ "type": "string", "pattern": quantity.pattern(), "examples": [quantity.example()] })
}

/// A pattern of these words in letters of any case.
fn in_any_case(words: &[&str]) -> String {
    let word = |word: &str| -> String {
        let letter = |c: char| match c.is_ascii_alphabetic() {
            true => format!("[{}{}]", c.to_ascii_lowercase(), c.to_ascii_uppercase()),
            false => c.to_string(),
        };
        word.chars().map(letter).collect()
    };
    format!("^({})$", words.iter().map(|text| word(text)).collect::<Vec<_>>().join("|"))
}

/// Adds the meaning of `key`, its default and its range.
pub(super) fn describe(schema: &mut Value, key: &Key) {
    let mut text = plain(key.doc);
    match (key.min, key.max) {
        (Some(min), Some(max)) => text += &format!(" From {min} to {max}."),
        (Some(min), None) => text += &format!(" At least {min}."),
        (None, Some(max)) => text += &format!(" At most {max}."),
        (None, None) => {}
    }
    match key.fallback {
        Fallback::Required => {}
        Fallback::Absent(then) => text += &format!(" Without it: {}.", plain(then)),
        Fallback::Value(default) => schema["default"] = default_of(key.kind, default),
    }
    if matches!(key.kind, Kind::Count) {
        for (name, bound) in [("minimum", key.min), ("maximum", key.max)] {
            if let Some(bound) = bound.and_then(|bound| bound.parse::<i64>().ok()) {
                schema[name] = json!(bound);
            }
        }
    }
    schema["description"] = json!(text.trim());
}

/// A default, written as in a file.
pub(super) fn default_of(kind: Kind, text: &str) -> Value {
    let accepts = |wanted: fn(&Kind) -> bool| match kind {
        Kind::Other(_, kinds) => kinds.iter().any(wanted),
        one => wanted(&one),
    };
    match text {
        "true" | "false" if accepts(|kind| matches!(kind, Kind::Flag)) => json!(text == "true"),
        _ if accepts(|kind| matches!(kind, Kind::Count)) && text.parse::<u64>().is_ok() => {
            json!(text.parse::<u64>().ok())
        }
        _ if accepts(|kind| matches!(kind, Kind::Number)) => json!(text.parse::<f64>().ok()),
        _ => json!(text),
    }
}

/// Markdown without its links, apart from those in code.
pub(super) fn plain(markdown: &str) -> String {
    let (mut text, mut rest) = (String::new(), markdown);
    while let Some(open) = rest.find('[') {
        let link = rest[open..].find("](").and_then(|middle| {
            let end = rest[open + middle..].find(')')?;
            Some((&rest[open + 1..open + middle], open + middle + end + 1))
        });
        let before = &markdown[..markdown.len() - rest.len() + open];
        let is_code = before.matches('`').count() % 2 == 1;
        let Some((words, end)) = link.filter(|(words, _)| !is_code && !words.contains('[')) else {
            text.push_str(&rest[..=open]);
            rest = &rest[open + 1..];
            continue;
        };
        text.push_str(&rest[..open]);
        text.push_str(words);
        rest = &rest[end..];
    }
    text + rest
}
