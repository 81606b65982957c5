//! Comparisons: policies on an access line, beginning with the line's own queues; cases of the file
//! on other networks; values of keys in every combination.

use crate::json::json;
use crate::transcript::Scratch;

const EDGE: &str = "scenarios/atm/abr-edge.toml --duration 10s";

/// UBR loses cells at the switch and has no edge queue. Explicit rates move the queue to the edges,
/// 64 kB each; held ACKs reduce the losses there. Means are below the maximum, and the lowest and
/// highest goodput of eight connections around an eighth.
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

    // A report on the written results has the same rows.
    let folders = ["UBR-and-EPD", "ERICA"].map(|name| format!("compared/{name}")).join(" ");
    let again = json(&scratch, &format!("lastmile report {folders} --json"));
    for (told, run) in again.as_array().unwrap().iter().zip([0, 2]) {
        for key in ["goodput_bps", "jain_index", "queue_mean_cells", "drops_cells", "edge_dropped_packets"] {
            assert_eq!(told[key], runs[run][key], "{key}");
        }
    }
}

/// An empty column is omitted; the first column has the key's name.
#[test]
fn values_of_a_key_are_compared_without_cases() {
    let scratch = Scratch::new();
    let file = "scenarios/atm/sun-epd.toml --duration 2s";
    let told = scratch.run(&format!("lastmile compare {file} --vary seed=1,2"));
    assert_eq!(told.code, 0, "{}", told.stderr);
    let heads: String = told.stdout.lines().filter(|line| line.trim_start().starts_with("seed")).collect();
    assert!(heads.contains("Jain") && heads.contains("cells dropped") && !heads.contains("edge"), "{heads}");
    for (wrong, expected) in [
        ("", "error: nothing to compare: the file has neither a [[case]] nor an [access] line\n"),
        (" --policy sad", "error: --policy: the file has no [access] line\n"),
        (" --vary seed", "error: --vary seed: not of the form KEY=VALUE,...\n"),
    ] {
        let told = scratch.run(&format!("lastmile compare {file}{wrong}"));
        assert_eq!((told.code, told.stdout.as_str()), (2, ""));
        assert!(told.stderr.starts_with(expected), "{}", told.stderr);
    }
}

/// Each case has each value, and the settings of both: pings of 500 bytes and of twice as many.
#[test]
fn cases_are_compared_under_each_policy_and_value() {
    let scratch = Scratch::new();
    let text = "duration = \"1 s\"\nstart_jitter = \"0 s\"\n[access]\ndown = { rate = \"2 Mbit/s\" }\n\
                up = { rate = \"512 kbit/s\" }\n[[traffic]]\nname = \"ping\"\nkind = \"ping\"\nsize = \"500 B\"\n\
                interval = \"20 ms\"\n[[case]]\nname = \"as it is\"\n[[case]]\nname = \"twice\"\n\
                set = \"traffic.ping.size=1000 B\"\n";
    std::fs::write(scratch.path.join("cases.toml"), text).unwrap();
    let comparison = json(&scratch, "lastmile compare cases.toml --vary seed=1,2 --json");
    let label = |run: &serde_json::Value| run["label"].as_str().unwrap().to_owned();
    let labels: Vec<String> = comparison["runs"].as_array().unwrap().iter().map(label).collect();
    assert_eq!(labels, ["as it is, 1", "as it is, 2", "twice, 1", "twice, 2"]);
    // 50 requests and their answers, of which the last two may be on their way.
    let sent = |label: &str| row(&comparison, label)["summary"]["conservation"]["sent"].as_u64().unwrap();
    let more = sent("twice, 2") - sent("as it is, 2");
    assert!((98 * 500..=100 * 500).contains(&more), "{more}");

    let told = scratch.run("lastmile compare cases.toml --vary 'traffic.ping.size=1 kB,500 B'");
    let expected = "error: --vary traffic.ping.size and the case \"twice\" set one key, traffic.ping.size\n";
    assert!(told.code == 2 && told.stderr.starts_with(expected), "{}", told.stderr);
}

/// A modern line of 100 and 40 Mbit/s, with a modem that queues 512 kB, and one more key of
/// `[access]`.
fn line_of_today(scratch: &Scratch, name: &str, more: &str) {
    let text = format!(
        "duration = \"6 s\"\n[access]\nencapsulation = \"pppoe-ptm\"\n\
         down = {{ rate = \"100 Mbit/s\", delay = \"4 ms\" }}\n\
         up = {{ rate = \"40 Mbit/s\", delay = \"4 ms\", queue = {{ limit = \"512 kB\" }} }}\n{more}\n[tcp]\n\
         receive_window = \"4 MB\"\n\
         [[traffic]]\nname = \"download\"\nkind = \"bulk\"\ndirection = \"down\"\n[[traffic]]\nname = \"upload\"\n\
         kind = \"bulk\"\ndirection = \"up\"\n\
         [[traffic]]\nname = \"ping\"\nkind = \"ping\"\ninterval = \"100 ms\"\n"
    );
    std::fs::write(scratch.path.join(name), text).unwrap();
}

fn row<'a>(comparison: &'a serde_json::Value, label: &str) -> &'a serde_json::Value {
    let runs = comparison["runs"].as_array().unwrap();
    runs.iter().find(|run| run["label"] == label).unwrap_or_else(|| panic!("no row {label}"))
}

/// A built-in FIFO instead of the user's queue would give equal results for 512 kB and for 32.
#[test]
fn the_row_none_is_the_line_as_it_is() {
    let scratch = Scratch::new();
    line_of_today(&scratch, "line.toml", "");
    line_of_today(&scratch, "policy.toml", "policy = \"cake\"");
    let none = |arguments: &str| {
        let comparison = json(&scratch, &format!("lastmile compare {arguments} --policy none --json"));
        row(&comparison, "none").clone()
    };
    let longest = |row: &serde_json::Value| row["up_queue_delay_max_s"].as_f64().unwrap();
    let (long, short) = (none("line.toml"), none("line.toml --set access.up.queue.limit='32 kB'"));
    // 512 kB take 102 ms at 40 Mbit/s, 32 kB 6.4 ms, plus the overhead of PTM.
    assert!(longest(&long) > 0.05 && longest(&short) < 0.01, "{} {}", longest(&long), longest(&short));
    let cleared = none("policy.toml");
    for key in ["download_bps", "upload_bps", "ping", "probe"] {
        assert_eq!(cleared[key], long[key], "{key} of a file with a policy");
    }
    let links = cleared["summary"]["links"].as_array().unwrap();
    assert!(!links.iter().any(|link| link["name"].as_str().unwrap().starts_with("middlebox")));

    let run = |arguments: &str| json(&scratch, &format!("lastmile run policy.toml {arguments} --json"));
    let goodput = |summary: &serde_json::Value| summary["flows"][0]["goodput_bps"].as_f64().unwrap();
    let bare = goodput(&json(&scratch, "lastmile run line.toml --json"));
    assert_eq!(goodput(&run("--policy none")).to_bits(), bare.to_bits());
}

/// The file's own policy is a row, once. Every row has a probe in addition to the ping.
#[test]
fn a_comparison_begins_with_nothing_and_has_what_people_deploy() {
    let scratch = Scratch::new();
    line_of_today(&scratch, "line.toml", "");
    line_of_today(&scratch, "policy.toml", "policy = \"sad-cbq\"");
    line_of_today(&scratch, "cake.toml", "policy = \"cake\"");
    let labels = |file: &str| -> Vec<String> {
        let comparison = json(&scratch, &format!("lastmile compare {file} --duration 2s --json"));
        let runs = comparison["runs"].as_array().unwrap();
        for run in runs {
            for probe in ["ping", "probe"] {
                assert!(run[probe]["p50_s"].as_f64().unwrap() > 0.028, "{probe}: 4, 4 and 2 x 10 ms on the way");
                assert!(run[probe]["p99_s"].is_null(), "of 20 replies");
            }
        }
        runs.iter().map(|run| run["label"].as_str().unwrap().to_owned()).collect()
    };
    let usual = ["cake", "fq-codel-sqm", "full-both-ways"];
    assert_eq!(labels("line.toml"), [&["none"][..], &usual].concat());
    assert_eq!(labels("policy.toml"), [&["none", "sad-cbq"][..], &usual].concat());
    assert_eq!(labels("cake.toml"), [&["none"][..], &usual].concat());
    let told = scratch.run("lastmile compare line.toml --duration 2s");
    assert!(told.stdout.lines().all(|line| line.chars().count() <= 120), "{}", told.stdout);
    assert!(told.stdout.contains("ping max") && told.stdout.contains("probe max"), "{}", told.stdout);
}

/// Each row is a mean over seeds, and so are the downloads alone. A call has an R factor, a game
/// without a codec has none. A file without a bulk download has no share of one.
#[test]
fn rows_of_several_seeds_are_means_and_calls_and_games_are_told() {
    let scratch = Scratch::new();
    let line = "duration = \"4 s\"\naccess = { down = { rate = \"20 Mbit/s\" }, up = { rate = \"2 Mbit/s\" } }\n";
    let upload = "[[traffic]]\nname = \"upload\"\nkind = \"bulk\"\ndirection = \"up\"\n";
    let call = "[[traffic]]\nname = \"call\"\nkind = \"voice\"\ndirection = \"up\"\n";
    let download = "[[traffic]]\nname = \"download\"\nkind = \"bulk\"\ndirection = \"down\"\n";
    let write = |name: &str, text: &[&str]| std::fs::write(scratch.path.join(name), text.concat()).unwrap();
    write("call.toml", &[line, download, upload, call]);
    write("game.toml", &[line, upload, &call.replace("call", "game"), "codec = \"none\"\n"]);

    let seeds = "--policy none,cake --seeds 3 --seed 7";
    let told = json(&scratch, &format!("lastmile compare call.toml {seeds} --json --out both"));
    let labels: Vec<&str> = told["runs"].as_array().unwrap().iter().map(|run| run["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["none seed 7", "none seed 8", "none seed 9", "cake seed 7", "cake seed 8", "cake seed 9"]);
    assert!(told["reference_bps"].as_f64().unwrap() > 18e6);
    let mean = |row: usize, name: &str| {
        let measures = told["means"][row]["measures"].as_array().unwrap();
        measures.iter().find(|measure| measure["name"] == name).unwrap_or_else(|| panic!("no {name}: {measures:?}"))
    };
    let one = |run: usize| told["runs"][run]["download_bps"].as_f64().unwrap();
    let expected = (one(3) + one(4) + one(5)) / 3.0;
    assert!((mean(1, "download")["mean"].as_f64().unwrap() - expected).abs() < 1.0);
    assert_eq!(mean(1, "call MOS")["runs"], 3);
    assert!(mean(1, "call R")["mean"].as_f64() > mean(0, "call R")["mean"].as_f64());
    let page = std::fs::read_to_string(scratch.path.join("both/report.html")).unwrap();
    assert!(page.contains("Means of 3 seeds with 95 % intervals; the first seed is drawn."));
    let table = scratch.run(&format!("lastmile compare call.toml {seeds}")).stdout;
    assert!(table.contains("Means of 3 seeds, with 95 % intervals.") && table.contains(" ± "), "{table}");

    let table = scratch.run("lastmile compare game.toml --policy none,cake").stdout;
    assert!(table.contains("datagrams unplayed") && !table.contains("call R"), "{table}");
    assert!(!table.contains("of baseline"), "{table}");
}

/// The last list changes fastest, and each row is the run with the row's values.
#[test]
fn lists_of_values_make_a_grid() {
    let scratch = Scratch::new();
    let file = "scenarios/atm/sun-epd.toml";
    let grid = json(
        &scratch,
        &format!("lastmile compare {file} --vary tcp.variant=tahoe,reno --vary 'duration=1 s,2 s' --json"),
    );
    let runs = grid["runs"].as_array().unwrap();
    let labels: Vec<&str> = runs.iter().map(|run| run["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["tahoe, 1 s", "tahoe, 2 s", "reno, 1 s", "reno, 2 s"]);
    let alone = json(&scratch, &format!("lastmile run {file} --set tcp.variant=reno --duration 1s --json"));
    assert_eq!(runs[2]["summary"]["flows"], alone["flows"]);
    assert_ne!(runs[0]["summary"]["flows"], alone["flows"], "the variant decides something");
}

/// On a line of another rate the download alone has another goodput: each row is compared with that of its own rate,
/// and never has more. Policies share the downloads of the line's own queues. A download that is over has no baseline.
#[test]
fn rows_of_other_lines_have_baselines_of_their_own() {
    let scratch = Scratch::new();
    let text = "duration = \"8 s\"\n[access]\ndown = { rate = \"20 Mbit/s\", delay = \"10 ms\" }\n\
                up = { rate = \"1 Mbit/s\", delay = \"10 ms\" }\n\
                [[traffic]]\nkind = \"bulk\"\nname = \"d\"\ndirection = \"down\"\n\
                [[traffic]]\nkind = \"bulk\"\nname = \"u\"\ndirection = \"up\"\nstart = \"3 s\"\n";
    std::fs::write(scratch.path.join("line.toml"), text).unwrap();
    let vary = "lastmile compare line.toml --vary 'access.down.rate=10 Mbit/s,40 Mbit/s'";
    let told = json(&scratch, &format!("{vary} --json"));
    assert!(told["reference_bps"].is_null(), "rows have their own");
    for (row, rate) in ["10 Mbit/s", "40 Mbit/s"].iter().enumerate() {
        let run = &told["runs"][row];
        let alone =
            json(&scratch, &format!("lastmile compare line.toml --set 'access.down.rate={rate}' --policy none --json"));
        for key in ["reference_bps", "download_share"] {
            assert_eq!(run[key], alone["runs"][0][key], "{rate} {key}");
        }
        assert_eq!(run["reference_bps"], alone["reference_bps"]);
        assert!(run["download_share"].as_f64().unwrap() < 1.0, "{rate}");
    }
    let table = scratch.run(vary).stdout;
    assert!(table.contains("Baseline: the downloads alone, with the other values of the row.\n"), "{table}");
    assert!(table.contains("  baseline   of baseline"), "{table}");
    let table = scratch.run("lastmile compare line.toml --policy none,cake").stdout;
    assert!(table.contains("Baseline: the downloads alone have ") && !table.contains("  baseline "), "{table}");

    let over = text.replace("name = \"d\"", "name = \"d\"\nbytes = \"100 kB\"");
    let backup = "[[traffic]]\nkind = \"backup\"\nname = \"k\"\ndirection = \"down\"\nstart = \"3 s\"\n";
    std::fs::write(scratch.path.join("over.toml"), format!("{over}{backup}")).unwrap();
    let table = scratch.run("lastmile compare over.toml --policy none,cake").stdout;
    assert!(!table.contains("aseline"), "{table}");
}

/// A policy is another dimension. Each value has a column, each run a folder, and each row its
/// seeds.
#[test]
fn policies_and_values_make_a_grid_with_seeds() {
    let scratch = Scratch::new();
    line_of_today(&scratch, "line.toml", "policy = \"cake\"");
    let grid = "lastmile compare line.toml --duration 1s --policy none,fifo --vary 'access.up.rate=1 Mbit/s,2 Mbit/s'";
    let told = json(&scratch, &format!("{grid} --seeds 2 --json"));
    let means = told["means"].as_array().unwrap();
    let labels: Vec<&str> = means.iter().map(|mean| mean["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["none, 1 Mbit/s", "none, 2 Mbit/s", "fifo, 1 Mbit/s", "fifo, 2 Mbit/s"]);
    let runs = told["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 8);
    let up = |run: usize| {
        let links = runs[run]["summary"]["links"].as_array().unwrap();
        links.iter().find(|link| link["name"] == "up").unwrap()["rate_bps"].clone()
    };
    assert_eq!([0, 1, 2, 3, 4, 6].map(up), [1e6, 1e6, 2e6, 2e6, 1e6, 2e6].map(serde_json::Value::from));
    assert_eq!(runs[7]["summary"]["inputs"]["set"][1], "access.policy=fifo");

    let told = scratch.run(&format!("{grid} --out grid")).stdout;
    // Its slow start takes longer than the ACKs over 1 Mbit/s, and the baseline has the row's rate.
    assert!(told.contains("Baseline: the downloads alone"), "{told}");
    let mut rows = told.lines().skip_while(|line| !line.trim().starts_with("policy")).map(str::trim);
    let head: Vec<&str> = rows.next().unwrap().split_whitespace().take(2).collect();
    assert_eq!(head, ["policy", "access.up.rate"], "{told}");
    assert!(rows.any(|row| row.starts_with("fifo") && row.contains("2 Mbit/s")), "{told}");
    assert!(scratch.path.join("grid/fifo--2-Mbit-s/summary.json").exists());
    assert!(scratch.path.join("grid/report.html").exists());
}

/// A policy replaces the queues of the line: a kind of queue changes nothing then.
#[test]
fn a_key_without_effect_is_named() {
    let scratch = Scratch::new();
    line_of_today(&scratch, "line.toml", "");
    let grid = "lastmile compare line.toml --duration 2s --policy none,cake --vary access.up.queue.kind=fifo,sad";
    let told = scratch.run(grid);
    assert_eq!(
        (told.code, told.stderr.as_str()),
        (0, "note: access.up.queue.kind changes no result of a flow with policy cake\n")
    );
    let told =
        scratch.run("lastmile compare line.toml --duration 2s --policy cake --vary access.up.queue.kind=fifo,sad");
    assert!(told.stderr.starts_with("note: access.up.queue.kind changes no result of a flow"), "{}", told.stderr);
}

/// A line with this buffer and this limiter upstream, as detection writes it.
fn detected(unit: &str, limiter: &serde_json::Value) -> String {
    use serde_json::json;
    let exactly = |value: f64| json!({ "value": value, "low": value, "high": value });
    let candidate = |preset: &str, overhead: i32, framing: &str, rate: f64| {
        json!({ "presets": [preset], "overhead_bytes": overhead, "minimum_bytes": 0, "framing": framing,
                "probability": 1.0, "gross_bps": exactly(rate) })
    };
    // 21.3 full packets are 31 950 bytes, or over ATM (RFC 2684) 32 cells each.
    let buffer = json!({ "bytes": exactly(31_950.0), "packets": exactly(21.3), "wait_s": exactly(0.3), "unit": unit });
    let side = |rate: f64, limiter: &serde_json::Value, (preset, overhead, framing): (&str, i32, &str)| {
        json!({ "encapsulation": { "verdict": "sure", "candidates": [candidate(preset, overhead, framing, rate)] },
                "ip_bps": exactly(rate * 0.88), "gross_bps": exactly(rate), "limiter": limiter, "buffer": buffer,
                "loss_share": null, "others_share": null })
    };
    let link = if unit == "wire_bytes" { ("pppoa-vcmux", 10, "atm") } else { ("bridged-ptm", 22, "ptm") };
    let line = json!({ "kind": "line" });
    let detection = json!({ "mtu_bytes": 1500, "idle_rtt_s": exactly(0.02), "down": side(8e6, &line, link),
                            "up": side(1e6, limiter, link), "took_s": 100.0, "warnings": [] });
    lastmile_measure::detect::scenario::scenario(&serde_json::from_value(detection).unwrap(), "line").unwrap()
}

/// The hint repeats the file's limit where the other kind has one of its unit.
#[test]
fn a_hint_of_another_kind_keeps_the_limit() {
    for (limit, repeated) in [("limit = \"100 ms\", ", ", limit = \"100 ms\""), ("", "")] {
        let scratch = Scratch::new();
        let queue = format!("queue = {{ {limit}kind = \"docsis-pie\", target = \"10 ms\" }}");
        let text = format!(
            "duration = \"9 s\"\n[access]\ndown = {{ rate = \"9 Mbit/s\" }}\nup = {{ rate = \"1 Mbit/s\", {queue} }}\n\
             [[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\n"
        );
        std::fs::write(scratch.path.join("line.toml"), &text).unwrap();
        let told = scratch.run("lastmile compare line.toml --vary access.up.queue.kind=docsis-pie,sad");
        let hint = format!(
            "\nhint: the other keys are those of the file's kind; --vary 'access.up.queue={{ kind = \"sad\"{repeated} \
             }},...' replaces the whole table, each value with keys of its own\n"
        );
        assert!(told.code == 2 && told.stderr.ends_with(&hint), "{}", told.stderr);
    }
}

/// The commands of the guide *Detecting a line*, and the message for a `--vary` of the kind alone.
#[test]
fn what_detection_writes_can_be_compared() {
    use serde_json::json;
    let exactly = |value: f64| json!({ "value": value, "low": value, "high": value });
    let bucket = exactly(20_000.0);
    let shaper = json!({ "kind": "shaper", "bucket_bytes": bucket, "burst_bps": null });
    let policer = json!({ "kind": "policer", "bucket_bytes": bucket });
    let line = json!({ "kind": "line" });
    let files = [
        ("bytes", &line, "31950 B"),
        ("wire_bytes", &line, "682 cells"),
        ("packets", &line, "21 packets"),
        ("bytes", &shaper, "kind = \"tbf\""),
        ("bytes", &policer, "kind = \"policer\""),
    ];
    for (unit, limiter, part) in files {
        let scratch = Scratch::new();
        let text = detected(unit, limiter);
        assert!(text.contains(part), "{text}");
        std::fs::write(scratch.path.join("line.toml"), &text).unwrap();
        let compare = "lastmile compare line.toml --duration '22 s'";
        for options in ["", "--policy none,fifo,cake", "--set 'access.up.rate=900 kbit/s'"] {
            let told = scratch.run(&format!("{compare} {options}"));
            assert_eq!((told.code, told.stderr.as_str()), (0, ""), "{unit} {limiter} {options}");
        }
        let queues = r#"'access.up.queue={ kind = "fifo", limit = "31950 B" },{ kind = "fq-codel" }'"#;
        let told = scratch.run(&format!("{compare} --vary {queues}"));
        assert_eq!((told.code, told.stderr.as_str()), (0, ""), "{unit} {limiter}");
        let kinds = scratch.run(&format!("{compare} --vary access.up.queue.kind=fifo,fq-codel"));
        let hint = |kind: &str| {
            format!(
                "\nhint: the other keys are those of the file's kind; --vary 'access.up.queue={{ kind = \"{kind}\" \
                 }},...' replaces the whole table, each value with keys of its own\n"
            )
        };
        match (unit, limiter == &line) {
            ("packets", true) => assert_eq!(kinds.code, 0, "{}", kinds.stderr),
            (_, true) => assert!(kinds.code == 2 && kinds.stderr.ends_with(&hint("fq-codel")), "{}", kinds.stderr),
            _ => assert!(kinds.code == 2 && kinds.stderr.ends_with(&hint("fifo")), "{}", kinds.stderr),
        }
    }
}
