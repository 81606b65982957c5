//! Requests and answers.

use std::collections::BTreeMap;

use lastmile_published::Values;
use lastmile_results::report::Data;
use lastmile_scenario::{Diagnostic, Place, Report, Severity};
use lastmile_studies::Error;
use serde::{Deserialize, Serialize};

/// A request of a page.
#[derive(Deserialize, Debug)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    /// Lines, homes, policies, scenarios.
    Catalogue,
    /// The scenario of a home behind a line.
    Compose { line: String, home: String },
    /// Reads a scenario.
    Check(File),
    /// Simulates a scenario.
    Run(File),
    /// Simulates a scenario under several policies, or with several values of keys.
    Compare {
        #[serde(flatten)]
        file: File,
        /// Policies; those of `lastmile compare` if neither these nor keys are given.
        #[serde(default)]
        policies: Vec<String>,
        /// Keys, each with its values.
        #[serde(default)]
        vary: Vec<(String, Vec<String>)>,
    },
    /// One run of the experiment of a published table, with settings over those of the publication.
    Experiment { publication: String, table: String, settings: Values, figures: Vec<String> },
    /// The columns of the last report.
    Columns,
    /// `summary.json` of a run of the last report.
    Summary { run: usize },
    /// The last report as a page.
    Page,
}

/// A scenario.
#[derive(Deserialize, Debug)]
pub(crate) struct File {
    /// Name of the file.
    pub(crate) file: String,
    /// Its text.
    pub(crate) text: String,
    /// Overrides, `key=value`.
    #[serde(default)]
    pub(crate) set: Vec<String>,
    /// Other files that the scenario names, by their paths: texts.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// Other files that the scenario names, by their paths: bytes in Base64.
    #[serde(default)]
    pub(crate) binary: BTreeMap<String, String>,
}

/// Findings about a scenario.
#[derive(Serialize, Debug)]
pub(crate) struct Findings {
    pub(crate) findings: Vec<Finding>,
    /// Packets of full size that the lines carry in the duration: an upper bound of the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) packets_at_most: Option<f64>,
}

/// A finding.
#[derive(Serialize, Debug)]
pub(crate) struct Finding {
    pub(crate) severity: &'static str,
    /// The key; empty for the file as a whole.
    pub(crate) key: String,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// Line and column in the file, from 1; `None` for the file as a whole or an override.
    pub(crate) at: Option<(usize, usize)>,
    /// As on a terminal, with the caret.
    pub(crate) text: String,
}

/// A finished report.
#[derive(Serialize, Debug)]
pub(crate) struct Reported<'a> {
    /// HTML with escaped names.
    pub(crate) body: &'a str,
    pub(crate) figures: &'a Data,
    /// Label of each run.
    pub(crate) runs: Vec<&'a str>,
    pub(crate) events: u64,
    /// Warnings about the file.
    pub(crate) findings: Vec<Finding>,
}

/// An error of the page that asks, not of the scenario.
#[derive(Serialize, Debug)]
pub(crate) struct Wrong {
    pub(crate) wrong: String,
}

impl From<&Diagnostic> for Finding {
    fn from(found: &Diagnostic) -> Self {
        let at = match &found.place {
            Place::File { line, column, .. } => Some((*line, *column)),
            Place::WholeFile { .. } | Place::Argument { .. } => None,
        };
        Self {
            severity: match found.severity {
                Severity::Warning => "warning",
                Severity::Error => "error",
            },
            key: found.key.clone(),
            message: found.message.clone(),
            hint: found.hint.clone(),
            at,
            text: found.to_string(),
        }
    }
}

/// The findings of a report, at most as many as a terminal shows.
pub(crate) fn findings(report: &Report) -> Vec<Finding> {
    report.findings().iter().take(Report::SHOWN).map(Finding::from).collect()
}

impl From<&Error> for Findings {
    fn from(error: &Error) -> Self {
        let findings = match error {
            Error::Report(report) => findings(report),
            Error::Wrong { message, hint } => vec![Finding {
                severity: "error",
                key: String::new(),
                message: message.clone(),
                hint: hint.clone(),
                at: None,
                text: error.to_string(),
            }],
        };
        Self { findings, packets_at_most: None }
    }
}
