//! An interface belongs to one process: two that carry its frames would carry each of them twice.
//!
//! The claim is a lock (flock(2)) on a file that only root can open. It is called after the network
//! namespace and the number of the interface, goes with the process, however that ends, and cannot
//! be taken by another user. Where root's folder cannot be written, in a user namespace, the claim
//! is a socket with an abstract name, of which a network namespace has one (unix(7)): whoever could
//! take that name there is of the same network namespace.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};

use super::lookup;
use crate::error::{Context, Error};

/// The folder of the locks. A unit of systemd has it as its `RuntimeDirectory`.
pub const FOLDER: &str = "/run/lastmile";

/// An interface that is this process's. Dropping it gives the interface free.
pub(super) enum Claim {
    Lock { _held: Lock },
    Name { _held: UnixDatagram },
}

/// Claims an interface of the calling thread's namespace.
pub(super) fn take(name: &str) -> Result<Claim, Error> {
    let index = lookup::find(name)?.index;
    let what = || format!("taking the interface {name}");
    let taken = || Error::InterfaceTaken { name: name.to_owned() };
    let namespace = fs::metadata("/proc/thread-self/ns/net").context(what)?.ino();
    match Lock::take(&Path::new(FOLDER).join(format!("interface-{namespace}-{index}.lock"))) {
        Ok(lock) => lock.map(|lock| Claim::Lock { _held: lock }).ok_or_else(taken),
        Err(error) if is_not_ours(&error) => {
            let address = SocketAddr::from_abstract_name(format!("lastmile/interface/{index}"));
            match address.and_then(|address| UnixDatagram::bind_addr(&address)) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(taken()),
                other => other.map(|name| Claim::Name { _held: name }).context(what),
            }
        }
        Err(error) => Err(error).context(what),
    }
}

/// The folder is another user's, or cannot be written at all.
fn is_not_ours(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// A locked file, removed when it is given free.
pub(super) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// `None` if another process has it.
    fn take(path: &Path) -> io::Result<Option<Self>> {
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
        }
        loop {
            // A user who can open the file can lock it.
            let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC;
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
            let file = options.open(path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // One that ended meanwhile may have removed the file: then the lock is on one that has no name any more.
            if fs::metadata(path).is_ok_and(|named| file.metadata().is_ok_and(|own| named.ino() == own.ino())) {
                return Ok(Some(Self { path: path.to_owned(), _file: file }));
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is locked, nobody else has it.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_one_process_s_until_it_is_dropped_and_a_file_that_was_left_behind_is_none() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("run/a.lock");
        let lock = Lock::take(&path).unwrap().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(Lock::take(&path).unwrap().is_none());
        drop(lock);
        assert!(!path.exists());
        fs::write(&path, "").unwrap();
        assert!(Lock::take(&path).unwrap().is_some());
        // A link is not followed.
        std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
        assert!(Lock::take(&path).is_err());
    }
}
