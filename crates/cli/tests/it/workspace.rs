//! The order of the crates, the permitted dependencies of the lower ones, and words that must not
//! occur in a public repository.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The crates in their order: each may depend only on crates before it.
const LAYERS: [&str; 28] = [
    "text",
    "units",
    "linklayer",
    "packet",
    "queueing",
    "atm",
    "tcp",
    "quic",
    "theory",
    "analysis",
    "model",
    "sim",
    "kernel",
    "live",
    "watch",
    "scenario",
    "results",
    "library",
    "studies",
    "lab",
    "measure",
    "published",
    "playground",
    "picture",
    "terminal",
    "dashboard",
    "cli",
    "python",
];

/// Benchmarks and fuzzing: they may depend on all crates but the command.
const BESIDE: [&str; 2] = ["bench", "fuzz"];

/// Crates without access to the machine: those up to `kernel`.
const CORE: &[&str] = LAYERS.split_at(13).0;

/// Their permitted external crates: arithmetic, hashes with a given key, randomness from a seed,
/// derive macros, the layout of text. None of them opens a file, a socket or a thread, or reads a
/// clock.
const CORE_MAY_USE: [&str; 11] = [
    "comfy-table",
    "foldhash",
    "hashbrown",
    "hdrhistogram",
    "libm",
    "rand_core",
    "rand_pcg",
    "sha2",
    "siphasher",
    "statrs",
    "thiserror",
];

/// Pairs that the order allows and the architecture does not: the clocks do not depend on each
/// other.
const APART: [(&str, &str); 1] = [("live", "sim")];

#[derive(Debug)]
struct Dependency {
    name: String,
    development: bool,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace is two folders up")
}

/// Every crate of the workspace by the name of its folder, with its dependencies.
fn crates() -> BTreeMap<String, Vec<Dependency>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let text = |value: &Value| value.as_str().expect("a string").to_owned();
    let packages = metadata["packages"].as_array().expect("packages");
    packages
        .iter()
        .map(|package| {
            let folder = Path::new(&text(&package["manifest_path"])).parent().unwrap().file_name().unwrap().to_owned();
            let folder = folder.into_string().unwrap();
            assert_eq!(text(&package["name"]), format!("lastmile-{folder}"), "packages are called after their folder");
            let dependencies = package["dependencies"].as_array().expect("dependencies").iter();
            let dependencies = dependencies
                .map(|d| Dependency { name: text(&d["name"]), development: d["kind"].as_str() == Some("dev") })
                .collect();
            (folder, dependencies)
        })
        .collect()
}

fn layer(folder: &str) -> Option<usize> {
    LAYERS.iter().position(|&known| known == folder)
}

#[test]
fn each_crate_uses_only_those_under_it() {
    let crates = crates();
    let known: Vec<&str> = crates.keys().map(String::as_str).filter(|name| !BESIDE.contains(name)).collect();
    let mut listed = LAYERS.to_vec();
    listed.sort_unstable();
    assert_eq!(known, listed, "LAYERS lists every crate");

    let mut wrong = Vec::new();
    for (folder, dependencies) in &crates {
        for dependency in dependencies {
            let Some(used) = dependency.name.strip_prefix("lastmile-") else { continue };
            let used_layer = layer(used).unwrap_or_else(|| panic!("{folder} uses {used}, which is no layer"));
            let allowed = match layer(folder) {
                Some(own) => used_layer < own && !APART.contains(&(folder.as_str(), used)),
                None => used != "cli",
            };
            if !allowed {
                let kind = if dependency.development { " (in its tests)" } else { "" };
                wrong.push(format!("{folder} must not use {used}{kind}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn core_crates_use_nothing_that_touches_the_machine() {
    assert_eq!(CORE.last(), Some(&"kernel"));
    let mut wrong = Vec::new();
    for (folder, dependencies) in crates() {
        if !CORE.contains(&folder.as_str()) {
            continue;
        }
        for dependency in dependencies.iter().filter(|d| !d.development && !d.name.starts_with("lastmile-")) {
            if !CORE_MAY_USE.contains(&dependency.name.as_str()) {
                wrong.push(format!("{folder} uses {}", dependency.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The package for Python is next to the command, and starts its `main`.
#[test]
fn the_package_for_python_uses_of_the_command_its_main_alone() {
    let uses_cli = |(path, text): &(String, String)| {
        (path.starts_with("crates/python/src/") && text.contains("lastmile_cli")).then(|| path.clone())
    };
    assert_eq!(text_files().iter().filter_map(uses_cli).collect::<Vec<_>>(), ["crates/python/src/command.rs"]);
}

/// Its own dependencies select features of shared ones, and would rebuild the workspace. Those that are not optional
/// are shared.
#[test]
fn a_build_of_the_workspace_compiles_no_part_of_the_package_for_python() {
    let text = std::fs::read_to_string(root().join("crates/python/Cargo.toml")).unwrap();
    let python: toml::Table = text.parse().unwrap();
    let lock: toml::Table = std::fs::read_to_string(root().join("Cargo.lock")).unwrap().parse().unwrap();
    let others =
        lock["package"].as_array().unwrap().iter().filter(|one| one["name"].as_str() != Some("lastmile-python"));
    let shared: BTreeSet<&str> = others
        .flat_map(|package| package.get("dependencies").and_then(toml::Value::as_array).into_iter().flatten())
        .filter_map(|name| name.as_str()?.split(' ').next())
        .collect();
    for (name, dependency) in python["dependencies"].as_table().unwrap() {
        let optional = dependency.get("optional").and_then(toml::Value::as_bool) == Some(true);
        assert!(optional || shared.contains(name.as_str()), "{name}");
    }
    assert!(python["features"].get("default").is_none(), "no default feature");
}

/// The lints enforce the design only where they are enabled.
#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let manifest = |path: PathBuf| -> toml::Table {
        std::fs::read_to_string(&path).unwrap().parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let workspace = manifest(root().join("Cargo.toml"));
    let lints_of = |table: &toml::Table, tool: &str| {
        let mut lints = table["lints"][tool].as_table().unwrap().clone();
        lints.remove("unsafe_code");
        lints
    };
    for folder in crates().keys() {
        let home = if folder == "fuzz" { root() } else { root().join("crates") }.join(folder);
        let own = manifest(home.join("Cargo.toml"));
        let inherited = own["lints"].get("workspace").and_then(toml::Value::as_bool) == Some(true);
        if ["live", "playground"].contains(&folder.as_str()) && !inherited {
            // System calls and exported names need unsafe code; all other lints are those of the workspace.
            let workspace = workspace["workspace"].as_table().unwrap();
            for tool in ["rust", "clippy"] {
                let (own, all) = (lints_of(&own, tool), lints_of(workspace, tool));
                assert_eq!(own, all, "{folder} differs in more than unsafe_code");
            }
        } else {
            assert!(inherited, "Cargo.toml of {folder} lacks `[lints] workspace = true`");
        }
        let loosened = home.join("clippy.toml").exists();
        assert!(!loosened || !CORE.contains(&folder.as_str()), "{folder} has a clippy.toml of its own");
    }
}

/// Benchmarks of the machine are in crates/bench: examples of core crates read no clock either.
#[test]
fn core_crates_nowhere_switch_off_what_forbids_clocks_and_threads() {
    let in_core = |path: &str| CORE.iter().any(|folder| path.starts_with(&format!("crates/{folder}/")));
    // Tests may write files.
    let code = |path: &str| path.ends_with(".rs") && in_core(path) && !path.contains("/tests/");
    let switched_off =
        |(path, text): (String, String)| (code(&path) && text.contains("clippy::disallowed_methods")).then_some(path);
    let found: Vec<String> = text_files().into_iter().filter_map(switched_off).collect();
    assert!(found.is_empty(), "{found:?}");
}

/// Text files of the repository, by path from its root.
pub(crate) fn text_files() -> Vec<(String, String)> {
    fn visit(folder: &Path, files: &mut Vec<PathBuf>) {
        let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let built = ["target", "out", "corpus", "artifacts", ".git", ".venv", "node_modules"];
            let built = built.contains(&name.as_str());
            if path.is_dir() && !built {
                visit(&path, files);
            } else if path.is_file() && !built {
                files.push(path);
            }
        }
    }
    let root = root();
    let mut paths = Vec::new();
    visit(&root, &mut paths);
    paths
        .into_iter()
        .filter_map(|path| {
            let text = String::from_utf8(std::fs::read(&path).ok()?).ok()?;
            Some((path.strip_prefix(&root).unwrap().to_string_lossy().into_owned(), text))
        })
        .collect()
}

/// `make dist-deb` packs the program of these sources, and parts of `make dist` that share folders do not run at once.
#[test]
fn packages_of_the_static_program_are_made_after_it() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    for line in ["dist-deb: dist-static ", "dist-container: dist-static ", ".NOTPARALLEL:\n"] {
        assert!(makefile.contains(&format!("\n{line}")), "the Makefile has no {line}");
    }
}

/// Reports and the dashboard are copies of uPlot, whose licence wants its text in each of them.
#[test]
fn scripts_of_pages_begin_with_the_licences_of_what_they_contain() {
    for path in ["crates/results/assets/report.js", "crates/dashboard/page/dashboard.js"] {
        let script = std::fs::read_to_string(root().join(path)).unwrap();
        let notice = script.strip_prefix("/*! uplot:\n").and_then(|rest| rest.split("*/").next()).unwrap_or_default();
        let wanted = ["Copyright (c)", "Leon Sorokin", "Permission is hereby granted", "WITHOUT WARRANTY"];
        assert!(wanted.iter().all(|words| notice.contains(words)), "{path} begins with {notice:?}");
    }
}

/// Paths and names of one machine are of no use to others.
#[test]
fn no_file_names_a_path_of_one_machine() {
    // Written in two halves, so that this file does not match.
    let forbidden: Vec<String> = [
        ("/ro", "ot/"),
        ("/wo", "rk/"),
        ("/ho", "me/"),
        ("/Us", "ers/"),
        ("/tmp/", "target"),
        ("/tmp/", "help"),
        ("C:", "\\Users"),
        ("index.", "crates.io"),
        ("static.", "crates.io"),
    ]
    .iter()
    .map(|(a, b)| format!("{a}{b}"))
    .collect();
    let mut found = Vec::new();
    for (path, text) in text_files() {
        for (number, line) in text.lines().enumerate() {
            if let Some(word) = forbidden.iter().find(|word| line.contains(word.as_str())) {
                found.push(format!("{path}:{}: {word}", number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Scripts begin with a line that names their interpreter, and are executable.
#[cfg(unix)]
#[test]
fn scripts_can_be_run() {
    use std::os::unix::fs::PermissionsExt;
    let scripts = text_files().into_iter().filter(|(path, text)| path.ends_with(".sh") || text.starts_with("#!/"));
    let mut seen = 0;
    for (path, text) in scripts {
        // Package managers run their scripts by the shell that they name.
        let packaged =
            ["packaging/openwrt/lastmile/files/", "scripts/dist/debian/"].iter().any(|dir| path.starts_with(dir));
        let runs = text.starts_with("#!/usr/bin/env ") || packaged && text.starts_with("#!/bin/sh");
        assert!(runs, "{path} does not say what runs it");
        let mode = std::fs::metadata(root().join(&path)).unwrap().permissions().mode();
        assert!(mode & 0o100 != 0, "{path} cannot be run");
        seen += 1;
    }
    assert!(seen > 3, "the scripts were looked for in the right place");
}

/// Results of a trial are not part of the repository.
#[test]
fn a_file_of_the_repository_has_at_most_400_kb() {
    let git = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    let Some(output) = git.ok().filter(|output| output.status.success()) else { return };
    let names = String::from_utf8(output.stdout).unwrap();
    let size = |name: &str| std::fs::metadata(root().join(name)).map_or(0, |metadata| metadata.len());
    let large: Vec<&str> = names.split_terminator('\0').filter(|name| size(name) > 400_000).collect();
    assert!(names.contains("Cargo.toml"), "the files were looked for in the right place");
    assert!(large.is_empty(), "{large:?}");
}
