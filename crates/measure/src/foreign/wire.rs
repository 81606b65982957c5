//! Connections that give up in time: connecting, reading and writing with a limit, and an end on request.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use lastmile_live::sys::socket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::Error;
use crate::load::Stop;

/// Longest time between two looks at [`Stop`].
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// Why an exchange ended before its end.
#[derive(Debug)]
pub(super) enum Halt {
    /// The caller asked for it.
    Stopped,
    /// An error.
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A limit of time, and a request to end that holds before it. Without `stop`, time alone ends the wait.
#[derive(Clone, Copy)]
pub(super) struct Patience<'a> {
    until: Instant,
    stop: Option<&'a Stop>,
}

impl<'a> Patience<'a> {
    pub(super) fn new(limit: Duration, stop: Option<&'a Stop>) -> Self {
        Self { until: Instant::now() + limit, stop }
    }

    /// The next wait; an error once the time is over.
    fn wait(self) -> Result<Duration, Halt> {
        if self.stop.is_some_and(Stop::is_requested) {
            return Err(Halt::Stopped);
        }
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let late = io::Error::new(io::ErrorKind::TimedOut, "no answer in time");
            return Err(Error::io("waiting")(late).into());
        }
        Ok(left.min(LOOK))
    }
}

/// Waits at most `limit` for one of the events.
pub(super) fn poll_for(fds: &mut [PollFd<'_>], limit: Duration) -> io::Result<usize> {
    let limit = Timespec::try_from(limit).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    match poll(fds, Some(&limit)) {
        Err(rustix::io::Errno::INTR) => Ok(0),
        other => Ok(other?),
    }
}

/// Addresses of a host.
pub(super) fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, Error> {
    let found: Vec<_> =
        (host, port).to_socket_addrs().map_err(Error::io(format!("looking up the host `{host}`")))?.collect();
    if found.is_empty() { Err(Error::Unsupported(format!("the host `{host}` has no address"))) } else { Ok(found) }
}

/// The first address that accepts a connection, and the connection. It does not block.
pub(super) fn connect_any(addresses: &[SocketAddr], patience: Patience<'_>) -> Result<TcpStream, Halt> {
    let mut failed = None;
    for &address in addresses {
        match connect(address, patience, |_| Ok(())) {
            Err(Halt::Failed(error)) => failed = Some(error),
            other => return other,
        }
    }
    Err(failed.unwrap_or_else(|| Error::Unsupported("the host has no address".to_owned())).into())
}

/// A connection, with `prepare` called on the socket before its SYN. It does not block.
pub(super) fn connect(
    address: SocketAddr,
    patience: Patience<'_>,
    prepare: impl FnOnce(&TcpStream) -> io::Result<()>,
) -> Result<TcpStream, Halt> {
    let what = || format!("connecting to {address}");
    let stream = TcpStream::from(socket::open(address).map_err(Error::io(what()))?);
    prepare(&stream).map_err(Error::io(what()))?;
    socket::connect(stream.as_fd(), address).map_err(Error::io(what()))?;
    ready(&stream, PollFlags::OUT, patience, &what)?;
    match stream.take_error().map_err(Error::io(what()))? {
        Some(error) => Err(Error::io(what())(error).into()),
        None => Ok(stream),
    }
}

fn ready(stream: &TcpStream, flags: PollFlags, patience: Patience<'_>, what: &dyn Fn() -> String) -> Result<(), Halt> {
    loop {
        let left = patience.wait().map_err(|halt| renamed(halt, what))?;
        if poll_for(&mut [PollFd::new(stream, flags)], left).map_err(Error::io(what()))? > 0 {
            return Ok(());
        }
    }
}

/// A time-out with the attempted action in place of the mere wait.
fn renamed(halt: Halt, what: &dyn Fn() -> String) -> Halt {
    match halt {
        Halt::Failed(Error::Io { source, .. }) => Error::io(what())(source).into(),
        other => other,
    }
}

/// Fills `bytes` from a connection that does not block.
pub(super) fn read_exact(
    mut stream: &TcpStream,
    bytes: &mut [u8],
    patience: Patience<'_>,
    what: &dyn Fn() -> String,
) -> Result<(), Halt> {
    let mut filled = 0;
    while filled < bytes.len() {
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => {
                let closed = io::Error::new(io::ErrorKind::UnexpectedEof, "the other end closed the connection");
                return Err(Error::io(what())(closed).into());
            }
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready(stream, PollFlags::IN, patience, what)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io(what())(error).into()),
        }
    }
    Ok(())
}

/// Writes all of `bytes` to a connection that does not block.
pub(super) fn write_all(
    mut stream: &TcpStream,
    bytes: &[u8],
    patience: Patience<'_>,
    what: &dyn Fn() -> String,
) -> Result<(), Halt> {
    let mut written = 0;
    while written < bytes.len() {
        match stream.write(&bytes[written..]) {
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready(stream, PollFlags::OUT, patience, what)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io(what())(error).into()),
        }
    }
    Ok(())
}
