//! RED (random early detection): drops or marks arriving packets with a probability that grows with
//! the average queue length.
//!
//! Published: Floyd and Jacobson 1993; the gentle variant Floyd 2000 (`gentle_` of ns); tc-red(8).
//! Differs:
//!
//! - The average, its decay while idle and the draw are exact integer arithmetic: 32 fractional
//!   bits, 64 for the power, and a comparison of whole products.
//! - The weight is any share, or the power of two that tc-red(8) finds for a `burst`, by the sum of
//!   section 4 of the paper.
//! - Thresholds count packets, IP bytes or cells.
//! - Marks and drops are spread as in figure 2 of the paper: after one, the next follows after 1 to
//!   1/p - 1 packets, each equally likely.
//! - The queue is idle from the time when its last packet is dequeued, not when the line has sent
//!   it. A pause counts once: by figure 2 of the paper each packet that is dropped in it counts all
//!   of it again.
//!
//! Cost: O(1) a packet; for the first packet after a pause a power, in as many squarings as the
//! pause has binary digits.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{Meta, Packet};
use lastmile_units::{BitRate, ByteCount, Duration, Instant, Limit, PacketCount, Ratio, WireBytes};

use super::{Full, WireFifo};
use crate::catalogue::{Built, Mechanism};
use crate::discipline::Counter;
use crate::fifo::{Tally, check_limit};
use crate::random::Stream;
use crate::spec::{Problem, Site};
use crate::{Backlog, Discipline, DropReason, DropSink};

/// Parameters of RED.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Lower threshold: an average below it causes no drops.
    pub min: Limit,
    /// Upper threshold, in the unit of `min`: an average of at least `max`, with `gentle` of twice
    /// `max`, drops everything.
    pub max: Limit,
    /// Capacity of the queue.
    pub limit: Limit,
    /// Drop probability at an average just below `max`, before drops are spread.
    pub probability: Ratio,
    /// Weight of the moving average.
    pub weight: Weight,
    /// An IP packet of average size: the unit in which a pause and a `burst` are counted.
    pub average_packet: ByteCount,
    /// Rate on the wire, used to count a pause as packets that found the queue empty.
    pub bandwidth: BitRate,
    /// Marks packets of ECN-capable senders instead of dropping them.
    pub ecn: bool,
    /// Drops ECN-capable packets too when the average is `max` or more.
    pub hard_drop: bool,
    /// Between `max` and twice `max` the probability grows linearly to one, in place of a step at
    /// `max`.
    pub gentle: bool,
    /// Seed of the random draws.
    pub seed: u64,
}

/// Weight of the moving average: how fast it follows the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weight {
    /// The share of each new observation.
    Share(Ratio),
    /// The largest power of two, at most a half, with which a burst of this many packets of average
    /// size leaves the average below `min`.
    Burst(PacketCount),
    /// As `Burst` with `(2 min + max) / 3` packets, which tc-red(8) advises.
    Advised,
}

impl Default for Config {
    /// Thresholds of 5 and 15 packets (Floyd 1997), a probability of 2 %, 1000-byte packets and
    /// 10 Mbit/s (tc-red(8)), gentle.
    fn default() -> Self {
        let packets = |count| Limit::Packets(PacketCount::new(count));
        Self {
            min: packets(5),
            max: packets(15),
            limit: packets(100),
            probability: Ratio::from_percent(2).expect("a share"),
            weight: Weight::Advised,
            average_packet: ByteCount::new(1000),
            bandwidth: BitRate::from_mbit_per_s(10),
            ecn: false,
            hard_drop: false,
            gentle: true,
            seed: 1,
        }
    }
}

/// Parameters with which RED cannot work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RedError {
    /// Thresholds that are no range.
    #[error(
        "a min of {min} and a max of {max}: both must be in the same unit, min at least 1 of it and below max, \
         max at most 2^30"
    )]
    Thresholds {
        /// The lower threshold.
        min: Limit,
        /// The upper threshold.
        max: Limit,
    },
    /// A probability of zero.
    #[error("a probability of zero would drop nothing below max; it must be above 0 %")]
    ZeroProbability,
    /// A weight of zero: the average would never move.
    #[error("a weight of zero would leave the average at zero; the paper advises 0.2 %")]
    ZeroWeight,
    /// An average packet of zero bytes, in which no pause can be counted.
    #[error("an average packet of 0 bytes; 1000 is usual")]
    ZeroPacket,
    /// A burst for which there is no weight.
    #[error(
        "a burst of {0}; it must be from 1 to {max} packets, and no weight from 2^-31 on may let it pass `min`",
        max = Config::LONGEST_BURST
    )]
    Burst(PacketCount),
}

/// One, with the fractional bits of the average.
const ONE: u64 = 1 << 32;
const BILLION: u128 = 1_000_000_000;

impl Config {
    /// The longest burst for which a weight is searched.
    pub const LONGEST_BURST: u64 = 65_536;
    const LARGEST: u64 = 1 << 30;

    /// # Errors
    /// Thresholds, probabilities or weights that RED cannot work with.
    pub fn check(&self) -> Result<(), RedError> {
        let (min, max) = (count(self.min), count(self.max));
        let same_unit = core::mem::discriminant(&self.min) == core::mem::discriminant(&self.max);
        if !same_unit || min == 0 || min >= max || max > Self::LARGEST {
            return Err(RedError::Thresholds { min: self.min, max: self.max });
        }
        if self.probability.as_parts_per_billion() == 0 {
            return Err(RedError::ZeroProbability);
        }
        if self.average_packet.as_u64() == 0 {
            return Err(RedError::ZeroPacket);
        }
        Ok(())
    }

    /// The weight, with 32 fractional bits.
    fn weight(&self, link_layer: &LinkLayer) -> Result<u64, RedError> {
        let in_packets = |threshold: Limit| match threshold {
            Limit::Packets(packets) => u128::from(packets.as_u64()) * u128::from(ONE),
            Limit::Bytes(bytes) => {
                u128::from(bytes.as_u64()) * u128::from(ONE) / u128::from(self.average_packet.as_u64())
            }
            Limit::Wire(bytes) => {
                let packet = link_layer.on_wire(self.average_packet).as_u64().max(1);
                u128::from(bytes.as_u64()) * u128::from(ONE) / u128::from(packet)
            }
            Limit::Cells(cells) => {
                let packet = link_layer.cells(self.average_packet).map_or(1, |cells| cells.as_u64().max(1));
                u128::from(cells.as_u64()) * u128::from(ONE) / u128::from(packet)
            }
        };
        let burst = match self.weight {
            Weight::Share(share) => {
                let weight = u128::from(share.as_parts_per_billion()) * u128::from(ONE) / BILLION;
                return if weight == 0 { Err(RedError::ZeroWeight) } else { Ok(weight as u64) };
            }
            Weight::Burst(burst) => burst.as_u64(),
            Weight::Advised => {
                let packets = (2 * in_packets(self.min) + in_packets(self.max)) / (3 * u128::from(ONE));
                u64::try_from(packets).unwrap_or(u64::MAX).max(1)
            }
        };
        let refused = RedError::Burst(PacketCount::new(burst));
        if burst == 0 || burst > Self::LONGEST_BURST {
            return Err(refused);
        }
        let min = in_packets(self.min);
        (1..32)
            .map(|shift| ONE >> shift)
            .find(|&weight| u128::from(average_after_burst(burst, weight)) < min)
            .ok_or(refused)
    }
}

const fn count(limit: Limit) -> u64 {
    match limit {
        Limit::Packets(packets) => packets.as_u64(),
        Limit::Bytes(bytes) => bytes.as_u64(),
        Limit::Wire(bytes) => bytes.as_u64(),
        Limit::Cells(cells) => cells.as_u64(),
    }
}

/// The average, in packets, after a burst of `packets` into an empty queue (Floyd and Jacobson
/// 1993, section 4). 32 fractional bits.
fn average_after_burst(packets: u64, weight: u64) -> u64 {
    (1..=packets).fold(0, |average, queue| updated_average(average, queue, weight))
}

/// The average after an observation of `queue`, an integer. `average`, `weight` and the result have
/// 32 fractional bits.
fn updated_average(average: u64, queue: u64, weight: u64) -> u64 {
    let ahead = i128::from(queue.min(u64::from(u32::MAX)) * ONE) - i128::from(average);
    let step = (ahead * i128::from(weight)) >> 32;
    // The result lies between the average and the queue, so it fits.
    (i128::from(average) + step) as u64
}

/// The average after `empty` packets would have found the queue empty: `average * (1 -
/// weight)^empty`.
fn decayed(average: u64, weight: u64, empty: u64) -> u64 {
    // A product of two fractions below one, with 64 fractional bits.
    let multiply = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 64) as u64;
    let (mut square, mut left, mut result) = ((ONE - weight) << 32, empty, average);
    while left > 0 {
        if left & 1 == 1 {
            result = multiply(result, square);
        }
        square = multiply(square, square);
        left >>= 1;
    }
    result
}

/// Decision on an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Pass,
    /// Congestion is signalled; `hard`: by a drop even for ECN-capable senders.
    Signal {
        hard: bool,
    },
}

/// The average and the decisions made by it.
#[derive(Clone, Debug)]
struct Detector {
    /// Thresholds and average have 32 fractional bits.
    min: u64,
    max: u64,
    average: u64,
    weight: u64,
    probability: u128,
    gentle: bool,
    hard_drop: bool,
    /// Packets since the last signal. `None`: no packet has found the average at or above `min`
    /// since it fell below.
    since: Option<u64>,
    random: Stream,
    forced: u64,
}

impl Detector {
    fn new(config: &Config, weight: u64) -> Self {
        Self {
            min: count(config.min) * ONE,
            max: count(config.max) * ONE,
            average: 0,
            weight,
            probability: u128::from(config.probability.as_parts_per_billion()),
            gentle: config.gentle,
            hard_drop: config.hard_drop,
            since: None,
            random: Stream::new(config.seed, "red"),
            forced: 0,
        }
    }

    /// Decides on the next packet by the current average (figure 2 of the paper).
    fn judge(&mut self) -> Verdict {
        let above = self.average >= self.max;
        let hard = above && self.hard_drop;
        let Some((part, whole)) = self.chance() else {
            self.since = None;
            return Verdict::Pass;
        };
        let since = self.since.map_or(0, |since| since.saturating_add(1));
        self.since = Some(since);
        if part < whole && !self.drawn(part, whole, since) {
            return Verdict::Pass;
        }
        self.since = Some(0);
        self.forced += u64::from(above);
        Verdict::Signal { hard }
    }

    /// The probability before spreading, as a fraction. `None`: the average is below `min`.
    fn chance(&self) -> Option<(u128, u128)> {
        let [min, max, average] = [self.min, self.max, self.average].map(u128::from);
        if average < min {
            None
        } else if average < max {
            Some((self.probability * (average - min), BILLION * (max - min)))
        } else if self.gentle {
            // The probability reaches one at twice `max`.
            let rest = (BILLION - self.probability) * (average - max);
            Some((self.probability * max + rest, BILLION * max))
        } else {
            Some((1, 1))
        }
    }

    /// True with a probability of `p / (1 - since * p)`, where p is `part / whole`.
    fn drawn(&mut self, part: u128, whole: u128, since: u64) -> bool {
        let left = whole.saturating_sub(part.saturating_mul(u128::from(since)));
        if left <= part {
            return true;
        }
        // Both products are below 2^126: a threshold has at most 30 bits, its fraction 32, a
        // billion 30, and a draw 32.
        let draw = u128::from(self.random.bits() >> 32);
        draw * left < part * u128::from(ONE)
    }
}

/// A FIFO under RED.
#[derive(Clone, Debug)]
pub struct Red<P: Packet> {
    queue: WireFifo<P>,
    measure: Limit,
    detector: Detector,
    /// Transmission time of a packet of average size.
    packet_time: Duration,
    /// The time since when the queue is empty.
    idle: Option<Instant>,
    ecn: bool,
    dropped: u64,
    marked: u64,
    tally: Tally,
}

impl<P: Packet> Red<P> {
    /// An empty queue. `None` if the limit or the thresholds are in cells and `link_layer` has
    /// none.
    ///
    /// # Errors
    /// Parameters with which RED cannot work.
    pub fn new(config: &Config, link_layer: &LinkLayer) -> Result<Option<Self>, RedError> {
        config.check()?;
        let weight = config.weight(link_layer)?;
        let cells = |limit: Limit| matches!(limit, Limit::Cells(_)) && link_layer.cells(ByteCount::new(1)).is_none();
        let Some(queue) = WireFifo::new(config.limit, link_layer).filter(|_| !cells(config.min)) else {
            return Ok(None);
        };
        Ok(Some(Self {
            queue,
            measure: config.min,
            detector: Detector::new(config, weight),
            packet_time: config.bandwidth.time_for(link_layer.on_wire(config.average_packet)).max(Duration::from_ps(1)),
            idle: None,
            ecn: config.ecn,
            dropped: 0,
            marked: 0,
            tally: Tally::default(),
        }))
    }

    /// The backlog in the unit of the thresholds.
    fn backlog_in_limit_units(&self) -> u64 {
        let backlog = self.queue.backlog();
        match self.measure {
            Limit::Packets(_) => backlog.packets.as_u64(),
            Limit::Bytes(_) => backlog.bytes.as_u64(),
            Limit::Wire(_) => self.queue.wire.as_u64(),
            Limit::Cells(_) => self.queue.wire.as_u64() / CELL.as_u64(),
        }
    }

    fn observe(&mut self, now: Instant) {
        let Detector { average, weight, .. } = self.detector;
        self.detector.average = if self.queue.is_empty() {
            let idle = self.idle.map_or(Duration::ZERO, |since| now.since(since));
            let packets = idle / self.packet_time;
            // A packet that is dropped leaves the queue idle, and the time up to it has counted.
            self.idle = self.idle.map(|since| since + self.packet_time * packets);
            decayed(average, weight, packets)
        } else {
            updated_average(average, self.backlog_in_limit_units(), weight)
        };
    }
}

/// The size of a cell on the wire.
const CELL: WireBytes = lastmile_units::CellCount::new(1).wire_bytes();

impl<P: Packet> Discipline<P> for Red<P> {
    fn enqueue(&mut self, now: Instant, mut packet: P, drops: &mut dyn DropSink<P>) {
        let full = self.queue.refuses(&packet);
        if full == Some(Full::TooLarge) {
            self.tally.too_large += 1;
            drops.dropped(now, packet, DropReason::TooLarge);
            return;
        }
        self.observe(now);
        let verdict = self.detector.judge();
        let marks = self.ecn && packet.meta().ecn() != Meta::NOT_ECT;
        if let Verdict::Signal { hard } = verdict
            && (hard || !marks)
        {
            self.dropped += 1;
            drops.dropped(now, packet, DropReason::Aqm);
        } else if full.is_some() {
            self.tally.tail += 1;
            drops.dropped(now, packet, DropReason::Tail);
        } else {
            if verdict != Verdict::Pass {
                packet.mark_ce();
                self.marked += 1;
            }
            self.queue.put(packet);
        }
    }

    fn dequeue(&mut self, now: Instant, _drops: &mut dyn DropSink<P>) -> Option<P> {
        let packet = self.queue.pop()?;
        self.tally.sent(&packet);
        if self.queue.is_empty() {
            self.idle = Some(now);
        }
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.tally.show("red", visit);
        Counter::all(
            "red",
            [("dropped_aqm", self.dropped), ("marked", self.marked), ("forced", self.detector.forced)],
            visit,
        );
    }
}

impl Mechanism for Config {
    fn check(&self, link_layer: &LinkLayer) -> Result<(), Problem> {
        check_limit(self.limit, link_layer)?;
        Self::check(self)?;
        self.weight(link_layer)?;
        check_limit(self.min, link_layer)
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        let config = Self { seed: site.seed(self.seed), ..*self };
        let red = Red::new(&config, &site.environment.link_layer).map_err(|why| site.refuse(why))?;
        Ok(Box::new(red.ok_or_else(|| site.refuse(Problem::NoCells))?))
    }
}

#[cfg(test)]
mod tests;
