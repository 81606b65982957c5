//! A judge for sections 5.2 of Sun 1998: a ratio is highest near a threshold of 20 cells, and falls from there.

use crate::reproduction::RowResult;
use crate::verdict::Finding;

const RATIO: &str = "goodput_to_input";
const CARRIED: &str = "link23_goodput_pct";

/// By how much a ratio falls that falls: far less than anything that is published as a fall, the
/// least of which is 0.08, and more than what a packet more or less makes of a run in which all
/// connections are in step.
const FALL: f64 = 0.01;

/// One cell on either side of the 19 to 20 of the claim.
const NEAR: std::ops::RangeInclusive<u64> = 18..=21;

/// The finding about rows that differ by `spd_threshold_cells`.
pub(crate) fn judge(rows: &[RowResult]) -> Finding {
    let ratio = |row: &RowResult| row.sample(RATIO).mean();
    let at = |row: &RowResult| row.params.integer("spd_threshold_cells").unwrap_or_default();
    let best = rows.iter().max_by(|one, other| ratio(one).total_cmp(&ratio(other)));
    let (Some(best), Some(first), Some(last)) = (best, rows.first(), rows.last()) else {
        return Finding::new(false, "no figures");
    };
    let mut finding = Finding::new(NEAR.contains(&at(best)), "");
    for end in [first, last] {
        let fall = best.sample(RATIO).minus(&end.sample(RATIO));
        if NEAR.contains(&at(end)) {
            // An end that is itself near the peak has little room to fall.
            finding.need(std::ptr::eq(end, best) || fall.mean() > 0.0);
        } else {
            finding.above(&fall, FALL);
            let published = |row: &RowResult| row.published.number(RATIO).unwrap_or_default();
            finding.difference(&fall, published(best) - published(end));
        }
    }
    let carried = |row: &RowResult| row.sample(CARRIED).mean();
    let told = |row: &RowResult| format!("{:.3} at {} cells ({:.0} % of the link)", ratio(row), at(row), carried(row));
    finding.tell(format!("highest {}; {} and {} at the ends", told(best), told(first), told(last)));
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Values;

    /// Of a table from 5 to 32 cells.
    fn shown(ratios: [(i64, f64); 3]) -> bool {
        let publications = crate::publications().unwrap();
        let sun = publications.iter().find(|publication| publication.key == "sun1998").unwrap();
        let row = |(cells, ratio): (i64, f64)| {
            let params: Values = [("spd_threshold_cells", cells)].into_iter().collect();
            let simulated = [(RATIO, ratio)].into_iter().collect();
            RowResult { params, simulated, ..RowResult::new(&sun.table("5.3").unwrap().rows[0], Values::new()) }
        };
        judge(&ratios.map(row)).is_shown()
    }

    #[test]
    fn a_peak_is_near_20_cells_and_what_falls_from_it_can_be_seen() {
        assert!(shown([(5, 0.7), (20, 0.9), (32, 0.8)]));
        assert!(!shown([(5, 0.7), (24, 0.9), (32, 0.8)]), "it peaks elsewhere");
        assert!(!shown([(5, 0.7), (20, 0.9), (32, 0.895)]), "it does not fall");
        assert!(!shown([(5, 0.899), (20, 0.9), (32, 0.8)]));
        assert!(shown([(5, 0.7), (19, 0.85), (20, 0.9)]), "a table that ends at its peak");
        assert!(shown([(5, 0.7), (19, 0.901), (20, 0.9)]), "or beside it");
    }
}
