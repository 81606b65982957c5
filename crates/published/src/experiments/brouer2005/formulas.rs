//! Tables of formulas: each printed figure next to the exact one.

use crate::data::{Row, Table};
use crate::reproduction::{RowResult, TableResult};
use crate::value::{Value, Values};
use crate::verdict::Finding;

use super::KEY;
use crate::error::ExperimentError;
use crate::rounding::significant;

/// The tolerance of a printed figure, where it exceeds a unit of its last digit.
const TOLERANCE: f64 = 0.005;

/// The values of the formulas for a row. Values that the row does not ask for are left out.
pub(super) type Formula = fn(&Values) -> Result<Values, ExperimentError>;

/// Judges a claim by the rows: whether they show it, and which figures say so.
pub(super) type Verdict = (bool, String);

/// The table by its formula. Its claim holds when every printed figure is the exact one, rounded or
/// cut, and `judge` says so too.
///
/// Rows of which the data remark why they differ may differ.
pub(super) fn formulas(
    table: &Table,
    formula: Formula,
    judge: impl FnOnce(&[RowResult]) -> Verdict,
) -> Result<TableResult, ExperimentError> {
    let mut result = TableResult::new(KEY, table);
    for row in &table.rows {
        result.rows.push(row_of(row, asked(row, &formula(&table.settings(row))?)));
    }
    judged(table, &mut result, judge);
    Ok(result)
}

/// Pushes the claim of a table of formulas, judged by its rows and by the printed figures.
pub(super) fn judged(table: &Table, result: &mut TableResult, judge: impl FnOnce(&[RowResult]) -> Verdict) {
    let (mut agree, mut excused, mut off) = (0_u32, Vec::new(), Vec::new());
    for (row, ours) in table.rows.iter().zip(&result.rows) {
        for (name, printed) in row.theory_printed.iter() {
            match ours.theory.get(name) {
                None => {}
                Some(exact) if agrees(printed, exact) => agree += 1,
                Some(exact) if row.note.is_some() => excused.push(format!("{name} {printed}, exactly {exact}")),
                Some(exact) => off.push(format!("{name} {printed}, exactly {exact}")),
            }
        }
    }
    let (holds, mut evidence) = judge(&result.rows);
    let mut add = |text: String| {
        evidence = if evidence.is_empty() { text } else { format!("{evidence}; {text}") };
    };
    if agree > 0 {
        add(format!("{agree} printed figures are the exact ones, rounded"));
    }
    for (figures, what) in [(&off, "printed otherwise"), (&excused, "known to differ")] {
        if !figures.is_empty() {
            add(format!("{what}: {}", figures.join(", ")));
        }
    }
    result.claims.push(Finding::new(holds && off.is_empty(), evidence).claim(&table.claim));
}

/// A row of the data next to the exact figures.
pub(super) fn row_of(row: &Row, theory: Values) -> RowResult {
    let mut result = RowResult::closed_form(row, theory);
    result.published = row.theory_printed.overlaid(&row.published);
    result
}

/// Of `figures` those that the row has, to six digits.
fn asked(row: &Row, figures: &Values) -> Values {
    let known = |name: &str| row.theory.get(name).or_else(|| row.theory_printed.get(name)).is_some();
    let short = |value: &Value| match value {
        Value::Float(float) => Value::Float(significant(*float)),
        other => other.clone(),
    };
    figures.iter().filter(|(name, _)| known(name)).map(|(name, value)| (name, short(value))).collect()
}

/// True when `printed` is `exact` rounded or cut to as many digits, or nearly.
fn agrees(printed: &Value, exact: &Value) -> bool {
    match (printed, exact) {
        (Value::List(printed), Value::List(exact)) => {
            printed.len() == exact.len() && printed.iter().zip(exact).all(|(printed, exact)| agrees(printed, exact))
        }
        _ => match (printed.as_f64(), exact.as_f64()) {
            (Some(number), Some(exact)) => {
                (number - exact).abs() <= f64::max(unit(printed) * 1.000_001, TOLERANCE * number.abs())
            }
            _ => printed == exact,
        },
    }
}

/// One of the last digit that is printed.
fn unit(printed: &Value) -> f64 {
    let text = printed.to_string();
    let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    0.1_f64.powi(i32::try_from(decimals).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_figure_may_be_rounded_or_cut_and_no_more() {
        let agree = |printed: f64, exact: f64| agrees(&Value::Float(printed), &Value::Float(exact));
        assert!(agree(0.13, 0.125) && agree(17.66, 17.667) && agree(0.65, 0.651));
        assert!(!agree(0.13, 0.145) && !agree(94.2, 115.0));
        assert!(agrees(&Value::Integer(23), &Value::Float(22.4)) && !agrees(&Value::Integer(25), &Value::Float(22.4)));
        let list = |numbers: [i64; 2]| Value::List(numbers.map(Value::Integer).to_vec());
        assert!(agrees(&list([14, 18]), &list([14, 18])) && !agrees(&list([14, 18]), &list([14, 20])));
    }
}
