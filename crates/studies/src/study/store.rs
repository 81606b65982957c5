//! The files of runs: `FOLDER/runs/AB/ADDRESS.parquet`, where AB begins the address.
//!
//! A file has a row for each measure: `measure`, `value`. It is written under a hidden name, synchronised and renamed,
//! so that a process which is killed leaves whole files. Hidden files that it leaves are no results. A run without a
//! result, which depends on its inputs alone, leaves `ADDRESS.failed` with the reason.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lastmile_results::atomic::AtomicFile;
use parquet::basic::Compression;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
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

    /// True if the run is finished.
    #[must_use]
    pub fn has(&self, address: &Address) -> bool {
        self.path(address).is_file()
    }

    /// The measures of a run; `None` for a run that is not finished.
    ///
    /// # Errors
    /// Errors of the file system; a file that is no result.
    pub fn read(&self, address: &Address) -> io::Result<Option<Measures>> {
        let path = self.path(address);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        read(file).map(Some).map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
    }

    /// The measures of a run or the reason for their lack; `None` for a run that is not finished.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub fn kept(&self, address: &Address) -> io::Result<Option<Kept>> {
        if let Some(measures) = self.read(address)? {
            return Ok(Some(Kept::Measures(measures)));
        }
        match fs::read_to_string(self.path(address).with_extension(FAILED)) {
            Ok(reason) => Ok(Some(Kept::Failed(reason))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a finished run. A run that another process has finished meanwhile keeps its file.
    ///
    /// # Errors
    /// Errors of the file system. The file then does not exist.
    pub fn keep(&self, address: &Address, kept: &Kept) -> io::Result<()> {
        let path = self.path(address);
        if self.has(address) {
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
        let (names, values) = (all::<ByteArrayType>(&*group, 0)?, all::<DoubleType>(&*group, 1)?);
        for (name, value) in names.iter().zip(values) {
            measures.insert(name.as_utf8()?.to_owned(), value);
        }
    }
    Ok(measures)
}

/// All values of a required column.
fn all<T: DataType>(group: &dyn RowGroupReader, column: usize) -> Result<Vec<T::T>, ParquetError> {
    let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
    let mut values = Vec::with_capacity(rows);
    get_typed_column_reader::<T>(group.get_column_reader(column)?).read_records(rows, None, None, &mut values)?;
    Ok(values)
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
        assert!(!store.has(&address(1)));
        assert_eq!(store.read(&address(1)).unwrap(), None);
        store.keep(&address(1), &Kept::Measures(measures.clone())).unwrap();
        assert!(store.has(&address(1)) && !store.has(&address(2)));
        let read = store.read(&address(1)).unwrap().unwrap();
        let bits = |measures: &Measures| measures.values().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!((bits(&read), read), (bits(&measures), measures));
    }

    /// A process that is killed while it writes leaves a hidden file.
    #[test]
    fn a_hidden_file_is_no_result_and_a_broken_one_is_an_error_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let path = store.path(&address(1));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path.with_file_name(".half.partial"), "PAR1").unwrap();
        assert!(!store.has(&address(1)));
        fs::write(&path, "PAR1").unwrap();
        let error = store.read(&address(1)).unwrap_err().to_string();
        assert!(error.starts_with(&path.display().to_string()), "{error}");
    }

    #[test]
    fn a_run_without_a_result_keeps_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let failed = Kept::Failed("no path".to_owned());
        assert_eq!(store.kept(&address(1)).unwrap(), None);
        store.keep(&address(1), &failed).unwrap();
        assert_eq!(store.kept(&address(1)).unwrap(), Some(failed));
        assert_eq!((store.read(&address(1)).unwrap(), store.has(&address(1))), (None, false));
    }
}
