//! Waiting for many sockets at once: ppoll(2).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::time::Duration;

use super::check;

/// What a descriptor is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Wish {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

/// Descriptors to wait for; kept from one wait to the next, so that none costs memory of its own.
#[derive(Default)]
pub(crate) struct Poll(Vec<libc::pollfd>);

/// Place of a descriptor in a [`Poll`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry(usize);

impl Poll {
    /// Begins anew.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a descriptor. One that nothing is wished of never becomes ready.
    pub(crate) fn add(&mut self, fd: BorrowedFd<'_>, wish: Wish) -> Entry {
        let events = if wish.read { libc::POLLIN } else { 0 } | if wish.write { libc::POLLOUT } else { 0 };
        // poll(2) passes over negative descriptors, and reports hang-ups of all others.
        let fd = if events == 0 { -1 } else { fd.as_raw_fd() };
        self.0.push(libc::pollfd { fd, events, revents: 0 });
        Entry(self.0.len() - 1)
    }

    /// Waits until one of them is ready or `timeout` has passed. A signal ends the wait early, with none ready.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        let timeout = libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(i32::try_from(timeout.subsec_nanos()).expect("below 10^9")),
        };
        let count = libc::nfds_t::try_from(self.0.len()).expect("fewer descriptors than a process has");
        // SAFETY: the vector holds `count` entries whose descriptors the caller keeps open, the time outlives the call, and a
        // null signal mask leaves the mask as it is.
        match check(unsafe { libc::ppoll(self.0.as_mut_ptr(), count, &raw const timeout, ptr::null()) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.0.iter_mut().for_each(|entry| entry.revents = 0);
                Ok(())
            }
            other => other.map(drop),
        }
    }

    /// True if something can be done with this one; trying will say what.
    pub(crate) fn is_ready(&self, entry: Entry) -> bool {
        self.0.get(entry.0).is_some_and(|entry| entry.revents != 0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn only_what_is_wished_for_becomes_ready() {
        let (mut a, b) = UnixStream::pair().unwrap();
        let mut poll = Poll::default();
        let mut ready = |b: &UnixStream, wish| {
            poll.clear();
            let entry = poll.add(b.as_fd(), wish);
            poll.wait(Duration::ZERO).unwrap();
            poll.is_ready(entry)
        };
        let (read, write) = (Wish { read: true, write: false }, Wish { read: false, write: true });
        assert_eq!((ready(&b, read), ready(&b, write), ready(&b, Wish::default())), (false, true, false));
        a.write_all(b"x").unwrap();
        assert!(ready(&b, read));
        drop(a);
        assert!(!ready(&b, Wish::default()), "a hang-up that nobody asked for is passed over");
    }
}
