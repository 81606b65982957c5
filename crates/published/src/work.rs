//! How long experiments take, in runs of a yardstick: a short simulation that tells how fast a machine is.

use crate::experiments::Experiment;

/// Work of the tables that are simulated, in runs of the yardstick: processor time of a table on one core over that of the yardstick, both measured
/// in an optimised build. Tables left out are done in a moment.
const WORK: &[(&str, &str, f64)] = &[
    ("ano2002", "fig-3", 15500.0),
    ("ano2002", "text-4.1-delay", 11200.0),
    ("ano2002", "fig-5", 3300.0),
    ("ano2002", "1", 27300.0),
    ("ano2002", "fig-7", 14900.0),
    ("ano2002", "fig-8", 12600.0),
    ("brouer2005", "text-2.4", 83.0),
    ("brouer2005", "fig-3.2", 46.0),
    ("brouer2005", "fig-3.6", 6.0),
    ("brouer2005", "fig-3.7", 21.0),
    ("brouer2005", "fig-3.8", 110.0),
    ("brouer2005", "fig-3.9", 95.0),
    ("brouer2005", "fig-3.10", 55.0),
    ("brouer2005", "text-3.8", 150.0),
    ("brouer2005", "fig-6.1", 46.0),
    ("brouer2005", "fig-6.2", 140.0),
    ("brouer2005", "fig-7.1", 3.0),
    ("brouer2005", "fig-7.2", 95.0),
    ("brouer2005", "fig-7.3", 11.0),
    ("brouer2005", "fig-7.5", 120.0),
    ("brouer2005", "fig-7.7", 120.0),
    ("brouer2005", "fig-7.8", 250.0),
    ("brouer2005", "text-8.1", 71.0),
    ("brouer2005", "fig-8.1", 93.0),
    ("brouer2005", "fig-8.3", 170.0),
    ("brouer2005", "fig-8.4", 290.0),
    ("brouer2005", "fig-10.3", 360.0),
    ("brouer2005", "text-11", 140.0),
    ("kalyanaraman1999", "1", 370.0),
    ("kalyanaraman1999", "2", 1500.0),
    ("kalyanaraman1999", "3", 1000.0),
    ("kalyanaraman1999", "4", 440.0),
    ("kalyanaraman1999", "5", 1500.0),
    ("phanse2000", "5.1", 170.0),
    ("phanse2000", "5.2", 390.0),
    ("phanse2000", "text-5.1.2", 260.0),
    ("phanse2000", "5.3", 2100.0),
    ("phanse2000", "5.4", 350.0),
    ("phanse2000", "5.5", 460.0),
    ("phanse2000", "text-5.2.2", 380.0),
    ("phanse2000", "5.6", 680.0),
    ("phanse2000", "5.7", 1300.0),
    ("phanse2000", "fig-5.9", 1300.0),
    ("phanse2000", "5.8", 260.0),
    ("phanse2000", "5.9", 170.0),
    ("phanse2000", "5.10", 540.0),
    ("phanse2000", "5.11", 390.0),
    ("phanse2000", "5.12", 1900.0),
    ("sun1998", "5.1", 1300.0),
    ("sun1998", "5.3", 880.0),
    ("sun1998", "5.4", 1100.0),
    ("sun1998", "5.6", 1300.0),
    ("sun1998", "5.7", 2400.0),
    ("sun1998", "5.8", 7900.0),
    ("sun1998", "5.10", 3200.0),
    ("sun1998", "5.11", 3800.0),
    ("sun1998", "fig-5.12", 2600.0),
    ("sun1998", "5.12", 9000.0),
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
