//! The program's use of its streams: colours, closed pipes, full disks, signals.

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

/// `lastmile compare <(lastmile new ...)`: each of several runs has the file that came through a pipe once.
#[cfg(target_os = "linux")]
#[test]
fn a_scenario_from_a_pipe_is_read_once() {
    let new = ["new", "--line", "adsl2plus-12-1", "--home", "single"];
    for arguments in [&["compare", "--policy", "none,sad"][..], &["run", "--seeds", "2"]] {
        let mut made = lastmile(&new).stdout(Stdio::piped()).spawn().unwrap();
        let pipe = made.stdout.take().unwrap();
        let arguments = [arguments, &["/dev/stdin", "--duration", "11 s"]].concat();
        let output = lastmile(&arguments).stdin(pipe).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(made.wait().unwrap().code(), Some(0));
    }
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

/// `lastmile analyse cut-off.pcap --out DIR | true` writes its file, and still says by its code that the capture is cut
/// off.
#[test]
fn a_verdict_and_files_outlast_the_reader() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("cut-off.pcap");
    // Magic number, version 2.4, snap length, raw IP (LINKTYPE_RAW); a record of 40 bytes that has none.
    let words = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101, 1, 0, 40, 40];
    std::fs::write(&capture, words.map(u32::to_le_bytes).concat()).unwrap();
    let out = folder.path().join("out");
    let arguments = ["analyse", capture.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let mut child = lastmile(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(out.join("analysis.json").is_file());
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

/// Commands that print, each in a different way.
#[cfg(target_os = "linux")]
const PRINTING: [&[&str]; 11] = [
    &["--help"],
    &["--version"],
    &["run", "--help"],
    &["overhead"],
    &["completions", "bash"],
    &["schema", "policy"],
    &["policy", "list"],
    &["model", "asymmetry", "--down", "2 Mbit/s", "--up", "512 kbit/s"],
    &["reproduce", "--list"],
    &["run", "scenario.toml"],
    &["run", "scenario.toml", "--json"],
];

#[cfg(target_os = "linux")]
fn in_folder_with_scenario() -> crate::transcript::Scratch {
    let scratch = crate::transcript::Scratch::new();
    let text = "duration = \"1 s\"\n[access]\ndown = { rate = \"1 Mbit/s\" }\nup = { rate = \"1 Mbit/s\" }\n\
                [[traffic]]\nkind = \"ping\"\n";
    std::fs::write(scratch.path.join("scenario.toml"), text).unwrap();
    scratch
}

/// The standard library would open /dev/null in its place, and the loss of output would not be
/// reported.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_standard_output_is_an_error_of_every_command() {
    let scratch = in_folder_with_scenario();
    let shell = |redirection: &str, arguments: &[&str]| {
        let script = format!("exec \"$0\" \"$@\" {redirection}");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_lastmile")]).args(arguments);
        command.current_dir(&scratch.path).stdin(Stdio::null()).output().unwrap()
    };
    for arguments in PRINTING {
        let output = shell(">&-", arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}: {error}");
        assert!(error.starts_with("error: standard output is closed\n"), "{arguments:?}: {error}");
        // Output redirected there by the caller is no error, nor is a closed input.
        for fine in [">/dev/null", "1<>/dev/null", "<&-"] {
            let output = shell(fine, arguments);
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(0), "{arguments:?} {fine}: {error}");
        }
        assert_eq!(shell("2>&-", arguments).status.code(), Some(0), "{arguments:?}");
        assert_eq!(shell("2>&- >&-", arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_of_every_command_and_a_reader_that_goes_is_none() {
    let scratch = in_folder_with_scenario();
    for arguments in PRINTING {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = lastmile(arguments).current_dir(&scratch.path).stdout(full).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.starts_with("error: cannot write to standard output: "), "{arguments:?}: {error}");
        assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{arguments:?}: {error}");
        let mut command = lastmile(arguments);
        let command = command.current_dir(&scratch.path).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{arguments:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_closed_standard_error_changes_no_exit_code() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = lastmile(&["overhead", "--link", "nosuch"]).stderr(full).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

/// A run whose results do not fit the disk is an error, exit code 2, and leaves no file with a
/// final name.
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
