//! Quantities in texts: their numbers, in the unit of their kind.

use lastmile_units::parse::ParseError;
use lastmile_units::{BitRate, ByteCount, CellCount, Duration, PacketCount, Ratio, WireBytes};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// Kinds of values, by the ending of the names of columns that hold them.
pub(crate) const ENDINGS: [&str; 8] = ["number", "bps", "s", "bytes", "share", "packets", "cells", "wire_bytes"];

/// The text of an object of `lastmile.Rate`, `Duration` or `Size`; `None` for any other object.
pub(crate) fn text(value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.import(value.py(), "lastmile._quantities", "Quantity")?;
    if value.is_instance(class)? { value.str()?.extract().map(Some) } else { Ok(None) }
}

/// The number in a text, bit/s, seconds or bytes, and the usual text of it.
#[pyfunction]
pub(crate) fn quantity(ending: &str, text: &str) -> PyResult<(f64, String)> {
    let wrong = |error: ParseError| PyValueError::new_err(format!("value: {error}"));
    match ending {
        "bps" => text.parse().map(|rate: BitRate| (bits(rate), rate.to_string())).map_err(wrong),
        "s" => text.parse().map(|time: Duration| (time.as_secs_f64(), time.to_string())).map_err(wrong),
        "bytes" => text.parse().map(|size: ByteCount| (whole(size.as_u64()), size.to_string())).map_err(wrong),
        other => Err(PyValueError::new_err(format!("no quantity is called {other:?}"))),
    }
}

/// The ending of the kind of these values of a key, and their numbers; `None` for words and for values of several
/// kinds. The value `none` is no number, and of every kind.
#[pyfunction]
#[pyo3(name = "numbers")]
pub(crate) fn numbers_of(texts: Vec<String>) -> Option<(&'static str, Vec<Option<f64>>)> {
    numbers(&texts)
}

/// As `numbers_of`.
pub(crate) fn numbers(texts: &[String]) -> Option<(&'static str, Vec<Option<f64>>)> {
    let is_none = |text: &String| text == "none";
    if texts.iter().all(is_none) {
        return None;
    }
    let of = |ending: &'static str| {
        let number = |text: &String| if is_none(text) { Some(None) } else { measure(ending, text).map(Some) };
        Some((ending, texts.iter().map(number).collect::<Option<Vec<_>>>()?))
    };
    ENDINGS.into_iter().find_map(of)
}

/// The number of a text of the kind with this ending.
fn measure(ending: &str, text: &str) -> Option<f64> {
    match ending {
        "number" => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
        "bps" => text.parse().ok().map(bits),
        "s" => text.parse().ok().map(Duration::as_secs_f64),
        "bytes" => text.parse::<ByteCount>().ok().map(|size| whole(size.as_u64())),
        "share" => text.parse::<Ratio>().ok().map(Ratio::as_f64),
        "packets" => text.parse::<PacketCount>().ok().map(|count| whole(count.as_u64())),
        "cells" => text.parse::<CellCount>().ok().map(|count| whole(count.as_u64())),
        _ => text.parse::<WireBytes>().ok().map(|size| whole(size.as_u64())),
    }
}

fn bits(rate: BitRate) -> f64 {
    whole(rate.as_bps())
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
fn whole(value: u64) -> f64 {
    value as f64
}
