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
//! Differs: a browser opens at most 6 connections at a time, as today's browsers do; the publications have 4
//! without and 1 with persistent connections. Connections close at the end of a page, since servers close
//! idle connections within a reading time; the publications do not say. There are no DNS queries.
//!
//! The response time of a page is the time from its request to the last byte of its last object. Each session
//! draws from its own random stream, in an order that does not depend on the network. Cost: one draw an
//! object.

use std::sync::Arc;

use lastmile_queueing::random::Stream;
use lastmile_units::{Duration, Instant};

use lastmile_model::Web;

use super::client::{Browse, Request};

const MAIN: Lognormal = Lognormal { mean: 8.35, deviation: 1.37, least: 100.0, most: 2e6 };
const EMBEDDED: Lognormal = Lognormal { mean: 6.17, deviation: 2.36, least: 50.0, most: 2e6 };
/// Pareto: shape, minimum, maximum. The minimum is subtracted from the drawn value.
const OBJECTS: (f64, f64, f64) = (1.1, 2.0, 55.0);

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
    /// Open connections without a request.
    idle: Vec<u32>,
    /// Connections that carry an object, or its request.
    busy: Vec<u32>,
    /// The end of a reading or parsing time.
    timer: Option<Instant>,
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
            pages: 0,
            objects: 0,
            model: Arc::clone(model),
            random,
            step: Step::Reading,
            page_began: Instant::ZERO,
            wanted: Vec::new(),
            idle: Vec::new(),
            busy: Vec::new(),
            timer: None,
        }
    }

    fn go_on(&mut self, now: Instant) {
        if !self.busy.is_empty() || !self.wanted.is_empty() {
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

    /// The next object to request at once, if a connection is idle or may be opened.
    fn next_request(&mut self) -> Option<Request> {
        if !matches!(self.step, Step::Main | Step::Embedded) {
            return None;
        }
        let on = self.idle.pop();
        if on.is_none() && self.busy.len() >= self.model.connections as usize {
            return None;
        }
        let Some(bytes) = self.wanted.pop() else {
            self.idle.extend(on);
            return None;
        };
        Some(Request { request: self.model.request, bytes, on })
    }

    /// The object of [`next_request`](Self::next_request) is requested over `connection`.
    fn asked(&mut self, connection: u32) {
        self.busy.push(connection);
    }

    /// An object has arrived completely over `connection`.
    fn completed(&mut self, now: Instant, connection: u32) {
        self.objects += 1;
        self.busy.retain(|busy| *busy != connection);
        if self.model.persistent {
            self.idle.push(connection);
        }
        self.go_on(now);
    }

    /// `connection` has failed. The browser abandons its object.
    fn broke(&mut self, now: Instant, connection: u32) {
        self.idle.retain(|idle| *idle != connection);
        if let Some(index) = self.busy.iter().position(|busy| *busy == connection) {
            self.busy.remove(index);
            self.go_on(now);
        }
    }

    /// Takes the time at which [`wake`](Self::wake) is due.
    fn take_timer(&mut self) -> Option<Instant> {
        self.timer.take()
    }

    /// Takes the connections to close: the idle ones at the end of a page.
    fn take_unneeded(&mut self) -> Vec<u32> {
        match self.step {
            Step::Reading | Step::Stopped => std::mem::take(&mut self.idle),
            Step::Main | Step::Parsing | Step::Embedded => Vec::new(),
        }
    }

    /// The user stops and abandons the current page. Returns the connections to close.
    fn stop(&mut self, _: Instant) -> Vec<u32> {
        self.step = Step::Stopped;
        self.wanted.clear();
        self.timer = None;
        let mut open = std::mem::take(&mut self.idle);
        open.append(&mut self.busy);
        open
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
