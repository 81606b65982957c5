//! Brouer 2005, section 10.4: the connections that the production router counted.

use crate::data::Table;
use crate::reproduction::TableResult;
use crate::value::Values;

use super::super::closed_form::quotation;
use super::KEY;
use super::formulas::row_of;
use crate::error::ExperimentError;
use crate::rounding::significant;

/// Section 10.4: a count of real traffic, of which only the sums can be checked.
pub(super) fn connections(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = TableResult::new(KEY, table);
    let mut sums = Vec::new();
    for row in &table.rows {
        let counted = |name| row.published.number(name);
        let mut theory = Values::new();
        if let (Some(total), Some(unreplied), Some(confirmed)) =
            (counted("connections"), counted("unreplied"), counted("confirmed"))
        {
            let p2p = counted("p2p_confirmed").unwrap_or_default();
            theory.set("p2p_share_pct", significant(100.0 * p2p / confirmed));
            sums.push((total - unreplied - confirmed, "answered connections"));
            sums.push((confirmed - p2p - counted("unmarked").unwrap_or_default(), "unmarked connections"));
        }
        if let (Some(p2p), Some(other), Some(unknown)) =
            (counted("known_p2p"), counted("other_known"), counted("unknown"))
        {
            sums.push((p2p + other + unknown - counted("total").unwrap_or_default(), "listed ports"));
        }
        if let (Some(entries), Some(each)) = (counted("entries"), counted("bytes_each")) {
            theory.set("mb", entries * each / 1e6);
        }
        result.rows.push(row_of(row, theory));
    }
    result.assumptions.push(
        "These are counts of one network's traffic: there is nothing to simulate, their sums are checked.".to_owned(),
    );
    let share = result.rows.iter().find_map(|row| row.theory.number("p2p_share_pct")).unwrap_or_default();
    let wrong = sums.iter().filter(|(difference, _)| *difference != 0.0).count();
    let evidence =
        format!("{share:.1} % of the answered connections; {} of {} sums are right", sums.len() - wrong, sums.len());
    result.claims.push(quotation(table, (share - 92.0).abs() < 0.5 && wrong == 0, evidence));
    Ok(result)
}
