//! `lastmile new`: a scenario made of a line and a home of the library.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Args, Command};
use lastmile_library::{Home, Line, Unknown};
use lastmile_results::atomic;
use lastmile_text::table::{Kind, Table};
use serde::Serialize;

use crate::failure::{Exit, Failure, Result};
use crate::folders::Folders;
use crate::printer::Printer;

/// Write a scenario of a usual line and household
///
/// Lines and homes are data with sources: ADSL to XGS-PON, LTE, 5G and satellites; one person to
/// fifty subscribers. The scenario is a commented file for run, compare, emulate and lab.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Name of the line, such as docsis-1000-50
    #[arg(long, value_name = "NAME", value_parser = Named(line_names), hide_possible_values = true)]
    #[arg(required_unless_present = "list")]
    line: Option<String>,

    /// Name of the home, such as family
    #[arg(long, value_name = "NAME", value_parser = Named(home_names), hide_possible_values = true)]
    #[arg(required_unless_present = "list")]
    home: Option<String>,

    /// Write this file; standard output otherwise
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    out: Option<PathBuf>,

    /// Replace the file of --out if it exists
    #[arg(long, requires = "out")]
    force: bool,

    /// List the lines and homes
    #[arg(long, conflicts_with_all = ["line", "home"])]
    list: bool,

    /// Print the list as JSON
    #[arg(long, requires = "list", conflicts_with_all = ["line", "home"])]
    json: bool,
}

/// Any name, of which a shell completes those of the library. An unknown one is an error of the library, which gives
/// the nearest.
#[derive(Clone)]
struct Named(fn() -> Vec<(&'static str, String)>);

fn line_names() -> Vec<(&'static str, String)> {
    lastmile_library::lines().into_iter().map(|line| (line.name, line.about)).collect()
}

fn home_names() -> Vec<(&'static str, String)> {
    lastmile_library::homes().into_iter().map(|home| (home.name, home.about)).collect()
}

impl TypedValueParser for Named {
    type Value = String;

    fn parse_ref(
        &self,
        _: &Command,
        _: Option<&Arg>,
        value: &std::ffi::OsStr,
    ) -> std::result::Result<String, clap::Error> {
        Ok(value.to_string_lossy().into_owned())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(|(name, about)| PossibleValue::new(name).help(about))))
    }
}

/// The output of `--list --json`.
#[derive(Serialize)]
struct Listed {
    lines: Vec<ListedLine>,
    homes: Vec<ListedHome>,
}

#[derive(Serialize)]
struct ListedLine {
    name: &'static str,
    about: String,
    /// Mean rate of the wire.
    down_bps: u64,
    up_bps: u64,
}

#[derive(Serialize)]
struct ListedHome {
    name: &'static str,
    about: String,
    /// Access lines that share the capacity behind them.
    lines: u64,
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let (Some(line), Some(home)) = (&arguments.line, &arguments.home) else {
        return list(arguments.json, printer);
    };
    let line = lastmile_library::line(line).map_err(|error| unknown("--line", &error))?;
    let home = lastmile_library::home(home).map_err(|error| unknown("--home", &error))?;
    let composed = line.with(&home);
    match &arguments.out {
        Some(path) => {
            write(path, arguments.force, &composed.text)?;
            printer.talk(&format!("written: {}", path.display()));
        }
        None => printer.exact(&composed.text)?,
    }
    for note in &composed.notes {
        printer.talk(&format!("note: {note}"));
    }
    Ok(Exit::Done)
}

fn unknown(named_by: &str, unknown: &Unknown) -> Failure {
    Failure::new(format_args!("{named_by}: {unknown}")).hint(unknown.hint())
}

fn write(path: &Path, force: bool, text: &str) -> Result<()> {
    // A link that leads nowhere exists too. No option replaces a folder.
    if !force && path.symlink_metadata().is_ok_and(|there| !there.is_dir()) {
        return Err(Failure::new(format_args!("--out: {} exists", path.display())).hint("--force replaces it"));
    }
    Folders::default().prepare_file(path, "--out")?;
    let cannot = |error| Failure::new(format_args!("--out: cannot write {}: {error}", path.display()));
    atomic::write(path, text.as_bytes()).map_err(cannot)
}

fn list(json: bool, printer: &mut Printer) -> Result {
    let (lines, homes) = (lastmile_library::lines(), lastmile_library::homes());
    if json {
        printer.json(&listed(lines, homes))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new([("line", Kind::Name), ("what it is", Kind::Words)]);
    for line in &lines {
        table.row([line.name, line.about.as_str()]);
    }
    printer.table(&table)?;
    printer.data("\n")?;
    let mut table = Table::new([("home", Kind::Name), ("who does what", Kind::Words)]);
    for home in &homes {
        table.row([home.name, home.about.as_str()]);
    }
    printer.table(&table)?;
    Ok(Exit::Done)
}

fn listed(lines: Vec<Line>, homes: Vec<Home>) -> Listed {
    let line = |line: Line| ListedLine {
        name: line.name,
        down_bps: line.down.as_bps(),
        up_bps: line.up.as_bps(),
        about: line.about,
    };
    let home = |home: Home| ListedHome { name: home.name, lines: home.lines, about: home.about };
    Listed { lines: lines.into_iter().map(line).collect(), homes: homes.into_iter().map(home).collect() }
}
