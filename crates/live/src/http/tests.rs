//! Answers to one connection, in memory, and to many at a real port.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Instant;

use super::*;
use crate::stop::StopHandle;

#[derive(Clone)]
struct Fixed(Result<String, String>);

impl Pages for Fixed {
    const CONTENT_TYPE: &'static str = "text/x-test";

    async fn page(&self) -> Result<String, String> {
        self.0.clone()
    }
}

fn told(request: &[u8]) -> String {
    let pages = Fixed(Ok("the page\n".to_owned()));
    String::from_utf8(answer_to(request, 7, &pages).unwrap()).unwrap()
}

#[test]
fn the_page_is_at_one_path_for_two_methods() {
    let page = told(b"GET /metrics HTTP/1.0\r\n\r\n");
    assert!(page.starts_with("HTTP/1.0 200 OK\r\n") && page.ends_with("\r\n\r\nthe page\n"), "{page}");
    assert!(page.contains("content-type: text/x-test\r\n"), "{page}");
    let head = told(b"HEAD /metrics?a=b HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
    let other = told(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(other.starts_with("HTTP/1.1 404 "), "{other}");
    let post = told(b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
    assert!(post.starts_with("HTTP/1.1 405 ") && post.contains("allow: GET, HEAD\r\n"), "{post}");
    let refused = answer_to(b"GET /metrics HTTP/1.1\r\n\r\n", 1 << 16, &Fixed(Err("ending".to_owned()))).unwrap();
    assert!(refused.starts_with(b"HTTP/1.1 503 ") && refused.ends_with(b"\r\n\r\nending\n"));
}

#[test]
fn a_connection_has_one_request() {
    let both = told(b"GET /metrics HTTP/1.1\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n");
    assert_eq!(both.matches("the page").count(), 1, "{both}");
    assert!(both.contains("connection: close\r\n"), "{both}");
}

#[test]
fn what_is_too_long_or_no_request_is_refused() {
    let path = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(LONGEST_HEAD));
    let lines = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(MOST_HEADERS + 1));
    for (request, code) in [(path.as_str(), "431"), (&lines, "431"), ("no such thing\r\n\r\n", "400")] {
        let answer = told(request.as_bytes());
        assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{code}: {answer}");
    }
    // A body is not read, and its length takes no memory.
    for length in ["9223372036854775807", "30000000000"] {
        let answer = told(format!("GET /metrics HTTP/1.1\r\nContent-Length: {length}\r\n\r\nx").as_bytes());
        assert!(answer.starts_with("HTTP/1.1 200 "), "{length}: {answer}");
    }
    let chunked = told(b"GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx");
    assert!(chunked.starts_with("HTTP/1.1 200 "), "{chunked}");
}

/// A server at a port of this machine, until the test ends.
struct Served {
    at: SocketAddr,
    end: StopHandle,
    thread: Option<thread::JoinHandle<()>>,
}

impl Served {
    fn new() -> Self {
        let server = Server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let (at, end) = (server.listener.local_addr().unwrap(), Stop::new().unwrap());
        let handle = end.handle().unwrap();
        let serve = move || server.serve(&end, &Fixed(Ok("the page\n".to_owned()))).unwrap();
        Self { at, end: handle, thread: Some(thread::spawn(serve)) }
    }

    fn get(&self) -> String {
        let mut stream = TcpStream::connect(self.at).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end.stop();
        assert!(self.thread.take().unwrap().join().is_ok() || thread::panicking());
    }
}

#[test]
fn those_who_say_nothing_keep_nobody_waiting() {
    let served = Served::new();
    let began = Instant::now();
    // Ten times as many as there are slots, half of them with the beginning of a request.
    let silent: Vec<TcpStream> = (0..10 * MOST)
        .map(|index| {
            let mut stream = TcpStream::connect(served.at).unwrap();
            if index % 2 == 0 {
                // The server may have closed it by now.
                let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nA: ");
            }
            stream
        })
        .collect();
    assert!(served.get().ends_with("the page\n"));
    assert!(began.elapsed() < DEADLINE / 2, "{:?}", began.elapsed());
    // The oldest has been closed.
    let mut first = &silent[0];
    first.set_read_timeout(Some(DEADLINE / 2)).unwrap();
    let closed = match first.read(&mut [0; 1]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    };
    assert!(closed);
}
