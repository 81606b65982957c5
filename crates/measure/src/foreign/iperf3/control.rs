//! The control connection: messages in and out, with limits of time and size.

use std::net::TcpStream;
use std::time::Duration;

use super::protocol::{self, COOKIE_LEN, MAX_JSON_LEN, State};
use crate::error::Error;
use crate::foreign::wire::{self, Halt, Patience};
use crate::load::Stop;

/// The time for which the client waits for a message. A message passes the queue that the load has filled: 206 kB at
/// 128 kbit/s last 13 s.
const PATIENCE: Duration = Duration::from_secs(20);

/// A control connection.
pub(super) struct Control<'a> {
    stream: TcpStream,
    /// Name and address of the server, for errors.
    peer: String,
    /// Ends a wait; `None` once the test has ended and its results are awaited.
    stop: Option<&'a Stop>,
}

impl<'a> Control<'a> {
    /// Takes a new connection and sends the cookie.
    pub(super) fn new(
        stream: TcpStream,
        peer: String,
        cookie: &[u8; COOKIE_LEN],
        stop: &'a Stop,
    ) -> Result<Self, Halt> {
        stream.set_nodelay(true).map_err(Error::io(format!("{peer}: setting TCP_NODELAY")))?;
        let control = Self { stream, peer, stop: Some(stop) };
        control.write(cookie)?;
        Ok(control)
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// From here on a request to end does not end a wait: the test has ended, and its results are awaited.
    pub(super) fn finish(&mut self) {
        self.stop = None;
    }

    fn patience(&self) -> Patience<'a> {
        Patience::new(PATIENCE, self.stop)
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Halt> {
        wire::write_all(&self.stream, bytes, self.patience(), &|| format!("{}: writing to the server", self.peer))
    }

    fn read(&self, bytes: &mut [u8], awaited: &str) -> Result<(), Halt> {
        let what = || format!("{}: waiting for {awaited}", self.peer);
        wire::read_exact(&self.stream, bytes, self.patience(), &what)
    }

    /// Sends a message without waiting for anything but space.
    pub(super) fn send(&self, state: State) -> Result<(), Halt> {
        self.write(&[state.byte()])
    }

    /// Sends JSON.
    pub(super) fn send_json(&self, text: &str) -> Result<(), Halt> {
        let len = u32::try_from(text.len()).map_err(|_| self.protocol("the client's JSON is too long".to_owned()))?;
        self.write(&[&len.to_be_bytes(), text.as_bytes()].concat())
    }

    /// Waits for JSON.
    pub(super) fn read_json(&self) -> Result<Vec<u8>, Halt> {
        let mut len = [0; 4];
        self.read(&mut len, "the length of its results")?;
        let len = u32::from_be_bytes(len) as usize;
        if len == 0 || len > MAX_JSON_LEN {
            return Err(self
                .protocol(format!("announces {len} bytes of results; 1 to {MAX_JSON_LEN} are right"))
                .into());
        }
        let mut text = vec![0; len];
        self.read(&mut text, "its results")?;
        Ok(text)
    }

    /// Waits for a message, which must be `wanted`.
    pub(super) fn expect(&self, wanted: State) -> Result<(), Halt> {
        let mut byte = [0];
        self.read(&mut byte, &format!("the message {wanted:?}"))?;
        match State::parse(byte[0]) {
            Some(state) if state == wanted => Ok(()),
            Some(State::AccessDenied) => Err(self.refused("it is busy with the test of another client".to_owned())),
            Some(State::ServerTerminate) => {
                Err(Error::Ended { peer: self.peer.clone(), what: "it has been stopped".to_owned() }.into())
            }
            Some(State::ServerError) => Err(self.server_error()?),
            Some(other) => Err(self.protocol(format!("sends {other:?}; {wanted:?} is right")).into()),
            None => {
                let text = format!("sends the message {}; {wanted:?} is right. Is it an iperf3 server?", byte[0]);
                Err(self.protocol(text).into())
            }
        }
    }

    /// The reason of a server for ending a test that runs: its message, or the end of the connection.
    pub(super) fn interruption(&self) -> Halt {
        match self.expect(State::TestEnd) {
            Err(Halt::Failed(Error::Io { .. })) => {
                let text = "closes the connection during the test; a server with a limit of rate or of time does so";
                self.protocol(text.to_owned()).into()
            }
            Err(halt) => halt,
            Ok(()) => self.refused("it has ended the test".to_owned()),
        }
    }

    /// The reason that follows [`State::ServerError`]: iperf3's number. That of the system, which may follow, is left.
    fn server_error(&self) -> Result<Halt, Halt> {
        let mut code = [0; 4];
        self.read(&mut code, "its reason")?;
        Ok(self.refused(protocol::reason(i32::from_be_bytes(code))))
    }

    fn refused(&self, reason: String) -> Halt {
        Error::Refused { peer: self.peer.clone(), reason }.into()
    }

    pub(super) fn protocol(&self, what: String) -> Error {
        Error::Protocol { peer: self.peer.clone(), what }
    }
}
