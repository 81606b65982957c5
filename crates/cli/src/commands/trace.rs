//! `lastmile trace`: shows a trace of a line's capacity, makes one, converts between formats.

mod arguments;
mod make;
mod measured;
mod show;

use lastmile_scenario::trace::file;
use lastmile_units::Duration;

pub(crate) use self::arguments::Arguments;
use crate::failure::{Exit, Failure, Result};
use crate::folders::Folders;
use crate::interrupt::Interrupt;
use crate::printer::Printer;

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let _cut_off = Interrupt::at_once()?;
    if arguments.interval == Duration::ZERO {
        return Err(Failure::new("--interval: 0 s").hint("such as 100 ms"));
    }
    let make::Made { trace, has, source } = make::make(arguments)?;
    if let Some(source) = source {
        printer.talk(&source);
    }
    let Some(to) = arguments.to else {
        let summary = show::Summary::of(&trace, has, arguments.length());
        let text =
            |summary: &show::Summary, printer: &mut Printer| Ok(printer.data(&summary.text(&trace, printer.width()))?);
        return printer.either(arguments.json, &summary, text);
    };
    let text = file::write(&trace, has, to.into(), arguments.interval, arguments.length()).map_err(Failure::new)?;
    for difference in file::differences(&trace, has, to.into()) {
        printer.talk(&format!("note: {difference}"));
    }
    match &arguments.out {
        None => printer.exact(&text)?,
        Some(path) => {
            // A folder that it makes stays once the file is in it.
            let mut folders = Folders::default();
            folders.prepare_out(path)?;
            lastmile_results::atomic::write(path, text.as_bytes())
                .map_err(|error| Failure::new(format_args!("{}: {error}", path.display())))?;
        }
    }
    Ok(Exit::Done)
}
