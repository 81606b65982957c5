//! Common code of the tests with real packets. They need root, so they run only on request
//! (`scripts/live-tests.sh`).

use std::io::BufRead;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::transcript::{Scratch, is_root};

/// True if namespaces are possible; otherwise prints a message.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
pub(crate) fn can_run() -> bool {
    let can = is_root();
    if !can {
        eprintln!("skipped: needs root");
    }
    can
}

/// A folder with this file in it; `None`, with a message, without TUN devices.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
pub(crate) fn folder(file: &str, text: &str) -> Option<Scratch> {
    if !can_run() {
        return None;
    }
    if !Path::new("/dev/net/tun").exists() {
        eprintln!("skipped: needs /dev/net/tun");
        return None;
    }
    let scratch = Scratch::new();
    std::fs::write(scratch.path.join(file), text).unwrap();
    Some(scratch)
}

/// The program, to be run in this folder.
pub(crate) fn lastmile(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

pub(crate) fn json(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(text)))
}

/// The output of a program up to and including the first line with `words` in it.
pub(crate) fn until_it_says(words: &str, talk: &mut impl BufRead) -> String {
    let mut said = String::new();
    while !said.contains(words) {
        assert_ne!(talk.read_line(&mut said).unwrap(), 0, "it ended early: {said}");
    }
    said
}

pub(crate) fn kill(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]).status().unwrap().success());
}

/// The namespaces of the process `pid`.
pub(crate) fn namespaces(pid: u32) -> Vec<String> {
    let own = format!("lastmile-{pid}-");
    let Ok(entries) = std::fs::read_dir("/var/run/netns") else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(&own)).collect()
}
