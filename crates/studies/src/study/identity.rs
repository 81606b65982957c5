//! The identity of the engine: a digest of everything that decides the result of a run. The build script computes it.
//!
//! That is the source of this crate and of those it depends on, and the versions of the foreign packages below them.
//! The digest needs neither git nor a network, and no path of the machine is in it. So the command, the extension for
//! Python and builds of equal sources on other machines have one identity.
//!
//! A package of a registry has no workspace around it. Its identity is that of its version and its own source: the
//! crates of this workspace depend on each other in exactly one version. Versions of foreign packages are not in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// The package from which dependencies are followed.
const TOP: &str = "lastmile-studies";

/// The package by which build scripts call a compiler. It decides no result, and its dependencies follow from a feature
/// that any member of the workspace selects: the source archive of the package for Python has fewer members.
const COMPILES: &str = "cc";

/// The packages of the lock file, by name: versions and checksums as text, and the names of their dependencies.
/// Versions of one name are one entry.
type Packages = BTreeMap<String, (String, BTreeSet<String>)>;

/// The identity of the engine whose workspace is at `root`, and the files and folders that decide it.
pub(crate) fn of(root: &Path) -> (String, Vec<PathBuf>) {
    let lock = root.join("Cargo.lock");
    let packages = packages(&read(&lock));
    let (mut pending, mut known) = (vec![TOP.to_owned()], BTreeSet::new());
    while let Some(name) = pending.pop() {
        if name == COMPILES || !known.insert(name.clone()) {
            continue;
        }
        match folder(root, &name) {
            // The lock file also lists the packages of tests, and the manifest keeps them apart.
            Some(folder) => pending.extend(dependencies(&read(&folder.join("Cargo.toml")))),
            None => pending.extend(packages.get(&name).into_iter().flat_map(|(_, names)| names.iter().cloned())),
        }
    }
    let (mut digest, mut decisive) = (Sha256::new(), vec![lock]);
    for name in &known {
        digest.update(name);
        let Some(folder) = folder(root, name) else {
            digest.update(packages.get(name).map_or("", |(versions, _)| versions.as_str()));
            continue;
        };
        let source = folder.join("src");
        add(&mut digest, &source);
        decisive.extend([source, folder.join("Cargo.toml")]);
    }
    (text_of(digest), decisive)
}

/// The identity of the engine where the package at `package` is compiled, and the files and folders that decide it.
pub(crate) fn at(package: &Path, version: &str) -> (String, Vec<PathBuf>) {
    let root = package.join("../..");
    if root.join("Cargo.lock").is_file() && folder(&root, TOP).is_some_and(|own| own.join("Cargo.toml").is_file()) {
        return of(&root);
    }
    let source = package.join("src");
    let mut digest = Sha256::new_with_prefix(format!("{TOP}\0{version}"));
    add(&mut digest, &source);
    (text_of(digest), vec![source])
}

/// Adds the paths and texts of a folder.
fn add(digest: &mut Sha256, source: &Path) {
    for file in files(source) {
        let path = file.strip_prefix(source).expect("a file of the folder");
        let (path, text) = (path.to_string_lossy().replace('\\', "/"), read(&file));
        digest.update(format!("\0{path}\0{}\0", text.len()));
        digest.update(text);
    }
}

fn text_of(digest: Sha256) -> String {
    digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The folder of a crate of this workspace.
fn folder(root: &Path, package: &str) -> Option<PathBuf> {
    package.strip_prefix("lastmile-").map(|name| root.join("crates").join(name))
}

/// Every Rust file of a folder but its tests, in the order of their paths.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry of the folder").path()).collect();
    paths.sort();
    let of = |path: PathBuf| -> Vec<PathBuf> {
        match (path.is_dir(), path.file_stem().and_then(|stem| stem.to_str())) {
            (_, Some("tests")) => Vec::new(),
            (true, _) => files(&path),
            (false, _) if path.extension().is_some_and(|extension| extension == "rs") => vec![path],
            (false, _) => Vec::new(),
        }
    };
    paths.into_iter().flat_map(of).collect()
}

/// The names under `[dependencies]` of a manifest.
fn dependencies(manifest: &str) -> Vec<String> {
    let section = manifest.lines().skip_while(|line| line.trim() != "[dependencies]").skip(1);
    let lines = section.take_while(|line| !line.starts_with('['));
    let name = |line: &str| line.split(['.', '=', ' ']).next().unwrap_or_default().to_owned();
    lines.filter(|line| !line.starts_with('#')).map(name).filter(|name| !name.is_empty()).collect()
}

fn packages(lock: &str) -> Packages {
    let mut packages = Packages::new();
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
            line.unwrap_or_default().trim_matches('"').to_owned()
        };
        // "name", or "name version" where there are several.
        let list = package.split("dependencies = [").nth(1).unwrap_or_default();
        let names = list.lines().map(|line| line.trim().trim_matches([',', '"']));
        let names = names.filter_map(|name| name.split(' ').next()).filter(|name| !name.is_empty() && *name != "]");
        let entry = packages.entry(value("name")).or_default();
        entry.0 += &format!("\0{}\0{}", value("version"), value("checksum"));
        entry.1.extend(names.map(str::to_owned));
    }
    packages
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy of what decides the identity of this workspace.
    fn copy(to: &Path) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let (identity, decisive) = of(&root);
        assert_eq!(identity, env!("LASTMILE_ENGINE"), "the sources are those of the build");
        for path in decisive {
            let all = if path.is_dir() { files(&path) } else { vec![path] };
            for file in all {
                let target = to.join(file.strip_prefix(&root).unwrap());
                fs::create_dir_all(target.parent().unwrap()).unwrap();
                fs::copy(file, target).unwrap();
            }
        }
    }

    #[test]
    fn the_identity_is_that_of_the_sources_wherever_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        copy(root);
        let identity = || of(root).0;
        assert_eq!(identity(), env!("LASTMILE_ENGINE"));
        assert!(identity().len() == 32 && folder_of(root, "sim").is_dir() && !folder_of(root, "cli").exists());

        let file = folder_of(root, "sim").join("tests.rs");
        fs::write(&file, "// A test decides no result.\n").unwrap();
        assert_eq!(identity(), env!("LASTMILE_ENGINE"));

        let lock = read(&root.join("Cargo.lock"));
        let other = lock.replace("name = \"rand_pcg\"\nversion = \"", "name = \"rand_pcg\"\nversion = \"9");
        assert_ne!(other, lock);
        fs::write(root.join("Cargo.lock"), other).unwrap();
        assert_ne!(identity(), env!("LASTMILE_ENGINE"), "another version of a package");
        let other = lock.replace("name = \"ratatui\"\nversion = \"", "name = \"ratatui\"\nversion = \"9");
        assert_ne!(other, lock);
        fs::write(root.join("Cargo.lock"), other).unwrap();
        assert_eq!(identity(), env!("LASTMILE_ENGINE"), "a package that no run needs");

        let file = folder_of(root, "queueing").join("lib.rs");
        fs::write(&file, read(&file) + "// changed\n").unwrap();
        assert_ne!(identity(), env!("LASTMILE_ENGINE"), "another source");
    }

    /// cargo takes out of a lock file what absent members need.
    #[test]
    fn the_source_archive_for_python_has_the_identity_of_its_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let (root, workspace) = (folder.path(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
        copy(root);
        let manifest = read(&workspace.join("Cargo.toml"));
        let members = manifest.replace(r#"["crates/*", "fuzz"]"#, r#"["crates/*"]"#);
        assert_ne!(members, manifest);
        fs::write(root.join("Cargo.toml"), members).unwrap();
        for entry in fs::read_dir(workspace.join("crates")).unwrap().map(Result::unwrap) {
            let (manifest, name) = (entry.path().join("Cargo.toml"), entry.file_name());
            if !manifest.is_file() || ["bench", "playground"].contains(&name.to_str().unwrap()) {
                continue;
            }
            let home = root.join("crates").join(name);
            // The sources of other crates count for nothing.
            if !home.exists() {
                fs::create_dir_all(home.join("src/bin")).unwrap();
                fs::write(home.join("src/lib.rs"), "").unwrap();
                fs::write(home.join("src/bin/lastmile.rs"), "").unwrap();
            }
            fs::copy(manifest, home.join("Cargo.toml")).unwrap();
        }
        let mut cargo = std::process::Command::new(env!("CARGO"));
        let output = cargo.args(["metadata", "--format-version", "1", "--offline"]).current_dir(root).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(read(&root.join("Cargo.lock")).len() < read(&workspace.join("Cargo.lock")).len());
        assert_eq!(of(root).0, env!("LASTMILE_ENGINE"));
    }

    #[test]
    fn a_package_without_its_workspace_has_the_identity_of_its_version_and_source() {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(at(package, "0.1.0").0, env!("LASTMILE_ENGINE"), "the workspace is there");
        let folder = tempfile::tempdir().unwrap();
        let alone = folder.path().join("vendor/lastmile-studies");
        fs::create_dir_all(alone.join("src")).unwrap();
        fs::write(alone.join("src/lib.rs"), "// A crate.\n").unwrap();
        // That of the program that uses the package.
        fs::write(folder.path().join("Cargo.lock"), "").unwrap();
        let first = at(&alone, "0.1.0");
        assert_eq!((first.0.len(), first.1), (32, vec![alone.join("src")]));
        assert_ne!(at(&alone, "0.1.1").0, first.0);
        fs::write(alone.join("src/lib.rs"), "// Another.\n").unwrap();
        assert_ne!(at(&alone, "0.1.0").0, first.0);
    }

    fn folder_of(root: &Path, name: &str) -> PathBuf {
        root.join("crates").join(name).join("src")
    }
}
