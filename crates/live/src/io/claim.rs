//! An interface belongs to one process: two that carry its frames would carry each of them twice. So does a network
//! namespace with an end of a line in it: a second device would have the address of the first, which gets the packets.
//!
//! The claim is a lock (flock(2)) on a file that only root can open, with the number of the process in it, and of an
//! interface the name of the command. The file is called after the network namespace and the number of the interface.
//! The lock goes with the process, however that ends, and cannot be taken by another user. Where root's folder cannot
//! be written, in a user namespace, the claim is a socket with an abstract name, of which a network namespace has one
//! (unix(7)): whoever could take that name there is of the same network namespace.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::lookup;
use crate::error::{Context, Error};
use crate::holder::{Holder, Program};

/// The folder of the locks. A unit of systemd has it as its `RuntimeDirectory`.
pub const FOLDER: &str = "/run/lastmile";
/// Attempts to get a lock, and the time between two: another start holds an abandoned file while it removes it.
const ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// An interface or a namespace that is this process's. Dropping it gives it free.
pub(crate) enum Claim {
    Lock { _held: Lock },
    Name { _held: UnixDatagram },
}

/// It is another process's already.
struct Taken(Holder);

/// Claims an interface of the calling thread's namespace.
pub(super) fn take(name: &str, program: Program) -> Result<Claim, Error> {
    let index = lookup::find(name)?.index;
    let claimed =
        claim("interface", &format!("-{index}"), Some(program)).context(|| format!("taking the interface {name}"))?;
    claimed.map_err(|Taken(holder)| Error::InterfaceTaken { name: name.to_owned(), holder })
}

/// Claims the calling thread's namespace for an end of a line. `name` is that of users, if they have given one.
pub(crate) fn take_namespace(name: Option<&str>) -> Result<Claim, Error> {
    match claim("namespace", "", None).context(|| "taking a network namespace")? {
        // Both ends of one line, by two names.
        Err(Taken(Holder { pid: Some(pid), .. })) if pid == std::process::id() => Err(Error::SamePlace),
        Err(Taken(Holder { pid, .. })) => Err(Error::NamespaceTaken { name: name.map(str::to_owned), pid }),
        Ok(claim) => Ok(claim),
    }
}

/// Claims a thing of this kind, of which the calling thread's namespace has one with this suffix.
fn claim(kind: &str, suffix: &str, program: Option<Program>) -> io::Result<Result<Claim, Taken>> {
    let namespace = fs::metadata("/proc/thread-self/ns/net")?.ino();
    remove_abandoned(Path::new(FOLDER));
    let path = Path::new(FOLDER).join(format!("{kind}-{namespace}{suffix}.lock"));
    match Lock::take(&path, &Holder::of_this_process(program)) {
        Ok(lock) => Ok(lock.map(|lock| Claim::Lock { _held: lock })),
        Err(error) if is_not_ours(&error) => {
            let address = SocketAddr::from_abstract_name(format!("lastmile/{kind}{}", suffix.replace('-', "/")))?;
            match UnixDatagram::bind_addr(&address) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(Err(Taken(Holder::default()))),
                other => Ok(Ok(Claim::Name { _held: other? })),
            }
        }
        Err(error) => Err(error),
    }
}

/// The folder is another user's, or cannot be written at all.
fn is_not_ours(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Removes the locks that killed processes have left. One that cannot be removed is no trouble of this process.
fn remove_abandoned(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_claim = |name: &str| {
            let of_kind = ["interface-", "namespace-"].iter().any(|kind| name.starts_with(kind));
            of_kind && Path::new(name).extension().is_some_and(|extension| extension == "lock")
        };
        if name.to_str().is_some_and(is_claim)
            && let Ok(file) = OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW).open(entry.path())
        {
            drop(Lock::of(entry.path(), file));
        }
    }
}

/// A locked file, removed when it is given free.
pub(crate) struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// Takes the lock, and writes this text into its file.
    fn take(path: &Path, text: &str) -> io::Result<Result<Self, Taken>> {
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
        }
        for _ in 0..ATTEMPTS {
            // A user who can open the file can lock it.
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
            if let Some(lock) = Self::of(path.to_owned(), options.open(path)?)? {
                lock.file.set_len(0)?;
                (&lock.file).write_all(text.as_bytes())?;
                return Ok(Ok(lock));
            }
            thread::sleep(PAUSE);
        }
        Ok(Err(Taken(Holder::read(&fs::read_to_string(path).unwrap_or_default()))))
    }

    /// Locks the file that was opened at `path`; `None` if somebody else has it, or has removed it meanwhile: then the
    /// lock is on a file that has no name any more. Only who has the lock removes the name.
    fn of(path: PathBuf, file: File) -> io::Result<Option<Self>> {
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let is_named = fs::symlink_metadata(&path)
            .is_ok_and(|named| file.metadata().is_ok_and(|own| (named.dev(), named.ino()) == (own.dev(), own.ino())));
        // Not `then_some`: a lock that is made and dropped removes the name.
        Ok(is_named.then(|| Self { path, file }))
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
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_lock_is_one_process_s_until_it_is_dropped_and_a_file_that_was_left_behind_is_none() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("run/a.lock");
        let lock = Lock::take(&path, "12 emulate").unwrap().ok().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let Ok(Err(Taken(holder))) = Lock::take(&path, "13") else { panic!("it is taken") };
        assert_eq!(holder, Holder { pid: Some(12), program: Some(Program::Emulate) });
        drop(lock);
        assert!(!path.exists());
        fs::write(&path, "4194304").unwrap();
        assert!(Lock::take(&path, "13").unwrap().is_ok());
        // A link is not followed.
        std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
        assert!(Lock::take(&path, "13").is_err());
    }

    #[test]
    fn what_nobody_holds_goes_and_what_is_held_or_of_no_claim_stays() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        let path = |name: &str| folder.join(name);
        for name in ["interface-1-2.lock", "namespace-3.lock", "emulate-4.sock", "namespace-5", "other.lock"] {
            fs::write(path(name), "4194304").unwrap();
        }
        std::os::unix::fs::symlink(path("other.lock"), path("interface-6-1.lock")).unwrap();
        let held = Lock::take(&path("interface-7-2.lock"), "1").unwrap().ok().unwrap();
        remove_abandoned(folder);
        let mut left: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        let stay = ["emulate-4.sock", "interface-6-1.lock", "interface-7-2.lock", "namespace-5", "other.lock"];
        assert_eq!(left, stay);
        drop(held);
        assert!(!path("interface-7-2.lock").exists());
    }

    /// While others remove what is abandoned, a file has at most one holder, and who wants a free one gets it.
    #[test]
    fn a_removal_takes_no_lock_from_anybody() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("namespace-1.lock");
        let (holders, ended) = (AtomicU32::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    remove_abandoned(temporary.path());
                }
            });
            let takers = [(); 2].map(|()| {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let lock = loop {
                            if let Ok(lock) = Lock::take(&path, "1").unwrap() {
                                break lock;
                            }
                        };
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                        thread::yield_now();
                        assert_eq!(holders.fetch_sub(1, Ordering::SeqCst), 1);
                        assert!(path.exists(), "its name went with another's lock");
                        drop(lock);
                        // As a killed process leaves it.
                        let _ = OpenOptions::new().write(true).create_new(true).open(&path);
                    }
                })
            });
            let joined = takers.map(|taker| taker.join().is_ok());
            ended.store(true, Ordering::Relaxed);
            assert_eq!(joined, [true, true]);
        });
    }
}
