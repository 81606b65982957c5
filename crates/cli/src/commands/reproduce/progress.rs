//! Progress of a reproduction: a bar on a terminal, lines if standard error is a file or a pipe.

use std::io::{self, Write as _};
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lastmile_published::{Experiment, Table, Yardstick, work};

use crate::failure::{Failure, Result};
use crate::printer::Printer;

/// Time between two lines.
const EVERY: Duration = Duration::from_secs(10);

/// The weights of all parts, and the display.
pub(super) struct Progress {
    /// Work of each part, by table, in thousandths of all work.
    weights: Vec<Vec<u64>>,
    bar: ProgressBar,
    /// The lines, if no terminal shows the bar.
    lines: Option<Mutex<Lines>>,
}

struct Lines {
    begun: Instant,
    last: Instant,
}

impl Progress {
    /// Prints the expected time, unless it is short or there is only one table.
    pub(super) fn new(
        experiments: &[(&Table, Experiment)],
        threads: Option<NonZeroUsize>,
        printer: &mut Printer,
    ) -> Result<Self> {
        let all: f64 = experiments.iter().map(|(_, known)| work(known)).sum();
        let several = experiments.len() > 1 && all > 0.0;
        if several {
            let threads = threads.or_else(|| available_parallelism().ok()).map_or(1, NonZeroUsize::get);
            let seconds = all * yardstick()?.as_secs_f64() / threads as f64;
            printer.talk(&format!(
                "{} tables on {threads} {}: {} for these",
                experiments.len(),
                if threads == 1 { "thread" } else { "threads" },
                about(seconds)
            ));
        }
        let weights: Vec<Vec<u64>> = experiments.iter().map(|(table, known)| weights(table, known, all)).collect();
        let style = ProgressStyle::with_template("reproducing {bar:40} {percent:>3} %  {eta} left")
            .expect("the template is a constant")
            .progress_chars("\u{2501}\u{2501} ");
        let watched = printer.is_watched();
        let target = if watched { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let now = Instant::now();
        Ok(Self {
            bar: ProgressBar::with_draw_target(Some(weights.iter().flatten().sum()), target).with_style(style),
            weights,
            lines: (several && !watched).then(|| Mutex::new(Lines { begun: now, last: now })),
        })
    }

    /// Records a finished part of a table.
    pub(super) fn made(&self, table: usize, part: usize) {
        self.bar.inc(self.weights[table][part]);
        let Some(lines) = &self.lines else { return };
        let Ok(mut lines) = lines.lock() else { return };
        let now = Instant::now();
        if now - lines.last < EVERY {
            return;
        }
        lines.last = now;
        let share = self.bar.position() as f64 / self.bar.length().unwrap_or(1).max(1) as f64;
        // With standard error closed there is no reader.
        let _ = writeln!(io::stderr(), "{}", line(share, now - lines.begun));
    }

    /// Runs `print` without the bar on the terminal.
    pub(super) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// The time of a reference computation: the fastest of a few runs, because the first is cold and
/// others may be interrupted.
fn yardstick() -> Result<Duration> {
    const RUNS: usize = 5;
    let yardstick = Yardstick::new().map_err(Failure::new)?;
    let mut fastest = Duration::MAX;
    for _ in 0..RUNS {
        let begun = Instant::now();
        yardstick.run().map_err(Failure::new)?;
        fastest = fastest.min(begun.elapsed());
    }
    Ok(fastest)
}

/// The weights of a table's parts, at least one each, so that the bar moves with formulas, too.
fn weights(table: &Table, experiment: &Experiment, all: f64) -> Vec<u64> {
    const ALL: f64 = 1e6;
    let of_table = if all > 0.0 { ALL * work(experiment) / all } else { 0.0 };
    experiment.shares(table).iter().map(|share| 1 + (of_table * share) as u64).collect()
}

fn line(share: f64, elapsed: Duration) -> String {
    let left = elapsed.as_secs_f64() * (1.0 - share) / share.max(1e-6);
    format!("reproducing: {:.0} %, {} left", 100.0 * share, about(left))
}

/// An approximate time, without seconds from minutes on.
fn about(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 100.0 => format!("about {:.0} s", seconds.max(1.0).ceil()),
        seconds if seconds < 6000.0 => format!("about {:.0} min", seconds / 60.0),
        seconds => format!("about {:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_from_what_is_done() {
        assert_eq!(line(0.25, Duration::from_secs(300)), "reproducing: 25 %, about 15 min left");
        assert_eq!(line(0.5, Duration::from_secs(20)), "reproducing: 50 %, about 20 s left");
        assert_eq!(about(0.2), "about 1 s");
        assert_eq!(about(9000.0), "about 2.5 h");
    }

    #[test]
    fn parts_weigh_what_they_take() {
        let publications = lastmile_published::publications().unwrap();
        let table = publications[4].table("5.7").unwrap();
        let experiment = lastmile_published::experiment("sun1998", "5.7").unwrap();
        let all = weights(table, &experiment, work(&experiment));
        assert_eq!(all.len(), experiment.parts(table));
        let sum: u64 = all.iter().sum();
        assert!((900_000..1_100_000).contains(&sum), "{sum}");
        assert!(all[0] > 2 * all[1], "the base case has ten seeds, the others three");
        assert_eq!(
            weights(
                publications[0].table("fig-4").unwrap(),
                &lastmile_published::experiment("ano2002", "fig-4").unwrap(),
                0.0
            ),
            [1]
        );
    }
}
