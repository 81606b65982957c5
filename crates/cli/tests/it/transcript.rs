//! Runs the program as a user would, and records the output on the terminal.
//!
//! A transcript is a series of steps: a line `$ COMMAND`; its standard output; a line `--- stderr`
//! with its standard error below, if any; and a line `--- exit N` if the exit code is not 0. In
//! expected output a line `...` matches any number of lines, and `[..]` any text within a line.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::workspace::root;

/// The output of one command.
pub(crate) struct Output {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

impl Output {
    /// The output in the form of a transcript.
    pub(crate) fn whole(&self) -> String {
        let mut text = self.stdout.clone();
        end_line(&mut text);
        if !self.stderr.is_empty() {
            text.push_str("--- stderr\n");
            text.push_str(&self.stderr);
            end_line(&mut text);
        }
        if self.code != 0 {
            writeln!(text, "--- exit {}", self.code).expect("a string takes all");
        }
        text
    }
}

/// True for a test that may make namespaces and devices.
pub(crate) fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

/// A folder for commands to run in, with the repository's scenarios and policies in it. Removed
/// when dropped.
pub(crate) struct Scratch {
    pub(crate) path: PathBuf,
    _folder: TempDir,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        let folder = TempDir::with_prefix("lastmile-it-").expect("a folder for temporary files");
        let path = folder.path().to_owned();
        // Some tests run commands in it as another user.
        #[cfg(unix)]
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("a folder of its own");
        #[cfg(unix)]
        for shared in ["scenarios", "studies", "policies", "crates"] {
            std::os::unix::fs::symlink(root().join(shared), path.join(shared)).expect("a link in an empty folder");
        }
        Self { path, _folder: folder }
    }

    /// Runs `command`, which must be `lastmile ...`, or `ls FOLDER`, perhaps with `NAME=value` in front.
    pub(crate) fn run(&self, command: &str) -> Output {
        let words = split(command);
        let assignments = words.iter().take_while(|word| word.contains('=') && !word.starts_with('-')).count();
        let (environment, words) = words.split_at(assignments);
        match words {
            [program, arguments @ ..] if program == "lastmile" => self.lastmile(environment, arguments),
            [program, folder] if program == "ls" => self.list(folder),
            _ => panic!("a transcript runs only `lastmile` and `ls FOLDER`, not `{command}`"),
        }
    }

    fn lastmile(&self, environment: &[String], arguments: &[String]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
        command.args(arguments).current_dir(&self.path).stdin(Stdio::null());
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "RUST_BACKTRACE"] {
            command.env_remove(name);
        }
        for assignment in environment {
            let (name, value) = assignment.split_once('=').expect("checked by the caller");
            command.env(name, value);
        }
        let output = command.output().expect("the program was built with its tests");
        Output {
            stdout: String::from_utf8(output.stdout).expect("text on standard output"),
            stderr: String::from_utf8(output.stderr).expect("text on standard error"),
            code: output.status.code().expect("the program ended by itself"),
        }
    }

    fn list(&self, folder: &str) -> Output {
        let mut names: Vec<String> = std::fs::read_dir(self.path.join(folder))
            .unwrap_or_else(|error| panic!("ls {folder}: {error}"))
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let stdout = names.iter().map(|name| format!("{name}\n")).collect();
        Output { stdout, stderr: String::new(), code: 0 }
    }
}

/// A command of a transcript, and its expected output.
pub(crate) struct Step {
    pub(crate) command: String,
    pub(crate) expected: String,
}

/// Splits a transcript into its steps. A backslash at the end of a line continues a command.
pub(crate) fn steps(transcript: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut continues = false;
    for line in transcript.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            continues = command.ends_with('\\');
            steps.push(Step { command: command.to_owned(), expected: String::new() });
        } else if let Some(step) = steps.last_mut() {
            if continues {
                continues = line.ends_with('\\');
                write!(step.command, "\n{line}").expect("a string takes all");
            } else {
                step.expected.push_str(line);
                step.expected.push('\n');
            }
        }
    }
    steps
}

/// True if `expected` matches `actual`.
pub(crate) fn matches(expected: &str, actual: &str) -> bool {
    let expected: Vec<&str> = expected.trim_end().lines().collect();
    let actual: Vec<&str> = actual.trim_end().lines().collect();
    lines_match(&expected, &actual)
}

fn lines_match(expected: &[&str], actual: &[&str]) -> bool {
    match expected {
        [] => actual.is_empty(),
        ["...", rest @ ..] => (0..=actual.len()).any(|skip| lines_match(rest, &actual[skip..])),
        [first, rest @ ..] => actual
            .split_first()
            .is_some_and(|(line, others)| line_matches(first.trim_end(), line.trim_end()) && lines_match(rest, others)),
    }
}

fn line_matches(expected: &str, actual: &str) -> bool {
    let Some((head, tail)) = expected.split_once("[..]") else { return expected == actual };
    let Some(rest) = actual.strip_prefix(head) else { return false };
    rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| line_matches(tail, &rest[at..]))
}

/// Both texts, with the first difference marked.
pub(crate) fn difference(expected: &str, actual: &str) -> String {
    let mut text = String::new();
    let first =
        expected.lines().zip(actual.lines()).take_while(|(e, a)| line_matches(e.trim_end(), a.trim_end())).count();
    for (title, lines) in [("expected", expected), ("actual", actual)] {
        writeln!(text, "{title}:").expect("a string takes all");
        for (number, line) in lines.lines().enumerate() {
            let mark = if number == first { ">" } else { " " };
            writeln!(text, "{mark} {line}").expect("a string takes all");
        }
    }
    text
}

/// Words of a command line in the shell's syntax: blanks separate, quotes group, `\` at a line's
/// end continues.
fn split(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let joined = command.replace("\\\n", " ");
    for character in joined.chars() {
        match (quote, character) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    assert!(quote.is_none(), "a quote is left open in `{command}`");
    words.extend(word);
    words
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// True if the environment asks to update the expected output instead of comparing with it.
pub(crate) fn blessing(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}

/// Files under `folder` with this extension, sorted.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    files.sort();
    files
}

#[test]
fn words_split_as_a_shell_would() {
    assert_eq!(
        split("lastmile run a.toml --set 'access.up.rate=1 Mbit/s' \"x y\" ''"),
        ["lastmile", "run", "a.toml", "--set", "access.up.rate=1 Mbit/s", "x y", ""]
    );
    assert_eq!(split("lastmile \\\n  run"), ["lastmile", "run"]);
}

#[test]
fn wildcards_stand_for_what_may_differ_and_nothing_else() {
    assert!(matches("a\n...\nz\n", "a\nb\nc\nz\n"));
    assert!(matches("...", "a\nb\n"));
    assert!(!matches("a\n...\nz\n", "a\nb\n"));
    assert!(matches("took [..] s", "took 1.5 s"));
    assert!(!matches("took [..] s", "took 1.5 ms later"));
    assert!(!matches("a\n", "a\nb\n"));
    assert!(!matches("a\nb\n", "a\n"));
}

#[test]
fn a_transcript_is_cut_at_its_prompts() {
    let steps = steps("$ lastmile a\n1\n2\n$ lastmile b \\\n  c\n--- exit 2\n");
    let parts: Vec<_> = steps.iter().map(|s| (s.command.as_str(), s.expected.as_str())).collect();
    assert_eq!(parts, [("lastmile a", "1\n2\n"), ("lastmile b \\\n  c", "--- exit 2\n")]);
}
