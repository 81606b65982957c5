//! The formats on which other programs rely, and files that are equal for equal seeds.

use serde_json::Value;

use crate::transcript::Scratch;

const UPLOAD: &str = "scenarios/upload-starves-download.toml";

pub(crate) fn json(scratch: &Scratch, command: &str) -> Value {
    let output = scratch.run(command);
    assert_eq!(output.code, 0, "{command}: {}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{command}: {error}"))
}

fn has(value: &Value, keys: &str) {
    for key in keys.split_whitespace() {
        assert!(value.get(key).is_some(), "no key {key:?} in {value:.200}");
    }
}

#[test]
fn a_run_has_the_promised_keys_and_timing_beside_them() {
    let scratch = Scratch::new();
    let run = json(&scratch, &format!("lastmile run {UPLOAD} --seed 7 --json"));
    has(&run, "scenario seed version duration_s events flows links probes phases conservation timing");
    assert_eq!(run["seed"], 7);
    assert_eq!(run["duration_s"], 180.0);
    has(&run["timing"], "wall_s events_per_s memory_bytes");
    has(
        &run["flows"][0],
        "name direction kind tcp start_s end_s bytes_delivered goodput_bps response_time_s retransmissions timeouts \
         data_packets acks_sent acks_received limited_by bound_bps bound_by",
    );
    has(&run["links"][0], "name rate_bps wire_bits ip_bytes packets cells utilisation queue_delay_s drops");
    has(&run["links"][0]["queue_delay_s"], "mean p50 p99 p999 max");
    has(&run["links"][0]["drops"], "tail");
    has(&run["probes"][0], "name class sent received rtt_s");
    has(&run["probes"][0]["rtt_s"], "min mean p50 p99 p999 max");
    has(&run["phases"][0], "name from_s to_s flows probes");
    has(&run["phases"][0]["flows"][0], "name goodput_bps");
    has(&run["conservation"], "sent created delivered dropped queued in_flight");
}

/// Bytes sent are delivered, dropped for a reason, queued, or in flight.
#[test]
fn bytes_are_conserved_in_every_run_of_a_comparison() {
    let scratch = Scratch::new();
    let comparison =
        json(&scratch, &format!("lastmile compare {UPLOAD} --policy none,sad,ack-filter,sad-priority --json"));
    let runs = comparison["runs"].as_array().unwrap();
    let labels: Vec<_> = runs.iter().map(|run| run["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["none", "sad", "ack-filter", "sad-priority"]);
    for run in runs {
        let amount = |name: &str| run["summary"]["conservation"][name].as_u64().unwrap();
        let parts: u64 = ["delivered", "dropped", "queued", "in_flight"].iter().map(|name| amount(name)).sum();
        assert_eq!(amount("sent") + amount("created"), parts, "{}", run["label"]);
        assert_eq!(run["summary"]["conservation"]["holds"], true);
    }
}

/// While the upload runs, the download gets about one window per delay of its ACKs in the modem's
/// queue. With priority for ACKs it keeps its rate.
#[test]
fn the_demo_shows_what_it_is_to_show() {
    let scratch = Scratch::new();
    let comparison =
        json(&scratch, &format!("lastmile compare {UPLOAD} --vary access.up.queue.kind=fifo,priority --json"));
    let during = |run: usize| comparison["runs"][run]["summary"]["phases"][1].clone();
    let flow = |run: usize, name: &str| -> Value {
        let phase = during(run);
        phase["flows"].as_array().unwrap().iter().find(|flow| flow["name"] == name).unwrap().clone()
    };
    let goodput = |run: usize| flow(run, "download")["goodput_bps"].as_f64().unwrap();
    let links = during(0)["links"].clone();
    let up = links.as_array().unwrap().iter().find(|link| link["name"] == "up").unwrap();
    let wait = up["queue_delay_mean_s"].as_f64().unwrap();
    let expected = 65_536.0 * 8.0 / wait;
    let starved = goodput(0);
    assert!(
        (0.75..1.1).contains(&(starved / expected)),
        "{starved} bit/s against {expected} bit/s for a window in {wait} s"
    );
    let why = flow(0, "download")["explanation"].as_str().unwrap().to_owned();
    assert!(why.contains("receive window 64 KiB") && why.contains("queue of link up"), "{why}");
    assert!(goodput(1) > 3.5 * starved, "{} against {starved}", goodput(1));
}

#[test]
fn equal_seeds_give_equal_files() {
    let scratch = Scratch::new();
    for out in ["first", "second"] {
        let command = format!(
            "lastmile run {UPLOAD} --set access.up.loss='1 %' --seed 3 --out {out} --capture up,down,client-cpe"
        );
        assert_eq!(scratch.run(&command).code, 0);
    }
    let names: Vec<_> =
        std::fs::read_dir(scratch.path.join("first")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 6, "{names:?}");
    for name in names {
        let file = |out: &str| std::fs::read(scratch.path.join(out).join(&name)).unwrap();
        assert!(file("first") == file("second"), "{} differs", name.display());
    }
    let other = format!("lastmile run {UPLOAD} --set access.up.loss='1 %' --seed 4 --out third");
    assert_eq!(scratch.run(&other).code, 0);
    let summary = |out: &str| std::fs::read_to_string(scratch.path.join(out).join("summary.json")).unwrap();
    let without_inputs = |out: &str| serde_json::from_str::<Value>(&summary(out)).unwrap()["flows"].to_string();
    assert!(without_inputs("first") != without_inputs("third"), "another seed loses other packets");
}

#[test]
fn threads_change_nothing_in_the_files() {
    let scratch = Scratch::new();
    for threads in ["1", "4"] {
        let command = format!(
            "lastmile compare {UPLOAD} --policy none,sad,ack-filter,ack-priority --set access.down.loss='1 %' --seed 3 \
             --capture down --out {threads} --threads {threads}"
        );
        assert_eq!(scratch.run(&command).code, 0);
    }
    assert!(!scratch.path.join("1/download-alone").exists(), "the downloads alone are no row");
    let file = |threads: &str, name: &str| std::fs::read(scratch.path.join(threads).join(name)).unwrap();
    for policy in ["none", "sad", "ack-filter", "ack-priority"] {
        for name in ["summary.json", "series.parquet", "report.html", "down.pcapng"] {
            let name = format!("{policy}/{name}");
            assert!(file("1", &name) == file("4", &name), "{name} differs");
        }
    }
    assert!(file("1", "report.html") == file("4", "report.html"), "the comparison differs");
}

#[test]
fn a_reproduction_has_the_promised_keys() {
    let scratch = Scratch::new();
    let reproduction = json(&scratch, "lastmile reproduce phanse2000/5.1 5.4 --json");
    let tables = reproduction["tables"].as_array().unwrap();
    assert_eq!(tables.len(), 2);
    for table in tables {
        has(table, "publication id rows claims agreement assumptions sensitivity");
        has(&table["rows"][0], "params published theory simulated ci95 predicted live deviation");
        has(&table["claims"][0], "text verdict evidence");
        assert_eq!(table["claims"][0]["verdict"], "shown", "{}", table["id"]);
        has(&table["agreement"], "figures within_10_pct within_25_pct within_50_pct");
    }
    let summary = &reproduction["summary"][0];
    assert_eq!((&summary["publication"], &summary["shown"]), (&"phanse2000".into(), &2.into()));
}

#[test]
fn overhead_has_the_promised_keys() {
    let scratch = Scratch::new();
    let costs = json(&scratch, "lastmile overhead --json");
    let costs = costs.as_array().unwrap();
    for cost in costs {
        has(cost, "link size_bytes wire_bytes cells");
    }
    let ack = costs.iter().find(|cost| cost["link"] == "pppoa-vcmux" && cost["size_bytes"] == 40).unwrap();
    assert_eq!((&ack["wire_bytes"], &ack["cells"]), (&Value::from(106), &Value::from(2)));
}

/// Every scenario of the repository runs without output on standard error.
#[test]
fn every_scenario_runs() {
    fn files(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                found.push(path);
            }
        }
    }
    let root = crate::workspace::root();
    let mut found = Vec::new();
    files(&root.join("scenarios"), &mut found);
    assert!(found.len() > 5, "{found:?}");
    let scratch = Scratch::new();
    for path in found {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        let output = scratch.run(&format!("lastmile run {name} --json"));
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{name}");
        let run: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(run["conservation"]["holds"], true, "{name}");
    }
}

/// Equal downloads differ by their seeds; the mean has an interval, and a file without traffic is
/// refused.
#[test]
fn several_seeds_give_means_with_intervals() {
    let scratch = Scratch::new();
    let line = "duration = \"2 s\"\naccess = { down = { rate = \"8 Mbit/s\" }, up = { rate = \"1 Mbit/s\" } }\n";
    let four = "[[traffic]]\nname = \"a\"\nkind = \"bulk\"\ndirection = \"down\"\ncount = 4\n";
    std::fs::write(scratch.path.join("four.toml"), format!("{line}{four}")).unwrap();
    std::fs::write(scratch.path.join("none.toml"), line).unwrap();
    let told = json(&scratch, "lastmile run four.toml --seeds 3 --json");
    assert_eq!(told["runs"].as_array().unwrap().len(), 3);
    let measures = told["means"][0]["measures"].as_array().unwrap();
    let goodput = measures.iter().find(|measure| measure["name"] == "a-1: goodput").unwrap();
    assert_eq!((goodput["unit"].as_str(), goodput["runs"].as_u64()), (Some("bps"), Some(3)));
    assert!(goodput["ci95"].as_f64().unwrap() > 0.0, "{goodput}");
    let refused = scratch.run("lastmile run none.toml");
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.starts_with("error: none.toml: no [[traffic]]: nothing runs"), "{}", refused.stderr);
}

/// The upstream is dead while both transfers want to begin. The upload's SYN waits there, and so does the request of
/// the download, whose sender knows nothing of it.
#[test]
fn a_download_that_is_never_opened_waits_for_its_handshake() {
    let scratch = Scratch::new();
    for transport in ["tcp", "quic"] {
        let text = format!(
            "duration = \"10 s\"\n[access]\ndown = {{ rate = \"5 Mbit/s\" }}\n\
             up = {{ rate = \"1 Mbit/s\", trace = {{ steps = [{{ at = \"0 s\", rate = \"1 Mbit/s\" }}, \
             {{ at = \"2 s\", outage = true }}, {{ at = \"9 s\", rate = \"1 Mbit/s\" }}] }} }}\n\
             [[traffic]]\nkind = \"bulk\"\nname = \"x\"\ndirection = \"down\"\nstart = \"3 s\"\nstop = \"8 s\"\n\
             transport = \"{transport}\"\n\
             [[traffic]]\nkind = \"bulk\"\nname = \"y\"\ndirection = \"up\"\nstart = \"3 s\"\nstop = \"8 s\"\n"
        );
        std::fs::write(scratch.path.join("dead.toml"), text).unwrap();
        let told = json(&scratch, "lastmile run dead.toml --json");
        let phases = told["phases"].as_array().unwrap();
        let during = phases.iter().find(|phase| phase["from_s"] == 3.0).unwrap();
        for flow in told["flows"].as_array().unwrap().iter().chain(during["flows"].as_array().unwrap()) {
            let shares: f64 = flow["limited_by"].as_object().unwrap().values().map(|it| it.as_f64().unwrap()).sum();
            assert!((shares - 1.0).abs() < 1e-9, "{transport} {flow}");
        }
        let x = &told["flows"][0];
        assert_eq!((&x["name"], &x["limited_by"]["awaiting_ack"]), (&"x".into(), &1.0.into()));
        let words = "waiting for the handshake of the other end, which has not arrived; link up carries nothing";
        assert_eq!(x["explanation"], words, "{transport}");
    }
}

/// Packets that overtake others, none of which is lost or late, come in no bursts of loss.
#[test]
fn there_is_no_burst_without_a_loss() {
    let scratch = Scratch::new();
    let text = "duration = \"10 s\"\n[access]\ndown = { rate = \"20 Mbit/s\", delay = \"30 ms\", reorder = \"10 %\" }\n\
                up = { rate = \"1 Mbit/s\" }\n[[traffic]]\nkind = \"onoff\"\ndirection = \"down\"\n\
                rate = \"500 kbit/s\"\nsize = \"100 B\"\nstop = \"7 s\"\n";
    std::fs::write(scratch.path.join("overtaken.toml"), text).unwrap();
    let told = json(&scratch, "lastmile run overtaken.toml --json");
    let datagrams = &told["flows"][0]["datagrams"];
    assert_eq!((&datagrams["lost_packets"], &datagrams["late_packets"]), (&0.into(), &0.into()), "{datagrams}");
    assert!(datagrams["burst_ratio"].is_null(), "{datagrams}");
}
