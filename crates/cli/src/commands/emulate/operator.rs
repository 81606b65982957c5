//! The operator at the control socket of an emulated line.

use std::io::Write;
use std::path::{Path, PathBuf};

use lastmile_lab::control_sockets;
use lastmile_live::control::{Listener, Replacement, Verb};
use lastmile_live::emulate::Handle;
use lastmile_text::escape;

use super::super::control::{self, Answer, Program, Seen};
use super::status::{Status, Teller};
use crate::failure::{Failure, Result};

/// Reports on the line, and asks the thread that carries its packets.
pub(super) struct Operator<'a> {
    pub(super) teller: &'a Teller,
    pub(super) handle: Handle,
}

impl Program for Operator<'_> {
    type Status = Status;

    fn status(&self, _whole: bool) -> Option<Status> {
        self.handle.report().map(|snapshot| self.teller.status(&snapshot))
    }

    fn is_alive(&self) -> bool {
        self.handle.is_alive()
    }

    fn reload(&mut self, _policy: Option<&Replacement>) -> Answer<Status> {
        Answer::Failed { error: "the settings of a running line cannot be changed".to_owned() }
    }

    fn stop(&self) {
        self.handle.stop();
    }
}

impl lastmile_live::control::Operator for Operator<'_> {
    fn answer(&mut self, request: &str) -> String {
        self.answer_to(request)
    }

    /// Handles SIGUSR1, at which dd(1) also reports its progress.
    fn hang_up(&mut self) {
        if let Some(status) = self.status(false) {
            let text = Status::text(&Seen { now: &status, before: None });
            if !lastmile_terminal::say(&text) {
                // With standard error closed there is no reader.
                let _ = write!(std::io::stderr(), "\r\x1b[K{}", escape::lines(&text));
            }
        }
    }
}

/// Opens the control socket at `asked`, or where [`find`] searches. A failure counts only for
/// `asked`.
pub(super) fn listen(asked: Option<&Path>) -> Result<Option<Listener>> {
    match asked {
        Some(path) => Ok(Some(Listener::bind(path)?)),
        None => Ok(control_sockets::listen()),
    }
}

/// The socket of this user's only running emulated line, or of that of the process `pid`.
pub(super) fn find(pid: Option<u32>) -> Result<PathBuf> {
    let none =
        || Failure::new("no emulated line of yours answers").hint("`--control PATH` names the socket of another");
    if let Some(pid) = pid {
        return control_sockets::of(pid).ok_or_else(none);
    }
    let answers = |path: &PathBuf| matches!(control::ask::<Status>(path, Verb::Alive), Ok(Answer::Done { .. }));
    let mut alive: Vec<(u32, PathBuf)> = control_sockets::all().into_iter().filter(|(_, path)| answers(path)).collect();
    match (alive.pop(), alive.as_slice()) {
        (None, _) => Err(none()),
        (Some((_, only)), []) => Ok(only),
        (Some((last, _)), others) => {
            let pids: Vec<String> =
                others.iter().map(|(pid, _)| *pid).chain([last]).map(|pid| pid.to_string()).collect();
            Err(Failure::new("several emulated lines answer").hint(format!("--pid says which: {}", pids.join(", "))))
        }
    }
}
