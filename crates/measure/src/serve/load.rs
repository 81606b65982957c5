//! The load of a session: its direction, streams and bytes, and the limit of its rate.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lastmile_units::BitRate;
use tokio::sync::watch;
use tokio::time;

use crate::congestion::Names;
use crate::load::Direction;
use crate::own::wire::GATHERING;
use crate::train::Way;

use super::locked::locked;

/// The time at the limit of the rate whose bytes may pass at once: what a late wake-up is made up for.
const BURST: Duration = Duration::from_millis(10);

/// The time at the limit of the rate that one write or read takes.
const ONE: Duration = Duration::from_millis(5);

/// Fewest bytes of one write or read: the payload of a segment in an Ethernet frame.
const LEAST: usize = 1448;

/// The load of a session.
#[derive(Debug)]
pub(super) struct Load {
    direction: Direction,
    streams: u32,
    pub(super) congestion: Option<String>,
    begun: Instant,
    /// Streams that have come, downward and upward.
    joined: [AtomicU32; 2],
    /// Streams that were accepted, of both directions.
    accepted: watch::Sender<u32>,
    pub(super) received: AtomicU64,
    /// Those of the sockets that send.
    pub(super) sending_with: Names,
    pub(super) stop: watch::Sender<bool>,
    pub(super) sending: Pace,
    pub(super) receiving: Pace,
}

impl Load {
    pub(super) fn new(direction: Direction, streams: u32, congestion: Option<String>, rate: BitRate) -> Self {
        Self {
            direction,
            streams,
            congestion,
            begun: Instant::now(),
            joined: Default::default(),
            accepted: watch::Sender::new(0),
            received: AtomicU64::new(0),
            sending_with: Names::default(),
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
    pub(super) fn join(&self, way: Way) -> bool {
        let goes = match way {
            Way::Down => self.direction != Direction::Upload,
            Way::Up => self.is_upward(),
        };
        goes && self.joined[way as usize].fetch_add(1, Ordering::Relaxed) < self.streams
    }

    /// Counts a stream whose client has its answer.
    pub(super) fn accept(&self) {
        self.accepted.send_modify(|accepted| *accepted += 1);
    }

    /// Waits until every stream is accepted, for at most [`GATHERING`].
    pub(super) async fn all_accepted(&self) {
        let ways = if self.direction == Direction::Both { 2 } else { 1 };
        let all = self.streams.saturating_mul(ways);
        let mut accepted = self.accepted.subscribe();
        let end = time::Instant::from_std(self.begun + GATHERING);
        let _ = time::timeout_at(end, accepted.wait_for(|accepted| *accepted >= all)).await;
    }
}

/// The limit of a rate, shared by all streams of a direction.
#[derive(Debug)]
pub(super) struct Pace {
    rate: BitRate,
    /// When the bytes so far have passed at the rate.
    passed: Mutex<Instant>,
}

impl Pace {
    fn new(rate: BitRate) -> Self {
        Self { rate, passed: Mutex::new(Instant::now()) }
    }

    /// Counts bytes, and returns the wait until the rate is kept.
    pub(super) fn wait(&self, bytes: usize) -> Duration {
        let now = Instant::now();
        let time = Duration::from_nanos((bytes as u64).saturating_mul(8_000_000_000) / self.rate.as_bps());
        let mut passed = locked(&self.passed);
        *passed = (*passed).max(now) + time;
        (*passed).saturating_duration_since(now).saturating_sub(BURST)
    }

    /// Bytes of one write or read, `most` at most: a whole block at once would be a burst at a low rate.
    pub(super) fn block(&self, most: usize) -> usize {
        let bytes = u128::from(self.rate.as_bps()) * ONE.as_nanos() / 8_000_000_000;
        usize::try_from(bytes).unwrap_or(most).clamp(LEAST, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 ms at a megabyte a second are 10 kB.
    #[test]
    fn a_pace_lets_a_short_burst_pass_and_then_keeps_its_rate() {
        let pace = Pace::new(BitRate::from_mbit_per_s(8));
        assert_eq!(pace.wait(10_000), Duration::ZERO, "the burst");
        let wait = pace.wait(1_000_000);
        // A megabyte, less the time since the first call.
        assert!((Duration::from_millis(900)..=Duration::from_secs(1)).contains(&wait), "{wait:?}");
    }

    #[test]
    fn a_write_is_short_at_a_low_rate_and_whole_at_a_high_one() {
        let block = |bps| Pace::new(BitRate::from_bps(bps).unwrap()).block(65_536);
        // 5 ms at 5 Mbit/s are 3125 bytes, and at 1 Gbit/s 625 kB.
        assert_eq!([64_000, 5_000_000, 1_000_000_000].map(block), [1_448, 3_125, 65_536]);
    }
}
