//! Signals: the first ends a command in order and soon, in any state; the second ends it at once.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::transcript::Scratch;

/// The longest time in which a command must end. Machines may be busy, and a command that misses a
/// signal continues for hours.
const SOON: Duration = Duration::from_secs(15);

/// A run whose thousandth part takes minutes.
const LONG: &str = r#"
name = "long"
duration = "700 h"

[record]
series = false

[access]
down = { rate = "1 Gbit/s" }
up = { rate = "100 Mbit/s" }

[[traffic]]
name = "download"
kind = "bulk"
direction = "down"
"#;

/// A long run over links of cells.
const CELLS: &str = r#"
duration = "700 h"

[record]
series = false

[[switch]]
name = "switch"

[[link]]
from = "server"
to = "switch"
rate = "600 Mbit/s"

[[link]]
from = "switch"
to = "client"
rate = "150 Mbit/s"

[[traffic]]
kind = "bulk"
from = "server"
to = "client"
"#;

fn start(folder: &Path, arguments: &[&str]) -> Child {
    // The parent of the tests may ignore SIGHUP, as nohup(1) does, and the program would inherit
    // that.
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_lastmile")]).args(arguments);
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// True when handlers are installed: `SigCgt` of proc_pid_status(5) has SIGTERM, the 15th.
fn listens(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
    u64::from_str_radix(mask.trim(), 16).unwrap() >> 14 & 1 == 1
}

fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is() {
        assert!(started.elapsed() < SOON, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The output of a program that must end soon.
fn end(mut child: Child) -> Output {
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > SOON {
            child.kill().unwrap();
            panic!("it does not end: {:?}", child.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

/// Names in a folder, none if it does not exist.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

fn begun(folder: &Path, arguments: &[&str]) -> Child {
    let child = start(folder, arguments);
    wait_until("it does not begin", || listens(&child));
    // The run is then in its first step.
    std::thread::sleep(Duration::from_millis(300));
    child
}

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    std::fs::write(scratch.path.join("long.toml"), LONG).unwrap();
    std::fs::write(scratch.path.join("cells.toml"), CELLS).unwrap();
    scratch
}

#[test]
fn one_signal_ends_a_run_in_the_middle_of_a_step_and_leaves_nothing() {
    let scratch = scratch();
    let run = ["run", "long.toml", "--out", "out", "--capture", "up"];
    let several = ["run", "long.toml", "--out", "out", "--seeds", "3"];
    let commands = [
        &run[..],
        &several,
        &["compare", "long.toml", "--out", "out"],
        &["run", "cells.toml", "--out", "out"],
        &["run", "long.toml", "--json"],
    ];
    for (number, arguments) in commands.into_iter().enumerate() {
        let (name, code) = [("INT", 130), ("TERM", 143), ("HUP", 129)][number % 3];
        let child = begun(&scratch.path, arguments);
        signal(&child, name);
        let output = end(child);
        assert_eq!(output.status.code(), Some(code), "{arguments:?} after {name}: {output:?}");
        assert!(output.stdout.is_empty());
        assert_eq!(names(&scratch.path.join("out")), [""; 0], "{arguments:?} after {name}");
        assert!(!scratch.path.join("out").exists(), "a folder that was made for nothing goes");
    }
}

/// nohup(1) makes its program ignore SIGHUP.
#[test]
fn what_ignores_hangups_goes_on() {
    let scratch = scratch();
    let mut command = Command::new("sh");
    let script = "trap '' HUP; exec \"$0\" run long.toml";
    command.args(["-c", script, env!("CARGO_BIN_EXE_lastmile")]).current_dir(&scratch.path);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("it does not begin", || listens(&child));
    signal(&child, "HUP");
    std::thread::sleep(Duration::from_millis(1500));
    let mut child = child;
    assert!(child.try_wait().unwrap().is_none());
    signal(&child, "TERM");
    assert_eq!(end(child).status.code(), Some(143));
}

/// The program is stopped so that both signals are pending, and handles them in any order. An
/// orderly end removes its unfinished capture; an end at once leaves it, under a hidden name. Two
/// threads that handle one each at the same moment end it in order, so at least one of six must end
/// at once.
#[test]
fn a_second_signal_ends_at_once_whichever_it_is() {
    let scratch = scratch();
    let mut at_once = 0;
    for (first, second, codes) in
        [("HUP", "INT", [129, 130]), ("INT", "TERM", [130, 143]), ("HUP", "TERM", [129, 143])].repeat(2)
    {
        let child = begun(&scratch.path, &["run", "long.toml", "--out", "out", "--capture", "up"]);
        wait_until("it writes no capture", || !names(&scratch.path.join("out")).is_empty());
        for name in ["STOP", first, second, "CONT"] {
            signal(&child, name);
        }
        let output = end(child);
        assert!(codes.map(Some).contains(&output.status.code()), "{first}, then {second}: {output:?}");
        let left = names(&scratch.path.join("out"));
        assert!(left.iter().all(|name| name.starts_with('.')), "{first}, then {second}: {left:?}");
        at_once += left.len();
        let _ = std::fs::remove_dir_all(scratch.path.join("out"));
    }
    assert!(at_once > 0, "no second signal ended it at once");
}

#[test]
fn one_signal_ends_what_has_nothing_to_end_in_order() {
    let scratch = scratch();
    let child = begun(&scratch.path, &["reproduce", "sun1998", "--threads", "1"]);
    signal(&child, "TERM");
    let output = end(child);
    assert_eq!(output.status.code(), Some(143), "{output:?}");
}

/// With a limit of file sizes (ulimit -f counts 512 bytes) a capture fails when the limit is
/// noticed, and nothing of it remains.
#[test]
fn a_limit_of_file_sizes_is_an_error_and_leaves_nothing() {
    let scratch = scratch();
    let script = "ulimit -f 64; exec \"$0\" run long.toml --out out --capture down";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_lastmile")]).current_dir(&scratch.path).stdin(Stdio::null());
    let output = end(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("File too large"), "{error}");
    assert_eq!(names(&scratch.path.join("out")), [""; 0]);
}
