//! Two captures of the same packets, at two positions of their path: one-way delays, and losses between
//! them.
//!
//! A packet is found in the other capture by a hash of what the path leaves unchanged: addresses,
//! protocol, length, IPv4 identification, and the TCP header's numbers and timestamps. Equal packets
//! are paired in their order. Network address translation between the captures hides all pairs.
//!
//! Each capture has a clock. The fastest packets of each direction bound the offset of the clocks from
//! both sides. It is taken to be in the middle, as if the fastest packets took as long in both
//! directions. With packets in one direction only, the offset is unknown, and delays are relative to the
//! fastest.
//!
//! A drift of the clocks lengthens the delays of one direction as much as it shortens those of the other; a
//! queue lengthens those of one. So each direction has a line through the fastest packets of up to `SPANS`
//! spans, with an error that grows with their scatter: where the lines agree, their mean is the drift,
//! weighted by the errors. Where they differ, or the mean is within its error, no drift is told.
//!
//! Cost: 24 bytes for each packet of both captures and 32 for each pair, and a sort.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _};

use hdrhistogram::Histogram;
use lastmile_packet::{FlowAddresses, FlowKey, HashKey, Parsed, Protocol, TcpFlags};
use lastmile_units::Duration;

/// Spans of the estimate of the clocks' offset.
const SPANS: usize = 32;
/// Fewest spans of a direction from which a drift follows.
const FEWEST: usize = 8;
/// Errors beyond which a drift, or a difference of the directions, is no chance.
const SURE: f64 = 3.0;
/// Seconds between two times of a usual capture.
const RESOLUTION: f64 = 1e-6;
/// The protocol number of TCP.
const TCP: u8 = 6;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Glimpse {
    hash: u64,
    at_ns: i64,
    /// A hash of its flow in either direction.
    flow: u32,
    /// True for the direction of the lesser key.
    forward: bool,
    /// True for payload, SYN or FIN, which are retransmitted if they are lost.
    retains: bool,
}

/// The packets of one capture, for their comparison with another.
#[derive(Clone, Debug, Default)]
pub struct Glimpses {
    all: Vec<Glimpse>,
    key: HashKey,
}

impl Glimpses {
    /// Adds a packet captured at this time since 1970, by the clock of its capture.
    pub fn packet(&mut self, at_ns: u64, packet: &Parsed) {
        let meta = &packet.meta;
        let mut hasher = self.key.build_hasher();
        hasher.write_u64(self.key.hash_one(packet.key));
        hasher.write_u32(u32::from(meta.ip_len) << 16 | u32::from(meta.ip_id));
        if meta.protocol == Protocol::Tcp {
            hasher.write_u64(u64::from(meta.seq.raw()) << 32 | u64::from(meta.ack.raw()));
            hasher.write_u32(u32::from(meta.window) << 8 | u32::from(meta.flags.bits()));
            let (value, echo) = meta.options().timestamps().unwrap_or_default();
            hasher.write_u64(u64::from(value) << 32 | u64::from(echo));
        }
        let retains = meta.payload_len() > 0 || meta.flags.intersects(TcpFlags::SYN.with(TcpFlags::FIN));
        self.all.push(Glimpse {
            hash: hasher.finish(),
            at_ns: i64::try_from(at_ns).unwrap_or(i64::MAX),
            flow: self.key.hash_one(packet.key.min(packet.key.reversed())) as u32,
            forward: packet.key <= packet.key.reversed(),
            retains,
        });
    }
}

/// Delays of one direction between two captures.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct OneWay {
    /// Packets at both captures.
    pub both: u64,
    /// Packets with payload, SYN or FIN among them.
    pub both_data: u64,
    /// Packets that passed the first capture of this direction only: lost between the captures, or
    /// changed.
    pub lost_between: u64,
    /// Those with payload, SYN or FIN among them.
    pub lost_data: u64,
    /// Packets at the second capture only: missed by the first, or changed.
    pub missed: u64,
    /// The smallest delay, the median, the 95th and 99th percentile and the largest.
    pub delays: Option<[Duration; 5]>,
}

/// The clock of the second capture relative to that of the first.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ClockOffset {
    /// Seconds by which it is ahead at the first packet.
    pub ahead_s: f64,
    /// Seconds that it gains in each second; zero where the packets do not tell.
    pub drift: f64,
    /// Half the round trip of the fastest packets: the largest error of the offset.
    pub error_s: f64,
}

/// Two captures compared.
#[derive(Clone, Debug)]
pub struct Joined {
    /// `None` if packets of one direction only are in both captures: delays are then relative to the
    /// fastest.
    pub clock: Option<ClockOffset>,
    /// Packets from the first capture to the second.
    pub there: OneWay,
    /// Packets from the second to the first.
    pub back: OneWay,
    sides: Sides,
    key: HashKey,
}

impl Joined {
    /// Whether packets from this source pass the first capture first; `None` for a flow that is not in
    /// both captures.
    #[must_use]
    pub fn is_there(&self, addresses: FlowAddresses) -> Option<bool> {
        let key = FlowKey { addresses, protocol: TCP };
        let reversed = key.reversed();
        let forward = *self.sides.forward.get(&(self.key.hash_one(key.min(reversed)) as u32))?;
        Some(forward == (key <= reversed))
    }
}

/// A packet at both captures: time at the first, and how much later at the second, in nanoseconds.
type Pair = (i64, i64);

/// Pairs and single packets of one direction.
#[derive(Default)]
struct Way {
    pairs: Vec<Pair>,
    pairs_data: u64,
    /// In the first capture only, and in the second only.
    only: [u64; 2],
    only_data: [u64; 2],
}

/// Compares two captures; `None` if no packet is in both.
#[must_use]
pub fn join(mut first: Glimpses, mut second: Glimpses) -> Option<Joined> {
    first.all.sort_unstable();
    second.all.sort_unstable();
    let Found { pairs, single } = pair(&first.all, &second.all);
    let side = Sides::of(&pairs)?;
    let mut ways = [Way::default(), Way::default()];
    for (one, later) in &pairs {
        let way = &mut ways[usize::from(!side.is_there(one))];
        way.pairs.push((one.at_ns, *later));
        way.pairs_data += u64::from(one.retains);
    }
    // Packets at times at which the other capture did not run say nothing, and those after the last one
    // in common may be under way. The clocks may differ by any amount, so that the span is that of the
    // packets of the direction in common.
    let spans = ways.each_ref().map(Way::spans);
    for (which, one) in &single {
        let number = usize::from(!side.is_there(one));
        if spans[number].is_some_and(|spans| (spans[*which].0..=spans[*which].1).contains(&one.at_ns)) {
            let way = &mut ways[number];
            way.only[*which] += 1;
            way.only_data[*which] += u64::from(one.retains);
        }
    }
    let [mut there, mut back] = ways;
    there.pairs.sort_unstable();
    back.pairs.sort_unstable();
    let clock = offset(&there.pairs, &back.pairs);
    let ahead_ns = |at: i64| clock.map(|(from, clock)| clock.ahead_s * 1e9 + clock.drift * (at - from) as f64);
    let there_least = there.pairs.iter().map(|pair| pair.1).min().unwrap_or(0) as f64;
    let back_least = back.pairs.iter().map(|pair| -pair.1).min().unwrap_or(0) as f64;
    let delay_there = |pair: &Pair| pair.1 as f64 - ahead_ns(pair.0).unwrap_or(there_least);
    let delay_back = |pair: &Pair| ahead_ns(pair.0).unwrap_or(-back_least) - pair.1 as f64;
    Some(Joined {
        clock: clock.map(|(_, clock)| clock),
        there: there.finish(0, delay_there),
        back: back.finish(1, delay_back),
        sides: side,
        key: first.key,
    })
}

/// Pairs, as the packet at the first capture and how much later it is at the second, and packets of one
/// capture only, with its index.
#[derive(Default)]
struct Found {
    pairs: Vec<(Glimpse, i64)>,
    single: Vec<(usize, Glimpse)>,
}

/// Pairs equal packets of two sorted lists.
fn pair(first: &[Glimpse], second: &[Glimpse]) -> Found {
    let mut found = Found::default();
    let (mut i, mut j) = (0, 0);
    while let (Some(a), Some(b)) = (first.get(i), second.get(j)) {
        match a.hash.cmp(&b.hash) {
            std::cmp::Ordering::Less => {
                found.single.push((0, *a));
                i += 1;
            }
            std::cmp::Ordering::Greater => {
                found.single.push((1, *b));
                j += 1;
            }
            std::cmp::Ordering::Equal => {
                found.pairs.push((*a, b.at_ns - a.at_ns));
                (i, j) = (i + 1, j + 1);
            }
        }
    }
    found.single.extend(first[i..].iter().map(|one| (0, *one)));
    found.single.extend(second[j..].iter().map(|one| (1, *one)));
    found
}

/// Which direction of each flow passes the first capture first.
#[derive(Clone, Debug)]
struct Sides {
    /// By flow: true if its forward direction does.
    forward: BTreeMap<u32, bool>,
}

impl Sides {
    /// Packets from the first capture to the second seem to take longer than those back, whatever the
    /// offset of the clocks. A flow in one direction is compared with the others; `None` without pairs.
    fn of(pairs: &[(Glimpse, i64)]) -> Option<Self> {
        let mut least: BTreeMap<u32, [Option<i64>; 2]> = BTreeMap::new();
        for (one, later) in pairs {
            let slot = &mut least.entry(one.flow).or_default()[usize::from(one.forward)];
            *slot = Some(slot.map_or(*later, |least| least.min(*later)));
        }
        let both = || least.values().filter_map(|[back, forward]| back.zip(*forward));
        let low = both().map(|(one, other)| one.min(other)).max();
        let high = both().map(|(one, other)| one.max(other)).min();
        let middle = low.zip(high).map(|(low, high)| i64::midpoint(low, high));
        let side = |[back, forward]: [Option<i64>; 2]| match (back, forward, middle) {
            (Some(back), Some(forward), _) => forward >= back,
            (_, Some(forward), Some(middle)) => forward >= middle,
            (Some(back), _, Some(middle)) => back < middle,
            (_, forward, None) => forward.is_some(),
            (None, None, _) => true,
        };
        let forward = least.iter().map(|(flow, least)| (*flow, side(*least))).collect();
        (!pairs.is_empty()).then_some(Self { forward })
    }

    fn is_there(&self, one: &Glimpse) -> bool {
        self.forward.get(&one.flow).copied().unwrap_or(true) == one.forward
    }
}

/// The course of the offset, and the time at which it begins. Pairs are in order of time.
fn offset(there: &[Pair], back: &[Pair]) -> Option<(i64, ClockOffset)> {
    let from = there.first()?.0.min(back.first()?.0);
    let to = there.last()?.0.max(back.last()?.0);
    let width = (to - from) / SPANS as i64 + 1;
    let [there, back] = [(there, 1), (back, -1)].map(|(pairs, sign)| fastest(pairs, sign, from, width));
    let [course_there, course_back] = [&there, &back].map(|points| Course::of(points));
    // Delays there grow by the drift, and delays back fall by it.
    let (one, other) = (course_there.slope, -course_back.slope);
    let (one_error, other_error) = (course_there.error, course_back.error);
    let weight = 1.0 / (1.0 + (one_error / other_error).powi(2));
    let drift = one * weight + other * (1.0 - weight);
    let (agreement, error) = (one_error.hypot(other_error), one_error.min(other_error));
    let told = agreement.is_finite() && (one - other).abs() <= SURE * agreement && drift.abs() > SURE * error;
    let least = |points: &[Point], slope: f64| {
        points.iter().map(|(at, later)| later - slope * at).fold(f64::INFINITY, f64::min)
    };
    let trip = |drift: f64| least(&there, drift) + least(&back, -drift);
    let mut drift = if told { drift } else { 0.0 };
    if trip(drift) < 0.0 {
        // Some packet would arrive before it was sent: the clocks do drift, and the longest trip is the likeliest.
        let slopes = course_there.slopes.iter().copied().chain(course_back.slopes.iter().map(|slope| -slope));
        drift = slopes.max_by(|one, other| trip(*one).total_cmp(&trip(*other))).unwrap_or(drift);
    }
    let ahead_s = (least(&there, drift) - least(&back, -drift)) / 2.0;
    Some((from, ClockOffset { ahead_s, drift, error_s: (trip(drift) / 2.0).max(0.0) }))
}

/// Seconds since the beginning, and the seconds that a packet seems to take.
type Point = (f64, f64);

/// The fastest packet of each span that has any.
fn fastest(pairs: &[Pair], sign: i64, from: i64, width: i64) -> Vec<Point> {
    let mut spans = [None::<Pair>; SPANS];
    for (at, later) in pairs {
        let slot = &mut spans[((at - from) / width) as usize];
        if slot.is_none_or(|(_, least)| sign * later < least) {
            *slot = Some((at - from, sign * later));
        }
    }
    spans.into_iter().flatten().map(|(at, later)| (at as f64 / 1e9, later as f64 / 1e9)).collect()
}

/// The straight line through the fastest packets of a direction (Theil 1950, Sen 1968), which a queue in few of the
/// spans does not turn.
struct Course {
    /// Those between any two of them.
    slopes: Vec<f64>,
    /// Their median.
    slope: f64,
    /// Its error: large where packets waited, and without bound where they are too few.
    error: f64,
}

impl Course {
    fn of(points: &[Point]) -> Self {
        let later = |number: usize| points[number + 1..].iter();
        let slopes = points.iter().enumerate().flat_map(|(number, one)| {
            later(number).filter(|other| other.0 > one.0).map(|other| (other.1 - one.1) / (other.0 - one.0))
        });
        let slopes: Vec<f64> = slopes.collect();
        let slope = median(slopes.clone());
        let rest: Vec<f64> = points.iter().map(|(at, later)| later - slope * at).collect();
        let middle = median(rest.clone());
        let scatter = median(rest.into_iter().map(|rest| (rest - middle).abs()).collect());
        let mean = points.iter().map(|point| point.0).sum::<f64>() / points.len() as f64;
        let lever = points.iter().map(|point| (point.0 - mean).powi(2)).sum::<f64>().sqrt();
        // 1.48 median deviations are a standard deviation. A queue lasts for several spans: a fourth of them count.
        let error = 2.0 * (1.48 * scatter).max(RESOLUTION) / lever;
        Self { slopes, slope, error: if points.len() < FEWEST { f64::INFINITY } else { error } }
    }
}

/// The median; zero of nothing.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

impl Way {
    /// The first and the last packet in common, by the clock of each capture.
    fn spans(&self) -> Option<[(i64, i64); 2]> {
        let span = |time: fn(&Pair) -> i64| {
            let times = || self.pairs.iter().map(time);
            times().min().zip(times().max())
        };
        Some([span(|pair| pair.0)?, span(|pair| pair.0 + pair.1)?])
    }

    /// `first` is the index of the capture that this direction passes first.
    fn finish(&self, first: usize, delay_ns: impl Fn(&Pair) -> f64) -> OneWay {
        let mut delays: Histogram<u64> = Histogram::new(3).expect("three digits are allowed");
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not below zero")]
        for pair in &self.pairs {
            delays.record(delay_ns(pair).max(0.0) as u64).expect("it grows with its values");
        }
        let at = |share| Duration::from_ns(delays.value_at_quantile(share));
        let delays = (!self.pairs.is_empty())
            .then(|| [Duration::from_ns(delays.min()), at(0.5), at(0.95), at(0.99), Duration::from_ns(delays.max())]);
        OneWay {
            both: self.pairs.len() as u64,
            both_data: self.pairs_data,
            lost_between: self.only[first],
            lost_data: self.only_data[first],
            missed: self.only[1 - first],
            delays,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile_packet::{FlowId, Meta, SeqNumber};

    fn packet(back: bool, number: u32) -> Parsed {
        let key = FlowKey { addresses: FlowAddresses::of_simulated(FlowId::new(u32::from(back))), protocol: 6 };
        let payload = if back { 0 } else { 1_000 };
        let seq = SeqNumber::new(number * 1_000);
        let meta =
            Meta { seq, flags: TcpFlags::ACK, ack: seq, header_len: 40, ip_len: 40 + payload, ..Meta::default() };
        Parsed { meta, key, transport_offset: 20 }
    }

    /// 20 000 packets each way in 100 s; there 10 ms and a queue of up to 50 ms that empties every second,
    /// back 10 ms. The second clock is 3 s ahead and gains 50 ppm. Each 40th packet there is lost, the
    /// last after all others.
    fn captures(back: bool) -> (Glimpses, Glimpses) {
        captures_of(back, 50, 20_000, |sent| sent % 1_000_000_000 / 20)
    }

    /// So many packets, and a drift in ppm; `queue` has nanoseconds of a time of sending in nanoseconds.
    fn captures_of(back: bool, ppm: i64, packets: u32, queue: impl Fn(u64) -> u64) -> (Glimpses, Glimpses) {
        let (mut first, mut second) = (Glimpses::default(), Glimpses::default());
        let clock = |ns: u64| (3_000_000_000 + ns).strict_add_signed(ns as i64 / 1_000 * ppm / 1_000);
        let epoch = 1_000_000_000_000;
        for number in 0..packets {
            let sent = u64::from(number) * 5_000_000;
            let queue = queue(sent);
            first.packet(epoch + sent, &packet(false, number));
            if number % 40 != 39 {
                second.packet(epoch + clock(sent + 10_000_000 + queue), &packet(false, number));
            }
            if back {
                second.packet(epoch + clock(sent), &packet(true, number));
                first.packet(epoch + sent + 10_000_000, &packet(true, number));
            }
        }
        (first, second)
    }

    #[test]
    fn delays_losses_and_clocks_come_out() {
        let (first, second) = captures(true);
        let joined = join(first, second).unwrap();
        let clock = joined.clock.unwrap();
        assert!((clock.ahead_s - 3.0).abs() < 0.001 && (clock.drift - 50e-6).abs() < 2e-6, "{clock:?}");
        assert!((clock.error_s - 0.010).abs() < 0.001, "{clock:?}");
        let ms = |delay: Duration| delay.as_secs_f64() * 1e3;
        let [least, median, .., most] = joined.there.delays.unwrap().map(ms);
        assert!((least - 10.0).abs() < 1.0 && (median - 35.0).abs() < 1.0 && (most - 60.0).abs() < 1.0);
        assert_eq!((joined.there.both, joined.there.lost_between, joined.there.lost_data), (19_500, 499, 499));
        assert_eq!((joined.back.both, joined.back.lost_between, joined.back.missed), (20_000, 0, 0));
        assert_eq!(joined.is_there(FlowAddresses::of_simulated(FlowId::new(0))), Some(true));
        assert_eq!(joined.is_there(FlowAddresses::of_simulated(FlowId::new(1))), Some(false));
        assert_eq!(joined.is_there(FlowAddresses::of_simulated(FlowId::new(2))), None);
        let [least, .., most] = joined.back.delays.unwrap().map(ms);
        assert!((least - 10.0).abs() < 1.0 && (most - 10.0).abs() < 1.0, "{least} {most}");
    }

    /// The drift in ppm, and the least and the median delay in ms of each direction, in whole tenths.
    fn seen((first, second): (Glimpses, Glimpses)) -> (f64, [f64; 4]) {
        let tenth = |value: f64| (value * 10.0).round() / 10.0;
        let joined = join(first, second).unwrap();
        let delays = [joined.there, joined.back].map(|way| way.delays.unwrap());
        let [there, back] = delays.map(|delays| [delays[0], delays[1]].map(|delay| tenth(delay.as_secs_f64() * 1e3)));
        (tenth(joined.clock.unwrap().drift * 1e6), [there[0], there[1], back[0], back[1]])
    }

    /// A download fills the queue there in two seconds, which then has 30 to 50 ms as long as it lasts.
    fn standing(sent: u64) -> u64 {
        (sent / 50).min(30_000_000 + sent % 7_000_000_000 / 350)
    }

    #[test]
    fn a_standing_queue_is_no_drift_and_hides_none() {
        for ppm in [0, 50, -50, 5] {
            assert_eq!(seen(captures_of(true, ppm, 20_000, standing)), (ppm as f64, [10.0, 49.8, 10.0, 10.0]), "{ppm}");
        }
    }

    /// A queue that grows by 500 ppm throughout looks like a clock in one direction; the other has none.
    #[test]
    fn a_growing_queue_is_no_drift() {
        let (first, second) = captures_of(true, 0, 20_000, |sent| sent / 2_000);
        assert_eq!(seen((first.clone(), second.clone())), (0.0, [10.0, 35.0, 10.0, 10.0]));
        assert_eq!(seen((second, first)), (0.0, [10.0, 10.0, 10.0, 35.0]));
        // A second of packets tells no drift of 50 ppm.
        assert!(seen(captures_of(true, 50, 5, |_| 0)).0.abs() < 0.1);
    }

    /// 2000 ppm are 200 ms in 100 s, more than the 20 ms of a round trip, whatever the queue does.
    #[test]
    fn a_drift_of_more_than_a_round_trip_is_told_beside_any_queue() {
        let (drift, delays) = seen(captures_of(true, 2_000, 20_000, |sent| sent / 2_000));
        assert!((2_000.0..=2_501.0).contains(&drift) && delays.iter().all(|delay| *delay < 85.0), "{drift} {delays:?}");
    }

    #[test]
    fn captures_in_the_other_order_are_the_same_path() {
        let (first, second) = captures(true);
        let joined = join(second, first).unwrap();
        assert!((joined.clock.unwrap().ahead_s + 3.0).abs() < 0.01);
        assert_eq!((joined.back.both, joined.back.lost_between), (19_500, 499));
    }

    #[test]
    fn with_one_direction_delays_are_relative() {
        let (first, second) = captures(false);
        let joined = join(first, second).unwrap();
        assert_eq!(joined.clock, None);
        let [least, median, ..] = joined.there.delays.unwrap();
        assert!(least.is_zero() && (median.as_secs_f64() - 0.0275).abs() < 0.003, "{median:?}");
    }

    #[test]
    fn captures_without_a_common_packet_are_not_joined() {
        let (mut one, mut other) = (Glimpses::default(), Glimpses::default());
        one.packet(0, &packet(false, 1));
        other.packet(0, &packet(false, 2));
        assert!(join(one, other).is_none());
    }
}
