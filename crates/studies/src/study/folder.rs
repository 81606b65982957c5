//! A study in its folder: its runs, `table.parquet`, `report.html` and `study.json`.

use std::io::{self, Write as _};

use lastmile_results::atomic::AtomicFile;

use super::journal::{Journal, Record};
use super::page::{About, PAGE, page};
use super::plan::{Ended, Means, Progress, Runs, Study};
use super::table::Table;

/// The name of the table.
pub const TABLE: &str = "table.parquet";

/// Simulates all runs that the folder does not have, and writes the table and the page of all. The page shows
/// `measures`; for none, the usual ones. `attend` is called between runs, with the progress in both forms.
///
/// # Errors
/// The study ended early. The folder has every run that was finished, and its earlier table.
pub fn carry_out<S: Send>(
    study: &Study<'_>,
    means: Means<'_>,
    (record, measures): (Record, &[String]),
    attend: &mut dyn FnMut(Progress, &Record) -> Result<(), S>,
) -> Result<(Runs, Table), Ended<S>> {
    let folder = means.store.folder();
    let mut journal = Journal::begin(folder, record.of(study)).map_err(Ended::Io)?;
    let mut last = Progress::default();
    let ended = study.run_for(measures, means, &mut |progress| {
        last = progress;
        journal.note(progress).map_err(Ended::Io)?;
        attend(progress, journal.record()).map_err(Ended::Stop)
    });
    let runs = match ended {
        Ok(runs) => runs,
        Err(why) => {
            // The reason of the end is worth more than an error of its record.
            let _ = journal.end(last, &[]);
            return Err(match why {
                Ended::Stop(inner) => inner,
                Ended::Wrong(wrong) => Ended::Wrong(wrong),
                Ended::Io(error) => Ended::Io(error),
            });
        }
    };
    let table = runs.table(study.space);
    write(&table, means).map_err(Ended::Io)?;
    let Record { name, text, .. } = journal.record();
    let about = About { name, text: text.as_deref(), measures };
    write_page(&page(study, about, &runs, &table), means).map_err(Ended::Io)?;
    journal.end(runs.progress, &runs.failures).map_err(Ended::Io)?;
    Ok((runs, table))
}

fn write(table: &Table, means: Means<'_>) -> io::Result<()> {
    let mut file = AtomicFile::create(&means.store.folder().join(TABLE))?;
    table.write(&mut file)?;
    file.commit()
}

fn write_page(page: &str, means: Means<'_>) -> io::Result<()> {
    let mut file = AtomicFile::create(&means.store.folder().join(PAGE))?;
    file.write_all(page.as_bytes())?;
    file.commit()
}
