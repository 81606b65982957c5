//! An application that writes to a TCP connection at the instants of a Poisson process.
//!
//! The send buffer has no limit, so the application never blocks. Simulations of TCP over cells model bursty sources in
//! this way (Sun 1998).

use lastmile_queueing::random::Stream;
use lastmile_units::{Duration, Instant};

use lastmile_model::Source;

use super::Departures;

/// The application of one transfer.
#[derive(Debug)]
pub(crate) struct Writer {
    /// The index of the transfer.
    pub(crate) transfer: u32,
    writes: Departures,
    /// The time to the first write, which is then not random.
    first: Option<Duration>,
    stop: Option<Instant>,
}

impl Writer {
    /// The writer of this transfer; `None` unless `source` writes.
    pub(crate) fn new(source: &Source, transfer: u32, stop: Option<Instant>, random: Stream) -> Option<Self> {
        let Source::Writes { rate, size, first, .. } = source else { return None };
        Some(Self { transfer, writes: Departures::poisson(*rate, *size, random), first: *first, stop })
    }

    /// Bytes of a write.
    pub(crate) fn size(&self) -> u64 {
        self.writes.size().as_u64()
    }

    /// The next write after `now`, at which the writer began or wrote; `None`: the writer has stopped.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Instant> {
        let at = self.first.take().map_or_else(|| self.writes.after(now), |first| now + first);
        self.stop.is_none_or(|stop| at < stop).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lastmile_units::{BitRate, ByteCount};

    use super::*;
    use lastmile_model::OpenedBy;

    fn writer(stop: Option<Instant>) -> Writer {
        let source = Source::Writes {
            tcp: Arc::new(lastmile_tcp::Config::default()),
            rate: BitRate::from_kbit_per_s(800),
            size: ByteCount::new(1000),
            first: None,
            opened_by: OpenedBy::Sender,
        };
        Writer::new(&source, 0, stop, Stream::new(1, "traffic writes-0")).unwrap()
    }

    /// The test of Kolmogorov and Smirnov at 1 %: of gaps from the exponential distribution of mean 10 ms,
    /// one sample in a hundred differs from it by more than 1.63 / sqrt(n).
    #[test]
    fn gaps_are_exponential_with_the_mean_of_the_rate() {
        const COUNT: usize = 20_000;
        let mut writer = writer(None);
        let mut now = Instant::ZERO;
        let mut gaps: Vec<f64> = (0..COUNT)
            .map(|_| {
                let next = writer.next(now).unwrap();
                next.since(std::mem::replace(&mut now, next)).as_secs_f64()
            })
            .collect();
        let mean = now.as_secs_f64() / COUNT as f64;
        assert!((mean / 0.01 - 1.0).abs() < 0.02, "mean gap {mean} s: three deviations of 0.7 %");
        gaps.sort_by(f64::total_cmp);
        let apart = (0..COUNT).map(|index| {
            let expected = 1.0 - (-gaps[index] / 0.01).exp();
            let (below, above) = (index as f64 / COUNT as f64, (index + 1) as f64 / COUNT as f64);
            (expected - below).abs().max((expected - above).abs())
        });
        let most = apart.fold(0.0, f64::max);
        assert!(most < 1.63 / (COUNT as f64).sqrt(), "{most}");
    }

    /// The first write has its time, and the second the gap that would be the first one's.
    #[test]
    fn the_first_write_may_have_a_time() {
        let start = Instant::ZERO + Duration::from_ms(5);
        let mut timed = Writer { first: Some(Duration::from_ms(37)), ..writer(None) };
        let first = timed.next(start);
        assert_eq!(first, Some(Instant::ZERO + Duration::from_ms(42)));
        assert_eq!(timed.next(start), writer(None).next(start));
    }

    #[test]
    fn a_stopped_writer_writes_nothing() {
        let stop = Instant::ZERO + Duration::from_s(1);
        let mut writer = writer(Some(stop));
        let mut now = Instant::ZERO;
        let mut written = 0;
        while let Some(next) = writer.next(now) {
            assert!(next < stop);
            now = next;
            written += 1;
        }
        assert!((70..130).contains(&written), "{written} writes in 1 s at 100 a second");
    }
}
