//! flent's data files (`.flent.gz`), written and read.
//!
//! Source: flent 2.1.1, `resultset.py` and `tests/*.conf`; format version 4. A file is JSON, usually compressed by
//! gzip: `metadata`, a grid of times (`x_values`), one value of each series at each of them (`results`: Mbit/s and
//! ms), and the measured values themselves (`raw_values`, with the time in seconds since 1970).
//!
//! A written file has the series of flent's test `ping`, `tcp_download`, `tcp_upload` or `rrul`, whichever fits its
//! loads, so that `flent -i FILE -p PLOT` draws it. Its raw values carry lastmile's samples too, under a key of their
//! own, and [`read`] returns the measurement that was written. From a file of flent's own [`read`] takes the sum of the
//! TCP streams of each direction and every ping; times without load before and after it become idle phases. Files of
//! versions 1 to 3 have raw values in other units, so only their grid is read.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::report::Measurement;

mod format;
mod names;
mod reading;
mod writing;

pub use format::{Error, SUFFIX};
use format::{Fault, fault};

/// Largest file that is read, uncompressed. An hour of `rrul` has about 50 MB.
const MAX_BYTES: u64 = 512 << 20;
/// The bytes of a data file.
#[must_use]
pub fn write(measurement: &Measurement) -> Vec<u8> {
    let text = writing::file(measurement).to_string();
    let mut compressed = GzEncoder::new(Vec::new(), Compression::default());
    compressed.write_all(text.as_bytes()).expect("a vector takes everything");
    compressed.finish().expect("a vector takes everything")
}

/// Reads a data file, compressed or not. `file` is its name, for errors.
///
/// # Errors
/// No flent file, or one that contradicts itself.
pub fn read(file: &str, bytes: &[u8]) -> Result<Measurement, Error> {
    let named = |Fault { key, what }| Error { file: file.to_owned(), key, what };
    let text = decompressed(file, bytes)?;
    let parsed = serde_json::from_slice(&text).map_err(|error| fault("file", format!("not JSON: {error}")));
    parsed.and_then(|value| reading::measurement(&value)).map_err(named)
}

/// The text of a file, whether it is compressed or not. `file` is its name, for errors.
pub(crate) fn decompressed(file: &str, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    decompress(bytes).map_err(|Fault { key, what }| Error { file: file.to_owned(), key, what })
}

fn decompress(bytes: &[u8]) -> Result<Vec<u8>, Fault> {
    if bytes.starts_with(b"BZh") {
        return Err(fault("file", "compressed by bzip2; gzip is expected (bunzip2 FILE, then gzip)"));
    }
    let mut text = Vec::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut limited = MultiGzDecoder::new(bytes).take(MAX_BYTES + 1);
        limited.read_to_end(&mut text).map_err(|error| fault("file", format!("not gzip: {error}")))?;
    } else {
        text.extend_from_slice(bytes);
    }
    if text.len() as u64 > MAX_BYTES {
        return Err(fault("file", format!("more than {} MB uncompressed", MAX_BYTES >> 20)));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
