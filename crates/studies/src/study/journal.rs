//! `study.json` in the folder of a study: what was asked for, and how far it is. And the lock of a running one.
//!
//! The file is that of the study that began last. It has times, so it differs between equal studies; the table and the
//! files of runs do not.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use lastmile_results::atomic::AtomicFile;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::address::ENGINE;
use super::plan::{Failure, Progress, Study};
use super::store::Store;
use crate::variant::pairs;

/// The name of the file.
pub const FILE: &str = "study.json";
/// A file that every running study of the folder has locked.
const LOCK: &str = ".lock";
/// Time between two versions of the file.
const EVERY: Duration = Duration::from_secs(2);

/// The contents of the file.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// The version of lastmile.
    pub version: String,
    /// The identity of the engine.
    pub engine: String,
    /// The name of the study, or of its scenario.
    pub name: String,
    /// The path of the study file.
    pub file: Option<String>,
    /// The text of the study file.
    pub text: Option<String>,
    /// A digest of the scenario's text and its changes.
    pub scenario: String,
    /// Keys of the points.
    pub keys: Vec<String>,
    /// Number of points.
    pub points: usize,
    /// Runs that are known to be needed.
    pub runs: usize,
    /// Runs with a result.
    pub finished: usize,
    /// Runs that this process has simulated.
    pub simulated: usize,
    /// Time that this process has taken, in seconds.
    pub wall_s: f64,
    /// Runs without a result.
    pub failed: Vec<Failed>,
    /// True once every run is finished or failed.
    pub is_complete: bool,
}

/// A run without a result.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Failed {
    /// Its point, in words.
    pub point: String,
    /// Its seed.
    pub seed: u64,
    /// The reason.
    pub reason: String,
}

impl From<&Failure> for Failed {
    fn from(failure: &Failure) -> Self {
        let Failure { point, seed, reason } = failure.clone();
        Self { point, seed, reason }
    }
}

impl From<&Failed> for Failure {
    fn from(failed: &Failed) -> Self {
        let Failed { point, seed, reason } = failed.clone();
        Self { point, seed, reason }
    }
}

impl Record {
    /// This record with the scenario, the keys and the number of points of its study.
    #[must_use]
    pub fn of(self, study: &Study<'_>) -> Self {
        let text = format!("{:?}\0{:?}", study.input.text, pairs(study.common));
        let scenario = Sha256::digest(text).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Self { scenario, keys: study.space.keys.clone(), points: study.space.points.len(), ..self }
    }

    /// True if both are of one study, which may have moved or grown: equal names, and one file or one text of a file;
    /// without files, one scenario and equal keys.
    fn is_of_the_study_of(&self, other: &Self) -> bool {
        let is_same = match (&self.file, &other.file) {
            (None, None) => self.scenario == other.scenario && self.keys == other.keys,
            _ => self.file == other.file || self.text == other.text,
        };
        self.name == other.name && is_same
    }

    /// Runs that are simulated each second; `None` before the first.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let simulated = self.simulated as f64;
        (self.simulated > 0 && self.wall_s > 0.0).then(|| simulated / self.wall_s)
    }
}

/// The file of a running study.
#[derive(Debug)]
pub struct Journal {
    path: std::path::PathBuf,
    record: Record,
    begun: Instant,
    written: Instant,
    /// Locked as long as the study runs.
    _lock: Option<File>,
}

impl Journal {
    /// Begins the file in `folder`.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn begin(folder: &Path, record: Record) -> io::Result<Self> {
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(LOCK))?;
        // Unloaded in the folder, since every other study of it has the lock. What cannot be removed does no harm.
        if lock.try_lock().is_ok() {
            let _ = Store::open(folder).and_then(|store| store.sweep());
        }
        // A file system without locks runs studies, too: only the status does not know.
        let lock = lock.try_lock_shared().is_ok().then_some(lock);
        let record = Record { version: env!("CARGO_PKG_VERSION").to_owned(), engine: ENGINE.to_owned(), ..record };
        let now = Instant::now();
        let journal = Self { path: folder.join(FILE), record, begun: now, written: now, _lock: lock };
        journal.write()?;
        Ok(journal)
    }

    /// Records the progress, now and then.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn note(&mut self, progress: Progress) -> io::Result<()> {
        self.take(progress);
        if self.written.elapsed() < EVERY {
            return Ok(());
        }
        self.written = Instant::now();
        self.write()
    }

    /// Records the end.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn end(mut self, progress: Progress, failures: &[Failure]) -> io::Result<()> {
        self.take(progress);
        self.record.failed = failures.iter().map(Failed::from).collect();
        self.record.is_complete = progress.finished + progress.failed == progress.runs;
        self.write()
    }

    /// The rate and the rest of the record so far.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.record
    }

    fn take(&mut self, progress: Progress) {
        let Progress { runs, finished, simulated, .. } = progress;
        let wall_s = self.begun.elapsed().as_secs_f64();
        self.record = Record { runs, finished, simulated, wall_s, ..std::mem::take(&mut self.record) };
    }

    fn write(&self) -> io::Result<()> {
        let mut file = AtomicFile::create(&self.path)?;
        serde_json::to_writer_pretty(&mut file, &self.record)?;
        file.write_all(b"\n")?;
        file.commit()
    }
}

/// The study that began last in `folder`; `None` without one.
///
/// # Errors
/// Errors of the file system; a file of another form.
pub fn read(folder: &Path) -> io::Result<Option<Record>> {
    let path = folder.join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    serde_json::from_str(&text).map(Some).map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
}

/// A sentence if the table, the page and the record in `folder` are those of another study than `record`, which will
/// replace them. Unreadable records are those of no study.
#[must_use]
pub fn about_other(folder: &Path, record: &Record) -> Option<String> {
    let other = read(folder).ok()??;
    (!other.is_of_the_study_of(record)).then(|| {
        let over = |record: &Record| format!(" over {}", record.keys.join(", "));
        let (from, to) = match &other.file {
            Some(file) => (format!(" of {file}"), String::new()),
            None if other.keys != record.keys => (over(&other), over(record)),
            None => (" with another scenario or other changes of it".to_owned(), String::new()),
        };
        format!(
            "{} has the table and the report of the study {:?}{from}: they become those of {:?}{to}. Its runs stay, \
             and it gives its table again without simulating",
            folder.display(),
            other.name,
            record.name
        )
    })
}

/// True while a study runs in `folder`, as far as the file system has locks.
#[must_use]
pub fn is_running(folder: &Path) -> bool {
    let Ok(lock) = File::open(folder.join(LOCK)) else { return false };
    matches!(lock.try_lock(), Err(TryLockError::WouldBlock))
}

#[cfg(test)]
mod tests {
    use lastmile_scenario::Override;

    use super::super::plan::{Places, Seeds};
    use super::super::space::Space;
    use super::*;
    use crate::Input;

    #[test]
    fn another_study_of_the_folder_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let record = |name: &str, file: &str, text: &str| Record {
            name: name.to_owned(),
            file: Some(file.to_owned()),
            text: Some(text.to_owned()),
            ..Record::default()
        };
        let one = record("one", "/a/one.toml", "seeds = 2");
        assert_eq!(about_other(folder.path(), &one), None);
        Journal::begin(folder.path(), one.clone()).unwrap();
        assert_eq!(about_other(folder.path(), &one), None);
        assert_eq!(about_other(folder.path(), &record("one", "/a/one.toml", "seeds = 9")), None, "it has grown");
        assert_eq!(about_other(folder.path(), &record("one", "/b/one.toml", "seeds = 2")), None, "it has moved");
        for other in [record("one", "/b/one.toml", "seeds = 9"), record("two", "/a/two.toml", "seeds = 2")] {
            let told = about_other(folder.path(), &other).unwrap();
            assert!(told.contains("of the study \"one\" of /a/one.toml"), "{told}");
        }
    }

    /// Studies of Python have no file. Another value of a key is the study that has grown.
    #[test]
    fn another_study_without_a_file_is_told_by_its_keys_and_its_scenario() {
        let folder = tempfile::tempdir().unwrap();
        let record = |duration: &str, key: &str, values: &[&str]| {
            let input = Input { file: None, text: Some("name = \"line\"".to_owned()) };
            let values = values.iter().map(|value| (*value).to_owned()).collect();
            let space = Space::grid(vec![(key.to_owned(), values)]).unwrap();
            let (places, common) = (Places::new(), [Override::set(&format!("duration={duration}"))]);
            let study =
                Study { input: &input, common: &common, space: &space, places: &places, seeds: &Seeds::Count(1) };
            Record { name: "line".to_owned(), ..Record::default() }.of(&study)
        };
        Journal::begin(folder.path(), record("1 s", "up", &["1", "2"])).unwrap();
        assert_eq!(about_other(folder.path(), &record("1 s", "up", &["1", "2", "3"])), None, "it has grown");
        let told = about_other(folder.path(), &record("1 s", "down", &["1", "2"])).unwrap();
        assert!(told.contains("the study \"line\" over up: they become those of \"line\" over down."), "{told}");
        let told = about_other(folder.path(), &record("2 s", "up", &["1", "2"])).unwrap();
        assert!(told.contains("the study \"line\" with another scenario or other changes of it: they"), "{told}");
    }

    #[test]
    fn the_file_says_how_far_a_study_is_and_whether_it_runs() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).unwrap().is_none() && !is_running(folder.path()));
        let record = Record { name: "lines".to_owned(), points: 3, ..Record::default() };
        let mut journal = Journal::begin(folder.path(), record).unwrap();
        assert!(is_running(folder.path()));
        let progress = |finished| Progress { runs: 6, finished, failed: 1, simulated: 2 };
        journal.note(progress(3)).unwrap();
        assert_eq!(read(folder.path()).unwrap().unwrap().finished, 0, "not more than every two seconds");
        let failure = Failure { point: "a \"1\"".to_owned(), seed: 7, reason: "no path".to_owned() };
        journal.end(progress(5), &[failure]).unwrap();
        assert!(!is_running(folder.path()));
        let record = read(folder.path()).unwrap().unwrap();
        assert_eq!((record.finished, record.runs, record.is_complete, record.failed[0].seed), (5, 6, true, 7));
        assert_eq!((record.name.as_str(), record.engine.as_str()), ("lines", ENGINE));
        assert!(record.rate().is_some());
        fs::write(folder.path().join(FILE), "{").unwrap();
        assert!(read(folder.path()).unwrap_err().to_string().contains(FILE));
    }
}
