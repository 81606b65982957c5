//! The streams of a load, one thread each.
//!
//! No data flow upward before each stream is accepted or has failed, and a server holds downward data back until then,
//! both for at most [`GATHERING`]: the first lines of a stream would wait, or be lost, behind the load of the others. A
//! stream that ends early is told, and the load ends with the last one.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, SockRef, Socket, Type};

use crate::congestion::{self, Names};
use crate::error::Error;
use crate::holes::Payload;
use crate::load::{Direction, Load, Stop, Transferred, Used};
use crate::train::Way;

use super::control::{Control, PATIENCE};
use super::key::Key;
use super::wire::{Answer, GATHERING, Hex, Opening, Request};
use super::{Client, data};

/// Longest time that a thread does not look for the end.
const LOOKING: Duration = Duration::from_millis(50);

/// A load without a byte for this long has lost its server or its path.
const SILENCE: Duration = Duration::from_secs(8);

/// Bytes of one write, and of one read.
const WRITTEN: usize = 16 << 10;
const READ: usize = 256 << 10;

/// TCP connections to a server of lastmile.
#[derive(Debug)]
pub struct Filling<'a> {
    client: &'a mut Client,
    streams: u32,
    congestion: Option<String>,
    /// Faults of the last run that did not end it.
    warnings: Vec<String>,
    /// Of the senders of the last run.
    used: Used,
}

impl Client {
    /// The load of this session.
    pub fn filling(&mut self, streams: u32, congestion: Option<String>) -> Filling<'_> {
        Filling::new(self, streams, congestion)
    }
}

impl<'a> Filling<'a> {
    fn new(client: &'a mut Client, streams: u32, congestion: Option<String>) -> Self {
        Self { client, streams, congestion, warnings: Vec::new(), used: Used::default() }
    }

    /// Begins a load at the server, and returns when it had begun at the latest.
    fn begin(&mut self, direction: Direction, transferred: &Transferred) -> Result<Duration, Error> {
        let request = Request::Load { direction, streams: self.streams, congestion: self.congestion.clone() };
        let control = &mut self.client.control;
        control.send(&request)?;
        loop {
            match control.answer(PATIENCE)? {
                Answer::Ready => return Ok(transferred.elapsed()),
                // Of the load before, whose time the server limited while the client ended it.
                Answer::Stopped | Answer::Received { .. } => {}
                other => return Err(control.unexpected(&other, "ready")),
            }
        }
    }

    /// Waits for the end of the load, and counts the bytes that the server reports. Returns why the first stream ended
    /// if none is left.
    fn attend(
        &mut self,
        reports: &mut Reports<'_>,
        stop: &Stop,
        ended: &mut Ended,
        together: &Together,
    ) -> Result<Option<Error>, Error> {
        let moved = |reports: &Reports<'_>| (reports.transferred.totals(), together.written.load(Ordering::Relaxed));
        let mut alive = (moved(reports), Instant::now());
        while !stop.is_requested() {
            match self.client.control.next(LOOKING)? {
                Some(Answer::Received { bytes, at_us }) => reports.count(bytes, at_us),
                Some(Answer::Stopped) => {
                    let load = self.client.granted.load.as_secs();
                    return Err(self.client.control.protocol(&format!("its limit of {load} s ended the load")));
                }
                Some(other) => return Err(self.client.control.unexpected(&other, "a report of received bytes")),
                None => {}
            }
            if let Some(reason) = ended.look(reports.transferred.elapsed()) {
                return Ok(Some(reason));
            }
            if moved(reports) != alive.0 || !together.is_begun() {
                alive = (moved(reports), Instant::now());
            } else if alive.1.elapsed() > SILENCE {
                let what = format!("not one byte for {} s: the server or the path is gone", SILENCE.as_secs());
                return Err(self.client.control.protocol(&what));
            }
        }
        Ok(None)
    }

    /// Ends the load at the server, and counts the reports until then.
    fn end(&mut self, direction: Direction, reports: &mut Reports<'_>) -> Result<(), Error> {
        if self.client.tells_congestion && direction != Direction::Upload {
            self.client.control.send(&Request::Sending)?;
        }
        self.client.control.send(&Request::Stop)?;
        let begin = Instant::now();
        while begin.elapsed() < 2 * PATIENCE {
            match self.client.control.answer(2 * PATIENCE)? {
                Answer::Stopped => return Ok(()),
                Answer::Received { bytes, at_us } => reports.count(bytes, at_us),
                Answer::Sending { congestion } => self.used.down = congestion::joined(&congestion),
                _ => {}
            }
        }
        Err(self.client.control.protocol("it does not end the load"))
    }
}

/// The server's reports of the bytes of an upload.
struct Reports<'a> {
    transferred: &'a Transferred,
    /// When the load had begun at the latest.
    begun: Duration,
    /// A time of the server on the clock of this end, and on its own.
    zero: Option<(Duration, Duration)>,
    counted: u64,
}

impl Reports<'_> {
    fn count(&mut self, bytes: u64, at_us: u64) {
        let at = Duration::from_micros(at_us);
        // The server counts time from the start of the load, so a first report that is late does not shift all others.
        let (here, there) = *self.zero.get_or_insert((self.transferred.elapsed().min(self.begun + at), at));
        let new = bytes.saturating_sub(self.counted);
        self.transferred.add_up_at(new, here + at.saturating_sub(there));
        self.counted = self.counted.max(bytes);
    }
}

/// The streams that have ended before their load.
struct Ended {
    failed: mpsc::Receiver<Error>,
    streams: usize,
    count: usize,
    /// When the first one ended, and why.
    first: Option<(Duration, Error)>,
}

impl Ended {
    /// Looks for streams that have ended by `now`; returns why the first one did once none is left.
    fn look(&mut self, now: Duration) -> Option<Error> {
        while let Ok(error) = self.failed.try_recv() {
            self.count += 1;
            self.first.get_or_insert((now, error));
        }
        (self.count >= self.streams).then(|| self.first.take().map(|(_, error)| error)).flatten()
    }

    /// The streams that ended while others ran on, in a sentence.
    fn warning(&self) -> Option<String> {
        let (at, error) = self.first.as_ref()?;
        let (count, of, at_s) = (self.count, self.streams, at.as_secs_f64());
        Some(format!("{count} of {of} streams ended early, the first after {at_s:.1} s: {error}"))
    }
}

/// The common start of the streams of a load.
struct Together {
    /// End of the wait.
    end: Instant,
    /// Streams that are neither accepted nor failed.
    missing: Mutex<usize>,
    changed: Condvar,
    /// Bytes that the kernel has taken: a sign of life where reports of the server are late.
    written: AtomicU64,
}

impl Together {
    fn new(streams: usize) -> Self {
        let end = Instant::now() + GATHERING;
        Self { end, missing: Mutex::new(streams), changed: Condvar::new(), written: AtomicU64::new(0) }
    }

    /// A stream is accepted, or has failed.
    fn arrive(&self) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        *missing = missing.saturating_sub(1);
        self.changed.notify_all();
    }

    fn is_begun(&self) -> bool {
        Instant::now() >= self.end || *self.missing.lock().unwrap_or_else(PoisonError::into_inner) == 0
    }

    /// Waits until every stream has arrived, the wait has been long enough, or the load is over.
    fn wait(&self, over: &Stop) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        while *missing > 0 && Instant::now() < self.end && !over.is_requested() {
            (missing, _) = self.changed.wait_timeout(missing, LOOKING).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Load for Filling<'_> {
    fn peer(&self) -> String {
        format!("lastmile {}", self.client.address)
    }

    fn can(&self, _direction: Direction) -> bool {
        true
    }

    fn streams(&self) -> u32 {
        self.streams
    }

    fn limit_bps(&self) -> Option<u64> {
        Some(self.client.granted.rate_bps)
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    fn congestion(&self) -> Used {
        self.used.clone()
    }

    fn run(&mut self, direction: Direction, transferred: &Transferred, stop: &Stop) -> Result<(), Error> {
        self.warnings.clear();
        self.used = Used::default();
        let begun = self.begin(direction, transferred)?;
        let ways: &[Way] = match direction {
            Direction::Download => &[Way::Down],
            Direction::Upload => &[Way::Up],
            Direction::Both => &[Way::Down, Way::Up],
        };
        let streams = ways.len() * self.streams as usize;
        let (over, together) = (Stop::default(), Together::new(streams));
        let (sender, failed) = mpsc::channel();
        let mut ended = Ended { failed, streams, count: 0, first: None };
        let mut reports = Reports { transferred, begun, zero: None, counted: 0 };
        let (address, session, key) = (self.client.address, self.client.session, self.client.key.clone());
        let (congestion, names) = (self.congestion.clone(), Names::default());
        let attended = thread::scope(|scope| {
            for way in ways.iter().flat_map(|way| std::iter::repeat_n(*way, self.streams as usize)) {
                let (sender, over, key, together, names) = (sender.clone(), &over, &key, &together, &names);
                let congestion = congestion.as_deref();
                scope.spawn(move || {
                    let stream = Stream { address, session, key, congestion, names };
                    if let Err(error) = stream.run(way, transferred, over, together) {
                        // At the end the server closes its streams, perhaps first.
                        let _ = sender.send(error);
                    }
                });
            }
            let attended = self.attend(&mut reports, stop, &mut ended, &together);
            over.request();
            attended
        });
        // A server that is gone cannot end its load.
        let all_ended = attended?;
        self.warnings.extend(ended.warning());
        self.used.up = congestion::joined(&names.all());
        match (all_ended, self.end(direction, &mut reports)) {
            // The streams of a server that is gone may end before its session.
            (Some(reason), Err(error)) => Err(if error.is_end() { error } else { reason }),
            (Some(reason), Ok(())) => Err(reason),
            (None, done) => done,
        }
    }
}

/// The arguments of each stream.
struct Stream<'a> {
    address: SocketAddr,
    session: Hex<8>,
    key: &'a Key,
    congestion: Option<&'a str>,
    /// Those of the sockets that send.
    names: &'a Names,
}

impl Stream<'_> {
    fn run(&self, way: Way, transferred: &Transferred, over: &Stop, together: &Together) -> Result<(), Error> {
        let opened = self.open(way);
        together.arrive();
        let (stream, early) = opened?;
        stream.set_read_timeout(Some(LOOKING)).map_err(Error::io("a stream"))?;
        stream.set_write_timeout(Some(LOOKING)).map_err(Error::io("a stream"))?;
        match way {
            // A server that does not wait for the other streams sends at once.
            Way::Down => {
                transferred.add_down(early.len() as u64);
                self.receive(stream, transferred, over)
            }
            Way::Up => {
                together.wait(over);
                self.send(stream, over, &together.written)
            }
        }
    }

    fn open(&self, way: Way) -> Result<(TcpStream, Vec<u8>), Error> {
        let what = || format!("connecting to {}", self.address);
        let socket = Socket::new(Domain::for_address(self.address), Type::STREAM, None).map_err(Error::io(what()))?;
        if let Some(name) = self.congestion {
            let choosing = format!("choosing the congestion control {name}");
            socket.set_tcp_congestion(name.as_bytes()).map_err(Error::io(choosing))?;
        }
        if way == Way::Up {
            self.names.note(&socket);
        }
        socket.connect_timeout(&self.address.into(), PATIENCE).map_err(Error::io(what()))?;
        let (mut control, challenge) = Control::over(socket.into(), self.address)?;
        let code = self.key.code("stream", &[&challenge.0, &self.session.0]);
        control.send(&Opening::Stream { session: self.session, way, code })?;
        match control.answer(PATIENCE)? {
            Answer::Ready => {}
            other => return Err(control.unexpected(&other, "ready")),
        }
        let (stream, early) = control.into_stream();
        // The kernel drops the data that it holds at the end, so that the line is free at once.
        let socket = SockRef::from(&stream);
        socket.set_linger(Some(Duration::ZERO)).map_err(Error::io(what()))?;
        data::receive_as_a_transfer(&socket).map_err(Error::io(what()))?;
        Ok((stream, early))
    }

    fn receive(&self, mut stream: TcpStream, transferred: &Transferred, over: &Stop) -> Result<(), Error> {
        let (mut buffer, mut payload) = (vec![0; READ], Payload::default());
        while !over.is_requested() {
            let len = match stream.read(&mut buffer) {
                Ok(0) => return Err(self.closed()),
                Ok(len) => len,
                Err(error) if is_wait(&error) => 0,
                Err(error) => return Err(Error::io(format!("receiving from {}", self.address))(error)),
            };
            transferred.add_down(payload.take(&stream, len));
        }
        Ok(())
    }

    fn send(&self, mut stream: TcpStream, over: &Stop, written: &AtomicU64) -> Result<(), Error> {
        let block = data::block(WRITTEN);
        while !over.is_requested() {
            match stream.write(&block) {
                Ok(0) => return Err(self.closed()),
                Ok(len) => {
                    written.fetch_add(len as u64, Ordering::Relaxed);
                }
                Err(error) if is_wait(&error) => {}
                Err(error) => return Err(Error::io(format!("sending to {}", self.address))(error)),
            }
        }
        Ok(())
    }

    fn closed(&self) -> Error {
        Error::Protocol { peer: self.address.to_string(), what: "it closed a stream".to_owned() }
    }
}

fn is_wait(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests;
