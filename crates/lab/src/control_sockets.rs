//! Control sockets of emulated lines: a socket for each process, in a folder of its user.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use lastmile_live::control::Listener;
use lastmile_live::netns::leftovers;

/// Opens the control socket of this process; `None` if its user has no folder for it. Removes
/// sockets of killed processes.
#[must_use]
pub fn listen() -> Option<Listener> {
    let folder = folder(true)?;
    remove_abandoned(&folder);
    Listener::bind(&folder.join(name(std::process::id()))).ok()
}

/// The control socket of the process `pid`, which may be gone; `None` if this user has no folder for sockets.
#[must_use]
pub fn of(pid: u32) -> Option<PathBuf> {
    folder(false).map(|folder| folder.join(name(pid)))
}

/// The processes of this user that have a control socket, by number, and the sockets. A killed
/// process leaves its socket.
#[must_use]
pub fn all() -> Vec<(u32, PathBuf)> {
    folder(false).map(|folder| within(&folder)).unwrap_or_default()
}

fn within(folder: &Path) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> =
        entries.filter_map(|entry| Some((owner(entry.file_name().to_str()?)?, entry.path()))).collect();
    found.sort();
    found
}

fn name(pid: u32) -> String {
    format!("emulate-{pid}.sock")
}

/// The process that made a socket of this name.
fn owner(name: &str) -> Option<u32> {
    name.strip_prefix("emulate-")?.strip_suffix(".sock")?.parse().ok()
}

/// Removes the sockets of killed lines: no process has the number in the name, and nobody listens.
fn remove_abandoned(folder: &Path) {
    let refuses = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    for (pid, path) in within(folder) {
        if !leftovers::is_alive(pid) && UnixStream::connect(&path).is_err_and(refuses) {
            let _ = fs::remove_file(path);
        }
    }
}

/// The folder of this user's sockets: `/run/lastmile` for root, a folder of their own for others.
/// `None` if there is none, or if it belongs to somebody else.
fn folder(make: bool) -> Option<PathBuf> {
    let user = fs::metadata("/proc/self").ok()?.uid();
    let folder = match std::env::var_os("XDG_RUNTIME_DIR") {
        _ if user == 0 => PathBuf::from("/run/lastmile"),
        Some(runtime) => Path::new(&runtime).join("lastmile"),
        None => std::env::temp_dir().join(format!("lastmile-{user}")),
    };
    if make {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    }
    fs::symlink_metadata(&folder).ok().filter(|about| about.is_dir() && about.uid() == user).map(|_| folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_socket_is_known_by_the_number_of_its_process() {
        assert_eq!(owner(&name(1234)), Some(1234));
        for other in ["emulate-.sock", "emulate-x.sock", "shape-1.sock", "emulate-1.lock"] {
            assert_eq!(owner(other), None, "{other}");
        }
    }

    /// No process has the largest number: Linux ends at 2^22.
    #[test]
    fn sockets_go_with_their_process_unless_somebody_listens() {
        let folder = tempfile::tempdir().unwrap();
        let path = |pid| folder.path().join(name(pid));
        let listening = UnixListener::bind(path(u32::MAX)).unwrap();
        drop(UnixListener::bind(path(u32::MAX - 1)).unwrap());
        drop(UnixListener::bind(path(std::process::id())).unwrap());
        remove_abandoned(folder.path());
        let left: Vec<u32> = within(folder.path()).into_iter().map(|(pid, _)| pid).collect();
        assert_eq!(left, [std::process::id(), u32::MAX]);
        drop(listening);
    }
}
