//! Named values as the data files give them: what a table's rows are made of.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One value. The unit is in the name it stands under: `download_time_s`, `up_bps`.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A switch that was on or off.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// Words, for what has no number (`"below 100"`, `"llc-aal5"`).
    Text(String),
    /// Several of them, such as the two ends of a range.
    List(Vec<Value>),
}

impl Value {
    /// The value as a number, if it is one.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "published figures have a few digits")]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Integer(integer) => Some(*integer as f64),
            Self::Float(float) => Some(*float),
            Self::Bool(_) | Self::Text(_) | Self::List(_) => None,
        }
    }

    /// True of equal values; a number is one with a fraction or without.
    fn is(&self, other: &Self) -> bool {
        self == other || self.as_f64().is_some_and(|number| Some(number) == other.as_f64())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::Text(value) => f.write_str(value),
            Self::List(values) => {
                for (index, value) in values.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    value.fmt(f)?;
                }
                Ok(())
            }
        }
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

/// Values by name, in the order of their file. Small: looked up by scanning.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Values(Vec<(String, Value)>);

impl Values {
    /// No values.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Sets `name`, replacing what stood under it.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// The value called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The value called `name`, if it is a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        self.get(name).and_then(Value::as_f64)
    }

    /// The value called `name`, if it is a whole number from zero up.
    #[must_use]
    pub fn integer(&self, name: &str) -> Option<u64> {
        match self.get(name) {
            Some(Value::Integer(value)) => u64::try_from(*value).ok(),
            _ => None,
        }
    }

    /// The value called `name`, if it is text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Some(Value::Text(value)) => Some(value),
            _ => None,
        }
    }

    /// The value called `name`, if it is a switch.
    #[must_use]
    pub fn switch(&self, name: &str) -> Option<bool> {
        match self.get(name) {
            Some(Value::Bool(value)) => Some(*value),
            _ => None,
        }
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// True when there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their number.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// True when all of `wanted` are among these. Of a list any one may be.
    #[must_use]
    pub fn have(&self, wanted: &Self) -> bool {
        wanted.iter().all(|(name, wanted)| match (self.get(name), wanted) {
            (Some(ours), Value::List(any)) => any.iter().any(|one| one.is(ours)),
            (Some(ours), one) => one.is(ours),
            (None, _) => false,
        })
    }

    /// These values, with those of `over` on top: a row's parameters over its table's.
    #[must_use]
    pub fn overlaid(&self, over: &Self) -> Self {
        let mut all = self.clone();
        for (name, value) in over.iter() {
            all.set(name, value.clone());
        }
        all
    }
}

impl<N: Into<String>, V: Into<Value>> FromIterator<(N, V)> for Values {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let mut values = Self::new();
        for (name, value) in pairs {
            values.set(name, value);
        }
        values
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Values;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of numbers, words, switches or lists of them")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Values, A::Error> {
                let mut values = Vec::with_capacity(map.size_hint().unwrap_or(0));
                while let Some(pair) = map.next_entry()? {
                    values.push(pair);
                }
                Ok(Values(values))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_the_order_of_their_file() {
        let values: Values = toml::from_str("zeta = 1\nalpha = 2.5\nmid = [1, 2.0]\non = true\nword = \"x\"").unwrap();
        assert_eq!(values.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["zeta", "alpha", "mid", "on", "word"]);
        assert_eq!(
            serde_json::to_string(&values).unwrap(),
            r#"{"zeta":1,"alpha":2.5,"mid":[1,2.0],"on":true,"word":"x"}"#
        );
    }

    #[test]
    fn each_kind_is_read_only_as_what_it_is() {
        let values: Values = toml::from_str("n = -3\nf = 2.0\nb = false\nt = \"x\"").unwrap();
        assert_eq!(values.number("n"), Some(-3.0));
        assert_eq!(values.integer("n"), None, "negative");
        assert_eq!(values.integer("f"), None, "a fraction is not a count");
        assert_eq!((values.number("b"), values.switch("b")), (None, Some(false)));
        assert_eq!((values.number("t"), values.text("t")), (None, Some("x")));
        assert_eq!(values.get("absent"), None);
    }

    #[test]
    fn a_rows_parameters_lie_over_those_of_its_table() {
        let table: Values = toml::from_str("down_bps = 1544000\nup_bps = 64000").unwrap();
        let row: Values = toml::from_str("up_bps = 16000\nsad = true").unwrap();
        let all = table.overlaid(&row);
        assert_eq!(all.integer("down_bps"), Some(1_544_000));
        assert_eq!(all.integer("up_bps"), Some(16_000));
        assert_eq!(all.switch("sad"), Some(true));
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn values_have_what_is_wanted_of_a_list_any_one() {
        let have = |wanted: &str| {
            let values: Values = toml::from_str("rate = 64000\nkind = 'fifo'\nsad = false").unwrap();
            values.have(&toml::from_str(wanted).unwrap())
        };
        assert!(have("") && have("rate = 64000.0") && have("sad = false\nkind = ['sad', 'fifo']"));
        assert!(!have("rate = 16000") && !have("kind = ['sad']") && !have("absent = 1") && !have("sad = true"));
    }

    #[test]
    fn a_table_inside_a_row_is_refused() {
        assert!(toml::from_str::<Values>("nested = { a = 1 }").is_err());
    }
}
