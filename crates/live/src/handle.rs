//! How other threads ask something of the one that carries packets, which answers between two turns.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use lastmile_model::Hop;
use lastmile_packet::HashKey;
use lastmile_units::{BitRate, Duration, Instant, WireBytes};

use crate::bump::{self, Bump, DirectionReport, HopGlance, Queues, Record, States};
use crate::error::{Context, Error};
use crate::io::Counters;
use crate::stop::{Stop, StopHandle};

/// The counters so far.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The time for which packets have been carried.
    pub uptime: Duration,
    /// How often other queues have been put in; never in an emulated line.
    pub hand_overs: u64,
    /// From the LAN, or the client, to the line.
    pub up: DirectionReport,
    /// From the line to the LAN, or the client.
    pub down: DirectionReport,
}

/// A request.
enum Request {
    Report(Sender<Snapshot>),
    Glance(Sender<(Instant, Vec<HopGlance>)>),
    States(Sender<States>),
    Records(Sender<Option<[Record; 2]>>),
    Alive(Sender<()>),
    HandOver(Queues, Sender<()>),
    Steer([(usize, BitRate); 2], Sender<[WireBytes; 2]>),
    Stop,
}

/// Asks something of a world that runs. Any number of threads may have one.
#[derive(Clone)]
pub struct Handle {
    requests: Sender<Request>,
    wake: Arc<Mutex<StopHandle>>,
    draws: Draws,
}

/// Seeds of the world that [`Handle::replay`] needs.
#[derive(Clone, Copy)]
pub(crate) struct Draws {
    /// Decides which packets are lost on the wire.
    pub(crate) seed: u64,
    /// Key of the hashes of flow tables.
    pub(crate) hash_key: HashKey,
}

/// The other end of handles.
pub(crate) struct Inbox {
    /// `None` when nobody answers any more.
    requests: Option<Receiver<Request>>,
    /// Readable when a request waits.
    pub(crate) waiting: Stop,
    handle: Handle,
}

impl Inbox {
    pub(crate) fn new(draws: Draws) -> Result<Self, Error> {
        let waiting = Stop::new()?;
        let wake = Arc::new(Mutex::new(waiting.handle()?));
        let (sender, requests) = mpsc::channel();
        Ok(Self { requests: Some(requests), waiting, handle: Handle { requests: sender, wake, draws } })
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The next request, if one waits.
    fn next(&self) -> Option<Request> {
        self.requests.as_ref()?.try_recv().ok()
    }

    /// Pending and later requests get an error.
    pub(crate) fn close(&mut self) {
        self.requests = None;
    }
}

/// A world that is asked, by the thread that carries its packets.
pub(crate) trait Asked {
    /// Where its requests come in.
    fn inbox(&mut self) -> &mut Inbox;

    /// The counters so far.
    fn snapshot(&mut self) -> Result<Snapshot, Error>;

    /// The counters of the ports at both ends: that of the LAN, or the client, is the first.
    fn ports(&mut self) -> Result<[Counters; 2], Error>;

    /// The lines, and when it is.
    fn bump(&mut self) -> (&mut Bump, Instant);

    /// Puts other queues in.
    fn hand_over(&mut self, queues: Queues);

    /// Answers all requests that wait; true if one of them was to end.
    fn answer(&mut self) -> Result<bool, Error> {
        self.inbox().waiting.rearm().context(|| "reading requests")?;
        while let Some(request) = self.inbox().next() {
            let (bump, now) = self.bump();
            // The asker may be gone; that is no concern of the line.
            match request {
                Request::Report(answer) => drop(answer.send(self.snapshot()?)),
                Request::Glance(answer) => drop(answer.send((now, bump.glance(now)))),
                Request::States(answer) => {
                    let ports = self.ports()?;
                    let (bump, now) = self.bump();
                    drop(answer.send(bump.states(now, ports)));
                }
                Request::Records(answer) => drop(answer.send(bump.records())),
                Request::Alive(answer) => drop(answer.send(())),
                Request::HandOver(queues, done) => {
                    self.hand_over(queues);
                    let _ = done.send(());
                }
                Request::Steer(shapers, answer) => {
                    let _ = answer.send(shapers.map(|(hop, rate)| bump.steer(hop, rate)));
                }
                Request::Stop => return Ok(true),
            }
        }
        Ok(false)
    }
}

impl Handle {
    /// The counters so far; `None` when the world has ended.
    #[must_use]
    pub fn report(&self) -> Option<Snapshot> {
        let (answer, answered) = mpsc::channel();
        self.ask(Request::Report(answer));
        answered.recv().ok()
    }

    /// How the hops stand, those up and then those down, and when; `None` when the world runs no
    /// more. Holds up no packet, as [`Handle::report`] does for the time that it takes to copy
    /// distributions.
    #[must_use]
    pub fn glance(&self) -> Option<(Instant, Vec<HopGlance>)> {
        let (answer, answered) = mpsc::channel();
        self.ask(Request::Glance(answer));
        answered.recv().ok()
    }

    /// The hops for a display; `None` when the world runs no more. Holds up packets for some
    /// microseconds ([`crate::bump::Bump::states`]).
    #[must_use]
    pub fn states(&self) -> Option<States> {
        let (answer, answered) = mpsc::channel();
        self.ask(Request::States(answer));
        answered.recv().ok()
    }

    /// The headers of the packets that came lately, up and down; `None` when the world runs no more,
    /// or records none. Holds up packets for some microseconds.
    #[must_use]
    pub fn records(&self) -> Option<[Record; 2]> {
        let (answer, answered) = mpsc::channel();
        self.ask(Request::Records(answer));
        answered.recv().ok()?
    }

    /// Gives the shapers of two hops these rates, and returns the bytes on the wire that the hops have sent; `None`
    /// when the world runs no more. Hops are numbered as in [`Handle::glance`].
    pub(crate) fn steer(&self, shapers: [(usize, BitRate); 2]) -> Option<[WireBytes; 2]> {
        let (answer, answered) = mpsc::channel();
        self.ask(Request::Steer(shapers, answer));
        answered.recv().ok()
    }

    /// Sends recorded packets through these hops, up and down, and shows the hops at each of `times`,
    /// which ascend. The calling thread does the work; the world does not
    /// notice. The packets arrive when they did arrive: an open loop, in which no sender reacts. Random
    /// draws are those of this world from its beginning.
    ///
    /// # Errors
    /// A queue that its line cannot have.
    pub fn replay(
        &self,
        records: &[Record; 2],
        hops: [&[Hop]; 2],
        times: &[Instant],
        look: &mut dyn FnMut(States),
    ) -> Result<(), Error> {
        let Draws { seed, hash_key } = self.draws;
        Ok(bump::replay(records, hops, (seed, hash_key), times, look)?)
    }

    /// True when the world has answered, which it does between two turns; false when it runs no
    /// more. Waits for the answer.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let (answer, answered) = mpsc::channel();
        self.ask(Request::Alive(answer));
        answered.recv().is_ok()
    }

    /// Ends the run.
    pub fn stop(&self) {
        self.ask(Request::Stop);
    }

    pub(crate) fn hash_key(&self) -> HashKey {
        self.draws.hash_key
    }

    /// Puts queues in that are built, and returns when they are in place.
    pub(crate) fn put_in(&self, queues: Queues) {
        let (done, is_done) = mpsc::channel();
        self.ask(Request::HandOver(queues, done));
        // An error says that the world has ended meanwhile: no queue matters any more.
        let _ = is_done.recv();
    }

    fn ask(&self, request: Request) {
        // Nobody listens any more: whoever waits for an answer hears that.
        if self.requests.send(request).is_ok() {
            self.wake.lock().unwrap_or_else(PoisonError::into_inner).stop();
        }
    }
}
