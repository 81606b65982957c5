//! Answers to one connection, in memory, and to many at a real port.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use lastmile_live::stop::StopHandle;
use proptest::prelude::*;

use super::*;
use crate::hub::{About, MOST_LISTENERS, Program, Question, Reloading, WAITING};
use crate::report::Report;

struct Asked;

impl Program for Asked {
    fn policies(&self) -> Vec<String> {
        vec!["home".to_owned()]
    }

    fn what_if(&self, question: &Question) -> Result<String, String> {
        match question {
            Question::Policy(name) if name == "home" => Ok("{\"it\":1}".to_owned()),
            Question::Policy(name) => Err(format!("no policy \"{name}\"")),
            Question::Text(_) => panic!("of one question"),
        }
    }

    fn reload(&self, policy: Option<&Question>) -> Option<Reloading> {
        let answer = match policy {
            None => Ok("home is in force".to_owned()),
            Some(Question::Policy(name)) => Ok(format!("{name} is in force")),
            Some(Question::Text(text)) => Err(format!("no policy: {text}")),
        };
        Some(Box::pin(async { answer }))
    }
}

const TOKEN: &str = "a-token-of-enough-chars";

fn hub(control: bool) -> Arc<Hub> {
    Hub::new(About { title: "a test".into(), version: "1", pid: 7, control }, Asked)
}

fn guard(token: Option<&str>) -> Guard {
    Guard::new("127.0.0.1:8420".parse().unwrap(), &[], token).unwrap()
}

fn told_by(hub: &Arc<Hub>, token: Option<&str>, request: &str) -> String {
    String::from_utf8(answer_to(request.as_bytes(), 7, hub, guard(token)).unwrap()).unwrap()
}

fn told(request: &str) -> String {
    told_by(&hub(true), None, request)
}

fn get(path: &str, more: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n")
}

fn post(path: &str, more: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n{more}\r\n{body}", body.len())
}

fn code(answer: &str) -> &str {
    answer.get(9..12).unwrap_or(answer)
}

#[test]
fn the_page_has_no_inline_script_and_every_answer_forbids_it() {
    for path in ["/", "/login", "/dashboard.js", "/dashboard.css", "/api/state", "/nothing"] {
        let answer = told(&get(path, ""));
        assert_eq!(code(&answer), if path == "/nothing" { "404" } else { "200" }, "{path}");
        for header in [
            "script-src 'self'; style-src 'self';",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff\r\n",
            "cache-control: no-store\r\n",
            "referrer-policy: same-origin\r\n",
        ] {
            assert!(answer.contains(header), "{path}: {header}");
        }
        assert!(!answer.contains("unsafe-inline"), "{path}");
    }
    for path in ["/", "/login"] {
        let page = told(&get(path, ""));
        let (_, html) = page.split_once("\r\n\r\n").unwrap();
        for part in html.split("<script").skip(1) {
            assert!(part.contains(" src=\"/") && part.contains("></script>"), "{path}: {part}");
        }
        assert!(!html.contains(" style=") && !html.contains("<style") && !html.contains(" onclick"), "{path}");
    }
}

#[test]
fn other_hosts_and_sites_are_refused_and_counted() {
    let hub = hub(true);
    let ask = |request: &str| code(&told_by(&hub, None, request)).to_owned();
    assert_eq!(ask("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "421");
    assert_eq!(ask("GET / HTTP/1.0\r\n\r\n"), "421");
    assert_eq!(ask(&get("/api/history", "Sec-Fetch-Site: cross-site\r\n")), "403");
    assert_eq!(ask(&post("/api/reload", "Origin: http://evil.example\r\n", "")), "403");
    assert_eq!(ask(&post("/api/reload", "Origin: null\r\n", "")), "403");
    assert_eq!(ask(&post("/api/reload", "Origin: http://localhost\r\n", "")), "200");
    assert_eq!(hub.counts().refused_host.load(Ordering::Relaxed), 2);
    assert_eq!(hub.counts().refused_origin.load(Ordering::Relaxed), 3);
}

#[test]
fn without_the_token_only_the_form_is_there() {
    let hub = hub(true);
    let ask = |request: &str| told_by(&hub, Some(TOKEN), request);
    assert!(ask(&get("/", "")).contains("location: /login\r\n"));
    for path in ["/api/state", "/api/history", "/api/events", "/dashboard.js"] {
        assert_eq!(code(&ask(&get(path, ""))), "401", "{path}");
    }
    assert_eq!(code(&ask(&post("/api/reload", "", ""))), "401");
    // An address is no place for a token.
    assert_eq!(code(&ask(&get(&format!("/api/state?token={TOKEN}"), ""))), "401");
    assert_eq!(code(&ask(&get("/api/state", &format!("Authorization: Bearer {TOKEN}\r\n")))), "200");
    for path in ["/login", "/dashboard.css"] {
        assert_eq!(code(&ask(&get(path, ""))), "200", "{path}");
    }
    let wrong = ask(&post("/login", "", "token=wrong"));
    assert!(wrong.contains("location: /login#wrong\r\n") && !wrong.contains("set-cookie"), "{wrong}");
    let right = ask(&post("/login", "Origin: http://localhost\r\n", &format!("token={TOKEN}")));
    assert!(right.contains("set-cookie: lastmile_8420=") && right.contains("HttpOnly; SameSite=Strict"), "{right}");
    let foreign = ask(&post("/login", "Origin: http://evil.example\r\n", &format!("token={TOKEN}")));
    assert!(foreign.starts_with("HTTP/1.1 403 ") && !foreign.contains("set-cookie"), "{foreign}");
}

#[test]
fn nothing_changes_unless_control_is_allowed() {
    let reading = hub(false);
    assert_eq!(code(&told_by(&reading, None, &post("/api/reload", "", ""))), "403");
    let state = told_by(&reading, None, &get("/api/state", ""));
    assert!(state.contains("\"control\":false") && state.contains("\"reloads\":false"), "{state}");
    let answer = told(&post("/api/reload", "", ""));
    assert!(answer.ends_with("{\"message\":\"home is in force\"}"), "{answer}");
    let with = |body: &str| told(&post("/api/reload", "", body));
    assert!(with(r#"{"policy":"cake"}"#).ends_with(r#"{"message":"cake is in force"}"#));
    let wrong = with(r#"{"text":"x"}"#);
    assert!(code(&wrong) == "422" && wrong.ends_with(r#"{"error":"no policy: x"}"#), "{wrong}");
    assert_eq!(code(&with(r#"{"file":"/etc/passwd"}"#)), "400");
    assert_eq!(code(&told_by(&reading, None, &post("/api/reload", "", r#"{"policy":"cake"}"#))), "403");
    assert_eq!(code(&told(&get("/api/reload", ""))), "405");
}

#[test]
fn a_question_is_answered_refused_or_not_understood_and_a_panic_is_that_of_one_question() {
    let hub = hub(false);
    let ask = |body: &str| told_by(&hub, None, &post("/api/what-if", "", body));
    assert!(ask("{\"policy\":\"home\"}").ends_with("{\"it\":1}"));
    let unknown = ask("{\"policy\":\"away\"}");
    assert!(
        unknown.starts_with("HTTP/1.1 422 ") && unknown.ends_with("{\"error\":\"no policy \\\"away\\\"\"}"),
        "{unknown}"
    );
    assert_eq!(code(&ask("{\"text\":\"x\"}")), "422");
    for body in ["", "home", "{}", "{\"file\":\"/etc/passwd\"}", "{\"policy\":\"a\",\"text\":\"b\"}", "\u{ff}"] {
        assert_eq!(code(&ask(body)), "400", "{body}");
    }
    assert_eq!(code(&ask(&"x".repeat(65 << 10))), "413");
    // The question that panicked does not count as one that is being answered.
    assert_eq!(code(&ask("{\"policy\":\"home\"}")), "200");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Requests with bytes changed, cut off, or of noise: every one gets an answer or none, and the next
    /// one is answered.
    #[test]
    fn no_bytes_of_a_client_harm_the_server(
        at in any::<prop::sample::Index>(),
        harm in prop::collection::vec(any::<u8>(), 0..40),
        cut in any::<bool>(),
        piece in 1..200_usize,
    ) {
        let head = "Origin: http://localhost\r\nCookie: a=b\r\n";
        let mut request = post("/api/what-if", head, "{\"policy\":\"home\"}").into_bytes();
        let at = at.index(request.len());
        if cut {
            request.truncate(at);
        }
        let at = at.min(request.len());
        let end = (at + harm.len() / 2).min(request.len());
        request.splice(at..end, harm);
        let hub = hub(true);
        let answer = answer_to(&request, piece, &hub, guard(None)).unwrap();
        prop_assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 ") || answer.starts_with(b"HTTP/1.0 "));
        let next = told_by(&hub, None, &get("/api/state", ""));
        prop_assert_eq!(code(&next), "200");
    }
}

#[test]
fn heads_and_lengths_beyond_the_limits_take_no_memory() {
    let path = get(&format!("/{}", "a".repeat(LONGEST_HEAD)), "");
    let lines = get("/", &"A: b\r\n".repeat(MOST_HEADERS + 1));
    for request in [path, lines] {
        assert_eq!(code(&told(&request)), "431");
    }
    for length in ["9223372036854775807", "30000000000"] {
        let request = format!("POST /api/what-if HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\nx");
        assert!(["413", "400"].contains(&code(&told(&request))), "{length}");
    }
    let chunked = "POST /login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx";
    assert!(["413", "400", ""].contains(&code(&told(chunked))), "{}", told(chunked));
}

/// A server at a port of this machine, until the test ends.
struct Served {
    at: SocketAddr,
    hub: Arc<Hub>,
    end: StopHandle,
    thread: Option<thread::JoinHandle<()>>,
}

impl Served {
    fn new() -> Self {
        let server = Server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let (at, end) = (server.address().unwrap(), Stop::new().unwrap());
        let (handle, hub) = (end.handle().unwrap(), hub(true));
        let served = Arc::clone(&hub);
        let serve = move || server.serve(&end, &served, guard(None)).unwrap();
        Self { at, hub, end: handle, thread: Some(thread::spawn(serve)) }
    }

    fn send(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    fn get(&self, path: &str) -> String {
        let mut answer = Vec::new();
        self.send(&get(path, "")).read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end.stop();
        assert!(self.thread.take().unwrap().join().is_ok() || thread::panicking());
    }
}

/// Reads until `wanted` is there: the beginning of what was read.
fn until(stream: &mut TcpStream, wanted: &str) -> String {
    let (mut heard, mut searched) = (Vec::new(), 0_usize);
    while !String::from_utf8_lossy(&heard[searched.saturating_sub(wanted.len())..]).contains(wanted) {
        searched = heard.len();
        let mut piece = [0; 1 << 16];
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "the stream ended after {} bytes", heard.len());
        heard.extend_from_slice(&piece[..count]);
    }
    heard.truncate(2000);
    String::from_utf8_lossy(&heard).into_owned()
}

/// A report of some kilobytes, as of many classes.
fn long_report(at_ms: u64) -> Report {
    Report { at_ms, status: "x".repeat(10_000), ..Report::default() }
}

#[test]
fn reports_arrive_as_they_come_and_one_who_does_not_read_is_disconnected() {
    let served = Served::new();
    let mut reading = served.send(&get("/api/events", ""));
    let idle = served.send(&get("/api/events", ""));
    served.hub.publish(&long_report(1));
    let head = until(&mut reading, "\"at_ms\":1,");
    assert!(head.contains("content-type: text/event-stream\r\n"), "{head}");
    // Far more than the buffers of both ends. The one who reads has as many to read as may wait, at most.
    let began = Instant::now();
    for burst in 0..2000 / WAITING as u64 {
        let last = 2 + (burst + 1) * WAITING as u64;
        (last - WAITING as u64..last).for_each(|at_ms| served.hub.publish(&long_report(at_ms)));
        until(&mut reading, &format!("\"at_ms\":{},", last - 1));
    }
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(served.hub.counts().slow.load(Ordering::Relaxed), 1);
    drop(idle);
    assert!(served.get("/api/state").contains("\"listeners\":1"));
}

#[test]
fn those_who_say_nothing_or_listen_in_crowds_keep_nobody_out() {
    let served = Served::new();
    let began = Instant::now();
    let _silent: Vec<TcpStream> = (0..3 * MOST).map(|_| served.send("GET / HTTP/1.1\r\nHost: ")).collect();
    let mut listening: Vec<TcpStream> = (0..MOST_LISTENERS).map(|_| served.send(&get("/api/events", ""))).collect();
    served.hub.publish(&long_report(1));
    for stream in &mut listening {
        until(stream, "\"at_ms\":1,");
    }
    let refused = served.get("/api/events");
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    let history = served.get("/api/history");
    assert!(history.starts_with("HTTP/1.1 200 ") && history.contains("\"reports\":1,"), "{history}");
    assert!(began.elapsed() < DEADLINE / 2, "{:?}", began.elapsed());
}

#[test]
fn streams_end_with_the_server() {
    let served = Served::new();
    let mut listening = served.send(&get("/api/events", ""));
    served.hub.publish(&long_report(1));
    until(&mut listening, "\"at_ms\":1,");
    drop(served);
    let mut rest = Vec::new();
    assert!(listening.read_to_end(&mut rest).is_ok());
}
