//! The files of a run, each whole or not there at all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lastmile_results::atomic::{self, AtomicFile};
use lastmile_results::{Run, parquet, report};

use crate::exit::{Failure, Result};

use super::simulate::Done;

/// Makes `directory` if it is not there.
pub(super) fn directory(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)
        .map_err(|error| Failure::new(format_args!("{}: cannot be made: {error}", directory.display())))
}

/// `summary.json`, `series.parquet` and captures of one run.
pub(super) fn run(directory: &Path, done: &mut Done) -> Result<()> {
    self::directory(directory)?;
    let path = directory.join("summary.json");
    atomic::write(&path, done.run.summary.to_json().as_bytes()).map_err(|error| failed(&path, &error))?;
    let path = directory.join("series.parquet");
    series(&path, &done.run)?;
    match done.captures.take() {
        Some(captures) => captures.commit(),
        None => Ok(()),
    }
}

fn series(path: &Path, run: &Run) -> Result<()> {
    let mut file = AtomicFile::create(path).map_err(|error| failed(path, &error))?;
    parquet::write(&run.series, &mut file)
        .map_err(|error| Failure::new(format_args!("{}: cannot be written: {error}", path.display())))?;
    file.commit().map_err(|error| failed(path, &error))
}

/// `report.html` of all runs; returns its path.
pub(super) fn report(directory: &Path, done: &[Done]) -> Result<PathBuf> {
    self::directory(directory)?;
    let runs: Vec<Run> = done.iter().map(|done| done.run.clone()).collect();
    let path = directory.join("report.html");
    atomic::write(&path, report::page(&runs).as_bytes()).map_err(|error| failed(&path, &error))?;
    Ok(path)
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format_args!("{}: cannot be written: {error}", path.display()))
}
