//! `lastmile reproduce --out`: draws the runs that a table is about.

use std::path::Path;

use lastmile_published::{Drawing, Table, drawings};
use lastmile_results::schema::Inputs;
use lastmile_results::{Origin, Run, Series, summarise, write};

use crate::failure::{Failure, Result};
use crate::printer::Printer;

/// Runs the drawn runs of `table`, and writes to its own directory one drawing of all side by side,
/// and the results of each run.
pub(super) fn draw(publication: &str, table: &Table, out: &Path, printer: &mut Printer) -> Result<()> {
    let failed = |error| Failure::new(format_args!("{publication}/{}: {error}", table.id));
    let drawings = drawings(publication, table).map_err(failed)?;
    let Some(series) = drawings.first().map(|drawing| drawing.series.as_str()) else { return Ok(()) };
    let directory = out.join(format!("{publication}-{}", table.id));
    let mut drawn = Vec::new();
    for drawing in &drawings {
        let mut run = run(drawing)?;
        let name: String = run.label.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
        write::write_all(&directory.join(name), &run).map_err(Failure::new)?;
        run.series.retain(|series| series.name == drawing.series && series.entity.starts_with(&drawing.of));
        drawn.push(run);
    }
    let path = directory.join(format!("{series}.svg"));
    write::write_figure(&path, &drawn, &[series]).map_err(Failure::new)?;
    printer.talk(&format!("drawn: {}", path.display()));
    Ok(())
}

fn run(drawing: &Drawing) -> Result<Run> {
    let network = drawing.scenario.network_ref();
    let outcome = lastmile_sim::run(network).map_err(Failure::new)?;
    let origin = Origin {
        scenario: drawing.scenario.name().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        inputs: Inputs::default(),
    };
    let series = outcome.series.iter().map(Series::from).collect();
    let summary = summarise(&origin, network, &outcome);
    Ok(Run { label: drawing.label.clone(), own: Vec::new(), summary, series })
}
