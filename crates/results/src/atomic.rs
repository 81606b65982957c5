//! Files that exist whole or not at all.
//!
//! A file is written under a hidden name in the same directory and renamed in one step (rename(2))
//! once it is entirely on the disk. An interrupted run, a full disk or a lost error leaves no
//! partial result under a final name, and an earlier result stays until the new one is complete.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The hidden files of this process without a final name. Locked during renames.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A file without its final name. Dropped without [`AtomicFile::commit`], it is removed.
#[derive(Debug)]
pub struct AtomicFile {
    /// `None` once committed or removed.
    writer: Option<BufWriter<File>>,
    temporary: PathBuf,
    path: PathBuf,
}

impl AtomicFile {
    /// Begins a file that will become `path`, in the same directory, which must exist.
    ///
    /// # Errors
    ///
    /// `path` names no file, or no file can be created in its directory.
    pub fn create(path: &Path) -> io::Result<Self> {
        let Some(name) = path.file_name() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} names no file", path.display())));
        };
        may_be(path)?;
        let name = name.to_string_lossy();
        let name = shortened(&name);
        for attempt in 0..MAX_ATTEMPTS {
            let temporary = path.with_file_name(format!(".{name}.{}-{attempt}{SUFFIX}", std::process::id()));
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

    /// The final path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Renames the file to its final name, replacing any other, once it is entirely on the disk.
    ///
    /// # Errors
    ///
    /// A write failed, in this call or earlier; the file is then removed.
    pub fn commit(self) -> io::Result<()> {
        commit_all(vec![self]).map_err(|(_, error)| error)
    }

    /// Writes everything to the disk.
    fn sync(&mut self) -> io::Result<()> {
        let writer = self.writer.as_mut().expect("only commit and drop take the writer, and both are last");
        writer.flush()?;
        writer.get_ref().sync_all()
    }

    /// Renames the file. `unfinished` is the list that has the hidden one.
    fn rename(&mut self, unfinished: &mut BTreeSet<PathBuf>) -> io::Result<()> {
        fs::rename(&self.temporary, &self.path)?;
        self.writer = None;
        unfinished.remove(&self.temporary);
        Ok(())
    }
}

/// Renames several files, one after the other, once all of them are entirely on the disk.
/// [`abandon`] cannot intervene.
///
/// # Errors
///
/// The path of the first file that failed, and the reason. All files without a final name are then
/// removed. Only an error of rename(2) itself can follow a successful rename.
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

/// Removes all files of this process without a final name, then calls `end`. No file is renamed
/// afterwards. For a program that must end immediately, regardless of its threads.
pub fn abandon(end: impl FnOnce()) {
    let mut unfinished = unfinished();
    for temporary in std::mem::take(&mut *unfinished) {
        // The process ends, and a hidden file that remains has no final name.
        let _ = fs::remove_file(temporary);
    }
    end();
}

/// Removes the hidden files in `folder` that processes left which were killed: those that nobody has written to for
/// ten seconds, since a process of another machine may be at work.
///
/// # Errors
///
/// The folder cannot be read.
pub fn sweep(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_hidden = name.to_string_lossy().starts_with('.') && name.to_string_lossy().ends_with(SUFFIX);
        let age = || entry.metadata().and_then(|about| about.modified()).ok()?.elapsed().ok();
        if is_hidden && age().is_some_and(|age| age >= QUIET) {
            // A file that stays has no final name.
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// An error if no file can have this path: it is a folder, or longer than the file system allows.
fn may_be(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        Err(error) if error.kind() == io::ErrorKind::InvalidFilename => Err(error),
        _ => Ok(()),
    }
}

/// The part of a file's name that keeps its hidden name within 100 bytes, so that only the file's
/// own name can be too long.
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
            // The buffered data are discarded.
            drop(writer.into_parts());
            // A hidden file that remains has no final name.
            let _ = fs::remove_file(&self.temporary);
            unfinished().remove(&self.temporary);
        }
    }
}

/// Writes a whole file in one step.
///
/// # Errors
///
/// The file cannot be written: there is no new file, and an existing one stays.
pub fn write(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(contents)?;
    file.commit()
}

/// The end of hidden names.
const SUFFIX: &str = ".partial";
/// The time after which nobody writes to a hidden file any more.
const QUIET: Duration = Duration::from_secs(10);
/// The most hidden names of a process for one path.
const MAX_ATTEMPTS: u32 = 100;
/// Size of the write buffer: a capture then needs few system calls.
const BUFFER_BYTES: usize = 64 * 1024;

/// Makes the rename as durable as the contents (fsync(2): the directory needs its own sync).
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match File::open(directory).and_then(|directory| directory.sync_all()) {
        // Some file systems cannot sync a directory; the file has its name.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        result => result,
    }
}

#[cfg(test)]
pub(crate) mod tests;
