//! Repairs that were needless, or that others might take for such, by the kernel's TCP and by the simulated one. The
//! tests need root, network namespaces and TUN devices, so they run only on request (`scripts/live-tests.sh`).

use serde_json::Value;

use crate::live::{folder, json, lastmile};

/// A download over a line whose downstream has these steps.
fn file(duplicate: &str, steps: &str) -> String {
    format!(
        r#"
duration = "8 s"
start_jitter = "0 ms"

[access]
up = {{ rate = "20 Mbit/s", delay = "10 ms" }}

[access.down]
rate = "20 Mbit/s"
delay = "10 ms"
duplicate = "{duplicate}"
queue = {{ limit = "5000 packets" }}
trace = {{ steps = [{steps}] }}

[[traffic]]
kind = "bulk"
direction = "down"
tcp = {{ receive_window = "400 kB" }}
"#
    )
}

/// Retransmissions, timeouts and goodput of the simulated run, and of the one with real packets.
fn both(text: &str) -> Option<[(u64, u64, f64); 2]> {
    let scratch = folder("lab.toml", text)?;
    let output = lastmile(&scratch.path, &["lab", "lab.toml", "--both", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let document = json(&output.stdout);
    let counts = |run: &Value| {
        let flow = &run["flows"][0];
        let count = |key: &str| flow[key].as_u64().unwrap_or_else(|| panic!("{key} of {flow}"));
        (count("retransmissions"), count("timeouts"), flow["goodput_bps"].as_f64().unwrap())
    };
    Some([counts(&document["simulated"]), counts(&document["live"][0])])
}

/// On a busy machine the kernel may repeat a few segments more.
fn are_alike([simulated, kernel]: [(u64, u64, f64); 2], expected: (u64, u64)) {
    assert_eq!((simulated.0, simulated.1), expected, "{simulated:?}, kernel {kernel:?}");
    assert!((expected.0..=expected.0 + 3).contains(&kernel.0), "{simulated:?}, kernel {kernel:?}");
    assert!((simulated.2 / kernel.2 - 1.0).abs() < 0.03, "{simulated:?}, kernel {kernel:?}");
}

/// The line is silent for a second and loses nothing. A tail loss probe and a timeout repeat a segment each, and the
/// timestamps show that both were needless.
#[test]
#[ignore = "needs root: real packets"]
fn a_needless_timeout_repeats_no_more_than_the_kernel_does() {
    let steps =
        r#"{ at = "0 s", rate = "20 Mbit/s" }, { at = "4 s", outage = true }, { at = "5 s", rate = "20 Mbit/s" }"#;
    let Some(found) = both(&file("0 %", steps)) else { return };
    are_alike(found, (2, 1));
}

/// A tenth of the packets arrives twice, and five packets are lost. The reports of duplicates take no reduction back.
#[test]
#[ignore = "needs root: real packets"]
fn duplicates_of_the_network_undo_no_repair_as_in_the_kernel() {
    let steps = r#"{ at = "0 s", rate = "20 Mbit/s", loss = "0 %" }, { at = "4 s", loss = "100 %" },
                   { at = "4.003 s", loss = "0 %" }"#;
    let Some(found) = both(&file("10 %", &steps.replace('\n', " "))) else { return };
    are_alike(found, (5, 0));
}
