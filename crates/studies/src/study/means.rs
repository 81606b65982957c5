//! Means for people: a row for each point, a column for each measure.

use lastmile_results::{format, studied};
use lastmile_text::table::{Kind, Table as Text};

use super::plan::{Seeds, Study};
use super::statistics::Estimate;
use super::table::Table;
use crate::error::Error;

/// The measures that are shown unless others are named, as far as runs have them.
const USUAL: [&str; 6] = ["download_bps", "upload_bps", "ping.p50_s", "ping.p99_s", "goodput_bps", "jain_index"];

/// The means of measures at each point, with 95 % intervals. An empty list stands for the usual measures.
///
/// # Errors
/// No run has the measure.
pub fn means(table: &Table, measures: &[String]) -> Result<Text, Error> {
    let measures = shown(table, measures);
    let keys = table.keys().into_iter().map(|key| (key.to_owned(), Kind::Name));
    let columns = measures.iter().map(|measure| (measure.clone(), Kind::Number));
    let mut text = Text::new(keys.chain([("seeds".to_owned(), Kind::Number)]).chain(columns));
    let estimates = measures.iter().map(|measure| table.estimates(measure)).collect::<Result<Vec<_>, _>>()?;
    for (point, seeds) in table.points() {
        let cell = |(measure, estimates): (&String, &Vec<(Vec<String>, Estimate)>)| {
            let found = estimates.iter().find(|(of, _)| *of == point);
            format::or_dash(found, |(_, estimate)| words(measure, *estimate, seeds))
        };
        let cells: Vec<String> = measures.iter().zip(&estimates).map(cell).collect();
        text.row(point.iter().cloned().chain([seeds.to_string()]).chain(cells));
    }
    Ok(text)
}

/// Sentences below the means: about phases of other times, and about points without the precision that the study wants.
#[must_use]
pub fn notes(study: &Study<'_>, table: &Table) -> Vec<String> {
    let phases = about_phases(table).map(str::to_owned);
    phases.into_iter().chain(about_precision(study, table)).collect()
}

/// A sentence if points have their most seeds, and intervals that are not narrow.
fn about_precision(study: &Study<'_>, table: &Table) -> Option<String> {
    let Seeds::Until(until) = study.seeds else { return None };
    let estimates = table.estimates(&until.measure).unwrap_or_default();
    let wide = estimates.iter().filter(|(_, estimate)| !estimate.is_within(until.share)).count();
    let (measure, points) = (&until.measure, study.space.points.len());
    (wide > 0)
        .then(|| format!("Points whose interval of {measure} is wider after their most seeds: {wide} of {points}."))
}

/// A sentence if the runs measure parts of other times, as where transfers end earlier at one point than at another.
fn about_phases(table: &Table) -> Option<&'static str> {
    let differ = |measure| {
        let estimates = table.estimates(measure).unwrap_or_default();
        let mut means = estimates.iter().map(|(_, estimate)| estimate.mean);
        let first = means.next();
        let apart = |a: f64, b: f64| (a - b).abs() > 1e-9;
        let between = estimates.iter().any(|(_, estimate)| estimate.ci95.is_some_and(|ci95| apart(ci95, 0.0)));
        between || means.any(|mean| first.is_some_and(|first| apart(first, mean)))
    };
    ["phase_from_s", "phase_to_s"].into_iter().any(differ).then_some(
        "Some runs measure a phase of another time, or the whole run: phase_from_s and phase_to_s of each run have it.",
    )
}

/// These measures; for none the usual ones that runs have.
pub(super) fn shown(table: &Table, measures: &[String]) -> Vec<String> {
    let usual = || USUAL.into_iter().filter(|&measure| table.has(measure)).map(str::to_owned).collect();
    if measures.is_empty() { usual() } else { measures.to_vec() }
}

/// An estimate in the unit that the name of its measure ends with, and its number of seeds where a point has more.
fn words(measure: &str, Estimate { mean, ci95, seeds }: Estimate, all: usize) -> String {
    let one: fn(f64) -> String = match studied::unit(measure) {
        "bps" => format::signed_rate,
        "s" => format::seconds,
        "share" => format::percent,
        _ => format::number,
    };
    let interval = ci95.map_or_else(String::new, |ci95| format!(" ± {}", one(ci95)));
    one(mean) + &interval + &format::some_of(seeds as u64, all as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Input;
    use crate::study::plan::{Places, Until};
    use crate::study::space::Space;
    use crate::study::store::Measures;
    use crate::study::table::Entry;

    #[test]
    fn phases_of_other_times_are_told() {
        let space = Space::grid(vec![("rate".to_owned(), vec!["1".to_owned(), "2".to_owned()])]).unwrap();
        let entry = |point, seed, to_s: f64| Entry {
            measures: Measures::from([("phase_from_s".to_owned(), 3.0), ("phase_to_s".to_owned(), to_s)]),
            ..Entry { point, seed, measures: Measures::new() }
        };
        let told = |ends: [f64; 4]| {
            let entries = [(0, 1), (0, 2), (1, 1), (1, 2)].into_iter().zip(ends);
            let entries: Vec<Entry> = entries.map(|((point, seed), to_s)| entry(point, seed, to_s)).collect();
            about_phases(&Table::new(&space, &entries)).is_some()
        };
        assert!(!told([9.0; 4]));
        assert!(told([9.0, 9.0, 8.0, 8.0]) && told([9.0, 8.0, 9.0, 8.0]));
    }

    /// Half the interval of 1 and 3 is 12.7, and that of 2 and 2 nothing. A point without runs has no interval.
    #[test]
    fn points_whose_interval_stays_wide_are_counted() {
        let rates = ["1", "2", "3"].map(str::to_owned).to_vec();
        let space = Space::grid(vec![("rate".to_owned(), rates)]).unwrap();
        let told = |share: f64, runs: &[(usize, f64)]| {
            let entry = |(seed, (point, bps)): (u64, &(usize, f64))| Entry {
                point: *point,
                seed,
                measures: Measures::from([("download_bps".to_owned(), *bps)]),
            };
            let entries: Vec<Entry> = (1..).zip(runs).map(entry).collect();
            let until = Until { measure: "download_bps".to_owned(), share, at_least: 2, at_most: 2 };
            let (input, places) = (Input::default(), Places::new());
            let study =
                Study { input: &input, common: &[], space: &space, places: &places, seeds: &Seeds::Until(until) };
            notes(&study, &Table::new(&space, &entries))
        };
        let runs = [(0, 1.0), (0, 3.0), (1, 2.0), (1, 2.0)];
        let said = |count: u32| {
            format!("Points whose interval of download_bps is wider after their most seeds: {count} of 3.")
        };
        assert_eq!(told(0.05, &runs), [said(1)]);
        assert_eq!(told(7.0, &runs), [""; 0]);
        assert_eq!(told(0.05, &[(0, 1.0), (0, 3.0), (1, 2.0), (1, 2.5)]), [said(2)]);
    }

    #[test]
    fn a_row_is_a_point_and_a_missing_measure_a_dash() {
        let space = Space::grid(vec![("rate".to_owned(), vec!["1".to_owned(), "2".to_owned()])]).unwrap();
        let entry = |point, seed, bps: f64| Entry {
            point,
            seed,
            measures: Measures::from([("download_bps".to_owned(), bps), ("drops".to_owned(), 3.0)]),
        };
        let mut entries = vec![entry(0, 1, 1e6), entry(0, 2, 3e6), entry(1, 1, 5e6)];
        entries[2].measures.insert("ping.p50_s".to_owned(), 0.0123);
        let table = Table::new(&space, &entries);
        entries[0].measures.insert("ping.p99_s".to_owned(), 0.05);
        let text = means(&Table::new(&space, &entries), &["ping.p99_s".to_owned()]).unwrap();
        assert_eq!(text.rows, [["1", "2", "50 ms (1 of 2)"], ["2", "1", "–"]], "one of two seeds has it");
        let text = means(&table, &[]).unwrap();
        // 1 and 3: t(0.975, 1) = 12.706 times the standard error of 1.
        assert_eq!(text.rows, [["1", "2", "2 Mbit/s ± 12.7 Mbit/s", "–"], ["2", "1", "5 Mbit/s", "12.3 ms"]]);
        assert_eq!(means(&table, &["drops".to_owned()]).unwrap().rows[0][2], "3 ± 0");
        assert!(means(&table, &["download".to_owned()]).unwrap_err().to_string().contains("download_bps"));
    }
}
