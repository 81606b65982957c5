//! The study file from the outside.

use std::path::{Path, PathBuf};

use lastmile_scenario::StudyFile;
use lastmile_scenario::study::{Seeding, Values};

fn said(text: &str) -> String {
    StudyFile::parse("folder/x.toml", text).expect_err(text).to_string()
}

#[test]
fn keys_of_the_scenario_are_dotted_or_quoted_and_values_stand_as_in_set() {
    let file = StudyFile::parse(
        "folder/x.toml",
        "scenario = \"../line.toml\"\nset = \"seed=3\"\nduration = \"5 s\"\n\
         [grid]\naccess.up.rate = [\"1 Mbit/s\", 64000]\n\
         \"access.up.queue\" = [{ kind = \"sad\" }, { kind = \"fifo\" }]\n\
         [latin]\npoints = 7\nkeys.access.delay = { from = 1, to = \"3\", scale = \"log\" }\n",
    )
    .unwrap();
    assert_eq!((file.name.as_str(), &file.scenario), ("x", &PathBuf::from("folder/../line.toml")));
    assert_eq!(
        file.common.iter().map(lastmile_scenario::Override::as_str).collect::<Vec<_>>(),
        ["seed=3", "duration=5 s"]
    );
    assert_eq!(file.seeds, Seeding::Count(1));
    let values = |number: usize| match &file.grid[number].values {
        Values::List(list) => list.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>(),
        Values::Range(..) => panic!("a list"),
    };
    assert_eq!((file.grid[0].key.as_str(), values(0)), ("access.up.rate", vec!["1 Mbit/s".into(), "64000".into()]));
    assert_eq!(values(1), ["{ kind = \"sad\" }", "{ kind = \"fifo\" }"]);
    let latin = file.latin.unwrap();
    let Values::Range(ends, None) = &latin.axes[0].values else { panic!("a range") };
    assert_eq!((latin.points, ends.from.as_str(), ends.to.as_str(), ends.is_log), (7, "1", "3", true));
}

/// `count` is a key of a range and one of traffic: a range has a number there.
#[test]
fn a_table_with_lists_is_no_range() {
    let file = StudyFile::parse(
        "x.toml",
        "scenario = \"line.toml\"\n[grid]\ntraffic.web.count = [2, 4]\n\
         traffic.game = { count = { from = 1, to = 3, count = 2 } }\n",
    )
    .unwrap();
    assert_eq!(
        file.grid.iter().map(|axis| axis.key.as_str()).collect::<Vec<_>>(),
        ["traffic.web.count", "traffic.game.count"]
    );
    assert!(matches!(&file.grid[0].values, Values::List(list) if list.len() == 2));
    assert!(matches!(&file.grid[1].values, Values::Range(ends, Some(2)) if ends.to == "3"));
}

/// A point begins with ten seeds, or with all where `at_most` is less.
#[test]
fn a_point_begins_with_ten_seeds() {
    let seeds =
        |keys: &str| match StudyFile::parse("x.toml", &format!("scenario = \"a\"\n[until]\nci = \"5 %\"\n{keys}")) {
            Ok(StudyFile { seeds: Seeding::Until { at_least, at_most, .. }, .. }) => (at_least, at_most),
            other => panic!("{other:?}"),
        };
    assert_eq!(seeds(""), (10, 64));
    assert_eq!(seeds("at_most = 8"), (8, 8));
    assert_eq!(seeds("at_least = 2"), (2, 64));
    assert_eq!(seeds("at_least = 8\nat_most = 8"), (8, 8));
}

#[test]
fn what_cannot_be_is_refused_at_its_line() {
    for (text, wanted) in [
        ("", "folder/x.toml: missing key \"scenario\""),
        ("scenario = \"a\"\nseeds = 2\n[until]\nci = \"5 %\"\n", "folder/x.toml:2:9: seeds and [until]"),
        ("scenario = \"a\"\n[until]\nat_most = 4\n", "x.toml:2:1: missing key \"ci\""),
        (
            "scenario = \"a\"\n[until]\nci = \"5 %\"\nat_least = 9\nat_most = 8\n",
            "folder/x.toml:4:12: until.at_least: 9 seeds, where at_most has 8",
        ),
        ("scenario = \"a\"\n[until]\nci = \"5 %\"\nat_least = 65\n", "x.toml:4:12: until.at_least: 65 seeds"),
        ("scenario = \"a\"\n[until]\nci = \"5 %\"\nat_least = 1\n", "x.toml:4:12: until.at_least: 1 is below"),
        (
            "scenario = \"a\"\n[grid]\na = 3\n",
            "x.toml:3:5: grid.a: a whole number, where a list or a range is expected",
        ),
        ("scenario = \"a\"\n[grid]\nx.y = [1]\n[paired]\n\"x.y\" = [2]\n", "x.toml:5:1: x.y: a second list"),
        ("scenario = \"a\"\n[grid]\na = { from = 1, two = 2, count = 3 }\n", "unknown key \"two\" in [grid.a]"),
        ("scenario = \"a\"\n[latin]\npoints = 2\nkeys.a = [1]\n", "x.toml:4:10: latin.keys.a: a list, where a range"),
        ("scenario = \"a\"\nset = [\"duration\"]\n", "x.toml:2:8: set: \"duration\" is not of the form"),
        ("scenario = \"a\"\n[grid]\nseed = [1, 2]\n", "x.toml:3:1: grid.seed: the seed is no key of a study"),
    ] {
        let said = said(text);
        assert!(said.contains(wanted), "{text}\n{said}");
    }
}

#[test]
fn the_reference_is_printed_from_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/study.md");
    let printed = lastmile_scenario::study::render_reference();
    let again = "cargo run -p lastmile-scenario --example study-reference > docs/reference/study.md";
    assert!(std::fs::read_to_string(path).is_ok_and(|text| text == printed), "print it again: {again}");
    let example = printed.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert!(StudyFile::parse("x.toml", example).is_ok());
}
