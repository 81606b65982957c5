//! Network namespaces that a killed lastmile (SIGKILL, out of memory) left behind.
//!
//! A namespace of a run is called `lastmile-PID-ROLE`, and the run holds a lock on it (flock(2)) that ends with its
//! process. A namespace is a leftover if its lock is free and no process has that number: a living run is safe, also
//! one that another PID namespace numbers differently, or whose number passed on. Namespaces are made and removed in
//! turn, so that none is met before its lock. Devices of a run stand in its namespaces or end with their process.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::sys::namespace;

/// The longest wait for a turn. The holder makes or removes a namespace, in milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// Namespaces that were found.
#[derive(Debug, Default)]
pub struct Leftovers {
    /// Names of the namespaces that were removed.
    pub removed: Vec<String>,
    /// Names of those that could not be removed, and why.
    pub kept: Vec<(String, io::Error)>,
}

/// The name of a namespace of this process.
#[must_use]
pub fn name_of(role: &str) -> String {
    format!("lastmile-{}-{role}", std::process::id())
}

/// The number of the process that made a namespace of this name; `None` for one that no run has made.
fn maker(name: &str) -> Option<u32> {
    let (pid, role) = name.strip_prefix("lastmile-")?.split_once('-')?;
    let digits = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    (digits && !role.is_empty()).then(|| pid.parse().ok()).flatten()
}

/// Removes every leftover. Needs root.
///
/// # Errors
/// The folder of namespaces cannot be read. None at all is no error.
pub fn remove() -> io::Result<Leftovers> {
    // This process's own have their locks; what has no lock is of an earlier process with its number.
    remove_in(Path::new(namespace::RUN_DIR), &|pid| pid != std::process::id() && is_alive(pid))
}

/// True if a process has that number, and has not ended yet, waiting only for its parent to ask how.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    // proc_pid_stat(5): the state comes behind the name, which may hold any character but is in parentheses.
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.iter().rposition(|byte| *byte == b')').and_then(|end| stat.get(end + 2));
    state.is_some_and(|state| !b"ZX".contains(state))
}

fn remove_in(folder: &Path, is_alive: &dyn Fn(u32) -> bool) -> io::Result<Leftovers> {
    let mut leftovers = Leftovers::default();
    let Some(_turn) = turn(folder)? else { return Ok(leftovers) };
    let mut names: Vec<String> =
        fs::read_dir(folder)?.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    for name in names.into_iter().filter(|name| maker(name).is_some_and(|pid| !is_alive(pid))) {
        match remove_one(&folder.join(&name)) {
            Ok(true) => leftovers.removed.push(name),
            Ok(false) => {}
            Err(error) => leftovers.kept.push((name, error)),
        }
    }
    Ok(leftovers)
}

/// Removes the namespace that is pinned at `path`; false if somebody holds its lock.
fn remove_one(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        // Its run ended by itself meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        other => other?,
    };
    if !try_lock(&file)? {
        return Ok(false);
    }
    // Nothing is mounted where the run was killed before it had its namespace.
    let _ = namespace::unpin(path);
    fs::remove_file(path)?;
    Ok(true)
}

/// Locks an open file for as long as it stays open (flock(2)), unless another open file of it has the lock. True if it
/// got the lock.
pub(super) fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The turn to make or remove namespaces in `folder`, while it is kept; ip-netns(8) takes it too. `None` if there is no
/// such folder, or if somebody keeps it for longer than such work takes.
pub(super) fn turn(folder: &Path) -> io::Result<Option<File>> {
    let folder = match File::open(folder) {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let end = Instant::now() + PATIENCE;
    while !try_lock(&folder)? {
        if Instant::now() >= end {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(Some(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_runs_have_a_maker() {
        assert_eq!(maker("lastmile-123-client"), Some(123));
        assert_eq!(maker("lastmile-123-tc-sender"), Some(123));
        for name in [
            "lastmile-123",
            "lastmile-123-",
            "lastmile--client",
            "lastmile-+1-client",
            "lastmile-x-client",
            "mine",
            "lastmile-99999999999-client",
        ] {
            assert_eq!(maker(name), None, "{name}");
        }
    }

    #[test]
    fn a_process_that_has_ended_is_not_alive_though_its_parent_has_not_asked() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(is_alive(child.id()) && is_alive(std::process::id()));
        child.kill().unwrap();
        let end = Instant::now() + Duration::from_secs(10);
        while is_alive(child.id()) && Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
        }
        assert!(!is_alive(child.id()) && Path::new("/proc").join(child.id().to_string()).exists());
        child.wait().unwrap();
    }

    /// Plain files stand for namespaces that a run was killed before it had.
    #[test]
    fn what_is_locked_or_of_a_living_process_or_not_of_a_run_stays() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("netns");
        fs::create_dir(&folder).unwrap();
        for name in ["lastmile-1-client", "lastmile-2-client", "lastmile-3-server", "home"] {
            fs::write(folder.join(name), "").unwrap();
        }
        let held = File::open(folder.join("lastmile-2-client")).unwrap();
        assert!(try_lock(&held).unwrap());
        let found = remove_in(&folder, &|pid| pid == 3).unwrap();
        assert_eq!(found.removed, ["lastmile-1-client"]);
        assert!(found.kept.is_empty());
        drop(held);
        assert_eq!(remove_in(&folder, &|_| false).unwrap().removed, ["lastmile-2-client", "lastmile-3-server"]);
        let turn = turn(&folder).unwrap().unwrap();
        assert!(remove_in(&folder, &|_| false).unwrap().removed.is_empty(), "somebody else's turn");
        drop(turn);
        assert!(folder.join("home").exists());
        fs::remove_dir_all(&folder).unwrap();
        assert!(remove_in(&folder, &|_| false).unwrap().removed.is_empty(), "no folder, no leftovers");
    }
}
