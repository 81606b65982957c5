//! The text of a file that a user names.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read};
use std::path::Path;

/// Larger than any scenario or policy that a person writes.
const LARGEST: u64 = 8 << 20;

/// The kinds of file that may be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// Any file, for a command that reads it once: a pipe of `<(command)` too, which waits until the command
    /// has written.
    Once,
    /// A regular file alone, for a program that reads it again while it runs: nothing that others do makes it wait.
    Again,
}

/// The text of the file at `path`, or what is wrong with it.
///
/// # Errors
/// It is not there, is not what may be read, is larger than 8 MiB, or is no text.
pub fn read(path: &Path, reading: Reading) -> Result<String, String> {
    let file = match reading {
        Reading::Once => File::open(path).map_err(|error| failed(&error))?,
        Reading::Again => open_regular(path)?,
    };
    text(file)
}

/// The text of an open file, or what is wrong with it.
pub(crate) fn text(file: impl Read) -> Result<String, String> {
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("larger than {} MiB: no scenario", LARGEST >> 20));
    }
    String::from_utf8(bytes).map_err(|error| {
        let line =
            error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("line {line} is no UTF-8 text")
    })
}

/// Why a file could not be opened or read.
pub(crate) fn failed(error: &Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "no such file".to_owned(),
        _ => format!("cannot be read: {error}"),
    }
}

fn open_regular(path: &Path) -> Result<File, String> {
    let failed = |error| failed(&error);
    // Opening a device may already do something.
    check(&path.metadata().map_err(failed)?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    // Opening a FIFO that has taken the file's place in between must not wait for who writes to it.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.open(path).map_err(failed)?;
    check(&file.metadata().map_err(failed)?)?;
    Ok(file)
}

fn check(about: &std::fs::Metadata) -> Result<(), String> {
    if about.is_file() { Ok(()) } else { Err(format!("{}, where a regular file is needed", kind(about.file_type()))) }
}

#[cfg(unix)]
fn kind(kind: std::fs::FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match kind {
        kind if kind.is_dir() => "a folder",
        kind if kind.is_fifo() => "a pipe (FIFO)",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_char_device() || kind.is_block_device() => "a device",
        _ => "no regular file",
    }
}

#[cfg(not(unix))]
fn kind(kind: std::fs::FileType) -> &'static str {
    if kind.is_dir() { "a folder" } else { "no regular file" }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_again_is_a_regular_file() {
        let folder = std::env::temp_dir().join(format!("lastmile-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let fifo = folder.join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap();
        std::fs::write(folder.join("file"), "text").unwrap();
        for (path, kind) in [
            (fifo.as_path(), "a pipe (FIFO)"),
            (&folder.join("socket"), "a socket"),
            (Path::new("/dev/null"), "a device"),
            (&folder, "a folder"),
        ] {
            assert_eq!(read(path, Reading::Again), Err(format!("{kind}, where a regular file is needed")));
        }
        assert_eq!(read(&folder.join("none"), Reading::Again), Err("no such file".to_owned()));
        assert_eq!(read(&folder.join("file"), Reading::Again).as_deref(), Ok("text"));
        // A file without an end is read up to a limit.
        assert_eq!(read(Path::new("/dev/zero"), Reading::Once), Err("larger than 8 MiB: no scenario".to_owned()));
        let writing = std::thread::scope(|scope| {
            let reading = scope.spawn(|| read(&fifo, Reading::Once));
            std::fs::write(&fifo, "from a pipe").unwrap();
            reading.join().unwrap()
        });
        assert_eq!(writing.as_deref(), Ok("from a pipe"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
