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
//! objects. Browsers show an error page when a connection fails, and the user loads the page again; this one requests
//! the objects of a failed connection again at once, so that the response time contains the failure. These are the
//! latest requests on that connection, as many as lack a response: over HTTP/3, others may have arrived.
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
    /// The objects that are requested, in the order of the requests: the connection and size of each.
    busy: Vec<(u32, u64)>,
    /// Connections whose handshake of TLS is not over.
    securing: Vec<u32>,
    /// Connections whose handshake of TLS is over, before their first request.
    fresh: Vec<u32>,
    /// The connection that carries all objects.
    shared: Option<u32>,
    /// The size of the object that the latest request is for; `None`: the request is the ClientHello of a connection.
    asks_for: Option<u64>,
}

impl Connections {
    /// Forgets `connection`. Returns the sizes of the objects that it was to carry, the latest request first.
    fn forget(&mut self, connection: u32) -> Vec<u64> {
        for list in [&mut self.idle, &mut self.securing, &mut self.fresh] {
            list.retain(|other| *other != connection);
        }
        self.shared = self.shared.filter(|shared| *shared != connection);
        let carried = self.busy.iter().rev().filter(|(other, _)| *other == connection).map(|(_, bytes)| *bytes);
        let carried = carried.collect();
        self.busy.retain(|(other, _)| *other != connection);
        carried
    }

    /// Whether `connection` has a request without a response.
    fn is_busy(&self, connection: u32) -> bool {
        self.busy.iter().any(|(other, _)| *other == connection)
    }

    /// Takes the connections without a request.
    fn take_idle(&mut self) -> Vec<u32> {
        let mut open = std::mem::take(&mut self.idle);
        let shared = self.shared.filter(|shared| !self.is_busy(*shared) && !self.securing.contains(shared));
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
        open.extend(self.busy.drain(..).map(|(connection, _)| connection));
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
        if on.is_none() && self.model.tls {
            self.connections.asks_for = None;
            return Some(Request { request: CLIENT_HELLO, bytes: SERVER_FLIGHT, on });
        }
        let bytes = self.wanted.pop()?;
        self.connections.asks_for = Some(bytes);
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
        match self.connections.asks_for.take() {
            Some(bytes) => self.connections.busy.push((connection, bytes)),
            None => self.connections.securing.push(connection),
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
        if let Some(index) = busy.iter().position(|(other, _)| *other == connection) {
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

    /// The browser requests the objects of a connection that has failed again.
    fn broke(&mut self, _: Instant, connection: u32) {
        self.wanted.extend(self.connections.forget(connection));
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

    fn at(s: u64) -> Instant {
        Instant::ZERO + Duration::from_s(s)
    }

    /// A user who requests the first page.
    fn session(http: Http, tls: bool) -> Session {
        let web = Web {
            transport: lastmile_model::Transport::Tcp(Arc::default()),
            http,
            tls,
            reading: Duration::from_s(2),
            parsing: Duration::from_ms(50),
            request: 350,
            connections: 1,
        };
        let mut session = Session::new(&Arc::new(web), Stream::new(1, "traffic web-0"));
        session.wake(at(0));
        session
    }

    /// The next object that is requested, by its size with headers; handshakes are carried out at once.
    fn object(session: &mut Session, connection: u32) -> Option<u64> {
        let request = session.next_request()?;
        let says_hello = request.request == CLIENT_HELLO;
        session.asked(connection);
        if !says_hello {
            return Some(request.bytes);
        }
        session.completed(at(0), connection);
        object(session, connection)
    }

    const VERSIONS: [(Http, bool); 5] =
        [(Http::One0, false), (Http::One1, false), (Http::One1, true), (Http::Two, true), (Http::Three, false)];

    #[test]
    fn a_main_object_whose_connection_broke_is_requested_again() {
        for (http, tls) in VERSIONS {
            let mut session = session(http, tls);
            let main = object(&mut session, 0);
            session.broke(at(100), 0);
            assert_eq!((session.mains.len(), session.responses.len(), session.take_timer()), (0, 0, None), "{http:?}");
            assert_eq!((object(&mut session, 1), object(&mut session, 1)), (main, None), "{http:?}");
            session.completed(at(200), 1);
            assert_eq!((&session.mains[..], session.objects), (&[Duration::from_s(200)][..], 1), "{http:?}");
        }
    }

    #[test]
    fn embedded_objects_whose_connection_broke_are_requested_again_in_their_order() {
        for (http, tls) in VERSIONS {
            let mut session = session(http, tls);
            object(&mut session, 0);
            session.completed(at(1), 0);
            session.wanted = vec![300, 200, 100];
            session.step = Step::Embedded;
            let sizes: Vec<u64> = std::iter::from_fn(|| object(&mut session, 0)).collect();
            session.completed(at(2), 0);
            session.broke(at(3), 0);
            let mut again = Vec::new();
            while session.step == Step::Embedded {
                again.extend(std::iter::from_fn(|| object(&mut session, 1)));
                session.completed(at(4), 1);
            }
            let expected = [100, 200, 300].map(|bytes| session.framed(bytes));
            let first = if http.multiplexes() { 3 } else { 1 };
            assert_eq!((&sizes[..], &again[..]), (&expected[..first], &expected[1..]), "{http:?}");
            assert_eq!((session.objects, session.responses.last()), (4, Some(&Duration::from_s(4))), "{http:?}");
        }
    }
}
