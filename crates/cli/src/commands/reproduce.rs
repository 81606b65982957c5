//! `lastmile reproduce`: published figures compared with the closed form, with simulations, and
//! with `--live` with real packets.

mod draw;
mod print;
mod progress;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use lastmile_published::{
    EXPERIMENTS, Experiment, ExperimentError, Part, Publication, Reproduction, Table as PublishedTable, TableResult,
    experiment, publications, select,
};
use lastmile_text::table::{Kind, Table};

#[cfg(target_os = "linux")]
use {
    lastmile_live::stop::Stop, lastmile_model::Network, lastmile_model::outcome::Outcome, lastmile_published::live,
    lastmile_scenario::Scenario,
};

#[cfg(target_os = "linux")]
use crate::commands::leftovers;
use crate::failure::{Exit, Failure, Result};
use crate::folders::Folders;
use crate::interrupt::Interrupt;
use crate::printer::Printer;
use lastmile_studies::parallel::in_order;
use progress::Progress;

/// Compare published results with simulated ones: published | theory | simulated | deviation
///
/// Each table lists the assumptions for details that the publication leaves open, and its claims. A
/// claim is shown, not shown, dependent on a named assumption, or quoted without a simulation.
/// Several tables end with a summary. The exit code is 1 if a claim is not shown or depends on an
/// assumption.
#[derive(Args)]
pub(crate) struct Arguments {
    /// A publication, PUBLICATION/TABLE, or, after one of these, ids of further tables of it
    /// [default: all that can be reproduced]
    #[arg(value_name = "PUBLICATION[/TABLE]")]
    tables: Vec<String>,

    /// List the tables in the data, and which of them can be reproduced
    #[arg(long, conflicts_with = "json")]
    list: bool,

    /// Also measure with real packets, as root: tables of brouer2005; prints the expected time
    /// first
    #[cfg(target_os = "linux")]
    #[arg(long, conflicts_with_all = ["list", "today"])]
    live: bool,

    /// Simulate with the TCP of a current Linux in place of the publication's: tables with simulated runs whose TCP is
    /// in their scenario. Claims are judged as ever
    #[arg(long, conflicts_with_all = ["list", "out"])]
    today: bool,

    /// Draw the series of a table, such as the queues of sun1998/fig-5.12, into this directory;
    /// created if it does not exist
    #[arg(long, value_name = "DIR", conflicts_with = "list")]
    out: Option<PathBuf>,

    /// Threads for the tables and their parts; results do not depend on it [default: one per
    /// processor]
    #[arg(long, value_name = "N", value_parser = crate::commands::threads)]
    threads: Option<NonZeroUsize>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let publications = publications().map_err(Failure::new)?;
    let chosen = select(&publications, &arguments.tables).map_err(Failure::new)?;
    if arguments.list {
        list(&chosen, printer)?;
        return Ok(Exit::Done);
    }
    let today: Vec<(PublishedTable, Experiment)>;
    let mut experiments = experiments(&chosen, &arguments.tables)?;
    if arguments.today {
        today = with_todays_tcp(&experiments, &arguments.tables)?;
        experiments = today.iter().map(|(table, experiment)| (table, *experiment)).collect();
    }
    let mut folders = Folders::default();
    if let Some(out) = &arguments.out {
        folders.prepare(out, &["probe"], "--out")?;
    }
    // A command with real packets ends in order at a signal; simulations alone are cut off.
    let _cut_off = if live_too(arguments) { None } else { Some(Interrupt::at_once()?) };
    #[cfg(target_os = "linux")]
    let mut laboratory = if arguments.live { Some(Laboratory::new(&experiments, printer)?) } else { None };
    let parts = parts(&experiments);
    let progress = Progress::new(&experiments, arguments.threads, printer)?;
    let mut tables: Vec<TableResult> = Vec::new();
    let failed = |number: usize, error: ExperimentError| {
        let (table, experiment) = experiments[number];
        Failure::new(format_args!("{}/{}: {error}", experiment.publication, table.id))
    };
    let simulate = |place: usize| {
        let (number, part) = parts[place];
        let (table, experiment) = experiments[number];
        let _cut_off = Interrupt::at_once()?;
        let made = experiment.part(table, part);
        progress.made(number, part);
        made.map_err(|error| failed(number, error))
    };
    let mut made: Vec<Part> = Vec::new();
    let mut finish = |place: usize, part: Result<Part>| -> Result<()> {
        made.push(part?);
        let (number, _) = parts[place];
        if parts.get(place + 1).is_some_and(|(next, _)| *next == number) {
            return Ok(());
        }
        let (table, experiment) = experiments[number];
        let simulated = experiment.join(table, std::mem::take(&mut made));
        #[cfg_attr(not(target_os = "linux"), expect(unused_mut, reason = "nothing runs live"))]
        let mut result = simulated.map_err(|error| failed(number, error))?;
        #[cfg(target_os = "linux")]
        if let Some(laboratory) = &mut laboratory {
            laboratory.measure(table, experiment, &mut result)?;
        }
        if let Some(out) = &arguments.out {
            draw::draw(experiment.publication, table, out, printer)?;
        }
        if !arguments.json {
            // Without a reader the other tables are drawn and judged all the same.
            progress.suspend(|| print::table(table, &result, printer)).or_else(Failure::unless_reader_gone)?;
        }
        tables.push(result);
        Ok(())
    };
    let mut ended = Ok(());
    if live_too(arguments) {
        // Live measurements need the machine for themselves.
        ended = (0..parts.len()).try_for_each(|place| finish(place, simulate(place)));
    } else {
        let mut places = 0..parts.len();
        in_order(parts.len(), arguments.threads, simulate, |part| {
            ended = places.next().map_or(Ok(()), |place| finish(place, part));
            ended.is_ok()
        });
    }
    progress.finish();
    #[cfg(target_os = "linux")]
    if let Some(early) = laboratory.and_then(|laboratory| laboratory.ended) {
        return early;
    }
    ended?;
    conclude(tables, arguments, printer)
}

/// The experiments whose runs take their TCP from a scenario, with the TCP of today. A named table must be one of
/// these.
fn with_todays_tcp(
    experiments: &[(&PublishedTable, Experiment)],
    names: &[String],
) -> Result<Vec<(PublishedTable, Experiment)>> {
    let named = |id: &str| names.iter().any(|name| name.rsplit('/').next() == Some(id));
    let fixed = |(table, known): &&(&PublishedTable, Experiment)| !known.takes_tcp_of_a_scenario() && named(&table.id);
    if let Some((table, known)) = experiments.iter().find(fixed) {
        let name = format!("{}/{}", known.publication, table.id);
        return Err(Failure::new(format_args!("{name} has no simulated runs with a TCP of their scenario"))
            .hint("leave out --today, or name the publication alone"));
    }
    let known = experiments.iter().filter(|(_, known)| known.takes_tcp_of_a_scenario());
    Ok(known.map(|(table, known)| (table.with_todays_tcp(), *known)).collect())
}

/// Prints the JSON, or the summary of several tables, and returns whether every claim is shown.
fn conclude(tables: Vec<TableResult>, arguments: &Arguments, printer: &mut Printer) -> Result {
    let reproduction = Reproduction::new(tables);
    let printed = if arguments.json {
        printer.json(&reproduction).map_err(Failure::from)
    } else if reproduction.tables.len() > 1 {
        print::summary(&reproduction, printer)
    } else {
        Ok(())
    };
    printed.or_else(Failure::unless_reader_gone)?;
    Ok(if reproduction.tables.iter().all(TableResult::holds) { Exit::Done } else { Exit::No })
}

/// The parts to simulate, in order: the index of the experiment, and the part.
fn parts(experiments: &[(&PublishedTable, Experiment)]) -> Vec<(usize, usize)> {
    let of = |(number, (table, experiment)): (usize, &(&PublishedTable, Experiment))| {
        (0..experiment.parts(table)).map(move |part| (number, part))
    };
    experiments.iter().enumerate().flat_map(of).collect()
}

fn live_too(arguments: &Arguments) -> bool {
    #[cfg(target_os = "linux")]
    let live = arguments.live;
    #[cfg(not(target_os = "linux"))]
    let (live, _) = (false, arguments);
    live
}

/// Runs experiments with real packets.
#[cfg(target_os = "linux")]
struct Laboratory {
    stop: Stop,
    /// The result of the program after a signal or a failed run.
    ended: Option<Result>,
}

#[cfg(target_os = "linux")]
impl Laboratory {
    /// Prints the expected time of these experiments.
    fn new(experiments: &[(&PublishedTable, Experiment)], printer: &mut Printer) -> Result<Self> {
        let of = |known: &Experiment| live(known.publication, known.table);
        let live: Vec<_> = experiments.iter().filter_map(|(_, known)| of(known)).collect();
        let seconds: u64 = live.iter().map(|known| known.seconds).sum();
        if live.is_empty() {
            return Err(Failure::new("none of these tables is measured with real packets")
                .hint("`lastmile reproduce --live brouer2005` measures those that are"));
        }
        printer.talk(&format!(
            "{} of {} tables are measured with real packets: {} min {} s for these",
            live.len(),
            experiments.len(),
            seconds / 60,
            seconds % 60
        ));
        leftovers::remove(printer);
        // Before namespaces are created: from here on a signal ends a run, and the run removes
        // them.
        Ok(Self { stop: Stop::on_signals()?, ended: None })
    }

    /// Measures a table if that is possible, and simulates the same runs for comparison.
    fn measure(&mut self, table: &PublishedTable, experiment: Experiment, result: &mut TableResult) -> Result<()> {
        let Some(live) = live(experiment.publication, &table.id) else { return Ok(()) };
        let failed = |error| Failure::new(format_args!("{}/{}: {error}", experiment.publication, table.id));
        let cut_off = Interrupt::at_once()?;
        live.simulate(table, result).map_err(failed)?;
        drop(cut_off);
        (live.run)(table, result, &mut |scenario| self.run(scenario)).map_err(failed)
    }

    fn run(&mut self, scenario: &Scenario) -> std::result::Result<(Network, Outcome), String> {
        let ended = match super::lab::run_once(scenario, &self.stop) {
            Ok(Ok(ran)) => return Ok(ran),
            Ok(Err(exit)) => Ok(exit),
            Err(failure) => Err(failure),
        };
        self.ended = Some(ended);
        Err("it did not run to its end".to_owned())
    }
}

/// The experiments of the chosen tables. A named table must be reproducible; a named publication
/// means all reproducible tables.
fn experiments<'a>(
    chosen: &[(&'a Publication, &'a PublishedTable)],
    names: &[String],
) -> Result<Vec<(&'a PublishedTable, Experiment)>> {
    let mut found = Vec::new();
    for (publication, table) in chosen {
        let by_name = names.iter().any(|name| name.rsplit('/').next() == Some(table.id.as_str()));
        match experiment(&publication.key, &table.id) {
            Some(experiment) => found.push((*table, experiment)),
            None if by_name => {
                let name = format!("{}/{}", publication.key, table.id);
                return Err(Failure::new(format_args!("{name} is in the data, but nothing reproduces it yet"))
                    .hint(reproducible(&publication.key)));
            }
            None => {}
        }
    }
    match (found.is_empty(), chosen.first()) {
        (true, Some((publication, _))) if !names.is_empty() => {
            Err(Failure::new(format_args!("nothing reproduces a table of {} yet", publication.key))
                .hint("`lastmile reproduce --list` lists the tables that can be reproduced"))
        }
        _ => Ok(found),
    }
}

fn reproducible(publication: &str) -> String {
    let tables: Vec<&str> =
        EXPERIMENTS.iter().filter(|known| known.publication == publication).map(|known| known.table).collect();
    if tables.is_empty() {
        format!("no table of {publication} can be reproduced yet")
    } else {
        format!("of {publication} there are {}", tables.join(", "))
    }
}

fn list(chosen: &[(&Publication, &PublishedTable)], printer: &mut Printer) -> Result<()> {
    let mut table = Table::new([
        ("table", Kind::Name),
        ("figures", Kind::Text),
        ("rows", Kind::Number),
        ("reproduced", Kind::Text),
        ("title", Kind::Text),
    ]);
    for (publication, published) in chosen {
        let known = experiment(&publication.key, &published.id).is_some();
        table.row([
            format!("{}/{}", publication.key, published.id),
            published.kind.as_str().to_owned(),
            published.rows.len().to_string(),
            if known { "yes" } else { "-" }.to_owned(),
            published.title.clone(),
        ]);
    }
    printer.table(&table)?;
    Ok(())
}
