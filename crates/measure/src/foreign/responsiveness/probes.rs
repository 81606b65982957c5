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

/// Times of a foreign probe; `None` for a step that did not end.
#[derive(Clone, Copy, Default)]
struct Steps {
    tcp: Option<Duration>,
    tls: Option<Duration>,
    http: Option<Duration>,
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
                    // The last probes have their patience.
                    let end_s = *end_s.get_or_insert_with(|| now_s() + PATIENCE.as_secs_f64());
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

async fn foreign(shared: Arc<Shared>, sent_s: f64) -> (f64, Steps) {
    let mut steps = Steps::default();
    let probe = async {
        let uri = &shared.config.small;
        let Ok(Opened { mut sender, tcp, tls, .. }) = shared.route.open(uri, None).await else { return };
        (steps.tcp, steps.tls) = (Some(tcp), Some(tls));
        let asked = Instant::now();
        if shared.route.get(&mut sender, uri, SMALL).await.is_ok() {
            steps.http = Some(asked.elapsed());
        }
    };
    let _ = tokio::time::timeout(PATIENCE, probe).await;
    (sent_s, steps)
}

fn seconds(took: Option<Duration>) -> f64 {
    took.map_or(0.0, |took| took.as_secs_f64())
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
        let start = || foreign(Arc::clone(&shared), now_s());
        let done = drive(&shared, stop, start, |(sent_s, steps): (f64, Steps)| {
            // A relay that has ended takes no more samples.
            let _ = self.to_tcp.send(sample(sent_s, steps.tcp));
            // Each step departs when the one in front has ended.
            let secured_s = sent_s + seconds(steps.tcp);
            let _ = self.to_tls.send(sample(secured_s, steps.tls));
            tell(sample(secured_s + seconds(steps.tls), steps.http));
        });
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
        drive(&shared, stop, start, |sample: Option<Sample>| sample.into_iter().for_each(&mut *tell))
    }
}

/// Starts a probe at each interval and takes the results of those that have ended, until `stop`.
fn drive<F, T>(shared: &Shared, stop: &Stop, start: impl Fn() -> F, mut take: impl FnMut(T)) -> Result<(), Error>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
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
                take(done);
            }
        }
        while let Some(done) = waiting.join_next().await {
            done.into_iter().for_each(&mut take);
        }
    });
    Ok(())
}
