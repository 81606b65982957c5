//! Applications of `lastmile lab`: the players and controllers of the simulation over the kernel's TCP and UDP. The
//! tests need root, network namespaces and TUN devices, so they run only on request (`scripts/live-tests.sh`).

use std::path::Path;

use serde_json::Value;

use crate::live::{folder, json, lastmile};

/// A line that no application fills. Its round trip is 60 ms, 20 of them behind the line.
const LINE: &str = r#"
duration = "6 s"

[access]
down = { rate = "100 Mbit/s", delay = "20 ms" }
up = { rate = "20 Mbit/s", delay = "20 ms" }
"#;

const OVER_TCP: &str = r#"
[[traffic]]
kind = "video"
name = "film"
segment = "1 s"
ladder = ["1 Mbit/s", "3 Mbit/s"]

[[traffic]]
kind = "web"
name = "pages-10"
http = "1.0"
reading = "300 ms"

[[traffic]]
kind = "web"
name = "pages-11"
http = "1.1"
tls = true
reading = "300 ms"

[[traffic]]
kind = "web"
name = "pages-2"
http = "2"
reading = "300 ms"

[[traffic]]
kind = "backup"
name = "files"
files = 40
file_size = "13650 B"

[[traffic]]
kind = "backup"
name = "restored"
direction = "down"
parallel = 3
pause = "20 ms"
file_size = "20 kB"
"#;

const OVER_QUIC: &str = r#"
[[traffic]]
kind = "video"
name = "film"
segment = "1 s"
ladder = ["1 Mbit/s", "3 Mbit/s"]
transport = "quic"

[[traffic]]
kind = "web"
name = "pages-3"
http = "3"
reading = "300 ms"

[[traffic]]
kind = "backup"
name = "files"
files = 40
file_size = "13 kB"
transport = "quic"

[[traffic]]
kind = "backup"
name = "restored"
direction = "down"
parallel = 3
pause = "20 ms"
file_size = "20 kB"
stop = "5 s"
transport = "quic"
"#;

const OVER_UDP: &str = r#"
[[traffic]]
kind = "conference"
name = "talk"

[[traffic]]
kind = "game"
count = 2
"#;

/// The simulated run, and the one with real packets.
fn both(traffic: &str) -> Option<[Value; 2]> {
    let scratch = folder("lab.toml", &format!("{LINE}{traffic}"))?;
    let output = lastmile(&scratch.path, &["lab", "lab.toml", "--both", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let document = json(&output.stdout);
    Some([document["simulated"].clone(), document["live"][0].clone()])
}

fn number(value: &Value, pointer: &str) -> f64 {
    value.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer} in {value}"))
}

fn named<'a>(rows: &'a Value, name: &str) -> &'a Value {
    let found = rows.as_array().unwrap().iter().find(|row| row["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {rows}"))
}

/// A busy machine only makes a lab slower, so the bounds above are wider than those below.
fn close(what: &str, simulated: f64, live: f64, spare: f64) {
    assert!(live > simulated * 0.9 - spare / 2.0 && live < simulated * 1.35 + spare, "{what}: {live}, not {simulated}");
}

/// Forty files go up, each with its request 14 000 bytes in the initial window.
#[test]
#[ignore = "needs root: real packets"]
fn videos_pages_and_backups_over_the_kernels_tcp_are_those_of_the_simulation() {
    let Some([simulated, live]) = both(OVER_TCP) else { return };
    let film = |run: &Value| named(&run["applications"]["videos"], "film").clone();
    let (of_live, of_simulated) = (film(&live), film(&simulated));
    close("start", number(&of_simulated, "/start_s"), number(&of_live, "/start_s"), 0.05);
    assert_eq!((of_live["stalls"].as_u64(), &of_live["ladder"]), (Some(0), &of_simulated["ladder"]), "{of_live}");

    for name in ["pages-10", "pages-11", "pages-2"] {
        let [simulated, live] = [&simulated, &live].map(|run| named(&run["pages"], name));
        // Equal seeds draw equal pages; a run that is a little slower reads fewer.
        let (of_live, of_simulated) = (number(live, "/complete"), number(simulated, "/complete"));
        assert!(of_live >= of_simulated * 0.7 && of_live <= of_simulated + 1.0, "{name}: {of_live} of {of_simulated}");
        close(name, number(simulated, "/main_s/p50"), number(live, "/main_s/p50"), 0.02);
        close(name, number(simulated, "/response_s/p50"), number(live, "/response_s/p50"), 0.08);
    }
    let connections = |run: &Value, name: &str| number(named(&run["flows"], name), "/connections");
    let pages = number(named(&live["pages"], "pages-2"), "/pages");
    assert!((pages - connections(&live, "pages-2")).abs() < 0.5, "HTTP/2 has a connection for each page");

    let [simulated_files, live_files] = [&simulated, &live].map(|run| named(&run["applications"]["backups"], "files"));
    assert_eq!(live_files["copied"], 40, "{live_files}");
    // On an idle line 40 * (60 ms + 5.75 ms) and a handshake: 2.69 s. The others share this one.
    assert!(number(live_files, "/end_s") > 2.6, "{live_files}");
    close("backup", number(simulated_files, "/end_s"), number(live_files, "/end_s"), 0.1);
    let [waits, simulated_waits] = [live_files, simulated_files].map(|row| number(row, "/waiting_share"));
    assert!((waits - simulated_waits).abs() < 0.1, "{waits} of the time, not {simulated_waits}");
    let restored = |run: &Value| number(named(&run["applications"]["backups"], "restored"), "/files_per_s");
    close("restored", restored(&simulated), restored(&live) * 1.1, 0.0);
    assert_eq!(live["conservation"]["holds"], true);
}

/// A page is one connection, and each of its objects a stream. Files go up one by one, each in the initial window.
#[test]
#[ignore = "needs root: real packets"]
fn videos_pages_and_backups_over_quic_are_those_of_the_simulation() {
    let Some([simulated, live]) = both(OVER_QUIC) else { return };
    let row = |run: &Value, rows: &str, name: &str| named(&run["applications"][rows], name).clone();
    let [of_simulated, of_live] = [&simulated, &live].map(|run| row(run, "videos", "film"));
    close("start", number(&of_simulated, "/start_s"), number(&of_live, "/start_s"), 0.05);
    // The library's window grows later, so that a segment more may have the lower rate.
    close("bit rate", number(&of_simulated, "/bit_rate_mean_bps"), number(&of_live, "/bit_rate_mean_bps"), 0.0);
    assert_eq!(of_live["stalls"].as_u64(), Some(0), "{of_live}");

    let [of_simulated, of_live] = [&simulated, &live].map(|run| named(&run["pages"], "pages-3"));
    let (complete, expected) = (number(of_live, "/complete"), number(of_simulated, "/complete"));
    assert!(complete >= expected * 0.7 && complete <= expected + 1.0, "{complete} pages, not {expected}");
    for time in ["/main_s/p50", "/response_s/p50"] {
        close(time, number(of_simulated, time), number(of_live, time), 0.03);
    }
    let flow = named(&live["flows"], "pages-3");
    assert!((number(of_live, "/pages") - number(flow, "/connections")).abs() < 0.5, "a connection for each page");
    assert_eq!((&flow["tcp"], flow["connections_failed"].as_u64()), (&Value::from("quic-cubic"), Some(0)), "{flow}");

    let [of_simulated, of_live] = [&simulated, &live].map(|run| row(run, "backups", "files"));
    assert_eq!(of_live["copied"], 40, "{of_live}");
    close("backup", number(&of_simulated, "/end_s"), number(&of_live, "/end_s"), 0.1);
    let [of_simulated, of_live] =
        [&simulated, &live].map(|run| number(&row(run, "backups", "restored"), "/files_per_s"));
    close("restored", of_simulated, of_live * 1.15, 0.0);
    assert_eq!(live["conservation"]["holds"], true);
}

/// The rate control starts at 300 kbit/s and rises by 8 % a second; a game answers after 60 ms and half a tick.
#[test]
#[ignore = "needs root: real packets"]
fn conferences_and_games_over_real_packets_are_those_of_the_simulation() {
    let Some(all) = both(OVER_UDP) else { return };
    let [simulated, live] = &all;
    for way in ["talk-down", "talk-up"] {
        let [simulated, live] = [simulated, live].map(|run| named(&run["applications"]["conferences"], way));
        let captured = number(live, "/frames_captured");
        assert!((captured - 180.0).abs() < 2.0, "30 frames a second for 6 s: {captured}");
        assert!(number(live, "/frames_shown") > 0.95 * captured, "{live}");
        close("frame delay", number(simulated, "/frame_delay_s/p50"), number(live, "/frame_delay_s/p50"), 0.005);
        let (of_live, of_simulated) = (number(live, "/video_bps"), number(simulated, "/video_bps"));
        assert!((0.6..1.4).contains(&(of_live / of_simulated)), "{way}: {of_live} bit/s, not {of_simulated}");
        assert!(number(live, "/audio/voice/r_factor") > 80.0, "{live}");
    }
    for player in ["game-1", "game-2"] {
        let [simulated, live] = [simulated, live].map(|run| named(&run["applications"]["games"], player));
        // The simulation starts flows up to 100 ms later.
        assert!((number(live, "/commands") - number(simulated, "/commands")).abs() < 5.0, "{live}");
        assert_eq!(live["commands_lost"].as_u64(), Some(0), "{live}");
        close("response", number(simulated, "/response_s/p50"), number(live, "/response_s/p50"), 0.01);
        let delay = |run: &Value| number(named(&run["flows"], player), "/delay_s/p50");
        close("delay", delay(&all[0]), delay(&all[1]), 0.005);
    }
    assert_eq!(live["conservation"]["holds"], true);
}

/// The comparison has the measures of applications, in JSON and in text.
#[test]
#[ignore = "needs root: real packets"]
fn a_comparison_of_both_clocks_has_what_people_notice() {
    let text = format!("{}\n[[traffic]]\nkind = \"game\"\n", LINE.replace("6 s", "2 s"));
    let Some(scratch) = folder("lab.toml", &text) else { return };
    let arguments = ["lab", "lab.toml", "--both", "--out", "results"];
    let output = lastmile(&scratch.path, &arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("applications, over the whole run") && text.contains("response p50, ms"), "{text}");
    let page = std::fs::read_to_string(Path::new(&scratch.path).join("results/report.html")).unwrap();
    assert!(page.contains("response p50, ms"), "the page has the table, too");
}
