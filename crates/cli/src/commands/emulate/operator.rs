//! Who answers at the control socket of an emulated line.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use lastmile_live::control::{Listener, Verb};
use lastmile_live::emulate::Handle;
use lastmile_live::netns::leftovers;
use lastmile_text::shown;

use super::super::control::{self, Answer, Program, Seen};
use super::status::{Status, Teller};
use crate::failure::{Failure, Result};

/// Knows the line and asks the one that carries its packets.
pub(super) struct Operator<'a> {
    pub(super) teller: &'a Teller,
    pub(super) handle: Handle,
}

impl Program for Operator<'_> {
    type Status = Status;

    fn status(&self) -> Option<Status> {
        self.handle.report().map(|snapshot| self.teller.status(&snapshot))
    }

    fn is_alive(&self) -> bool {
        self.handle.is_alive()
    }

    fn reload(&mut self) -> Answer<Status> {
        Answer::Failed { error: "a line stays as it was made".to_owned() }
    }

    fn stop(&self) {
        self.handle.stop();
    }
}

impl lastmile_live::control::Operator for Operator<'_> {
    fn answer(&mut self, request: &str) -> String {
        self.answer_to(request)
    }

    /// SIGUSR1, at which dd(1) tells how far it is.
    fn hang_up(&mut self) {
        if let Some(status) = self.status() {
            let text = Status::text(&Seen { now: &status, before: None });
            // With standard error closed there is nobody left to tell.
            let _ = write!(std::io::stderr(), "\r\x1b[K{}", shown::lines(&text));
        }
    }
}

/// Opens the control socket: at `asked`, or where [`find`] looks for it. Only one that was asked for must be there.
pub(super) fn listen(asked: Option<&Path>) -> Result<Option<Listener>> {
    match asked {
        Some(path) => Ok(Some(Listener::bind(path)?)),
        None => Ok(folder(true).and_then(|folder| {
            remove_abandoned(&folder);
            Listener::bind(&folder.join(format!("emulate-{}.sock", std::process::id()))).ok()
        })),
    }
}

/// The socket of the one emulated line of this user that answers, or of the process `pid`.
pub(super) fn find(pid: Option<u32>) -> Result<PathBuf> {
    let none =
        || Failure::new("no emulated line of yours answers").hint("`--control PATH` names the socket of another");
    let folder = folder(false).ok_or_else(none)?;
    if let Some(pid) = pid {
        return Ok(folder.join(format!("emulate-{pid}.sock")));
    }
    let ours = |name: &str| name.starts_with("emulate-") && name.ends_with(".sock");
    let mut alive: Vec<PathBuf> = fs::read_dir(&folder)
        .map_err(|_| none())?
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(ours))
        .map(|entry| entry.path())
        .filter(|path| matches!(control::ask::<Status>(path, Verb::Alive), Ok(Answer::Done { .. })))
        .collect();
    alive.sort();
    match alive.as_slice() {
        [] => Err(none()),
        [one] => Ok(one.clone()),
        several => {
            let pid = |path: &PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().replace("emulate-", ""));
            let pids: Vec<String> = several.iter().filter_map(pid).collect();
            Err(Failure::new("several emulated lines answer").hint(format!("--pid says which: {}", pids.join(", "))))
        }
    }
}

/// Removes the sockets of lines that were killed: nobody listens, and no process has the number in the name.
fn remove_abandoned(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid =
            name.to_str().and_then(|name| name.strip_prefix("emulate-")?.strip_suffix(".sock")?.parse::<u32>().ok());
        let nobody_listens = || {
            UnixStream::connect(entry.path()).is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
        };
        if pid.is_some_and(|pid| !leftovers::is_alive(pid)) && nobody_listens() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Where the sockets of this user are: `/run/lastmile` for root, a folder of their own for others. `None` if there is none, or if
/// it is somebody else's.
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
