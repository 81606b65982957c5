//! Every trace under `tests/golden` is run, written down again, and must come out as it stands in the file.
//!
//! After a change that is meant to change behaviour, `cargo test -p lastmile-tcp --test it -- --ignored bless` writes
//! the traces anew. Read every line of the difference against the RFC before it is committed: a trace is a claim, not a
//! record.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::trace;

fn traces() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of golden traces")
        .map(|entry| entry.expect("a directory entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "trace"))
        .collect();
    files.sort();
    files
}

fn name(path: &Path) -> String {
    path.file_name().expect("a file").to_string_lossy().into_owned()
}

#[test]
fn every_trace_comes_out_as_written() {
    let files = traces();
    assert!(files.len() >= 15, "only {} golden traces found", files.len());
    let mut report = String::new();
    for path in files {
        let written = std::fs::read_to_string(&path).expect("a readable trace");
        match trace::replay(&written) {
            Ok(actual) if actual == written => {}
            Ok(actual) => {
                let _ = write!(report, "{}", diff(&name(&path), &written, &actual));
            }
            Err(error) => {
                let _ = writeln!(report, "{}:{error}", name(&path));
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
#[ignore = "rewrites the golden traces"]
fn bless() {
    for path in traces() {
        let written = std::fs::read_to_string(&path).expect("a readable trace");
        let actual = trace::replay(&written).unwrap_or_else(|error| panic!("{}:{error}", name(&path)));
        if actual != written {
            std::fs::write(&path, actual).expect("a writable trace");
        }
    }
}

/// A unified diff with three lines of context.
fn diff(name: &str, old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let edits = edits(&old, &new);
    let mut out = format!("--- {name} (written)\n+++ {name} (what happened)\n");
    let near = |index: usize| {
        let from = index.saturating_sub(3);
        edits[from..(index + 4).min(edits.len())].iter().any(|(sign, _)| *sign != ' ')
    };
    let mut skipped = true;
    let (mut old_line, mut new_line) = (1, 1);
    for (index, (sign, line)) in edits.iter().enumerate() {
        if near(index) {
            if skipped {
                let _ = writeln!(out, "@@ -{old_line} +{new_line} @@");
            }
            let _ = writeln!(out, "{sign}{line}");
        }
        skipped = !near(index);
        old_line += usize::from(*sign != '+');
        new_line += usize::from(*sign != '-');
    }
    out
}

/// The lines of both texts in order, each kept (' '), taken away ('-') or added ('+'): longest common subsequence.
fn edits<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(char, &'a str)> {
    let mut common = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] =
                if old[i] == new[j] { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut edits) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            edits.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            edits.push(('-', old[i]));
            i += 1;
        } else {
            edits.push(('+', new[j]));
            j += 1;
        }
    }
    edits
}

#[test]
fn a_difference_shows_the_lines_around_it() {
    let old = "a\nb\nc\nd\ne\nf\n";
    let new = "a\nb\nc\nd\nX\nf\n";
    assert_eq!(diff("t", old, new), "--- t (written)\n+++ t (what happened)\n@@ -2 +2 @@\n b\n c\n d\n-e\n+X\n f\n");
}

/// A wrong expectation must be seen: the reader keeps nothing of what the file claims was sent.
#[test]
fn a_wrong_expectation_is_found() {
    let text = "open active mss=1000\n0.000 connect\n0.000 > S 1:1(0) win 9\n";
    let actual = trace::replay(text).expect("a good trace");
    assert_ne!(actual, text);
    assert!(actual.contains("0.000 > S 0:0(0) win 65535 <mss 1000,sackOK,wscale 0>"), "{actual}");
}

#[test]
fn a_bad_line_is_named() {
    let error = trace::replay("open active\n0.000 conect\n").expect_err("a misspelt call");
    assert!(error.starts_with("2: "), "{error}");
}
