//! The control connection of a session.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use lastmile_live::clients::Attended;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::select;
use tokio::sync::oneshot;
use tokio::time::{self, Instant};

use crate::congestion;
use crate::own::wire::{self, Answer, Greeting, Hex, LONGEST_LINE, LONGEST_OPENING, Opening, Request, VERSION};

use super::answers::{answer, refusal};
use super::limits::HANDSHAKE;
use super::load::Load;
use super::locked::locked;
use super::session::{Session, Shared, random};
use super::{Counted, Counters, streams, trains};

/// Time between two reports of received bytes. Each costs the loaded direction an ACK: at 512 kbit/s over ATM, ten a
/// second take 1.7 % of the line.
const REPORTS: Duration = Duration::from_millis(100);

/// The received part of a connection: lines, and the start of the next.
pub(super) struct Lines {
    from: OwnedReadHalf,
    buffer: Vec<u8>,
    /// Bytes that were looked at and have no line feed.
    seen: usize,
}

/// The end of the lines.
pub(super) enum End {
    /// The connection is closed or broken.
    Gone,
    /// A line is longer than it may be.
    TooLong,
}

impl Lines {
    /// The next line without its line feed. Nothing is lost if nobody waits to the end.
    pub(super) async fn next(&mut self, longest: usize) -> Result<Vec<u8>, End> {
        loop {
            if let Some(at) = self.buffer[self.seen..].iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(self.seen + at + 1);
                let mut line = std::mem::replace(&mut self.buffer, rest);
                line.pop();
                self.seen = 0;
                return if line.len() < longest { Ok(line) } else { Err(End::TooLong) };
            }
            self.seen = self.buffer.len();
            if self.buffer.len() >= longest {
                return Err(End::TooLong);
            }
            match self.from.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return Err(End::Gone),
                Ok(_) => {}
            }
        }
    }
}

/// Counts a connection that ends before its first line is whole, also one that is closed to make
/// way for another.
pub(super) struct Stranger {
    counters: Arc<Counters>,
    is_heard: bool,
}

impl Stranger {
    /// A connection that was accepted, whether or not it is ever attended to.
    pub(super) fn new(counters: Arc<Counters>) -> Self {
        counters.add(Counted::Connections, 1);
        Self { counters, is_heard: false }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        if !self.is_heard {
            self.counters.add(Counted::Silent, 1);
        }
    }
}

/// One connection from its start to its end. Its errors concern its client alone.
pub(super) async fn converse(stream: TcpStream, mut stranger: Stranger, shared: Arc<Shared>, attended: Attended) {
    let Ok(challenge) = random::<16>() else { return };
    let socket = SockRef::from(&stream);
    let _ = socket.set_tcp_nodelay(true);
    let alive = TcpKeepalive::new().with_time(Duration::from_secs(10)).with_interval(Duration::from_secs(5));
    let _ = socket.set_tcp_keepalive(&alive.with_retries(3));
    let (from, mut to) = stream.into_split();
    let mut lines = Lines { from, buffer: Vec::new(), seen: 0 };
    let greeting = wire::line(&Greeting { lastmile_measure: VERSION, challenge });
    let opening = time::timeout(HANDSHAKE, async {
        to.write_all(&greeting).await.map_err(|_| End::Gone)?;
        lines.next(LONGEST_OPENING).await
    });
    let line = match opening.await {
        Ok(Ok(line)) => line,
        Ok(Err(End::TooLong)) => {
            stranger.is_heard = true;
            return shared.counters.add(Counted::Malformed, 1);
        }
        Ok(Err(End::Gone)) | Err(_) => return,
    };
    stranger.is_heard = true;
    match wire::read::<Opening>(&line) {
        Err(_) => shared.counters.add(Counted::Malformed, 1),
        Ok(Opening::Session { nonce, code }) => {
            if !shared.key.verifies("client", &[&challenge.0, &nonce.0], &code.0) {
                shared.counters.add(Counted::WrongKey, 1);
                let _ = answer(&mut to, &refusal("the key is another one")).await;
                return;
            }
            attended.set();
            session(lines, to, &shared, &challenge, &nonce).await;
        }
        Ok(Opening::Stream { session, way, code }) => {
            let session = shared.session(session);
            let is_of =
                |session: &Arc<Session>| session.key.verifies("stream", &[&challenge.0, &session.id.0], &code.0);
            match session.filter(is_of) {
                None => shared.counters.add(Counted::WrongKey, 1),
                Some(session) => {
                    attended.set();
                    streams::stream(lines.from, to, way, &session, &shared).await;
                }
            }
        }
        Ok(Opening::Offer { session, congestion, code }) => {
            let session = shared.session(session);
            let is_of = |session: &Arc<Session>| session.key.verifies("offer", &[&challenge.0, &session.id.0], &code.0);
            if session.is_some_and(|session| is_of(&session)) {
                attended.set();
                let fault = congestion.and_then(|name| congestion::check(&name).err()).map(|error| error.to_string());
                let _ = answer(&mut to, &Answer::Offered { congestion: congestion::offered(), fault }).await;
            } else {
                shared.counters.add(Counted::WrongKey, 1);
            }
        }
    }
}

/// Opens a session, serves it, and closes it however it ends.
async fn session(lines: Lines, mut to: OwnedWriteHalf, shared: &Arc<Shared>, challenge: &Hex<16>, nonce: &Hex<16>) {
    let session = match shared.open(challenge, nonce) {
        Ok(Some(session)) => session,
        Ok(None) | Err(_) => {
            shared.counters.add(Counted::Refused, 1);
            let most = shared.limits.sessions;
            let _ = answer(&mut to, &refusal(format!("all {most} sessions are taken; try again later"))).await;
            return;
        }
    };
    shared.counters.add(Counted::Sessions, 1);
    // Closed also when this task is aborted.
    let _closing = Closing(shared, session.id);
    let limits = shared.limits;
    let welcome = Answer::Welcome {
        code: shared.key.code("server", &[&nonce.0, &challenge.0]),
        session: session.id,
        clock: session.clock(),
        rate_bps: limits.rate.as_bps(),
        load_s: u32::try_from(limits.load.as_secs()).unwrap_or(u32::MAX),
        streams: limits.streams,
    };
    let mut attending = Attending { lines, to, shared, session: &session, trains: None };
    let _ = time::timeout(limits.session, async {
        answer(&mut attending.to, &welcome).await?;
        attending.run().await
    })
    .await;
}

struct Closing<'a>(&'a Shared, Hex<8>);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close(self.1);
    }
}

struct Attending<'a> {
    lines: Lines,
    to: OwnedWriteHalf,
    shared: &'a Arc<Shared>,
    session: &'a Arc<Session>,
    /// The end of the running trains.
    trains: Option<oneshot::Receiver<Answer>>,
}

impl Attending<'_> {
    /// Answers requests until the client ends the session, or is gone.
    async fn run(&mut self) -> io::Result<()> {
        let mut reports = time::interval(REPORTS);
        reports.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        loop {
            let load = locked(&self.session.load).clone();
            let deadline = load.as_ref().map(|load| Instant::from_std(load.begun() + self.shared.limits.load));
            select! {
                line = self.lines.next(LONGEST_LINE) => match line {
                    Err(End::Gone) => return Ok(()),
                    Err(End::TooLong) => return self.malformed("a line is longer than it may be").await,
                    Ok(line) => match wire::read::<Request>(&line) {
                        Err(error) => return self.malformed(&error).await,
                        Ok(Request::Bye) => return Ok(()),
                        Ok(request) => self.request(request).await?,
                    },
                },
                _ = reports.tick(), if load.as_ref().is_some_and(|load| load.is_upward()) => {
                    if let Some(load) = &load {
                        let (bytes, at_us) = load.received();
                        answer(&mut self.to, &Answer::Received { bytes, at_us }).await?;
                    }
                }
                () = async { time::sleep_until(deadline.expect("only with a load")).await }, if deadline.is_some() => {
                    self.shared.counters.add(Counted::CutLoads, 1);
                    self.stop_load().await?;
                }
                trained = async { self.trains.as_mut().expect("only with trains").await }, if self.trains.is_some() => {
                    self.trains = None;
                    locked(&self.session.datagrams).receiving = None;
                    let trained = trained.unwrap_or_else(|_| refusal("the trains failed"));
                    answer(&mut self.to, &trained).await?;
                }
            }
        }
    }

    async fn malformed(&mut self, reason: &str) -> io::Result<()> {
        self.shared.counters.add(Counted::Malformed, 1);
        answer(&mut self.to, &refusal(reason)).await
    }

    async fn stop_load(&mut self) -> io::Result<()> {
        let load = locked(&self.session.load).take();
        if let Some(load) = load {
            load.stop();
            if load.is_upward() {
                let (bytes, at_us) = load.received();
                answer(&mut self.to, &Answer::Received { bytes, at_us }).await?;
            }
        }
        answer(&mut self.to, &Answer::Stopped).await
    }

    async fn request(&mut self, request: Request) -> io::Result<()> {
        let granted = match request {
            Request::Bye => return Ok(()),
            Request::Stop => return self.stop_load().await,
            Request::Sending => {
                let load = locked(&self.session.load).clone();
                let congestion = load.map(|load| load.sending_with.all()).unwrap_or_default();
                return answer(&mut self.to, &Answer::Sending { congestion }).await;
            }
            Request::Load { direction, streams, congestion } => self.load(direction, streams, congestion),
            Request::Address { cookie } => self.address(cookie),
            Request::Trains { number, trains } => {
                if self.trains.is_some() {
                    Err("trains run already".to_owned())
                } else {
                    trains::begin(self.shared, self.session, number, &trains).map(|end| self.trains = Some(end))
                }
            }
        };
        match granted {
            Ok(()) => answer(&mut self.to, &Answer::Ready).await,
            Err(reason) => {
                self.shared.counters.add(Counted::Refused, 1);
                answer(&mut self.to, &refusal(reason)).await
            }
        }
    }

    fn load(&self, direction: crate::load::Direction, streams: u32, congestion: Option<String>) -> Result<(), String> {
        let most = self.shared.limits.streams;
        if streams == 0 || streams > most {
            return Err(format!("{streams} streams: 1 to {most} are possible"));
        }
        if let Some(name) = &congestion {
            congestion::check(name).map_err(|error| format!("congestion control {name:?}: {error}"))?;
        }
        let mut running = locked(&self.session.load);
        if running.is_some() {
            return Err("a load runs already".to_owned());
        }
        *running = Some(Arc::new(Load::new(direction, streams, congestion, self.shared.limits.rate)));
        self.shared.counters.add(Counted::Loads, 1);
        Ok(())
    }

    fn address(&self, cookie: Hex<16>) -> Result<(), String> {
        let mut datagrams = locked(&self.session.datagrams);
        let asked = datagrams.asked.filter(|address| self.shared.cookie(self.session.id, *address) == cookie);
        match asked {
            Some(address) => {
                datagrams.address = Some(address);
                Ok(())
            }
            None => Err("the cookie is of no address that asked for one".to_owned()),
        }
    }
}
