//! The built-in policies: how they are read, and their effect on a download of 2 Mbit/s while an
//! upload fills 512 kbit/s.

use std::path::Path;
use std::process::Command;

use lastmile_scenario::policy::ready;

use crate::transcript::Scratch;

/// The download of the demo scenario keeps 24 % of its goodput without upload on the line's own
/// queues. A good policy keeps 95 %, one with the margin of SQM (90 % of the downstream) 85 %.
#[test]
fn policies_keep_a_download_and_the_queue_of_the_modem_does_not() {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/upload-starves-download.toml");
    let output = Command::new(env!("CARGO_BIN_EXE_lastmile"))
        .arg("compare")
        .arg(scenario)
        .args(["--policy", "none,ack-priority,sad-cbq,cake,fq-codel-sqm,full-both-ways", "--json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let comparison: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let share = |label: &str| {
        let runs = comparison["runs"].as_array().unwrap();
        let run = runs.iter().find(|run| run["label"] == label).unwrap();
        println!("{label}: {} of baseline, upload {} bit/s", run["download_share"], run["upload_bps"]);
        (run["download_share"].as_f64().unwrap(), run["upload_bps"].as_f64().unwrap())
    };
    assert!(share("none").0 < 0.5, "nothing is left to do");
    for (policy, least) in
        [("ack-priority", 0.95), ("sad-cbq", 0.95), ("full-both-ways", 0.95), ("cake", 0.85), ("fq-codel-sqm", 0.85)]
    {
        let (download, upload) = share(policy);
        assert!(download > least, "{policy}: {download}");
        // 512 kbit/s carry 441 kbit/s of payload, of which the download's ACKs take a part.
        assert!(upload > 320_000.0, "{policy}: the upload starves instead: {upload} bit/s");
    }
}

/// The household under `adsl-optimizer`, with further arguments.
fn household(arguments: &[&str]) -> serde_json::Value {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/policies/household.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    let output = command.arg("run").arg(scenario).arg("--json").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn probe<'a>(summary: &'a serde_json::Value, name: &str) -> &'a serde_json::Value {
    let probes = summary["probes"].as_array().unwrap();
    probes.iter().find(|probe| probe["name"] == name).unwrap()
}

/// Three hosts, classified by port, code point, payload and FTP's control connection: each gets the
/// service of its class.
#[test]
fn a_household_is_told_apart_by_every_kind_of_rule() {
    let summary = household(&[]);
    let goodput = |prefix: &str| -> f64 {
        let flows = summary["flows"].as_array().unwrap();
        let named = flows.iter().filter(|flow| flow["name"].as_str().unwrap().starts_with(prefix));
        named.map(|flow| flow["goodput_bps"].as_f64().unwrap()).sum()
    };
    let probe = |name: &str| probe(&summary, name);
    let ping = |name: &str, what: &str| probe(name)["rtt_s"][what].as_f64().unwrap();
    assert!(goodput("web") > 6.5e6, "the download of 8 Mbit/s on the wire has its ACKs");
    assert!(goodput("ftp-data") > 5.0 * goodput("torrent"), "the announced connection is bulk, the torrents are bad");
    assert!(ping("ping interactive", "p50") < 0.2 && ping("ping bad", "p50") > 0.5, "one target for each class");
    // SFQ in each class: a ping waits for a turn, not for the whole backlog of its class. With
    // FIFOs the longest took 1.1 s, and of the other 19 of 300 were answered.
    assert!(ping("ping interactive", "max") < 0.4, "{}", probe("ping interactive"));
    assert!(probe("ping bad")["received"].as_u64().unwrap() > 250, "{}", probe("ping bad"));
}

/// The policy shapes only the upstream. Windows of 1999 (64 KB) keep the DSLAM's queue short, so
/// that the pings show the policy's effect: the interactive one takes at most about 150 ms, and the
/// worst class loses none. Modern windows fill the 100 packets before the line, 150 ms at 8 Mbit/s,
/// and every ping waits there too.
#[test]
fn what_a_household_waits_for_beyond_its_policy_is_the_queue_of_the_dslam() {
    let with = |arguments: &[&str]| {
        let summary = household(arguments);
        let links = summary["links"].as_array().unwrap();
        let down = links.iter().find(|link| link["name"] == "down").unwrap();
        let figures = [&down["queue_delay_s"]["mean"], &probe(&summary, "ping interactive")["rtt_s"]["max"]];
        let lost = probe(&summary, "ping bad")["lost"].as_u64().unwrap();
        (figures.map(|figure| figure.as_f64().unwrap()), lost)
    };
    let ([queue, most], lost) = with(&["--set", "tcp.era=\"1999\""]);
    assert!(queue < 0.05 && most < 0.165 && lost == 0, "{queue} {most} {lost}");
    let ([queue, most], _) = with(&[]);
    assert!(queue > 0.09 && most > 0.18, "{queue} {most}");
}

/// The name and the file of a built-in policy give equal results. A policy without a line is shown
/// on an example line, and the output says so.
#[test]
fn a_ready_policy_is_read_by_its_name_and_by_its_file() {
    let scratch = Scratch::new();
    let told = |command: &str| {
        let output = scratch.run(&format!("lastmile policy {command}"));
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{command}");
        output.stdout
    };
    for name in ready::NAMES {
        let text = ready::text(name).unwrap();
        for command in ["check", "show", "show --file"] {
            let by_name = told(&format!("{command} {name}"));
            assert_eq!(by_name, told(&format!("{command} policies/{name}.toml")), "{command} {name}");
            let is_example = command != "show --file" && !text.contains("[line]");
            assert_eq!(by_name.contains("This line is an example"), is_example, "{by_name}");
        }
        assert_eq!(told(&format!("show --file policies/{name}.toml")), text);
        let line = "--up '256 kbit/s' --down '1 Mbit/s' --link pppoa-vcmux";
        let on_a_line = told(&format!("check policies/{name}.toml {line}"));
        assert!(on_a_line.contains("line: 256 kbit/s up, 1 Mbit/s down\non the wire: "), "{on_a_line}");
    }
}

/// An encapsulation is never guessed, by `show` and `check` as little as by `tc` and `shape`.
#[test]
fn a_line_of_the_command_has_an_encapsulation() {
    let scratch = Scratch::new();
    for command in ["policy show", "policy check", "tc"] {
        let told = scratch.run(&format!("lastmile {command} adsl-optimizer --up '10 Mbit/s' --down '50 Mbit/s'"));
        assert_eq!((told.code, told.stdout.as_str()), (2, ""), "{command}");
        let expected = "error: a line without its encapsulation\nhint: --link names it; lastmile overhead lists those \
                        there are\n";
        assert_eq!(told.stderr, expected, "{command}");
    }
}

/// What a scheduler knows nothing of is a dash in the table of its classes. The classes of CBQ borrow up to the line.
#[test]
fn a_class_is_shown_as_its_scheduler_has_it() {
    let scratch = Scratch::new();
    let shown = |kind: &str| {
        let line = "encapsulation = \"ip\"\nup = \"1 Mbit/s\"\ndown = \"8 Mbit/s\"";
        let class = "name = \"default\"\nrate = \"30 %\"\nceil = \"40 %\"\ncburst = \"5000 wire bytes\"";
        let rate = if kind == "priority" { class.replace("rate = \"30 %\"\n", "") } else { class.to_owned() };
        let text = format!("[line]\n{line}\n[scheduler]\nkind = \"{kind}\"\n[[class]]\n{rate}\n");
        std::fs::write(scratch.path.join("p.toml"), text).unwrap();
        let told = scratch.run("lastmile policy show p.toml");
        assert_eq!(told.code, 0, "{}", told.stderr);
        let row = told.stdout.lines().find(|line| line.starts_with(" default ")).unwrap();
        row.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown("htb"), "default 4 300 kbit/s 400 kbit/s 1500 wire bytes 5000 wire bytes 0");
    assert_eq!(shown("cbq"), "default 4 300 kbit/s 1 Mbit/s 1500 wire bytes – 0");
    assert_eq!(shown("hfsc"), "default – 300 kbit/s 400 kbit/s – – 0");
    assert_eq!(shown("custom"), "default – 300 kbit/s – – – 0");
    assert_eq!(shown("priority"), "default 4 – – – – 0");
}
