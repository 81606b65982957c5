//! The tables of a publication, and the settings and the plan by which they are reproduced.

use crate::data::Table;
use crate::error::ExperimentError;
use crate::plan::Plan;
use crate::reproduction::TableResult;
use crate::value::Values;

/// A setting that is a whole number.
pub(super) fn whole(settings: &Values, name: &'static str) -> Result<u64, ExperimentError> {
    settings.integer(name).ok_or(ExperimentError::MissingSetting(name))
}

/// A setting that is a number.
pub(super) fn number(settings: &Values, name: &'static str) -> Result<f64, ExperimentError> {
    settings.number(name).ok_or(ExperimentError::MissingSetting(name))
}

/// A function that reproduces a table.
pub(super) type Run = fn(&Table) -> Result<TableResult, ExperimentError>;

/// The tables of a publication by their ids, each with what reproduces it.
pub(super) type Tables = &'static [(&'static str, Run)];

/// The plan of a publication whose experiments are data.
pub(super) fn plan(publication: &str) -> Result<&'static Plan, ExperimentError> {
    let plan = Plan::of(publication).map_err(|error| ExperimentError::Formula(error.to_string()))?;
    plan.ok_or(ExperimentError::MissingSetting("experiments of this publication"))
}
