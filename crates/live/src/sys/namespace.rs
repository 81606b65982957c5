//! Network namespaces as ip-netns(8) names them: a file in [`RUN_DIR`] with the namespace mounted on it.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_bind, mount_bind_recursive, mount_change, unmount};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// Where ip-netns(8) keeps named namespaces.
pub(crate) const RUN_DIR: &str = "/var/run/netns";

/// Moves the calling thread, and no other, into the network namespace behind `namespace`. setns(2).
pub(crate) fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))?)
}

/// Moves the calling thread, and no other, into a new and empty network namespace. unshare(2).
pub(crate) fn unshare() -> io::Result<()> {
    unshare_only(UnshareFlags::NEWNET)
}

/// Moves the process, which must have one thread alone, into a new user namespace, in which it has every right.
/// unshare(2).
pub(crate) fn unshare_user() -> io::Result<()> {
    unshare_only(UnshareFlags::NEWUSER)
}

fn unshare_only(namespaces: UnshareFlags) -> io::Result<()> {
    // SAFETY: a namespace of its own leaves the thread's descriptors and its view of files shared, as the standard
    // library expects.
    Ok(unsafe { unshare_unsafe(namespaces) }?)
}

/// Mounts the calling thread's network namespace on `path`, an existing file, which gives it a name and keeps it alive.
pub(crate) fn pin_current(path: &Path) -> io::Result<()> {
    Ok(mount_bind("/proc/thread-self/ns/net", path)?)
}

/// Takes the name away again; the namespace ends when nobody uses it any more. umount2(2).
pub(crate) fn unpin(path: &Path) -> io::Result<()> {
    Ok(unmount(path, UnmountFlags::DETACH)?)
}

/// Makes [`RUN_DIR`] a mount of its own whose changes every mount namespace sees. Without that, a process that has
/// copied the mounts (a container, a service) would keep a removed namespace alive.
pub(crate) fn share_run_dir() -> io::Result<()> {
    let share = || mount_change(RUN_DIR, MountPropagationFlags::SHARED | MountPropagationFlags::REC);
    match share() {
        // No mount point yet.
        Err(Errno::INVAL) => {
            mount_bind_recursive(RUN_DIR, RUN_DIR)?;
            Ok(share()?)
        }
        other => Ok(other?),
    }
}
