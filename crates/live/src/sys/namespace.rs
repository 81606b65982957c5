//! Network namespaces as ip-netns(8) names them: a file in [`RUN_DIR`] with the namespace mounted on it.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use super::check;

/// Where ip-netns(8) keeps named namespaces.
pub(crate) const RUN_DIR: &str = "/var/run/netns";

/// Moves the calling thread, and no other, into the network namespace behind `namespace`. setns(2).
pub(crate) fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes a descriptor, open for as long as it is borrowed, and a flag.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Moves the calling thread, and no other, into a new and empty network namespace. unshare(2).
pub(crate) fn unshare() -> io::Result<()> {
    // SAFETY: takes a flag.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
}

/// Moves the process, which must have one thread alone, into a new user namespace, in which it has every right. unshare(2).
pub(crate) fn unshare_user() -> io::Result<()> {
    // SAFETY: takes a flag.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER) }).map(drop)
}

/// Mounts the calling thread's network namespace on `path`, an existing file, which gives it a name and keeps it alive.
pub(crate) fn pin_current(path: &Path) -> io::Result<()> {
    bind(Path::new("/proc/thread-self/ns/net"), path, 0)
}

/// Takes the name away again; the namespace ends when nobody uses it any more. umount2(2).
pub(crate) fn unpin(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: `path` is a string with a terminating zero that outlives the call.
    check(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) }).map(drop)
}

/// Makes [`RUN_DIR`] a mount of its own whose changes every mount namespace sees. Without that, a process that has copied
/// the mounts (a container, a service) would keep a removed namespace alive.
pub(crate) fn share_run_dir() -> io::Result<()> {
    let run_dir = Path::new(RUN_DIR);
    match share(run_dir) {
        // EINVAL: no mount point yet.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            bind(run_dir, run_dir, libc::MS_REC)?;
            share(run_dir)
        }
        other => other,
    }
}

fn share(path: &Path) -> io::Result<()> {
    mount(c"none", path, libc::MS_SHARED | libc::MS_REC)
}

fn bind(source: &Path, target: &Path, flags: libc::c_ulong) -> io::Result<()> {
    mount(&c_path(source)?, target, libc::MS_BIND | flags)
}

fn mount(source: &CStr, target: &Path, flags: libc::c_ulong) -> io::Result<()> {
    let target = c_path(target)?;
    // SAFETY: both paths end in zero and outlive the call; type and data are not read for bind and propagation mounts, and
    // the type may be null for them.
    check(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), ptr::null(), flags, ptr::null()) }).map(drop)
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}
