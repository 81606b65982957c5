//! Comparisons of networks without an access line: the cases of the file, or values of a key.

use crate::json::json;
use crate::transcript::Scratch;

const EDGE: &str = "scenarios/atm/abr-edge.toml --duration 10s";

/// UBR loses cells at the switch and has no edge; explicit rates move the queue to the edges, 64 kB each; held ACKs lose less there. Means lie
/// below the most, and least and most of eight connections around an eighth.
#[test]
fn one_command_tells_where_the_queue_of_an_atm_network_stands() {
    let scratch = Scratch::new();
    let comparison = json(&scratch, &format!("lastmile compare {EDGE} --json --out compared"));
    assert!(comparison["reference_bps"].is_null());
    let runs = comparison["runs"].as_array().unwrap();
    let labels: Vec<&str> = runs.iter().map(|run| run["label"].as_str().unwrap()).collect();
    let expected = ["UBR and EPD", "EFCI", "ERICA", "ERICA, ACKs held 20 ms", "ERICA, ACKs held by what waits"];
    assert_eq!(labels, expected);
    let number = |run: usize, key: &str| runs[run][key].as_f64();
    for (run, told) in runs.iter().enumerate() {
        assert_eq!(told["port"], "trunk", "{told:.300}");
        let [all, least, most] =
            ["goodput_bps", "goodput_min_bps", "goodput_max_bps"].map(|key| number(run, key).unwrap());
        assert!(least <= all / 8.0 && all / 8.0 <= most && all < 10e6, "{least} {all} {most}");
        assert!(number(run, "jain_index").unwrap() > 0.9);
        assert!(number(run, "queue_mean_cells").unwrap() < number(run, "queue_max_cells").unwrap());
        let flows = told["summary"]["flows"].as_array().unwrap();
        let sum: f64 = flows.iter().map(|flow| flow["goodput_bps"].as_f64().unwrap()).sum();
        assert!((sum - all).abs() < 1.0);
        assert_eq!(number(run, "edge_mean_bytes").is_some(), run > 0, "UBR has no edge");
        assert_eq!(number(run, "ack_hold_mean_s").is_some(), run > 2);
    }
    let cells_lost = |run: usize| {
        runs[run]["drops_cells"].as_object().unwrap().values().map(|cells| cells.as_u64().unwrap()).sum::<u64>()
    };
    assert!(cells_lost(0) > 1000 && cells_lost(2) == 0, "{} {}", cells_lost(0), cells_lost(2));
    assert!(number(2, "queue_mean_cells") < number(0, "queue_mean_cells"));
    assert!(
        number(2, "edge_max_bytes").unwrap() <= 64e3
            && number(2, "edge_dropped_packets") > number(4, "edge_dropped_packets")
    );
    let report = std::fs::read_to_string(scratch.path.join("compared/report.html")).unwrap();
    assert!(report.contains("over the whole run, the queue at port trunk") && report.contains("edge, mean"));

    // The same of what has been written.
    let folders = ["UBR-and-EPD", "ERICA"].map(|name| format!("compared/{name}")).join(" ");
    let again = json(&scratch, &format!("lastmile report {folders} --json"));
    for (told, run) in again.as_array().unwrap().iter().zip([0, 2]) {
        for key in ["goodput_bps", "jain_index", "queue_mean_cells", "drops_cells", "edge_dropped_packets"] {
            assert_eq!(told[key], runs[run][key], "{key}");
        }
    }
}

/// A column in which nothing is told is left out; the first has the key's name.
#[test]
fn values_of_a_key_are_compared_without_cases() {
    let scratch = Scratch::new();
    let file = "scenarios/atm/sun-epd.toml --duration 2s";
    let told = scratch.run(&format!("lastmile compare {file} --vary seed=1,2"));
    assert_eq!(told.code, 0, "{}", told.stderr);
    let head = told.stdout.lines().find(|line| line.starts_with("seed")).unwrap();
    assert!(head.contains("Jain") && head.contains("cells dropped") && !head.contains("edge"), "{head}");
    for (wrong, expected) in [
        ("", "error: nothing to compare: the file has neither a [[case]] nor an [access] line\n"),
        (" --remedies sad", "error: --remedies: the file has no [access] line to remedy\n"),
        (" --vary seed", "error: --vary seed: not of the form KEY=VALUE,...\n"),
    ] {
        let told = scratch.run(&format!("lastmile compare {file}{wrong}"));
        assert_eq!((told.code, told.stdout.as_str()), (2, ""));
        assert!(told.stderr.starts_with(expected), "{}", told.stderr);
    }
}
