//! "What would change if" of the dashboards of `lastmile emulate` and `lastmile lab`, with real packets. The tests
//! need root, so they run only on request (`scripts/live-tests.sh`).

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lastmile_live::netns::Namespace;
use serde_json::{Value, json};

use crate::dashboard::{Events, flows_up, parts, value};
use crate::live::{folder, kill, lastmile, until_it_says};
use crate::shape::at;
use crate::transcript::Scratch;

/// A line with a queue of 3.2 s upstream, and its own queues.
const LINE: &str = r#"
duration = "16 s"

[access]
encapsulation = "bridged-vcmux-fcs"
down = { rate = "2 Mbit/s", delay = "4 ms" }
up = { rate = "512 kbit/s", delay = "6 ms", queue = { kind = "fifo", limit = "206 kB" } }
"#;

/// A program with a dashboard on this machine. It ends with the test.
struct Served {
    child: Child,
    address: SocketAddr,
    /// Open, or the program could not write.
    _talk: BufReader<ChildStderr>,
}

impl Served {
    fn start(scratch: &Scratch, command: &str) -> Self {
        let arguments = [command, "line.toml", "--web", "127.0.0.1:0", "--json"];
        let mut command = lastmile(&scratch.path, &arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut talk = BufReader::new(child.stderr.take().unwrap());
        let said = until_it_says("dashboard: http://", &mut talk);
        let address = said.split_once("dashboard: http://").unwrap().1.trim_end().trim_end_matches('/');
        Self { child, address: address.parse().unwrap(), _talk: talk }
    }

    fn answer(&self, head: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect_timeout(&self.address, Duration::from_secs(5)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let (host, length) = (self.address, body.len());
        write!(stream, "{head} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let (code, _, body) = parts(&bytes);
        (code, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    /// The next report.
    fn report(&self) -> Value {
        let mut stream = TcpStream::connect_timeout(&self.address, Duration::from_secs(5)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "GET /api/events HTTP/1.1\r\nHost: {}\r\n\r\n", self.address).unwrap();
        let mut events = Events::of(stream);
        // The first one may be older than the question.
        events.next("report");
        events.next("report")
    }

    fn what_if(&self, question: &Value) -> (u16, Value) {
        self.answer("POST /api/what-if", &question.to_string())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            kill("INT", self.child.id());
        }
        let _ = self.child.wait();
    }
}

/// The hop of this name in a column; null where its policy does not have it.
fn hop<'a>(answer: &'a Value, column: usize, name: &str) -> &'a Value {
    let columns = at(answer, "columns").as_array().unwrap();
    let named = |column: &Value, index: usize| at(column, "directions")[index]["name"] == name;
    let count = at(&columns[0], "directions").as_array().unwrap().len();
    let index = (0..count).find(|index| columns.iter().any(|column| named(column, *index)));
    let index = index.unwrap_or_else(|| panic!("no {name} in {answer:#}"));
    &at(&columns[column], "directions")[index]
}

fn p99(answer: &Value, column: usize, name: &str) -> f64 {
    at(hop(answer, column, name), "delay_s.p99").as_f64().unwrap()
}

/// 400 datagrams of 1000 bytes in 4 s, and pings next to them for longer.
fn load(emulator: &Child) {
    let [client, server] =
        ["client", "server"].map(|end| Namespace::open(&format!("lastmile-{}-{end}", emulator.id())).unwrap());
    let socket = |namespace: &Namespace, address: &str| namespace.run(|| UdpSocket::bind(address)).unwrap().unwrap();
    let (_sink, source) = (socket(&server, "198.18.0.1:9"), socket(&client, "198.18.0.2:7"));
    let mut ping = Command::new("ping");
    ping.args(["-n", "-q", "-i", "0.05", "-c", "120", "198.18.0.1"]).stdout(Stdio::null());
    let mut ping = client.run(|| ping.spawn()).unwrap().unwrap();
    let begun = Instant::now();
    for number in 0..400 {
        thread::sleep((begun + Duration::from_millis(10 * number)).saturating_duration_since(Instant::now()));
        source.send_to(&[0; 972], "198.18.0.1:9").unwrap();
    }
    assert!(ping.wait().unwrap().success());
}

#[test]
#[ignore = "needs root: real packets"]
fn the_page_of_an_emulated_line_says_what_another_policy_would_change() {
    let Some(scratch) = folder("line.toml", LINE) else { return };
    let line = Served::start(&scratch, "emulate");
    let (code, state) = line.answer("GET /api/state", "");
    assert!(code == 200 && at(&state, "policies.0") == "none" && !at(&state, "reloads").as_bool().unwrap(), "{state}");
    let report = thread::scope(|scope| {
        scope.spawn(|| load(&line.child));
        thread::sleep(Duration::from_secs(4));
        line.report()
    });
    let flows = at(flows_up(&report), "rows").as_array().unwrap();
    let [udp, pings, ..] = flows.as_slice() else { panic!("{report:#}") };
    assert_eq!((&udp[0], &udp[1], &udp[2]), (&"198.18.0.2:7".into(), &"198.18.0.1:9".into(), &"UDP".into()));
    assert!(udp[3].as_f64() > pings[3].as_f64() && pings[2] == "ICMP", "{flows:#?}");
    // The queue holds all of it.
    assert_eq!((&udp[5], &pings[5]), (&json!(0.0), &json!(0.0)));
    assert!(value(&report, 0, "one-way delay, median", "up: all links").unwrap() > 1.0, "{report:#}");
    // 400 * 22 cells of 53 bytes take 7.3 s.
    thread::sleep(Duration::from_secs(3));

    let (code, answer) = line.what_if(&json!({ "policy": "fq-codel-sqm" }));
    assert_eq!(code, 200, "{answer:#}");
    assert_eq!((&answer["in_force"], &answer["policy"]), (&json!("none"), &json!("fq-codel-sqm")));
    // The record begins with the line: the replay of what was in force is what happened.
    for name in ["up, link up", "down, link down"] {
        for field in ["packets", "delay_s", "dropped"] {
            let [happened, replayed] = [0, 1].map(|column| at(hop(&answer, column, name), field));
            assert_eq!(happened, replayed, "{field} of {name}: {answer:#}");
        }
    }
    for field in ["packets", "delay_s", "ack_delay_s"] {
        let [happened, replayed] = [0, 1].map(|column| at(&answer, &format!("columns.{column}.ways.0.{field}")));
        assert_eq!(happened, replayed, "{field}: {answer:#}");
    }
    // The queue, and the delay and transmission of all links.
    let whole = at(&answer, "columns.0.ways.0.delay_s.max").as_f64().unwrap();
    let queue = at(hop(&answer, 0, "up, link up"), "delay_s.max").as_f64().unwrap();
    assert!((queue..queue * 1.07 + 0.1).contains(&whole), "{answer:#}");
    assert!(at(hop(&answer, 0, "up, link up"), "packets").as_u64().unwrap() >= 520, "{answer:#}");
    // The queue moves into the middlebox, where most of it is dropped.
    assert!(p99(&answer, 0, "up, link up") > 2.0 && p99(&answer, 2, "up, link up") < 0.05, "{answer:#}");
    assert!(hop(&answer, 1, "up, link middlebox-up").is_null(), "{answer:#}");
    let middlebox = hop(&answer, 2, "up, link middlebox-up");
    assert!(at(middlebox, "delay_s.p50").as_f64().unwrap() < 0.5, "{answer:#}");
    assert!(
        at(middlebox, "dropped").as_object().unwrap().values().any(|count| count.as_u64() > Some(10)),
        "{answer:#}"
    );
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies/fq-codel-sqm.toml")).unwrap();
    let (code, as_text) = line.what_if(&json!({ "text": text }));
    assert_eq!(code, 200, "{as_text:#}");
    assert_eq!(hop(&as_text, 2, "up, link middlebox-up")["dropped"], middlebox["dropped"]);
    let (code, refused) = line.what_if(&json!({ "policy": "/etc/hostname" }));
    assert!(code == 422 && refused.to_string().contains("no built-in policy"), "{refused}");
}

#[test]
#[ignore = "needs root: real packets"]
fn the_page_of_a_lab_says_what_another_policy_would_change() {
    let traffic = r#"
        [[traffic]]
        name = "upload"
        kind = "bulk"
        direction = "up"
        [[traffic]]
        name = "ping"
        kind = "ping"
        interval = "50 ms"
    "#;
    let Some(scratch) = folder("line.toml", &format!("{LINE}{traffic}")) else { return };
    let lab = Served::start(&scratch, "lab");
    let begun = Instant::now();
    let (code, answer) = loop {
        thread::sleep(Duration::from_millis(500));
        let (code, answer) = lab.what_if(&json!({ "policy": "fq-codel-sqm" }));
        if code == 200 || begun.elapsed() > Duration::from_secs(14) {
            break (code, answer);
        }
    };
    assert_eq!(code, 200, "{answer:#}");
    let report = lab.report();
    let rows = at(flows_up(&report), "rows").as_array().unwrap();
    assert!(["TCP", "ICMP"].into_iter().all(|name| rows.iter().any(|row| row[2] == name)), "{report:#}");
    let up = "up, link up";
    let [happened, replayed] = [0, 1].map(|column| at(hop(&answer, column, up), "packets").as_f64().unwrap());
    // Packets that wait when the question comes are counted by their last event.
    assert!(happened > 100.0 && (happened - replayed).abs() <= 2.0 + happened * 0.02, "{answer:#}");
    assert!((p99(&answer, 0, up) - p99(&answer, 1, up)).abs() <= p99(&answer, 0, up) * 0.1, "{answer:#}");
    assert!(p99(&answer, 2, up) < p99(&answer, 1, up) / 2.0, "{answer:#}");
}
