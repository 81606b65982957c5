//! When the packets of a datagram source leave: the patterns of the simulator's sources, with its random streams, so that both clocks
//! see the same packets.

use lastmile_queueing::random::Stream;
use lastmile_sim::spec::Source;
use lastmile_units::{ByteCount, Duration, Instant, Serialiser, WireBytes};

/// The size of the packets of a datagram source, and when each leaves, counted from its start; `None` for what is none.
pub(super) fn of(source: &Source, random: Stream) -> Option<(ByteCount, Box<dyn Iterator<Item = Duration> + Send>)> {
    match *source {
        Source::Constant { interval, size, .. } => {
            let times = std::iter::successors(Some(Duration::ZERO), move |last| Some(*last + interval));
            Some((size, Box::new(times)))
        }
        Source::Poisson { rate, size } => {
            let mean = rate.time_for(WireBytes::new(size.as_u64()));
            let gaps = std::iter::repeat_with({
                let mut random = random;
                move || random.exponential(mean)
            });
            let times = gaps.scan(Duration::ZERO, |at, gap| {
                *at += gap;
                Some(*at)
            });
            Some((size, Box::new(times)))
        }
        Source::OnOff { peak, on, off, size } => {
            let bytes = WireBytes::new(size.as_u64());
            Some((size, Box::new(Bursts::new(Serialiser::new(peak), bytes, on, off, random))))
        }
        _ => None,
    }
}

/// Packets at a constant rate during exponential on-times, silence during exponential off-times.
struct Bursts {
    packet_time: Serialiser,
    bytes: WireBytes,
    on: Duration,
    off: Duration,
    random: Stream,
    next: Instant,
    burst_ends: Instant,
}

impl Bursts {
    fn new(packet_time: Serialiser, bytes: WireBytes, on: Duration, off: Duration, mut random: Stream) -> Self {
        let burst_ends = Instant::ZERO + random.exponential(on);
        Self { packet_time, bytes, on, off, random, next: Instant::ZERO, burst_ends }
    }
}

impl Iterator for Bursts {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let now = self.next;
        self.next = now + self.packet_time.advance(self.bytes);
        if self.next >= self.burst_ends {
            // The burst is over, but never before its last packet is out.
            self.next = self.next.max(self.burst_ends) + self.random.exponential(self.off);
            self.burst_ends = self.next + self.random.exponential(self.on);
        }
        Some(now.since(Instant::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use lastmile_units::BitRate;

    use super::*;

    const SIZE: ByteCount = ByteCount::new(1000);

    fn times(source: &Source, count: usize) -> Vec<Duration> {
        of(source, Stream::new(1, "traffic test-1")).unwrap().1.take(count).collect()
    }

    #[test]
    fn a_constant_source_keeps_to_its_grid_from_the_start_on() {
        let source = Source::Constant { interval: Duration::from_ms(20), size: SIZE, kind: "voice" };
        assert_eq!(times(&source, 3), [0, 20, 40].map(Duration::from_ms));
    }

    /// 1000 bytes at 1 Mbit/s are 8 ms: 20 000 gaps have that mean within 3 standard errors of 0.7 %.
    #[test]
    fn a_poisson_source_has_its_mean() {
        let source = Source::Poisson { rate: BitRate::from_mbit_per_s(1), size: SIZE };
        let last = times(&source, 20_000).pop().unwrap().as_secs_f64();
        assert!((last / 160.0 - 1.0).abs() < 0.022, "{last} s");
    }

    /// Half the time on at 1 Mbit/s: packets every 8 ms within bursts, 62.5 a second in the mean.
    #[test]
    fn bursts_run_at_the_peak_and_pause() {
        let half = Duration::from_ms(500);
        let source = Source::OnOff { peak: BitRate::from_mbit_per_s(1), on: half, off: half, size: SIZE };
        let times = times(&source, 20_000);
        let gap = Duration::from_ms(8);
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= gap));
        let within = times.windows(2).filter(|pair| pair[1] - pair[0] == gap).count();
        assert!(within > 19_000, "{within}");
        let mean = 20_000.0 / times.last().unwrap().as_secs_f64();
        assert!((mean / 62.5 - 1.0).abs() < 0.2, "{mean} a second");
    }

    #[test]
    fn a_transfer_is_no_datagram_source() {
        let ping = Source::Ping { interval: Duration::from_ms(1), size: SIZE };
        assert!(of(&ping, Stream::new(1, "any")).is_none());
    }
}
