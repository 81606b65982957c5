//! Who answers at the control socket of a shaper: one JSON object for another, each on a line.

use std::path::Path;

use lastmile_live::shape::{Handle, Snapshot, control};
use lastmile_scenario::policy::Policy;
use serde::{Deserialize, Serialize};

use crate::exit::{Failure, Result};

use super::status::{Place, Reloads, Status};
use super::{Start, directions};

/// What may be asked: `{"do":"status"}`.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Request {
    Status,
    Alive,
    Reload,
    Stop,
}

/// What is answered.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Answer {
    Status(Box<Status>),
    Done { message: String },
    Failed { error: String },
}

/// Knows the policy in force and how it came there.
pub(super) struct Operator<'a> {
    start: &'a Start,
    policy: Policy,
    place: Place,
    handle: Handle,
    reloads: Reloads,
}

impl<'a> Operator<'a> {
    pub(super) fn new(start: &'a Start, policy: Policy, place: Place, handle: Handle) -> Self {
        Self { start, policy, place, handle, reloads: Reloads::default() }
    }

    pub(super) fn status(&self, snapshot: &Snapshot) -> Status {
        Status::new(&self.policy, &self.place, &self.reloads, snapshot)
    }

    /// Reads and checks the policy, builds its queues, and only then puts them in.
    fn reload(&mut self) -> Answer {
        let loaded = self.start.load().and_then(|policy| {
            let (up, down) = directions(&policy);
            self.handle.hand_over(&up, &down)?;
            Ok(policy)
        });
        match loaded {
            Ok(policy) => {
                self.reloads.done += 1;
                self.reloads.last_error = None;
                let odd = if policy.warnings.is_empty() { String::new() } else { format!("{}\n", policy.warnings) };
                let message = format!("{odd}{} is in force", policy.name);
                self.policy = policy;
                Answer::Done { message }
            }
            Err(failure) => {
                let error = words(&failure);
                self.reloads.failed += 1;
                self.reloads.last_error = Some(error.clone());
                Answer::Failed { error }
            }
        }
    }

    fn act(&mut self, request: &str) -> Answer {
        match serde_json::from_str(request) {
            Ok(Request::Status) => match self.handle.report() {
                Some(snapshot) => Answer::Status(Box::new(self.status(&snapshot))),
                None => Answer::Failed { error: "it is ending".to_owned() },
            },
            Ok(Request::Alive) if self.handle.is_alive() => Answer::Done { message: "it is alive".to_owned() },
            Ok(Request::Alive) => Answer::Failed { error: "it is ending".to_owned() },
            Ok(Request::Reload) => self.reload(),
            Ok(Request::Stop) => {
                self.handle.stop();
                Answer::Done { message: "it ends".to_owned() }
            }
            Err(error) => Answer::Failed { error: format!("no request: {error}") },
        }
    }
}

/// Asks the shaper at this socket.
pub(super) fn ask(control: &Path, request: Request) -> Result<Answer> {
    let request = serde_json::to_string(&request).map_err(std::io::Error::from)?;
    let answer = control::ask(control, &request)?;
    serde_json::from_str(&answer).map_err(|error| Failure::new(format_args!("an answer that cannot be read: {error}")))
}

impl control::Operator for Operator<'_> {
    fn answer(&mut self, request: &str) -> String {
        let answer = self.act(request);
        serde_json::to_string(&answer).unwrap_or_else(|error| format!("{{\"failed\":{{\"error\":\"{error}\"}}}}"))
    }

    fn hang_up(&mut self) {
        // Nobody waits for the answer; `status` shows what was wrong.
        self.reload();
    }
}

/// As a terminal would show it.
pub(super) fn words(failure: &Failure) -> String {
    match failure {
        Failure::Report(report) => report.to_string(),
        Failure::Wrong { message, hint: Some(hint) } => format!("error: {message}\nhint: {hint}"),
        Failure::Wrong { message, hint: None } => format!("error: {message}"),
        Failure::ReaderGone => String::new(),
    }
}
