//! Trains in seconds: departures paced at an interval, arrivals, and times per packet of a busy line.

use lastmile_units::{ByteCount, Duration};

use super::posterior::Segment;
use crate::error::Error;
use crate::statistics::correlation_time;
use crate::train::{Departure, Echo, Passage, Path, Way};

/// Length of echoes as IP packets: the least of lastmile's protocol over IPv6.
pub(super) const ECHO_BYTES: u64 = 108;

/// A packet as it was seen, in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Seen {
    pub(super) size: u16,
    pub(super) sent: f64,
    pub(super) arrived: Option<f64>,
}

/// A train under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    departures: Vec<Departure>,
    at: f64,
}

impl Plan {
    /// A packet, and the time to the next one.
    pub(super) fn packet(&mut self, size: u16, interval: f64) {
        self.departures.push(Departure { at: span(self.at), ip_len: ByteCount::new(u64::from(size)) });
        self.at += interval;
    }

    pub(super) fn len(&self) -> usize {
        self.departures.len()
    }

    /// Seconds from the first departure to the end of the last interval.
    pub(super) fn length_s(&self) -> f64 {
        self.at
    }

    /// Sends the train.
    pub(super) fn send(&self, path: &mut dyn Path, way: Way) -> Result<Vec<Seen>, Error> {
        let mut seen = path.trains(&[(way, &self.departures)])?;
        Ok(self.seen(seen.pop().unwrap_or_default()))
    }

    /// Sends the train with echo requests of another flow beside it, or without them where the path has no other flow.
    pub(super) fn send_beside(
        &self,
        path: &mut dyn Path,
        way: Way,
        requests: &[Departure],
    ) -> Result<(Vec<Seen>, Option<Vec<Echo>>), Error> {
        match path.beside(way, &self.departures, requests)? {
            Some((passages, echoes)) => Ok((self.seen(passages), Some(echoes))),
            None => Ok((self.send(path, way)?, None)),
        }
    }

    fn seen(&self, passages: Vec<Passage>) -> Vec<Seen> {
        let convert = |(departure, passage): (&Departure, Passage)| Seen {
            size: u16::try_from(departure.ip_len.as_u64()).unwrap_or(u16::MAX),
            sent: passage.sent.as_secs_f64(),
            arrived: passage.arrived.map(Duration::as_secs_f64),
        };
        self.departures.iter().zip(passages).map(convert).collect()
    }
}

pub(super) fn span(seconds: f64) -> Duration {
    Duration::from_ns((seconds.max(0.0) * 1e9) as u64)
}

/// `count` packets of one size at one interval.
pub(super) fn steady(size: u16, interval: f64, count: usize) -> Plan {
    let mut plan = Plan::default();
    (0..count).for_each(|_| plan.packet(size, interval));
    plan
}

/// Time per packet of those that arrived, by least squares of arrival against position, and its
/// share of each size. A packet's time on a busy line ends with its arrival, so the first packet
/// only starts the clock.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    /// Seconds per packet.
    pub(super) seconds: f64,
    /// Standard error of `seconds` if delays varied independently, with their standard deviation
    /// about the line.
    pub(super) error: f64,
    /// Sizes and shares.
    pub(super) mix: Vec<(u16, f64)>,
    /// Packets that arrived.
    pub(super) arrived: usize,
    /// Seconds from the first arrival to the last, along the fitted line.
    pub(super) span: f64,
}

/// The pace of `seen`; `None` with fewer than four arrivals.
pub(super) fn pace(seen: &[Seen]) -> Option<Pace> {
    let arrivals: Vec<(u16, f64)> = seen.iter().filter_map(|seen| Some((seen.size, seen.arrived?))).collect();
    let count = arrivals.len();
    if count < 4 {
        return None;
    }
    let middle = (count - 1) as f64 / 2.0;
    let spread = (count as f64).powi(3) / 12.0 - count as f64 / 12.0;
    let contrast = |i: usize| (i as f64 - middle) / spread;
    let zero = arrivals[0].1;
    let seconds: f64 = arrivals.iter().enumerate().map(|(i, arrival)| contrast(i) * (arrival.1 - zero)).sum();
    let mut sizes: Vec<u16> = arrivals.iter().map(|arrival| arrival.0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let share = |size: u16| {
        let mut before = 0.0;
        let weigh = |(i, arrival): (usize, &(u16, f64))| {
            before += if i > 0 && arrival.0 == size { 1.0 } else { 0.0 };
            contrast(i) * before
        };
        arrivals.iter().enumerate().map(weigh).sum::<f64>()
    };
    let mix = sizes.iter().map(|&size| (size, share(size))).collect();
    let mean = arrivals.iter().map(|arrival| arrival.1 - zero).sum::<f64>() / count as f64;
    let residual = |(i, arrival): (usize, &(u16, f64))| arrival.1 - zero - mean - seconds * (i as f64 - middle);
    let squares: f64 = arrivals.iter().enumerate().map(|each| residual(each).powi(2)).sum();
    let error = (squares / (count as f64 - 2.0) / spread).sqrt();
    Some(Pace { seconds, error, mix, arrived: count, span: seconds * (count - 1) as f64 })
}

/// Blocks into which residuals are averaged: the autocorrelation costs their number times the lags.
const BLOCKS: usize = 1_000;

/// Seconds per packet of `seen` and the standard error where delays depend on each other: that of
/// independent ones times the root of the residuals' autocorrelation time.
pub(super) fn paced(seen: &[Seen]) -> Option<(f64, f64)> {
    let pace = pace(seen)?;
    let arrivals: Vec<f64> = seen.iter().filter_map(|seen| seen.arrived).collect();
    let block = arrivals.len().div_ceil(BLOCKS);
    let residual = |(i, at): (usize, &f64)| at - arrivals[0] - pace.seconds * i as f64;
    let residuals: Vec<f64> = arrivals.iter().enumerate().map(residual).collect();
    let blocks: Vec<f64> =
        residuals.chunks_exact(block).map(|block| block.iter().sum::<f64>() / block.len() as f64).collect();
    let count = blocks.len() as f64;
    let mean = blocks.iter().sum::<f64>() / count;
    let variance = blocks.iter().map(|block| (block - mean).powi(2)).sum::<f64>() / (count - 2.0).max(1.0);
    let spread = count.powi(3) / 12.0;
    let error = (variance * correlation_time(&blocks) / spread).sqrt() / block as f64;
    Some((pace.seconds, error.max(pace.error)))
}

/// The segment of a busy line in `seen`; `None` if the sender did not keep the line busy, or too
/// few packets arrived.
pub(super) fn segment(pattern: (u16, u16), seen: &[Seen]) -> Option<Segment> {
    let pace = pace(seen)?;
    let interval = (seen.last()?.sent - seen.first()?.sent) / (seen.len() as f64 - 1.0);
    // Packets came faster than they left, or were dropped by a full queue.
    let busy = interval < 0.985 * pace.seconds || lost_share(seen) > 0.03;
    if pace.arrived < 8 || !busy {
        return None;
    }
    let count = pace.arrived as f64;
    // Independent delays: the standard error of a slope falls with count^1.5 of packets.
    let scale = 1.0 / (count.sqrt() * pace.span);
    Some(Segment { pattern, mix: pace.mix, seconds: pace.seconds, scale })
}

/// Share of packets that did not arrive.
pub(super) fn lost_share(seen: &[Seen]) -> f64 {
    seen.iter().filter(|seen| seen.arrived.is_none()).count() as f64 / seen.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sizes in turn, 1 ms and 3 ms on the line: by shares and times, 2 ms a packet.
    #[test]
    fn the_pace_of_a_mixed_train_is_that_of_its_shares() {
        let mut at = 5.0;
        let seen: Vec<Seen> = (0..101)
            .map(|i| {
                let size = if i % 2 == 0 { 100 } else { 300 };
                at += f64::from(size) * 1e-5;
                Seen { size, sent: f64::from(i) * 1e-3, arrived: Some(at) }
            })
            .collect();
        let pace = pace(&seen).unwrap();
        let predicted: f64 = pace.mix.iter().map(|&(size, share)| share * f64::from(size) * 1e-5).sum();
        assert!((pace.seconds - predicted).abs() < 1e-12, "{} {predicted}", pace.seconds);
        assert!((pace.mix.iter().map(|each| each.1).sum::<f64>() - 1.0).abs() < 1e-9);
    }

    /// A sender that is slower than the line leaves it idle: its times say nothing of the line.
    #[test]
    fn an_idle_line_gives_no_segment() {
        let train = |interval: f64| -> Vec<Seen> {
            (0..50)
                .map(|i| Seen {
                    size: 500,
                    sent: interval * f64::from(i),
                    arrived: Some(f64::from(i) * 1e-3f64.max(interval)),
                })
                .collect()
        };
        assert!(segment((500, 0), &train(0.9e-3)).is_some());
        assert!(segment((500, 0), &train(1e-3)).is_none());
    }
}
