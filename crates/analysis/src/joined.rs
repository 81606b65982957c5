//! Two captures of the same packets, at two positions of their path: one-way delays, and losses between
//! them.
//!
//! A packet is found in the other capture by a hash of what the path leaves unchanged: addresses,
//! protocol, length, IPv4 identification, the TCP header's numbers, SACK blocks and timestamps, and the first octets
//! of what other protocols carry, unless a snap length cut them in either capture. Equal packets are paired in their
//! order. Network address translation between the captures hides all pairs. Octets of TCP that
//! the captures show in packets of different lengths are paired by their numbers (`octets.rs`). Packets that no
//! router forwards, as those of link-local addresses, are left out: equal ones pass on many links. Those of TCP count
//! where both captures have their flow.
//!
//! Each capture has a clock, which may be set within it (`steps.rs`). The fastest packets of each direction bound the
//! offset of the clocks from both sides. It is taken to be in the middle, as if the fastest packets took as long in
//! both directions. With packets in one direction only, the offset is unknown, and delays are relative to the fastest.
//!
//! A drift of the clocks lengthens the delays of one direction as much as it shortens those of the other; a
//! queue lengthens those of one. So each direction has a line through the fastest packets of up to `SPANS`
//! spans, with an error that grows with their scatter: where the lines agree, their mean is the drift,
//! weighted by the errors. Where they differ, or the mean is within its error, no drift is told. Where they agree on
//! one that no clock has, the clocks cannot be compared.
//!
//! Cost: 40 bytes for each packet of both captures and 120 for each pair, and a sort.

mod clock;
mod fingerprint;
mod octets;
mod steps;

use std::collections::BTreeMap;
use std::hash::BuildHasher as _;

use hdrhistogram::Histogram;
use lastmile_packet::{FlowAddresses, FlowKey, HashKey};
use lastmile_units::Duration;

pub use self::clock::{ClockOffset, ClockStep, NoClock};
use self::clock::{Clocks, offset};
use self::fingerprint::Fingerprint;
pub use self::fingerprint::{Fingerprints, ends_on_its_link};
use self::octets::divide;
pub use self::steps::MOST_DRIFT;
use self::steps::Pair;

/// The protocol number of TCP.
const TCP: u8 = 6;

/// Delays of one direction between two captures.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct OneWay {
    /// Packets at both captures. Of those that the captures show in different lengths, the finer ones count.
    pub both: u64,
    /// Packets with payload, SYN or FIN among them.
    pub both_data: u64,
    /// Packets that passed the first capture of this direction only: lost between the captures, or
    /// changed.
    pub lost_between: u64,
    /// Those with payload, SYN or FIN among them.
    pub lost_data: u64,
    /// Octets of payload of packets that passed the first capture only.
    pub lost_octets: u64,
    /// Packets at the second capture only: missed by the first, or changed.
    pub missed: u64,
    /// Packets of the first capture that are several at the second: segmentation by a device (TSO, GSO).
    pub split: u64,
    /// Packets of the second capture that are several at the first: merged by a receiver (GRO, LRO).
    pub merged: u64,
    /// The delays of packets, each as the second capture has it, since the packet with its last octet passed the
    /// first: the smallest, the median, the 95th and 99th percentile and the largest. `None` also where the clocks
    /// cannot be compared.
    pub delays: Option<[Duration; 5]>,
}

/// Two captures compared.
#[derive(Clone, Debug)]
pub struct Joined {
    /// The clocks, or why they cannot be compared.
    pub clock: Result<ClockOffset, NoClock>,
    /// The times at which a clock was set.
    pub steps: Vec<ClockStep>,
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

/// Pairs and single packets of one direction.
#[derive(Default)]
struct Way {
    /// Those that are delays.
    pairs: Vec<Pair>,
    both: u64,
    both_data: u64,
    /// The first and the last packet in common, by the clock of each capture.
    spans: Option<[(i64, i64); 2]>,
    /// In the first capture only, and in the second only.
    only: [u64; 2],
    only_data: [u64; 2],
    only_octets: [u64; 2],
    /// Packets of each capture that are several in the other.
    several: [u64; 2],
}

/// Compares two captures; `None` if no packet is in both.
#[must_use]
pub fn join(mut first: Fingerprints, mut second: Fingerprints) -> Option<Joined> {
    first.tell_apart(&mut second);
    first.all.sort_unstable();
    second.all.sort_unstable();
    let Found { mut pairs, mut single } = pair(&first.all, &second.all);
    let divided = divide(&mut single);
    let equal = pairs.len();
    pairs.extend(divided.parts.iter().map(|part| (part.one, part.later, part.other)));
    let side = Sides::of(&pairs)?;
    let mut ways = [Way::default(), Way::default()];
    for (number, (one, later, other)) in pairs.iter().enumerate() {
        let back = usize::from(!side.is_there(one));
        // The parts of a packet at the later capture waited for its last octet there.
        let is_delay = number < equal || divided.parts[number - equal].is_last[1 - back];
        ways[back].add(one, *later, is_delay.then_some(*other));
    }
    for (which, one) in &divided.several {
        ways[usize::from(!side.is_there(one))].several[*which] += 1;
    }
    // Packets at times at which the other capture did not run say nothing, and those after the last one
    // in common may be under way. The clocks may differ by any amount, so that the span is that of the
    // packets of the direction in common.
    let whole = single.iter().map(|(which, one)| (which, one, [true; 2]));
    let gaps = divided.gaps.iter().map(|gap| (&gap.which, &gap.one, gap.is_within));
    let is_forwarded = |one: &Fingerprint| {
        let is_local = first.local.contains(&one.flow) || second.local.contains(&one.flow);
        // Of such a flow in both captures, these are on one link.
        !is_local || side.forward.contains_key(&one.flow)
    };
    for (which, one, [has_before, has_after]) in whole.chain(gaps).filter(|(_, one, _)| is_forwarded(one)) {
        let way = &mut ways[usize::from(!side.is_there(one))];
        let Some((from, to)) = way.spans.map(|spans| spans[*which]) else { continue };
        // A capture that begins or ends amid the parts of a packet has no others of it.
        let is_after = from < one.at_ns || from == one.at_ns && has_before;
        let is_before = one.at_ns < to || one.at_ns == to && has_after;
        if is_after && is_before {
            let packets = divided.packets(one);
            way.only[*which] += packets;
            way.only_data[*which] += if one.retains { packets } else { 0 };
            way.only_octets[*which] += u64::from(one.payload);
        }
    }
    let [there, back] = ways;
    let clocks = offset(&there.pairs, &back.pairs);
    let least = |pairs: &[Pair], sign: i64| pairs.iter().map(|pair| sign * pair.later).min().unwrap_or(0) as f64;
    let relative = [least(&there.pairs, 1), -least(&back.pairs, -1)];
    let ahead_ns = |pair: &Pair, direction: usize| match &clocks {
        Ok(clocks) => clocks.ahead_ns(pair),
        Err(NoClock::OneDirection) => Some(relative[direction]),
        Err(_) => None,
    };
    Some(Joined {
        there: there.finish(0, |pair| Some(pair.later as f64 - ahead_ns(pair, 0)?)),
        back: back.finish(1, |pair| Some(ahead_ns(pair, 1)? - pair.later as f64)),
        clock: clocks.as_ref().map(|clocks| clocks.clock).map_err(|why| *why),
        steps: clocks.map(|Clocks { steps, .. }| steps).unwrap_or_default(),
        sides: side,
        key: first.key,
    })
}

/// A packet at the first capture, how much later it is at the second, and its number there.
type Both = (Fingerprint, i64, u32);

/// Pairs, and packets of one capture only, with its index.
#[derive(Default)]
struct Found {
    pairs: Vec<Both>,
    single: Vec<(usize, Fingerprint)>,
}

/// Pairs equal packets of two sorted lists.
fn pair(first: &[Fingerprint], second: &[Fingerprint]) -> Found {
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
                found.pairs.push((*a, b.at_ns - a.at_ns, b.number));
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
    fn of(pairs: &[Both]) -> Option<Self> {
        let mut least: BTreeMap<u32, [Option<i64>; 2]> = BTreeMap::new();
        for (one, later, _) in pairs {
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

    fn is_there(&self, one: &Fingerprint) -> bool {
        self.forward.get(&one.flow).copied().unwrap_or(true) == one.forward
    }
}

impl Way {
    /// Adds a packet of both captures; with its number at the second if it has a delay.
    fn add(&mut self, one: &Fingerprint, later: i64, other: Option<u32>) {
        self.both += 1;
        self.both_data += u64::from(one.retains);
        if let Some(other) = other {
            self.pairs.push(Pair { numbers: [one.number, other], at: one.at_ns, later });
        }
        let times = [one.at_ns, one.at_ns + later];
        let spans = self.spans.unwrap_or(times.map(|at| (at, at)));
        self.spans = Some([0, 1].map(|which| (spans[which].0.min(times[which]), spans[which].1.max(times[which]))));
    }

    /// `first` is the index of the capture that this direction passes first.
    fn finish(&self, first: usize, delay_ns: impl Fn(&Pair) -> Option<f64>) -> OneWay {
        let mut delays: Histogram<u64> = Histogram::new(3).expect("three digits are allowed");
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not below zero")]
        for delay in self.pairs.iter().filter_map(delay_ns) {
            delays.record(delay.max(0.0) as u64).expect("it grows with its values");
        }
        let at = |share| Duration::from_ns(delays.value_at_quantile(share));
        let delays = (!delays.is_empty())
            .then(|| [Duration::from_ns(delays.min()), at(0.5), at(0.95), at(0.99), Duration::from_ns(delays.max())]);
        OneWay {
            both: self.both,
            both_data: self.both_data,
            lost_between: self.only[first],
            lost_data: self.only_data[first],
            lost_octets: self.only_octets[first],
            missed: self.only[1 - first],
            split: self.several[first],
            merged: self.several[1 - first],
            delays,
        }
    }
}

#[cfg(test)]
mod tests;
