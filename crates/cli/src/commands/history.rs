//! `lastmile history`: a span of the store of `lastmile watch`, on the terminal, as a page, JSON or CSV.

mod calendar;
mod page;
mod tables;

use std::path::{Path, PathBuf};

use clap::Args;
use lastmile_results::atomic::AtomicFile;
use lastmile_watch::history::{Document, History, Wish};
use lastmile_watch::store::{Resolution, Store};

use crate::failure::{Exit, Failure, Result};
use crate::folders::Folders;
use crate::interrupt::Interrupt;
use crate::printer::Printer;

use self::calendar::Calendar;

/// Points of a line on the terminal, on a page and for programs.
const POINTS: (u32, u32) = (60, 360);

/// Show what `lastmile watch` has stored: percentiles over time and by hour of the day
///
/// Reads the store while a watcher writes it. Times are local unless --utc is given. Short spans
/// come from each ping, exactly, longer ones from minutes or hours, whose percentiles are exact to
/// 1/32.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The store
    #[arg(long, value_name = "FILE")]
    store: PathBuf,

    /// Begin: `2026-11-01`, `2026-11-01 18:30`, or a time ago such as `7 d` or `90 min`
    #[arg(long, value_name = "TIME", default_value = "24 h")]
    from: String,

    /// End, in the same forms, or `now`
    #[arg(long, value_name = "TIME", default_value = "now")]
    to: String,

    /// Classes to show, by their names; without --target no pings are shown then
    #[arg(long, value_name = "NAME")]
    class: Vec<String>,

    /// Hosts to show, by their names, or `gateway`; without --class no queues are shown then
    #[arg(long, value_name = "NAME")]
    target: Vec<String>,

    /// Times of UTC instead of local ones
    #[arg(long)]
    utc: bool,

    /// Page to write, such as history.html
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,

    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Print a row for each path or queue and span as CSV
    #[arg(long)]
    csv: bool,
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let _cut_off = Interrupt::at_once()?;
    let calendar = if arguments.utc { Some(Calendar::utc()) } else { Calendar::local() };
    let calendar = calendar.unwrap_or_else(|| {
        printer.talk("the time zone of this machine is not known: all times are UTC");
        Calendar::utc()
    });
    let (from_s, to_s) = (calendar.time(&arguments.from, "--from")?, calendar.time(&arguments.to, "--to")?);
    if from_s >= to_s {
        return Err(Failure::new(format_args!(
            "--from, {}, is not before --to, {}",
            calendar.minute(from_s),
            calendar.minute(to_s)
        )));
    }
    let mut folders = Folders::default();
    if let Some(page) = &arguments.page {
        folders.prepare_page(page, "--page")?;
    }
    let store = Store::read(&arguments.store).map_err(|error| unread(&arguments.store, &error))?;
    let fine = arguments.json || arguments.csv || arguments.page.is_some();
    let wish = |points| Wish {
        from_ms: from_s * 1000,
        to_ms: to_s * 1000,
        points,
        classes: arguments.class.clone(),
        targets: arguments.target.clone(),
    };
    let read = |points| History::read(&store, &wish(points), &|time_s| calendar.offset_s(time_s)).map_err(Failure::new);
    let history = read(if fine { POINTS.1 } else { POINTS.0 })?;
    let within = format!("between {} and {}", calendar.minute(from_s), calendar.minute(to_s));
    let unchosen = || {
        let wish = Wish { classes: Vec::new(), targets: Vec::new(), ..wish(POINTS.0) };
        History::read(&store, &wish, &|time_s| calendar.offset_s(time_s)).map_err(Failure::new)
    };
    let missing = missing(arguments, &history);
    if !history.is_empty() && !missing.is_empty() {
        return Err(not_there(&store, &missing, &unchosen()?, &within));
    }
    if let Some(file) = &arguments.page {
        write_page(file, &page::page(&history, &calendar, &arguments.store))?;
    }
    match (arguments.json, arguments.csv) {
        (true, _) => printer.json(&Document::of(&history))?,
        (_, true) => printer.exact(&tables::csv(&history))?,
        _ if history.is_empty() => {
            let all = unchosen()?;
            return Err(if all.is_empty() {
                nothing(&store, &calendar, &within)
            } else {
                not_there(&store, &missing, &all, &within)
            });
        }
        _ => {
            let history = if fine { read(POINTS.0)? } else { history };
            tables::print(&history, &calendar, printer)?;
        }
    }
    if let Some(file) = &arguments.page {
        printer.talk(&format!("page: {}", file.display()));
    }
    Ok(Exit::Done)
}

/// A store that cannot be read, with what helps.
fn unread(file: &Path, error: &lastmile_watch::store::Error) -> Failure {
    let failure = Failure::new(error);
    match file.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        Some(folder) => failure.hint(format!("the folder {} does not exist", folder.display())),
        None if !file.exists() => failure.hint("no such file: `lastmile watch --store FILE` makes a store"),
        None if error.is_foreign() => failure.hint("the file of --store is one that `lastmile watch --store` wrote"),
        // SQLite makes the files of the write-ahead log anew, where no watcher has them open.
        None => failure.hint("a reader must be able to read the file, and to write its folder while no watcher runs"),
    }
}

/// The chosen hosts and classes of which `history` has no row.
fn missing(arguments: &Arguments, history: &History) -> Vec<String> {
    let has_host = |name: &str| history.paths.iter().any(|path| path.path.target == name);
    let has_class = |name: &str| history.queues.iter().any(|queue| queue.name.class == name);
    let hosts = arguments.target.iter().filter(|name| !has_host(name)).map(|name| format!("host {name}"));
    let classes = arguments.class.iter().filter(|name| !has_class(name)).map(|name| format!("class {name}"));
    hosts.chain(classes).collect()
}

/// The store has rows of the time, and none of these names.
fn not_there(store: &Store, missing: &[String], all: &History, within: &str) -> Failure {
    let wanted = missing.join(", ");
    let mut hosts: Vec<&str> = all.paths.iter().map(|path| path.path.target.as_str()).collect();
    let mut classes: Vec<&str> = all.queues.iter().map(|queue| queue.name.class.as_str()).collect();
    let mut known = Vec::new();
    for (what, names) in [("hosts", &mut hosts), ("classes", &mut classes)] {
        names.sort_unstable();
        names.dedup();
        // A queue without classes.
        names.retain(|name| !name.is_empty());
        if !names.is_empty() {
            known.push(format!("{what}: {}", names.join(", ")));
        }
    }
    Failure::new(format_args!("{} has no {wanted} {within}", store.file().display())).hint(known.join("; "))
}

/// No row of the time is in the store.
fn nothing(store: &Store, calendar: &Calendar, within: &str) -> Failure {
    let failure = Failure::new(format_args!("{} has no such rows {within}", store.file().display()));
    // A young store has no whole hour, and an old one no interval of its first days.
    let oldest = [Resolution::Raw, Resolution::Minute, Resolution::Hour];
    let oldest = oldest.into_iter().filter_map(|resolution| store.oldest_s(resolution).ok().flatten()).min();
    match (oldest, store.newest_ms().ok().flatten()) {
        (Some(oldest), Some(newest)) => failure.hint(format!(
            "it has rows from {} to {}",
            calendar.minute(oldest),
            calendar.minute(newest.div_euclid(1000))
        )),
        _ => failure.hint("the watcher that writes it has written nothing yet"),
    }
}

fn write_page(file: &Path, html: &str) -> Result<()> {
    let wrong = |error| Failure::new(format_args!("cannot write {}: {error}", file.display()));
    let mut page = AtomicFile::create(file).map_err(wrong)?;
    std::io::Write::write_all(&mut page, html.as_bytes()).map_err(wrong)?;
    page.commit().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use lastmile_watch::sample::Interval;
    use lastmile_watch::store::Limits;

    use super::*;

    /// One interval that ended at 1970-01-02 00:00:10: no hour is whole.
    #[test]
    fn a_time_before_a_young_store_has_the_time_of_its_rows_in_the_hint() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("line.watch");
        let mut store = Store::open(&file, Limits::default()).unwrap();
        let hint = |store: &Store| match nothing(store, &Calendar::utc(), "then") {
            Failure::Wrong { hint, .. } => hint.unwrap(),
            _ => panic!("a mistake"),
        };
        assert_eq!(hint(&store), "the watcher that writes it has written nothing yet");
        store.append(&Interval { end_ms: 86_410_000, span_ms: 1_000, ..Interval::default() }).unwrap();
        assert_eq!(hint(&store), "it has rows from 1970-01-02 00:00 to 1970-01-02 00:00");
    }
}
