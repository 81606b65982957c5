//! The load that fills the line.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::foreign::iperf3::Datagrams;

/// The directions that are loaded, seen from the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Data from the server to the client.
    Download,
    /// Data from the client to the server.
    Upload,
    /// Both at a time.
    Both,
}

/// Payload bytes that have arrived since the load started, and when. The threads of the load add,
/// the session reads.
///
/// Bytes carry their own time, so that a rate between two readings has no error of the reader's.
#[derive(Debug)]
pub struct Transferred {
    start: Instant,
    down: Mutex<Arrived>,
    up: Mutex<Arrived>,
    /// Counts of the server that the session has not taken yet, each with its own time.
    reports: Mutex<Vec<Arrived>>,
}

/// Bytes of one direction, and the time of the last of them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Arrived {
    /// Payload bytes since the load started.
    pub bytes: u64,
    /// Arrival of the last of them, after the load started.
    pub at: Duration,
}

impl Default for Transferred {
    fn default() -> Self {
        Self { start: Instant::now(), down: Mutex::default(), up: Mutex::default(), reports: Mutex::default() }
    }
}

impl Transferred {
    /// Counts bytes that the client has received.
    pub fn add_down(&self, bytes: u64) {
        add(&self.down, bytes, self.elapsed());
    }

    /// Counts bytes that the server has received. Where a protocol reports them late or never, the
    /// bytes that the peer has acknowledged (`tcpi_bytes_acked`) serve.
    pub fn add_up(&self, bytes: u64) {
        add(&self.up, bytes, self.elapsed());
    }

    /// Counts bytes that the server had received by `at`, for protocols that report the time. Reports may come late
    /// and several at once: each is kept with its time.
    pub fn add_up_at(&self, bytes: u64, at: Duration) {
        let arrived = add(&self.up, bytes, at);
        locked(&self.reports).push(arrived);
    }

    /// Takes the reports of [`Self::add_up_at`] since the last call, in their order of time.
    pub(crate) fn take_reports(&self) -> Vec<Arrived> {
        std::mem::take(&mut *locked(&self.reports))
    }

    /// Time since the load started.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Bytes received by the client and by the server.
    #[must_use]
    pub fn totals(&self) -> (u64, u64) {
        let (down, up) = self.arrived();
        (down.bytes, up.bytes)
    }

    /// Bytes received by the client and by the server, with the times of the last of them.
    #[must_use]
    pub fn arrived(&self) -> (Arrived, Arrived) {
        (*locked(&self.down), *locked(&self.up))
    }
}

fn add(arrived: &Mutex<Arrived>, bytes: u64, at: Duration) -> Arrived {
    let mut arrived = locked(arrived);
    arrived.bytes += bytes;
    arrived.at = arrived.at.max(at);
    *arrived
}

/// Counters stay valid whatever a thread that held them did.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells a load or a probe to end.
#[derive(Default, Debug)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Asks for the end.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// An error once the end was asked for.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_requested() { Err(Error::Stopped) } else { Ok(()) }
    }

    /// Whether the end was asked for. Loads and probes look at least every 50 ms.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The congestion controls of the senders of a load, as their sockets tell; `None` where nobody does. Several have
/// commas between them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Used {
    /// The server's.
    pub down: Option<String>,
    /// The client's.
    pub up: Option<String>,
}

/// A protocol that can fill the line: lastmile's own, iperf3, HTTP/2.
pub trait Load: Send {
    /// Name of the protocol and address of the server, for the report.
    fn peer(&self) -> String;

    /// Whether the protocol can load this direction.
    fn can(&self, direction: Direction) -> bool;

    /// Number of connections in each loaded direction.
    fn streams(&self) -> u32 {
        1
    }

    /// The limit of the server in each direction, bit/s of payload; `None` for a server that states none.
    fn limit_bps(&self) -> Option<u64> {
        None
    }

    /// The outcome of the datagrams of the last run; empty for a load without datagrams.
    fn datagrams(&self) -> Vec<Datagrams> {
        Vec::new()
    }

    /// Faults of the last run that did not end it, in sentences.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// The congestion controls of the last run.
    fn congestion(&self) -> Used {
        Used::default()
    }

    /// Fills the line until `stop`, and returns once all connections are closed. It blocks: the
    /// session calls it on a thread of its own.
    ///
    /// # Errors
    /// No connection, a refusal, an answer out of order; bytes that arrived before are counted.
    fn run(&mut self, direction: Direction, transferred: &Transferred, stop: &Stop) -> Result<(), Error>;
}

impl<L: Load + ?Sized> Load for &mut L {
    fn peer(&self) -> String {
        (**self).peer()
    }

    fn can(&self, direction: Direction) -> bool {
        (**self).can(direction)
    }

    fn streams(&self) -> u32 {
        (**self).streams()
    }

    fn limit_bps(&self) -> Option<u64> {
        (**self).limit_bps()
    }

    fn datagrams(&self) -> Vec<Datagrams> {
        (**self).datagrams()
    }

    fn warnings(&self) -> Vec<String> {
        (**self).warnings()
    }

    fn congestion(&self) -> Used {
        (**self).congestion()
    }

    fn run(&mut self, direction: Direction, transferred: &Transferred, stop: &Stop) -> Result<(), Error> {
        (**self).run(direction, transferred, stop)
    }
}
