//! The user's view of the terminal: each file under `tests/snapshots` is a transcript that is run
//! and compared as a whole.
//!
//! After an intended change, `UPDATE_SNAPSHOTS=1 cargo test -p lastmile-cli --test it terminal`
//! writes the new ones; read the difference before committing it. Do not use it to silence a
//! failing test.

use std::fmt::Write as _;
use std::path::Path;

use crate::transcript::{Scratch, blessing, difference, files, matches, steps};

#[test]
fn snapshots_are_what_the_program_prints() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    let snapshots = files(&folder, "txt");
    assert!(!snapshots.is_empty(), "no snapshots in {}", folder.display());
    let mut failures = String::new();
    for path in snapshots {
        let transcript = std::fs::read_to_string(&path).unwrap();
        let scratch = Scratch::new();
        for file in files(&folder.join("files"), "toml") {
            std::fs::copy(&file, scratch.path.join(file.file_name().unwrap())).unwrap();
        }
        let steps = steps(&transcript);
        assert!(!steps.is_empty(), "{} holds no command", path.display());
        let mut blessed = String::new();
        for step in steps {
            let actual = scratch.run(&step.command).whole();
            if blessing("UPDATE_SNAPSHOTS") {
                let kept = matches(&step.expected, &actual);
                let text = if kept { step.expected.trim_end() } else { actual.trim_end() };
                writeln!(blessed, "$ {}", step.command).unwrap();
                if !text.is_empty() {
                    writeln!(blessed, "{text}").unwrap();
                }
            } else if !matches(&step.expected, &actual) {
                let name = path.file_name().unwrap().display();
                write!(failures, "{name}: $ {}\n{}\n", step.command, difference(&step.expected, &actual)).unwrap();
            }
        }
        if blessing("UPDATE_SNAPSHOTS") && blessed != transcript {
            std::fs::write(&path, blessed).unwrap();
        }
    }
    assert!(failures.is_empty(), "{failures}");
}
