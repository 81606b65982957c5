//! The cases of a file, which a comparison runs.

use lastmile_scenario::{Override, Scenario};

use crate::{LINE, parse, said};

fn with(cases: &str) -> String {
    format!("{LINE}{cases}")
}

#[test]
fn cases_are_in_the_order_of_the_file() {
    let one = "[[case]]\nname = \"as it is\"\n";
    let two = "[[case]]\nname = \"fast\"\nset = [\"access.up.rate=1 Mbit/s\", \"seed=2\"]\n";
    let three = "[[case]]\nname = \"slow\"\nset = \"access.up.rate=64 kbit/s\"\n";
    let scenario = parse(&with(&format!("{one}{two}{three}"))).unwrap();
    let told: Vec<(&str, Vec<&str>)> =
        scenario.cases().iter().map(|case| (&*case.name, case.set.iter().map(Override::as_str).collect())).collect();
    let expected = [
        ("as it is", vec![]),
        ("fast", vec!["access.up.rate=1 Mbit/s", "seed=2"]),
        ("slow", vec!["access.up.rate=64 kbit/s"]),
    ];
    assert_eq!(told, expected);
    assert!(parse(LINE).unwrap().cases().is_empty());
}

#[test]
fn what_is_no_case() {
    for (case, headline) in [
        ("set = \"seed=2\"", "5:1: missing key \"name\" in [[case]] 0"),
        (
            "name = \"a\"\nset = \"seed\"",
            "7:7: case.a.set: \"seed\" is not of the form key=value, such as \"access.up.rate=1 Mbit/s\"",
        ),
        ("name = \"a\"\nset = [\"seed=2\", 3]", "7:18: case.a.set: a whole number, where a text is expected"),
        ("name = \"a\"\nset = 3", "7:7: case.a.set: a whole number, where a text is expected"),
        ("name = \"a\"\n[[case]]\nname = \"a\"", "8:8: two cases are called \"a\""),
        ("name = \"a/b\"", "6:8: case.a/b.name: a name with '/'; every other printing character will do"),
    ] {
        let said = said(&with(&format!("[[case]]\n{case}\n")));
        assert!(said.starts_with(&format!("error: x.toml:{headline}")), "{said}");
    }
}

/// The errors in the only case of the file, which has these lines.
fn said_of_the_case(lines: &str, overrides: &[&str]) -> String {
    let overrides: Vec<Override> = overrides.iter().map(|pair| Override::set(pair)).collect();
    let text = with(&format!("[[case]]\nname = \"a\"\n{lines}"));
    let file = Scenario::parse_with("x.toml", &text, &overrides).expect("a file that is right as it is");
    let set = [overrides, file.cases()[0].set.clone()].concat();
    Scenario::parse_with("x.toml", &text, &set).expect_err(lines).within("case \"a\"").to_string()
}

#[test]
fn what_a_case_cannot_set_is_told_where_it_stands_in_the_file() {
    for (lines, expected) in [
        // A key that is misspelt.
        (
            "set = \"access.up.rat=1 Mbit/s\"",
            "error: x.toml:7:7: case \"a\": unknown key \"rat\" in [access.up]\n  |\n7 | set = \"access.up.rat=1 \
             Mbit/s\"\n  |       ^^^^^^^^^^^^^^^^^^^^^^^^\n\
             hint: did you mean \"rate\"?",
        ),
        // A wrong unit, in a list over several lines.
        (
            "set = [\n  \"seed=2\",\n  \"access.up.rate=3 kB\",\n]",
            "error: x.toml:9:3: case \"a\": access.up.rate: \"3 kB\" is a size in bytes, where a bit rate is \
             expected, for example \"512 kbit/s\"\n  |\n9 |   \"access.up.rate=3 kB\",\n  |   ^^^^^^^^^^^^^^^^^^^^^",
        ),
        // A way that leads nowhere: an entry of a list, a key below a text.
        (
            "set = \"case.b.set=seed=3\"",
            "error: x.toml:7:7: case \"a\": no [[case]] is named \"b\"\n  |\n7 | set = \"case.b.set=seed=3\"\n  \
             |       ^^^^^^^^^^^^^^^^^^^\nhint: known: \"a\"",
        ),
        (
            "set = \"access.up.rate.peak=1 Mbit/s\"",
            "error: x.toml:7:7: case \"a\": rate is a text, not a table\n  |\n7 | set = \"access.up.rate.peak=1 \
             Mbit/s\"\n  |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
        ),
        // A value of another type.
        (
            "set = 'seed=\"one\"'",
            "error: x.toml:7:7: case \"a\": seed: \"one\" is a text, where a whole number is expected, without \
             quotes\n  |\n7 | set = 'seed=\"one\"'\n  |       ^^^^^^^^^^^^",
        ),
    ] {
        assert_eq!(said_of_the_case(lines, &[]), expected);
    }
}

/// A value of a case may make another key of the file wrong, which is right without the case.
#[test]
fn what_only_a_case_makes_wrong_names_the_case() {
    let text = LINE.replace("\"512 kbit/s\"", "\"512 kbit/s\", queue = { kind = \"fifo\", drop = \"head\" }");
    assert!(parse(&text).is_ok());
    let set = [Override::set("access.up.queue.kind=codel")];
    let told = Scenario::parse_with("x.toml", &text, &set).unwrap_err().within("case \"a\"").to_string();
    let expected = "error: x.toml:4:54: case \"a\": unknown key \"drop\" in [access.up.queue]\n";
    assert!(told.starts_with(expected), "{told}");
}

/// An argument says itself where it stands.
#[test]
fn a_case_that_an_argument_writes_is_told_as_the_argument() {
    let told = said_of_the_case("set = \"seed=2\"", &["case.a.set=seed=-1"]);
    assert_eq!(told, "error: --set case.a.set=seed=-1: seed: -1 is negative");
}
