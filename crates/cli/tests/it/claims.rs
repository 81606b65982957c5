//! Measurements of the claims in the scenario files.

use serde_json::Value;

use crate::json::json;
use crate::transcript::Scratch;

const DSLAM: &str = "scenarios/first-steps/11-shared-dslam.toml";

fn downs(run: &Value) -> Vec<f64> {
    let lines = run["lines"].as_array().unwrap();
    lines.iter().map(|line| line["down_goodput_bps"].as_f64().unwrap()).collect()
}

fn jain(run: &Value, direction: &str) -> f64 {
    let rows = run["line_fairness"].as_array().unwrap();
    rows.iter().find(|row| row["direction"] == direction).unwrap()["jain_index"].as_f64().unwrap()
}

/// "The uploads hold back the downloads of their own lines, and the others take what they leave."
#[test]
fn uploads_hold_back_the_downloads_of_their_own_lines() {
    let scratch = Scratch::new();
    let run = json(&scratch, &format!("lastmile run {DSLAM} --json"));
    let downs = downs(&run);
    let (own, others) = downs.split_at(2);
    let most = own.iter().copied().fold(0.0, f64::max);
    let least = others.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(most < least / 4.0, "{downs:?}");
    // The uplink stays busy, and the other lines share nearly all of the rest of its 1.33 Mbit/s. A
    // FIFO with tail drops does not divide it evenly within two minutes.
    let links = run["links"].as_array().unwrap();
    let uplink = links.iter().find(|link| link["name"] == "gateway-dslam").unwrap();
    assert!(uplink["utilisation"].as_f64().unwrap() > 0.99, "{uplink:.300}");
    let even = uplink["payload_capacity_bps"].as_f64().unwrap() / 8.0;
    assert!(others.iter().sum::<f64>() > 7.5 * even && least > even / 2.0, "{downs:?} beside {even}");
    // Six even shares and two tenths of one: (6 + 0.2)^2 / (8 (6 + 0.02)) = 0.80.
    assert!((0.7..0.85).contains(&jain(&run, "down")), "{}", jain(&run, "down"));
    // Two of eight lines upload, at equal rates: 2 / 8.
    assert!((jain(&run, "up") - 0.25).abs() < 0.01, "{}", jain(&run, "up"));
}

/// "With up rates as high as down the lines share evenly." One seed in three is below 0.95.
#[test]
fn with_up_rates_as_high_as_down_the_lines_share_evenly() {
    let scratch = Scratch::new();
    let of_seed = |seed| {
        let even = "--set access.up.rate=\"1544 kbit/s\" --duration 600s";
        jain(&json(&scratch, &format!("lastmile run {DSLAM} {even} --seed {seed} --json")), "down")
    };
    let seeds: Vec<f64> = (1..=12).map(of_seed).collect();
    assert!(seeds.iter().sum::<f64>() / 12.0 > 0.95, "{seeds:?}");
}

/// The bound of a swarm is the rate of its line, that of a capture its own rate; web users have
/// none.
#[test]
fn sources_that_open_connections_or_replay_have_the_bound_that_they_can_have() {
    let scratch = Scratch::new();
    let flows = |file: &str| {
        let run = json(&scratch, &format!("lastmile run scenarios/first-steps/{file}.toml --json"));
        run["flows"].as_array().unwrap().clone()
    };
    for flow in flows("9-swarm").iter().filter(|flow| flow["kind"] == "swarm") {
        let (bound, goodput) = (flow["bound_bps"].as_f64().unwrap(), flow["goodput_bps"].as_f64().unwrap());
        assert!(goodput < bound && goodput > 0.3 * bound, "{flow:.400}");
        let by = format!("rate of link {}, all its connections together", flow["direction"].as_str().unwrap());
        assert_eq!(flow["bound_by"], *by);
    }
    for flow in flows("10-replay") {
        // Nothing is lost, so all offered packets are delivered.
        let (bound, goodput) = (flow["bound_bps"].as_f64().unwrap(), flow["goodput_bps"].as_f64().unwrap());
        assert!((goodput - bound).abs() < 1e-6 * bound, "{flow:.400}");
        assert!(flow["explanation"].as_str().unwrap().ends_with("packets sent, all arrived"), "{flow:.400}");
    }
    assert!(flows("8-web-users").iter().filter(|flow| flow["kind"] == "web").all(|flow| flow["bound_bps"].is_null()));
}

/// A source beyond the rate of its link is limited by the link, and has not "gone out": the report shows what arrived.
#[test]
fn a_source_beyond_the_rate_of_its_link_is_told_by_what_arrived() {
    let scratch = Scratch::new();
    std::fs::write(
        scratch.path.join("policed.toml"),
        r#"name = "Policed"
duration = "10 s"

[access]
encapsulation = "ip"
down = { rate = "2 Mbit/s", delay = "5 ms" }
up = { rate = "512 kbit/s", delay = "5 ms", queue = { kind = "fifo", limit = "2 packets" } }

[[traffic]]
kind = "blast"
direction = "up"
rate = "1 Mbit/s"
size = "1000 bytes"
"#,
    )
    .unwrap();
    let run = json(&scratch, "lastmile run policed.toml --json");
    let flow = &run["flows"][0];
    let words = flow["explanation"].as_str().unwrap();
    let expected = "rate of link up (99.9 % busy); its source, which waits for nothing: 1\u{202f}249 packets sent, ";
    assert!(words.starts_with(expected), "{words}");
    assert!(words.ends_with(" arrived") && !words.contains("all"), "{words}");
}

/// "The longest round trip is the shortest and the longest wait upstream": for a packet of 32
/// cells, for one cell, for a fragment of four, of 828.125 us each; 0.212 ms more for a cell
/// downstream. 309 pings are spread over the transmissions, one of them near a beginning.
#[test]
fn a_ping_waits_for_a_packet_a_cell_or_a_fragment() {
    let scratch = Scratch::new();
    let file = "scenarios/link-sharing/interleaving.toml";
    let comparison = json(&scratch, &format!("lastmile compare {file} --json"));
    let runs = comparison["runs"].as_array().unwrap();
    let cases = [("whole packets", 32.0), ("between cells", 1.0), ("between fragments of 160 B", 4.0)];
    assert_eq!(runs.len(), cases.len());
    for (run, (label, cells)) in runs.iter().zip(cases) {
        assert_eq!(run["label"], label);
        let rtt = &run["summary"]["probes"][0]["rtt_s"];
        let wait = rtt["max"].as_f64().unwrap() - rtt["min"].as_f64().unwrap();
        let longest = cells * 828.125e-6 + 212e-6;
        assert!(wait <= longest + 1e-9 && wait > longest - 0.5e-3, "{label}: {wait}, not {longest}");
    }
    // Interruption between cells costs the upload nothing. With fragments its packets take 38 cells
    // instead of 32, and a call's 6 instead of 5.
    let upload = |run: usize| runs[run]["upload_bps"].as_f64().unwrap();
    assert!((upload(1) / upload(0) - 1.0).abs() < 0.01, "{} {}", upload(0), upload(1));
    assert!((0.75..0.84).contains(&(upload(2) / upload(0))), "{} {}", upload(0), upload(2));
}
