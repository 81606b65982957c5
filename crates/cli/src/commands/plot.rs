//! `lastmile plot`: figures of scenarios, results and captures.

mod arguments;
mod inputs;

use lastmile_picture::file;
use lastmile_results::report::{self, Column};
use lastmile_results::{Run, atomic, captured};
use lastmile_scenario::diagnostics::nearest;
use lastmile_studies::captures::{Capture, Wanted};

pub(crate) use self::arguments::Arguments;
use self::inputs::Input;
use crate::failure::{Exit, Failure, Result};
use crate::folders::Folders;
use crate::interrupt::Interrupt;
use crate::printer::Printer;

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let format = arguments.format()?;
    let inputs = inputs::named(arguments)?;
    let mut folders = Folders::default();
    if let Some(out) = &arguments.out {
        folders.prepare_out(out)?;
    }
    let figure = match &inputs[..] {
        [Input::Capture(path)] => {
            let _cut_off = Interrupt::at_once()?;
            let wanted = Wanted { pictures: true, ..Wanted::default() };
            Figure::OfCapture(Capture::read(path, wanted, None, None)?)
        }
        _ => match inputs::runs(arguments, &inputs, printer)? {
            Ok(columns) => Figure::of(arguments, columns),
            Err(interrupted) => return Ok(interrupted),
        },
    };
    let (Some(out), Some(format)) = (&arguments.out, format) else {
        printer.data(&figure.list())?;
        return Ok(Exit::Done);
    };
    let drawing = figure.draw(&arguments.panel)?;
    let bytes = file(&drawing, format, arguments.scale).map_err(|error| match error {
        lastmile_picture::Error::TooLarge { .. } => Failure::new(error).hint("a smaller --scale"),
        _ => Failure::new(error),
    })?;
    atomic::write(out, &bytes)
        .map_err(|error| Failure::new(format_args!("--out: cannot write {}: {error}", out.display())))?;
    printer.talk(&format!("figure: {}", out.display()));
    Ok(Exit::Done)
}

/// The contents of a figure.
enum Figure {
    /// Runs side by side, each with its own panels.
    Apart(Vec<Run>),
    /// Runs as curves of common panels, in columns.
    Together(Vec<Column>),
    /// The largest direction of a capture.
    OfCapture(Vec<Capture>),
}

impl Figure {
    fn of(arguments: &Arguments, columns: Vec<Column>) -> Self {
        if arguments.together || !arguments.policy.is_empty() {
            Self::Together(columns)
        } else {
            let labelled =
                |column: Column| column.runs.into_iter().map(move |run| Run { label: column.heading.clone(), ..run });
            Self::Apart(columns.into_iter().flat_map(labelled).collect())
        }
    }

    /// The names of the panels, and the series that they draw if they have one.
    fn names(&self) -> Vec<(String, Option<&'static str>)> {
        match self {
            Self::Apart(runs) => {
                report::panels_of(runs).into_iter().map(|(series, title)| (title.to_owned(), Some(series))).collect()
            }
            Self::Together(columns) => {
                let mut names: Vec<(String, Option<&'static str>)> = Vec::new();
                for title in columns.iter().flat_map(|column| report::titles_of(&column.runs)) {
                    if names.iter().all(|(known, _)| *known != title) {
                        names.push((title, None));
                    }
                }
                names
            }
            Self::OfCapture(_) => captured::PANELS.iter().map(|title| ((*title).to_owned(), None)).collect(),
        }
    }

    /// A line for each panel.
    fn list(&self) -> String {
        self.names().into_iter().map(|(title, _)| format!("{title}\n")).collect()
    }

    /// The drawing with the panels of these names, in their order; all of them for none.
    fn draw(&self, wanted: &[String]) -> Result<String> {
        let names = self.names();
        if names.is_empty() {
            return Err(
                Failure::new("no samples over time to draw").hint("a run records them with record.series = true")
            );
        }
        let chosen: Vec<&(String, Option<&'static str>)> = match wanted {
            [] => names.iter().collect(),
            _ => wanted.iter().map(|name| find(&names, name)).collect::<Result<_>>()?,
        };
        let titles: Vec<&str> = chosen.iter().map(|(title, _)| title.as_str()).collect();
        Ok(match self {
            Self::Apart(runs) => {
                let series: Vec<&str> = chosen.iter().filter_map(|(_, series)| *series).collect();
                report::figure(runs, &series)
            }
            Self::Together(columns) => report::figure_of_lines(columns, &titles),
            Self::OfCapture(captures) => {
                // A folder of results may have several captures; the first has the most informative position.
                let drawn =
                    captures.iter().find_map(|capture| capture.drawing(&titles).filter(|text| !text.is_empty()));
                drawn.ok_or_else(|| Failure::new("no TCP connection with data to draw"))?
            }
        })
    }
}

/// The panel of this name, in letters of any case; a series names its panel too.
fn find<'a>(names: &'a [(String, Option<&'static str>)], name: &str) -> Result<&'a (String, Option<&'static str>)> {
    let is_it = |(title, series): &&(String, Option<&'static str>)| {
        title.eq_ignore_ascii_case(name) || series.is_some_and(|series| series == name)
    };
    names.iter().find(is_it).ok_or_else(|| {
        let failure = Failure::new(format_args!("no panel is called {name:?}"));
        match nearest(name, names.iter().map(|(title, _)| title.as_str())) {
            Some(near) => failure.hint(format!("did you mean {near:?}?")),
            None => failure.hint("--list prints the names"),
        }
    })
}
