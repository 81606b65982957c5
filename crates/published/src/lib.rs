//! Published tables as data, and the scenarios that reproduce them.
//!
//! The data ship inside the program. Each of five publications has a TOML file under `data/` with
//! its tables: the published figures, the publication's own closed forms without rounding, and the
//! facts that it leaves open. A second one under `experiments/` describes the reproduction:
//! scenarios, metrics, assumptions and the conditions of each claim. Closed forms are Rust, and
//! so are the few tables whose runs depend on the results of others.
//!
//! | module | holds |
//! | --- | --- |
//! | [`data`] | [`Publication`], [`Table`], [`Row`]: the published side |
//! | [`value`] | [`Values`]: named numbers and words in the order of the file |
//! | [`mod@select`] | `phanse2000/5.1 5.2`: the tables that a user names |
//! | [`experiments`] | [`Experiment`]: the reproduction of a table |
//! | [`sample`] | [`Sample`]: a quantity with each seed, its mean and its interval |
//! | `row` | [`RowResult`]: a row, reproduced |
//! | `error`, `quantity`, `rounding` | failures of experiments; values of formulas; digits |
//! | [`verdict`] | [`Verdict`]: the states of a claim, and the rules that lead to them |
//! | [`mod@work`] | the duration of experiments |
//! | [`reproduction`] | [`Reproduction`]: published, theory, simulated and live figures, as `--json` prints them |

pub mod data;
mod error;
pub mod experiments;
mod formula;
mod pairs;
mod plan;
mod quantity;
pub mod reproduction;
mod rounding;
mod row;
pub mod sample;
pub mod select;
mod stop;
mod template;
pub mod value;
pub mod verdict;
pub mod work;

pub use data::{DataError, Kind, Publication, Row, Table, publications};
pub use experiments::{
    Drawing, EXPERIMENTS, Experiment, ExperimentError, Lab, LiveExperiment, Part, Point, Reproducible, Yardstick,
    drawings, experiment, live, point, reproducible,
};
pub use reproduction::{Reproduction, RowResult, Sensitivity, Summary, TableResult};
pub use sample::Sample;
pub use select::{SelectError, select};
pub use stop::stoppable;
pub use value::{Value, Values};
pub use verdict::{Agreement, Claim, Finding, Verdict};
pub use work::work;
