//! Sun 1998, sections 5.3 and 5.4: SPD against EPD by the total queue and per VC, with persistent sources and with bursty ones.

use crate::data::Table;
use crate::reproduction::{Means, RowResult};
use crate::sample::Sample;
use crate::value::Values;
use crate::verdict::Finding;

use super::super::ExperimentError;
use super::super::seeds::means_over;
use super::super::trial::Variation as _;
use super::network::{Point, Scheme, Setup, Sources, carried_pct, goodput_to_input};
use super::{number, whole};

const EPD: &str = "goodput_to_input_epd_aggregate";
const SPD: &str = "goodput_to_input_spd";
const PER_VC: &str = "goodput_to_input_epd_per_vc";

pub(super) fn rows(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    let mut rows = Vec::new();
    for row in &table.rows {
        let settings = table.settings(row);
        rows.push(RowResult::of_means(row, compared(table, &settings, setup, seeds)?));
    }
    for (vcs, thresholds) in predicted(&table.id) {
        for threshold in thresholds {
            let mut params = Values::new();
            params.set("epd_threshold_cells", *threshold);
            if let Some(vcs) = vcs {
                params.set("vcs", vcs);
            }
            let settings = table.scenario.overlaid(&params);
            rows.push(RowResult::predicted(params, compared(table, &settings, setup, seeds)?));
        }
    }
    Ok(rows)
}

/// What is simulated beside the rows: connections, if others than the table's, and thresholds of EPD.
fn predicted(id: &str) -> Vec<(Option<i64>, &'static [i64])> {
    match id {
        "5.7" => vec![(None, &[120, 180])],
        "5.8" => vec![(None, &[600, 900]), (Some(20), &[500, 600, 700, 800, 900, 1000])],
        "5.11" => vec![(None, &[600, 1000])],
        _ => Vec::new(),
    }
}

fn compared(table: &Table, settings: &Values, setup: &Setup, seeds: &[u64]) -> Result<Means, ExperimentError> {
    let (buffer, activation) = match table.id.as_str() {
        "5.7" => setup.small,
        _ => (whole(settings, "switch_buffer_cells")?, whole(settings, "spd_congest_threshold_cells")?),
    };
    let from = whole(settings, "spd_threshold_cells")?;
    let schemes = [
        (EPD, "link23_goodput_epd_aggregate_pct", Scheme::Epd),
        (SPD, "link23_goodput_spd_pct", Scheme::Spd { from, activation }),
        (PER_VC, "link23_goodput_epd_per_vc_pct", Scheme::EpdPerVc),
    ];
    let (vcs, threshold) = (whole(settings, "vcs")?, whole(settings, "epd_threshold_cells")?);
    let sources = sources(settings, setup)?;
    let once = |seed| {
        let mut values = Values::new();
        let mut carried = Values::new();
        for (ratio, share, scheme) in schemes {
            let trial = Point { vcs, buffer, threshold, scheme, sources }.run(setup, seed, |_| ())?;
            values.set(ratio, goodput_to_input(&trial));
            carried.set(share, carried_pct(&trial));
        }
        Ok(values.overlaid(&carried))
    };
    means_over(seeds, once)
}

/// Those of section 5.4 are bursty: `mu` packets of 1024 bytes arrive in a microsecond.
fn sources(settings: &Values, setup: &Setup) -> Result<Sources, ExperimentError> {
    if settings.text("sources") != Some("bursty") {
        return Ok(Sources::Persistent);
    }
    let bps = (number(settings, "mu")? * 1024.0 * 8.0 * 1e6).round() as u64;
    Ok(Sources::Poisson { bps: setup.arrival_bps.unwrap_or(bps) })
}

/// By how much SPD is ahead of the better EPD.
fn lead(row: &RowResult) -> Sample {
    row.sample(SPD).minus(&row.sample(EPD).max(&row.sample(PER_VC)))
}

fn published_lead(row: &RowResult) -> Option<f64> {
    let of = |name| row.published.number(name);
    Some(of(SPD)? - of(EPD)?.max(of(PER_VC)?))
}

fn threshold(row: &RowResult) -> u64 {
    row.params.integer("epd_threshold_cells").unwrap_or_default()
}

fn leads(rows: &[RowResult]) -> String {
    let told = |row: &RowResult| {
        let of = row.params.integer("vcs").map(|vcs| format!(" with {vcs} VCs")).unwrap_or_default();
        let published = published_lead(row).map(|lead| format!(" (published {lead:+.3})")).unwrap_or_default();
        format!("{:.3} at {}{of}{published}", lead(row).estimate(), threshold(row))
    };
    format!("SPD less the better EPD: {}", rows.iter().map(told).collect::<Vec<_>>().join(", "))
}

/// SPD leads: as published, or half as much at least; at thresholds that were not published at all.
fn need_lead(finding: &mut Finding, row: &RowResult) {
    match published_lead(row) {
        Some(published) => finding.difference(&lead(row), published),
        None => finding.above(&lead(row), 0.0),
    }
}

/// Table 5.7.
pub(super) fn always_ahead(_: &Table, rows: &[RowResult]) -> Finding {
    let mut finding = Finding::default();
    rows.iter().for_each(|row| need_lead(&mut finding, row));
    finding.tell(leads(rows));
    finding
}

/// Table 5.8: the worst of SPD less the best of EPD, for each number of VCs.
pub(super) fn worst_beats_best(_: &Table, rows: &[RowResult]) -> Finding {
    let mut finding = Finding::default();
    let mut numbers: Vec<Option<u64>> = rows.iter().map(|row| row.params.integer("vcs")).collect();
    numbers.dedup();
    for vcs in numbers {
        let of: Vec<&RowResult> = rows.iter().filter(|row| row.params.integer("vcs") == vcs).collect();
        let epd = |row: &RowResult| row.sample(EPD).max(&row.sample(PER_VC));
        let worst = of.iter().map(|row| row.sample(SPD)).min_by(|one, other| one.mean().total_cmp(&other.mean()));
        let best = of.iter().map(|row| epd(row)).max_by(|one, other| one.mean().total_cmp(&other.mean()));
        let apart = worst.unwrap_or_default().minus(&best.unwrap_or_default());
        let ends = of.iter().filter_map(|row| {
            let number = |name| row.published.number(name);
            Some((number(SPD)?, number(EPD)?.max(number(PER_VC)?)))
        });
        let (spd, epd) = ends.fold((f64::INFINITY, 0.0_f64), |(spd, epd), row| (spd.min(row.0), epd.max(row.1)));
        if spd.is_finite() {
            finding.difference(&apart, spd - epd);
        } else {
            finding.above(&apart, 0.0);
        }
        let of = vcs.map(|vcs| format!(" with {vcs} VCs")).unwrap_or_default();
        finding.tell(format!("the worst of SPD less the best of EPD{of} is {:.3}", apart.estimate()));
    }
    finding.tell(leads(rows));
    finding
}

/// Table 5.10. About level: never a tenth apart, as the published rows are not; ahead but at 500 cells.
pub(super) fn about_level(_: &Table, rows: &[RowResult]) -> Finding {
    let mut finding = Finding::default();
    for row in rows {
        finding.between(&lead(row), -0.1, 0.1);
        need_lead(&mut finding, row);
    }
    finding.tell(leads(rows));
    finding
}

/// Table 5.11: SPD is no lower at the highest threshold than at the lowest, as far as can be told; EPD falls as published, or half as much.
pub(super) fn ahead_and_level(_: &Table, rows: &[RowResult]) -> Finding {
    let published: Vec<&RowResult> = rows.iter().filter(|row| !row.published.is_empty()).collect();
    let (Some(first), Some(last)) = (published.first(), published.last()) else {
        return Finding::new(false, "no figures");
    };
    let mut finding = Finding::default();
    rows.iter().for_each(|row| need_lead(&mut finding, row));
    let change = |name| last.sample(name).minus(&first.sample(name));
    finding.need(!change(SPD).estimate().is_below(0.0));
    for name in [EPD, PER_VC] {
        let of = |row: &RowResult| row.published.number(name).unwrap_or_default();
        finding.difference(&change(name), of(last) - of(first));
    }
    finding.tell(leads(rows));
    finding.tell(format!(
        "from {} to {} cells SPD changes by {:.3}, EPD by {:.3}, per VC by {:.3}",
        threshold(first),
        threshold(last),
        change(SPD).estimate(),
        change(EPD).estimate(),
        change(PER_VC).estimate()
    ));
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::sun1998::KEY;

    fn rows(id: &str, ours: impl Fn(&RowResult) -> [f64; 3]) -> (Table, Vec<RowResult>) {
        let publications = crate::publications().unwrap();
        let table = publications.iter().find(|known| known.key == KEY).unwrap().table(id).unwrap().clone();
        let mut rows: Vec<RowResult> =
            table.rows.iter().map(|row| RowResult::new(row, row.published.clone())).collect();
        for row in &mut rows {
            let [epd, spd, per_vc] = ours(row);
            row.set_simulated([(EPD, epd), (SPD, spd), (PER_VC, per_vc)].into_iter().collect());
        }
        (table, rows)
    }

    /// 0.012 to 0.027 where 0.108 to 0.215 are published.
    #[test]
    fn a_lead_of_a_tenth_of_the_published_one_is_not_shown() {
        let (table, small) = rows("5.7", |_| [0.949, 0.969, 0.940]);
        assert!(!always_ahead(&table, &small).is_shown());
        let printed = |row: &RowResult| [EPD, SPD, PER_VC].map(|name| row.published.number(name).unwrap());
        let (table, large) = rows("5.7", printed);
        assert!(always_ahead(&table, &large).is_shown());
    }

    #[test]
    fn a_prediction_that_contradicts_a_claim_counts() {
        let printed = |row: &RowResult| [EPD, SPD, PER_VC].map(|name| row.published.number(name).unwrap());
        let (table, mut with) = rows("5.7", printed);
        let mut predicted = with[0].clone();
        predicted.published = Values::new();
        predicted.predicted = true;
        predicted.set_simulated([(EPD, 0.96), (SPD, 0.95), (PER_VC, 0.9)].into_iter().collect());
        with.push(predicted);
        assert!(!always_ahead(&table, &with).is_shown());
    }
}
