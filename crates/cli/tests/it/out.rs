//! `--out`: a path that cannot be written is reported before anything runs.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::transcript::Scratch;

/// Hours of work: a command that begins it does not end within the time of a test.
const LONG: &str = r#"
duration = "700 h"
[record]
series = false
[access]
down = { rate = "1 Gbit/s" }
up = { rate = "100 Mbit/s" }
[[traffic]]
kind = "bulk"
direction = "down"
"#;

fn lastmile(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).env("NO_COLOR", "1");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("{arguments:?}: it has begun");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = lastmile(folder, arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}: {error}");
    error
}

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    std::fs::write(scratch.path.join("long.toml"), LONG).unwrap();
    std::fs::write(scratch.path.join("file"), "in the way").unwrap();
    scratch
}

#[test]
fn a_folder_that_cannot_be_is_told_before_anything_runs() {
    let scratch = scratch();
    let commands: [&[&str]; 5] = [
        &["run", "long.toml"],
        &["run", "long.toml", "--seeds", "2"],
        &["compare", "long.toml"],
        &["reproduce", "sun1998"],
        &["analyse", "long.toml"],
    ];
    for arguments in commands {
        for out in ["file", "file/deeper", "/proc/nowhere"] {
            let error = refused(&scratch.path, &[arguments, &["--out", out]].concat());
            assert!(error.starts_with("error: --out"), "{arguments:?}: {error}");
            assert!(error.contains(&format!("cannot write {out}")), "{arguments:?}: {error}");
            let is_a_file = error.contains(": file is a file, and no folder\n");
            assert_eq!(is_a_file, out.starts_with("file"), "{arguments:?}: {error}");
        }
    }
    let error = refused(&scratch.path, &["report", "nothing", "--out", "file/report.html"]);
    assert!(error.starts_with("error: --out: cannot write file"), "{error}");
}

/// `--out` alone makes folders. The address is one of documentation: a measurement of it would not end within a test.
#[test]
fn a_file_in_no_folder_is_told_before_anything_runs_and_no_folder_is_made() {
    let scratch = scratch();
    let commands: [&[&str]; 8] = [
        &["measure", "192.0.2.1", "--json", "no/such/x.json"],
        &["measure", "192.0.2.1", "--flent", "no/such/x.flent.gz"],
        &["measure", "192.0.2.1", "--page", "no/such/x.html"],
        &["measure", "192.0.2.1", "--detect", "--scenario", "no/such/x.toml"],
        &["measure", "192.0.2.1", "--detect-idle", "--json", "no/such/x.json"],
        &["history", "--store", "x.sqlite", "--page", "no/such/x.html"],
        &["analyse", "long.toml", "--page", "no/such/x.html"],
        &["analyse", "long.toml", "--segments", "no/such/x.parquet"],
    ];
    for words in commands {
        let (option, file) = (words[words.len() - 2], words[words.len() - 1]);
        let error = refused(&scratch.path, words);
        let told = format!("error: {option}: cannot write {file}: no such folder\n");
        assert!(error.starts_with(&told), "{words:?}: {error}");
        assert!(error.contains("hint: the folder no/such does not exist"), "{words:?}: {error}");
        assert!(!scratch.path.join("no").exists(), "{words:?}");
    }
    let error = refused(&scratch.path, &["measure", "192.0.2.1", "--json", "file/x.json"]);
    assert!(error.starts_with("error: --json: cannot write file/x.json: file is a file, and no folder"), "{error}");
}

#[test]
fn a_folder_in_the_place_of_a_file_is_told_before_anything_runs() {
    let scratch = scratch();
    std::fs::create_dir_all(scratch.path.join("out/summary.json")).unwrap();
    let error = refused(&scratch.path, &["run", "long.toml", "--out", "out"]);
    assert!(error.starts_with("error: --out: cannot write out/summary.json: "), "{error}");
    std::fs::create_dir_all(scratch.path.join("two/report.html")).unwrap();
    let error = refused(&scratch.path, &["run", "long.toml", "--seeds", "2", "--out", "two"]);
    assert!(error.starts_with("error: --out: cannot write two/report.html: "), "{error}");
}

/// Names of links, cases and values become names of files, which have at most 255 bytes.
#[test]
fn a_name_too_long_for_a_file_is_told_before_anything_runs() {
    let scratch = scratch();
    // 80 letters of four bytes.
    let long = "\u{20000}".repeat(80);
    let linked = format!(
        "duration = \"700 h\"\n[[link]]\nname = \"{long}\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Gbit/s\"\n\
         [[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n"
    );
    std::fs::write(scratch.path.join("link.toml"), linked).unwrap();
    let error = refused(&scratch.path, &["run", "link.toml", "--out", "out", "--capture", &long]);
    assert!(error.starts_with("error: --capture \u{20000}") && error.contains("File name too long"), "{error}");
    assert!(error.contains("hint: a name has at most 255 bytes"), "{error}");
    let case = format!("{LONG}[[case]]\nname = \"{}\"\nset = [\"seed=2\"]\n", "\u{20000}".repeat(80));
    std::fs::write(scratch.path.join("case.toml"), case).unwrap();
    let error = refused(&scratch.path, &["compare", "case.toml", "--out", "out"]);
    assert!(error.contains("File name too long") && error.contains("at most 255 bytes"), "{error}");
    let deep = "d/".repeat(2100);
    let error = refused(&scratch.path, &["run", "long.toml", "--out", &deep]);
    assert!(error.contains("File name too long") && error.contains("a path 4095"), "{error}");
    assert!(!scratch.path.join("out").exists(), "what was made for nothing goes");
}

/// A second run into a folder replaces its files, and tells of captures and runs that stay there.
#[test]
fn results_of_earlier_runs_are_told() {
    let scratch = scratch();
    let short = LONG.replace("700 h", "1 ms");
    std::fs::write(scratch.path.join("short.toml"), &short).unwrap();
    let told = |arguments: &[&str]| {
        let output = lastmile(&scratch.path, arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(told(&["run", "short.toml", "--out", "out", "--capture", "up", "--capture", "down"]), "");
    let note = |left: &str| format!("note: results of an earlier run stay in {left}\n");
    let equal = "note: policy changes no result of a flow\n";
    assert_eq!(told(&["compare", "short.toml", "--policy", "none,sad", "--out", "all"]), equal);
    assert_eq!(told(&["run", "short.toml", "--out", "out", "--capture", "up"]), note("out: down.pcapng"));
    let compared = told(&["compare", "short.toml", "--policy", "none,cake", "--out", "all"]);
    assert_eq!(compared, note("all: sad"));
    assert_eq!(told(&["run", "short.toml", "--out", "all"]), note("all: cake, none, sad"));
}
