//! Messages while a view is on the terminal.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use lastmile_text::escape;

use crate::shared::Shared;

/// Messages of an open view that are kept; older ones are lost.
const KEPT: usize = 1000;

/// The open view.
pub(crate) static OPEN: Mutex<Option<Arc<Shared>>> = Mutex::new(None);

/// Shows a message in the open view, and prints it on standard error when the view is left; false
/// without a view: then the caller prints it.
#[must_use]
pub fn say(message: &str) -> bool {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(view) = open.as_ref() else { return false };
    let mut content = view.content();
    for line in message.lines() {
        push(&mut content.shown.log, line);
        push(&mut content.kept, line);
    }
    true
}

/// Adds a message to the newest ones.
pub(crate) fn push(lines: &mut VecDeque<String>, line: &str) {
    if lines.len() == KEPT {
        lines.pop_front();
    }
    lines.push_back(line.to_owned());
}

/// Prints messages on standard error.
pub(crate) fn print(lines: impl IntoIterator<Item = String>) {
    let mut terminal = std::io::stderr().lock();
    for line in lines {
        // With standard error closed there is no reader.
        let _ = writeln!(terminal, "{}", escape::line(&line));
    }
}
