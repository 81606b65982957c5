//! Receivers of datagrams: the play-out buffer of the receiving application, and the codec of voice.

use core::fmt::{self, Display};

use lastmile_model::{Codec, Listener};

use crate::document::Value;
use crate::reader::Table;
use crate::schema::{Key, Kind};
use crate::value::{FromNode, bounded};

pub(crate) const PLAYOUT: Key = Key::with_default(
    "playout",
    Kind::Time,
    "60 ms",
    "Play-out buffer of the receiving application: a packet that takes this much longer than the fastest of the last \
     half to one second is late.",
)
.at_most("60 s");

/// The names of [`Codec::ALL`], and of no codec.
const CODECS: [&str; 6] = ["g711", "g711-no-plc", "g729a", "g723.1", "gsm-efr", NO_SPEECH];
const NO_SPEECH: &str = "none";

pub(crate) const CODEC: Key = Key::with_default(
    "codec",
    Kind::Choice(&CODECS),
    "g711",
    "Codec by which R factor and MOS are computed (ITU-T G.107); its impairment Ie and robustness Bpl are those of \
     ITU-T G.113: `g711` (with \
     packet-loss concealment) 0 and 25.1, `g711-no-plc` 0 and 4.3, `g729a` 11 and 19.0, `g723.1` (6.3 kbit/s) 15 \
     and 16.1, `gsm-efr` 5 and \
     10.0; `none` for games and other streams that are no speech, which have no R factor. It changes no packet: see \
     `interval` and `size`.",
);
pub(crate) const IE: Key = Key::optional(
    "ie",
    Kind::Other("number", &[Kind::Number]),
    "that of the `codec`",
    "Equipment impairment factor Ie of another codec.",
)
.at_most("40");
pub(crate) const BPL: Key = Key::optional(
    "bpl",
    Kind::Other("number", &[Kind::Number]),
    "that of the `codec`",
    "Packet-loss robustness factor Bpl of another codec.",
)
.at_least("1")
.at_most("40");

/// The listener of voice.
pub(crate) fn of_voice(table: &Table<'_>) -> Option<Listener> {
    let speech = Codec::ALL.map(|codec| (codec.name, Some(codec)));
    let options: Vec<(&str, Option<Codec>)> = speech.into_iter().chain([(NO_SPEECH, None)]).collect();
    let codec: Option<Option<Codec>> = table.choice("codec", &options);
    let (ie, bpl) = (table.optional::<Factor>("ie"), table.optional::<Factor>("bpl"));
    let Some(codec) = codec? else {
        for key in ["ie", "bpl"].into_iter().filter(|key| table.has(key)) {
            table.error(key, format!("{key} is of a codec, and codec = \"{NO_SPEECH}\" has none"), None);
        }
        return of_datagrams(table);
    };
    let codec = Codec { ie: ie.map_or(codec.ie, |ie| ie.0), bpl: bpl.map_or(codec.bpl, |bpl| bpl.0), ..codec };
    Some(Listener { codec: Some(codec), ..of_datagrams(table)? })
}

/// The listener of other datagrams.
pub(crate) fn of_datagrams(table: &Table<'_>) -> Option<Listener> {
    Some(Listener { buffer: table.get("playout")?, codec: None })
}

/// A number without a unit.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
struct Factor(f64);

impl Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.0, f)
    }
}

impl FromNode for Factor {
    fn from_value(value: &Value) -> Result<Self, String> {
        let (Value::Integer(text) | Value::Float(text)) = value else {
            return Err(format!("{}, where a number is expected, for example 12.5", value.name()));
        };
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(Self(number)),
            _ => Err(format!("{text} is no number of at least 0")),
        }
    }

    fn from_default(text: &'static str) -> Self {
        Self(text.parse().expect("the schema's bounds parse"))
    }

    fn out_of_range(&self, min: Option<&'static str>, max: Option<&'static str>) -> Option<String> {
        bounded(self, min, max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_codec_can_be_asked_for() {
        assert_eq!([&Codec::ALL.map(|codec| codec.name)[..], &[NO_SPEECH]].concat(), CODECS);
    }
}
