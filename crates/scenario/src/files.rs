//! The files that a scenario names: policies, traces, distributions, captures. They are those of the machine, or
//! those of a caller without a file system, such as a page in a browser.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Error, ErrorKind, Read, Result};
use std::path::{Path, PathBuf};

/// Files by their paths.
pub trait Files {
    /// The file at `path`, from its first byte.
    ///
    /// # Errors
    /// It cannot be read.
    fn open(&self, path: &Path) -> Result<Box<dyn Read>>;
}

/// The files of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn open(&self, path: &Path) -> Result<Box<dyn Read>> {
        Ok(Box::new(File::open(path)?))
    }
}

/// Files in memory.
#[derive(Clone, Debug, Default)]
pub struct InMemory(BTreeMap<PathBuf, Vec<u8>>);

impl InMemory {
    /// Adds a file, or replaces the one at this path.
    pub fn add(&mut self, path: impl Into<PathBuf>, bytes: impl Into<Vec<u8>>) {
        self.0.insert(path.into(), bytes.into());
    }
}

impl Files for InMemory {
    fn open(&self, path: &Path) -> Result<Box<dyn Read>> {
        let bytes = self.0.get(path).ok_or_else(|| Error::from(ErrorKind::NotFound))?;
        Ok(Box::new(Cursor::new(bytes.clone())))
    }
}

/// The text of the file at `path`.
pub(crate) fn text(files: &dyn Files, path: &Path) -> Result<String> {
    let mut text = String::new();
    files.open(path)?.read_to_string(&mut text)?;
    Ok(text)
}
