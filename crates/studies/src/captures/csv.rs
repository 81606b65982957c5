//! `--csv`: one row for each connection and direction (RFC 4180), with the columns of the JSON.

use std::io::{self, Write};

use lastmile_text::csv;
use serde_json::Value;

use super::document::Document;

pub(super) fn write<'a>(documents: impl Iterator<Item = &'a Document>, to: &mut dyn Write) -> io::Result<()> {
    let mut head = false;
    for document in documents {
        for row in &document.connections {
            let Value::Object(columns) = serde_json::to_value(row)? else { continue };
            if !head {
                let names: Vec<String> =
                    columns.iter().flat_map(|(name, value)| cells(name, value)).map(|cell| cell.0).collect();
                writeln!(to, "file,{}", names.join(","))?;
                head = true;
            }
            let values: Vec<String> =
                columns.iter().flat_map(|(name, value)| cells(name, value)).map(|cell| cell.1).collect();
            writeln!(to, "{},{}", csv::cell(&document.file), values.join(","))?;
        }
    }
    Ok(())
}

/// A value as one cell, a map as one cell per key.
fn cells(name: &str, value: &Value) -> Vec<(String, String)> {
    match value {
        Value::Object(map) => map.iter().flat_map(|(key, value)| cells(&format!("{name}_{key}"), value)).collect(),
        Value::Null => vec![(name.to_owned(), String::new())],
        Value::String(text) => vec![(name.to_owned(), csv::cell(text).into_owned())],
        other => vec![(name.to_owned(), other.to_string())],
    }
}
