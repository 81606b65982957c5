//! `lastmile shape --web` with real packets: events, a change of the policy, questions, and readers that
//! do not read. The tests need root, so they run only on request (`scripts/live-tests.sh`).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::hosts::ip;
use crate::shape::{POLICY, Site, at, until};

const ADDRESS: &str = "127.0.0.1:8420";

/// A connection from the machine that shapes, which has made this request.
fn send(site: &Site, request: &str) -> TcpStream {
    let address: SocketAddr = ADDRESS.parse().unwrap();
    let connect = || TcpStream::connect_timeout(&address, Duration::from_secs(5)).unwrap();
    let mut stream = site.hosts.middle.run(connect).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// The status code, the head and the body.
fn answer(site: &Site, request: &str) -> (u16, String, Vec<u8>) {
    let mut bytes = Vec::new();
    send(site, request).read_to_end(&mut bytes).unwrap();
    parts(&bytes)
}

/// The status code, the head and the body of an answer.
pub(crate) fn parts(bytes: &[u8]) -> (u16, String, Vec<u8>) {
    let split = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..split].to_vec()).unwrap();
    (head[9..12].parse().unwrap(), head, bytes[split + 4..].to_vec())
}

fn get(site: &Site, path: &str, more: &str) -> (u16, String, Vec<u8>) {
    answer(site, &format!("GET {path} HTTP/1.1\r\nHost: {ADDRESS}\r\n{more}\r\n"))
}

fn post(site: &Site, path: &str, more: &str, body: &str) -> (u16, Value) {
    let length = body.len();
    let request = format!("POST {path} HTTP/1.1\r\nHost: {ADDRESS}\r\nContent-Length: {length}\r\n{more}\r\n{body}");
    let (code, _, body) = answer(site, &request);
    (code, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

/// The events of a stream, by name, with their data.
pub(crate) struct Events {
    stream: TcpStream,
    text: String,
}

impl Events {
    fn open(site: &Site, more: &str) -> Self {
        Self::of(send(site, &format!("GET /api/events HTTP/1.1\r\nHost: {ADDRESS}\r\n{more}\r\n")))
    }

    /// The events of a connection that has asked for them.
    pub(crate) fn of(stream: TcpStream) -> Self {
        Self { stream, text: String::new() }
    }

    /// The data of the next event of this name, left out those before it.
    pub(crate) fn next(&mut self, name: &str) -> Value {
        let begin = format!("event: {name}\ndata: ");
        loop {
            if let Some(at) = self.text.find(&begin)
                && let Some(length) = self.text[at + begin.len()..].find("\n\n")
            {
                let from = at + begin.len();
                // Pieces of the chunked transfer stand between lines, never within an event that was sent whole.
                let value = serde_json::from_str(&self.text[from..from + length]).unwrap();
                self.text.drain(..from + length);
                return value;
            }
            let mut piece = [0; 1 << 16];
            let count = self.stream.read(&mut piece).unwrap();
            assert!(count > 0, "the stream of events ended: {}", self.text);
            self.text.push_str(&String::from_utf8_lossy(&piece[..count]));
        }
    }
}

/// The table of flows up in a report.
pub(crate) fn flows_up(report: &Value) -> &Value {
    let tables = at(report, "tables").as_array().unwrap();
    let table = tables.iter().find(|table| table["title"].as_str().unwrap().contains("flows up"));
    table.unwrap_or_else(|| panic!("{report:#}"))
}

/// The latest value of a series in a report.
pub(crate) fn value(report: &Value, group: usize, chart: &str, label: &str) -> Option<f64> {
    let charts = at(report, &format!("groups.{group}.charts")).as_array().unwrap();
    let chart = charts.iter().find(|one| one["title"] == chart).unwrap_or_else(|| panic!("no {chart} in {report:#}"));
    let series = chart["series"].as_array().unwrap();
    series.iter().find(|one| one["label"] == label).unwrap_or_else(|| panic!("no {label}"))["value"].as_f64()
}

#[test]
#[ignore = "needs root: real packets"]
fn the_dashboard_shows_traffic_a_change_of_the_policy_and_another_policy() {
    let Some(site) = Site::new() else { return };
    std::fs::write(site.scratch.path.join("token"), "a-token-of-enough-chars\n").unwrap();
    let shaper = site.start(&["--web", ADDRESS, "--web-token-file", "token", "--web-control"]);
    let token = "Authorization: Bearer a-token-of-enough-chars\r\n";
    until("the dashboard answers", || {
        let address: SocketAddr = ADDRESS.parse().unwrap();
        site.hosts.middle.run(|| TcpStream::connect(address)).unwrap().is_ok()
    });
    assert_eq!(get(&site, "/api/state", "").0, 401);
    let (code, head, _) = get(&site, "/", "");
    assert!(code == 303 && head.contains("location: /login"), "{head}");
    let (code, head, body) = get(&site, "/", token);
    assert!(code == 200 && head.contains("frame-ancestors 'none'"), "{head}");
    assert!(String::from_utf8_lossy(&body).contains("/dashboard.js"));

    let mut events = Events::open(&site, token);
    // Never read, and closed by the server when its buffers are full, or by the end of the test.
    let _slow: Vec<Events> = (0..3).map(|_| Events::open(&site, token)).collect();
    events.next("report");
    assert_eq!(site.pinged(200), 200);
    let report = events.next("report");
    assert!(value(&report, 0, "rate on the wire", "quick").unwrap() > 10_000.0, "{report:#}");
    assert!(value(&report, 0, "delay, 99th percentile", "quick").is_some(), "{report:#}");
    assert_eq!(at(&report, "groups.0.charts.0.limit"), 512_000.0);
    let flow = &flows_up(&report)["rows"][0];
    assert_eq!((&flow[0], &flow[1], &flow[2]), (&"10.9.0.1".into(), &"10.9.0.2".into(), &"ICMP".into()));

    // The question: five seconds must have passed. Pings alone wait for nobody, whatever the queue.
    std::thread::sleep(Duration::from_secs(6));
    assert_eq!(site.pinged(100), 100);
    let (code, what_if) = post(&site, "/api/what-if", token, "{\"policy\":\"plain\"}");
    let named = what_if.to_string();
    assert!(code == 422 && named.contains("no built-in policy"), "{code}: {named}");
    let text = serde_json::json!({ "text": POLICY.replace("20 %", "50 %").replace("80 %", "50 %") }).to_string();
    let (code, what_if) = post(&site, "/api/what-if", token, &text);
    assert_eq!(code, 200, "{what_if:#}");
    let packets = |column: usize| at(&what_if, &format!("columns.{column}.directions.0.packets")).as_u64().unwrap();
    assert!(packets(0) >= 100, "{what_if:#}");
    // The record begins with the shaper, and so do the queues of the replay: it is what happened.
    let happened = packets(0);
    assert!([1, 2].into_iter().all(|column| packets(column) == happened), "{what_if:#}");
    let wait = |column: usize| at(&what_if, &format!("columns.{column}.directions.0.delay_s.p99")).as_f64().unwrap();
    assert!((wait(0) - wait(1)).abs() <= 1e-3 + wait(0) * 0.1, "{what_if:#}");

    // Another policy.
    std::fs::write(site.scratch.path.join("mine.toml"), POLICY.replace("\"quick\"", "\"urgent\"")).unwrap();
    let foreign = format!("{token}Origin: http://evil.example\r\n");
    assert_eq!(post(&site, "/api/reload", &foreign, "").0, 403);
    let (code, said) = post(&site, "/api/reload", token, "");
    assert!(code == 200 && said["message"].as_str().unwrap().contains("is in force"), "{said}");
    assert_eq!(events.next("mark")["words"], "mine is in force");
    assert_eq!(site.pinged(50), 50);
    let report = events.next("report");
    assert!(value(&report, 0, "rate on the wire", "urgent").is_some(), "{report:#}");
    let (code, _, history) = get(&site, "/api/history", token);
    let history = String::from_utf8_lossy(&history).into_owned();
    assert!(code == 200 && history.contains("\"quick\"") && history.contains("\"urgent\""), "{code}");

    // A policy that is built in, until the next reload.
    let (code, said) = post(&site, "/api/reload", token, r#"{"policy":"nothing-of-this-name"}"#);
    assert!(code == 422 && said["error"].as_str().unwrap().contains("built-in policies: "), "{said}");
    let (code, said) = post(&site, "/api/reload", token, r#"{"policy":"cake"}"#);
    assert!(code == 200 && said["message"].as_str().unwrap().contains("cake is in force"), "{said}");
    assert_eq!(events.next("mark")["words"], "cake is in force");
    assert_eq!(site.pinged(50), 50);
    assert_eq!(at(&site.status(), "policy"), "cake");

    // Forwarding goes on next to those who do not read, and those who send noise.
    for noise in ["\0\x01\x02\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "POST /login HTTP/1.1\r\nContent-Length: x\r\n\r\n"] {
        let mut rest = Vec::new();
        let _ = send(&site, noise).read_to_end(&mut rest);
    }
    assert_eq!(site.pinged(100), 100);
    let (_, _, state) = get(&site, "/api/state", token);
    let state: Value = serde_json::from_slice(&state).unwrap();
    assert!(at(&state, "counts.refused_origin").as_u64() == Some(1), "{state:#}");
    assert!(at(&state, "counts.malformed").as_u64() >= Some(1), "{state:#}");
    let status = site.status();
    assert_eq!(at(&status, "up.received.packets"), at(&status, "up.sent.packets"), "{status:#}");
    let stopped = Instant::now();
    assert_eq!(site.ask(&["stop"]).2, Some(0));
    let (code, _, talk) = shaper.ended();
    assert_eq!(code, Some(0), "{talk}");
    assert!(stopped.elapsed() < Duration::from_secs(5), "open streams hold up the end: {:?}", stopped.elapsed());
    assert!(talk.contains("dashboard: http://127.0.0.1:8420/"), "{talk}");
    assert!(!talk.contains("a-token-of"), "{talk}");
}

#[test]
#[ignore = "needs root: real packets"]
fn another_address_takes_a_token_that_is_printed() {
    let Some(site) = Site::new() else { return };
    let shaper = site.start(&["--web", "0.0.0.0:8420"]);
    until("it answers", || {
        let address: SocketAddr = ADDRESS.parse().unwrap();
        site.hosts.middle.run(|| TcpStream::connect(address)).unwrap().is_ok()
    });
    assert_eq!(get(&site, "/api/state", "").0, 401);
    assert_eq!(site.ask(&["stop"]).2, Some(0));
    let (_, _, talk) = shaper.ended();
    let token = talk.lines().find_map(|line| line.strip_prefix("token of the dashboard, until the program ends: "));
    assert_eq!(token.map(str::len), Some(32), "{talk}");
}

#[test]
#[ignore = "needs root: real packets"]
fn an_interface_that_is_down_is_named_and_the_packets_that_it_refuses_are_dropped() {
    let Some(site) = Site::new() else { return };
    let shaper = site.start(&["--path", "packet-sockets", "--web", ADDRESS]);
    until("the dashboard answers", || {
        let address: SocketAddr = ADDRESS.parse().unwrap();
        site.hosts.middle.run(|| TcpStream::connect(address)).unwrap().is_ok()
    });
    let mut events = Events::open(&site, "");
    // Addresses are known from then on.
    assert_eq!(site.pinged(3), 3);
    ip(&format!("-n {} link set east down", site.hosts.middle.name()));
    assert_eq!(site.pinged(5), 0);
    let refused = at(&site.status(), "up.faults.receiver_down").as_u64();
    assert!(refused >= Some(5), "{refused:?}");
    // Reports that were made meanwhile come first.
    let report = (0..20).map(|_| events.next("report")).find(|report| {
        let charts = at(report, "groups.0.charts").as_array().unwrap();
        let drops = charts.iter().find(|chart| chart["title"] == "drops by reason").unwrap();
        drops["series"].as_array().unwrap().iter().any(|series| series["label"] == "receiver_down")
    });
    let status = report.expect("drops of the interface")["status"].as_str().unwrap().to_owned();
    assert!(status.starts_with("policy mine; east is down, and no packet passes; "), "{status}");
    shaper.signal("TERM");
    assert_eq!(shaper.ended().0, Some(0));
}
