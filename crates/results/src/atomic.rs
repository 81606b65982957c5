//! Files that are there whole or not at all.
//!
//! What is written goes to a hidden file in the same directory, which takes its final name in one step (rename(2)) once all
//! of it is on the disk. An interrupted run, a full disk or a lost error leaves no half-written result under a final
//! name, and a result from before stays until the new one is complete.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The hidden files of this process that have no final name yet. Held while files take their names.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

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
        may_be(path)?;
        let name = name.to_string_lossy();
        let name = shortened(&name);
        for attempt in 0..MAX_ATTEMPTS {
            let temporary = path.with_file_name(format!(".{name}.{}-{attempt}.partial", std::process::id()));
            let mut unfinished = unfinished();
            match OpenOptions::new().write(true).create_new(true).open(&temporary) {
                Ok(file) => {
                    unfinished.insert(temporary.clone());
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
    pub fn commit(self) -> io::Result<()> {
        commit_all(vec![self]).map_err(|(_, error)| error)
    }

    /// Brings all that was written to the disk.
    fn sync(&mut self) -> io::Result<()> {
        let writer = self.writer.as_mut().expect("only commit and drop take the writer, and both are last");
        writer.flush()?;
        writer.get_ref().sync_all()
    }

    /// Takes the final name. `unfinished` is the list that has the hidden one.
    fn rename(&mut self, unfinished: &mut BTreeSet<PathBuf>) -> io::Result<()> {
        fs::rename(&self.temporary, &self.path)?;
        self.writer = None;
        unfinished.remove(&self.temporary);
        Ok(())
    }
}

/// Gives several files their final names: one after the other once all of every file is on the disk, and without [`abandon`]
/// in between.
///
/// # Errors
///
/// The path of the first file that could not be written, and why. All are removed then that have no final name yet; only an
/// error of rename(2) itself comes after a file has one.
pub fn commit_all(mut files: Vec<AtomicFile>) -> Result<(), (PathBuf, io::Error)> {
    for file in &mut files {
        file.sync().map_err(|error| (file.path.clone(), error))?;
    }
    let renamed = {
        let mut unfinished = unfinished();
        files.iter_mut().try_for_each(|file| file.rename(&mut unfinished).map_err(|error| (file.path.clone(), error)))
    };
    renamed?;
    for file in &files {
        sync_directory(&file.path).map_err(|error| (file.path.clone(), error))?;
    }
    Ok(())
}

/// Removes all files of this process that have no final name yet, then calls `end`: no file takes its name any more. For a program
/// that must end at once, whatever its threads are doing.
pub fn abandon(end: impl FnOnce()) {
    let mut unfinished = unfinished();
    for temporary in std::mem::take(&mut *unfinished) {
        // Nobody is left to tell; a hidden file that stays has no final name.
        let _ = fs::remove_file(temporary);
    }
    end();
}

/// An error if no file can have this path: a folder has it, or it is longer than the file system takes.
fn may_be(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        Err(error) if error.kind() == io::ErrorKind::InvalidFilename => Err(error),
        _ => Ok(()),
    }
}

/// So much of a file's name that a hidden name with it is no longer than 100 bytes: then the length of the file's own name is
/// all that counts.
fn shortened(name: &str) -> &str {
    let end = name.char_indices().map(|(at, _)| at).find(|at| *at > 50).unwrap_or(name.len());
    &name[..end]
}

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
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
            // As in `abandon`.
            let _ = fs::remove_file(&self.temporary);
            unfinished().remove(&self.temporary);
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
