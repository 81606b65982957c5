//! What the program does with the streams it is given: colours, closed pipes, full disks, signals.

use std::fs::OpenOptions;
use std::process::{Command, Stdio};

fn lastmile(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.args(arguments).stdin(Stdio::null());
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(name);
    }
    command
}

const WITH_HEADING: [&str; 3] = ["overhead", "--link", "pppoa-vcmux"];

#[test]
fn what_is_piped_has_no_colours_unless_forced_and_never_with_no_color() {
    let escapes = |command: &mut Command| command.output().unwrap().stdout.contains(&0x1b);
    assert!(!escapes(&mut lastmile(&WITH_HEADING)));
    assert!(escapes(lastmile(&WITH_HEADING).env("CLICOLOR_FORCE", "1")));
    assert!(!escapes(lastmile(&WITH_HEADING).env("NO_COLOR", "1")));
}

/// `lastmile overhead | head -1` is no error, and no panic.
#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = lastmile(&["overhead"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_under_standard_output_is_an_error() {
    for arguments in [&["overhead"][..], &["overhead", "--json"]] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = lastmile(arguments).stdout(full).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.starts_with("error: cannot write to standard output: "), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert_eq!(output.status.code(), Some(2));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_closed_standard_error_changes_no_exit_code() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = lastmile(&["overhead", "--link", "nosuch"]).stderr(full).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

/// The file of a run that takes long enough to be interrupted in.
#[cfg(unix)]
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

#[cfg(unix)]
#[test]
fn an_interrupt_ends_a_run_with_130_and_leaves_no_result() {
    use std::time::Duration;

    let scratch = crate::transcript::Scratch::new();
    std::fs::write(scratch.path.join("long.toml"), LONG).unwrap();
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let mut command = lastmile(&["run", "long.toml", "--out", "out", "--capture", "up"]);
        let mut child = command.current_dir(&scratch.path).stdout(Stdio::piped()).spawn().unwrap();
        // The capture is the first file: once it is under way, the run is.
        let started = std::time::Instant::now();
        while std::fs::read_dir(scratch.path.join("out")).map_or(0, Iterator::count) == 0 {
            assert!(started.elapsed() < Duration::from_secs(20), "the run does not begin");
            std::thread::sleep(Duration::from_millis(5));
        }
        // The handlers are in place before any file is opened.
        let sent = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        // A step of the run may have to end first; the second signal does not wait for it.
        std::thread::sleep(Duration::from_millis(200));
        let second = child.try_wait().unwrap().is_none();
        if second {
            Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{signal}");
        assert!(output.stdout.is_empty());
        let left: Vec<_> =
            std::fs::read_dir(scratch.path.join("out")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        let named = left.iter().filter(|name| !name.to_string_lossy().starts_with('.')).count();
        assert_eq!(named, 0, "{signal}: {left:?}");
        std::fs::remove_dir_all(scratch.path.join("out")).unwrap();
    }
}

/// A run whose results do not fit the disk is an error, exit code 2, and leaves nothing under a final name.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_under_the_results_leaves_none_of_them() {
    let scratch = crate::transcript::Scratch::new();
    let disk = scratch.path.join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(&disk).status();
    if !mounted.is_ok_and(|status| status.success()) {
        eprintln!("skipped: mounting a small disk needs root");
        return;
    }
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/first-steps/1-one-download.toml");
    for arguments in [&[][..], &["--capture", "down"]] {
        let output = lastmile(&["run", scenario, "--out"]).arg(disk.join("out")).args(arguments).output().unwrap();
        let left: Vec<_> = std::fs::read_dir(disk.join("out")).map_or(Vec::new(), |entries| {
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
        });
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let outcome = (output.status.code(), left.iter().any(|name| !name.starts_with('.')));
        if outcome != (Some(2), false) || !text.contains("No space left") {
            let _ = Command::new("umount").arg(&disk).status();
            panic!("{arguments:?}: exit code and files {outcome:?}, {left:?}: {text}");
        }
    }
    assert!(Command::new("umount").arg(&disk).status().unwrap().success());
}
