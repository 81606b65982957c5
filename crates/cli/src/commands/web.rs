//! The dashboard of commands that run for long: its options, its port, its reports.

pub(super) mod charts;
pub(super) mod flows;
pub(super) mod what_if;

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use lastmile_dashboard::Server;
use lastmile_dashboard::guard::{self, Guard};
use lastmile_dashboard::hub::{About, Hub, Program, now_ms};
use lastmile_dashboard::report::Report;
use lastmile_live::stop::Stop;

use crate::failure::{Failure, Result};
use crate::printer::Printer;

/// Time between two reports.
const INTERVAL: Duration = Duration::from_secs(1);

/// The shortest token of a file: at 6 bits a character, more than anyone guesses.
const SHORTEST_TOKEN: usize = 16;
const LONGEST_TOKEN: usize = 1024;

/// The dashboard of a running program.
#[derive(Args, Clone, Default)]
pub(super) struct Web {
    /// Serve the dashboard at http://ADDRESS/ [without ADDRESS: 127.0.0.1:8420]
    ///
    /// Another address than one of this machine alone, such as 0.0.0.0:8420, takes a token.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:8420",
        value_parser = address)]
    pub(super) web: Option<SocketAddr>,

    /// The dashboard takes the token in this file [default: none on this machine; a random one
    /// elsewhere, which is printed]
    #[arg(long, value_name = "FILE", requires = "web")]
    web_token_file: Option<PathBuf>,

    /// A name by which browsers ask for the dashboard, apart from addresses and localhost; may be
    /// given several times
    #[arg(long, value_name = "NAME", requires = "web", value_parser = name)]
    web_name: Vec<String>,
}

/// Parses `ADDRESS:PORT`.
fn address(text: &str) -> std::result::Result<SocketAddr, String> {
    text.parse().map_err(|_| "an address and a port are needed, such as 127.0.0.1:8420 or [::1]:8420".to_owned())
}

/// Parses a host name.
fn name(text: &str) -> std::result::Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let is_name = !text.is_empty() && text.len() <= 253 && text.chars().all(fits);
    is_name.then(|| text.to_owned()).ok_or_else(|| "a host name is needed, such as router.lan".to_owned())
}

/// The port of a dashboard, open, and its checks.
pub(super) struct Opened {
    server: Server,
    guard: Guard,
    control: bool,
    /// Its address, and the token if there is a random one.
    words: String,
}

impl Web {
    /// Opens the port, if there is to be a dashboard, which may change something with `control`.
    pub(super) fn open(&self, control: bool) -> Result<Option<Opened>> {
        let Some(address) = self.web else { return Ok(None) };
        let given = self.web_token_file.as_ref().map(token_of).transpose()?;
        let needs_token = !address.ip().is_loopback() || control;
        let random = (given.is_none() && needs_token).then(guard::secret).transpose().map_err(Failure::new)?;
        let token = given.as_deref().or(random.as_deref());
        let server = Server::bind(address)?;
        let address = server.address()?;
        let guard = Guard::new(address, &self.web_name, token).map_err(Failure::new)?;
        let mut words = format!("dashboard: http://{address}/");
        if let Some(random) = &random {
            words.push_str(&format!("\ntoken of the dashboard, until the program ends: {random}"));
        }
        Ok(Some(Opened { server, guard, control, words }))
    }
}

/// The token in a file: one line.
fn token_of(file: &PathBuf) -> Result<String> {
    let wrong = |problem: &dyn std::fmt::Display| {
        let hint = format!(
            "a token is one line of {SHORTEST_TOKEN} to {LONGEST_TOKEN} letters, digits, - and _, \
             such as that of: openssl rand -hex 16"
        );
        Failure::new(format_args!("{}: {problem}", file.display())).hint(hint)
    };
    let text = fs::read_to_string(file).map_err(|error| wrong(&error))?;
    let token = text.trim_end_matches(['\r', '\n']);
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !(SHORTEST_TOKEN..=LONGEST_TOKEN).contains(&token.len()) {
        return Err(wrong(&format_args!("a token of {} characters", token.len())));
    }
    match token.chars().find(|c| !fits(*c)) {
        Some(odd) => Err(wrong(&format_args!("a token with the character {odd:?}"))),
        None => Ok(token.to_owned()),
    }
}

impl Opened {
    /// Prints where the dashboard is.
    pub(super) fn tell(&self, printer: &mut Printer) {
        printer.talk_lines(&self.words);
    }

    /// Where the dashboard is.
    pub(super) fn words(&self) -> &str {
        &self.words
    }

    /// The hub for the reports of this program.
    pub(super) fn hub(&self, title: &str, program: impl Program) -> Arc<Hub> {
        let (version, pid) = (env!("CARGO_PKG_VERSION"), std::process::id());
        Hub::new(About { title: title.to_owned(), version, pid, control: self.control }, program)
    }

    /// Answers browsers until `end`. The program works without them, too.
    pub(super) fn serve(self, end: &Stop, hub: &Arc<Hub>) {
        let _ = self.server.serve(end, hub, self.guard);
    }
}

/// Publishes what `sample` returns each second, until `end` or until there is no sample. A second that
/// was missed is left out.
pub(super) fn publish(hub: &Hub, end: &Stop, mut sample: impl FnMut(&Hub) -> Option<Report>) {
    let start = Instant::now();
    let mut next = Duration::ZERO;
    loop {
        let Some(report) = sample(hub) else { return };
        hub.publish(&Report { at_ms: now_ms(), ..report });
        next = (next + INTERVAL).max(start.elapsed());
        if end.within(next.saturating_sub(start.elapsed())).unwrap_or(true) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn words(text: &[u8]) -> std::result::Result<String, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text).unwrap();
        token_of(&file.path().to_owned()).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn a_token_is_one_line_of_characters_that_no_form_changes() {
        assert_eq!(words(b"0123456789abcdef\n"), Ok("0123456789abcdef".to_owned()));
        assert_eq!(words(b"0123456789ABC-_f"), Ok("0123456789ABC-_f".to_owned()));
        for (wrong, why) in [
            (&b"short\n"[..], "5 characters"),
            (b"0123456789abcde f", "character ' '"),
            (b"0123456789abcdef\nmore", "'\\\\n'"),
            (b"0123456789abcdef&x=1", "'&'"),
            (b"", "0 characters"),
        ] {
            let error = words(wrong).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn names_are_those_of_hosts() {
        assert_eq!(name("router.lan"), Ok("router.lan".to_owned()));
        for wrong in ["", "http://router", "a b", "router:80"] {
            assert!(name(wrong).is_err(), "{wrong}");
        }
    }
}
