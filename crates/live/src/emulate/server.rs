//! A command at the server's end of a line, which is there before the command at the client's end
//! begins and goes after it.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use super::side::Side;
use crate::error::{Context, Error};
use crate::stop::Stop;
use crate::sys::wait;

/// The longest wait until a server can be reached.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often to look whether it can.
const LOOK: Duration = Duration::from_millis(10);

/// Time in which a server must end after the request to end.
const GRACE: Duration = Duration::from_secs(2);

/// A server and its children. Dropping it ends them all.
pub(super) struct Server {
    child: Child,
    /// Readable once it has ended. It is waited for only when all is over: until then its number,
    /// and that of its group, is its own.
    handle: OwnedFd,
}

impl Server {
    /// Starts `command` at this end, in a process group of its own, and waits until something more
    /// than before can be reached there, by TCP or UDP: at most five seconds, and at most until it
    /// ends or `stop`.
    pub(super) fn start(side: &Side, command: &mut Command, stop: &Stop) -> Result<Self, Error> {
        let before = reachable(side)?;
        let child = side.spawn(command.process_group(0))?;
        let handle = wait::process_handle(child.id()).context(|| "watching the server")?;
        let server = Self { child, handle };
        let started = Instant::now();
        while !server.has_ended() && reachable(side)? <= before && started.elapsed() < PATIENCE {
            if stop.within(LOOK)? {
                break;
            }
        }
        Ok(server)
    }

    /// True when the command itself has ended; its children may be there.
    fn has_ended(&self) -> bool {
        wait::readable([Some(self.handle.as_fd())], Some(Duration::ZERO)).is_ok_and(|[ended]| ended)
    }

    /// How the command has ended; `None` while it runs.
    pub(super) fn ended(&self) -> Option<ExitStatus> {
        wait::ended(self.child.id()).ok().flatten()
    }

    fn signal(&self, signal: i32) {
        let _ = wait::signal_group(self.child.id(), signal);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its children too, which may be alive when it is not.
        let told = Instant::now();
        self.signal(libc::SIGTERM);
        while !self.has_ended() && told.elapsed() < GRACE {
            thread::sleep(LOOK);
        }
        self.signal(libc::SIGKILL);
        let _ = self.child.wait();
    }
}

/// Sockets at this end that strangers can reach.
fn reachable(side: &Side) -> Result<usize, Error> {
    let count = || -> usize { ["tcp", "tcp6", "udp", "udp6"].map(|table| open(table, &read(table))).iter().sum() };
    match side.namespace() {
        Some(namespace) => namespace.run(count),
        None => Ok(count()),
    }
}

fn read(table: &str) -> String {
    // A kernel without IPv6 has no such table.
    fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default()
}

/// TCP sockets that listen, and UDP sockets that are bound and not connected, in a table of proc_net_tcp(5).
fn open(table: &str, text: &str) -> usize {
    let wanted = if table.starts_with("tcp") { "0A" } else { "07" };
    text.lines().skip(1).filter(|line| line.split_ascii_whitespace().nth(3) == Some(wanted)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// proc_net_tcp(5): the fourth column is the state, 0A for LISTEN and 07 for CLOSE, which UDP sockets are in.
    #[test]
    fn only_what_can_be_reached_counts() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue
   0: 00000000:1451 00000000:0000 0A 00000000:00000000
   1: 0100007F:1F90 0200007F:A0F0 01 00000000:00000000
";
        assert_eq!((open("tcp", table), open("tcp6", "")), (1, 0));
        let table = "   sl  local_address rem_address   st tx_queue rx_queue
  100: 00000000:0007 00000000:0000 07 00000000:00000000
  101: 0100007F:0008 0100007F:0009 01 00000000:00000000
";
        assert_eq!(open("udp", table), 1);
    }
}
