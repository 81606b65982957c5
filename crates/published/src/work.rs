//! How long experiments take, in runs of a yardstick: a short simulation that tells how fast a machine is.

use crate::experiments::Experiment;

/// Work of the tables that are simulated, in runs of the yardstick: processor time of a table on one core over that of the yardstick, both measured
/// in an optimised build. Tables left out are done in a moment.
const WORK: &[(&str, &str, f64)] = &[
    ("ano2002", "fig-3", 8800.0),
    ("ano2002", "text-4.1-delay", 12600.0),
    ("ano2002", "fig-5", 6300.0),
    ("ano2002", "1", 23800.0),
    ("ano2002", "fig-7", 20400.0),
    ("ano2002", "fig-8", 14100.0),
    ("brouer2005", "text-2.4", 50.0),
    ("brouer2005", "fig-3.2", 60.0),
    ("brouer2005", "fig-3.6", 8.0),
    ("brouer2005", "fig-3.7", 24.0),
    ("brouer2005", "fig-3.8", 80.0),
    ("brouer2005", "fig-3.9", 130.0),
    ("brouer2005", "fig-3.10", 75.0),
    ("brouer2005", "text-3.8", 200.0),
    ("brouer2005", "fig-6.1", 40.0),
    ("brouer2005", "fig-6.2", 420.0),
    ("brouer2005", "fig-7.1", 5.0),
    ("brouer2005", "fig-7.2", 300.0),
    ("brouer2005", "fig-7.3", 13.0),
    ("brouer2005", "fig-7.5", 300.0),
    ("brouer2005", "fig-7.7", 300.0),
    ("brouer2005", "fig-7.8", 600.0),
    ("brouer2005", "text-8.1", 60.0),
    ("brouer2005", "fig-8.1", 84.0),
    ("brouer2005", "fig-8.3", 140.0),
    ("brouer2005", "fig-8.4", 180.0),
    ("brouer2005", "fig-10.3", 300.0),
    ("brouer2005", "text-11", 110.0),
    ("kalyanaraman1999", "1", 450.0),
    ("kalyanaraman1999", "2", 1100.0),
    ("kalyanaraman1999", "3", 730.0),
    ("kalyanaraman1999", "4", 320.0),
    ("kalyanaraman1999", "5", 1400.0),
    ("phanse2000", "5.1", 170.0),
    ("phanse2000", "5.2", 440.0),
    ("phanse2000", "text-5.1.2", 290.0),
    ("phanse2000", "5.3", 770.0),
    ("phanse2000", "5.4", 340.0),
    ("phanse2000", "5.5", 460.0),
    ("phanse2000", "text-5.2.2", 520.0),
    ("phanse2000", "5.6", 700.0),
    ("phanse2000", "5.7", 790.0),
    ("phanse2000", "fig-5.9", 860.0),
    ("phanse2000", "5.8", 220.0),
    ("phanse2000", "5.9", 180.0),
    ("phanse2000", "5.10", 830.0),
    ("phanse2000", "5.11", 260.0),
    ("phanse2000", "5.12", 1100.0),
    ("sun1998", "5.1", 1300.0),
    ("sun1998", "5.3", 1300.0),
    ("sun1998", "5.4", 1300.0),
    ("sun1998", "5.6", 1100.0),
    ("sun1998", "5.7", 2000.0),
    ("sun1998", "5.8", 2200.0),
    ("sun1998", "5.10", 2500.0),
    ("sun1998", "5.11", 2100.0),
    ("sun1998", "fig-5.12", 550.0),
    ("sun1998", "5.12", 6500.0),
];

/// Work of one experiment, in runs of the [`Yardstick`](crate::Yardstick). A busy machine takes longer.
#[must_use]
pub fn work(experiment: &Experiment) -> f64 {
    let of = |(publication, table, _): &&(&str, &str, f64)| {
        (*publication, *table) == (experiment.publication, experiment.table)
    };
    WORK.iter().find(of).map_or(0.0, |(.., work)| *work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::{EXPERIMENTS, experiment};

    #[test]
    fn work_is_of_experiments_and_every_table_with_open_questions_has_some() {
        for (publication, table, work) in WORK {
            assert!(experiment(publication, table).is_some() && *work > 0.0, "{publication}/{table}");
        }
        for known in EXPERIMENTS {
            let explored =
                crate::explorable(known.publication).is_some_and(|open| open.tables().contains(&known.table));
            assert!(!explored || work(known) > 0.0, "{}/{}", known.publication, known.table);
        }
    }

    #[test]
    fn the_yardstick_runs() {
        crate::Yardstick::new().unwrap().run().unwrap();
    }
}
