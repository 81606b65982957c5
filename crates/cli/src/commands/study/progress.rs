//! Progress of a study and its failed runs, in words: a line that is redrawn on a terminal, plain lines elsewhere.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lastmile_studies::study::journal::Record;
use lastmile_studies::study::plan::{Failure as Failed, Progress as Runs};

/// Time between two plain lines.
const EVERY: Duration = Duration::from_secs(10);
/// Failed runs that are listed.
const SHOWN: usize = 20;

pub(super) struct Progress {
    bar: ProgressBar,
    /// The last plain line; `None` on a terminal.
    last: Option<Instant>,
}

impl Progress {
    pub(super) fn new(is_watched: bool) -> Self {
        let target = if is_watched { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style = ProgressStyle::with_template("simulating {bar:30} {msg}")
            .expect("the template is a constant")
            .progress_chars("\u{2501}\u{2501} ");
        let bar = ProgressBar::with_draw_target(Some(1), target).with_style(style);
        Self { bar, last: (!is_watched).then(Instant::now) }
    }

    pub(super) fn show(&mut self, runs: Runs, record: &Record) {
        let words = words(runs, record);
        match &mut self.last {
            None => {
                self.bar.set_length(runs.runs as u64);
                self.bar.set_position((runs.finished + runs.failed) as u64);
                self.bar.set_message(words);
            }
            Some(last) if last.elapsed() >= EVERY => {
                *last = Instant::now();
                // With standard error closed there is no reader.
                let _ = writeln!(io::stderr(), "simulating: {words}");
            }
            Some(_) => {}
        }
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// The state of a study: `12 of 24 runs, 3.1 runs/s, about 4 s left`.
pub(super) fn words(runs: Runs, record: &Record) -> String {
    let Runs { runs, finished, failed, .. } = runs;
    let mut words = format!("{} of {runs} runs", finished + failed);
    if failed > 0 {
        words += &format!(", {failed} failed");
    }
    if let Some(rate) = record.rate() {
        let left = runs.saturating_sub(finished + failed) as f64 / rate;
        words += &format!(", {} runs/s", lastmile_results::format::number(rate));
        if left > 0.0 {
            words += &format!(", about {} left", about(left));
        }
    }
    words
}

/// Runs without a result, in words.
pub(super) fn failures(all: &[Failed]) -> Vec<String> {
    let words = |Failed { point, seed, reason }: &Failed| {
        format!("failed: {point}{}seed {seed}: {reason}", if point.is_empty() { "" } else { ", " })
    };
    let more = all.len().saturating_sub(SHOWN);
    let rest = (more > 0).then(|| format!("... and {more} more failed runs"));
    all.iter().take(SHOWN).map(words).chain(rest).collect()
}

/// An approximate time, without seconds from minutes on.
fn about(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 100.0 => format!("{:.0} s", seconds.max(1.0).ceil()),
        seconds if seconds < 6000.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_this_process_and_the_rest_follows_from_it() {
        let runs = Runs { runs: 100, finished: 50, failed: 2, simulated: 20 };
        let record = Record { simulated: 20, wall_s: 10.0, ..Record::default() };
        assert_eq!(words(runs, &record), "52 of 100 runs, 2 failed, 2 runs/s, about 24 s left");
        assert_eq!(words(runs, &Record::default()), "52 of 100 runs, 2 failed");
        assert_eq!(about(9000.0), "2.5 h");
    }
}
