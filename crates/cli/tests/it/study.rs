//! `lastmile study`: kept in a folder, ended by Ctrl-C and by kill -9, and going on.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::transcript::Scratch;
use crate::workspace::root;

const LINE: &str = "duration = \"10 s\"\n[access]\ndown = { rate = \"8 Mbit/s\" }\nup = { rate = \"512 kbit/s\" }\n\
                    [[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\n[[traffic]]\nkind = \"ping\"\n";

/// A study of 48 runs.
const STUDY: &str = "scenario = \"line.toml\"\nseeds = 12\n[grid]\n\
                     access.up.rate = [\"256 kbit/s\", \"1 Mbit/s\"]\naccess.policy = [\"none\", \"cake\"]\n";

/// Kills of a study, at most.
const MOST_KILLS: u32 = 8;

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    fs::write(scratch.path.join("line.toml"), LINE).unwrap();
    fs::write(scratch.path.join("study.toml"), STUDY).unwrap();
    scratch
}

fn start(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.args(arguments).current_dir(folder).env("NO_COLOR", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn lastmile(folder: &Path, arguments: &[&str]) -> Output {
    start(folder, arguments).wait_with_output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// The files of finished runs, and their contents.
fn runs(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let shelves = fs::read_dir(folder.join("runs")).into_iter().flatten().flatten();
    let files = shelves.flat_map(|shelf| fs::read_dir(shelf.path()).into_iter().flatten().flatten());
    let files = files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|end| end == "parquet"));
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn wait_for(child: &mut Child, mut is: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is() && child.try_wait().unwrap().is_none() {
        assert!(started.elapsed() < Duration::from_secs(60), "it takes too long");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_study_that_was_interrupted_says_how_far_it_is_and_goes_on() {
    let scratch = scratch();
    let out = scratch.path.join("out");
    let arguments = ["study", "study.toml", "--out", "out", "--json"];
    let mut child = start(&scratch.path, &arguments);
    wait_for(&mut child, || runs(&out).len() >= 3);
    let status = json(&lastmile(&scratch.path, &["study", "status", "out", "--json"]));
    assert_eq!((&status["is_running"], &status["runs"]), (&Value::Bool(true), &48.into()), "{status}");
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));

    let before = runs(&out);
    assert!((3..48).contains(&before.len()), "{}", before.len());
    let stopped = lastmile(&scratch.path, &["study", "status", "out"]);
    let text = String::from_utf8(stopped.stdout).unwrap();
    assert!(text.starts_with(&format!("study: stopped, {} of 48 runs; it had ", before.len())), "{text}");
    assert_eq!(stopped.status.code(), Some(1));

    let told = json(&lastmile(&scratch.path, &arguments));
    assert_eq!((&told["runs"], &told["simulated"]), (&48.into(), &(48 - before.len()).into()));
    let after = runs(&out);
    assert!(before.iter().all(|(path, contents)| after.get(path) == Some(contents)));
    assert_eq!((after.len(), told["points"].as_array().unwrap().len()), (48, 4));
    assert_eq!(told["points"][1]["set"]["access.policy"], "cake");
    assert!(told["points"][1]["means"]["download_bps"]["mean"].as_f64().unwrap() > 1e6);
    let finished = lastmile(&scratch.path, &["study", "status", "out"]);
    let text = String::from_utf8(finished.stdout).unwrap();
    assert!(text.starts_with("study: finished, 48 of 48 runs") && finished.status.success(), "{text}");
}

#[test]
fn a_study_that_is_killed_loses_no_finished_run_and_ends_with_the_same_table() {
    let scratch = scratch();
    let out = scratch.path.join("out");
    let arguments = ["study", "study.toml", "--out", "out"];
    let mut kills = 0;
    let mut seen = BTreeMap::new();
    for round in 1_usize.. {
        let mut child = start(&scratch.path, &arguments);
        // The moment of the kill differs from round to round.
        let (wanted, pause) = (seen.len() + 1 + round % 5, Duration::from_millis(round as u64 * 7 % 20));
        // After some kills the study may end.
        wait_for(&mut child, || kills < MOST_KILLS && runs(&out).len() >= wanted);
        std::thread::sleep(pause);
        let is_running = child.try_wait().unwrap().is_none();
        if is_running {
            child.kill().unwrap();
            kills += 1;
        }
        let ended = child.wait().unwrap();
        let now = runs(&out);
        assert!(seen.iter().all(|(path, contents)| now.get(path) == Some(contents)), "a finished run was lost");
        seen = now;
        if ended.success() {
            break;
        }
    }
    assert!(kills >= 3 && seen.len() == 48, "{kills} kills, {} runs", seen.len());
    assert!(lastmile(&scratch.path, &["study", "study.toml", "--out", "whole", "--threads", "1"]).status.success());
    let whole = scratch.path.join("whole");
    for file in ["table.parquet", "report.html"] {
        assert_eq!(fs::read(out.join(file)).unwrap(), fs::read(whole.join(file)).unwrap(), "{file}");
    }
    let names = |folder: &Path| -> BTreeMap<String, Vec<u8>> {
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        runs(folder).into_iter().map(|(path, contents)| (name(&path), contents)).collect()
    };
    assert_eq!(names(&out), names(&whole));
}

/// A measure that no run has cannot decide about seeds, nor be printed: it is refused before the runs that it would
/// cost.
/// Where a network has no access line, goodput decides by default.
#[test]
fn a_measure_of_no_run_is_refused() {
    const NETWORK: &str = "duration = \"2 s\"\n[[link]]\nfrom = \"A\"\nto = \"B\"\nrate = \"1 Mbit/s\"\n\
                           loss = \"1 %\"\n\
                           [[traffic]]\nkind = \"bulk\"\nfrom = \"A\"\nto = \"B\"\n";
    let scratch = scratch();
    fs::write(scratch.path.join("network.toml"), NETWORK).unwrap();
    let study = |name: &str, text: &str| {
        fs::write(scratch.path.join(name), text).unwrap();
        let output = lastmile(&scratch.path, &["study", name, "--out", &format!("out-{name}"), "--threads", "1"]);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let runs = runs(&scratch.path.join(format!("out-{name}"))).len();
        (output.status.code(), text(&output.stdout), text(&output.stderr), runs)
    };
    let until = "[until]\nci = \"3 %\"\nat_least = 4\nat_most = 6\n";
    let (code, _, told, ran) =
        study("a.toml", &format!("scenario = \"line.toml\"\nmeasures = [\"foo\"]\n{until}measure = \"nonsense\"\n"));
    assert_eq!((code, ran), (Some(2), 0), "{told}");
    assert!(told.contains("a.toml:2:") && told.contains("measures: no run has a measure \"foo\""), "{told}");
    assert!(told.contains("a.toml:7:") && told.contains("until.measure: no run has a measure \"nonsense\""), "{told}");
    // Ten replies to a ping have no 99th percentile.
    let (code, _, told, ran) = study("b.toml", &format!("scenario = \"line.toml\"\n{until}measure = \"ping.p99_s\"\n"));
    assert_eq!((code, ran), (Some(2), 4), "{told}");
    assert!(told.contains("no run has the measure \"ping.p99_s\""), "{told}");
    let (code, printed, told, ran) = study("c.toml", &format!("scenario = \"network.toml\"\n{until}"));
    assert!(code == Some(0) && printed.contains("until the half-width of goodput_bps is"), "{told}\n{printed}");
    assert!((4..=6).contains(&ran), "{ran}");
}

/// Runs of 2 s and of 3 s measure other times, and two seeds of a lossy line are no narrow interval.
#[test]
fn a_page_and_json_have_the_sentences_below_the_table() {
    const NOTES: [&str; 2] = [
        "Some runs measure a phase of another time, or the whole run: phase_from_s and phase_to_s of each run have it.",
        "Points whose interval of download_bps is wider after their most seeds: 2 of 2.",
    ];
    let scratch = scratch();
    fs::write(scratch.path.join("lossy.toml"), LINE.replace("\"8 Mbit/s\"", "\"8 Mbit/s\", loss = \"2 %\"")).unwrap();
    let study = |name: &str, text: &str, json: bool| {
        fs::write(scratch.path.join(name), format!("scenario = \"lossy.toml\"\nmeasures = [\"download_bps\"]\n{text}"))
            .unwrap();
        let out = format!("out-{name}");
        let arguments = ["study", name, "--out", &out, "--json"];
        let output = lastmile(&scratch.path, if json { &arguments } else { &arguments[..4] });
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (output, fs::read_to_string(scratch.path.join(out).join("report.html")).unwrap())
    };
    let both = "[until]\nci = \"0.001 %\"\nat_most = 2\n[grid]\nduration = [\"2 s\", \"3 s\"]\n";
    let (output, page) = study("both.toml", both, true);
    assert_eq!(json(&output)["notes"], serde_json::json!(NOTES));
    assert!(NOTES.iter().all(|note| page.contains(&format!("<p class=\"caption\">{note}</p>"))), "{page:.2000}");
    let (output, _) = study("both.toml", both, false);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains(&format!("\n\n{}\n\n{}\n\ntable: ", NOTES[0], NOTES[1])), "{printed}");
    let (output, page) = study("none.toml", "seeds = 2\n", true);
    assert_eq!(json(&output)["notes"], serde_json::json!([]));
    assert!(!page.contains("phase of another time") && !page.contains("Points whose interval"));
}

/// A power failure may leave files without contents. The other study shares the runs, but not the table.
#[test]
fn damaged_runs_are_replaced_and_another_study_of_the_folder_is_told() {
    let scratch = scratch();
    let arguments = ["study", "study.toml", "--out", "out"];
    let told = |arguments: &[&str]| {
        let output = lastmile(&scratch.path, arguments);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(told(&arguments).0, Some(0));
    let whole = runs(&scratch.path.join("out"));
    let damaged: Vec<&PathBuf> = whole.keys().take(2).collect();
    damaged.iter().for_each(|path| fs::write(path, "").unwrap());
    let left = damaged[0].with_file_name(".half.parquet.1-0.partial");
    fs::write(&left, "PAR1").unwrap();
    let file = fs::File::options().write(true).open(&left).unwrap();
    file.set_modified(std::time::SystemTime::now() - Duration::from_secs(60)).unwrap();
    let (code, words) = told(&["study", "status", "out"]);
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("note: the damaged files of 2 runs, counted as not run: "), "{words}");
    let (code, words) = told(&arguments);
    assert_eq!(code, Some(0), "{words}");
    assert!(words.contains("note: the damaged files of 2 runs, simulated again: ") && !words.contains("the study \""));
    assert_eq!(runs(&scratch.path.join("out")), whole);
    assert!(!left.exists());
    assert_eq!(told(&["study", "status", "out"]), (Some(0), String::new()));

    fs::write(scratch.path.join("other.toml"), STUDY.replace("12", "2")).unwrap();
    let output = lastmile(&scratch.path, &["study", "other.toml", "--out", "out", "--json"]);
    assert_eq!(json(&output)["simulated"], 0);
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("note: out has the table and the report of the study \"study\""), "{words}");
}

/// Equal values would be runs that count twice.
#[test]
fn equal_values_of_a_key_are_refused_at_their_place() {
    let scratch = scratch();
    let grid = "scenario = \"line.toml\"\n[grid]\naccess.policy = [\"none\", \"cake\"]\n\
                access.up.rate = [\"1 Mbit/s\",\n\"1000 kbit/s\"]\n";
    fs::write(scratch.path.join("twice.toml"), grid).unwrap();
    let output = lastmile(&scratch.path, &["study", "twice.toml", "--out", "out"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("twice.toml:5:1: access.up.rate: \"1 Mbit/s\" and \"1000 kbit/s\" are equal"), "{told}");
}

/// The studies that the repository ships, with short runs.
#[test]
fn the_shipped_studies_run() {
    let files: Vec<PathBuf> = fs::read_dir(root().join("studies")).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(!files.is_empty());
    let scratch = Scratch::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let duration = text.lines().find(|line| line.starts_with("duration")).expect("a duration");
        let short = text.replace(duration, "duration = \"5 s\"").replace("\"../", &format!("\"{}/", root().display()));
        fs::write(scratch.path.join("short.toml"), short).unwrap();
        let output = lastmile(&scratch.path, &["study", "short.toml", "--out", "out", "--json"]);
        assert!(output.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
        let text: toml::Table = text.parse().unwrap();
        let point = json(&output)["points"][0].clone();
        for measure in text["measures"].as_array().unwrap() {
            assert!(point["means"][measure.as_str().unwrap()]["mean"].is_number(), "{}: {measure:?}", file.display());
        }
    }
}

#[test]
fn the_guide_shows_the_shipped_study() {
    let guide = fs::read_to_string(root().join("docs/guides/studies.md")).unwrap();
    assert!(guide.contains(&fs::read_to_string(root().join("studies/upload-and-policy.toml")).unwrap()));
}
