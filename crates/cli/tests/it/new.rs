//! `lastmile new`: what it writes is taken by the other commands, and no file is overwritten.

use serde_json::Value;

use crate::json::json;
use crate::transcript::Scratch;

const SHORT: &str = "--duration '1 s' --set traffic.backup.start=0s";

#[test]
fn a_new_scenario_is_taken_by_run_and_compare() {
    let scratch = Scratch::new();
    let made = scratch.run("lastmile new --line vdsl2-50-10 --home family --out made.toml");
    assert_eq!((made.code, made.stdout.as_str(), made.stderr.as_str()), (0, "", "written: made.toml\n"));
    let printed = scratch.run("lastmile new --line vdsl2-50-10 --home family");
    assert_eq!(printed.stdout, std::fs::read_to_string(scratch.path.join("made.toml")).unwrap());
    let run = json(&scratch, &format!("lastmile run made.toml {SHORT} --json"));
    assert_eq!(run["scenario"], "family on vdsl2-50-10");
    let compared = json(&scratch, &format!("lastmile compare made.toml --policy none,cake {SHORT} --json"));
    assert_eq!(compared["runs"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_file_is_replaced_only_by_force() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path.join("mine.toml"), "mine").unwrap();
    let read = || std::fs::read_to_string(scratch.path.join("mine.toml")).unwrap();
    let new = "lastmile new --line lte-40-10 --home single --out mine.toml";
    let refused = scratch.run(new);
    assert_eq!(
        (refused.code, refused.stderr.as_str()),
        (2, "error: --out: mine.toml exists\nhint: --force replaces it\n")
    );
    assert_eq!(read(), "mine");
    std::fs::create_dir(scratch.path.join("folder")).unwrap();
    for force in ["", " --force"] {
        let folder = scratch.run(&format!("{new} --out folder{force}").replacen(" --out mine.toml", "", 1));
        assert_eq!(folder.code, 2);
        assert!(folder.stderr.starts_with("error: --out: cannot write folder: "), "{}", folder.stderr);
        let hint = "hint: a folder has the name of this file: remove it, or write elsewhere\n";
        assert!(folder.stderr.ends_with(hint), "{}", folder.stderr);
    }
    assert_eq!(scratch.run(&format!("{new} --force")).code, 0);
    assert!(read().contains("single on lte-40-10"));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("nowhere.toml", scratch.path.join("link.toml")).unwrap();
        let link = scratch.run("lastmile new --line lte-40-10 --home single --out link.toml");
        assert_eq!(
            (link.code, link.stderr.as_str()),
            (2, "error: --out: link.toml exists\nhint: --force replaces it\n")
        );
        assert!(!scratch.path.join("nowhere.toml").exists());
    }
}

/// The note goes to standard error, so that a pipe gets the scenario alone.
#[test]
fn a_home_that_the_line_cannot_carry_is_noted_beside_the_scenario() {
    let scratch = Scratch::new();
    let made = scratch.run("lastmile new --line adsl2plus-6-0.8 --home home-office");
    assert_eq!(made.code, 0);
    assert!(made.stderr.starts_with("note: conference, call, ping need 1.497 Mbit/s up"), "{}", made.stderr);
    assert!(made.stdout.contains("\n# Note: conference, call, ping need"), "{}", made.stdout);
    assert_eq!(scratch.run("lastmile new --line vdsl2-50-10 --home home-office").stderr, "");
}

#[test]
fn the_list_has_every_line_and_home_for_programs_too() {
    let scratch = Scratch::new();
    let listed = json(&scratch, "lastmile new --list --json");
    let names = |key: &str| -> Vec<String> {
        listed[key].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    let own = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(names("lines"), own(lastmile_library::lines().iter().map(|line| line.name).collect()));
    assert_eq!(names("homes"), own(lastmile_library::homes().iter().map(|home| home.name).collect()));
    let docsis = listed["lines"].as_array().unwrap().iter().find(|line| line["name"] == "docsis-1000-50").unwrap();
    assert_eq!((&docsis["down_bps"], &docsis["up_bps"]), (&Value::from(1_000_000_000), &Value::from(50_000_000)));
    let text = scratch.run("lastmile new --list").stdout;
    assert!(names("lines").iter().chain(&names("homes")).all(|name| text.contains(name.as_str())), "{text}");
}

#[test]
fn a_shell_completes_the_names() {
    let scratch = Scratch::new();
    let script = scratch.run("lastmile completions bash").stdout;
    assert!(script.contains("docsis-1000-50") && script.contains("home-office"));
}
