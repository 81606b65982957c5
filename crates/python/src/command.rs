//! The command `lastmile`, for the script of the package.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;

/// Runs the command as `script` with `arguments`, and returns its exit code.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, script: PathBuf, arguments: Vec<OsString>) -> u8 {
    py.detach(|| lastmile_cli::main_of_script(script, arguments))
}
