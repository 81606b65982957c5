//! Scenarios: read from files and text, taken from the library, changed key by key.

use std::path::{Path, PathBuf};

use lastmile_library::Unknown;
use lastmile_scenario::diagnostics::Place;
use lastmile_scenario::file::{self, Reading};
use lastmile_scenario::{Diagnostic, Override, Report, Scenario as Checked};
use lastmile_studies::Input;
use lastmile_studies::variant::pairs;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::arguments::{FilePath, Folder, Home, Key, Name, ScenarioText};
use crate::error;
use crate::value;

/// The text of a scenario, and the changes of it.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The name in messages. Files that the scenario names are found from its folder.
    pub(crate) name: String,
    /// As results record it.
    pub(crate) input: Input,
    pub(crate) text: String,
    pub(crate) overrides: Vec<Override>,
}

impl Source {
    /// The scenario with further changes.
    pub(crate) fn read(&self, overrides: &[Override]) -> Result<Checked, Report> {
        Checked::parse_with(&self.name, &self.text, overrides)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The name; that of a file or in a folder with all folders.
    fn place(&self) -> String {
        let has_folder = Path::new(&self.name).parent().is_some_and(|folder| !folder.as_os_str().is_empty());
        let is_file = self.input.file.is_some() || has_folder;
        let file = is_file.then(|| std::path::absolute(&self.name).ok()).flatten();
        file.map_or_else(|| self.name.clone(), |path| path.display().to_string())
    }
}

/// Name, file, text and changes of a scenario.
type Parts = (String, Option<String>, String, Vec<String>);

/// A checked scenario. It never changes: `set` returns another.
///
/// >>> import lastmile as lm
/// >>> line = lm.line("adsl2plus-12-1", home="single")
/// >>> line.traffic[:2], line.seed
/// (['download', 'photos'], 1)
#[pyclass(frozen, module = "lastmile")]
pub(crate) struct Scenario {
    pub(crate) source: Source,
    pub(crate) read: Checked,
}

impl Scenario {
    pub(crate) fn of_source(py: Python<'_>, source: Source) -> PyResult<Self> {
        let read = source.read(&source.overrides).map_err(|report| error::of_report(py, &report))?;
        Ok(Self { source, read })
    }

    fn of_text(py: Python<'_>, name: String, file: Option<String>, text: String) -> PyResult<Self> {
        let input = Input { file, text: Some(text.clone()) };
        Self::of_source(py, Source { name, input, text, overrides: Vec::new() })
    }

    fn of_file(py: Python<'_>, path: &Path) -> PyResult<Self> {
        let name = path.display().to_string();
        let text = file::read(path, Reading::Once).map_err(|problem| {
            error::of_report(py, &Report::of(Diagnostic::error(Place::WholeFile { name: name.clone() }, problem)))
        })?;
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Self::of_text(py, name, file, text)
    }
}

/// An argument that is a scenario, or the path of its file.
pub(crate) enum Given<'py> {
    Scenario(Bound<'py, Scenario>),
    File(PathBuf),
}

impl<'py> FromPyObject<'_, 'py> for Given<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(scenario) = object.cast::<Scenario>() {
            return Ok(Self::Scenario(scenario.to_owned()));
        }
        let not_a_path = |_| {
            let kind = object.get_type();
            PyTypeError::new_err(format!("scenario: a Scenario or the path of a file, and not {kind}"))
        };
        object.extract().map(Self::File).map_err(not_a_path)
    }
}

impl<'py> Given<'py> {
    pub(crate) fn scenario(self, py: Python<'py>) -> PyResult<Bound<'py, Scenario>> {
        match self {
            Self::Scenario(scenario) => Ok(scenario),
            Self::File(path) => Bound::new(py, Scenario::of_file(py, &path)?),
        }
    }
}

#[pymethods]
impl Scenario {
    /// The name in results.
    #[getter]
    fn name(&self) -> &str {
        self.read.name()
    }

    /// The text of the file, without changes.
    #[getter]
    fn text(&self) -> &str {
        &self.source.text
    }

    /// Changes of the text, `key=value`, in their order.
    #[getter]
    fn overrides(&self) -> Vec<String> {
        pairs(&self.source.overrides)
    }

    /// Oddities that do not prevent a run.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.read.warnings().findings().iter().map(ToString::to_string).collect()
    }

    /// Simulated time in seconds.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.read.network_ref().duration.as_secs_f64()
    }

    /// Seed of every random stream.
    #[getter]
    fn seed(&self) -> u64 {
        self.read.network_ref().seed
    }

    /// Names of the links.
    #[getter]
    fn links(&self) -> Vec<String> {
        self.read.network_ref().links.iter().map(|link| link.hop.name.clone()).collect()
    }

    /// Names of the sources of traffic.
    #[getter]
    fn traffic(&self) -> Vec<String> {
        self.read.network_ref().traffic.iter().map(|traffic| traffic.name.clone()).collect()
    }

    /// Names of the cases that a comparison runs.
    #[getter]
    fn cases(&self) -> Vec<String> {
        self.read.cases().iter().map(|case| case.name.clone()).collect()
    }

    /// A copy in which `key` has another value.
    ///
    /// Values are numbers, `True`, `False`, `None` for `none`, lists, dicts, and texts with units, as in a file.
    ///
    /// >>> import lastmile as lm
    /// >>> line = lm.line("adsl2plus-12-1", home="single")
    /// >>> line.set("access.up.rate", "2 Mbit/s").set("seed", 7).overrides
    /// ['access.up.rate=2 Mbit/s', 'seed=7']
    fn set(&self, py: Python<'_>, key: Key, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Key(key) = key;
        let set = Override::set(&format!("{key}={}", value::of_key(value)?));
        let overrides = self.source.overrides.iter().cloned().chain([set]).collect();
        Self::of_source(py, Source { overrides, ..self.source.clone() })
    }

    fn __repr__(&self) -> String {
        format!("<lastmile.Scenario {:?}, {} s, seed {}>", self.name(), self.duration_s(), self.seed())
    }

    fn __eq__(&self, other: &Self) -> bool {
        (self.source.place(), &self.source.text, self.overrides())
            == (other.source.place(), &other.source.text, other.overrides())
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let mut hasher = DefaultHasher::new();
        (&self.source.text, self.overrides()).hash(&mut hasher);
        hasher.finish()
    }

    /// For pickles: `scenario_of_parts` makes an equal scenario, also in another folder.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Parts)> {
        let Source { input, text, .. } = &self.source;
        let parts = (self.source.place(), input.file.clone(), text.clone(), self.overrides());
        Ok((py.import("lastmile._lastmile")?.getattr("scenario_of_parts")?, parts))
    }

    /// The scenario itself, since it never changes.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// The scenario itself, since it never changes.
    fn __deepcopy__(slf: Py<Self>, memo: &Bound<'_, PyAny>) -> Py<Self> {
        let _ = memo;
        slf
    }
}

/// The scenario of the parts of a pickle.
#[pyfunction]
pub(crate) fn scenario_of_parts(
    py: Python<'_>,
    name: String,
    file: Option<String>,
    text: String,
    set: Vec<String>,
) -> PyResult<Scenario> {
    let input = Input { file, text: Some(text.clone()) };
    let overrides = set.iter().map(|pair| Override::set(pair)).collect();
    Scenario::of_source(py, Source { name, input, text, overrides })
}

/// The scenario in a file.
#[pyfunction]
#[pyo3(signature = (path, /))]
pub(crate) fn load(py: Python<'_>, path: FilePath) -> PyResult<Scenario> {
    Scenario::of_file(py, &path.0)
}

/// The scenario in a text.
#[pyfunction]
#[pyo3(signature = (text, /, name, folder = None))]
pub(crate) fn loads(py: Python<'_>, text: ScenarioText, name: Name, folder: Option<Folder>) -> PyResult<Scenario> {
    let (Name(name), ScenarioText(text)) = (name, text);
    let name = folder.as_ref().map_or(name.clone(), |Folder(folder)| folder.join(name).display().to_string());
    let source = Source { input: Input { file: None, text: Some(text.clone()) }, name, text, overrides: Vec::new() };
    let read = source.read(&[]).map_err(|report| {
        let mut told = Report::default();
        for finding in report.findings().iter().cloned() {
            let looks =
                folder.is_none() && finding.message.to_lowercase().contains("no such file") && finding.hint.is_none();
            let here = looks.then(|| std::env::current_dir().ok()).flatten();
            let hint = here.map(|here| format!("files are found from {}, or from folder=", here.display()));
            told.push(if hint.is_some() { finding.maybe_hint(hint) } else { finding });
        }
        error::of_report(py, &told)
    })?;
    Ok(Scenario { source, read })
}

/// The scenario of a line and a home of the library.
#[pyfunction]
#[pyo3(signature = (name, /, home))]
pub(crate) fn line(py: Python<'_>, name: Name, home: Home) -> PyResult<Scenario> {
    let (Name(name), Home(home)) = (name, home);
    let unknown = |unknown: Unknown, all: &str| {
        let hint = unknown.hint_or(all);
        error::wrong(py, &format!("error: {unknown}\nhint: {hint}"), Some(&hint))
    };
    let line = lastmile_library::line(&name).map_err(|it| unknown(it, "lastmile.lines() has all names"))?;
    let home = lastmile_library::home(&home).map_err(|it| unknown(it, "lastmile.homes() has all names"))?;
    Scenario::of_text(py, format!("{name}.toml"), None, line.with(&home).text)
}

/// The access lines of the library, by name, each with its description.
#[pyfunction]
pub(crate) fn lines() -> Vec<(&'static str, String)> {
    lastmile_library::lines().into_iter().map(|line| (line.name, line.about)).collect()
}

/// The homes of the library, by name, each with its description.
#[pyfunction]
pub(crate) fn homes() -> Vec<(&'static str, String)> {
    lastmile_library::homes().into_iter().map(|home| (home.name, home.about)).collect()
}
