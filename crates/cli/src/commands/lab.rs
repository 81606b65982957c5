//! `lastmile lab`: a scenario with real packets and the kernel's TCP, optionally compared with its
//! simulation.

mod capture;
mod dashboard;
mod text;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use lastmile_lab::capture::{self as lab_capture, Recorder};
use lastmile_lab::plan::{Kernel, Plan};
use lastmile_lab::summary::{self, Document, Measured};
use lastmile_lab::what_if::{Alternatives, Script};
use lastmile_live::emulate::Ended;
use lastmile_live::stop::Stop;
use lastmile_model::Network;
use lastmile_model::outcome::Outcome;
use lastmile_results::comparison::Comparison;
use lastmile_results::live_comparison::LiveComparison;
use lastmile_results::{Run, Summary, json, table, write};
use lastmile_scenario::{Override, Scenario};
use lastmile_studies::recording::file;
use lastmile_studies::variant::file_name;
use lastmile_studies::{Input, Variant};
use serde::Serialize;

use super::emulate::two_nodes;
use super::emulate::what_if::Line;
use super::live_view::Display;
use super::run::options::{Changes, Files};
use super::web::{Opened, Web};
use super::{leftovers, run};
use crate::failure::{Exit, Failure, Result};
use crate::folders::Folders;
use crate::interrupt::Interrupt;
use crate::printer::Printer;

use self::capture::Packets;
use self::dashboard::Page;
use self::watch::Watcher;

/// Run a scenario with real packets and the kernel's TCP
///
/// Creates a client and a server in network namespaces, carries packets between them along the
/// scenario's links, and runs its traffic over the kernel's TCP. The code of the links is that of
/// the simulation. A run takes as long as the scenario's duration; meanwhile a terminal shows a
/// live view, and `q` leaves it. The results have the form of those of `lastmile run`.
/// Warnings name the settings of the scenario that the kernel does not support. Linux, as root.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Scenario file, with an [access] line
    pub(super) scenario: PathBuf,

    #[command(flatten)]
    pub(super) changes: Changes,

    /// Congestion control of all transfers, by the kernel's name, such as bbr [default: the
    /// scenario's variant]
    #[arg(long, value_name = "NAME")]
    pub(super) congestion: Option<String>,

    /// Receivers acknowledge as Linux does by default (as --set tcp.quick_acks=true): 16 single
    /// segments at the beginning and after each pause, and the last segment of a burst at once;
    /// otherwise every second segment
    #[arg(long)]
    pub(super) quick_acks: bool,

    /// Nodes of the file for the two hosts [default: those of the access line; without one, the two
    /// ends of the traffic]
    #[arg(long, value_name = "CLIENT,SERVER", value_parser = two_nodes)]
    pub(super) between: Option<(String, String)>,

    /// Simulate the scenario too, and compare the results
    #[arg(long)]
    pub(super) both: bool,

    /// Number of live runs in sequence; shows medians and their spread
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(super) runs: u16,

    #[command(flatten)]
    pub(super) files: Files,

    #[command(flatten)]
    pub(super) display: Display,

    #[command(flatten)]
    pub(super) web: Web,

    /// Print JSON: the summary, and results of real packets only under "live"
    #[arg(long)]
    pub(super) json: bool,
}

/// Name of the file with the results of real packets only.
const LIVE: &str = "live.json";

/// Label of the simulated run.
const SIMULATED: &str = "simulated";

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let variant = Variant::new("", &overrides(arguments), Vec::new());
    let (script, scenario) = Script::read(&arguments.scenario, &variant.overrides, arguments.between.as_ref())?;
    printer.warnings(scenario.warnings());
    let kernel = Kernel { congestion: arguments.congestion.as_deref() };
    let mut plan = Plan::of(&scenario, arguments.between.as_ref(), kernel)?;
    plan.reserve_descriptors()?;
    for warning in plan.warnings() {
        printer.talk(&format!("warning: {warning}"));
    }
    let _folders = folders(arguments)?;
    let dashboard = arguments.web.open(false)?;
    dashboard.iter().for_each(|dashboard| dashboard.tell(printer));
    let simulated = match simulated(arguments, &variant, &scenario, printer)? {
        Ok(simulated) => simulated,
        Err(interrupted) => return Ok(interrupted),
    };
    // A second signal ends the program at once, also while packets run.
    Interrupt::note()?;
    leftovers::remove(printer);
    let alternatives = dashboard.as_ref().and_then(|_| {
        plan.record_headers();
        let line = &plan.config().line;
        Alternatives::of(script, &scenario, [&line.up, &line.down]).map(Arc::new)
    });
    let live =
        match served(dashboard, alternatives, |page| live(arguments, &variant, &scenario, (&plan, page), printer))? {
            Ok(live) => live,
            Err(interrupted) => return Ok(interrupted),
        };
    let report = match &arguments.files.out {
        Some(out) => Some(write_files(arguments, out, simulated.as_ref(), &live)?),
        None => None,
    };
    print(arguments, simulated.as_ref(), &live, printer)?;
    if let Some(report) = report {
        let line = format!("report: {}", report.display());
        if arguments.json { printer.talk(&line) } else { printer.data(&format!("\n{line}\n"))? }
    }
    Ok(Exit::Done)
}

fn overrides(arguments: &Arguments) -> Vec<Override> {
    let quick_acks = arguments.quick_acks.then(|| Override::from_argument("tcp.quick_acks=true", "--quick-acks"));
    let set = arguments.changes.set.iter().cloned().chain(quick_acks).collect();
    Changes { set, ..arguments.changes.clone() }.overrides(None)
}

/// The simulated run, if requested. The inner error is the exit code after a signal.
fn simulated(
    arguments: &Arguments,
    variant: &Variant,
    scenario: &Scenario,
    printer: &mut Printer,
) -> Result<std::result::Result<Option<Run>, Exit>> {
    if !arguments.both {
        return Ok(Ok(None));
    }
    let options =
        run::Arguments { files: arguments.files.clone(), ..run::Arguments::of_one(arguments.scenario.clone()) };
    let variants = [Variant { label: SIMULATED.to_owned(), ..variant.clone() }];
    let interrupt = Interrupt::watch()?;
    match run::simulate_all(&options, &variants, std::slice::from_ref(scenario), &interrupt, printer)? {
        Ok(mut done) => Ok(Ok(done.pop().map(run::Done::into_run).transpose()?)),
        Err(interrupted) => Ok(Err(interrupted)),
    }
}

/// The result of `work`, during which the dashboard is served.
fn served<T>(
    dashboard: Option<Opened>,
    alternatives: Option<Arc<Alternatives>>,
    work: impl FnOnce(Option<Page>) -> Result<T>,
) -> Result<T> {
    let Some(dashboard) = dashboard else { return work(None) };
    let (hub, end) = (dashboard.hub("lastmile lab", Line(alternatives.clone())), Stop::new()?);
    let ending = end.handle()?;
    std::thread::scope(|scope| {
        let (served, end) = (Arc::clone(&hub), &end);
        scope.spawn(move || dashboard.serve(end, &served));
        let result = work(Some(Page { hub, alternatives }));
        ending.stop();
        result
    })
}

/// The live runs. The inner error is the exit code after a signal.
fn live(
    arguments: &Arguments,
    variant: &Variant,
    scenario: &Scenario,
    (plan, page): (&Plan<'_>, Option<Page>),
    printer: &Printer,
) -> Result<std::result::Result<Vec<Measured>, Exit>> {
    // Before namespaces are created: from here on a signal ends the run, and the run removes them.
    let stop = Stop::on_signals()?;
    let watcher = Watcher::new(scenario.name(), plan, (arguments.display, page), arguments.runs);
    let mut measured = Vec::new();
    for number in 1..=arguments.runs {
        let label = label(arguments, number);
        let (tap, recorder) = match &arguments.files.out {
            Some(out) if !arguments.files.capture.is_empty() => {
                let (folder, network) = (folder(arguments, out, &label), plan.network());
                let captures = Packets(arguments.files.captures(&folder, network)?);
                let (tap, recorder) = lab_capture::record(captures, network.links.len());
                (Some(tap), Some(recorder))
            }
            _ => (None, None),
        };
        let mut watch = watcher.run(number, printer);
        let outcome = plan.run(&stop, tap, &mut |progress| watch.tick(progress));
        watch.finish();
        let outcome = outcome?;
        let missed = recorder.map(written).transpose()?;
        if let Ended::Signal(signal) = outcome.line.ended {
            return Ok(Err(Exit::Interrupted(u8::try_from(signal).unwrap_or(0))));
        }
        let origin = Input::of_file(&arguments.scenario).origin(variant, scenario);
        let mut run = summary::measured(&origin, plan, &outcome, label);
        run.live.capture_missed_packets = missed;
        measured.push(run);
    }
    Ok(Ok(measured))
}

/// Renames the captures to their final names, and returns the number of packets missing from them.
fn written(recorder: Recorder<Packets>) -> Result<u64> {
    let (Packets(captures), missed) = recorder.finish();
    captures.commit()?;
    Ok(missed)
}

/// A single live run of a scenario: its links and traffic, and its outcome in the form of the
/// simulator's. The inner error is the exit code after a signal.
pub(super) fn run_once(scenario: &Scenario, stop: &Stop) -> Result<std::result::Result<(Network, Outcome), Exit>> {
    let plan = Plan::of(scenario, None, Kernel::default())?;
    let outcome = plan.run(stop, None, &mut |_| ())?;
    if let Ended::Signal(signal) = outcome.line.ended {
        return Ok(Err(Exit::Interrupted(u8::try_from(signal).unwrap_or(0))));
    }
    Ok(Ok((plan.network().clone(), summary::as_simulated(&plan, &outcome))))
}

/// The document that `--json` prints for several runs.
#[derive(Serialize)]
struct SideBySide<'a> {
    #[serde(flatten)]
    comparison: LiveComparison,
    simulated: Option<&'a Summary>,
    live: Vec<Document<'a>>,
}

/// The simulated run, if any, and the live runs.
fn all(simulated: Option<&Run>, live: &[Measured]) -> Vec<Run> {
    simulated.into_iter().chain(live.iter().map(|measured| &measured.run)).cloned().collect()
}

/// The folder for the files of the run with this label: `out` for a single run, or a folder in it.
fn folder(arguments: &Arguments, out: &Path, label: &str) -> PathBuf {
    let alone = !arguments.both && arguments.runs == 1;
    if alone { out.to_owned() } else { out.join(file_name(label)) }
}

/// The label of the live run of this number.
fn label(arguments: &Arguments, number: u16) -> String {
    if arguments.runs > 1 { format!("live {number}") } else { "live".to_owned() }
}

/// The folders for all files; none without `--out`.
fn folders(arguments: &Arguments) -> Result<Folders> {
    let mut folders = Folders::default();
    let Some(out) = &arguments.files.out else { return Ok(folders) };
    folders.prepare(out, &[write::REPORT], "--out")?;
    let live = (1..=arguments.runs).map(|number| label(arguments, number));
    for label in live.chain(arguments.both.then(|| SIMULATED.to_owned())) {
        let folder = folder(arguments, out, &label);
        folders.prepare(&folder, &write::FILES, "--out")?;
        folders.prepare(&folder, &[LIVE], "--out")?;
        for link in &arguments.files.capture {
            folders.prepare(&folder, &[&file(link)], &format!("--capture {link}"))?;
        }
    }
    Ok(folders)
}

/// Writes the files of the runs, and for several runs a page that compares them.
fn write_files(arguments: &Arguments, out: &Path, simulated: Option<&Run>, live: &[Measured]) -> Result<PathBuf> {
    let alone = simulated.is_none() && live.len() == 1;
    let folder = |run: &Run| folder(arguments, out, &run.label);
    if let Some(run) = simulated {
        write::write_all(&folder(run), run).map_err(Failure::new)?;
    }
    for Measured { run, live } in live {
        write::write_all_with(&folder(run), run, &[(LIVE, json::pretty(live).as_bytes())]).map_err(Failure::new)?;
    }
    let report = out.join(write::REPORT);
    if !alone {
        write::write_comparison(&report, &Comparison::of(all(simulated, live))).map_err(Failure::new)?;
    }
    Ok(report)
}

fn print(arguments: &Arguments, simulated: Option<&Run>, live: &[Measured], printer: &mut Printer) -> Result<()> {
    match (simulated, live) {
        (None, [only]) if arguments.json => Ok(printer.json(&only.document())?),
        (None, [only]) => {
            let summary = &only.run.summary;
            printer.heading(&summary.run.scenario)?;
            let table = table::run(summary, printer.width());
            Ok(printer.data(&format!("\n{table}\n{}", text::table(&only.live)))?)
        }
        _ => {
            let Some(comparison) = LiveComparison::new(&all(simulated, live)) else { return Ok(()) };
            if arguments.json {
                let live: Vec<Document<'_>> = live.iter().map(Measured::document).collect();
                let simulated = simulated.map(|run| &run.summary);
                return Ok(printer.json(&SideBySide { comparison, simulated, live })?);
            }
            printer.heading(&comparison.scenario)?;
            let talk: String =
                live.iter().map(|measured| text::incidents(&measured.live, &measured.run.label)).collect();
            Ok(printer.data(&format!("\n{}{talk}", comparison.table(printer.width())))?)
        }
    }
}
