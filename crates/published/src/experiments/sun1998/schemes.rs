//! Sun 1998, sections 5.3 and 5.4: SPD against EPD by the total queue and per VC, with persistent sources and with bursty ones.

use crate::data::Table;
use crate::reproduction::{Means, RowResult};
use crate::value::Values;

use super::super::ExperimentError;
use super::super::open::Runs;
use super::super::seeds::means_over;
use super::super::trial::Variation as _;
use super::network::{Point, Scheme, Setup, Sources, carried_pct, goodput_to_input};
use super::{number, whole};

const EPD: &str = "goodput_to_input_epd_aggregate";
const SPD: &str = "goodput_to_input_spd";
const PER_VC: &str = "goodput_to_input_epd_per_vc";

pub(super) fn rows(
    table: &Table,
    setup: &Setup,
    Runs { seeds, predictions }: Runs<'_>,
) -> Result<Vec<RowResult>, ExperimentError> {
    let mut rows = Vec::new();
    for row in &table.rows {
        let settings = table.settings(row);
        rows.push(RowResult::of_means(row, compared(table, &settings, setup, seeds)?));
    }
    if !predictions {
        return Ok(rows);
    }
    for (vcs, thresholds) in predicted(&table.id) {
        for threshold in thresholds {
            let mut params = Values::new();
            params.set("epd_threshold_cells", *threshold);
            if let Some(vcs) = vcs {
                params.set("vcs", vcs);
            }
            let settings = table.scenario.overlaid(&params);
            rows.push(RowResult::unpublished(params, compared(table, &settings, setup, seeds)?));
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

/// A row of the table, not one predicted: its threshold, and the ratios of EPD, SPD and EPD per VC.
struct Compared {
    threshold: u64,
    epd: f64,
    spd: f64,
    per_vc: f64,
    /// Half the width of the confidence interval of SPD's.
    error: f64,
}

impl Compared {
    fn all(rows: &[RowResult]) -> Vec<Self> {
        let of = |row: &RowResult| Self {
            threshold: row.params.integer("epd_threshold_cells").unwrap_or_default(),
            epd: row.simulated.number(EPD).unwrap_or_default(),
            spd: row.simulated.number(SPD).unwrap_or_default(),
            per_vc: row.simulated.number(PER_VC).unwrap_or_default(),
            error: row.ci95.number(SPD).unwrap_or_default(),
        };
        rows.iter().filter(|row| !row.published.is_empty()).map(of).collect()
    }

    /// By how much SPD is ahead of the better EPD.
    fn lead(&self) -> f64 {
        self.spd - self.epd.max(self.per_vc)
    }
}

fn leads(rows: &[Compared]) -> String {
    let told: Vec<String> = rows.iter().map(|row| format!("{:+.3} at {}", row.lead(), row.threshold)).collect();
    format!("SPD less the better EPD: {}", told.join(", "))
}

/// Table 5.7.
pub(super) fn always_ahead(_: &Table, rows: &[RowResult]) -> (bool, String) {
    let rows = Compared::all(rows);
    (rows.iter().all(|row| row.lead() > 0.0), leads(&rows))
}

/// Table 5.8.
pub(super) fn worst_beats_best(_: &Table, rows: &[RowResult]) -> (bool, String) {
    let rows = Compared::all(rows);
    let worst = rows.iter().map(|row| row.spd).fold(f64::INFINITY, f64::min);
    let best = rows.iter().map(|row| row.epd.max(row.per_vc)).fold(0.0, f64::max);
    (worst > best, format!("the worst of SPD is {worst:.3}, the best of EPD {best:.3}; {}", leads(&rows)))
}

/// Table 5.10. About level: never a tenth apart, as the published rows are not.
pub(super) fn about_level(_: &Table, rows: &[RowResult]) -> (bool, String) {
    let rows = Compared::all(rows);
    let ahead = |row: &Compared| (row.threshold == 500) != (row.lead() > 0.0);
    (rows.iter().all(|row| row.lead().abs() < 0.1 && ahead(row)), leads(&rows))
}

/// Table 5.11. Not falling: no lower at the highest threshold than at the lowest by more than both intervals.
pub(super) fn ahead_and_level(_: &Table, rows: &[RowResult]) -> (bool, String) {
    let rows = Compared::all(rows);
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return (false, "no figures".to_owned()) };
    let level = last.spd + last.error + first.error >= first.spd;
    let falls = last.epd < first.epd && last.per_vc < first.per_vc;
    let ahead = rows.iter().all(|row| row.lead() > 0.0);
    let evidence = format!(
        "{}; from {} to {} cells SPD goes from {:.3} to {:.3}, EPD from {:.3} to {:.3}, per VC from {:.3} to {:.3}",
        leads(&rows),
        first.threshold,
        last.threshold,
        first.spd,
        last.spd,
        first.epd,
        last.epd,
        first.per_vc,
        last.per_vc
    );
    (ahead && level && falls, evidence)
}
