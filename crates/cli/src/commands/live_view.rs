//! The live view of commands that carry real packets.

pub(super) mod classes;
pub(super) mod hops;

use std::io::{self, BufRead, BufReader, PipeWriter};
use std::thread;

use clap::Args;
use lastmile_live::stop::Stop;
use lastmile_terminal::{INTERVAL, Snapshot, View};

use crate::printer::Printer;

/// The display while a command runs.
#[derive(Args, Clone, Copy)]
pub(super) struct Display {
    /// Show a progress bar on a terminal, and no live view
    #[arg(long)]
    pub(super) plain: bool,
}

impl Display {
    /// Whether there may be a view.
    pub(super) fn is_possible(self) -> bool {
        !self.plain && lastmile_terminal::is_possible()
    }

    /// The view, if the user wants one and the terminal can show it. `printed` are the messages
    /// above it, which it shows too.
    pub(super) fn view(self, title: &str, printed: &str) -> Option<View> {
        let view = (!self.plain).then(|| View::new(title)).flatten()?;
        view.note(printed);
        Some(view)
    }
}

/// Two descriptors for the output of a program, each line of which is a message.
pub(super) fn messages() -> io::Result<(PipeWriter, PipeWriter)> {
    let (lines, one) = io::pipe()?;
    let other = one.try_clone()?;
    // It ends when the program and its children have closed both.
    thread::spawn(move || {
        for line in BufReader::new(lines).split(b'\n').map_while(Result::ok) {
            Printer::new().talk(&String::from_utf8_lossy(&line));
        }
    });
    Ok((one, other))
}

/// Shows what `sample` returns in the view, until `end`, until there is no sample, or until the user
/// leaves the view; true if the user has.
pub(super) fn show(view: &View, end: &Stop, mut sample: impl FnMut() -> Option<Snapshot>) -> bool {
    while view.is_open() {
        let Some(snapshot) = sample() else { return false };
        view.update(snapshot);
        if end.within(INTERVAL).unwrap_or(true) {
            return false;
        }
    }
    true
}
