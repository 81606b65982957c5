//! Every file that the repository ships.

use std::fs;
use std::path::{Path, PathBuf};

use lastmile_scenario::Scenario;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn toml_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("it can be listed").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            toml_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            found.push(path);
        }
    }
}

#[test]
fn every_scenario_of_the_repository_is_read_without_a_warning() {
    let mut files = Vec::new();
    toml_files(&root().join("scenarios"), &mut files);
    assert!(files.len() >= 8, "{files:?}");
    for file in files {
        match Scenario::load(&file, &[]) {
            Ok(scenario) => {
                assert!(scenario.warnings().is_empty(), "{}", scenario.warnings());
                assert!(!scenario.network().traffic.is_empty(), "{}", file.display());
            }
            Err(report) => panic!("{report}"),
        }
    }
}

#[test]
fn the_reference_is_printed_from_the_code() {
    let committed = fs::read_to_string(root().join("docs/reference/scenario.md")).unwrap();
    let printed = lastmile_scenario::reference::render();
    let difference = committed.lines().zip(printed.lines()).position(|(a, b)| a != b);
    assert!(
        committed == printed,
        "differs from line {:?}; print it anew: cargo run -p lastmile-scenario --example reference > \
         docs/reference/scenario.md",
        difference.map(|line| line + 1)
    );
}

/// The example in the reference is a scenario.
#[test]
fn the_example_of_the_reference_is_valid() {
    let reference = lastmile_scenario::reference::render();
    let example = reference.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(Scenario::parse("example", example, &[]).unwrap().name(), "An upload starves the download");
}
