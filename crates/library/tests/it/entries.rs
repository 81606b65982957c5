//! What every entry of the library holds to.

use lastmile_library::{home, homes, line, lines};
use lastmile_scenario::Scenario;

/// The pairs of a line and a home, with the text of their scenario.
fn pairs() -> impl Iterator<Item = (String, String)> {
    lines().into_iter().flat_map(|line| {
        homes().into_iter().map(move |home| (format!("{} {}", line.name, home.name), line.with(&home).text))
    })
}

#[test]
fn every_pair_is_a_scenario_without_a_warning() {
    let mut seen = 0;
    for (name, text) in pairs() {
        let scenario = Scenario::parse(&name, &text, &[]).unwrap_or_else(|report| panic!("{report}"));
        assert!(scenario.warnings().is_empty(), "{name}: {}", scenario.warnings());
        assert!(scenario.access().is_some() && !scenario.network_ref().traffic.is_empty(), "{name}");
        seen += 1;
    }
    assert!(seen >= 100, "{seen}");
}

/// Keys of a line that decide an answer. The comment above such a key has the source of its value.
const DECISIVE: [&str; 9] = ["encapsulation", "rate", "delay", "queue", "grants", "trace", "jitter", "loss", "shared"];

#[test]
fn every_value_of_a_line_has_a_comment_with_its_source() {
    let mut seen = 0;
    for line in lines() {
        let path = format!("{}/../../library/lines/{}.toml", env!("CARGO_MANIFEST_DIR"), line.name);
        let text = std::fs::read_to_string(path).unwrap();
        let mut above = "";
        for (number, row) in text.lines().enumerate() {
            let key = row.split(" = ").next().unwrap_or_default();
            if DECISIVE.contains(&key) {
                assert!(above.starts_with("# "), "{}:{}: no source above {key}", line.name, number + 1);
                seen += 1;
            }
            above = row;
        }
    }
    assert!(seen > 100, "{seen}");
}

/// With `count` a number is the first of as many hosts: the others belong to nobody else.
#[test]
fn hosts_that_a_count_adds_are_of_one_traffic() {
    for home in homes() {
        let path = format!("{}/../../library/homes/{}.toml", env!("CARGO_MANIFEST_DIR"), home.name);
        let text = std::fs::read_to_string(path).unwrap();
        let number = |table: &str, key: &str| -> Option<u64> {
            table.lines().find_map(|row| row.strip_prefix(key)?.strip_prefix(" = ")?.parse().ok())
        };
        let tables: Vec<&str> = text.split("[[traffic]]").skip(1).collect();
        for (table, key) in tables.iter().flat_map(|table| [(table, "client"), (table, "server")]) {
            let (Some(first), Some(count)) = (number(table, key), number(table, "count")) else { continue };
            for other in tables.iter().filter_map(|other| number(other, key)) {
                assert!(other <= first || other >= first + count, "{}: {key} {other} of{table}", home.name);
            }
        }
    }
}

/// The comments of the sources go with the values.
#[test]
fn a_scenario_has_the_comments_of_its_line_and_home() {
    for (name, text) in pairs() {
        let (line, home) = name.split_once(' ').unwrap();
        let file = |folder: &str, name: &str| {
            let path = format!("{}/../../library/{folder}/{name}.toml", env!("CARGO_MANIFEST_DIR"));
            std::fs::read_to_string(path).unwrap()
        };
        for file in [file("lines", line), file("homes", home)] {
            let (_, tables) = file.split_once("\n[").unwrap();
            for row in tables.lines().skip(1) {
                assert!(text.contains(row), "{name}: {row}");
            }
        }
    }
}

/// The rate in the name is that of the line: the best rate of a trace, the tier of a grant, else the rate itself.
#[test]
fn the_name_of_a_line_has_its_rates_in_mbit_per_s() {
    for line in lines() {
        let mut parts = line.name.rsplit('-');
        let (up, down) = (parts.next().unwrap(), parts.next().unwrap());
        let mbit = |rate: lastmile_units::BitRate| rate.as_bps() as f64 / 1e6;
        let (up, down): (f64, f64) = (up.parse().unwrap(), down.parse().unwrap());
        // A trace has less in the mean, and ADSL2+ of 1.2 Mbit/s is called 1.
        assert!(mbit(line.down) <= down * 1.001 && mbit(line.down) > down * 0.4, "{}: {}", line.name, line.down);
        assert!(mbit(line.up) <= up * 1.21 && mbit(line.up) > up * 0.4, "{}: {}", line.name, line.up);
    }
}

#[test]
fn a_home_that_needs_more_than_the_line_has_gets_a_note() {
    let adsl = line("adsl2plus-6-0.8").unwrap();
    let composed = adsl.with(&home("home-office").unwrap());
    // The conference: 125 packets a second of 1200 bytes, 26 cells of 53 bytes each: 1.378 Mbit/s. The call: 50 packets
    // of 200 bytes, 5 cells each: 106 kbit/s. The ping: 10 of 84 bytes, 3 cells each: 12.72 kbit/s.
    assert_eq!(
        composed.notes,
        ["conference, call, ping need 1.497 Mbit/s up, headers included, and the line has 800 kbit/s: packets are \
             lost under any policy."]
    );
    assert!(composed.text.contains(&format!("# Note: {}\n", composed.notes[0])));
    assert!(adsl.with(&home("single").unwrap()).notes.is_empty());
}

#[test]
fn subscribers_share_the_capacity_of_their_line() {
    let scenario = |line_name: &str| {
        let text = line(line_name).unwrap().with(&home("subscribers-50").unwrap()).text;
        Scenario::parse(line_name, &text, &[]).unwrap_or_else(|report| panic!("{report}")).network()
    };
    // One begins with [access], the other with [access.down].
    for (name, shared) in [("docsis-250-25", 400), ("lte-40-10", 75)] {
        let network = scenario(name);
        assert_eq!(network.lines.len(), 50, "{name}");
        let aggregation = network.links.iter().find(|link| link.hop.name == "gateway-dslam").unwrap();
        assert_eq!(aggregation.hop.line.rate, Some(lastmile_units::BitRate::from_mbit_per_s(shared)), "{name}");
    }
}
