//! `lastmile lab`: a scenario with real packets and the kernel's TCP, alone or beside its simulation.

mod beside;
mod departures;
mod outcome;
mod plan;
mod tcp;

use std::path::PathBuf;
use std::time::Duration as StdDuration;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lastmile_live::emulate::Ended;
use lastmile_live::lab;
use lastmile_live::stop::Stop;
use lastmile_results::{Run, table, write};
use lastmile_scenario::Scenario;
use lastmile_units::{Duration, Instant};

use super::run;
use super::run::variants::{Variant, policy_override};
use crate::exit::{Exit, Failure, Result};
use crate::printer::Printer;

use self::outcome::{Document, LIVE, Measured};
use self::plan::Plan;

/// Run a scenario with real packets and the kernel's TCP
///
/// Makes a client and a server in network namespaces, carries packets between them along the scenario's links by the code that
/// simulates them, and lets its traffic run over the kernel's TCP. Takes as long as the scenario lasts; the results have the shape of
/// `lastmile run`. What the kernel cannot do as the scenario says is told in warnings. Linux, as root.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Scenario file, with an [access] line
    pub(super) scenario: PathBuf,

    /// Override a key of the file, such as access.up.rate="1 Mbit/s" or traffic.upload.start=10s
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,

    /// Share the upstream by a policy: the name of a ready one, or a file; short for --set access.policy=NAME
    #[arg(long, value_name = "NAME")]
    pub(super) policy: Option<String>,

    /// How long it lasts; short for --set duration=TIME
    #[arg(long, value_name = "TIME")]
    pub(super) duration: Option<Duration>,

    /// Congestion control of all transfers, by the kernel's name, such as bbr [default: the scenario's variant]
    #[arg(long, value_name = "NAME")]
    pub(super) congestion: Option<String>,

    /// Simulate it too, and set the results side by side
    #[arg(long)]
    pub(super) both: bool,

    /// Live runs, one after the other; medians and their spread are told
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(super) runs: u16,

    /// Directory for the results; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,

    /// Print JSON: the summary, and what only real packets have under "live"
    #[arg(long)]
    pub(super) json: bool,
}

/// `lastmile run --live`.
impl From<&run::Arguments> for Arguments {
    fn from(run: &run::Arguments) -> Self {
        let seed = run.seed.map(|seed| format!("seed={seed}"));
        Self {
            scenario: run.scenario.clone(),
            set: run.set.iter().cloned().chain(seed).collect(),
            policy: run.policy.clone(),
            duration: None,
            congestion: None,
            both: false,
            runs: 1,
            out: run.out.clone(),
            json: run.json,
        }
    }
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let variant = Variant::new("", &overrides(arguments), Vec::new());
    let scenario = Scenario::load(&arguments.scenario, &variant.overrides).map_err(Failure::Report)?;
    printer.warnings(scenario.warnings());
    let plan = Plan::of(&scenario, arguments.congestion.as_deref())?;
    for warning in plan.warnings() {
        printer.talk(&format!("warning: {warning}"));
    }
    let simulated = match simulated(arguments, &variant, &scenario, &plan, printer)? {
        Ok(simulated) => simulated,
        Err(interrupted) => return Ok(interrupted),
    };
    let live = match live(arguments, &variant, &scenario, &plan, printer)? {
        Ok(live) => live,
        Err(interrupted) => return Ok(interrupted),
    };
    let report = match &arguments.out {
        Some(out) => Some(write_files(out, simulated.as_ref(), &live)?),
        None => None,
    };
    print(arguments, simulated.as_ref(), &live, printer)?;
    if let Some(report) = report {
        let line = format!("report: {}", report.display());
        if arguments.json { printer.talk(&line) } else { printer.data(&format!("\n{line}\n"))? }
    }
    Ok(Exit::Done)
}

fn overrides(arguments: &Arguments) -> Vec<String> {
    let duration = arguments.duration.map(|duration| format!("duration={duration}"));
    let policy = arguments.policy.as_deref().map(policy_override);
    arguments.set.iter().cloned().chain(duration).chain(policy).collect()
}

/// The same with simulated time, if it is asked for. The inner error is how the program is to end, since a signal has come.
fn simulated(
    arguments: &Arguments,
    variant: &Variant,
    scenario: &Scenario,
    plan: &Plan<'_>,
    printer: &Printer,
) -> Result<std::result::Result<Option<Run>, Exit>> {
    if !arguments.both {
        return Ok(Ok(None));
    }
    let same = scenario.clone().with_traffic(|traffic| plan.has(traffic));
    let options = run::Arguments::of_one(arguments.scenario.clone());
    let variants = [Variant { label: "simulated".to_owned(), ..variant.clone() }];
    let done = run::simulate_all(&options, &variants, &[same], printer)?;
    Ok(done.map(|mut done| done.pop().map(|done| done.run)))
}

/// The live runs. The inner error is how the program is to end, since a signal has come.
fn live(
    arguments: &Arguments,
    variant: &Variant,
    scenario: &Scenario,
    plan: &Plan<'_>,
    printer: &Printer,
) -> Result<std::result::Result<Vec<Measured>, Exit>> {
    // Before anything is made: from here on a signal ends the run, and the run takes away what it made.
    let stop = Stop::on_signals()?;
    let mut measured = Vec::new();
    for number in 1..=arguments.runs {
        let bar = progress(plan.config().duration, number, arguments.runs, printer);
        let mut tick = |now: Instant| bar.set_position(now.since(Instant::ZERO).as_ms());
        let outcome = lab::run(plan.config(), plan.flows(), &stop, &mut tick).map_err(Failure::from);
        bar.finish_and_clear();
        let outcome = outcome?;
        if let Ended::Signal(signal) = outcome.line.ended {
            return Ok(Err(Exit::Interrupted(u8::try_from(signal).unwrap_or(0))));
        }
        let label = if arguments.runs > 1 { format!("live {number}") } else { "live".to_owned() };
        let origin = run::origin(&arguments.scenario, variant, scenario);
        measured.push(outcome::measured(&origin, plan, &outcome, label));
    }
    Ok(Ok(measured))
}

fn progress(duration: Duration, number: u16, runs: u16, printer: &Printer) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {bar:40} {percent:>3} %  {eta} left")
        .expect("the template is a constant")
        .progress_chars("━━ ");
    let target = if printer.is_watched() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let message = if runs > 1 { format!("live run {number} of {runs}") } else { "live".to_owned() };
    let bar = ProgressBar::with_draw_target(Some(duration.as_ms()), target).with_style(style).with_message(message);
    bar.enable_steady_tick(StdDuration::from_millis(500));
    bar
}

/// Writes the files of one run into `out`; of several, each into a folder of its own, and a page that compares them.
fn write_files(out: &std::path::Path, simulated: Option<&Run>, live: &[Measured]) -> Result<PathBuf> {
    let alone = simulated.is_none() && live.len() == 1;
    let folder = |run: &Run| if alone { out.to_owned() } else { out.join(run::variants::file_name(&run.label)) };
    if let Some(run) = simulated {
        write::write_all(&folder(run), run).map_err(Failure::new)?;
    }
    for Measured { run, live } in live {
        let mut text = serde_json::to_vec_pretty(live).map_err(std::io::Error::from)?;
        text.push(b'\n');
        write::write_all_with(&folder(run), run, &[(LIVE, &text)]).map_err(Failure::new)?;
    }
    let report = out.join(write::REPORT);
    if !alone {
        let runs: Vec<Run> = simulated.into_iter().chain(live.iter().map(|measured| &measured.run)).cloned().collect();
        write::write_comparison(&report, &runs, None).map_err(Failure::new)?;
    }
    Ok(report)
}

fn print(arguments: &Arguments, simulated: Option<&Run>, live: &[Measured], printer: &mut Printer) -> Result<()> {
    match (simulated, live) {
        (None, [only]) if arguments.json => Ok(printer.json(&only.document())?),
        (None, [only]) => {
            let summary = &only.run.summary;
            printer.heading(&summary.scenario)?;
            let table = table::run(summary, printer.width());
            Ok(printer.data(&format!("\n{table}\n{}", only.live.table()))?)
        }
        _ => {
            let comparison = beside::Comparison::new(simulated, live);
            if arguments.json {
                let runs: Vec<Document<'_>> = live.iter().map(Measured::document).collect();
                return Ok(printer.json(&beside::Beside { comparison, simulated, live: runs })?);
            }
            printer.heading(comparison.scenario)?;
            let talk: String = live.iter().map(|measured| measured.live.incidents(&measured.run.label)).collect();
            Ok(printer.data(&format!("\n{}{talk}", comparison.table()))?)
        }
    }
}
