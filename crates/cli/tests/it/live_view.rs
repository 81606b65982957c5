//! The live view of commands with real packets, on a pseudo-terminal. The tests need root, so they
//! run only on request (`scripts/live-tests.sh`).

use std::path::Path;
use std::process::{Command, Stdio};

use lastmile_live::netns::Namespace;

use crate::hosts::Running;
use crate::live::{folder, lastmile};
use crate::measure::{Bench, KEY, VDSL2};
use crate::pty::Terminal;
use crate::shape::Site;

/// A line whose queue overflows soon.
const LINE: &str = r#"
name = "small queue"
duration = "8 s"

[access]
encapsulation = "bridged-vcmux-fcs"
down = { rate = "2 Mbit/s", delay = "4 ms" }
up = { rate = "512 kbit/s", delay = "4 ms", queue = { kind = "fifo", limit = "12 kB" } }
"#;

/// The line, with a download and a ping.
const LAB: &str = r#"
[[traffic]]
name = "download"
kind = "bulk"
direction = "down"
tcp = { variant = "cubic", receive_window = "32 KiB" }

[[traffic]]
name = "ping"
kind = "ping"
interval = "50 ms"
"#;

/// `lastmile ARGUMENTS` on a terminal of this size.
fn on_terminal(folder: &Path, arguments: &[&str], size: (u16, u16)) -> Terminal {
    let mut command = lastmile(folder, arguments);
    command.env("TERM", "xterm").env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR");
    Terminal::start(&command, size)
}

/// Pings of 1028 bytes, twice what the line takes upstream; they end by themselves.
fn pings(namespace: &Namespace, target: &str) -> Running {
    let mut ping = Command::new("ping");
    ping.args(["-n", "-q", "-i", "0.004", "-s", "1000", "-c", "9000", target]).stdout(Stdio::null());
    Running(namespace.run(|| ping.spawn()).unwrap().unwrap())
}

/// The value and unit of a series of the first panel: `rate       512 kbit/s`.
fn value(screen: &vt100::Screen, label: &str) -> Option<(f64, String)> {
    let text = screen.contents();
    let line = text.lines().find_map(|line| line.strip_prefix(label))?;
    let mut words = line.split_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.to_owned()))
}

/// True if a series has a value of this unit between these bounds.
fn is_between(screen: &vt100::Screen, label: &str, (least, most): (f64, f64), unit: &str) -> bool {
    value(screen, label).is_some_and(|(value, of)| (least..=most).contains(&value) && of == unit)
}

#[test]
#[ignore = "needs root: real packets"]
fn an_emulated_line_is_on_the_screen() {
    let Some(scratch) = folder("line.toml", LINE) else { return };
    let client = Namespace::create(&format!("lastmile-view-{}", std::process::id())).unwrap();
    let mut terminal = on_terminal(&scratch.path, &["emulate", "line.toml", "--client-ns", client.name()], (80, 30));
    let words = ["lastmile emulate small queue", "── up, link up: 512 kbit/s", "── down, link down: 2 Mbit/s"];
    // A screen comes in parts.
    terminal.until("the whole screen", |screen| {
        let text = screen.contents();
        words.into_iter().chain(["── messages", "Ctrl-C ends"]).all(|words| text.contains(words))
    });
    let pings = pings(&client, "198.18.0.1");
    terminal.until("the rate of the line", |screen| is_between(screen, "rate", (500.0, 520.0), "kbit/s"));
    // 12 kB of 1028 bytes in 24 cells each take 219 ms.
    terminal.until("the delay of a full queue", |screen| is_between(screen, "delay p50", (190.0, 240.0), "ms"));
    terminal.until("the backlog", |screen| is_between(screen, "backlog", (190.0, 240.0), "ms"));
    terminal.until("drops", |screen| is_between(screen, "drops", (0.5, 100.0), "/s"));
    let text = terminal.until_shown(" tail");
    assert!(text.lines().any(|line| line.contains(" up ") && line.contains(" tail")), "{text}");
    terminal.assert_view(true);
    terminal.resize(60, 20);
    let text = terminal.until("the rate in a small window", |screen| {
        screen.size() == (20, 60) && is_between(screen, "rate", (500.0, 520.0), "kbit/s")
    });
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    drop(pings);
    terminal.keys("q");
    terminal.until("the line of counters", |screen| {
        !screen.alternate_screen()
            && screen.contents().lines().any(|line| line.starts_with("up ") && line.contains("dropped"))
    });
    terminal.assert_view(false);
    terminal.keys("\x03");
    assert!(terminal.end().success(), "{}", terminal.text());
    let text = terminal.until_shown("Devices");
    assert!(!text.contains("── up, link"), "{text}");
}

#[test]
#[ignore = "needs root: real packets"]
fn an_interrupted_line_prints_its_counters_below_what_was_there() {
    let Some(scratch) = folder("line.toml", LINE) else { return };
    let mut terminal = on_terminal(&scratch.path, &["emulate", "line.toml"], (120, 40));
    terminal.until_shown("── messages");
    terminal.assert_view(true);
    terminal.keys("\x03");
    assert!(terminal.end().success(), "{}", terminal.text());
    let text = terminal.until_shown("Devices");
    assert!(text.contains("Ctrl-C ends the line"), "{text}");
    terminal.assert_view(false);
}

#[test]
#[ignore = "needs root: real packets"]
fn messages_of_the_server_are_in_the_view() {
    let Some(scratch) = folder("line.toml", LINE) else { return };
    let server = "echo served; exec sleep 60";
    let mut terminal = on_terminal(&scratch.path, &["emulate", "line.toml", "--server", server], (80, 30));
    let text = terminal.until_shown("served");
    assert!(text.lines().any(|line| line == "served"), "{text}");
    terminal.keys("\x03");
    assert!(terminal.end().success(), "{}", terminal.text());
    let text = terminal.until_shown("Devices");
    assert!(text.lines().any(|line| line == "served"), "{text}");
}

#[test]
#[ignore = "needs root: real packets"]
fn plain_is_without_a_view() {
    let Some(scratch) = folder("line.toml", LINE) else { return };
    let mut terminal = on_terminal(&scratch.path, &["emulate", "line.toml", "--plain"], (80, 24));
    let text = terminal.until("the line of counters", |screen| screen.contents().contains("up   0 %"));
    assert!(text.contains("Ctrl-C ends the line"), "{text}");
    terminal.assert_view(false);
    terminal.keys("\x03");
    assert!(terminal.end().success());
}

#[test]
#[ignore = "needs root: real packets"]
fn a_lab_shows_its_flows_and_its_links() {
    let Some(scratch) = folder("lab.toml", &format!("{LINE}{LAB}")) else { return };
    let mut terminal = on_terminal(&scratch.path, &["lab", "lab.toml"], (80, 30));
    let text = terminal.until("the goodput of the download", |screen| {
        is_between(screen, "download", (1.5, 2.0), "Mbit/s") && value(screen, "ping").is_some_and(|(_, of)| of == "ms")
    });
    for words in ["live: ", " of 8 s", "── goodput", "── up, link up", "── down, link down"] {
        assert!(text.contains(words), "{words}:\n{text}");
    }
    terminal.assert_view(true);
    assert!(terminal.end().success(), "{}", terminal.text());
    let text = terminal.until_shown("Devices");
    assert!(text.contains("download") && !text.contains("── goodput"), "{text}");
    terminal.assert_view(false);
}

#[test]
#[ignore = "needs root: real packets"]
fn a_shaper_shows_its_classes_and_the_result_of_a_reload() {
    let Some(site) = Site::new() else { return };
    let arguments = ["shape", "mine.toml", "--lan", "west", "--wan", "east", "--make-bridge", "--control", "socket"];
    let start = || on_terminal(&site.scratch.path, &arguments, (100, 40));
    let mut terminal = site.hosts.middle.run(start).unwrap();
    let text = terminal.until_shown("class up");
    for words in [
        "── up: 512 kbit/s",
        "── down: not shaped",
        "the downstream is not shaped",
        "control: socket",
        "policy mine",
        "system calls: limited",
    ] {
        assert!(text.contains(words), "{words}:\n{text}");
    }
    let pings = pings(&site.hosts.left, "10.9.0.2");
    let class = |screen: &vt100::Screen, name: &str| {
        let text = screen.contents();
        text.lines().find_map(|line| line.trim().strip_prefix(name).map(str::to_owned))
    };
    // Pings are the only packets, and their class may borrow the line.
    terminal.until("drops of the class", |screen| {
        class(screen, "quick").is_some_and(|row| row.contains("kbit/s") && row.contains(" tail"))
    });
    // The first interval holds the burst of the shaper, too.
    terminal.until("the rate of the line", |screen| is_between(screen, "rate", (460.0, 520.0), "kbit/s"));
    let row = terminal.look(|screen| class(screen, "quick")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    // Rate and unit, backlog in bytes of at most 20 packets, and its time.
    let backlog: f64 = cells[2].parse().unwrap();
    assert!((15.0 * 1028.0..=20.0 * 1028.0).contains(&backlog), "{row}");
    drop(pings);
    assert_eq!(site.ask(&["reload"]).2, Some(0));
    crate::live::kill("HUP", terminal.child.id());
    terminal.until_shown("mine is in force");
    terminal.keys("\x03");
    assert!(terminal.end().success(), "{}", terminal.text());
    terminal.assert_view(false);
}

#[test]
#[ignore = "needs root: real packets"]
fn a_measurement_shows_rates_and_round_trips_of_each_phase() {
    let Some(bench) = Bench::new(VDSL2, &[]) else { return };
    std::fs::write(bench.scratch.path.join("measure.key"), KEY).unwrap();
    let phases = ["--phases", "idle,download,upload", "--duration", "4 s", "--congestion", "cubic"];
    let arguments = [&["measure", "198.18.0.1", "--key-file", "measure.key"], &phases[..]].concat();
    let start = |plain: &[&str], size| {
        let arguments = [&arguments[..], plain].concat();
        bench.client.run(|| on_terminal(&bench.scratch.path, &arguments, size)).unwrap()
    };
    let mut terminal = start(&[], (80, 40));
    let text = terminal.until_shown("phase idle");
    for words in ["lastmile measure 198.18.0.1", "── goodput", "── round trips", "── messages"] {
        assert!(text.contains(words), "{words}:\n{text}");
    }
    terminal.assert_view(true);
    // The line has 50 and 10 Mbit/s, and queues of 100 ms.
    terminal.until("the rate of the download", |screen| is_between(screen, "download", (25.0, 49.0), "Mbit/s"));
    terminal.until("the round trips", |screen| screen.contents().contains("ICMP 198.18.0.1 "));
    terminal.until("the rate of the upload", |screen| {
        screen.contents().contains("phase upload") && is_between(screen, "upload", (5.0, 10.0), "Mbit/s")
    });
    assert!(terminal.end().success(), "{}", terminal.text());
    let text = terminal.until_shown("Bufferbloat grade");
    assert!(text.contains("round trips") && !text.contains("── goodput"), "{text}");
    terminal.assert_view(false);

    let mut terminal = start(&["--plain"], (120, 60));
    let text = terminal.until("a line of the download", |screen| {
        screen.contents().lines().any(|line| line.contains(" s  download: down ") && line.contains("round trip "))
    });
    assert!(text.lines().any(|line| line.ends_with(" s  idle")), "{text}");
    terminal.assert_view(false);
    // An interrupt prints the finished part.
    terminal.keys("\x03");
    terminal.until_shown("idle ");
    assert!(!terminal.end().success());
}
