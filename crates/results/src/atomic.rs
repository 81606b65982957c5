//! Files that are there whole or not at all.
//!
//! What is written goes to a hidden file in the same directory, which takes its final name in one step (rename(2)) once all
//! of it is on the disk. An interrupted run, a full disk or a lost error leaves no half-written result under a final
//! name, and a result from before stays until the new one is complete.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file under way to its final name. Dropped before [`AtomicFile::commit`], it is removed.
#[derive(Debug)]
pub struct AtomicFile {
    /// `None` once committed or removed.
    writer: Option<BufWriter<File>>,
    temporary: PathBuf,
    path: PathBuf,
}

impl AtomicFile {
    /// Begins a file that will be `path`, in the same directory, which must exist.
    ///
    /// # Errors
    ///
    /// When `path` names no file, or no file can be made in its directory.
    pub fn create(path: &Path) -> io::Result<Self> {
        let Some(name) = path.file_name() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} names no file", path.display())));
        };
        for attempt in 0..MAX_ATTEMPTS {
            let mut hidden = OsString::from(".");
            hidden.push(name);
            hidden.push(format!(".{}-{attempt}.partial", std::process::id()));
            let temporary = path.with_file_name(hidden);
            match OpenOptions::new().write(true).create_new(true).open(&temporary) {
                Ok(file) => {
                    let writer = Some(BufWriter::with_capacity(BUFFER_BYTES, file));
                    return Ok(Self { writer, temporary, path: path.to_owned() });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} unfinished files", path.display())))
    }

    /// Where the file will be.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its final name, in place of what had it, when all of it is on the disk.
    ///
    /// # Errors
    ///
    /// When something could not be written, now or before; the file is removed then.
    pub fn commit(mut self) -> io::Result<()> {
        let writer = self.writer.as_mut().expect("only commit and drop take the writer, and both are last");
        writer.flush()?;
        writer.get_ref().sync_all()?;
        fs::rename(&self.temporary, &self.path)?;
        self.writer = None;
        sync_directory(&self.path)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.as_mut().expect("only commit and drop take the writer, and both are last").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().expect("only commit and drop take the writer, and both are last").flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            // What is still buffered is of no use to anyone.
            drop(writer.into_parts());
            // Nobody is left to tell; a hidden file that stays has no final name.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Writes a whole file in one step.
///
/// # Errors
///
/// When it cannot be written; then there is no new file, and an old one stays.
pub fn write(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(contents)?;
    file.commit()
}

/// Names that a process may have under way for one path at a time.
const MAX_ATTEMPTS: u32 = 100;
/// Large enough that a capture costs few system calls.
const BUFFER_BYTES: usize = 64 * 1024;

/// Makes the new name as durable as the contents (fsync(2): the directory needs a sync of its own).
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match File::open(directory).and_then(|directory| directory.sync_all()) {
        // Some file systems know no sync of a directory, and the file is in place.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        result => result,
    }
}

#[cfg(test)]
pub(crate) mod tests;
