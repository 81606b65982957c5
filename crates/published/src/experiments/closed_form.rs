//! Tables of formulas: what a publication prints next to what the same formulas give here, exactly.
//! Nothing is simulated.

use crate::data::{Row, Table};
use crate::reproduction::{RowResult, TableResult};
use crate::value::{Value, Values};
use crate::verdict::{Agreement, Claim, Finding, Verdict};

use crate::error::ExperimentError;

/// The values of our formulas for a row.
pub(super) type Formula = fn(&Table, &Row) -> Result<Values, ExperimentError>;

/// The tolerance of a printed figure: half a unit of its second digit.
const TOLERANCE: f64 = 0.02;

/// The table with our figures under `theory`. Its claim holds when every printed figure is ours,
/// rounded, and `also` holds.
pub(super) fn closed_form(
    key: &str,
    table: &Table,
    formula: Formula,
    also: impl FnOnce(&[RowResult]) -> (bool, String),
) -> Result<TableResult, ExperimentError> {
    let mut result = TableResult::new(key, table);
    for row in &table.rows {
        result.rows.push(RowResult::closed_form(row, formula(table, row)?));
    }
    let (compared, worst) = agreement(&result.rows);
    let (holds, evidence) = also(&result.rows);
    let printed = format!("{compared} printed figures, at most {:.1} % from the exact ones", 100.0 * worst);
    let evidence = if evidence.is_empty() { printed } else { format!("{evidence}; {printed}") };
    let shown = holds && worst <= TOLERANCE && compared > 0;
    result.agreement = Some(Agreement::of(&result.rows));
    result.claims.push(Finding::new(shown, evidence).claim(&table.claim));
    Ok(result)
}

/// A table that only quotes others: nothing to compute, its claim is judged by the quoted figures.
pub(super) fn quoted(key: &str, table: &Table, judge: impl FnOnce(&Table) -> (bool, String)) -> TableResult {
    let mut result = TableResult::new(key, table);
    result.rows = table.rows.iter().map(|row| RowResult::closed_form(row, Values::new())).collect();
    let (supported, evidence) = judge(table);
    result.claims.push(quotation(table, supported, evidence));
    result
        .assumptions
        .push("The publication quotes these figures; there is nothing to compute or simulate.".to_owned());
    result
}

/// The claim of a table that holds nothing of which a result could be another: quoted, unless its
/// own figures contradict it.
pub(super) fn quotation(table: &Table, supported: bool, evidence: String) -> Claim {
    let verdict = if supported { Verdict::Quoted } else { Verdict::NotShown };
    Claim { text: table.claim.clone(), verdict, evidence }
}

/// The least and the largest of the numbers printed under `name`, in all rows.
pub(super) fn range(table: &Table, name: &str) -> Option<(f64, f64)> {
    let mut numbers = Vec::new();
    for row in &table.rows {
        match row.theory_printed.get(name) {
            Some(Value::List(values)) => numbers.extend(values.iter().filter_map(Value::as_f64)),
            Some(value) => numbers.extend(value.as_f64()),
            None => {}
        }
    }
    let least = numbers.iter().copied().reduce(f64::min)?;
    Some((least, numbers.into_iter().reduce(f64::max)?))
}

/// The number of figures that both sides have, and the largest relative difference.
fn agreement(rows: &[RowResult]) -> (usize, f64) {
    let mut compared = 0;
    let mut worst = 0.0_f64;
    for row in rows {
        for (name, deviation) in row.deviation.iter() {
            let Some((printed, deviation)) = row.published.number(name).zip(deviation.as_f64()) else { continue };
            compared += 1;
            let relative = if printed == 0.0 { deviation.abs() } else { (deviation / printed).abs() };
            worst = worst.max(relative);
        }
    }
    (compared, worst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_is_off_is_seen() {
        let publications = crate::publications().unwrap();
        let table = publications[3].table("text-3.4").unwrap();
        let with = |k: f64| {
            let row = RowResult::closed_form(&table.rows[0], [("k", k)].into_iter().collect());
            agreement(&[row])
        };
        assert_eq!(with(4.0), (1, 0.0), "4 is printed");
        let (compared, worst) = with(5.0);
        assert_eq!(compared, 1);
        assert!((worst - 0.25).abs() < 1e-12);
    }

    #[test]
    fn a_range_spans_lists_and_numbers() {
        let publications = crate::publications().unwrap();
        let table = publications[3].table("2.1").unwrap();
        assert_eq!(range(table, "mbps"), Some((0.014, 6.0)));
        assert_eq!(range(table, "nothing"), None);
    }
}
