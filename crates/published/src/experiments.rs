//! Experiments: each reproduces one table, and is found by publication and table.
//!
//! An experiment takes the table's settings, chooses what the publication leaves open and says so under
//! [`TableResult::assumptions`], simulates every row, and judges the table's claim by its own figures.

mod ano2002;
mod brouer2005;
mod closed_form;
mod connections;
mod drawing;
pub(crate) mod equal_throughput;
#[cfg(test)]
mod era;
mod kalyanaraman1999;
mod keys;
mod live_experiment;
pub(crate) mod metric;
pub(crate) mod open_questions;
pub(crate) mod peak;
mod peaks;
mod phanse2000;
mod round_trips;
pub(crate) mod scenarios;
pub(crate) mod seeds;
mod sun1998;
mod tables;
pub(crate) mod trial;

use std::sync::LazyLock;

pub use drawing::Drawing;
pub use live_experiment::{Lab, LiveExperiment};
pub use open_questions::{Part, Reproducible};
use tables::{Run, Tables, plan};

use crate::data::Table;
pub use crate::error::ExperimentError;
use crate::plan::Plan;
pub use crate::plan::point::Point;
use crate::reproduction::TableResult;
use crate::value::Values;

/// How a table is reproduced.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Key of the publication.
    pub publication: &'static str,
    /// Id of the table.
    pub table: &'static str,
    /// The function that reproduces it, where the plan of the publication alone does not.
    own: Option<Run>,
}

impl Experiment {
    /// Simulates every row.
    ///
    /// # Errors
    /// When a setting is missing, or a simulation is refused.
    pub fn run(&self, table: &Table) -> Result<TableResult, ExperimentError> {
        match self.own {
            Some(run) => run(table),
            None => plan(self.publication)?.reproduce(table),
        }
    }

    /// True for a table with simulated runs whose TCP is that of a scenario: [`Table::with_todays_tcp`] changes it.
    #[must_use]
    pub fn takes_tcp_of_a_scenario(&self) -> bool {
        self.divisible().is_some()
    }

    /// The publication's plan, where the table has more than one part.
    fn divisible(&self) -> Option<&'static dyn Reproducible> {
        reproducible(self.publication).filter(|known| known.tables().contains(&self.table))
    }

    /// Of how many parts it is made; each can run on a thread of its own.
    #[must_use]
    pub fn parts(&self, table: &Table) -> usize {
        self.divisible().map_or(1, |known| known.parts(table))
    }

    /// Which share of the work each part has; together they are one.
    #[must_use]
    pub fn shares(&self, table: &Table) -> Vec<f64> {
        let Some(known) = self.divisible() else { return vec![1.0] };
        let mut shares = vec![1.0; known.parts(table)];
        if let Some(base) = shares.first_mut() {
            *base = known.whole_by_brief(self.table);
        }
        let sum: f64 = shares.iter().sum();
        shares.iter().map(|share| share / sum).collect()
    }

    /// Makes one of them.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn part(&self, table: &Table, number: usize) -> Result<Part, ExperimentError> {
        match self.divisible() {
            Some(known) => known.part(table, number),
            None => self.run(table).map(Part::whole),
        }
    }

    /// The reproduction that all its parts make, in their order: what [`run`](Self::run) gives.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn join(&self, table: &Table, mut parts: Vec<Part>) -> Result<TableResult, ExperimentError> {
        match self.divisible() {
            Some(known) => known.join(table, parts),
            None => parts.pop().and_then(Part::into_whole).ok_or(ExperimentError::MissingSetting("rows")),
        }
    }
}

/// How a table is measured with real packets, if it can be.
#[must_use]
pub fn live(publication: &str, table: &str) -> Option<LiveExperiment> {
    brouer2005::LIVE.iter().copied().find(|known| known.publication == publication && known.table == table)
}

/// The calculated tables, by publication.
const CALCULATED: [(&str, Tables); 5] = [
    (ano2002::KEY, ano2002::TABLES),
    (brouer2005::KEY, brouer2005::TABLES),
    (kalyanaraman1999::KEY, kalyanaraman1999::TABLES),
    (phanse2000::KEY, phanse2000::TABLES),
    (sun1998::KEY, sun1998::TABLES),
];

/// Every experiment: of each publication the calculated tables, and those of its plan.
pub static EXPERIMENTS: LazyLock<Vec<Experiment>> = LazyLock::new(|| {
    let of = |plan: &'static Plan| {
        let publication = plan.publication.as_str();
        let calculated = CALCULATED.iter().filter(move |(key, _)| *key == publication).flat_map(|(_, tables)| *tables);
        let calculated = calculated.map(move |&(table, run)| Experiment { publication, table, own: Some(run) });
        let planned = plan.tables().into_iter().map(move |table| Experiment { publication, table, own: None });
        calculated.chain(planned)
    };
    // Plans are part of the program; a test reads each.
    Plan::all().unwrap_or_default().iter().flat_map(of).collect()
});

/// The experiment that reproduces a table, if there is one.
#[must_use]
pub fn experiment(publication: &str, table: &str) -> Option<Experiment> {
    EXPERIMENTS.iter().copied().find(|known| known.publication == publication && known.table == table)
}

/// The runs whose series a table is about: of its base case, with the first seed. Empty for most tables.
///
/// # Errors
/// As those of the experiment.
pub fn drawings(publication: &str, table: &Table) -> Result<Vec<Drawing>, ExperimentError> {
    Plan::of(publication).ok().flatten().map_or_else(|| Ok(Vec::new()), |plan| plan.drawings(table))
}

/// The figures of a run with one seed of the experiment of a table. `settings` lie over those of the publication and of
/// the experiment: the parameters of a row, or values that the publication does not have.
///
/// # Errors
/// When there is no such experiment, setting or figure, or when the settings make no network.
pub fn point(publication: &str, table: &str, settings: &Values, figures: &[&str]) -> Result<Point, ExperimentError> {
    let name = || ExperimentError::NoExperiment(format!("{publication}/{table}"));
    let publications = crate::publications().map_err(|error| ExperimentError::Network(error.to_string()))?;
    let known = publications.iter().find(|known| known.key == publication);
    let table = known.and_then(|known| known.table(table)).ok_or_else(name)?;
    let plan = Plan::of(publication).ok().flatten().ok_or_else(name)?;
    plan.point(table, settings, figures)
}

/// The simulation that work is counted in: its time says how fast a machine is.
#[derive(Debug)]
pub struct Yardstick(Table);

impl Yardstick {
    /// Reads what the simulation needs.
    ///
    /// # Errors
    /// When the data lack its table.
    pub fn new() -> Result<Self, ExperimentError> {
        let publications = crate::publications().map_err(|error| ExperimentError::Network(error.to_string()))?;
        let known = publications.into_iter().find(|known| known.key == kalyanaraman1999::KEY);
        let table = known.and_then(|known| known.tables.into_iter().find(|table| table.id == "1"));
        table.map(Self).ok_or(ExperimentError::MissingSetting("table"))
    }

    /// Runs it.
    ///
    /// # Errors
    /// When the shipped scenario makes no network.
    pub fn run(&self) -> Result<(), ExperimentError> {
        kalyanaraman1999::yardstick(&self.0)
    }
}

/// A publication whose open questions can be answered otherwise, by its key.
#[must_use]
pub fn reproducible(publication: &str) -> Option<&'static dyn Reproducible> {
    Plan::of(publication).ok().flatten().map(|plan| plan as &dyn Reproducible)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_belongs_to_a_table_of_the_data_and_to_no_other() {
        let publications = crate::publications().unwrap();
        for (index, known) in EXPERIMENTS.iter().enumerate() {
            let publication = publications.iter().find(|publication| publication.key == known.publication);
            let name = format!("{}/{}", known.publication, known.table);
            assert!(publication.is_some_and(|p| p.table(known.table).is_some()), "{name} is no table");
            let same = |other: &Experiment| (other.publication, other.table) == (known.publication, known.table);
            assert!(!EXPERIMENTS[..index].iter().any(same), "{name} has two experiments");
        }
    }

    /// The tables that take a moment; those with many seeds are run by `lastmile reproduce`.
    #[test]
    fn formulas_and_single_runs_show_what_was_claimed() {
        let publications = crate::publications().unwrap();
        let tables = [
            ("phanse2000", ["2.1", "text-4.2", "text-3.4", "text-3.7.2", "text-5.2.1", "text-5.3"].as_slice()),
            ("kalyanaraman1999", ["text-1", "text-2-example", "text-2-cbq"].as_slice()),
            ("brouer2005", ["text-2.4", "fig-7.3", "A.1"].as_slice()),
            ("sun1998", ["text-3.3", "text-4.1"].as_slice()),
            ("ano2002", ["fig-4", "text-3.2", "text-4.1"].as_slice()),
        ];
        for (key, ids) in tables {
            let publication = publications.iter().find(|publication| publication.key == key).unwrap();
            for id in ids {
                let result = experiment(key, id).unwrap().run(publication.table(id).unwrap()).unwrap();
                assert!(result.holds(), "{key}/{id}: {:?}", result.claims);
                assert!(!result.rows.is_empty(), "{key}/{id}");
            }
        }
    }

    /// Figure 3.6 gave the upstream's rate, so that it cannot show it; the jitter of figure 7.1 is not simulated.
    #[test]
    fn what_parameters_were_inferred_from_is_not_shown() {
        let publications = crate::publications().unwrap();
        for (id, expected) in [("fig-3.6", "hangs on an assumption"), ("fig-7.1", "not shown")] {
            let table = publications[1].table(id).unwrap();
            let result = experiment("brouer2005", id).unwrap().run(table).unwrap();
            assert_eq!(result.claims[0].verdict.as_str(), expected, "{id}: {:?}", result.claims);
            assert!(!result.holds());
        }
    }

    /// An ACK takes two cells with LLC; a list of settings has no figure that a run could show.
    #[test]
    fn an_assumption_about_cells_is_named_and_settings_are_quoted() {
        let publications = crate::publications().unwrap();
        for (key, id, expected) in
            [("kalyanaraman1999", "6", "hangs on an assumption"), ("sun1998", "text-4.1", "quoted")]
        {
            let publication = publications.iter().find(|publication| publication.key == key).unwrap();
            let result = experiment(key, id).unwrap().run(publication.table(id).unwrap()).unwrap();
            assert_eq!(result.claims[0].verdict.as_str(), expected, "{key}/{id}: {:?}", result.claims);
        }
    }

    #[test]
    fn every_table_of_the_two_publications_has_an_experiment() {
        let publications = crate::publications().unwrap();
        for publication in
            publications.iter().filter(|known| ["phanse2000", "kalyanaraman1999"].contains(&known.key.as_str()))
        {
            for table in &publication.tables {
                assert!(experiment(&publication.key, &table.id).is_some(), "{}/{}", publication.key, table.id);
            }
        }
    }
}
