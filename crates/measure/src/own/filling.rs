//! The streams of a load, one thread each.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, SockRef, Socket, Type};

use crate::error::Error;
use crate::load::{Direction, Load, Stop, Transferred};
use crate::train::Way;

use super::control::{Control, PATIENCE};
use super::key::Key;
use super::wire::{Answer, Hex, Opening, Request};
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
}

impl Client {
    /// The load of this session.
    pub fn filling(&mut self, streams: u32, congestion: Option<String>) -> Filling<'_> {
        Filling::new(self, streams, congestion)
    }
}

impl<'a> Filling<'a> {
    fn new(client: &'a mut Client, streams: u32, congestion: Option<String>) -> Self {
        Self { client, streams, congestion }
    }

    /// Waits for the end of the load, and counts the bytes that the server reports.
    fn attend(&mut self, transferred: &Transferred, stop: &Stop, failed: &mpsc::Receiver<Error>) -> Result<(), Error> {
        // Zero of the server's reports on this clock.
        let mut first: Option<(Duration, Duration)> = None;
        let mut counted = 0;
        let mut alive = (transferred.totals(), Instant::now());
        while !stop.is_requested() {
            match self.client.control.next(LOOKING)? {
                Some(Answer::Received { bytes, at_us }) => {
                    let at = Duration::from_micros(at_us);
                    let (here, there) = *first.get_or_insert((transferred.elapsed(), at));
                    transferred.add_up_at(bytes.saturating_sub(counted), here + at.saturating_sub(there));
                    counted = bytes;
                }
                Some(Answer::Stopped) => {
                    let load = self.client.granted.load.as_secs();
                    return Err(self.client.control.protocol(&format!("its limit of {load} s ended the load")));
                }
                Some(other) => return Err(self.client.control.unexpected(&other, "a report of received bytes")),
                None => {}
            }
            if let Ok(error) = failed.try_recv() {
                return Err(error);
            }
            if transferred.totals() != alive.0 {
                alive = (transferred.totals(), Instant::now());
            } else if alive.1.elapsed() > SILENCE {
                let what = format!("not one byte for {} s: the server or the path is gone", SILENCE.as_secs());
                return Err(self.client.control.protocol(&what));
            }
        }
        Ok(())
    }

    /// Ends the load at the server.
    fn end(&mut self) -> Result<(), Error> {
        self.client.control.send(&Request::Stop)?;
        let begin = Instant::now();
        // Reports that were sent before.
        while begin.elapsed() < 2 * PATIENCE {
            if let Answer::Stopped = self.client.control.answer(2 * PATIENCE)? {
                return Ok(());
            }
        }
        Err(self.client.control.protocol("it does not end the load"))
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

    fn run(&mut self, direction: Direction, transferred: &Transferred, stop: &Stop) -> Result<(), Error> {
        let request = Request::Load { direction, streams: self.streams, congestion: self.congestion.clone() };
        self.client.control.send(&request)?;
        match self.client.control.answer(PATIENCE)? {
            Answer::Ready => {}
            other => return Err(self.client.control.unexpected(&other, "ready")),
        }
        let ways: &[Way] = match direction {
            Direction::Download => &[Way::Down],
            Direction::Upload => &[Way::Up],
            Direction::Both => &[Way::Down, Way::Up],
        };
        let over = Stop::default();
        let (sender, failed) = mpsc::channel();
        let (address, session, key) = (self.client.address, self.client.session, self.client.key.clone());
        let congestion = self.congestion.clone();
        let attended = thread::scope(|scope| {
            for way in ways.iter().flat_map(|way| std::iter::repeat_n(*way, self.streams as usize)) {
                let (sender, over, key) = (sender.clone(), &over, &key);
                let congestion = congestion.as_deref();
                scope.spawn(move || {
                    let stream = Stream { address, session, key, congestion };
                    if let Err(error) = stream.run(way, transferred, over) {
                        // At the end the server closes its streams, perhaps first.
                        let _ = sender.send(error);
                    }
                });
            }
            let attended = self.attend(transferred, stop, &failed);
            over.request();
            attended
        });
        // A server that is gone cannot end its load.
        attended.and_then(|()| self.end())
    }
}

/// The arguments of each stream.
struct Stream<'a> {
    address: SocketAddr,
    session: Hex<8>,
    key: &'a Key,
    congestion: Option<&'a str>,
}

impl Stream<'_> {
    fn run(&self, way: Way, transferred: &Transferred, over: &Stop) -> Result<(), Error> {
        let (stream, early) = self.open(way)?;
        stream.set_read_timeout(Some(LOOKING)).map_err(Error::io("a stream"))?;
        stream.set_write_timeout(Some(LOOKING)).map_err(Error::io("a stream"))?;
        match way {
            Way::Down => {
                transferred.add_down(early.len() as u64);
                self.receive(stream, transferred, over)
            }
            Way::Up => self.send(stream, over),
        }
    }

    fn open(&self, way: Way) -> Result<(TcpStream, Vec<u8>), Error> {
        let what = || format!("connecting to {}", self.address);
        let socket = Socket::new(Domain::for_address(self.address), Type::STREAM, None).map_err(Error::io(what()))?;
        if let Some(name) = self.congestion {
            let choosing = format!("choosing the congestion control {name}");
            socket.set_tcp_congestion(name.as_bytes()).map_err(Error::io(choosing))?;
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
        let mut buffer = vec![0; READ];
        while !over.is_requested() {
            match stream.read(&mut buffer) {
                Ok(0) => return Err(self.closed()),
                Ok(len) => transferred.add_down(len as u64),
                Err(error) if is_wait(&error) => {}
                Err(error) => return Err(Error::io(format!("receiving from {}", self.address))(error)),
            }
        }
        Ok(())
    }

    fn send(&self, mut stream: TcpStream, over: &Stop) -> Result<(), Error> {
        let block = data::block(WRITTEN);
        while !over.is_requested() {
            match stream.write(&block) {
                Ok(0) => return Err(self.closed()),
                Ok(_) => {}
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
