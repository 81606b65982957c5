//! RED (random early detection): drops or marks what arrives with a probability that grows with the average queue.
//!
//! Published: Floyd and Jacobson 1993; the gentle variant Floyd 2000 (`gentle_` of ns); tc-red(8).
//! Differs: the average, the decay while idle and the draw are exact integer arithmetic: 32 fractional bits, 64 for the
//! power, and a comparison of whole products. The weight is any share, or the power of two that tc-red(8) finds for a `burst`,
//! by the sum of section 4 of the paper. Thresholds count packets, IP bytes or cells. Marks and drops are spread as in
//! figure 2 of the paper: behind one, the next comes after 1 to 1/p - 1 packets, each equally likely. The queue is idle from when its
//! last packet leaves it, not from when the line has sent that.
//! Cost: O(1) a packet, and for the first after a pause a power in as many squarings as the pause has binary digits.

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

/// What RED is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// An average below this is left alone.
    pub min: Limit,
    /// From here on everything is dropped; with `gentle`, from twice this on. In the unit of `min`.
    pub max: Limit,
    /// How much it holds whatever happens.
    pub limit: Limit,
    /// How likely a packet is dropped when the average is just below `max`, before drops are spread.
    pub probability: Ratio,
    /// How fast the average follows the queue.
    pub weight: Weight,
    /// An IP packet of average size: what a pause is counted in, and what a `burst` is made of.
    pub average_packet: ByteCount,
    /// The rate on the wire at which a pause counts as packets that found the queue empty.
    pub bandwidth: BitRate,
    /// Marks packets of senders that understand it, in place of dropping them.
    pub ecn: bool,
    /// Drops even those when the average is `max` or more.
    pub hard_drop: bool,
    /// Between `max` and twice `max` the probability grows to one, in place of a step.
    pub gentle: bool,
    /// Which random numbers decide.
    pub seed: u64,
}

/// How fast the average follows the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weight {
    /// The share of each new observation.
    Share(Ratio),
    /// The largest power of two, at most a half, with which so many packets of average size, arriving at once, leave the
    /// average below `min`.
    Burst(PacketCount),
    /// As for a burst of `(2 min + max) / 3`, which tc-red(8) advises.
    Advised,
}

impl Default for Config {
    /// Thresholds of 5 and 15 packets (Floyd 1997), a probability of 2 %, 1000-byte packets and 10 Mbit/s (tc-red(8)), gentle.
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

/// What RED cannot work with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RedError {
    /// Thresholds that are no range.
    #[error(
        "a min of {min} and a max of {max}: both must be in the same unit, min at least 1 of it and below max, max at most 2^30"
    )]
    Thresholds {
        /// The lower.
        min: Limit,
        /// The upper.
        max: Limit,
    },
    /// A probability of nothing.
    #[error("a probability of zero would drop nothing below max; it must be above 0 %")]
    ZeroProbability,
    /// An average that never moves.
    #[error("a weight of zero would leave the average at zero; the paper advises 0.2 %")]
    ZeroWeight,
    /// No packet to count a pause in.
    #[error("an average packet of 0 bytes; 1000 is usual")]
    ZeroPacket,
    /// A burst for which there is no weight.
    #[error("a burst of {0}; it must be from 1 to {max} packets, and no weight from 2^-31 on may let it pass `min`", max = Config::LONGEST_BURST)]
    Burst(PacketCount),
}

/// One, with the fractional bits of the average.
const ONE: u64 = 1 << 32;
const BILLION: u128 = 1_000_000_000;

impl Config {
    /// The longest burst that a weight is looked for.
    pub const LONGEST_BURST: u64 = 65_536;
    const LARGEST: u64 = 1 << 30;

    /// # Errors
    /// Thresholds, probabilities or weights that RED cannot work with.
    pub fn check(&self) -> Result<(), RedError> {
        let (min, max) = (count(self.min), count(self.max));
        let alike = core::mem::discriminant(&self.min) == core::mem::discriminant(&self.max);
        if !alike || min == 0 || min >= max || max > Self::LARGEST {
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
        (1..32).map(|shift| ONE >> shift).find(|&weight| u128::from(after_burst(burst, weight)) < min).ok_or(refused)
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

/// The average, in packets, when so many have come into an empty queue at once (Floyd and Jacobson 1993, section 4).
fn after_burst(packets: u64, weight: u64) -> u64 {
    (1..=packets).fold(0, |average, queue| follow(average, queue, weight))
}

/// The average once a queue of this size was seen; both numbers of 32 fractional bits but for the queue.
fn follow(average: u64, queue: u64, weight: u64) -> u64 {
    let ahead = i128::from(queue.min(u64::from(u32::MAX)) * ONE) - i128::from(average);
    let step = (ahead * i128::from(weight)) >> 32;
    // The average stays between itself and the queue, so it fits.
    (i128::from(average) + step) as u64
}

/// The average once `empty` packets would have found the queue empty: `average * (1 - weight)^empty`.
fn decayed(average: u64, weight: u64, empty: u64) -> u64 {
    // Below one, with 64 fractional bits.
    let times = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 64) as u64;
    let (mut square, mut left, mut kept) = ((ONE - weight) << 32, empty, average);
    while left > 0 {
        if left & 1 == 1 {
            kept = times(kept, square);
        }
        square = times(square, square);
        left >>= 1;
    }
    kept
}

/// What becomes of a packet that arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Pass,
    /// Congestion is told; `hard`: by a drop, whatever the sender understands.
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
    /// Packets since the last signal. `None`: the average was below `min` since.
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

    /// What the average of now asks for (figure 2 of the paper).
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

    /// The probability before it is spread, as a fraction. `None`: below `min`.
    fn chance(&self) -> Option<(u128, u128)> {
        let [min, max, average] = [self.min, self.max, self.average].map(u128::from);
        if average < min {
            None
        } else if average < max {
            Some((self.probability * (average - min), BILLION * (max - min)))
        } else if self.gentle {
            // One from twice `max` on.
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
        // Both products are below 2^126: a threshold has at most 30 bits, its fraction 32, a billion 30, and a draw 32.
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
    /// What a packet of average size takes on the line.
    packet_time: Duration,
    /// Since when nothing waits.
    idle: Option<Instant>,
    ecn: bool,
    dropped: u64,
    marked: u64,
    tally: Tally,
}

impl<P: Packet> Red<P> {
    /// An empty queue. `None`: the limit or the thresholds are in cells, and `link_layer` sends none.
    ///
    /// # Errors
    /// What RED cannot work with.
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

    /// What waits, in the unit of the thresholds.
    fn waiting(&self) -> u64 {
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
            decayed(average, weight, idle / self.packet_time)
        } else {
            follow(average, self.waiting(), weight)
        };
    }
}

/// A cell on the wire.
const CELL: WireBytes = lastmile_units::CellCount::new(1).wire_bytes();

impl<P: Packet> Discipline<P> for Red<P> {
    fn enqueue(&mut self, now: Instant, mut packet: P, drops: &mut dyn DropSink<P>) {
        let full = self.queue.refuses(&packet);
        if full == Some(Full::ForEver) {
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

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        if self.queue.is_empty() { None } else { Some(now) }
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.tally.show("red", visit);
        for (name, value) in [("dropped_aqm", self.dropped), ("marked", self.marked), ("forced", self.detector.forced)]
        {
            visit(Counter { path: "", kind: "red", name, value });
        }
    }
}

impl Mechanism for Config {
    fn check(&self, link_layer: &LinkLayer) -> Result<(), Problem> {
        check_limit(self.limit, link_layer)?;
        Self::check(self)?;
        self.weight(link_layer)?;
        check_limit(self.min, link_layer)
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        let red = Red::new(self, &site.environment.link_layer).map_err(|why| site.refuse(why))?;
        Ok(Box::new(red.ok_or_else(|| site.refuse(Problem::NoCells))?))
    }
}

#[cfg(test)]
mod tests;
