//! Arguments of several functions, whose errors name them.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};

use crate::{quantity, value};

/// What most arguments are.
const A_TEXT: &str = "a text";

/// The name of the type of a value.
fn kind(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string())
}

/// A whole number of an argument, from `least` on.
fn whole(name: &str, least: u64, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let no_number = || PyTypeError::new_err(format!("{name}: a whole number, and not of type {}", kind(value)));
    if value.is_instance_of::<PyBool>() {
        return Err(no_number());
    }
    // Numbers of NumPy have the method, too.
    let whole = value.call_method0("__index__").map_err(|_| no_number())?;
    let range = || PyValueError::new_err(format!("{name}: {whole} is no whole number from {least} to {}", u64::MAX));
    whole.extract().ok().filter(|number| *number >= least).ok_or_else(range)
}

/// A text of an argument.
fn text(name: &str, expected: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let wrong = |_| PyTypeError::new_err(format!("{name}: {expected}, and not of type {}", kind(value)));
    Ok(value.cast::<PyString>().map_err(wrong)?.to_cow()?.into_owned())
}

/// A text of an argument, or a quantity with one.
fn quantity(name: &str, expected: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    quantity::text(value)?.map_or_else(|| text(name, expected, value), Ok)
}

/// The path of an argument.
fn path(name: &str, value: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let wrong = |_| PyTypeError::new_err(format!("{name}: a path, and not of type {}", kind(value)));
    value.extract().map_err(wrong)
}

/// Values of keys of an argument.
fn values(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    let wrong = |_| PyTypeError::new_err(format!("{name}: a dict of values of keys, and not of type {}", kind(value)));
    let pair = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        Ok((text(name, "keys are texts such as \"access.up.rate\"", &key)?, value::of_key(&value)?))
    };
    value.cast::<PyDict>().map_err(wrong)?.iter().map(pair).collect()
}

/// Types of arguments with their names, and how they are read.
macro_rules! arguments {
    ($($(#[$doc:meta])* $type:ident($of:ty) = $read:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $type(pub(crate) $of);

        impl FromPyObject<'_, '_> for $type {
            type Error = PyErr;

            fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
                let read: fn(&Bound<'_, PyAny>) -> PyResult<$of> = $read;
                read(&value).map(Self)
            }
        }
    )*};
}

arguments! {
    /// `seed`: that of every random stream.
    #[derive(Clone, Copy)]
    Seed(u64) = |value| whole("seed", 0, value);
    /// `seeds`: a number of runs of each point or row.
    #[derive(Clone, Copy)]
    SeedCount(u64) = |value| whole("seeds", 1, value);
    /// `count`: a number of points or values.
    Count(usize) = |value| whole("count", 1, value).map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    /// `connection`: its number in a capture.
    ConnectionNumber(u64) = |value| whole("connection", 1, value);
    /// `threads`: simulations at once.
    Threads(NonZeroUsize) = |value| {
        let threads = whole("threads", 1, value)?;
        Ok(usize::try_from(threads).ok().and_then(NonZeroUsize::new).unwrap_or(NonZeroUsize::MAX))
    };
    /// `duration`: simulated time, as text.
    Length(String) = |value| quantity("duration", "a text with a unit such as \"20 s\"", value);
    /// `memory`: a size, as text.
    MemorySize(String) = |value| quantity("memory", "a size such as \"4 GiB\"", value);
    /// `policy`: its name or file.
    Policy(String) = |value| {
        let named = || text("policy", "a name such as \"cake\", a file, or None", value);
        if value.is_none() { Ok("none".to_owned()) } else { named() }
    };
    /// `progress`: a function of the share that is done, made of what Python takes for it.
    Told(Option<Py<PyAny>>) = |value| {
        let callback = value.py().import("lastmile._progress")?.getattr("callback")?.call1((value,))?;
        Ok((!callback.is_none()).then(|| callback.unbind()))
    };
    /// `key`: of a scenario or a study.
    Key(String) = |value| text("key", "a text such as \"access.up.rate\"", value);
    /// `where`: values of keys.
    KeyValues(Vec<(String, String)>) = |value| values("where", value);
    /// `measure`: of a study.
    Measure(String) = |value| text("measure", A_TEXT, value);
    /// `measures`: several of them.
    Measures(String) = |value| text("measures", "texts", value);
    /// `series`: several of them.
    SeriesNames(String) = |value| text("series", "texts", value);
    /// `tables`: published ones.
    Tables(String) = |value| text("tables", "texts such as \"phanse2000/5.2\"", value);
    /// `name`: of a column, a series, a line or a scenario.
    Name(String) = |value| text("name", A_TEXT, value);
    /// `home`: of the library.
    Home(String) = |value| text("home", A_TEXT, value);
    /// `entity`: of a series.
    Entity(String) = |value| text("entity", A_TEXT, value);
    /// `flow`: by its name.
    Flow(String) = |value| text("flow", A_TEXT, value);
    /// `text`: that of a scenario.
    ScenarioText(String) = |value| text("text", "that of a scenario", value);
    /// `link`: an encapsulation.
    Link(String) = |value| text("link", "the name of an encapsulation", value);
    /// `codec`: of calls.
    CodecName(String) = |value| text("codec", A_TEXT, value);
    /// `group_by`: a property of connections.
    Grouping(String) = |value| text("group_by", "\"port\", \"dscp\" or \"prefix/BITS\"", value);
    /// `direction`: true for `up`, which is from the side that opened the connection.
    IsUp(bool) = |value| match text("direction", "\"up\" or \"down\"", value)?.as_str() {
        "up" => Ok(true),
        "down" => Ok(false),
        other => Err(PyValueError::new_err(format!("direction: up or down, and not {other:?}"))),
    };
    /// `path`: of a file.
    FilePath(PathBuf) = |value| path("path", value);
    /// `files`: captures, or folders of results.
    Files(PathBuf) = |value| path("files", value);
    /// `folder`: of a study or of results.
    Folder(PathBuf) = |value| path("folder", value);
}
