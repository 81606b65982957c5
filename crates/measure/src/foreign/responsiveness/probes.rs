//! Probes: foreign ones over new connections, own ones over connections that carry load.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::connection::Opened;
use super::shared::{Shared, runtime};
use crate::error::Error;
use crate::foreign::wire::LOOK;
use crate::load::Stop;
use crate::probe::{Kind, PATIENCE, Prober, Sample, Subject};

/// Probes that wait for their answers at a time.
const MOST_WAITING: usize = 256;
/// Bytes of the largest small object.
const SMALL: usize = 64 << 10;

/// The three probers of foreign probes and the one of own probes. All of them run at a time: the connection of a
/// foreign probe gives a sample to each of the first three.
pub(super) fn all(shared: &Arc<Shared>) -> Vec<Box<dyn Prober>> {
    let (to_tcp, tcp) = channel();
    let (to_tls, tls) = channel();
    let relay = |kind, samples| -> Box<dyn Prober> { Box::new(Relay { shared: Arc::clone(shared), kind, samples }) };
    vec![
        relay(Kind::TcpConnect, tcp),
        relay(Kind::TlsHandshake, tls),
        Box::new(Foreign { shared: Arc::clone(shared), to_tcp, to_tls }),
        Box::new(Own { shared: Arc::clone(shared) }),
    ]
}

fn subject(shared: &Shared, kind: Kind) -> Subject {
    Subject { target: shared.name.clone(), kind, code_point: 0 }
}

/// Hands on the samples that the connections of [`Foreign`] give.
struct Relay {
    shared: Arc<Shared>,
    kind: Kind,
    samples: Receiver<Sample>,
}

impl Prober for Relay {
    fn subject(&self) -> Subject {
        subject(&self.shared, self.kind)
    }

    fn run(
        &mut self,
        now_s: &(dyn Fn() -> f64 + Sync),
        stop: &Stop,
        tell: &mut dyn FnMut(Sample),
    ) -> Result<(), Error> {
        let mut end_s = None;
        loop {
            match self.samples.recv_timeout(LOOK) {
                Ok(sample) => tell(sample),
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) if stop.is_requested() => {
                    let end_s = *end_s.get_or_insert_with(|| now_s() + last_patience().as_secs_f64());
                    if self.shared.is_quiet() || now_s() > end_s {
                        self.samples.try_iter().for_each(&mut *tell);
                        return Ok(());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// Requests over new connections.
struct Foreign {
    shared: Arc<Shared>,
    to_tcp: Sender<Sample>,
    to_tls: Sender<Sample>,
}

/// The result of a step; `None` if it fails, or if `limit` ends first.
async fn within<T>(limit: impl Future<Output = ()>, step: impl Future<Output = Result<T, Error>>) -> Option<T> {
    tokio::select! {
        biased;
        done = step => done.ok(),
        () = limit => None,
    }
}

/// Opens a connection and sends a request over it. Each step is a probe of its own: it departs when the one in front
/// has ended, has its own limit, and has a sample if it began. Returns that of the request.
async fn foreign<L: Future<Output = ()>>(
    shared: Arc<Shared>,
    [to_tcp, to_tls]: [Sender<Sample>; 2],
    sent_s: f64,
    limit: impl Fn() -> L,
) -> Option<Sample> {
    let (route, uri) = (&shared.route, &shared.config.small);
    let connected = within(limit(), route.connect()).await;
    // A relay that has ended takes no more samples.
    let _ = to_tcp.send(sample(sent_s, connected.as_ref().map(|connected| connected.tcp)));
    let connected = connected?;
    let secured_s = sent_s + connected.tcp.as_secs_f64();
    let opened = within(limit(), route.secure(connected, uri, None)).await;
    let _ = to_tls.send(sample(secured_s, opened.as_ref().map(|opened| opened.tls)));
    let Opened { mut sender, tls, .. } = opened?;
    let asked = Instant::now();
    let answer = within(limit(), route.get(&mut sender, uri, SMALL)).await;
    Some(sample(secured_s + tls.as_secs_f64(), answer.map(|_| asked.elapsed())))
}

fn sample(sent_s: f64, took: Option<Duration>) -> Sample {
    Sample { sent_s, rtt_s: took.map(|took| took.as_secs_f64()), ..Sample::default() }
}

impl Prober for Foreign {
    fn subject(&self) -> Subject {
        subject(&self.shared, Kind::HttpForeign)
    }

    fn run(
        &mut self,
        now_s: &(dyn Fn() -> f64 + Sync),
        stop: &Stop,
        tell: &mut dyn FnMut(Sample),
    ) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        shared.set_quiet(false);
        let start = || {
            let relays = [&self.to_tcp, &self.to_tls].map(Sender::clone);
            foreign(Arc::clone(&shared), relays, now_s(), || tokio::time::sleep(PATIENCE))
        };
        let done = drive(&shared, stop, start, tell);
        shared.set_quiet(true);
        done
    }
}

/// Requests over connections that carry load, each time another by chance. Without load there are none.
struct Own {
    shared: Arc<Shared>,
}

/// A probe half an interval after a foreign one: the two kinds interleave.
async fn own(shared: Arc<Shared>, half: Duration, due_s: f64) -> Option<Sample> {
    tokio::time::sleep(half).await;
    let mut sender = shared.any_loaded()?;
    let asked = Instant::now();
    let small = shared.route.get(&mut sender, &shared.config.small, SMALL);
    match tokio::time::timeout(PATIENCE, small).await {
        Ok(Ok(_)) => Some(sample(due_s, Some(asked.elapsed()))),
        // The connection has ended with the load.
        Ok(Err(_)) => None,
        Err(_) => Some(sample(due_s, None)),
    }
}

impl Prober for Own {
    fn subject(&self) -> Subject {
        subject(&self.shared, Kind::HttpSelf)
    }

    fn run(
        &mut self,
        now_s: &(dyn Fn() -> f64 + Sync),
        stop: &Stop,
        tell: &mut dyn FnMut(Sample),
    ) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        let start = || {
            let half = shared.interval() / 2;
            own(Arc::clone(&shared), half, now_s() + half.as_secs_f64())
        };
        drive(&shared, stop, start, tell)
    }
}

/// The time after `stop` in which every step that began until then has ended.
fn last_patience() -> Duration {
    PATIENCE + 2 * LOOK
}

/// Starts a probe at each interval and tells the samples of those that have ended, until `stop`.
fn drive<F>(shared: &Shared, stop: &Stop, start: impl Fn() -> F, tell: &mut dyn FnMut(Sample)) -> Result<(), Error>
where
    F: Future<Output = Option<Sample>> + Send + 'static,
{
    let runtime = runtime()?;
    runtime.block_on(async {
        let mut waiting = JoinSet::new();
        let mut due = Instant::now();
        while !stop.is_requested() {
            let now = Instant::now();
            if now >= due {
                if waiting.len() < MOST_WAITING {
                    waiting.spawn(start());
                }
                due = (due + shared.interval()).max(now);
            }
            tokio::time::sleep(due.saturating_duration_since(Instant::now()).min(LOOK)).await;
            while let Some(Ok(done)) = waiting.try_join_next() {
                done.into_iter().for_each(&mut *tell);
            }
        }
        let rest = async {
            while let Some(done) = waiting.join_next().await {
                done.into_iter().flatten().for_each(&mut *tell);
            }
        };
        // Steps that begin after the stop are of no phase.
        let _ = tokio::time::timeout(last_patience(), rest).await;
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::net::{SocketAddr, TcpListener};

    use socket2::{Domain, Socket, Type};

    use super::*;
    use crate::foreign::responsiveness::connection::Route;
    use crate::foreign::responsiveness::{Trust, Unsent, config, tls};

    fn shared(address: SocketAddr) -> Arc<Shared> {
        let text = r#"{"version": 1, "urls": {"large_download_url": "https://h/l",
            "small_download_url": "https://h/s", "upload_url": "https://h/u"}}"#;
        let config = config::parse(text.as_bytes()).unwrap();
        let route = Route { peer: "peer".to_owned(), address, tls: tls::client(&Trust::Anyone).unwrap() };
        Arc::new(Shared::new("server".to_owned(), route, config, Unsent::FiveMilliseconds))
    }

    /// Whether each sample of TCP, TLS and HTTP is that of an answer, and the number of limits that began. The limit
    /// with this number ends at once, the others never.
    fn probed(address: SocketAddr, ends: u32) -> ([Vec<bool>; 3], u32) {
        let (to_tcp, tcp) = channel();
        let (to_tls, tls) = channel();
        let begun = Cell::new(0);
        let limit = || {
            begun.set(begun.get() + 1);
            let ends = begun.get() == ends;
            async move {
                if !ends {
                    std::future::pending::<()>().await;
                }
            }
        };
        let http = runtime().unwrap().block_on(foreign(shared(address), [to_tcp, to_tls], 7.0, limit));
        let samples: [Vec<Sample>; 3] = [tcp.try_iter().collect(), tls.try_iter().collect(), Vec::from_iter(http)];
        (samples.map(|samples| samples.iter().map(|sample| sample.rtt_s.is_some()).collect()), begun.get())
    }

    /// The kernel completes the handshake of TCP without the program.
    #[test]
    fn a_step_that_ended_has_its_time_and_one_that_never_began_is_not_lost() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        assert_eq!(probed(address, 2), ([vec![true], vec![false], vec![]], 2), "nobody answers to TLS");
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| server.incoming().take(2).for_each(drop));
            probed(address, 0)
        });
        assert_eq!(ended, ([vec![true], vec![false], vec![]], 2), "the server ends the connection");
        let closed = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        closed.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        let address = closed.local_addr().unwrap().as_socket().unwrap();
        assert_eq!(probed(address, 0), ([vec![false], vec![], vec![]], 1), "the port is closed");
    }
}
