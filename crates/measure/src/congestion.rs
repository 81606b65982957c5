//! Congestion controls: what the kernel offers, and what sockets have.
//!
//! Source: tcp(7), `TCP_CONGESTION`, `tcp_available_congestion_control`. The kernel lists the ones that are loaded; a
//! socket of a privileged process may load one that is not.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

use lastmile_live::sys::socket;
use socket2::{Domain, Socket, Type};

/// The kernel's list.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Whether this machine lets a socket have this congestion control.
///
/// # Errors
/// The kernel does not have it, or keeps it from this process.
pub fn check(name: &str) -> io::Result<()> {
    Socket::new(Domain::IPV4, Type::STREAM, None)?.set_tcp_congestion(name.as_bytes())
}

/// The congestion controls that this kernel offers; empty where it does not tell.
#[must_use]
pub fn offered() -> Vec<String> {
    let text = std::fs::read_to_string(AVAILABLE).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// The congestion controls of the sockets of a load, each once.
#[derive(Default, Debug)]
pub(crate) struct Names(Mutex<BTreeSet<String>>);

impl Names {
    /// Notes that of a socket, if it tells.
    pub(crate) fn note(&self, socket: &impl AsFd) {
        if let Ok(name) = socket::congestion(socket.as_fd()) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
        }
    }

    /// The names in their order.
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// Several names in one text; `None` for none.
pub(crate) fn joined(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reno is part of every kernel (`CONFIG_TCP_CONG_*` do not include it).
    #[test]
    fn reno_is_offered_and_a_socket_tells_that_it_has_it() {
        assert!(offered().iter().any(|name| name == "reno"), "{:?}", offered());
        check("reno").unwrap();
        assert_eq!(check("nosuch").unwrap_err().kind(), io::ErrorKind::NotFound);
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_tcp_congestion(b"reno").unwrap();
        let names = Names::default();
        names.note(&socket);
        names.note(&socket);
        assert_eq!(names.all(), ["reno"]);
        assert_eq!((joined(&names.all()), joined(&[])), (Some("reno".to_owned()), None));
    }
}
