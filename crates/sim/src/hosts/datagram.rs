//! UDP sources: Poisson, on/off with exponential periods, constant rate (voice, packet blast).
//!
//! The time of a packet of an on/off source at its peak passes while the source is on: a silence in it delays the next
//! packet. The mean rate is exact for any ratio of bursts to packets.
//!
//! Cost: an addition a packet, and two random numbers for each burst that ends.

use lastmile_packet::{FlowId, Meta, Protocol};
use lastmile_queueing::random::Stream;
use lastmile_units::{BitRate, ByteCount, Duration, Instant, Serialiser, WireBytes};

use lastmile_model::{IpFields, Source};

use super::{DataCounts, datagram};

/// Departures of an on/off source end here: sums of silences exceed no clock.
const FAR: Instant = Instant::from_ps(100 * 86_400 * 1_000_000_000_000);
/// Bursts of a packet that are drawn one by one, about. Shorter ones are drawn several at a time.
const BURSTS: u64 = 1_000;

/// A UDP flow, both ends of it.
#[derive(Debug)]
pub(crate) struct Datagrams {
    pub(crate) flow: FlowId,
    pub(crate) traffic: usize,
    pub(crate) counts: DataCounts,
    ip: IpFields,
    stop: Option<Instant>,
    departures: Departures,
}

/// The size and the departure times of the packets of a datagram source.
#[derive(Debug)]
pub struct Departures {
    size: ByteCount,
    pattern: Pattern,
}

/// The law of the departure times.
#[derive(Debug)]
enum Pattern {
    Constant { interval: Duration },
    Poisson { mean: Duration, random: Stream },
    OnOff { packet_time: Serialiser, on: Duration, off: Duration, burst_ends: Instant, random: Stream },
}

impl Departures {
    /// The departures of `source`; `None` unless it is a datagram source. Equal streams draw equal times.
    #[must_use]
    pub fn new(source: &Source, random: Stream) -> Option<Self> {
        let (size, pattern) = match *source {
            Source::Constant { interval, size, .. } => (size, Pattern::Constant { interval }),
            Source::Poisson { rate, size } => return Some(Self::poisson(rate, size, random)),
            Source::OnOff { peak, on, off, size } => {
                let packet_time = Serialiser::new(peak);
                (size, Pattern::OnOff { packet_time, on, off, burst_ends: Instant::ZERO, random })
            }
            Source::Bulk { .. }
            | Source::Quic { .. }
            | Source::Writes { .. }
            | Source::Web(_)
            | Source::Video(_)
            | Source::Backup(_)
            | Source::Conference(_)
            | Source::Game(_)
            | Source::Swarm(_)
            | Source::Replay(_)
            | Source::Ping { .. } => return None,
        };
        Some(Self { size, pattern })
    }

    /// Departures of `size` bytes at this mean rate, with exponential gaps.
    pub(super) fn poisson(rate: BitRate, size: ByteCount, random: Stream) -> Self {
        Self { size, pattern: Pattern::Poisson { mean: rate.time_for(WireBytes::new(size.as_u64())), random } }
    }

    /// IP bytes of each packet.
    #[must_use]
    pub fn size(&self) -> ByteCount {
        self.size
    }

    /// The departure of the first packet of a flow that begins at `now`.
    pub fn first(&mut self, now: Instant) -> Instant {
        match &mut self.pattern {
            Pattern::Constant { .. } => now,
            Pattern::Poisson { mean, random } => now + random.exponential(*mean),
            Pattern::OnOff { on, burst_ends, random, .. } => {
                *burst_ends = now + random.exponential(*on);
                now
            }
        }
    }

    /// The departure that follows the one at `now`.
    pub fn after(&mut self, now: Instant) -> Instant {
        match &mut self.pattern {
            Pattern::Constant { interval } => now + *interval,
            Pattern::Poisson { mean, random } => now + random.exponential(*mean),
            Pattern::OnOff { packet_time, on, off, burst_ends, random } => {
                let mut next = now + packet_time.advance(WireBytes::new(self.size.as_u64()));
                while next >= *burst_ends && next < FAR {
                    let lacking = next.since(*burst_ends);
                    let bursts = 1 + lacking.as_ps() / on.as_ps().max(1) / BURSTS;
                    let silence = random.exponential(*off).saturating_mul(bursts);
                    next = next.saturating_add(silence).min(FAR);
                    let burst = random.exponential(*on).saturating_mul(bursts);
                    *burst_ends = burst_ends.saturating_add(silence).saturating_add(burst);
                }
                next
            }
        }
    }
}

impl Datagrams {
    /// The flow of `source`; `None` unless it is a datagram source.
    pub(crate) fn new(source: &Source, flow: FlowId, traffic: usize, ip: IpFields, random: Stream) -> Option<Self> {
        let departures = Departures::new(source, random)?;
        Some(Self { flow, traffic, counts: DataCounts::default(), ip, stop: None, departures })
    }

    /// Begins the flow. Returns the departure of its first packet.
    pub(crate) fn start(&mut self, now: Instant, stop: Option<Instant>) -> Option<Instant> {
        self.stop = stop;
        let first = self.departures.first(now);
        self.unless_stopped(first)
    }

    /// The next packet, and the departure of the one after it.
    pub(crate) fn next(&mut self, now: Instant) -> (Meta, Option<Instant>) {
        let packet = datagram(self.flow, Protocol::Udp, self.departures.size, self.counts.sent, self.ip);
        self.counts.sent += 1;
        let next = self.departures.after(now);
        (packet, self.unless_stopped(next))
    }

    /// A packet arrives at the other end.
    pub(crate) fn arrived(&mut self, now: Instant, packet: &Meta) {
        self.counts.arrived(now, packet.seq.raw().into(), packet.payload_len().into());
    }

    fn unless_stopped(&self, at: Instant) -> Option<Instant> {
        self.stop.is_none_or(|stop| at < stop).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use lastmile_model::Steady;

    use super::*;

    const SIZE: ByteCount = ByteCount::new(1000);

    /// The departures of the first `count` packets of a flow that begins at 0.
    fn times(source: &Source, count: usize) -> Vec<Duration> {
        let mut departures = Departures::new(source, Stream::new(1, "traffic test-1")).unwrap();
        let first = departures.first(Instant::ZERO);
        let times = std::iter::successors(Some(first), |last| Some(departures.after(*last)));
        times.take(count).map(|at| at.since(Instant::ZERO)).collect()
    }

    #[test]
    fn a_constant_source_sends_at_equal_intervals_from_its_start() {
        let source = Source::Constant { interval: Duration::from_ms(20), size: SIZE, kind: Steady::Voice };
        assert_eq!(times(&source, 3), [0, 20, 40].map(Duration::from_ms));
    }

    /// 1000 bytes at 1 Mbit/s are 8 ms: 20 000 gaps have that mean within 3 standard errors of 0.7 %.
    #[test]
    fn a_poisson_source_has_its_mean() {
        let source = Source::Poisson { rate: BitRate::from_mbit_per_s(1), size: SIZE };
        let last = times(&source, 20_000).pop().unwrap().as_secs_f64();
        assert!((last / 160.0 - 1.0).abs() < 0.022, "{last} s");
    }

    /// On for half of the time at 1 Mbit/s: a packet every 8 ms within bursts, 62.5 a second in the mean.
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

    /// Half of 1 Mbit/s is a packet every 16 ms. 100 000 packets have at least 20 000 bursts: the standard error is
    /// 0.5 x sqrt(2 / 20 000), 0.5 %.
    #[test]
    fn an_on_off_source_has_its_mean_for_bursts_shorter_and_longer_than_a_packet() {
        for ms in [4, 8, 40] {
            let on = Duration::from_ms(ms);
            let source = Source::OnOff { peak: BitRate::from_mbit_per_s(1), on, off: on, size: SIZE };
            let last = times(&source, 100_000).pop().unwrap().as_secs_f64();
            assert!((last / 1_600.0 - 1.0).abs() < 0.02, "{ms} ms: {last} s");
        }
    }

    /// A packet of 8 ms takes 8000 bursts of 1 us; a packet of 8000 s takes 8 x 10^9 of them, and as many days.
    #[test]
    fn bursts_far_shorter_than_a_packet_end() {
        let short = Duration::from_us(1);
        let source = Source::OnOff { peak: BitRate::from_mbit_per_s(1), on: short, off: short, size: SIZE };
        let last = times(&source, 1_000).pop().unwrap().as_secs_f64();
        assert!((last / 16.0 - 1.0).abs() < 0.02, "{last} s");
        let day = Duration::from_s(86_400);
        let source = Source::OnOff { peak: BitRate::from_bps(1).unwrap(), on: short, off: day, size: SIZE };
        assert!(times(&source, 2)[1] > day * 99);
    }

    #[test]
    fn a_ping_is_no_datagram_source() {
        let ping = Source::Ping { interval: Duration::from_ms(1), size: SIZE, echo: lastmile_model::Echo::Icmp };
        assert!(Departures::new(&ping, Stream::new(1, "any")).is_none());
    }
}
