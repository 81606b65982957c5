//! Streams of load: what a server sends and takes over TCP.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lastmile_units::BitRate;
use socket2::{Domain, SockRef, Socket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;
use tokio::{select, time};

use crate::load::Direction;
use crate::own::data;
use crate::own::wire::Answer;
use crate::train::Way;

use super::session::{Session, Shared, locked};
use super::{Counted, control};

/// Bytes of one write or read.
const BLOCK: usize = 64 << 10;

/// Bytes that may pass at once at the limit of the rate.
const BURST: u64 = 1 << 20;

/// The load of a session.
#[derive(Debug)]
pub(super) struct Load {
    direction: Direction,
    streams: u32,
    congestion: Option<String>,
    begun: Instant,
    /// Streams that have come, downward and upward.
    joined: [AtomicU32; 2],
    received: AtomicU64,
    stop: watch::Sender<bool>,
    sending: Pace,
    receiving: Pace,
}

impl Load {
    pub(super) fn new(direction: Direction, streams: u32, congestion: Option<String>, rate: BitRate) -> Self {
        Self {
            direction,
            streams,
            congestion,
            begun: Instant::now(),
            joined: Default::default(),
            received: AtomicU64::new(0),
            stop: watch::Sender::new(false),
            sending: Pace::new(rate),
            receiving: Pace::new(rate),
        }
    }

    pub(super) fn begun(&self) -> Instant {
        self.begun
    }

    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Whether data come from the client.
    pub(super) fn is_upward(&self) -> bool {
        self.direction != Direction::Download
    }

    /// Bytes received, and the time since the load began in microseconds.
    pub(super) fn received(&self) -> (u64, u64) {
        let bytes = self.received.load(Ordering::Relaxed);
        (bytes, u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// Takes one more stream, if there is one more.
    fn join(&self, way: Way) -> bool {
        let goes = match way {
            Way::Down => self.direction != Direction::Upload,
            Way::Up => self.is_upward(),
        };
        goes && self.joined[way as usize].fetch_add(1, Ordering::Relaxed) < self.streams
    }
}

/// The limit of a rate, shared by all streams of a direction.
#[derive(Debug)]
struct Pace {
    rate: BitRate,
    /// When the bytes so far have passed at the rate.
    passed: Mutex<Instant>,
}

impl Pace {
    fn new(rate: BitRate) -> Self {
        Self { rate, passed: Mutex::new(Instant::now()) }
    }

    /// Counts bytes, and returns the wait until the rate is kept.
    fn wait(&self, bytes: usize) -> Duration {
        let now = Instant::now();
        let time = |bytes: u64| Duration::from_nanos(bytes.saturating_mul(8_000_000_000) / self.rate.as_bps());
        let mut passed = locked(&self.passed);
        *passed = (*passed).max(now) + time(bytes as u64);
        (*passed).saturating_duration_since(now).saturating_sub(time(BURST))
    }
}

/// Whether this machine lets a socket have this congestion control.
pub(super) fn check_congestion(name: &str) -> io::Result<()> {
    Socket::new(Domain::IPV4, Type::STREAM, None)?.set_tcp_congestion(name.as_bytes())
}

/// One stream until the load ends.
pub(super) async fn stream(from: OwnedReadHalf, mut to: OwnedWriteHalf, way: Way, session: &Session, shared: &Shared) {
    let load = locked(&session.load).clone();
    let Some(load) = load.filter(|load| load.join(way)) else {
        shared.counters.add(Counted::Refused, 1);
        let _ = control::answer(&mut to, &control::refusal("no load has this stream")).await;
        return;
    };
    // The kernel drops the data that it holds when the load ends, so that the line is free at once.
    let socket = SockRef::from(from.as_ref());
    let _ = socket.set_linger(Some(Duration::ZERO));
    if let Some(name) = &load.congestion {
        let _ = socket.set_tcp_congestion(name.as_bytes());
    }
    if control::answer(&mut to, &Answer::Ready).await.is_err() {
        return;
    }
    let mut stop = load.stop.subscribe();
    let moving = async {
        match way {
            Way::Down => send(to, &load, shared).await,
            Way::Up => receive(from, &load, shared).await,
        }
    };
    select! {
        _ = stop.wait_for(|stop| *stop) => {}
        // The load's time is limited by its control connection; a stream without one ends here.
        _ = time::timeout(shared.limits.load, moving) => {}
    }
}

async fn send(mut to: OwnedWriteHalf, load: &Load, shared: &Shared) -> io::Result<()> {
    let block = data::block(BLOCK);
    loop {
        let sent = to.write(&block).await?;
        shared.counters.add(Counted::SentBytes, sent as u64);
        pause(load.sending.wait(sent)).await;
    }
}

async fn receive(mut from: OwnedReadHalf, load: &Load, shared: &Shared) -> io::Result<()> {
    let mut buffer = vec![0; BLOCK];
    loop {
        let received = from.read(&mut buffer).await?;
        if received == 0 {
            return Ok(());
        }
        load.received.fetch_add(received as u64, Ordering::Relaxed);
        shared.counters.add(Counted::ReceivedBytes, received as u64);
        pause(load.receiving.wait(received)).await;
    }
}

/// Waits, or lets other streams go on.
async fn pause(wait: Duration) {
    match wait.is_zero() {
        true => tokio::task::consume_budget().await,
        false => time::sleep(wait).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_lets_a_burst_pass_and_then_keeps_its_rate() {
        let pace = Pace::new(BitRate::from_mbit_per_s(8));
        assert_eq!(pace.wait(1 << 20), Duration::ZERO, "the burst");
        let wait = pace.wait(1_000_000);
        // A megabyte at a megabyte a second, less the time since the first call.
        assert!((Duration::from_millis(900)..=Duration::from_secs(1)).contains(&wait), "{wait:?}");
    }
}
