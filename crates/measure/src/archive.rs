//! Measurements in files: what `lastmile measure --json` writes, and flent's data files.
//!
//! The members of a file decide which of the two it is: a measurement has `phases`, a data file of flent `x_values`.
//! Both may be compressed by gzip.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::flent;
use crate::report::{Measurement, SCHEMA};

/// A file that holds no measurement.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// Neither form, or a measurement with a fault.
    #[error("{file}: {what}")]
    Unreadable {
        /// Name of the file.
        file: String,
        /// The fault with its line, and the expected form.
        what: String,
    },
    /// A data file of flent with a fault.
    #[error(transparent)]
    Flent(#[from] flent::Error),
}

/// The members by which the two forms differ.
#[derive(Deserialize)]
struct Members {
    schema: Option<u32>,
    phases: Option<IgnoredAny>,
    x_values: Option<IgnoredAny>,
    down: Option<IgnoredAny>,
}

/// Reads a measurement. `file` is the name of the file, for errors.
///
/// # Errors
/// The file has neither form, or contradicts itself.
pub fn read(file: &str, bytes: &[u8]) -> Result<Measurement, Error> {
    let unreadable = |what: String| Error::Unreadable { file: file.to_owned(), what };
    let text = flent::decompressed(file, bytes)?;
    let members: Members = serde_json::from_slice(&text).map_err(|error| unreadable(format!("not JSON: {error}")))?;
    match (members.phases, members.x_values, members.schema) {
        (Some(_), _, Some(SCHEMA)) => serde_json::from_slice(&text)
            .map_err(|error| unreadable(format!("no measurement of `lastmile measure --json`: {error}"))),
        (Some(_), _, Some(other)) => Err(unreadable(format!("`schema` is {other}; {SCHEMA} is known"))),
        (None, Some(_), _) => Ok(flent::read(file, &text)?),
        _ if members.down.is_some() => {
            Err(unreadable("a detection, as `--detect --json` writes it; a measurement is expected".to_owned()))
        }
        _ => Err(unreadable(
            "neither a measurement of `lastmile measure --json` (`schema`, `phases`) nor a data file of flent \
             (`x_values`, `results`)"
                .to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn measurement() -> Measurement {
        Measurement {
            schema: SCHEMA,
            version: "0.1.0".to_owned(),
            started_unix_s: 1_780_155_767.0,
            host: "server".to_owned(),
            load: None,
            phases: Vec::new(),
            clocks: None,
            warnings: vec!["one".to_owned()],
            complete: true,
        }
    }

    /// `--json` adds the conditions to the measurement; a reader takes them as derived and leaves them.
    #[test]
    fn a_measurement_is_read_from_json_compressed_or_not_and_from_flent() {
        let measured = measurement();
        let mut document = serde_json::to_value(&measured).unwrap();
        document["conditions"] = json!({ "grade": "A" });
        let text = document.to_string();
        assert_eq!(read("line.json", text.as_bytes()), Ok(measured.clone()));
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, text.as_bytes()).unwrap();
        assert_eq!(read("line.json.gz", &packed.finish().unwrap()), Ok(measured.clone()));
        assert_eq!(read("line.flent.gz", &flent::write(&measured)), Ok(measured));
    }

    #[test]
    fn what_is_no_measurement_is_refused_by_file_line_and_expected_form() {
        let refused = |bytes: &[u8]| read("line.json", bytes).unwrap_err().to_string();
        assert!(
            refused(b"{\n \"phases\": [").starts_with("line.json: not JSON: EOF"),
            "{}",
            refused(b"{\n \"phases\": [")
        );
        let mut document = serde_json::to_value(measurement()).unwrap();
        document["phases"] = json!([{ "load": "sideways" }]);
        let told = refused(serde_json::to_string_pretty(&document).unwrap().as_bytes());
        assert!(told.contains("unknown variant `sideways`") && told.contains("line "), "{told}");
        document["schema"] = json!(9);
        assert_eq!(refused(document.to_string().as_bytes()), "line.json: `schema` is 9; 1 is known");
        assert!(refused(br#"{ "down": {}, "up": {} }"#).contains("a detection"));
        assert!(refused(b"{}").contains("neither a measurement"), "{}", refused(b"{}"));
        assert!(refused(br#"{ "x_values": [], "version": 4 }"#).contains("metadata: missing"));
    }
}
