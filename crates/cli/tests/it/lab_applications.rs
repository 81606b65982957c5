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

const PAGES_OVER_TCP: &str = r#"
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
"#;

const PAGES_OVER_QUIC: &str = r#"
[[traffic]]
kind = "web"
name = "pages-3"
http = "3"
reading = "300 ms"
"#;

/// A film, and files one after another up and down. Each of `files` goes up in the initial window.
fn film_and_files(transport: &str, file_size: &str) -> String {
    format!(
        r#"
[[traffic]]
kind = "video"
name = "film"
segment = "1 s"
ladder = ["1 Mbit/s", "3 Mbit/s"]
transport = "{transport}"

[[traffic]]
kind = "backup"
name = "files"
files = 40
file_size = "{file_size}"
transport = "{transport}"

[[traffic]]
kind = "backup"
name = "restored"
direction = "down"
parallel = 3
pause = "20 ms"
file_size = "20 kB"
stop = "5 s"
transport = "{transport}"
"#
    )
}

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

/// Equal seeds draw equal pages; a run that is a little slower reads fewer.
fn pages_are_close([simulated, live]: [&Value; 2], name: &str, spare: f64) {
    let [simulated, live] = [simulated, live].map(|run| named(&run["pages"], name));
    let (of_live, of_simulated) = (number(live, "/complete"), number(simulated, "/complete"));
    assert!(of_live >= of_simulated * 0.7 && of_live <= of_simulated + 1.0, "{name}: {of_live} of {of_simulated}");
    close(name, number(simulated, "/main_s/p50"), number(live, "/main_s/p50"), 0.02);
    close(name, number(simulated, "/response_s/p50"), number(live, "/response_s/p50"), spare);
}

fn has_a_connection_for_each_page(run: &Value, name: &str) {
    let (pages, connections) =
        (number(named(&run["pages"], name), "/pages"), number(named(&run["flows"], name), "/connections"));
    assert!((pages - connections).abs() < 0.5, "{name}: {connections} connections for {pages} pages");
}

/// The film starts in time and never stands still, and forty files go up. Returns both films.
fn film_and_files_are_close([simulated, live]: [&Value; 2], restored_share: f64) -> [Value; 2] {
    let [films, files, restored] = [("videos", "film"), ("backups", "files"), ("backups", "restored")]
        .map(|(rows, name)| [simulated, live].map(|run| named(&run["applications"][rows], name).clone()));
    close("start", number(&films[0], "/start_s"), number(&films[1], "/start_s"), 0.05);
    assert_eq!(films[1]["stalls"].as_u64(), Some(0), "{}", films[1]);
    assert_eq!(files[1]["copied"], 40, "{}", files[1]);
    close("backup", number(&files[0], "/end_s"), number(&files[1], "/end_s"), 0.1);
    let [of_simulated, of_live] = restored.map(|row| number(&row, "/files_per_s"));
    close("restored", of_simulated, of_live * restored_share, 0.0);
    assert_eq!(live["conservation"]["holds"], true);
    films
}

#[test]
#[ignore = "needs root: real packets"]
fn videos_pages_and_backups_over_the_kernels_tcp_are_those_of_the_simulation() {
    let traffic = format!("{}{PAGES_OVER_TCP}", film_and_files("tcp", "13650 B"));
    let Some([simulated, live]) = both(&traffic) else { return };
    let runs = [&simulated, &live];
    let [of_simulated, of_live] = film_and_files_are_close(runs, 1.1);
    assert_eq!(of_live["ladder"], of_simulated["ladder"]);
    for name in ["pages-10", "pages-11", "pages-2"] {
        pages_are_close(runs, name, 0.08);
    }
    has_a_connection_for_each_page(&live, "pages-2");
    let [files, of_simulation] = [&live, &simulated].map(|run| named(&run["applications"]["backups"], "files"));
    // With its request a file has 14 000 bytes. On an idle line 40 * (60 ms + 5.75 ms) and a handshake: 2.69 s. The
    // others share this one.
    assert!(number(files, "/end_s") > 2.6, "{files}");
    let [waits, simulated_waits] = [files, of_simulation].map(|row| number(row, "/waiting_share"));
    assert!((waits - simulated_waits).abs() < 0.1, "{waits} of the time, not {simulated_waits}");
}

#[test]
#[ignore = "needs root: real packets"]
fn videos_pages_and_backups_over_quic_are_those_of_the_simulation() {
    let Some([simulated, live]) = both(&format!("{}{PAGES_OVER_QUIC}", film_and_files("quic", "13 kB"))) else {
        return;
    };
    let runs = [&simulated, &live];
    // The library's window grows later, so that a segment more may have the lower rate.
    let [of_simulated, of_live] = film_and_files_are_close(runs, 1.15).map(|film| number(&film, "/bit_rate_mean_bps"));
    close("bit rate", of_simulated, of_live, 0.0);
    pages_are_close(runs, "pages-3", 0.03);
    has_a_connection_for_each_page(&live, "pages-3");
    let flow = named(&live["flows"], "pages-3");
    assert_eq!((&flow["tcp"], flow["connections_failed"].as_u64()), (&Value::from("quic-cubic"), Some(0)), "{flow}");
}

/// The rate control starts at 300 kbit/s and rises by 8 % a second; a game answers after 60 ms and half a tick.
#[test]
#[ignore = "needs root: real packets"]
fn conferences_and_games_over_real_packets_are_those_of_the_simulation() {
    let Some(all) = both(OVER_UDP) else { return };
    let [simulated, live] = &all;
    for way in ["talk-down", "talk-up"] {
        let [simulated, live] = [simulated, live].map(|run| named(&run["applications"]["conferences"], way));
        let [captured, of_simulated] = [live, simulated].map(|talk| number(talk, "/frames_captured"));
        assert!((captured - of_simulated).abs() < 2.0 && captured > 175.0, "30 frames a second for 6 s: {captured}");
        assert!(number(live, "/frames_shown") > 0.95 * captured, "{live}");
        close("frame delay", number(simulated, "/frame_delay_s/p50"), number(live, "/frame_delay_s/p50"), 0.005);
        let (of_live, of_simulated) = (number(live, "/video_bps"), number(simulated, "/video_bps"));
        assert!((0.6..1.4).contains(&(of_live / of_simulated)), "{way}: {of_live} bit/s, not {of_simulated}");
        assert!(number(live, "/audio/voice/r_factor") > 80.0, "{live}");
    }
    for player in ["game-1", "game-2"] {
        let [simulated, live] = [simulated, live].map(|run| named(&run["applications"]["games"], player));
        assert!((number(live, "/commands") - number(simulated, "/commands")).abs() < 2.0, "{live}");
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
