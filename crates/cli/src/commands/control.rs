//! Running programs and their control sockets: a request and its answer are one JSON object each,
//! on one line.

use std::io::{self, IsTerminal};
use std::path::Path;

use clap::Args;
use lastmile_live::control::{self, Replacement, Request, Verb};
use lastmile_live::stop::Stop;
use lastmile_results::json;
use lastmile_units::Duration;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::failure::{Exit, Failure, Result};
use crate::printer::{Printer, Screen};

/// The answer of a program whose status is an `S`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Answer<S> {
    Status(Box<S>),
    Done { message: String },
    Failed { error: String },
}

impl<S: DeserializeOwned> Answer<S> {
    /// Parses the answer from a line.
    pub(super) fn read(line: &str) -> Result<Self> {
        serde_json::from_str(line).map_err(|error| Failure::new(format_args!("an answer that cannot be read: {error}")))
    }
}

impl<S: Serialize> Answer<S> {
    /// The answer as a line.
    pub(super) fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"failed\":{{\"error\":\"{error}\"}}}}"))
    }
}

/// A running program with a control socket.
pub(super) trait Program {
    /// The status that it reports.
    type Status: Serialize;

    /// The current status; `None` while it ends. A `whole` one has distributions value by value.
    fn status(&self, whole: bool) -> Option<Self::Status>;

    /// False while it ends.
    fn is_alive(&self) -> bool;

    /// Reads its configuration again, or puts this policy in force.
    fn reload(&mut self, policy: Option<&Replacement>) -> Answer<Self::Status>;

    /// Ends it.
    fn stop(&self);

    /// The answer to a request line.
    fn answer_to(&mut self, line: &str) -> String {
        let done = |message: &str| Answer::Done { message: message.to_owned() };
        let ending = || Answer::Failed { error: "it is ending".to_owned() };
        let answer = match line.parse() {
            Ok(Request { r#do: Verb::Status, whole, .. }) => {
                self.status(whole).map_or_else(ending, |status| Answer::Status(Box::new(status)))
            }
            Ok(Request { r#do: Verb::Alive, .. }) if self.is_alive() => done("it is alive"),
            Ok(Request { r#do: Verb::Alive, .. }) => ending(),
            Ok(Request { r#do: Verb::Reload, policy, .. }) => self.reload(policy.as_ref()),
            Ok(Request { r#do: Verb::Stop, .. }) => {
                self.stop();
                done("it ends")
            }
            Err(error) => Answer::Failed { error },
        };
        answer.line()
    }
}

/// Sends a request to the program at this socket.
pub(super) fn ask<S: DeserializeOwned>(control: &Path, request: impl Into<Request>) -> Result<Answer<S>> {
    Answer::read(&control::ask(control, &request.into().to_string())?)
}

/// Prints the answer to any request but `status`.
pub(super) fn tell<S: Serialize>(answer: &Answer<S>, json: bool, printer: &mut Printer) -> Result {
    if json {
        printer.json(answer)?;
    }
    match answer {
        Answer::Failed { error } => {
            // The report of a file includes the position of the error.
            printer.talk_lines(error);
            Ok(Exit::No)
        }
        Answer::Done { message } if !json => {
            printer.talk(message);
            Ok(Exit::Done)
        }
        _ => Ok(Exit::Done),
    }
}

/// Options for displaying a status.
#[derive(Args)]
pub(super) struct Look {
    /// Print JSON; with --watch, each status on a line of its own
    #[arg(long)]
    json: bool,

    /// Show it repeatedly, in place on a terminal, until Ctrl-C
    #[arg(long)]
    watch: bool,

    /// With --watch, the time between updates
    #[arg(long, value_name = "TIME", default_value = "1 s", requires = "watch")]
    interval: Duration,
}

/// The current status, and the preceding one with --watch.
pub(super) struct Seen<'a, S> {
    pub(super) now: &'a S,
    pub(super) before: Option<&'a S>,
}

/// Requests the status, once or repeatedly, and prints it. `text` formats it for a terminal of this
/// number of columns.
pub(super) fn look<S: Serialize + DeserializeOwned>(
    control: &Path,
    look: &Look,
    printer: &mut Printer,
    text: &dyn Fn(&Seen<'_, S>, u16) -> String,
) -> Result {
    let in_place = look.watch && !look.json && io::stdout().is_terminal();
    let stop = look.watch.then(Stop::on_signals).transpose()?;
    let mut before: Option<Box<S>> = None;
    loop {
        let now = match ask::<S>(control, Verb::Status)? {
            Answer::Status(now) => now,
            other => return tell(&other, look.json, printer),
        };
        match (look.json, &stop) {
            (true, None) => printer.json(&now)?,
            (true, Some(_)) => {
                printer.write(|to| json::write_line(&now, to))?;
            }
            (false, _) => {
                let seen = Seen { now: &*now, before: before.as_deref() };
                let text = text(&seen, printer.width());
                let gap = if before.is_some() { "\n" } else { "" };
                let rows = printer.rows().map_or(usize::MAX, usize::from);
                match in_place {
                    true => printer.screen(&Screen::new(&text, printer.width().into(), rows))?,
                    false => printer.data(&format!("{gap}{text}"))?,
                }
            }
        }
        before = Some(now);
        match &stop {
            Some(stop) if !stop.within(std::time::Duration::from_nanos(look.interval.as_ns()))? => {}
            _ => return Ok(Exit::Done),
        }
    }
}

/// The text of a failure as on a terminal.
pub(super) fn words(failure: &Failure) -> String {
    match failure {
        Failure::Report(report) => report.to_string(),
        Failure::Wrong { message, hint: Some(hint) } => format!("error: {message}\nhint: {hint}"),
        Failure::Wrong { message, hint: None } => format!("error: {message}"),
        Failure::ReaderGone => String::new(),
    }
}
