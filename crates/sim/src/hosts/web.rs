//! Web-like short flows: a user reads page after page, each with a main object and embedded objects.
//!
//! Published: the HTTP traffic model of 3GPP2 C.R1002-0 (section 2.1.3.1) and 3GPP TR 25.892 (annex A.2.1),
//! both with the numbers below. The browser requests the main object of a page, parses it, and requests the
//! embedded objects. The user reads the page, then requests the next.
//!
//! | quantity | distribution | parameters |
//! | --- | --- | --- |
//! | main object | lognormal, from 100 B to 2 MB | mu 8.35, sigma 1.37: mean 10 710 B |
//! | embedded object | lognormal, from 50 B to 2 MB | mu 6.17, sigma 2.36: mean 7 758 B |
//! | embedded objects a page | Pareto less 2, at most 53 | alpha 1.1, k 2: mean 5.64 |
//! | reading time | exponential | mean 30 s |
//! | parsing time | exponential | mean 0.13 s |
//! | request | fixed | 350 B |
//!
//! A size out of range is drawn anew; the number of objects is cut off at its maximum, as published.
//!
//! HTTP decides what connections carry. HTTP/1.0: an object each. HTTP/1.1 (RFC 9112): object after object. HTTP/2
//! (RFC 9113) and HTTP/3 (RFC 9114): all objects of a page at a time over one connection, in frames with headers of 9
//! bytes for 16 KiB, and of 8 bytes an object. TLS 1.3 over TCP (RFC 8446) takes a round trip before the first request
//! of a connection: 305 bytes of the client, 2 023 of the server with its certificates, and 64 of the client with the
//! first request; records add 22 bytes for 16 KiB. The messages are those of QUIC's handshake.
//!
//! Differs: a browser opens at most 6 connections of HTTP/1 at a time, as today's browsers do; the publications have 4
//! without and 1 with persistent connections. Connections close at the end of a page, since servers close
//! idle connections within a reading time; the publications do not say. So each page begins with a handshake, and none
//! is resumed. There are no DNS queries, no compression of headers (HPACK, QPACK), and no pushed or prioritised
//! objects.
//!
//! The response time of a page is the time from its request to the last byte of its last object. Each session
//! draws from its own random stream, in an order that does not depend on the network. Cost: one draw an
//! object.

use std::sync::Arc;

use lastmile_queueing::random::Stream;
use lastmile_units::{Duration, Instant};

use lastmile_model::{Http, Web};

use super::browse::{Browse, Request};

const MAIN: Lognormal = Lognormal { mean: 8.35, deviation: 1.37, least: 100.0, most: 2e6 };
const EMBEDDED: Lognormal = Lognormal { mean: 6.17, deviation: 2.36, least: 50.0, most: 2e6 };
/// Pareto: shape, minimum, maximum. The minimum is subtracted from the drawn value.
const OBJECTS: (f64, f64, f64) = (1.1, 2.0, 55.0);

/// ClientHello: 300 bytes in a record without protection (5 bytes).
const CLIENT_HELLO: u64 = 305;
/// ServerHello to Finished: 1990 bytes, a record without protection (5), one with it (22), ChangeCipherSpec (6).
const SERVER_FLIGHT: u64 = 2_023;
/// Finished: 36 bytes in a record with protection (22), and ChangeCipherSpec (6).
const CLIENT_FINISHED: u64 = 64;
/// Payload of a record of TLS and of a frame of HTTP/2, and their headers: RFC 8446, section 5.2 (header 5, type 1,
/// tag 16); RFC 9113, section 4.1.
const FRAGMENT: u64 = 16_384;
const RECORD_HEADER: u64 = 22;
const FRAME_HEADER: u64 = 9;
/// The HEADERS and DATA frames of HTTP/3: a type each, lengths of 2 and 4 bytes.
const HTTP3_FRAMES: u64 = 8;

struct Lognormal {
    mean: f64,
    deviation: f64,
    least: f64,
    most: f64,
}

impl Lognormal {
    fn draw(&self, random: &mut Stream) -> u64 {
        loop {
            let size = random.lognormal(self.mean, self.deviation);
            if (self.least..=self.most).contains(&size) {
                return size as u64;
            }
        }
    }
}

/// A web user and the browser, without their connections: the caller opens them and gives them numbers.
#[derive(Debug)]
pub struct Session {
    /// Response times of whole pages.
    pub responses: Vec<Duration>,
    /// The end of each of those pages.
    pub ends: Vec<Instant>,
    /// Response times of the main objects of pages.
    pub mains: Vec<Duration>,
    /// Pages requested.
    pub pages: u64,
    /// Objects that arrived completely.
    pub objects: u64,
    model: Arc<Web>,
    random: Stream,
    step: Step,
    page_began: Instant,
    /// The sizes of the objects to request, the last first.
    wanted: Vec<u64>,
    connections: Connections,
    /// The end of a reading or parsing time.
    timer: Option<Instant>,
}

/// The connections of a browser.
#[derive(Debug, Default)]
struct Connections {
    /// Open connections without a request.
    idle: Vec<u32>,
    /// The connection of each object that is requested.
    busy: Vec<u32>,
    /// Connections whose handshake of TLS is not over.
    securing: Vec<u32>,
    /// Connections whose handshake of TLS is over, before their first request.
    fresh: Vec<u32>,
    /// The connection that carries all objects.
    shared: Option<u32>,
    /// The latest request is the ClientHello of a connection.
    says_hello: bool,
}

impl Connections {
    /// Forgets `connection`. Returns the number of objects that it carried.
    fn forget(&mut self, connection: u32) -> usize {
        let before = self.busy.len() + self.securing.len();
        for list in [&mut self.idle, &mut self.busy, &mut self.securing, &mut self.fresh] {
            list.retain(|other| *other != connection);
        }
        self.shared = self.shared.filter(|shared| *shared != connection);
        before - self.busy.len() - self.securing.len()
    }

    /// Takes the connections without a request.
    fn take_idle(&mut self) -> Vec<u32> {
        let mut open = std::mem::take(&mut self.idle);
        let shared = self.shared.filter(|shared| !self.busy.contains(shared) && !self.securing.contains(shared));
        if shared.is_some() {
            self.shared = None;
        }
        open.extend(shared);
        self.fresh.retain(|connection| !open.contains(connection));
        open
    }

    /// Takes all open connections.
    fn take_all(&mut self) -> Vec<u32> {
        let mut open = std::mem::take(&mut self.idle);
        open.append(&mut self.busy);
        open.append(&mut self.securing);
        open.extend(self.shared.take());
        // One connection may carry several objects. The order of the others stays.
        let mut seen = std::collections::BTreeSet::new();
        open.retain(|connection| seen.insert(*connection));
        self.fresh.clear();
        open
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// The user reads, or has not begun.
    Reading,
    /// The main object is requested.
    Main,
    /// The browser parses the main object.
    Parsing,
    /// The embedded objects are requested.
    Embedded,
    /// The user has stopped.
    Stopped,
}

impl Session {
    /// A user who has not begun. Equal streams draw equal pages.
    #[must_use]
    pub fn new(model: &Arc<Web>, random: Stream) -> Self {
        Self {
            responses: Vec::new(),
            ends: Vec::new(),
            mains: Vec::new(),
            pages: 0,
            objects: 0,
            model: Arc::clone(model),
            random,
            step: Step::Reading,
            page_began: Instant::ZERO,
            wanted: Vec::new(),
            connections: Connections::default(),
            timer: None,
        }
    }

    /// The connection for the next request: `Some(None)` for a new one; `None` if there is none at present.
    fn next_connection(&mut self) -> Option<Option<u32>> {
        let Connections { idle, busy, securing, shared, .. } = &mut self.connections;
        if self.model.http.multiplexes() {
            return match *shared {
                Some(connection) => (!securing.contains(&connection)).then_some(Some(connection)),
                None => Some(None),
            };
        }
        if let Some(connection) = idle.pop() {
            return Some(Some(connection));
        }
        // A handshake of TLS for each object, and no more.
        let free = busy.len() + securing.len() < self.model.connections as usize;
        (free && securing.len() < self.wanted.len()).then_some(None)
    }

    /// Bytes of an object, or of a request, with the headers of frames and records.
    fn framed(&self, bytes: u64) -> u64 {
        let fragments = |bytes: u64| bytes.div_ceil(FRAGMENT);
        let framed = match self.model.http {
            Http::One0 | Http::One1 => bytes,
            Http::Two => bytes + FRAME_HEADER * (1 + fragments(bytes)),
            Http::Three => bytes + HTTP3_FRAMES,
        };
        if self.model.tls { framed + RECORD_HEADER * fragments(framed) } else { framed }
    }

    fn go_on(&mut self, now: Instant) {
        if !self.connections.busy.is_empty() || !self.wanted.is_empty() {
            return;
        }
        match self.step {
            Step::Main => {
                let (shape, least, most) = OBJECTS;
                let drawn = self.random.pareto(least, shape).min(most);
                let count = (drawn - least) as usize;
                self.wanted.extend((0..count).map(|_| EMBEDDED.draw(&mut self.random)));
                if count == 0 {
                    self.read(now);
                } else {
                    self.step = Step::Parsing;
                    self.timer = Some(now + self.random.exponential(self.model.parsing));
                }
            }
            Step::Embedded => self.read(now),
            Step::Reading | Step::Parsing | Step::Stopped => {}
        }
    }

    fn read(&mut self, now: Instant) {
        self.responses.push(now - self.page_began);
        self.ends.push(now);
        self.step = Step::Reading;
        self.timer = Some(now + self.random.exponential(self.model.reading));
    }
}

impl Browse for Session {
    /// The session starts, or a reading or parsing time ends.
    fn wake(&mut self, now: Instant) {
        match self.step {
            Step::Reading => {
                self.step = Step::Main;
                self.page_began = now;
                self.pages += 1;
                self.wanted.push(MAIN.draw(&mut self.random));
            }
            Step::Parsing => self.step = Step::Embedded,
            Step::Main | Step::Embedded | Step::Stopped => {}
        }
    }

    fn next_request(&mut self) -> Option<Request> {
        if !matches!(self.step, Step::Main | Step::Embedded) || self.wanted.is_empty() {
            return None;
        }
        let on = self.next_connection()?;
        // The handshake of QUIC is its own.
        self.connections.says_hello = on.is_none() && self.model.tls;
        if self.connections.says_hello {
            return Some(Request { request: CLIENT_HELLO, bytes: SERVER_FLIGHT, on });
        }
        let bytes = self.wanted.pop()?;
        let fresh = &mut self.connections.fresh;
        let finishes = on.and_then(|connection| fresh.iter().position(|other| *other == connection));
        let finished = finishes.map_or(0, |index| {
            fresh.remove(index);
            CLIENT_FINISHED
        });
        let request = self.framed(self.model.request.into()) + finished;
        Some(Request { request, bytes: self.framed(bytes), on })
    }

    fn asked(&mut self, connection: u32) {
        if self.model.http.multiplexes() {
            self.connections.shared = Some(connection);
        }
        if std::mem::take(&mut self.connections.says_hello) {
            self.connections.securing.push(connection);
        } else {
            self.connections.busy.push(connection);
        }
    }

    fn completed(&mut self, now: Instant, connection: u32) {
        let Connections { idle, busy, securing, fresh, .. } = &mut self.connections;
        let keeps = !self.model.http.multiplexes() && self.model.http != Http::One0;
        if let Some(index) = securing.iter().position(|other| *other == connection) {
            securing.remove(index);
            fresh.push(connection);
            if !self.model.http.multiplexes() {
                idle.push(connection);
            }
            return;
        }
        self.objects += 1;
        if let Some(index) = busy.iter().position(|other| *other == connection) {
            busy.remove(index);
        }
        if keeps {
            idle.push(connection);
        }
        if self.step == Step::Main {
            self.mains.push(now - self.page_began);
        }
        self.go_on(now);
    }

    /// The browser abandons the objects of a connection that has failed.
    fn broke(&mut self, now: Instant, connection: u32) {
        if self.connections.forget(connection) > 0 {
            self.go_on(now);
        }
    }

    fn take_timer(&mut self) -> Option<Instant> {
        self.timer.take()
    }

    /// The connections without a request at the end of a page, except those whose handshake is not over.
    fn take_unneeded(&mut self) -> Vec<u32> {
        match self.step {
            Step::Reading | Step::Stopped => self.connections.take_idle(),
            Step::Main | Step::Parsing | Step::Embedded => Vec::new(),
        }
    }

    /// The user stops and abandons the current page.
    fn stop(&mut self, _: Instant) -> Vec<u32> {
        self.step = Step::Stopped;
        self.wanted.clear();
        self.timer = None;
        self.connections.take_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(draw: impl Fn(&mut Stream) -> u64) -> f64 {
        let mut random = Stream::new(3, "web");
        (0..200_000).map(|_| draw(&mut random) as f64).sum::<f64>() / 200_000.0
    }

    /// The published means. For the number of objects that is the mean of the real number, before it is rounded down.
    #[test]
    fn sizes_have_the_published_means() {
        let main = mean(|random| MAIN.draw(random));
        assert!((main / 10_710.0 - 1.0).abs() < 0.03, "{main}");
        // The published mean, 7758, is that without truncation. Drawing sizes below 50 bytes (17 %) or above 2 MB anew
        // gives about 7900.
        let embedded = mean(|random| EMBEDDED.draw(random));
        assert!((7_000.0..9_000.0).contains(&embedded), "{embedded}");
        let objects = mean(|random| {
            let (shape, least, most) = OBJECTS;
            (1_000.0 * (random.pareto(least, shape).min(most) - least)) as u64
        });
        assert!((objects / 5_640.0 - 1.0).abs() < 0.02, "{objects}");
    }
}
