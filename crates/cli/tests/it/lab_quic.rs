//! QUIC of `lastmile lab`: endpoints of another implementation over real packets, next to the simulated ones. The
//! tests need root, network namespaces and TUN devices, so they run only on request (`scripts/live-tests.sh`).

use serde_json::Value;

use crate::live::{folder, json, lastmile};

/// A line whose upstream has space for the ACKs of a download and for little more.
const LINE: &str = r#"
duration = "8 s"

[access]
encapsulation = "bridged-ptm"
down = { rate = "16 Mbit/s", delay = "8 ms", queue = { limit = "60 packets" } }
up = { rate = "1 Mbit/s", delay = "8 ms" }

[[traffic]]
kind = "ping"
interval = "50 ms"
"#;

/// The simulated run, and the one with real packets.
fn both(text: &str) -> Option<[Value; 2]> {
    let scratch = folder("lab.toml", text)?;
    let output = lastmile(&scratch.path, &["lab", "lab.toml", "--both", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let document = json(&output.stdout);
    Some([document["simulated"].clone(), document["live"][0].clone()])
}

fn flow<'a>(run: &'a Value, name: &str) -> &'a Value {
    let found = run["flows"].as_array().unwrap().iter().find(|flow| flow["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {run}"))
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} in {value}"))
}

/// Goodput and ACKs agree with those of the simulator's QUIC. A regulator on the way changes none of its ACKs.
#[test]
#[ignore = "needs root: real packets"]
fn a_quic_download_is_that_of_the_simulation_and_no_regulator_reads_it() {
    let download = "[[traffic]]\nkind = \"bulk\"\nname = \"download\"\ndirection = \"down\"\ntransport = \"quic\"\n";
    let policy = LINE.replace("[access]", "[access]\npolicy = \"sad-priority\"");
    for line in [LINE.to_owned(), policy] {
        let Some([simulated, live]) = both(&format!("{line}\n{download}")) else { return };
        let [of_simulated, of_live] = [&simulated, &live].map(|run| flow(run, "download"));
        let ratio = number(of_live, "goodput_bps") / number(of_simulated, "goodput_bps");
        assert!((0.93..1.05).contains(&ratio), "{of_live}, not {of_simulated}");
        assert_eq!(of_live["tcp"], "quic-cubic");
        let [acks, data] = ["acks_sent", "data_packets_received"].map(|key| number(of_live, key));
        assert!((0.4..0.7).contains(&(acks / data)), "{acks} ACKs of {data} packets");
        assert!(number(of_live, "acks_received") >= acks - 20.0, "{of_live}");
        assert_eq!(live["conservation"]["holds"], true);
    }
}

/// The sender asks for an ACK for ten packets (draft-ietf-quic-ack-frequency). A transfer of given size ends, and so
/// does one that the client sends.
#[test]
#[ignore = "needs root: real packets"]
fn a_sender_of_quic_asks_for_fewer_acks() {
    let traffic = r#"
[[traffic]]
kind = "bulk"
name = "down"
direction = "down"
bytes = "4 MB"
transport = "quic"
quic = { congestion = "newreno", ack_frequency = { every = 10 } }

[[traffic]]
kind = "bulk"
name = "up"
direction = "up"
bytes = "200 kB"
transport = "quic"
quic = { congestion = "bbr", receive_window = "1 MiB" }
"#;
    let Some([simulated, live]) = both(&format!("{LINE}\n{traffic}")) else { return };
    let [acks, data] = ["acks_sent", "data_packets_received"].map(|key| number(flow(&live, "down"), key));
    assert!(acks < 0.25 * data, "{acks} ACKs of {data} packets");
    for (name, bytes) in [("down", 4_000_000.0), ("up", 200_000.0)] {
        let [of_simulated, of_live] = [&simulated, &live].map(|run| flow(run, name));
        assert!((number(of_live, "bytes_delivered") - bytes).abs() < 0.5, "{of_live}");
        let ratio = number(of_live, "goodput_bps") / number(of_simulated, "goodput_bps");
        assert!((0.75..1.25).contains(&ratio), "{name}: {of_live}, not {of_simulated}");
    }
}
