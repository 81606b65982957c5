//! When to stop: SIGINT, SIGTERM, a terminal that is gone, or someone in the program, all through
//! one descriptor that a loop can wait for.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::{pipe, unregister};

use crate::error::{Context, Error};
use crate::sys::wait;

/// Becomes readable when it is time to stop.
#[derive(Debug)]
pub struct Stop {
    wake: UnixStream,
    handle: UnixStream,
    signal: Arc<AtomicUsize>,
    registered: Vec<SigId>,
}

impl Stop {
    /// Stops only when a [`StopHandle`] says so.
    ///
    /// # Errors
    /// No descriptors left.
    pub fn new() -> Result<Self, Error> {
        let (wake, handle) = UnixStream::pair().context(|| "opening a pair of sockets")?;
        // Neither who waits nor who wakes is ever held up, however often it is time.
        for end in [&wake, &handle] {
            end.set_nonblocking(true).context(|| "opening a pair of sockets")?;
        }
        Ok(Self { wake, handle, signal: Arc::default(), registered: Vec::new() })
    }

    /// Stops at SIGINT and SIGTERM as well, and at SIGHUP, which means that the terminal is gone,
    /// unless nohup(1) or another has this process ignore it. These signals then do not end the
    /// process by themselves; after this value is gone they do nothing.
    ///
    /// # Errors
    /// No descriptors left.
    pub fn on_signals() -> Result<Self, Error> {
        let ignored = wait::is_ignored(SIGHUP).context(|| "asking what SIGHUP does")?;
        Self::on(if ignored { &[SIGINT, SIGTERM] } else { &[SIGINT, SIGTERM, SIGHUP] })
    }

    /// Readable at any of these signals as well, which then do nothing else.
    ///
    /// # Errors
    /// No descriptors left, or a signal that cannot be caught.
    pub fn on(signals: &[i32]) -> Result<Self, Error> {
        let mut stop = Self::new()?;
        for &signal in signals {
            let what = || format!("catching signal {signal}");
            let number = usize::try_from(signal).expect("signals have small numbers");
            // First the number, then the wake-up: handlers run in the order in which they were registered.
            let flag = signal_hook::flag::register_usize(signal, Arc::clone(&stop.signal), number).context(what)?;
            stop.registered.push(flag);
            let waker = stop.handle.try_clone().context(what)?;
            stop.registered.push(pipe::register(signal, waker).context(what)?);
        }
        Ok(stop)
    }

    /// Something that can stop it from another thread.
    ///
    /// # Errors
    /// No descriptors left.
    pub fn handle(&self) -> Result<StopHandle, Error> {
        Ok(StopHandle(self.handle.try_clone().context(|| "copying a socket")?))
    }

    /// The latest signal that came, if one did.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            number => i32::try_from(number).ok(),
        }
    }

    /// Waits until it is time, or `patience` has passed; true if it is time.
    ///
    /// # Errors
    /// The descriptor is gone.
    pub fn within(&self, patience: Duration) -> Result<bool, Error> {
        let [stopped] = wait::readable([Some(self.as_fd())], Some(patience)).context(|| "waiting for the end")?;
        Ok(stopped)
    }

    /// A stream that becomes readable at the stop, for a loop of another kind.
    pub(crate) fn watched(&self) -> io::Result<UnixStream> {
        self.wake.try_clone()
    }

    /// Forgets the calls so far, to wait for the next.
    pub(crate) fn rearm(&self) -> io::Result<()> {
        forget(&self.wake)
    }
}

/// Reads and forgets what has come on a stream that does not block.
pub(crate) fn forget(mut stream: &UnixStream) -> io::Result<()> {
    let mut buffer = [0; 64];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            unregister(id);
        }
    }
}

/// Makes a [`Stop`] readable.
#[derive(Debug)]
pub struct StopHandle(UnixStream);

impl StopHandle {
    /// Says that it is time. Too late is no error: then it has stopped already.
    pub fn stop(&self) {
        let _ = (&self.0).write(&[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ready(stop: &Stop) -> bool {
        wait::readable([Some(stop.as_fd())], Some(Duration::ZERO)).unwrap() == [true]
    }

    #[test]
    fn a_handle_stops_from_another_thread_until_rearmed() {
        let stop = Stop::new().unwrap();
        assert!(!is_ready(&stop));
        let handle = stop.handle().unwrap();
        std::thread::spawn(move || handle.stop()).join().unwrap();
        assert!(is_ready(&stop));
        stop.rearm().unwrap();
        assert!(!is_ready(&stop));
        assert_eq!(stop.signal(), None);
    }

    #[test]
    fn a_signal_stops_and_says_which_it_was() {
        let stop = Stop::on_signals().unwrap();
        signal_hook::low_level::raise(SIGTERM).unwrap();
        assert!(is_ready(&stop));
        assert_eq!(stop.signal(), Some(SIGTERM));
    }
}
