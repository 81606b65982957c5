//! Load-generating connections: one at first, and one more each interval.

use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt;
use lastmile_live::sys::socket;
use rustix::rand::{GetRandomFlags, getrandom};
use tokio::task::JoinSet;

use super::Unsent;
use super::connection::Opened;
use super::shared::{Shared, runtime};
use super::stability::INTERVAL;
use super::upload::{Payload, Upload, Waiting};
use crate::error::Error;
use crate::load::{Direction, Load, Stop, Transferred};
use crate::train::Way;

/// Most connections of a direction (`MNP`).
pub const MOST_CONNECTIONS: u32 = 16;
/// Time between two counts of what has arrived.
const TICK: Duration = Duration::from_millis(10);
/// Load over HTTP/2.
#[derive(Debug)]
pub struct Http2Load {
    pub(super) shared: Arc<Shared>,
    /// Connections of each direction of the last run.
    pub(super) connections: u32,
}

/// Counters of a run, shared with the tasks of its connections.
struct Counters {
    down_bytes: AtomicU64,
    waiting: Arc<Waiting>,
    uploads: Mutex<Vec<(TcpStream, Arc<Upload>)>>,
}

impl Counters {
    fn new(unsent: Unsent) -> Self {
        Self { down_bytes: AtomicU64::new(0), waiting: Arc::new(Waiting::new(unsent)), uploads: Mutex::default() }
    }

    /// Payload that the server has acknowledged: the kernel's count less the framing.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "below 2^53"
    )]
    fn up_bytes(&self) -> u64 {
        let uploads = self.uploads.lock().unwrap_or_else(PoisonError::into_inner);
        let acked = |stream: &TcpStream| socket::info(stream.as_fd()).map_or(0, |info| info.bytes_acked);
        uploads.iter().map(|(stream, upload)| acked(stream) as f64 * upload.payload_share()).sum::<f64>() as u64
    }

    /// Few bytes wait at the client, so that own probes wait behind few. A connection that has ended keeps its limit.
    fn follow(&self, rate_bps: f64, connections: u32) {
        self.waiting.follow(rate_bps, connections);
        let Some(bytes) = self.waiting.socket_bytes() else { return };
        let uploads = self.uploads.lock().unwrap_or_else(PoisonError::into_inner);
        for (stream, _) in uploads.iter() {
            let _ = socket::set_unsent_low(stream.as_fd(), bytes);
        }
    }
}

/// The connections of one direction: one more each interval, up to [`MOST_CONNECTIONS`].
struct Growth {
    way: Way,
    connections: u32,
    counted: u64,
}

impl Growth {
    fn new(way: Way) -> Self {
        Self { way, connections: 1, counted: 0 }
    }

    /// Takes the bytes at the end of an interval: the rate of the interval, and whether to add a connection.
    #[expect(clippy::cast_precision_loss, reason = "bytes of a second")]
    fn interval(&mut self, bytes: u64, span: Duration) -> (f64, bool) {
        let rate_bps = (bytes - self.counted) as f64 * 8.0 / span.as_secs_f64();
        self.counted = bytes;
        let add = self.connections < MOST_CONNECTIONS;
        self.connections += u32::from(add);
        (rate_bps, add)
    }
}

/// Opens a connection and carries load until it ends.
async fn carry(shared: Arc<Shared>, way: Way, counters: Arc<Counters>, block: Bytes) -> Result<(), Error> {
    let route = &shared.route;
    let uri = if way == Way::Down { &shared.config.large } else { &shared.config.upload };
    let upload = (way == Way::Up).then(|| Arc::new(Upload::new(Arc::clone(&counters.waiting), block)));
    let Opened { mut sender, socket, .. } = route.open(uri, upload.clone()).await?;
    shared.register(sender.clone());
    if let Some(upload) = upload {
        if let Some(bytes) = upload.waiting.socket_bytes() {
            socket::set_unsent_low(socket.as_fd(), bytes).map_err(Error::io("limiting unsent data"))?;
        }
        counters.uploads.lock().unwrap_or_else(PoisonError::into_inner).push((socket, Arc::clone(&upload)));
        return route.request(&mut sender, uri, Payload(Some(upload))).await.map(drop);
    }
    let mut body = route.request(&mut sender, uri, Payload(None)).await?.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| route.protocol(&error))?;
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        counters.down_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// Data that no link can compress.
fn random_block() -> Result<Bytes, Error> {
    let mut block = vec![0; 64 << 10];
    let mut rest = &mut block[..];
    while !rest.is_empty() {
        let filled = getrandom(&mut *rest, GetRandomFlags::empty());
        let filled = filled.map_err(|error| Error::io("drawing random bytes")(error.into()))?;
        rest = &mut rest[filled..];
    }
    Ok(block.into())
}

async fn fill(shared: &Arc<Shared>, ways: &[Way], transferred: &Transferred, stop: &Stop) -> Result<u32, Error> {
    let (counters, block) = (Arc::new(Counters::new(shared.unsent)), random_block()?);
    let mut tasks = JoinSet::new();
    let open = |way: Way, tasks: &mut JoinSet<_>| {
        tasks.spawn(carry(Arc::clone(shared), way, Arc::clone(&counters), block.clone()));
    };
    let mut growths: Vec<Growth> = ways.iter().map(|&way| Growth::new(way)).collect();
    ways.iter().for_each(|&way| open(way, &mut tasks));
    let (mut down, mut up) = (0, 0);
    let mut interval = Instant::now();
    let mut ticks = tokio::time::interval(TICK);
    while !stop.is_requested() {
        ticks.tick().await;
        let now = (counters.down_bytes.load(Ordering::Relaxed), counters.up_bytes().max(up));
        if now.0 > down {
            transferred.add_down(now.0 - down);
        }
        if now.1 > up {
            transferred.add_up(now.1 - up);
        }
        (down, up) = now;
        while let Some(ended) = tasks.try_join_next() {
            if let Ok(Err(error)) = ended
                && tasks.is_empty()
            {
                return Err(error);
            }
        }
        if tasks.is_empty() {
            return Err(shared.route.protocol(&"ends every connection before the load is over"));
        }
        let span = interval.elapsed();
        if span >= INTERVAL {
            interval = Instant::now();
            for growth in &mut growths {
                let (rate_bps, add) = growth.interval(if growth.way == Way::Down { down } else { up }, span);
                shared.set_rate(growth.way, rate_bps);
                if growth.way == Way::Up {
                    counters.follow(rate_bps, growth.connections);
                }
                if add {
                    open(growth.way, &mut tasks);
                }
            }
        }
    }
    Ok(growths.iter().map(|growth| growth.connections).max().unwrap_or(1))
}

impl Load for Http2Load {
    fn peer(&self) -> String {
        self.shared.route.peer.clone()
    }

    fn can(&self, _: Direction) -> bool {
        true
    }

    fn streams(&self) -> u32 {
        self.connections
    }

    fn run(&mut self, direction: Direction, transferred: &Transferred, stop: &Stop) -> Result<(), Error> {
        let ways: &[Way] = match direction {
            Direction::Download => &[Way::Down],
            Direction::Upload => &[Way::Up],
            Direction::Both => &[Way::Down, Way::Up],
        };
        let runtime = runtime()?;
        let done = runtime.block_on(fill(&self.shared, ways, transferred, stop));
        self.shared.forget_load();
        // Connections end here, with what they have in flight.
        drop(runtime);
        self.connections = done?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 5.4: one more at each interval, whether the goodput grows or not.
    #[test]
    fn a_connection_is_added_at_each_interval() {
        let mut growth = Growth::new(Way::Down);
        let rates: Vec<f64> = (1..=30).map(|second| growth.interval(second * 1_000_000, INTERVAL).0).collect();
        assert!(rates.iter().all(|rate_bps| (rate_bps - 8e6).abs() < 1.0));
        assert_eq!(growth.connections, MOST_CONNECTIONS);
        let mut short = Growth::new(Way::Up);
        for second in 1..=3 {
            short.interval(second, INTERVAL);
        }
        assert_eq!(short.connections, 4);
    }
}
