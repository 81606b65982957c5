//! How other threads ask something of the one that carries packets.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use lastmile_packet::HashKey;
use lastmile_units::Duration;

use super::world::Direction;
use crate::bump::{DirectionReport, Queues};
use crate::error::Error;
use crate::stop::{Stop, StopHandle};

/// What has been done so far.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// How long packets have been carried.
    pub uptime: Duration,
    /// How often other queues have been put in.
    pub hand_overs: u64,
    /// From the LAN to the line.
    pub up: DirectionReport,
    /// From the line to the LAN.
    pub down: DirectionReport,
}

/// What is asked.
pub(super) enum Request {
    Report(Sender<Snapshot>),
    Alive(Sender<()>),
    HandOver(Queues, Sender<()>),
    Stop,
}

/// Asks something of a [`super::World`] that runs. Any number of threads may have one.
#[derive(Clone)]
pub struct Handle {
    requests: Sender<Request>,
    wake: Arc<Mutex<StopHandle>>,
    hash_key: HashKey,
}

/// The other end of handles.
pub(super) struct Inbox {
    requests: Receiver<Request>,
    /// Readable when a request waits.
    pub(super) waiting: Stop,
    handle: Handle,
}

impl Inbox {
    pub(super) fn new(hash_key: HashKey) -> Result<Self, Error> {
        let waiting = Stop::new()?;
        let wake = Arc::new(Mutex::new(waiting.handle()?));
        let (sender, requests) = mpsc::channel();
        Ok(Self { requests, waiting, handle: Handle { requests: sender, wake, hash_key } })
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The next request, if one waits.
    pub(super) fn next(&self) -> Option<Request> {
        self.requests.try_recv().ok()
    }
}

impl Handle {
    /// What has been done so far; `None` when the world runs no more.
    #[must_use]
    pub fn report(&self) -> Option<Snapshot> {
        let (answer, answered) = mpsc::channel();
        self.ask(Request::Report(answer));
        answered.recv().ok()
    }

    /// True when the world has answered, which it does between two turns; false when it runs no more. Waits for the answer.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let (answer, answered) = mpsc::channel();
        self.ask(Request::Alive(answer));
        answered.recv().is_ok()
    }

    /// Puts other queues in. What waits leaves first, and nothing is lost. They are built here, by the calling thread.
    /// Returns when they are in place.
    ///
    /// # Errors
    /// A queue that its line cannot have: then everything stays as it is.
    pub fn hand_over(&self, up: &Direction, down: &Direction) -> Result<(), Error> {
        let queues = Queues::build((&up.queue, up.link_layer), (&down.queue, down.link_layer), self.hash_key)?;
        let (done, is_done) = mpsc::channel();
        self.ask(Request::HandOver(queues, done));
        // An error says that the world has ended meanwhile: no queue matters any more.
        let _ = is_done.recv();
        Ok(())
    }

    /// Ends the run.
    pub fn stop(&self) {
        self.ask(Request::Stop);
    }

    fn ask(&self, request: Request) {
        // Nobody listens any more: whoever waits for an answer hears that.
        if self.requests.send(request).is_ok() {
            self.wake.lock().unwrap_or_else(PoisonError::into_inner).stop();
        }
    }
}
