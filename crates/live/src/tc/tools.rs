//! Runs tc(8), ip(8) and nft(8), with the devices of a set-up in place of their names.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::error::Error;

/// The devices of a set-up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// The one that faces the modem.
    pub device: String,
    /// The intermediate one.
    pub ifb: String,
}

/// Runs a command of a configuration on these devices.
pub(super) fn run_with(command: &lastmile_kernel::Command, target: &Target) -> Result<String, Error> {
    let words = command.on(&target.device, &target.ifb);
    run_reading(&words, command.input_on(&target.device, &target.ifb).as_deref())
}

/// Runs a command; returns what it printed.
pub(crate) fn run(words: &[String]) -> Result<String, Error> {
    run_reading(words, None)
}

fn run_reading(words: &[String], input: Option<&str>) -> Result<String, Error> {
    let (program, arguments) = words.split_first().map_or(("", words), |(program, rest)| (program.as_str(), rest));
    let mut command = Command::new(program);
    command.args(arguments);
    let output = match input {
        None => command.output(),
        Some(input) => output_of(&mut command, input),
    };
    let output = output.map_err(|source| Error::Command { command: program.to_owned(), source })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let message = said.split_whitespace().collect::<Vec<_>>().join(" ");
    if message.contains("Operation not permitted") {
        return Err(Error::NotPermitted { what: shown(words) });
    }
    Err(Error::Tool { command: shown(words), message })
}

/// Runs a command that reads all of its input before it prints.
fn output_of(command: &mut Command, input: &str) -> std::io::Result<Output> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that ends early says why by its status.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output()
}

/// A command for a message: long words are cut.
fn shown(words: &[String]) -> String {
    let word = |word: &String| match word.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", word[..end].replace('\n', "")),
        None => word.clone(),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}
