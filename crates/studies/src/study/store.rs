//! The files of runs: `FOLDER/runs/AB/ADDRESS.parquet`, where AB begins the address.
//!
//! A file has a row for each measure: `measure`, `value`. It is written under a hidden name, synchronised and renamed,
//! so that a process which is killed leaves whole files. Hidden files that it leaves are no results; the next study in
//! the folder removes them. A file that is damaged all the same, such as by the disk, is no result: its run is
//! simulated again, and replaces it. A run without a result, which depends on its inputs alone, leaves
//! `ADDRESS.failed` with the reason.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lastmile_results::atomic::{self, AtomicFile};
use lastmile_results::parquet::all_of;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::address::Address;

const SCHEMA: &str = "message run { required binary measure (string); required double value; }";
/// The folder of the files of runs.
const RUNS: &str = "runs";
/// The extension of a run without a result.
const FAILED: &str = "failed";

/// The measures of a run, by name.
pub type Measures = BTreeMap<String, f64>;

/// A run in the folder.
#[derive(Clone, PartialEq, Debug)]
pub enum Kept {
    /// Its measures.
    Measures(Measures),
    /// Why it has no result.
    Failed(String),
}

/// The contents of the folder for a run.
#[derive(Clone, PartialEq, Debug)]
pub enum Found {
    /// The run.
    Kept(Kept),
    /// A file that is no result, such as one that lost its contents.
    Damaged(PathBuf),
    /// Nothing.
    Nothing,
}

/// The folder of a study.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// The folder, which is created if necessary.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder.join(RUNS))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of a run.
    #[must_use]
    pub fn path(&self, address: &Address) -> PathBuf {
        let (shelf, _) = address.as_str().split_at(2);
        self.folder.join(RUNS).join(shelf).join(format!("{}.parquet", address.as_str()))
    }

    /// The run as the folder has it.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn find(&self, address: &Address) -> io::Result<Found> {
        let path = self.path(address);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return failure(&path.with_extension(FAILED)),
            Err(error) => return Err(error),
        };
        match read(file) {
            Ok(measures) => Ok(Found::Kept(Kept::Measures(measures))),
            Err(error) => match of_system(&error) {
                Some(kind) => Err(io::Error::new(kind, format!("{}: {error}", path.display()))),
                None => Ok(Found::Damaged(path)),
            },
        }
    }

    /// Removes the hidden files that processes left which were killed. None may write in the folder.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn sweep(&self) -> io::Result<()> {
        atomic::sweep(&self.folder)?;
        for shelf in fs::read_dir(self.folder.join(RUNS))? {
            let shelf = shelf?;
            if shelf.file_type()?.is_dir() {
                atomic::sweep(&shelf.path())?;
            }
        }
        Ok(())
    }

    /// Writes a finished run. A run that another process has finished meanwhile keeps its file.
    ///
    /// # Errors
    /// Errors of the file system. The file then does not exist.
    pub fn keep(&self, address: &Address, kept: &Kept) -> io::Result<()> {
        let path = self.path(address);
        if matches!(self.find(address)?, Found::Kept(_)) {
            return Ok(());
        }
        if let Some(shelf) = path.parent() {
            fs::create_dir_all(shelf)?;
        }
        let file = match kept {
            Kept::Measures(measures) => {
                let mut file = AtomicFile::create(&path)?;
                write(measures, &mut file).map_err(io::Error::other)?;
                file
            }
            Kept::Failed(reason) => {
                let mut file = AtomicFile::create(&path.with_extension(FAILED))?;
                file.write_all(reason.as_bytes())?;
                file
            }
        };
        file.commit()
    }
}

/// The run without a result whose reason this file has.
fn failure(path: &Path) -> io::Result<Found> {
    match fs::read_to_string(path) {
        Ok(reason) if !reason.is_empty() => Ok(Found::Kept(Kept::Failed(reason))),
        Ok(_) => Ok(Found::Damaged(path.to_owned())),
        Err(error) if error.kind() == ErrorKind::InvalidData => Ok(Found::Damaged(path.to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Nothing),
        Err(error) => Err(error),
    }
}

/// The error of the file system behind an error of Parquet; `None` if the contents are wrong.
fn of_system(error: &ParquetError) -> Option<ErrorKind> {
    let ParquetError::External(inner) = error else { return None };
    let inner = inner.downcast_ref::<io::Error>()?;
    (!matches!(inner.kind(), ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::InvalidInput))
        .then(|| inner.kind())
}

fn write(measures: &Measures, out: &mut AtomicFile) -> Result<(), ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let properties =
        WriterProperties::builder().set_compression(Compression::SNAPPY).set_created_by("lastmile".to_owned()).build();
    let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    let names: Vec<ByteArray> = measures.keys().map(|name| ByteArray::from(name.as_str())).collect();
    let values: Vec<f64> = measures.values().copied().collect();
    let mut column = group.next_column()?.expect("the schema has two columns");
    column.typed::<ByteArrayType>().write_batch(&names, None, None)?;
    column.close()?;
    let mut column = group.next_column()?.expect("the schema has two columns");
    column.typed::<DoubleType>().write_batch(&values, None, None)?;
    column.close()?;
    group.close()?;
    writer.close()?;
    Ok(())
}

fn read(file: File) -> Result<Measures, ParquetError> {
    let file = SerializedFileReader::new(file)?;
    let mut measures = Measures::new();
    for number in 0..file.num_row_groups() {
        let group = file.get_row_group(number)?;
        let (names, values) = (all_of::<ByteArrayType>(&*group, 0)?, all_of::<DoubleType>(&*group, 1)?);
        for (name, value) in names.iter().zip(values) {
            measures.insert(name.as_utf8()?.to_owned(), value);
        }
    }
    Ok(measures)
}

#[cfg(test)]
mod tests {
    use lastmile_results::schema::Inputs;
    use lastmile_scenario::Scenario;

    use super::*;

    fn address(seed: u64) -> Address {
        let text = "duration = \"1 s\"\n[access]\ndown = { rate = \"2 Mbit/s\" }\nup = { rate = \"256 kbit/s\" }\n";
        let set = vec![format!("seed={seed}")];
        let scenario = Scenario::parse("f.toml", text, &set).unwrap();
        Address::of(&scenario, &Inputs { file: None, set, text: Some(text.to_owned()) })
    }

    #[test]
    fn measures_are_read_as_they_were_written_bit_for_bit() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("deep/study")).unwrap();
        let measures = Measures::from([("download_bps".to_owned(), 1.0 / 3.0), ("ping.p50_s".to_owned(), -0.0)]);
        assert_eq!(store.find(&address(1)).unwrap(), Found::Nothing);
        store.keep(&address(1), &Kept::Measures(measures.clone())).unwrap();
        assert_eq!(store.find(&address(2)).unwrap(), Found::Nothing);
        let Found::Kept(Kept::Measures(read)) = store.find(&address(1)).unwrap() else { panic!("it is there") };
        let bits = |measures: &Measures| measures.values().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!((bits(&read), read), (bits(&measures), measures));
    }

    /// A power failure, or a full disk of a copy, leaves a file without its contents or with a part of them.
    #[test]
    fn a_damaged_file_is_no_result_and_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let measures = Kept::Measures(Measures::from([("download_bps".to_owned(), 1e6)]));
        store.keep(&address(1), &measures).unwrap();
        let path = store.path(&address(1));
        let whole = fs::read(&path).unwrap();
        for length in [0, 4, whole.len() / 2, whole.len() - 1] {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(store.find(&address(1)).unwrap(), Found::Damaged(path.clone()), "{length}");
            store.keep(&address(1), &measures).unwrap();
            assert_eq!(fs::read(&path).unwrap(), whole, "{length}");
        }
        store.keep(&address(2), &Kept::Failed("no path".to_owned())).unwrap();
        fs::write(store.path(&address(2)).with_extension(FAILED), "").unwrap();
        assert!(matches!(store.find(&address(2)).unwrap(), Found::Damaged(_)));
    }

    /// A process that is killed while it writes leaves a hidden file.
    #[test]
    fn hidden_files_are_no_results_and_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let path = store.path(&address(1));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let left = [path.with_file_name(".half.1-0.partial"), folder.path().join(".table.parquet.1-0.partial")];
        for left in &left {
            fs::write(left, "PAR1").unwrap();
            let file = File::options().write(true).open(left).unwrap();
            file.set_modified(std::time::UNIX_EPOCH).unwrap();
        }
        assert_eq!(store.find(&address(1)).unwrap(), Found::Nothing);
        store.keep(&address(1), &Kept::Failed("no path".to_owned())).unwrap();
        store.sweep().unwrap();
        assert!(left.iter().all(|left| !left.exists()));
        assert_eq!(store.find(&address(1)).unwrap(), Found::Kept(Kept::Failed("no path".to_owned())));
    }
}
