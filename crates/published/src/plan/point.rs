//! A point next to those of a table: the figures of a run with one seed, with settings that a reader chooses.

use super::runs::{Pooled, RowRuns, Trials, failed, numbers};
use super::{Experiment, Plan};
use crate::data::Table;
use crate::error::ExperimentError;
use crate::experiments::seeds::SEEDS;
use crate::value::Values;

/// The figures of a run with settings of the reader's choice.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Point {
    /// The figures, by name.
    pub figures: Values,
    /// Name of the shipped scenario of the run that the first figure needs.
    pub scenario: String,
    /// Its text, with the traffic that the settings add.
    pub text: String,
    /// The keys that the settings set, as `key=value`; of two of one key the last holds.
    pub set: Vec<String>,
}

impl Plan {
    /// The figures of `wanted` with one seed, where `settings` lie over everything that the plan and the table set.
    pub(crate) fn point(&self, table: &Table, settings: &Values, wanted: &[&str]) -> Result<Point, ExperimentError> {
        let experiment = self.known(table)?;
        self.check(experiment, table, settings)?;
        let trials = Trials::default();
        let runs = RowRuns::new((self, experiment), (table, settings), &self.open, SEEDS[0], &trials);
        let all = Pooled(vec![runs.map_err(failed)?.over(settings)]);
        let row = &all.0[0];
        let mut figures = Values::new();
        for &name in wanted {
            let found = match (experiment.pooled.get(name), experiment.figures.get(name)) {
                (Some(formula), _) => numbers(&all, std::iter::once((name, formula))),
                (None, Some(formula)) => numbers(row, std::iter::once((name, formula))),
                (None, None) => {
                    let names = experiment.figures.iter().chain(experiment.pooled.iter()).map(|(name, _)| name);
                    return Err(unknown("figure", name, table, names));
                }
            };
            for (name, value) in found.map_err(failed)?.iter() {
                figures.set(name, value.clone());
            }
        }
        let (scenario, text, set) = row.source().map_err(failed)?;
        Ok(Point { figures, scenario, text, set })
    }

    /// Every setting has to be one of the plan, of the table, of its rows or of the experiment.
    fn check(&self, experiment: &Experiment, table: &Table, settings: &Values) -> Result<(), ExperimentError> {
        let rows = table.rows.iter().map(|row| &row.params).chain(experiment.rows.iter().map(|row| &row.params));
        let answers = self.questions.iter().flat_map(|question| &question.answers).map(|answer| &answer.set);
        let values = [&self.open, &table.scenario].into_iter().chain(rows).chain(answers).flat_map(Values::iter);
        let mut known: Vec<&str> = values.map(|(name, _)| name).collect();
        known.extend(experiment.settings.iter().map(|(name, _)| name));
        known.sort_unstable();
        known.dedup();
        match settings.iter().find(|(name, _)| !known.contains(name)) {
            Some((name, _)) => Err(unknown("setting", name, table, known.iter().copied())),
            None => Ok(()),
        }
    }
}

fn unknown<'a>(kind: &'static str, name: &str, table: &Table, known: impl Iterator<Item = &'a str>) -> ExperimentError {
    let known = known.filter(|name| !name.starts_with('_')).collect::<Vec<_>>().join(", ");
    ExperimentError::Unknown { kind, name: name.to_owned(), table: table.id.clone(), known }
}

#[cfg(test)]
mod tests {
    use crate::{Values, point};

    fn settings(text: &str) -> Values {
        toml::from_str(text).unwrap()
    }

    /// Phanse 2000, table 5.1, at 16 kbit/s: 39.9 % by the closed form.
    #[test]
    fn a_published_setting_gives_the_figure_of_the_reproduction() {
        let point = point("phanse2000", "5.1", &settings("up_bps = 16000"), &["downstream_utilisation_pct"]).unwrap();
        let used = point.figures.number("downstream_utilisation_pct").unwrap();
        assert!((used - 39.9).abs() < 0.2, "{used}");
        assert!(point.set.contains(&"access.up.rate=16000 bit/s".to_owned()), "{:?}", point.set);
        assert!(point.text.contains("[[traffic]]"), "{}", point.text);
    }

    /// A setting that the experiment itself fixes gives way to the reader's: the window of figure 3.8 of Brouer 2005.
    #[test]
    fn settings_of_the_reader_lie_over_those_of_the_experiment() {
        let delay = |window: u32| {
            let settings = settings(&format!("uploads = 3\nwindow = {window}"));
            let point = point("brouer2005", "fig-3.8", &settings, &["rtt_mean_ms"]).unwrap();
            point.figures.number("rtt_mean_ms").unwrap()
        };
        let (small, large) = (delay(9375), delay(18750));
        assert!((1.7..2.3).contains(&(large / small)), "{small} {large}");
    }

    #[test]
    fn figures_of_all_seeds_together_are_those_of_the_one_seed() {
        let settings = settings("htb_hysteresis = false");
        let point = point("brouer2005", "fig-7.3", &settings, &["latency_mean_ms", "latency_max_ms"]).unwrap();
        let number = |name| point.figures.number(name).unwrap();
        assert!(number("latency_mean_ms") < number("latency_max_ms"), "{point:?}");
    }

    /// Table 5.8 of Sun 1998 has a run for each scheme, and none without a name.
    #[test]
    fn the_scenario_is_that_of_the_run_that_the_figure_needs() {
        let settings = settings("epd_threshold_cells = 600\nduration_ms = 500");
        let point = point("sun1998", "5.8", &settings, &["goodput_to_input_spd"]).unwrap();
        assert!(point.set.iter().any(|pair| pair.starts_with("switch.two.queue={ kind = \"spd\"")), "{:?}", point.set);
    }

    #[test]
    fn unknown_names_are_answered_with_the_known_ones() {
        let told =
            |table, text, figure| point("phanse2000", table, &settings(text), &[figure]).unwrap_err().to_string();
        let setting = told("5.1", "upbps = 1", "download_time_s");
        assert!(setting.contains("no setting \"upbps\"") && setting.contains("up_bps"), "{setting}");
        let figure = told("5.1", "up_bps = 16000", "time");
        assert!(figure.contains("no figure \"time\"") && figure.contains("download_time_s"), "{figure}");
        let table = told("9.9", "", "time");
        assert!(table.contains("9.9"), "{table}");
        let rate = told("5.1", "up_bps = 'fast'", "download_time_s");
        assert!(rate.contains("fast bit/s"), "{rate}");
    }
}
