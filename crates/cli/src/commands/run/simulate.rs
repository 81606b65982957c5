//! One run with a progress bar on a terminal. It ends at a signal, and when a capture cannot be written.

use std::path::Path;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use lastmile_results::Run;
use lastmile_studies::memory::Memory;
use lastmile_studies::recording::Captures;
use lastmile_studies::run::{Early, Job, STEPS, Watch, simulate as run};
use lastmile_studies::{Finished, Variant};

use crate::failure::{Exit, Failure, Result};
use crate::interrupt::Interrupt;

use super::arguments::Arguments;

/// State that the runs of a command share.
pub(super) struct Shared<'a> {
    pub(super) interrupt: &'a Interrupt,
    pub(super) memory: &'a Memory,
    pub(super) bars: &'a MultiProgress,
}

/// A finished run, and its files that are not yet written.
pub(in crate::commands) struct Done {
    pub(in crate::commands) finished: Finished,
    /// Complete captures without their final names.
    pub(super) captures: Option<Captures>,
}

impl Done {
    /// The run, after its captures have got their final names.
    pub(in crate::commands) fn into_run(self) -> Result<Run> {
        if let Some(captures) = self.captures {
            captures.commit()?;
        }
        Ok(self.finished.run)
    }
}

/// Why the command ends a run.
pub(super) enum Stop {
    /// A signal, with the exit code.
    Signal(Exit),
    /// A capture cannot be written.
    Failed(Failure),
}

/// The command between the slices of a run.
struct Attendant<'a> {
    interrupt: &'a Interrupt,
    captures: Option<&'a Captures>,
    bar: ProgressBar,
}

impl Watch for Attendant<'_> {
    type Stop = Stop;

    fn pause(&mut self) -> std::result::Result<(), Stop> {
        if let Some(exit) = self.interrupt.requested() {
            return Err(Stop::Signal(exit));
        }
        self.captures.map_or(Ok(()), Captures::check).map_err(|error| Stop::Failed(error.into()))
    }

    fn progress(&mut self, step: u64) -> std::result::Result<(), Stop> {
        self.bar.set_position(step);
        Ok(())
    }
}

/// Simulates `job`, with captures in `directory`. The inner error is the exit code after a signal; `None` for lack of
/// memory.
pub(super) fn simulate(
    arguments: &Arguments,
    job: Job<'_>,
    directory: Option<&Path>,
    shared: &Shared<'_>,
) -> Result<std::result::Result<Done, Option<Exit>>> {
    let files = &arguments.files;
    let captures = match directory {
        Some(directory) if !files.capture.is_empty() => Some(files.captures(directory, job.scenario.network_ref())?),
        _ => None,
    };
    let sink = captures.as_ref().map(Captures::sink);
    let bar = shared.bars.add(progress(job.variant));
    let mut attendant = Attendant { interrupt: shared.interrupt, captures: captures.as_ref(), bar: bar.clone() };
    let ended = run(job, sink, shared.memory, &mut attendant);
    bar.finish_and_clear();
    match ended {
        Ok(finished) => Ok(Ok(Done { finished, captures })),
        Err(Early::Stop(Stop::Signal(exit))) => Ok(Err(Some(exit))),
        Err(Early::Memory) => Ok(Err(None)),
        Err(Early::Stop(Stop::Failed(failure))) => Err(failure),
        Err(Early::Refused(error)) => Err(Failure::new(error)),
    }
}

fn progress(variant: &Variant) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {bar:40} {percent:>3} %  {eta} left")
        .expect("the template is a constant")
        .progress_chars("━━ ");
    let message =
        if variant.label.is_empty() { "simulating".to_owned() } else { format!("simulating {}", variant.label) };
    ProgressBar::new(STEPS).with_style(style).with_message(lastmile_text::escape::line(&message).into_owned())
}
