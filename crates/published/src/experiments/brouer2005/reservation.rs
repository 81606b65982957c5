//! Brouer 2005, section 8.1: the rate reserved for ACKs by formula 8.1, and the need in the runs of figure 8.1.

use crate::data::Table;
use crate::reproduction::{Means, RowResult, TableResult};
use crate::value::Values;

use super::super::seeds::SEEDS;
use super::formulas::{formulas, row_of};
use super::{KEY, plan, rates};
use crate::error::ExperimentError;

/// The figures of the need, by their names in the runs of figure 8.1.
const NEED: [&str; 2] = ["ack_rate_max_kbps", "ack_rate_mean_kbps"];

/// Section 8.1.
pub(super) fn reservation(table: &Table) -> Result<TableResult, ExperimentError> {
    let publications = crate::publications().map_err(|error| ExperimentError::Network(error.to_string()))?;
    let both_full = publications.iter().find(|known| known.key == KEY).and_then(|known| known.table("fig-8.1"));
    let both_full = both_full.ok_or(ExperimentError::MissingSetting("figure 8.1"))?;
    let plan = plan(KEY)?;
    let runs = plan.rows(both_full, &Values::new(), &SEEDS)?;
    let runs = runs.first().ok_or(ExperimentError::MissingSetting("row"))?;
    let mut result = formulas(table, rates::ack_reservation, |_| (true, String::new()))?;
    for (row, ours) in table.rows.iter().zip(&mut result.rows) {
        *ours = if row.params.text("quantity").is_some() {
            let mut need = Means::default();
            NEED.into_iter().for_each(|name| need.push(name, runs.sample(name)));
            RowResult::of_means(row, need)
        } else {
            row_of(row, ours.theory.clone())
        };
    }
    result.seeds = SEEDS.to_vec();
    let [most, used] = NEED.map(|name| runs.sample(name).mean());
    let down = runs.sample("_download_kbps").mean();
    // Formula 8.1 the other way round.
    let factor = down / (1500.0 / 106.0) / used;
    if let Some(claim) = result.claims.first_mut() {
        let enough = (1.8..2.1).contains(&factor) && most < 85.0;
        claim.verdict = crate::Verdict::of(enough && claim.verdict.holds());
        claim.evidence = format!(
            "the download of {down:.0} kbit/s needs {used:.1} kbit/s of ACKs in the mean and {most:.1} in the \
             busiest second, a packet of ACK for {factor:.2} \
             of data; reserved are 85; {}",
            claim.evidence
        );
    }
    result.assumptions.push(
        "The need is measured before the first upload, over a second for the largest, pings taken off.".to_owned(),
    );
    result.assumptions.extend(plan.note("line")?);
    Ok(result)
}
