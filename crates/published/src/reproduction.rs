//! The reproduced side: each published figure next to the closed form, the simulation and, where
//! there is one, the live run.
//!
//! Serialised, a [`Reproduction`] has the shape that `lastmile reproduce --json` prints and that
//! other programs rely on.

use serde::Serialize;

use crate::data::Table;
pub use crate::row::{Means, RowResult, Samples};
use crate::verdict::{Agreement, Claim, Verdict};

/// Tables, reproduced.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Reproduction {
    /// One after another, in the order asked for.
    pub tables: Vec<TableResult>,
    /// Counts by publication, in that order.
    pub summary: Vec<Summary>,
}

/// How the claims of a publication came out, and how near its figures are.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Summary {
    /// Key of the publication.
    pub publication: String,
    /// Claims that are shown.
    pub shown: usize,
    /// Claims that are not.
    pub not_shown: usize,
    /// Claims that hang on an assumption.
    pub hang_on_an_assumption: usize,
    /// Claims that are quoted.
    pub quoted: usize,
    /// Figures of its tables.
    pub agreement: Agreement,
}

impl Reproduction {
    /// These tables, counted.
    #[must_use]
    pub fn new(tables: Vec<TableResult>) -> Self {
        let mut summary: Vec<Summary> = Vec::new();
        for table in &tables {
            let known = summary.iter().position(|known| known.publication == table.publication);
            let place = known.unwrap_or_else(|| {
                summary.push(Summary { publication: table.publication.clone(), ..Summary::default() });
                summary.len() - 1
            });
            summary[place].add(table);
        }
        Self { tables, summary }
    }
}

impl Summary {
    fn add(&mut self, table: &TableResult) {
        for claim in table.claims.iter().chain(&table.live_claims) {
            *match claim.verdict {
                Verdict::Shown => &mut self.shown,
                Verdict::NotShown => &mut self.not_shown,
                Verdict::HangsOn { .. } => &mut self.hang_on_an_assumption,
                Verdict::Quoted => &mut self.quoted,
            } += 1;
        }
        if let Some(agreement) = &table.agreement {
            self.agreement.add(agreement);
        }
    }

    /// Adds the counts of another publication.
    pub fn merge(&mut self, other: &Self) {
        self.shown += other.shown;
        self.not_shown += other.not_shown;
        self.hang_on_an_assumption += other.hang_on_an_assumption;
        self.quoted += other.quoted;
        self.agreement.add(&other.agreement);
    }
}

/// A table, reproduced.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TableResult {
    /// Key of the publication.
    pub publication: String,
    /// Id of the table.
    pub id: String,
    /// Its subject.
    pub title: String,
    /// Row by row.
    pub rows: Vec<RowResult>,
    /// The claims of the publication, each with its verdict.
    pub claims: Vec<Claim>,
    /// How near our figures lie to the published ones; `None` where nothing is simulated.
    pub agreement: Option<Agreement>,
    /// The claims that live figures can show, judged by these; empty where nothing ran live.
    pub live_claims: Vec<Claim>,
    /// Assumptions where the publication leaves something open.
    pub assumptions: Vec<String>,
    /// The results of other assumptions; empty where none was tried.
    pub sensitivity: Vec<Sensitivity>,
    /// The seeds of the runs behind each row; empty where nothing is random.
    pub seeds: Vec<u64>,
}

/// The result of a table with another answer to one open question.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sensitivity {
    /// The open question.
    pub question: String,
    /// The answer in place of that of the base case.
    pub answer: String,
    /// The root mean square of the relative deviations from all figures published, in percent;
    /// `None` where none has a number.
    pub deviation_rms_pct: Option<f64>,
    /// True when the table's claim is shown even so.
    pub shown: bool,
    /// True when its seeds neither show nor refute the claim.
    pub undecided: bool,
    /// The number of its seeds.
    pub seeds: usize,
    /// True when the verdict is the opposite of the base case's, beyond the intervals.
    pub turns_the_verdict: bool,
    /// The figures that do or do not.
    pub evidence: String,
}

impl TableResult {
    /// A table of `publication` with no rows yet.
    #[must_use]
    pub fn new(publication: &str, table: &Table) -> Self {
        Self {
            publication: publication.to_owned(),
            id: table.id.clone(),
            title: table.title.clone(),
            rows: Vec::new(),
            claims: Vec::new(),
            agreement: None,
            live_claims: Vec::new(),
            assumptions: Vec::new(),
            sensitivity: Vec::new(),
            seeds: Vec::new(),
        }
    }

    /// True when every claim is shown or quoted, by live figures too where there are any.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.claims.iter().chain(&self.live_claims).all(|claim| claim.verdict.holds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publications;
    use crate::value::Values;
    use crate::verdict::Finding;

    #[test]
    fn deviation_is_from_the_published_figure_and_else_from_theory() {
        let publications = publications().unwrap();
        let row = &publications[3].table("5.1").unwrap().rows[2];
        let simulated = [("downstream_utilisation_pct", 39.85), ("k", 2.5), ("goodput_bps", 6e5)].into_iter().collect();
        let result = RowResult::new(row, simulated);
        let deviation = |name| result.deviation.number(name);
        assert!((deviation("downstream_utilisation_pct").unwrap() - 0.25).abs() < 1e-9, "39.6 was published, not 39.9");
        assert!((deviation("k").unwrap() + 0.006).abs() < 1e-9, "k is theory only: 2.506");
        assert_eq!(deviation("goodput_bps"), None, "nothing to compare with");
        assert!(!result.params.is_empty());
    }

    #[test]
    fn the_json_has_the_promised_shape() {
        let publications = publications().unwrap();
        let table = publications[3].table("5.1").unwrap();
        let mut result = TableResult::new("phanse2000", table);
        result.rows.push(RowResult::new(&table.rows[0], Values::new()));
        result.claims.push(Finding::new(false, "b").claim("a"));
        assert!(!result.holds());
        let json = serde_json::to_value(Reproduction::new(vec![result])).unwrap();
        let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
        assert_eq!(keys(&json), "summary tables");
        assert_eq!(keys(&json["summary"][0]), "agreement hang_on_an_assumption not_shown publication quoted shown");
        assert_eq!((&json["summary"][0]["not_shown"], &json["summary"][0]["shown"]), (&1.into(), &0.into()));
        let table = &json["tables"][0];
        assert_eq!(keys(table), "agreement assumptions claims id live_claims publication rows seeds sensitivity title");
        assert_eq!(
            keys(&table["rows"][0]),
            "ci95 deviation live live_deviation live_simulated params predicted published simulated theory"
        );
        assert_eq!(keys(&table["claims"][0]), "evidence text verdict");
        assert_eq!(table["rows"][0]["params"]["up_bps"], 96000);
    }
}
