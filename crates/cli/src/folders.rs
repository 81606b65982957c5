//! Folders for results, checked before anything runs, so that no result is computed that cannot be
//! written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lastmile_results::atomic::AtomicFile;

use crate::failure::{Failure, Result};

/// Existing folders that can hold their files. Dropping the value removes those that it created and
/// that are still empty.
#[derive(Debug, Default)]
pub(crate) struct Folders {
    /// Outer folders first.
    made: Vec<PathBuf>,
}

impl Folders {
    /// Prepares a folder in which files of these names can be written, and creates it if necessary.
    /// `named_by` is the option that determines the names, such as `--out`.
    ///
    /// # Errors
    /// Errors of the file system.
    pub(crate) fn prepare(&mut self, folder: &Path, names: &[&str], named_by: &str) -> Result<()> {
        let missing: Vec<PathBuf> = folder
            .ancestors()
            .take_while(|path| !path.as_os_str().is_empty() && !path.exists())
            .map(Path::to_owned)
            .collect();
        // Some of them may be created before an error.
        self.made.extend(missing.into_iter().rev());
        fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error, named_by))?;
        for name in names {
            let path = folder.join(name);
            AtomicFile::create(&path).map_err(|error| cannot_write(&path, &error, named_by))?;
        }
        Ok(())
    }

    /// Prepares the folder of one file, whose name has one of these endings or none.
    ///
    /// # Errors
    /// Another ending; errors of the file system.
    pub(crate) fn prepare_kind(&mut self, path: &Path, named_by: &str, kind: &str, endings: &[&str]) -> Result<()> {
        if let Some(ending) = path.extension()
            && !endings.iter().any(|known| ending.eq_ignore_ascii_case(known))
        {
            let known = endings.iter().map(|ending| format!(".{ending}")).collect::<Vec<_>>().join(" or ");
            return Err(Failure::new(format_args!("{named_by} {}: {kind}", path.display()))
                .hint(format!("a name that ends in {known}")));
        }
        self.prepare_file(path, named_by)
    }

    /// Prepares the folder of a page.
    ///
    /// # Errors
    /// As [`Folders::prepare_kind`].
    pub(crate) fn prepare_page(&mut self, path: &Path, named_by: &str) -> Result<()> {
        self.prepare_kind(path, named_by, "a page is HTML", &["html", "htm"])
    }

    /// Prepares the folder of one file.
    ///
    /// # Errors
    /// Errors of the file system.
    pub(crate) fn prepare_file(&mut self, path: &Path, named_by: &str) -> Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        self.prepare(folder, &[], named_by)?;
        AtomicFile::create(path).map(drop).map_err(|error| cannot_write(path, &error, named_by))
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        for folder in self.made.iter().rev() {
            // A folder with contents stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

fn cannot_write(path: &Path, error: &io::Error, named_by: &str) -> Failure {
    let failure = Failure::new(format_args!("{named_by}: cannot write {}: {error}", path.display()));
    match error.kind() {
        io::ErrorKind::InvalidFilename => failure.hint("a name has at most 255 bytes, and a path 4095"),
        io::ErrorKind::IsADirectory => {
            failure.hint("a folder has the name of this file: remove it, or write elsewhere")
        }
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_stay_empty_go_again() {
        let temporary = tempfile::tempdir().unwrap();
        let base = temporary.path();
        let deep = base.join("a/b");
        let mut folders = Folders::default();
        folders.prepare(&deep, &["x"], "--out").unwrap();
        folders.prepare(&base.join("a/c"), &[], "--out").unwrap();
        assert!(deep.is_dir() && base.join("a/c").is_dir());
        fs::write(deep.join("x"), "result").unwrap();
        drop(folders);
        assert!(deep.join("x").is_file() && !base.join("a/c").exists());
    }
}
