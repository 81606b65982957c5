//! `lastmile measure show`: measurements from files, of lastmile and of flent.

use std::path::{Path, PathBuf};

use clap::Args;
use lastmile_measure::archive;
use lastmile_measure::conditions::Conditions;
use lastmile_measure::report::{self, Estimate, Measurement, Phase, Throughput};
use lastmile_results::format;
use lastmile_text::table::{Kind as Align, Table};

use crate::failure::{Exit, Failure, Result};
use crate::folders::Folders;
use crate::printer::Printer;

use super::outputs::{Outputs, write};
use super::table::{self, words};

/// Show measurements from files: those of --json, and data files of flent
///
/// One FILE: rates, delays and working conditions, and every file that a measurement writes; so a
/// data file of flent becomes JSON or a page, and JSON a data file of flent. Several: one table, a
/// row for each file and phase; the last column marks a grade of one direction alone, and a measurement that ended
/// early.
#[derive(Args)]
pub(super) struct Arguments {
    /// Files of --json, and data files of flent (.flent, .flent.gz)
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    outputs: Outputs,
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let Outputs { json, flent, page } = &arguments.outputs;
    for (option, file) in [("--json", json), ("--flent", flent), ("--page", page)] {
        if file.is_some() && arguments.files.len() > 1 {
            return Err(Failure::new(format_args!("{option}: of one FILE only")).hint("show them one after the other"));
        }
    }
    let measured: Vec<(String, Measurement)> = arguments.files.iter().map(|path| read(path)).collect::<Result<_>>()?;
    let mut folders = Folders::default();
    arguments.outputs.prepare(&mut folders)?;
    if let [(_, measured)] = &measured[..] {
        write(measured, &Conditions::of(measured), &arguments.outputs, printer)?;
    } else {
        printer.table(&compared(&measured))?;
    }
    Ok(Exit::Done)
}

/// The name of a file, and the measurement in it.
fn read(path: &Path) -> Result<(String, Measurement)> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| Failure::new(format_args!("{name}: {error}")))?;
    let measured = archive::read(&name, &bytes).map_err(Failure::new)?;
    Ok((name, measured))
}

/// A row for each file and phase.
fn compared(measured: &[(String, Measurement)]) -> Table {
    let mut rows = Table::new([
        ("file", Align::Name),
        ("phase", Align::Name),
        ("download\ngoodput", Align::Number),
        ("95 %\ninterval", Align::Number),
        ("upload\ngoodput", Align::Number),
        ("95 %\ninterval", Align::Number),
        ("median\nround trip\nms", Align::Number),
        ("95 %\ninterval", Align::Number),
        ("p99\nms", Align::Number),
        ("congestion\ncontrol", Align::Name),
        ("grade", Align::Name),
    ]);
    for (name, measured) in measured {
        let conditions = Conditions::of(measured);
        let counted = report::counted(&measured.phases, &measured.host);
        for (index, phase) in measured.phases.iter().enumerate() {
            let marks = conditions.grade_in_short().into_iter();
            let marks: Vec<String> = marks.chain((!measured.complete).then(|| "incomplete".to_owned())).collect();
            let grade = if index == 0 { marks.join(", ") } else { String::new() };
            rows.row(row(name, phase, &counted, grade));
        }
    }
    rows
}

/// The round trips are those that the working conditions are judged by.
fn row(name: &str, phase: &Phase, counted: &[usize], grade: String) -> Vec<String> {
    let rate = |throughput: &Option<Throughput>| {
        let goodput = throughput.as_ref().map(|throughput| throughput.goodput_bps);
        [
            format::or_dash(goodput, |goodput: Estimate| format::rate(goodput.value)),
            format::or_dash(goodput, table::of_rate),
        ]
    };
    let delays = phase.first_answered(counted).map(|(_, delays)| delays);
    let [down, down_interval] = rate(&phase.download);
    let [up, up_interval] = rate(&phase.upload);
    vec![
        name.to_owned(),
        words(phase.load).to_owned(),
        down,
        down_interval,
        up,
        up_interval,
        format::or_dash(delays, |delays| table::number_ms(delays.p50_s.value)),
        format::or_dash(delays, |delays| table::interval(delays.p50_s, |s| s * 1e3, "")),
        format::or_dash(delays, |delays| table::number_ms(delays.p99_s)),
        table::congestion(phase),
        grade,
    ]
}
