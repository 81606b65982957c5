//! A connection of lines, for a client that waits.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::error::Error;

use super::wire::{self, Answer, Greeting, Hex, LONGEST_LINE, VERSION};

/// Time for a connection, and for each answer on it.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The connection, and the start of a line that is not whole yet.
#[derive(Debug)]
pub(super) struct Control {
    stream: TcpStream,
    peer: SocketAddr,
    buffer: Vec<u8>,
}

impl Control {
    /// Connects, and reads the greeting.
    pub(super) fn connect(peer: SocketAddr) -> Result<(Self, Hex<16>), Error> {
        let what = || format!("connecting to {peer}");
        let stream = TcpStream::connect_timeout(&peer, PATIENCE).map_err(Error::io(what()))?;
        Self::over(stream, peer)
    }

    /// Reads the greeting over a connection that is set up.
    pub(super) fn over(stream: TcpStream, peer: SocketAddr) -> Result<(Self, Hex<16>), Error> {
        stream.set_nodelay(true).map_err(Error::io(format!("connecting to {peer}")))?;
        stream.set_write_timeout(Some(4 * PATIENCE)).map_err(Error::io(format!("connecting to {peer}")))?;
        let mut control = Self { stream, peer, buffer: Vec::new() };
        let line = control.line(Instant::now() + PATIENCE).map_err(|error| match error {
            // Of a server of another kind.
            Error::Ended { what, .. } => control.protocol(&what),
            other => other,
        })?;
        let line = line.ok_or_else(|| control.protocol("no greeting: it is no `lastmile measure --serve`"))?;
        match wire::read::<Greeting>(&line) {
            Ok(Greeting { lastmile_measure: VERSION, challenge }) => Ok((control, challenge)),
            Ok(Greeting { lastmile_measure, .. }) => {
                Err(control
                    .protocol(&format!("its protocol has version {lastmile_measure}, and this program {VERSION}")))
            }
            Err(_) => Err(control.protocol("it is no `lastmile measure --serve`")),
        }
    }

    /// Sends a message.
    pub(super) fn send(&mut self, message: &impl Serialize) -> Result<(), Error> {
        self.stream.write_all(&wire::line(message)).map_err(|error| self.failed("sending to", error))
    }

    /// A connection that is closed or reset is a server that has ended: a session has no second one.
    fn failed(&self, doing: &str, error: io::Error) -> Error {
        match error.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => self.ended(),
            _ => Error::io(format!("{doing} {}", self.peer))(error),
        }
    }

    fn ended(&self) -> Error {
        Error::Ended { peer: self.peer.to_string(), what: "it closed the connection".to_owned() }
    }

    /// The next answer. A refusal is an error.
    pub(super) fn answer(&mut self, patience: Duration) -> Result<Answer, Error> {
        match self.next(patience)? {
            Some(Answer::Refused { reason }) => Err(Error::Refused { peer: self.peer.to_string(), reason }),
            Some(answer) => Ok(answer),
            None => {
                Err(self.protocol(&format!("no answer for {} s: the server or the path is gone", patience.as_secs())))
            }
        }
    }

    /// The next answer, refusals included; `None` if none comes in time.
    pub(super) fn next(&mut self, patience: Duration) -> Result<Option<Answer>, Error> {
        let Some(line) = self.line(Instant::now() + patience)? else { return Ok(None) };
        wire::read(&line).map(Some).map_err(|error| self.protocol(&error))
    }

    fn line(&mut self, end: Instant) -> Result<Option<Vec<u8>>, Error> {
        let mut seen = 0;
        loop {
            if let Some(at) = self.buffer[seen..].iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(seen + at + 1);
                return Ok(Some(std::mem::replace(&mut self.buffer, rest)));
            }
            seen = self.buffer.len();
            if seen > LONGEST_LINE {
                return Err(self.protocol("a line is longer than any of the protocol"));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.stream.set_read_timeout(Some(left)).map_err(|error| self.failed("receiving from", error))?;
            let mut block = [0; 16 << 10];
            match self.stream.read(&mut block) {
                Ok(0) => return Err(self.ended()),
                Ok(len) => self.buffer.extend_from_slice(&block[..len]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(self.failed("receiving from", error)),
            }
        }
    }

    /// The connection for data, once all lines are over. Bytes that came behind the last line belong
    /// to it.
    pub(super) fn into_stream(self) -> (TcpStream, Vec<u8>) {
        (self.stream, self.buffer)
    }

    pub(super) fn protocol(&self, what: &str) -> Error {
        Error::Protocol { peer: self.peer.to_string(), what: what.to_owned() }
    }

    pub(super) fn unexpected(&self, answer: &Answer, right: &str) -> Error {
        self.protocol(&format!("it answers {answer:?} instead of {right}"))
    }
}
