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
    /// Connections of each direction that lived at the end of the last run; the larger number of two directions.
    pub(super) connections: u32,
    /// Faults of the last run that did not end it.
    pub(super) warnings: Vec<String>,
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
    /// All that were opened.
    connections: u32,
    /// Those of them that have ended.
    ended: u32,
    counted: u64,
}

impl Growth {
    fn new(way: Way) -> Self {
        Self { way, connections: 1, ended: 0, counted: 0 }
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

    fn living(&self) -> u32 {
        self.connections - self.ended
    }
}

/// The connections that have ended before the load, in a sentence; `first` is the time and the reason of the first one.
fn ended_early(growths: &[Growth], first: Option<(Duration, Error)>) -> Option<String> {
    let (at, error) = first?;
    let sum = |count: fn(&Growth) -> u32| growths.iter().map(count).sum::<u32>();
    let (ended, of, at_s) = (sum(|growth| growth.ended), sum(|growth| growth.connections), at.as_secs_f64());
    Some(format!("{ended} of {of} connections ended early, the first after {at_s:.1} s: {error}"))
}

/// Opens a connection and carries load until it ends, which is before the load does: returns why.
async fn carried(shared: Arc<Shared>, way: Way, counters: Arc<Counters>, block: Bytes) -> (Way, Error) {
    let done = carry(Arc::clone(&shared), way, counters, block).await;
    (way, done.err().unwrap_or_else(|| shared.route.protocol(&"ends a connection before the load is over")))
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

/// Returns the connections that lived at the end, and a warning of the others.
async fn fill(
    shared: &Arc<Shared>,
    ways: &[Way],
    transferred: &Transferred,
    stop: &Stop,
) -> Result<(u32, Option<String>), Error> {
    let (counters, block) = (Arc::new(Counters::new(shared.unsent)), random_block()?);
    let mut tasks = JoinSet::new();
    let open = |way: Way, tasks: &mut JoinSet<_>| {
        tasks.spawn(carried(Arc::clone(shared), way, Arc::clone(&counters), block.clone()));
    };
    let mut growths: Vec<Growth> = ways.iter().map(|&way| Growth::new(way)).collect();
    ways.iter().for_each(|&way| open(way, &mut tasks));
    let mut first = None;
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
            let Ok((way, error)) = ended else { continue };
            growths.iter_mut().filter(|growth| growth.way == way).for_each(|growth| growth.ended += 1);
            first.get_or_insert((transferred.elapsed(), error));
        }
        if tasks.is_empty() {
            let lost = || shared.route.protocol(&"ends every connection before the load is over");
            return Err(first.map_or_else(lost, |(_, error)| error));
        }
        let span = interval.elapsed();
        if span >= INTERVAL {
            interval = Instant::now();
            for growth in &mut growths {
                let (rate_bps, add) = growth.interval(if growth.way == Way::Down { down } else { up }, span);
                shared.set_rate(growth.way, rate_bps);
                if growth.way == Way::Up {
                    counters.follow(rate_bps, growth.living().max(1));
                }
                if add {
                    open(growth.way, &mut tasks);
                }
            }
        }
    }
    Ok((growths.iter().map(Growth::living).max().unwrap_or(1), ended_early(&growths, first)))
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

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    fn run(&mut self, direction: Direction, transferred: &Transferred, stop: &Stop) -> Result<(), Error> {
        let ways: &[Way] = match direction {
            Direction::Download => &[Way::Down],
            Direction::Upload => &[Way::Up],
            Direction::Both => &[Way::Down, Way::Up],
        };
        self.warnings.clear();
        let runtime = runtime()?;
        let done = runtime.block_on(fill(&self.shared, ways, transferred, stop));
        self.shared.forget_load();
        // Connections end here, with what they have in flight.
        drop(runtime);
        let (connections, warning) = done?;
        self.connections = connections;
        self.warnings.extend(warning);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;
    use std::thread;

    use super::*;
    use crate::foreign::responsiveness::connection::Route;
    use crate::foreign::responsiveness::{Trust, config, tls};

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

    #[test]
    fn connections_that_ended_are_told_with_the_first_reason() {
        let error = || Error::Protocol { peer: "peer".to_owned(), what: "it is full".to_owned() };
        let growth = |way, connections, ended| Growth { way, connections, ended, counted: 0 };
        let growths = [growth(Way::Down, 16, 1), growth(Way::Up, 16, 2)];
        assert_eq!(growths.each_ref().map(Growth::living), [15, 14]);
        let told = ended_early(&growths, Some((Duration::from_millis(2140), error()))).unwrap();
        assert_eq!(told, format!("3 of 32 connections ended early, the first after 2.1 s: {}", error()));
        assert_eq!(ended_early(&growths, None), None);
    }

    /// The load of two directions with a server that holds its first connections, `held` in number, and closes the
    /// others once they have begun TLS.
    fn loaded(held: usize) -> (Result<(), Error>, Http2Load) {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let route = Route {
            peer: "peer".to_owned(),
            address: server.local_addr().unwrap(),
            tls: tls::client(&Trust::Anyone).unwrap(),
        };
        let text = r#"{"version": 1, "urls": {"large_download_url": "https://h/l",
            "small_download_url": "https://h/s", "upload_url": "https://h/u"}}"#;
        let config = config::parse(text.as_bytes()).unwrap();
        let shared = Arc::new(Shared::new("server".to_owned(), route, config, Unsent::FiveMilliseconds));
        let mut load = Http2Load { shared, connections: 1, warnings: vec!["of the run before".to_owned()] };
        let (transferred, stop) = (Transferred::default(), Stop::default());
        let done = thread::scope(|scope| {
            let running = scope.spawn(|| load.run(Direction::Both, &transferred, &stop));
            let mut connections: Vec<TcpStream> = (0..2).map(|_| server.accept().unwrap().0).collect();
            for mut closed in connections.drain(held..) {
                let _ = closed.read(&mut [0; 4096]);
            }
            thread::sleep(INTERVAL / 2);
            stop.request();
            running.join().unwrap()
        });
        (done, load)
    }

    #[test]
    fn a_connection_that_fails_is_told_and_not_counted() {
        let (done, load) = loaded(1);
        done.unwrap();
        let [warning] = &load.warnings()[..] else { panic!("{:?}", load.warnings()) };
        assert!(warning.starts_with("1 of 2 connections ended early, the first after 0."), "{warning}");
        assert!(warning.contains("peer: TLS"), "{warning}");
        assert_eq!(load.streams(), 1);
        let (done, load) = loaded(2);
        assert!(done.is_ok() && load.warnings().is_empty(), "{done:?} {:?}", load.warnings());
        let (done, load) = loaded(0);
        assert!(done.unwrap_err().to_string().contains("peer: TLS") && load.warnings().is_empty());
    }
}
