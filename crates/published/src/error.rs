//! Why an experiment could not run.

use lastmile_units::Duration;

/// An experiment that could not run: its table has not the settings that it needs, or they make no network.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The data lack a setting, or it is of another kind.
    #[error("the data have no {0} that this experiment can use")]
    MissingSetting(&'static str),
    /// A formula of the experiment's file gives nothing.
    #[error("the experiment's file: {0}")]
    Formula(String),
    /// The settings make no network.
    #[error("the settings make no network: {0}")]
    Network(String),
    /// A setting or a figure that the experiment of a table does not have.
    #[error("table {table} has no {kind} \"{name}\"; there are: {known}")]
    Unknown {
        /// `setting` or `figure`.
        kind: &'static str,
        /// The name that was asked for.
        name: String,
        /// The id of the table.
        table: String,
        /// The known names.
        known: String,
    },
    /// No such table, or one that is reproduced without a plan.
    #[error("no experiment for {0}")]
    NoExperiment(String),
    /// The lab could not run.
    #[error("live: {0}")]
    Live(String),
    /// Another thread has ended it: [`stoppable`](crate::stoppable).
    #[error("ended before its time")]
    Stopped,
    /// The transfer that the table measures did not end.
    #[error("the download is not complete after {0}")]
    Unfinished(Duration),
}
