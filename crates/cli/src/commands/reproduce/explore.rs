//! `lastmile reproduce --explore`: which assumptions bring the published figures closest.
//!
//! What was tried is printed when a search is over, by itself, by its time or by a signal; how far it has come is told while it runs.

mod report;
mod search;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lastmile_published::explore::{Answers, Space};
use lastmile_published::{Effort, Explore, Table as PublishedTable, explorable};

use self::report::{Explored, instead, taken};
use self::search::{Judge, Limits, Search};
use crate::exit::{Exit, Failure, Result};
use crate::interrupt::Interrupt;
use crate::printer::Printer;

/// How a search is limited.
pub(super) struct Options {
    /// How long all searches may take together.
    pub(super) within: Option<Duration>,
    /// Combinations that are drawn at random.
    pub(super) draw: Option<usize>,
    pub(super) threads: Option<NonZeroUsize>,
    pub(super) json: bool,
}

/// A publication, and those of its tables that are explored.
struct Subject<'a> {
    publication: &'a str,
    explore: &'static dyn Explore,
    tables: Vec<&'a PublishedTable>,
}

/// Explores each publication of which tables were chosen. What was not chosen by name is passed over where it cannot be explored.
pub(super) fn explore(
    chosen: &[(&str, &PublishedTable)],
    by_name: bool,
    options: &Options,
    printer: &mut Printer,
) -> Result {
    let begun = Instant::now();
    let subjects = subjects(chosen, by_name, printer)?;
    let interrupt = Interrupt::watch()?;
    let mut explored = Vec::new();
    for (place, subject) in subjects.iter().enumerate() {
        // What is left is shared by those that are left.
        let left = u32::try_from(subjects.len() - place).unwrap_or(u32::MAX);
        let within = options.within.map(|within| within.saturating_sub(begun.elapsed()) / left);
        let limits = Limits { within, draw: options.draw, threads: options.threads };
        match one(subject, limits, &interrupt, printer)? {
            Some(found) if options.json => explored.push(found),
            Some(found) => found.print(printer)?,
            None => {}
        }
        if interrupt.requested().is_some() {
            break;
        }
    }
    if options.json {
        printer.json(&explored)?;
    }
    Ok(interrupt.requested().unwrap_or(Exit::Done))
}

fn subjects<'a>(
    chosen: &[(&'a str, &'a PublishedTable)],
    by_name: bool,
    printer: &mut Printer,
) -> Result<Vec<Subject<'a>>> {
    let mut subjects: Vec<Subject<'a>> = Vec::new();
    for (publication, table) in chosen {
        let Some(explore) = explorable(publication) else {
            if by_name {
                return Err(Failure::new(format_args!("{publication} leaves nothing open that can be explored"))
                    .hint("all other publications can be"));
            }
            continue;
        };
        let known = explore.tables().contains(&table.id.as_str());
        match subjects.iter_mut().find(|subject| subject.publication == *publication) {
            Some(subject) if known => subject.tables.push(table),
            None if known => subjects.push(Subject { publication, explore, tables: vec![table] }),
            _ => printer.talk(&format!("{publication}/{} is not simulated: left out", table.id)),
        }
    }
    if subjects.is_empty() {
        return Err(Failure::new("none of these tables is simulated").hint("sun1998/5.8 is, for one"));
    }
    Ok(subjects)
}

/// Searches for one publication; `None` when a signal came before there was anything to tell.
fn one(
    subject: &Subject<'_>,
    limits: Limits,
    interrupt: &Interrupt,
    printer: &mut Printer,
) -> Result<Option<Explored>> {
    let Subject { publication, explore, tables } = subject;
    let ids: Vec<&str> = tables.iter().map(|table| table.id.as_str()).collect();
    let open = explore.open();
    let space = Space::new(&open, &ids);
    let bar = bar(printer);
    let judge = judge(subject, bar.clone());
    let whole_by_brief: Vec<f64> = ids.iter().map(|table| explore.whole_by_brief(table)).collect();
    let begun = Instant::now();
    let search = Search {
        space: &space,
        judge,
        whole_by_brief: &whole_by_brief,
        clock: Arc::new(move || begun.elapsed()),
        stopped: Arc::new(Interrupt::came),
        limits,
    };
    let found = search.run(&mut |stage, combinations| {
        let combinations = combinations.map_or_else(|| "as many as there is time for".to_owned(), |n| n.to_string());
        let line =
            format!("{publication}: {stage}: {combinations}, {:.0} s after the start", begun.elapsed().as_secs_f64());
        bar.suspend(|| printer.talk(&line));
    });
    bar.finish_and_clear();
    let found = found.map_err(Failure::new)?;
    printer.talk(&format!("{publication}: over, {:.0} s after the start", begun.elapsed().as_secs_f64()));
    if found.tried.is_empty() {
        if interrupt.requested().is_some() {
            return Ok(None);
        }
        return Err(Failure::new(format_args!(
            "{publication}: there was no time for the base case of {}",
            ids.join(", ")
        ))
        .hint("give more time, or choose fewer tables"));
    }
    let within_s = limits.within.map(|within| within.as_secs_f64());
    Ok(Some(Explored::new((publication, *explore), &ids, &space, &found, within_s)))
}

/// Judges the tables of a subject on threads that may outlive it.
fn judge(subject: &Subject<'_>, bar: ProgressBar) -> Arc<Judge> {
    let (publication, explore) = (subject.publication.to_owned(), subject.explore);
    let tables: Vec<PublishedTable> = subject.tables.iter().map(|table| (*table).clone()).collect();
    Arc::new(move |table: usize, answers: &Answers, effort: Effort| {
        let judged = explore.judge(&tables[table], answers, effort);
        bar.inc(1);
        judged.map_err(|error| {
            let open = explore.open();
            let instead: Vec<_> = instead(&open, answers).collect();
            format!("{publication}/{} with {}: {error}", tables[table].id, taken(&instead))
        })
    })
}

fn bar(printer: &Printer) -> ProgressBar {
    let style = ProgressStyle::with_template("exploring {spinner} {pos} simulations of a table, {elapsed}")
        .expect("the template is a constant");
    let target = if printer.is_watched() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    ProgressBar::with_draw_target(None, target).with_style(style)
}
