//! What a file says is to be compared.

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
        scenario.cases().iter().map(|case| (&*case.name, case.set.iter().map(String::as_str).collect())).collect();
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
        ("name = \"a\"\nset = \"seed\"", "7:7: case.a.set: \"seed\" is not of the form key=value"),
        ("name = \"a\"\n[[case]]\nname = \"a\"", "8:8: two cases are called \"a\""),
        ("name = \"a/b\"", "6:8: case.a/b.name: a name with '/'; every other printing character will do"),
    ] {
        let said = said(&with(&format!("[[case]]\n{case}\n")));
        assert!(said.starts_with(&format!("error: x.toml:{headline}")), "{said}");
    }
}
