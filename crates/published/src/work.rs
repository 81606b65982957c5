//! The work of experiments, in runs of a yardstick: a short simulation that shows how fast a machine is.

use std::sync::LazyLock;

use crate::experiments::Experiment;
use crate::pairs::Pairs;

/// Work by publication and table.
static WORK: LazyLock<Pairs<Pairs<f64>>> =
    LazyLock::new(|| toml::from_str(include_str!("../experiments/work.toml")).unwrap_or_default());

/// Work of one experiment, in runs of the [`Yardstick`](crate::Yardstick). A busy machine takes longer.
#[must_use]
pub fn work(experiment: &Experiment) -> f64 {
    WORK.get(experiment.publication).and_then(|tables| tables.get(experiment.table)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::{EXPERIMENTS, experiment};

    #[test]
    fn work_is_of_experiments_and_every_table_with_open_questions_has_some() {
        let mut count = 0;
        for (publication, tables) in WORK.iter() {
            for (table, work) in tables.iter() {
                assert!(experiment(publication, table).is_some() && *work > 0.0, "{publication}/{table}");
                count += 1;
            }
        }
        assert!(count > 50, "{count}");
        for known in EXPERIMENTS.iter() {
            let has_parts =
                crate::reproducible(known.publication).is_some_and(|open| open.tables().contains(&known.table));
            assert!(!has_parts || work(known) > 0.0, "{}/{}", known.publication, known.table);
        }
    }

    #[test]
    fn the_yardstick_runs() {
        crate::Yardstick::new().unwrap().run().unwrap();
    }
}
