//! The kernel's state, by `tc -j`, `ip -j` and `nft list`; classes and size tables by the text of tc, whose HTB
//! prints no JSON up to iproute2 6.1.

use std::collections::BTreeMap;

use lastmile_kernel::{DEVICE, IFB, Object, ingress, table_of};
use serde_json::Value;

use super::tools::{Target, run};
use crate::error::Error;

/// Values by their keys.
pub(super) type Values = BTreeMap<String, String>;

/// Everything that can be compared, on both devices.
pub(super) fn everything(target: &Target, has_ifb: bool) -> Result<BTreeMap<Object, Values>, Error> {
    let mut found = BTreeMap::new();
    let devices = [(DEVICE, target.device.as_str()), (IFB, target.ifb.as_str())];
    for (device, name) in devices.into_iter().take(if has_ifb { 2 } else { 1 }) {
        if device == IFB {
            let Some(alias) = link_alias(name) else { continue };
            found.insert(Object::Link { device }, Values::from([("ifalias".to_owned(), alias)]));
        }
        let family = if device == IFB { "netdev" } else { "inet" };
        found.insert(Object::Rules { device }, rules(family, &target.device));
        let shown = disciplines(name)?;
        let mut tables = size_tables(&run(&words(&format!("tc -d qdisc show dev {name}")))?);
        let mut parents = Vec::new();
        for discipline in &shown {
            let kind = text(&discipline["kind"]);
            let parent = match (discipline["root"].as_bool(), kind.as_str()) {
                (Some(true), _) => "root".to_owned(),
                (_, "ingress") => "ingress".to_owned(),
                _ => text(&discipline["parent"]),
            };
            let handle = text(&discipline["handle"]);
            let mut values = flat(discipline, &["options"]);
            values.extend(tables.remove(&handle).unwrap_or_default());
            found.insert(Object::Qdisc { device, parent }, values);
            let of_received = matches!(kind.as_str(), "ingress" | "clsact");
            parents.push(if of_received { ingress::PARENT.to_owned() } else { handle });
        }
        for (id, values) in classes(name)? {
            found.insert(Object::Class { device, id }, values);
        }
        for parent in parents {
            for (preference, values) in filters(name, &parent)? {
                found.insert(Object::Filter { device, parent: parent.clone(), preference }, values);
            }
        }
    }
    Ok(found)
}

/// Handles of the disciplines of a device.
pub(super) fn handles(device: &str) -> Result<Vec<String>, Error> {
    Ok(disciplines(device)?.iter().map(|discipline| text(&discipline["handle"])).collect())
}

/// Kind and handle of a discipline that somebody has put at the root: those that come by themselves have the handle 0.
pub(super) fn root(device: &str) -> Result<Option<(String, String)>, Error> {
    let of = |discipline: &Value| {
        let (kind, handle) = (text(&discipline["kind"]), text(&discipline["handle"]));
        (discipline["root"].as_bool() == Some(true) && handle != "0:").then_some((kind, handle))
    };
    Ok(disciplines(device)?.iter().find_map(of))
}

/// True for an ingress discipline without a filter.
pub(super) fn has_idle_ingress(device: &str) -> Result<bool, Error> {
    let is_there = disciplines(device)?.iter().any(|discipline| discipline["kind"] == "ingress");
    Ok(is_there && !has_filter(device, "")?)
}

/// True for a filter of received packets with the preference of a set-up.
pub(super) fn has_own_filter(device: &str) -> Result<bool, Error> {
    if !handles(device)?.iter().any(|handle| handle == ingress::HANDLE) {
        return Ok(false);
    }
    has_filter(device, &format!(" pref {}", ingress::PREFERENCE))
}

/// By text: iproute2 up to 5.13 prints a policer as no JSON.
fn has_filter(device: &str, which: &str) -> Result<bool, Error> {
    let shown = run(&words(&format!("tc filter show dev {device} parent {}{which}", ingress::PARENT)))?;
    Ok(!shown.trim().is_empty())
}

/// The own name of a device, which may be called by an alternative one; `None` without the device.
pub(super) fn link_name(device: &str) -> Option<String> {
    let links = json(&format!("ip -j link show dev {device}")).ok()?;
    links.first()?["ifname"].as_str().map(str::to_owned)
}

/// The kind of frames of a device, in the words of ip(8). By ip and not by /sys, which may be that
/// of another namespace.
pub(super) fn link_type(device: &str) -> Result<String, Error> {
    Ok(json(&format!("ip -j link show dev {device}"))?
        .first()
        .map_or_else(String::new, |link| text(&link["link_type"])))
}

/// The alias of a device; `None` without the device.
pub(super) fn link_alias(device: &str) -> Option<String> {
    let links = json(&format!("ip -j link show dev {device}")).ok()?;
    Some(text(&links.first()?["ifalias"]))
}

/// The disciplines of a device.
fn disciplines(device: &str) -> Result<Vec<Value>, Error> {
    let command = format!("tc -j qdisc show dev {device}");
    list(&command, &without_text(&run(&words(&command))?))
}

/// iproute2 up to 7.0 prints the default class of HFSC as text within its JSON: `"options":{default 11 }`.
fn without_text(shown: &str) -> String {
    match shown.split_once("{default ") {
        Some((before, rest)) => format!("{before}{{{}", rest.trim_start_matches(|c| c != '}')),
        None => shown.to_owned(),
    }
}

/// The size tables of disciplines by their handles. By text: iproute2 up to 6.0 prints them as no JSON.
fn size_tables(shown: &str) -> BTreeMap<String, Values> {
    let (mut tables, mut handle) = (BTreeMap::<String, Values>::new(), "");
    for line in shown.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["qdisc", _, of, ..] => handle = of,
            ["linklayer", ..] => {
                let values = words.chunks_exact(2).map(|pair| (format!("stab.{}", pair[0]), pair[1].to_owned()));
                tables.insert(handle.to_owned(), values.collect());
            }
            _ => {}
        }
    }
    tables
}

/// Classes by their handle.
fn classes(device: &str) -> Result<BTreeMap<String, Values>, Error> {
    let shown = run(&words(&format!("tc -j -d class show dev {device}")))?;
    if let Ok(Value::Array(list)) = serde_json::from_str(&shown) {
        return Ok(list.iter().map(|class| (text(&class["handle"]), flat(class, &["options"]))).collect());
    }
    Ok(shown.lines().filter_map(class).collect())
}

/// `class htb 1:10 parent 1:1 leaf 20: prio 0 rate 1Mbit ...`: the first value of each key counts.
fn class(line: &str) -> Option<(String, Values)> {
    let mut words = line.strip_prefix("class ")?.split_whitespace().skip(1);
    let id = words.next()?.to_owned();
    let mut values = Values::new();
    while let Some(key) = words.next() {
        if key != "root" {
            let value = words.next()?.to_owned();
            values.entry(key.to_owned()).or_insert(value);
        }
    }
    Some((id, values))
}

/// Filters by their preference.
fn filters(device: &str, parent: &str) -> Result<BTreeMap<u32, Values>, Error> {
    let mut found = BTreeMap::new();
    for filter in json(&format!("tc -j -d filter show dev {device} parent {parent}"))? {
        let options = &filter["options"];
        // An entry for a whole preference has no options, and a table of u32 no match.
        if options.is_null() || !options["ht_divisor"].is_null() {
            continue;
        }
        let mut values = flat(&filter, &["options"]);
        let action = &options["actions"][0];
        if !action.is_null() {
            values.insert("action".to_owned(), text(&action["kind"]));
            values.insert("to_dev".to_owned(), text(&action["to_dev"]));
            if action["kind"] == "police" && action["rate"].is_null() {
                // Rate and burst stand in the text alone up to iproute2 6.1 at least.
                let preference = text(&filter["pref"]);
                let shown = run(&words(&format!("tc -d filter show dev {device} parent {parent} pref {preference}")))?;
                values.extend(police(&shown));
            }
        }
        if let Some(preference) = filter["pref"].as_u64().and_then(|preference| u32::try_from(preference).ok()) {
            found.entry(preference).or_insert(values);
        }
    }
    Ok(found)
}

/// `action order 1:  police 0x1 rate 1900Kbit burst 16959b mtu 1696b action drop overhead 28b linklayer atm`:
/// the first of a text.
fn police(shown: &str) -> Values {
    let line = shown.lines().find_map(|line| line.split_once(" police "));
    let mut words = line.map_or("", |(_, rest)| rest).split_whitespace().skip(1);
    let mut values = Values::new();
    while let (Some(key), Some(value)) = (words.next(), words.next()) {
        // Another `action` is what is done with the packet.
        if key != "action" {
            values.insert(key.to_owned(), value.to_owned());
        }
    }
    values
}

/// The classes that the table of nft gives, in the order of its rules; empty without the table.
fn rules(family: &str, device: &str) -> Values {
    let listed = run(&words(&format!("nft list chain {family} {} classes", table_of(device))));
    let listed = listed.unwrap_or_default();
    let class = |line: &str| line.split_once("meta priority set ")?.1.split_whitespace().next().map(str::to_owned);
    let classes: Vec<String> = listed.lines().filter_map(class).collect();
    if classes.is_empty() {
        return Values::new();
    }
    let kind = ("kind".to_owned(), format!("{} classes", classes.len()));
    Values::from([kind, ("classes".to_owned(), classes.join(" "))])
}

/// Scalars of an object, and of the objects in it that are named.
fn flat(object: &Value, inner: &[&str]) -> Values {
    let mut values = Values::new();
    let parts = std::iter::once(object).chain(inner.iter().map(|key| &object[*key]));
    for (key, value) in parts.filter_map(Value::as_object).flatten() {
        let of_rate = matches!(key.as_str(), "bandwidth" | "rate" | "ceil");
        match value.as_u64().filter(|_| of_rate) {
            // JSON has rates in bytes a second.
            Some(bytes) => values.insert(key.clone(), format!("{}bit", bytes.saturating_mul(8))),
            None => values.insert(key.clone(), text(value)),
        };
    }
    values
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The words of a command.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// The list in JSON that a command prints.
fn json(command: &str) -> Result<Vec<Value>, Error> {
    list(command, &run(&words(command))?)
}

/// A list in JSON; what prints nothing is an empty one.
fn list(command: &str, shown: &str) -> Result<Vec<Value>, Error> {
    if shown.trim().is_empty() {
        return Ok(Vec::new());
    }
    let unread = |error: serde_json::Error| Error::Tool { command: command.to_owned(), message: error.to_string() };
    match serde_json::from_str(shown).map_err(unread)? {
        Value::Array(list) => Ok(list),
        other => Ok(vec![other]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As iproute2 6.1 prints it.
    #[test]
    fn a_class_is_read_from_its_line() {
        let line = "class htb 1a57:10 parent 1a57:1 leaf 1a58: prio 0 quantum 1696 rate 83328bit ceil 512Kbit \
                    linklayer \
                    ethernet burst 5087b/1 mpu 0b cburst 5087b/1 mpu 0b level 0 ";
        let (id, values) = class(line).unwrap();
        assert_eq!(id, "1a57:10");
        let of = |key: &str| values[key].as_str();
        assert_eq!([of("rate"), of("ceil"), of("burst"), of("prio")], ["83328bit", "512Kbit", "5087b/1", "0"]);
        let (_, values) = class("class htb 1a57:1 root rate 512Kbit ceil 512Kbit burst 5087b cburst 5087b").unwrap();
        assert_eq!(values["ceil"], "512Kbit");
        assert_eq!(class("Sent 5 bytes"), None);
    }

    /// As iproute2 6.1 prints it of Linux 6.12.
    #[test]
    fn a_policer_is_read_from_its_line() {
        let shown = "filter protocol all pref 6743 matchall chain 0 handle 0x1 \n  not_in_hw\
        \n\taction order 1:  police 0x1 \
                     rate 1900Kbit burst 16959b mtu 1696b action drop overhead 28b linklayer atm \n\tref 1 bind 1 \n";
        let values = police(shown);
        let of = |key: &str| values[key].as_str();
        assert_eq!([of("rate"), of("burst"), of("mtu")], ["1900Kbit", "16959b", "1696b"]);
        assert_eq!([of("overhead"), of("linklayer")], ["28b", "atm"]);
        assert!(!values.contains_key("action") && police("filter protocol all").is_empty());
    }

    /// As iproute2 5.10 to 7.1 print them.
    #[test]
    fn size_tables_are_read_from_their_lines() {
        let shown = "qdisc htb 1a57: root refcnt 2 r2q 10 default 0x11 ver 3.17 direct_qlen 1000\n \
                     linklayer atm overhead -4 mpu 74 mtu 2047 tsize 2048 \n\
                     qdisc bfifo 1a58: parent 1a57:10 limit 10000b\n";
        let tables = size_tables(shown);
        assert_eq!(tables.keys().collect::<Vec<_>>(), ["1a57:"]);
        let wanted = [("linklayer", "atm"), ("mpu", "74"), ("mtu", "2047"), ("overhead", "-4"), ("tsize", "2048")];
        let wanted = wanted.map(|(key, value)| (format!("stab.{key}"), value.to_owned()));
        assert_eq!(tables["1a57:"], Values::from(wanted));
    }

    /// As iproute2 5.10 to 7.0 print it.
    #[test]
    fn hfsc_is_read_with_its_default_class() {
        let shown = r#"[{"kind":"hfsc","handle":"1a57:","root":true,"refcnt":2,"options":{default 11 }},
            {"kind":"pfifo","handle":"1a58:","parent":"1a57:10","options":{"limit":17}}]"#;
        let list = |shown: &str| {
            list("tc", &without_text(shown)).map(|all| all.iter().map(|one| text(&one["handle"])).collect::<Vec<_>>())
        };
        assert_eq!(list(shown).unwrap(), ["1a57:", "1a58:"]);
        assert_eq!(list(&shown.replace("default 11 ", "")).unwrap(), ["1a57:", "1a58:"]);
    }

    #[test]
    fn rates_of_json_become_bits() {
        let shown: Value =
            serde_json::from_str(r#"{"kind":"cake","options":{"bandwidth":64000,"overhead":28}}"#).unwrap();
        let values = flat(&shown, &["options"]);
        assert_eq!((values["bandwidth"].as_str(), values["overhead"].as_str()), ("512000bit", "28"));
    }
}
