//! lastmile for Python: the extension module `lastmile._lastmile` below the package `lastmile`.
//!
//! A door as the command line is: it reads arguments, calls the crates below, and returns what they return. Simulations
//! run without the interpreter's lock. Between slices of a run the interpreter handles signals, so that Ctrl-C ends it.
//!
//! | file | holds |
//! | --- | --- |
//! | `error.rs` | errors of the crates below as exceptions |
//! | `scenario.rs`, `value.rs` | scenarios: read, changed, taken from the library; values of keys from Python |
//! | `quantity.rs` | rates, times and sizes in texts, as numbers |
//! | `arguments.rs` | arguments of several functions |
//! | `slices.rs` | what happens between slices of runs: signals, progress |
//! | `run.rs`, `compare.rs` | runs and comparisons |
//! | `reproduce.rs` | published tables, reproduced |
//! | `captures.rs` | captures analysed, and their packets as Arrow |
//! | `space.rs`, `study.rs`, `table.rs` | points of parameters; studies of thousands of runs; their table |
//! | `series.rs` | samples over time, as Arrow |
//! | `supplied.rs` | queueing disciplines and congestion controls written in Python |
//! | `closed_forms.rs` | closed forms over many values |
//! | `command.rs` | the command `lastmile` |

#![cfg_attr(
    feature = "extension",
    expect(clippy::needless_pass_by_value, reason = "arguments from Python arrive by value")
)]

#[cfg(feature = "extension")]
mod arguments;
#[cfg(feature = "extension")]
mod captures;
#[cfg(feature = "extension")]
mod closed_forms;
#[cfg(feature = "command")]
mod command;
#[cfg(feature = "extension")]
mod compare;
#[cfg(feature = "extension")]
mod ending;
#[cfg(feature = "extension")]
mod error;
#[cfg(feature = "extension")]
mod quantity;
#[cfg(feature = "extension")]
mod reproduce;
#[cfg(feature = "extension")]
mod run;
#[cfg(feature = "extension")]
mod scenario;
#[cfg(feature = "extension")]
mod series;
#[cfg(feature = "extension")]
mod slices;
#[cfg(feature = "extension")]
mod space;
#[cfg(feature = "extension")]
mod study;
#[cfg(feature = "extension")]
mod supplied;
#[cfg(feature = "extension")]
mod table;
#[cfg(feature = "extension")]
mod value;

/// The native part of the package `lastmile`.
#[cfg(feature = "extension")]
#[pyo3::pymodule(gil_used = false)]
mod _lastmile {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::captures::{Analysis, Packets, analyse};
    #[pymodule_export]
    use crate::closed_forms::{
        ack_rate, amp, asymmetry, cells, efficiency, grant_bound, jain, largest_ip, mean_ci95, mos, mtu, on_wire,
        presets, r_factor, rate, wait_behind,
    };
    #[cfg(feature = "command")]
    #[pymodule_export]
    use crate::command::main;
    #[pymodule_export]
    use crate::compare::{Comparison, compare, comparison_of_parts};
    #[pymodule_export]
    use crate::ending::{end_simulations, forget_simulations};
    #[pymodule_export]
    use crate::quantity::{numbers_of, quantity};
    #[pymodule_export]
    use crate::reproduce::{Reproduction, reproduce};
    #[pymodule_export]
    use crate::run::{Run, run, run_of_parts};
    #[pymodule_export]
    use crate::scenario::{Scenario, homes, line, lines, load, loads, scenario_of_parts};
    #[pymodule_export]
    use crate::series::Series;
    #[pymodule_export]
    use crate::space::{Space, cases, grid, latin, paired, space_of_parts, steps};
    #[pymodule_export]
    use crate::study::{Study, study, study_file, work};
    #[pymodule_export]
    use crate::supplied::{Ack, Loss, Packet};
    #[pymodule_export]
    use crate::table::{Table, unit};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("ENGINE", lastmile_studies::study::address::ENGINE)
    }
}
