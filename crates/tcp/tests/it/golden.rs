//! Every trace under `tests/golden` is run and rewritten, and the result must equal the file.
//!
//! After an intended change of behaviour, `cargo test -p lastmile-tcp --test it -- --ignored bless`
//! rewrites the traces. Compare every line of the difference with the RFC before it is committed: a trace
//! is a claim, not a record.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::diff::diff;
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

/// A wrong expectation must be found: the reader keeps no output line of the file.
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
