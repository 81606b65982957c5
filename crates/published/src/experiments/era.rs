//! The TCP of the publications: what follows for the scenarios that experiments build.
//!
//! Publications of 1998 to 2006 do not follow the program's defaults, which are those of a current
//! Linux: each scenario names its era and says what differs from it, and starts its flows on time.

use std::path::Path;

fn each_file(folder: &Path, ending: &str, see: &mut impl FnMut(&Path, String)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            each_file(&path, ending, see);
        } else if path.extension().is_some_and(|found| found == ending) {
            see(&path, std::fs::read_to_string(&path).unwrap());
        }
    }
}

fn folder(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[test]
fn every_published_scenario_names_its_era_and_starts_on_time() {
    let mut seen = 0;
    each_file(&folder("scenarios"), "toml", &mut |path, text| {
        seen += 1;
        // A folder is named after its publication, and ends with the year.
        let key = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let year: u32 = key[key.len() - 4..].parse().unwrap();
        let era = if year > 2006 { "today" } else { "1999" };
        assert!(text.contains(&format!("[tcp]\nera = \"{era}\"\n")), "{}", path.display());
        assert!(text.contains("\nstart_jitter = \"0 s\"\n"), "{}", path.display());
    });
    assert!(seen >= 17, "{seen}");
}

/// No experiment reads a scenario by itself.
#[test]
fn scenarios_are_read_in_one_place() {
    let mut found = Vec::new();
    each_file(&folder("src"), "rs", &mut |path, text| {
        if text.contains(concat!("Scenario::", "parse(")) {
            found.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    });
    assert_eq!(found, ["trial.rs"]);
}
