//! Texts of the experiment files with values in them: keys of scenarios, and the figures of a claim.
//!
//! `${formula}` is a value, `${formula:.2}` one with two decimals, `${formula:+.2}` with its sign
//! too. `$[ ... ]` is left out where a value in it is missing.

use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error as _};

use crate::formula::{Formula, Missing, Names, Quantity};

/// A text with values in it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Clone, PartialEq, Debug)]
enum Piece {
    Plain(String),
    Value { formula: Formula, decimals: Option<usize>, signed: bool },
    Optional(Template),
}

impl Template {
    /// The text with these names.
    pub(crate) fn text(&self, names: &dyn Names) -> Result<String, Missing> {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Plain(plain) => text += plain,
                Piece::Value { formula, decimals, signed } => text += &written(&formula.of(names)?, *decimals, *signed),
                Piece::Optional(inner) => match inner.text(names) {
                    Err(Missing::Name(_) | Missing::Excluded) => {}
                    inner => text += &inner?,
                },
            }
        }
        Ok(text)
    }

    /// The text; of a template that is one value alone, that value.
    pub(crate) fn quantity(&self, names: &dyn Names) -> Result<Quantity, Missing> {
        match self.0.as_slice() {
            [Piece::Value { formula, decimals: None, signed: false }] => formula.of(names),
            _ => self.text(names).map(Quantity::Text),
        }
    }
}

fn written(quantity: &Quantity, decimals: Option<usize>, signed: bool) -> String {
    match (quantity, decimals, signed) {
        (Quantity::Text(text), ..) => text.clone(),
        (Quantity::Truth(truth), ..) => truth.to_string(),
        (Quantity::Number(number), None, false) => number.to_string(),
        (Quantity::Number(number), None, true) => format!("{number:+}"),
        (Quantity::Number(number), Some(decimals), false) => format!("{number:.decimals$}"),
        (Quantity::Number(number), Some(decimals), true) => format!("{number:+.decimals$}"),
        (Quantity::Sample(sample), None, _) => sample.to_string(),
        (Quantity::Sample(sample), Some(decimals), _) => format!("{sample:.decimals$}"),
    }
}

impl FromStr for Template {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(begin) = rest.find("${").into_iter().chain(rest.find("$[")).min() {
            let (plain, marked) = rest.split_at(begin);
            if !plain.is_empty() {
                pieces.push(Piece::Plain(plain.to_owned()));
            }
            let optional = marked.starts_with("$[");
            let inside = &marked[2..];
            let end = if optional { closing(inside) } else { inside.find('}') };
            let end = end.ok_or_else(|| format!("{} has no end in \"{text}\"", &marked[..2]))?;
            pieces.push(if optional { Piece::Optional(inside[..end].parse()?) } else { value(&inside[..end])? });
            rest = &inside[end + 1..];
        }
        if !rest.is_empty() {
            pieces.push(Piece::Plain(rest.to_owned()));
        }
        Ok(Self(pieces))
    }
}

/// Where `$[` ends: at a bracket outside every `${}`.
fn closing(inside: &str) -> Option<usize> {
    let mut within = false;
    inside.char_indices().find_map(|(at, c)| {
        within = (within || inside[..at].ends_with('$') && c == '{') && c != '}';
        (c == ']' && !within).then_some(at)
    })
}

fn value(inside: &str) -> Result<Piece, String> {
    let (formula, format) = inside.split_once(':').unwrap_or((inside, ""));
    let (signed, decimals) = format.strip_prefix('+').map_or((false, format), |decimals| (true, decimals));
    let decimals = match decimals.strip_prefix('.').map(str::parse) {
        None if decimals.is_empty() => None,
        Some(Ok(decimals @ 0..=9)) => Some(decimals),
        _ => return Err(format!("\"{format}\" is no format of a value; one is .2 or +.2")),
    };
    Ok(Piece::Value { formula: formula.parse()?, decimals, signed })
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
