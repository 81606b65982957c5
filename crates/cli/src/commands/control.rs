//! Programs that run, and those that ask them: one JSON object for another at a control socket, each on a line.

use std::io::{self, IsTerminal};
use std::path::Path;

use clap::Args;
use lastmile_live::control::{self, Request, Verb};
use lastmile_live::stop::Stop;
use lastmile_results::json;
use lastmile_units::Duration;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::failure::{Exit, Failure, Result};
use crate::printer::{Printer, Screen};

/// What is answered, by a program whose status is an `S`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Answer<S> {
    Status(Box<S>),
    Done { message: String },
    Failed { error: String },
}

impl<S: DeserializeOwned> Answer<S> {
    /// The answer on a line.
    pub(super) fn read(line: &str) -> Result<Self> {
        serde_json::from_str(line).map_err(|error| Failure::new(format_args!("an answer that cannot be read: {error}")))
    }
}

impl<S: Serialize> Answer<S> {
    /// As a line.
    fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"failed\":{{\"error\":\"{error}\"}}}}"))
    }
}

/// A program that runs and is asked.
pub(super) trait Program {
    /// What it tells of itself.
    type Status: Serialize;

    /// What it has done so far; `None` when it is ending.
    fn status(&self) -> Option<Self::Status>;

    /// False when it is ending.
    fn is_alive(&self) -> bool;

    /// Reads its configuration again.
    fn reload(&mut self) -> Answer<Self::Status>;

    /// Ends it.
    fn stop(&self);

    /// The answer to a line that asks something.
    fn answer_to(&mut self, line: &str) -> String {
        let done = |message: &str| Answer::Done { message: message.to_owned() };
        let ending = || Answer::Failed { error: "it is ending".to_owned() };
        let answer = match line.parse().map(|Request { r#do }| r#do) {
            Ok(Verb::Status) => self.status().map_or_else(ending, |status| Answer::Status(Box::new(status))),
            Ok(Verb::Alive) if self.is_alive() => done("it is alive"),
            Ok(Verb::Alive) => ending(),
            Ok(Verb::Reload) => self.reload(),
            Ok(Verb::Stop) => {
                self.stop();
                done("it ends")
            }
            Err(error) => Answer::Failed { error },
        };
        answer.line()
    }
}

/// Asks the program at this socket.
pub(super) fn ask<S: DeserializeOwned>(control: &Path, verb: Verb) -> Result<Answer<S>> {
    Answer::read(&control::ask(control, &Request::from(verb).to_string())?)
}

/// Prints the answer to anything but `status`.
pub(super) fn tell<S: Serialize>(answer: &Answer<S>, json: bool, printer: &mut Printer) -> Result {
    if json {
        printer.json(answer)?;
    }
    match answer {
        Answer::Failed { error } => {
            // The report of a file says itself where it is wrong.
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

/// How a status is looked at.
#[derive(Args)]
pub(super) struct Look {
    /// Print it as JSON; with --watch, each on a line of its own
    #[arg(long)]
    json: bool,

    /// Show it again and again, in place on a terminal, until Ctrl-C
    #[arg(long)]
    watch: bool,

    /// With --watch, how often
    #[arg(long, value_name = "TIME", default_value = "1 s", requires = "watch")]
    interval: Duration,
}

/// A status and the one before it, while it is watched.
pub(super) struct Seen<'a, S> {
    pub(super) now: &'a S,
    pub(super) before: Option<&'a S>,
}

/// Asks for the status, once or again and again, and prints it; `text` makes words of it for a terminal of so many columns.
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

/// As a terminal would show it.
pub(super) fn words(failure: &Failure) -> String {
    match failure {
        Failure::Report(report) => report.to_string(),
        Failure::Wrong { message, hint: Some(hint) } => format!("error: {message}\nhint: {hint}"),
        Failure::Wrong { message, hint: None } => format!("error: {message}"),
        Failure::ReaderGone => String::new(),
    }
}
