//! `lastmile man`: the help of each command as a manual page.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man;
use lastmile_results::atomic;

use crate::failure::{Exit, Failure, Result};
use crate::folders::Folders;
use crate::interrupt::Interrupt;
use crate::printer::Printer;

/// Write the manual pages of all commands
///
/// One page for the program and one for each command, such as lastmile-run.1. Packages have them already: man
/// lastmile-run
#[derive(Args)]
pub(crate) struct Arguments {
    /// Folder for the pages; created if it does not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// `program` is the command line of the whole program.
pub(crate) fn run(arguments: &Arguments, program: Command, printer: &mut Printer) -> Result {
    let _cut_off = Interrupt::at_once()?;
    let mut pages = Vec::new();
    // `help` commands of clap repeat what the pages say.
    let mut program = program.disable_help_subcommand(true);
    program.build();
    collect(&program, &mut pages);
    let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    let mut folders = Folders::default();
    folders.prepare(&arguments.folder, &names, "DIR")?;
    for (name, page) in &pages {
        let path = arguments.folder.join(name);
        let cannot = |error| Failure::new(format_args!("cannot write {}: {error}", path.display()));
        atomic::write(&path, page.as_bytes()).map_err(cannot)?;
    }
    printer.talk(&format!("{} pages: {}", pages.len(), arguments.folder.display()));
    Ok(Exit::Done)
}

/// The pages of `command` and of the commands below it.
fn collect(command: &Command, pages: &mut Vec<(String, String)>) {
    let mut page = Vec::new();
    // Such as `lastmile-run`.
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let source = format!("lastmile {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).title(name.to_uppercase()).section("1").source(source).manual("lastmile");
    man.render(&mut page).expect("a vector takes all");
    pages.push((format!("{name}.1"), String::from_utf8_lossy(&page).into_owned()));
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        collect(below, pages);
    }
}
