//! Points of a space of parameters.

use lastmile_scenario::Override;
use lastmile_studies::study::cases::Cases;
use lastmile_studies::study::space::{Range, Space as Points};
use lastmile_studies::variant::pairs;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict as _, PyDict, PyMapping};

use crate::arguments::{Count, Seed};
use crate::error;
use crate::value;

/// Points of a space of parameters.
///
/// >>> import lastmile as lm
/// >>> lm.paired({"access.up.rate": ["1 Mbit/s", "2 Mbit/s"]})
/// <lastmile.Space: 2 points of access.up.rate>
#[pyclass(frozen, module = "lastmile")]
pub(crate) struct Space(pub(crate) Points);

/// Names of cases with their settings, `key=value`.
pub(crate) type Settings = Vec<(String, Vec<String>)>;

/// Keys, points and cases of a space.
type Parts = (Vec<String>, Vec<Vec<String>>, Settings);

/// The space of the parts of a pickle.
#[pyfunction]
pub(crate) fn space_of_parts(
    py: Python<'_>,
    keys: Vec<String>,
    points: Vec<Vec<String>>,
    cases: Settings,
) -> PyResult<Space> {
    Ok(Space(Points { keys, points, cases: settings(py, cases)? }))
}

/// Settings of keys under names.
#[pyfunction]
pub(crate) fn cases(py: Python<'_>, cases: Vec<(String, Bound<'_, PyDict>)>) -> PyResult<Space> {
    let pair = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok(format!("{key}={}", value::of_key(&value)?));
    let one = |(name, set): (String, Bound<'_, PyDict>)| Ok((name, set.iter().map(pair).collect::<PyResult<_>>()?));
    let cases = settings(py, cases.into_iter().map(one).collect::<PyResult<_>>()?)?;
    Points::of_cases(cases).map(Space).map_err(|wrong| error::of_error(py, &wrong))
}

/// Cases of their parts.
pub(crate) fn settings(py: Python<'_>, cases: Settings) -> PyResult<Cases> {
    let overrides = |set: Vec<String>| set.iter().map(|pair| Override::set(pair)).collect();
    let cases = cases.into_iter().map(|(name, set)| (name, overrides(set))).collect();
    Cases::new(cases).map_err(|wrong| error::of_error(py, &wrong))
}

/// Every combination of values.
#[pyfunction]
pub(crate) fn grid(py: Python<'_>, axes: &Bound<'_, PyMapping>) -> PyResult<Space> {
    Points::grid(self::axes(axes)?).map(Space).map_err(|wrong| error::of_error(py, &wrong))
}

/// The n-th value of every key together.
#[pyfunction]
pub(crate) fn paired(py: Python<'_>, axes: &Bound<'_, PyMapping>) -> PyResult<Space> {
    Points::paired(self::axes(axes)?).map(Space).map_err(|wrong| error::of_error(py, &wrong))
}

/// A Latin hypercube.
#[pyfunction]
pub(crate) fn latin(
    py: Python<'_>,
    count: Count,
    ranges: Vec<(String, String, String, bool)>,
    seed: Seed,
) -> PyResult<Space> {
    let range = |(key, low, high, is_log): (String, String, String, bool)| Ok((key, Range::new(&low, &high, is_log)?));
    let ranges = ranges.into_iter().map(range).collect::<Result<Vec<_>, _>>();
    let space = ranges.and_then(|ranges| Points::latin(ranges, count.0, seed.0));
    space.map(Space).map_err(|wrong| error::of_error(py, &wrong))
}

/// Values from one end to the other.
#[pyfunction]
pub(crate) fn steps(py: Python<'_>, low: &str, high: &str, count: Count, is_log: bool) -> PyResult<Vec<String>> {
    let range = Range::new(low, high, is_log).map_err(|wrong| error::of_error(py, &wrong))?;
    Ok(range.steps(count.0))
}

/// Values of each key, in the order of the mapping.
fn axes(axes: &Bound<'_, PyMapping>) -> PyResult<Vec<(String, Vec<String>)>> {
    let mut all = Vec::new();
    for item in axes.items()?.iter() {
        let (key, values): (String, Bound<'_, PyAny>) = item.extract()?;
        let values = values.try_iter()?.map(|value| value::of_key(&value?)).collect::<PyResult<Vec<_>>>()?;
        all.push((key, values));
    }
    Ok(all)
}

#[pymethods]
impl Space {
    /// The keys.
    #[getter]
    fn keys(&self) -> Vec<String> {
        self.0.keys.clone()
    }

    /// The points: a value for each key.
    #[getter]
    fn points(&self) -> Vec<Vec<String>> {
        self.0.points.clone()
    }

    /// The cases: settings, `key=value`, by the names that are values of the key `case`.
    #[getter]
    fn cases<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.settings().into_py_dict(py)
    }

    fn __len__(&self) -> usize {
        self.0.points.len()
    }

    /// Each point of this space with each of the other, or with each combination of the values of keys.
    fn __mul__(&self, py: Python<'_>, other: Factor<'_>) -> PyResult<Self> {
        product(py, &self.0, &other.space()?.get().0)
    }

    /// Each combination of the values of keys with each point of this space.
    fn __rmul__(&self, py: Python<'_>, other: Factor<'_>) -> PyResult<Self> {
        product(py, &other.space()?.get().0, &self.0)
    }

    /// For copies and pickles: `space_of_parts` makes an equal space.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Parts)> {
        let parts = (self.keys(), self.points(), self.settings());
        Ok((py.import("lastmile._lastmile")?.getattr("space_of_parts")?, parts))
    }

    fn __repr__(&self) -> String {
        format!("<lastmile.Space: {} points of {}>", self.__len__(), self.0.keys.join(", "))
    }
}

impl Space {
    fn settings(&self) -> Settings {
        self.0.cases.all().iter().map(|(name, set)| (name.clone(), pairs(set))).collect()
    }
}

fn product(py: Python<'_>, one: &Points, other: &Points) -> PyResult<Space> {
    one.clone().times(other).map(Space).map_err(|wrong| error::of_error(py, &wrong))
}

/// A factor of a product: a space, or values of keys. Another type leaves the product to the other operand.
#[derive(FromPyObject)]
enum Factor<'py> {
    Space(Bound<'py, Space>),
    Grid(Bound<'py, PyMapping>),
}

impl<'py> Factor<'py> {
    fn space(self) -> PyResult<Bound<'py, Space>> {
        match self {
            Self::Space(space) => Ok(space),
            Self::Grid(axes) => {
                let made = axes.py().import("lastmile._study")?.getattr("grid")?.call1((axes,))?;
                Ok(made.cast_into()?)
            }
        }
    }
}
