//! `lastmile trace`: shows a trace of a line's capacity, makes one, converts between formats.

mod arguments;
mod make;
mod measured;
mod show;

use std::path::Path;

use lastmile_scenario::trace::write;
use lastmile_units::Duration;

pub(crate) use self::arguments::Arguments;
use crate::failure::{Exit, Failure, Result};
use crate::folders::Folders;
use crate::interrupt::Interrupt;
use crate::printer::Printer;

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let _cut_off = Interrupt::at_once()?;
    if arguments.interval == Some(Duration::ZERO) {
        return Err(Failure::new("--interval: 0 s").hint("such as 100 ms"));
    }
    let make::Made { trace, has, source } = make::make(arguments)?;
    if let Some(source) = source {
        printer.talk(&source);
    }
    let Some(to) = arguments.to else {
        let summary = show::Summary::of(&trace, has, arguments.length);
        let text =
            |summary: &show::Summary, printer: &mut Printer| Ok(printer.data(&summary.text(&trace, printer.width()))?);
        return printer.either(arguments.json, &summary, text);
    };
    let written = write::write(&trace, has, to.into(), arguments.interval(), arguments.length).map_err(Failure::new)?;
    for note in &written.notes {
        printer.talk(&format!("note: {note}"));
    }
    match &arguments.out {
        None if !written.beside.is_empty() => {
            let kinds = written.beside.iter().map(|(kind, _)| format!("NAME.{kind}.json")).collect::<Vec<_>>();
            return Err(Failure::new("a cell of Rattan loads rates, delays or losses: each is a file of its own")
                .hint(format!("--out NAME.json, which writes {} too", kinds.join(" and "))));
        }
        None => printer.exact(&written.text)?,
        Some(path) => {
            // A folder that it makes stays once the file is in it.
            let mut folders = Folders::default();
            folders.prepare_out(path)?;
            save(path, &written.text)?;
            for (kind, text) in &written.beside {
                let path = path.with_extension(format!("{kind}.json"));
                save(&path, text)?;
                printer.talk(&format!("note: the {kind} of each step is in {}", path.display()));
            }
        }
    }
    Ok(Exit::Done)
}

fn save(path: &Path, text: &str) -> Result<()> {
    lastmile_results::atomic::write(path, text.as_bytes())
        .map_err(|error| Failure::new(format_args!("{}: {error}", path.display())))
}
