//! Reads the files of a run: `summary.json` and the samples.
//!
//! The samples come from `series.parquet`, or without it from `series.csv`. The latter has the same
//! four columns as text, under a line of their names: `time_s,series,entity,value`. Any program can
//! write it, so that other measurements can be compared with lastmile's. Names and entities must
//! have no commas and quotes.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::schema::Summary;
use crate::series::{self, Series};
use crate::write::{SERIES, SUMMARY};
use crate::{Run, parquet};

/// Name of the file with the samples as text.
pub const SERIES_AS_TEXT: &str = "series.csv";

const HEADING: &str = "time_s,series,entity,value";

/// A result that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {source}", path.display())]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// The run with files in the folder `dir`, labelled with the folder's name. It has no samples
/// without a file of samples.
///
/// # Errors
/// No `summary.json`, or an invalid file.
pub fn read(dir: &Path) -> Result<Run, ReadError> {
    let summary = summary(&dir.join(SUMMARY))?;
    let mut series = Vec::new();
    for (name, reader) in [(SERIES, parquet::read as fn(File) -> _), (SERIES_AS_TEXT, text_series)] {
        let path = dir.join(name);
        if path.exists() {
            series = File::open(&path).and_then(reader).map_err(|source| ReadError { path, source })?;
            break;
        }
    }
    let label = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Run { label, own: Vec::new(), summary, series })
}

/// The summary of a run: that of a folder with its results, or this file.
///
/// # Errors
/// No such file, or an invalid one.
pub fn summary(path: &Path) -> Result<Summary, ReadError> {
    let path = if path.is_dir() { path.join(SUMMARY) } else { path.to_owned() };
    let text = fs::read(&path).and_then(|text| Ok(serde_json::from_slice(&text)?));
    text.map_err(|source| ReadError { path, source })
}

/// Samples as text.
fn text_series(file: File) -> io::Result<Vec<Series>> {
    let mut all = Vec::new();
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let line = line?;
        let wrong =
            |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("line {}: {what}: \"{line}\"", number + 1));
        if number == 0 {
            if line != HEADING {
                return Err(wrong(&format!("the first line is not \"{HEADING}\"")));
            }
            continue;
        }
        let cells: Vec<&str> = line.split(',').collect();
        let [time, name, entity, value] = cells[..] else { return Err(wrong("not four cells")) };
        let read = |cell: &str| cell.parse().map_err(|_| wrong("not a number"));
        series::push(&mut all, (name, entity), (read(time)?, read(value)?));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomic::tests::TestDir;
    use crate::schema::RunFacts;
    use crate::write::write_all;

    fn run() -> Run {
        let series = vec![
            Series { name: "rtt_s".into(), entity: "ping".into(), points: vec![(0.0, 0.25), (0.1, 0.5)] },
            Series { name: "goodput_bps".into(), entity: "upload".into(), points: vec![(1.0, 4e5)] },
        ];
        let summary = Summary {
            run: RunFacts { scenario: "a".into(), duration_s: 30.0, ..RunFacts::default() },
            ..Summary::default()
        };
        Run { label: "first".into(), own: Vec::new(), summary, series }
    }

    #[test]
    fn a_run_that_was_written_is_read_again_under_the_name_of_its_folder() {
        let folder = TestDir::new("read-again");
        let dir = folder.file("first");
        write_all(&dir, &run()).unwrap();
        let Run { label, summary, series, .. } = read(&dir).unwrap();
        assert_eq!((label, summary, series), (run().label, run().summary, run().series));
    }

    #[test]
    fn samples_as_text_take_the_place_of_the_other_file_and_no_samples_are_none() {
        let folder = TestDir::new("read-text");
        let dir = folder.file("first");
        write_all(&dir, &run()).unwrap();
        fs::remove_file(dir.join(SERIES)).unwrap();
        assert_eq!(read(&dir).unwrap().series, []);
        let text = format!("{HEADING}\n0.0,rtt_s,ping,0.25\n0.1,rtt_s,ping,0.5\n1,goodput_bps,upload,4e5\n");
        fs::write(dir.join(SERIES_AS_TEXT), text).unwrap();
        assert_eq!(read(&dir).unwrap().series, run().series);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_file_and_line() {
        let folder = TestDir::new("read-wrong");
        let dir = folder.file("first");
        assert!(read(&dir).unwrap_err().path.ends_with("first/summary.json"));
        write_all(&dir, &run()).unwrap();
        fs::remove_file(dir.join(SERIES)).unwrap();
        for (text, told) in [
            ("time,name\n", "line 1: the first line"),
            ("time_s,series,entity,value\n1,a,b\n", "line 2: not four cells"),
            ("time_s,series,entity,value\n1,a,b,c\n", "line 2: not a number"),
        ] {
            fs::write(dir.join(SERIES_AS_TEXT), text).unwrap();
            let error = read(&dir).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
        assert_eq!(summary(&dir).unwrap(), summary(&dir.join(SUMMARY)).unwrap());
        fs::write(dir.join(SUMMARY), "{}").unwrap();
        assert!(read(&dir).unwrap_err().to_string().contains("missing field"));
    }
}
