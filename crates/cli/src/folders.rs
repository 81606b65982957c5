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
    /// A file in the place of a folder; errors of the file system.
    pub(crate) fn prepare(&mut self, folder: &Path, names: &[&str], named_by: &str) -> Result<()> {
        has_no_file(folder, folder, named_by)?;
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

    /// Checks the name and the folder of one file, whose name has one of these endings or none.
    ///
    /// # Errors
    /// Another ending; as [`Folders::prepare_file`].
    pub(crate) fn prepare_kind(&mut self, path: &Path, named_by: &str, kind: &str, endings: &[&str]) -> Result<()> {
        check_ending(path, named_by, kind, endings)?;
        self.prepare_file(path, named_by)
    }

    /// Checks the folder of a page.
    ///
    /// # Errors
    /// As [`Folders::prepare_kind`].
    pub(crate) fn prepare_page(&mut self, path: &Path, named_by: &str) -> Result<()> {
        self.prepare_kind(path, named_by, "a page is HTML", ENDINGS_OF_PAGES)
    }

    /// Checks that one file can be written. Its folder must exist: `--out` alone makes folders.
    ///
    /// # Errors
    /// No such folder; errors of the file system.
    pub(crate) fn prepare_file(&mut self, path: &Path, named_by: &str) -> Result<()> {
        let folder = folder_of(path);
        has_no_file(folder, path, named_by)?;
        // A folder that may not be read is not missing: the error of the file reports it.
        if matches!(folder.try_exists(), Ok(false)) {
            let failure = Failure::new(format_args!("{named_by}: cannot write {}: no such folder", path.display()));
            return Err(failure.hint(format!("the folder {} does not exist", folder.display())));
        }
        try_file(path, named_by)
    }

    /// Prepares the page of `--out`, and makes its folder if necessary.
    ///
    /// # Errors
    /// As [`Folders::prepare_out`]; another ending than that of a page.
    pub(crate) fn prepare_out_page(&mut self, path: &Path) -> Result<()> {
        check_ending(path, OUT, "a page is HTML", ENDINGS_OF_PAGES)?;
        self.prepare_out(path)
    }

    /// Prepares the file of `--out`, and makes its folder if necessary.
    ///
    /// # Errors
    /// Errors of the file system.
    pub(crate) fn prepare_out(&mut self, path: &Path) -> Result<()> {
        self.prepare(folder_of(path), &[], OUT)?;
        try_file(path, OUT)
    }
}

/// The option that makes folders.
const OUT: &str = "--out";

/// The endings of the name of a page.
const ENDINGS_OF_PAGES: &[&str] = &["html", "htm"];

/// The folder of a file.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Refuses to write `path` where `folder`, or one that it is in, is a file.
fn has_no_file(folder: &Path, path: &Path, named_by: &str) -> Result<()> {
    let Some(file) = folder.ancestors().find(|path| path.exists() && !path.is_dir()) else { return Ok(()) };
    let (path, file) = (path.display(), file.display());
    Err(Failure::new(format_args!("{named_by}: cannot write {path}: {file} is a file, and no folder")))
}

/// Tries a file under a hidden name.
fn try_file(path: &Path, named_by: &str) -> Result<()> {
    AtomicFile::create(path).map(drop).map_err(|error| cannot_write(path, &error, named_by))
}

/// Refuses a name with an ending that is none of these.
fn check_ending(path: &Path, named_by: &str, kind: &str, endings: &[&str]) -> Result<()> {
    if let Some(ending) = path.extension()
        && !endings.iter().any(|known| ending.eq_ignore_ascii_case(known))
    {
        let known = endings.iter().map(|ending| format!(".{ending}")).collect::<Vec<_>>().join(" or ");
        return Err(Failure::new(format_args!("{named_by} {}: {kind}", path.display()))
            .hint(format!("a name that ends in {known}")));
    }
    Ok(())
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
    fn a_file_needs_an_existing_folder_and_out_makes_it() {
        let temporary = tempfile::tempdir().unwrap();
        let base = temporary.path();
        let mut folders = Folders::default();
        let refused = |path: &Path| match Folders::default().prepare_file(path, "--json").unwrap_err() {
            Failure::Wrong { message, hint } => (message, hint),
            other => panic!("{other:?}"),
        };
        let (no, file) = (base.join("no"), base.join("file"));
        let (message, hint) = refused(&no.join("x.json"));
        assert_eq!(message, format!("--json: cannot write {}: no such folder", no.join("x.json").display()));
        assert_eq!(hint.unwrap(), format!("the folder {} does not exist", no.display()));
        assert!(!no.exists());
        fs::write(&file, "in the way").unwrap();
        let (below, whose) = (file.join("x.json"), file.display());
        let message = format!("--json: cannot write {}: {whose} is a file, and no folder", below.display());
        assert_eq!(refused(&below), (message, None));
        folders.prepare_file(&base.join("x.json"), "--json").unwrap();
        folders.prepare_out(&no.join("x.json")).unwrap();
        assert!(no.is_dir());
    }

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
