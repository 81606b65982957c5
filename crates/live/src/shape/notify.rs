//! Messages to the service manager that started a program: sd_notify(3), datagrams to the socket
//! that `NOTIFY_SOCKET` names.
//!
//! The crate `sd-notify` opens a socket for each message, which the sandbox of `shape` forbids.
//! This one stays open from the start.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use crate::sys::wait;

/// The service manager.
#[derive(Debug)]
pub struct Manager {
    socket: UnixDatagram,
    /// How often it wants to hear that the program is alive; `None`: it does not ask.
    watchdog: Option<Duration>,
}

impl Manager {
    /// The one that started this program, if one did and listens.
    #[must_use]
    pub fn of_this_program() -> Option<Self> {
        let socket = connect(&env::var("NOTIFY_SOCKET").ok()?).ok()?;
        let asked: Option<u64> = env::var("WATCHDOG_USEC").ok().and_then(|text| text.parse().ok());
        // Set for another process than this one: inherited by mistake.
        let mine = env::var("WATCHDOG_PID").map_or(true, |pid| pid == std::process::id().to_string());
        let watchdog = asked.filter(|us| mine && *us > 0).map(Duration::from_micros);
        Some(Self { socket, watchdog })
    }

    /// How often to say that the program is alive: twice as often as it is asked to.
    #[must_use]
    pub fn interval(&self) -> Option<Duration> {
        self.watchdog.map(|watchdog| watchdog / 2)
    }

    /// It does its work, which is this.
    pub fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={}", status.replace('\n', "; ")));
    }

    /// It reads its files again, and will be ready when it has.
    pub fn reloading(&self) {
        // The time of the start distinguishes this notification from earlier ones.
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={}", wait::monotonic_us()));
    }

    /// It is alive.
    pub fn alive(&self) {
        self.tell("WATCHDOG=1");
    }

    /// It is ending.
    pub fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    fn tell(&self, state: &str) {
        // A manager that does not listen any more needs no news.
        let _ = self.socket.send(state.as_bytes());
    }
}

/// A name that begins with `@` is not of the file system: unix(7), abstract.
fn connect(name: &str) -> io::Result<UnixDatagram> {
    let address = match name.strip_prefix('@') {
        Some(abstract_name) => SocketAddr::from_abstract_name(abstract_name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_arrives_as_the_manual_has_it() {
        let name = format!("lastmile-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let manager = UnixDatagram::bind_addr(&address).unwrap();
        let told = Manager { socket: connect(&format!("@{name}")).unwrap(), watchdog: Some(Duration::from_secs(10)) };
        assert_eq!(told.interval(), Some(Duration::from_secs(5)));
        told.ready("two\nlines");
        told.reloading();
        told.alive();
        told.stopping();
        let mut buffer = [0; 100];
        for expected in ["READY=1\nSTATUS=two; lines", "RELOADING=1\nMONOTONIC_USEC=", "WATCHDOG=1", "STOPPING=1"] {
            let len = manager.recv(&mut buffer).unwrap();
            let heard = std::str::from_utf8(&buffer[..len]).unwrap();
            let us = heard.strip_prefix(expected).unwrap_or_else(|| panic!("{heard}"));
            assert!(us.is_empty() || us.parse::<u64>().is_ok_and(|us| us > 0), "{heard}");
        }
    }
}
