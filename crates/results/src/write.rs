//! The files of a run: `summary.json`, `series.parquet`, `report.html`, all of them or none.
//!
//! All files are first written under hidden names ([`crate::atomic`]). They get their names only
//! when the last is complete, one rename(2) after the other. Likely failures, above all a full
//! disk, occur before the first rename, and leave the files of an earlier run unchanged.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::atomic::{self, AtomicFile};
use crate::comparison::Comparison;
use crate::{Run, parquet, report};

/// Name of the file with all scalar results.
pub const SUMMARY: &str = "summary.json";
/// Name of the file with the samples.
pub const SERIES: &str = "series.parquet";
/// Name of the page for people.
pub const REPORT: &str = "report.html";

/// All files of a run.
pub const FILES: [&str; 3] = [SUMMARY, SERIES, REPORT];

/// A result that could not be written. No file with a final name changed, unless only the last step
/// failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    /// The file or folder that could not be written.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Writes the files of `run` into the folder `dir`, which is created if necessary, and returns
/// their paths.
///
/// # Errors
/// Errors of the file system. Then none of the files exists, or all are unchanged.
pub fn write_all(dir: &Path, run: &Run) -> Result<Vec<PathBuf>, WriteError> {
    write_all_with(dir, run, &[])
}

/// [`write_all`] with more files of the caller's in the same folder, by name.
///
/// # Errors
/// Errors of the file system. Then none of the files exists, or all are unchanged.
pub fn write_all_with(dir: &Path, run: &Run, more: &[(&str, &[u8])]) -> Result<Vec<PathBuf>, WriteError> {
    let existed = dir.is_dir();
    let written = stage(dir, run, more).and_then(commit);
    if written.is_err() && !existed {
        // Only an empty folder is removed, and the first error is the one to report.
        let _ = fs::remove_dir(dir);
    }
    written
}

/// Writes the comparison of several runs as one page: [`report::comparison`].
///
/// # Errors
/// Errors of the file system; then `path` is unchanged.
pub fn write_comparison(path: &Path, comparison: &Comparison) -> Result<(), WriteError> {
    write_text(path, &report::comparison(comparison))
}

/// Writes some series of several runs side by side, by name, as one drawing (SVG):
/// [`report::figure`].
///
/// # Errors
/// Errors of the file system; then `path` is unchanged.
pub fn write_figure(path: &Path, runs: &[Run], series: &[&str]) -> Result<(), WriteError> {
    write_text(path, &report::figure(runs, series))
}

fn write_text(path: &Path, text: &str) -> Result<(), WriteError> {
    let failed = |source| WriteError { path: path.to_owned(), source };
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        fs::create_dir_all(dir).map_err(|source| WriteError { path: dir.to_owned(), source })?;
    }
    atomic::write(path, text.as_bytes()).map_err(failed)
}

/// Every file, complete under a hidden name. Files that are dropped are removed.
fn stage(dir: &Path, run: &Run, more: &[(&str, &[u8])]) -> Result<Vec<AtomicFile>, WriteError> {
    fs::create_dir_all(dir).map_err(|source| WriteError { path: dir.to_owned(), source })?;
    let mut files = vec![
        file(&dir.join(SERIES), |file| parquet::write(&run.series, file))?,
        file(&dir.join(REPORT), |file| file.write_all(report::page(std::slice::from_ref(run)).as_bytes()))?,
        file(&dir.join(SUMMARY), |file| run.summary.write_json(file))?,
    ];
    for (name, contents) in more {
        files.push(file(&dir.join(name), |file| file.write_all(contents))?);
    }
    Ok(files)
}

fn file(path: &Path, fill: impl FnOnce(&mut AtomicFile) -> io::Result<()>) -> Result<AtomicFile, WriteError> {
    let failed = |source| WriteError { path: path.to_owned(), source };
    let mut file = AtomicFile::create(path).map_err(failed)?;
    fill(&mut file).map_err(failed)?;
    // Buffered data must reach the disk before any file gets its name.
    file.flush().map_err(failed)?;
    Ok(file)
}

fn commit(files: Vec<AtomicFile>) -> Result<Vec<PathBuf>, WriteError> {
    let paths = files.iter().map(|file| file.path().to_owned()).collect();
    atomic::commit_all(files).map_err(|(path, source)| WriteError { path, source })?;
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomic::tests::TestDir;
    use crate::schema::RunFacts;

    fn run(scenario: &str) -> Run {
        let series = vec![crate::Series { name: "rtt_s".into(), entity: "ping".into(), points: vec![(0.0, 1.0)] }];
        let summary = crate::Summary {
            run: RunFacts { scenario: scenario.into(), ..RunFacts::default() },
            ..crate::Summary::default()
        };
        Run { label: String::new(), own: Vec::new(), summary, series }
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = entries.collect();
        names.sort();
        names
    }

    #[test]
    fn all_files_are_there_and_nothing_else() {
        let folder = TestDir::new("write-all");
        let dir = folder.file("deep").join("out");
        let paths = write_all(&dir, &run("a")).unwrap();
        assert_eq!(names(&dir), ["report.html", "series.parquet", "summary.json"]);
        assert!(paths.iter().all(|path| path.is_file()));
        assert_eq!(fs::read_to_string(dir.join(SUMMARY)).unwrap(), run("a").summary.to_json());
    }

    /// The last file cannot be written: its name exceeds the limit of the file system.
    #[test]
    fn when_one_file_fails_the_others_stay_as_they_were() {
        let folder = TestDir::new("write-fails");
        let dir = folder.file("out");
        let name = "n".repeat(1_000);
        let error = write_all_with(&dir, &run("a"), &[(&name, b"x")]).unwrap_err();
        assert!(error.to_string().starts_with("cannot write ") && error.path.ends_with(&name), "{error}");
        assert!(!dir.exists(), "a folder that was made for nothing goes");

        write_all(&dir, &run("before")).unwrap();
        write_all_with(&dir, &run("after"), &[(&name, b"x")]).unwrap_err();
        assert_eq!(names(&dir), ["report.html", "series.parquet", "summary.json"]);
        assert!(fs::read_to_string(dir.join(SUMMARY)).unwrap().contains("\"before\""));
    }

    #[test]
    fn a_file_in_the_way_of_the_folder_is_an_error_that_names_it() {
        let folder = TestDir::new("write-blocked");
        let blocked = folder.file("out");
        fs::write(&blocked, "not a folder").unwrap();
        let error = write_all(&blocked, &run("a")).unwrap_err();
        assert_eq!(error.path, blocked);
    }
}
