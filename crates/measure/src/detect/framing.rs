//! Rounds of busy trains until one class of hypotheses is left.
//!
//! A round keeps the line busy with segments of one pattern each: packets of a size, or of a size
//! and full-size packets in turn where packets of that size alone would be more than a sender can
//! send. The next round takes the patterns at which the classes that are left differ most.

use super::hypothesis::{Class, classes};
use super::posterior::{Belief, Posterior, Segment, next_sizes, posterior};
use super::train::{Plan, Seen, segment};
use crate::error::Error;
use crate::train::{Path, Way};

/// Offered rate, as a multiple of the highest that a class in question predicts.
const OVERLOAD: f64 = 1.08;
/// A class below this probability does not bound the offered rate.
const NEGLIGIBLE: f64 = 1e-5;
/// Sizes of a round beside the largest: at most, and at least.
const SIZES: (usize, usize) = (8, 2);
/// First and longest length of a segment in seconds, and the factor between rounds.
const SEGMENT: (f64, f64, f64) = (0.25, 2.0, 1.5);
/// Fewest packets of a segment.
const PACKETS: usize = 16;
/// Relative error that the first round is planned for.
const FIRST_NOISE: f64 = 1e-3;
/// A class that explains the times better than the named one by this factor (a logarithm) forbids
/// the name, whatever the prior says.
const CONTRADICTION: f64 = 4.0;

/// How the search for a class ended.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// The classes.
    pub(super) classes: Vec<Class>,
    /// Their state.
    pub(super) posterior: Posterior,
    /// Whether one is sure.
    pub(super) sure: bool,
}

impl Outcome {
    /// Time on the line of a packet of `size`, by the most probable class.
    pub(super) fn packet_s(&self, size: u16) -> f64 {
        let best = self.posterior.best();
        self.posterior.beliefs[best].byte_s * self.classes[best].wire_bytes(size)
    }
}

/// Probability of the name of the most probable class: that of all classes which share a preset
/// with it.
pub(super) fn certainty(classes: &[Class], posterior: &Posterior) -> f64 {
    let best = posterior.best();
    let shares = |i: usize| i == best || classes[i].presets.iter().any(|name| classes[best].presets.contains(name));
    (0..classes.len()).filter(|&i| shares(i)).map(|i| posterior.beliefs[i].probability).sum()
}

/// The limits of a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Smallest and largest IP packet.
    pub(super) sizes: (u16, u16),
    /// Most packets per second of the sender.
    pub(super) packets_per_second: f64,
    /// Most packets of a train.
    pub(super) packets: usize,
    /// Least probability of a name.
    pub(super) sure: f64,
    /// When to end, by the clock of the path, in seconds.
    pub(super) until_s: f64,
}

/// The class of one way, on which a packet of the largest size takes `packet_s`.
pub(super) fn search(path: &mut dyn Path, way: Way, packet_s: f64, bounds: Bounds) -> Result<Outcome, Error> {
    let (smallest, mtu) = bounds.sizes;
    let classes = classes(smallest, mtu);
    let mut state = untried(&classes, mtu, packet_s);
    let mut segments: Vec<Segment> = Vec::new();
    let (mut length, mut noise, mut rounds, mut rate) = (SEGMENT.0, FIRST_NOISE, 0, bounds.packets_per_second);
    loop {
        let before = path.elapsed().as_secs_f64();
        let count = sizes(&classes, &state, mtu, bounds);
        let patterns = patterns(&classes, &state, bounds.sizes, rate, noise, count);
        let round = Round {
            classes: &classes,
            posterior: &state,
            patterns: &patterns,
            length,
            mtu,
            rate,
            packets: bounds.packets,
        };
        let (found, wanted) = round.send(path, way)?;
        rounds += 1;
        if found.len() * 2 < wanted {
            // The sender did not keep the line busy: fewer and larger packets.
            rate *= 0.7;
        }
        segments.extend(found);
        if segments.is_empty() {
            if rounds >= 4 {
                return Ok(Outcome { classes, posterior: state, sure: false });
            }
            continue;
        }
        state = posterior(&classes, &segments);
        noise = state.noise.clamp(1e-5, 1e-2);
        let took = path.elapsed().as_secs_f64() - before;
        let sure = rounds >= 2 && is_sure(&classes, &state, bounds.sure);
        if sure || path.elapsed().as_secs_f64() + took * SEGMENT.2 > bounds.until_s {
            return Ok(Outcome { classes, posterior: state, sure });
        }
        length = (length * SEGMENT.2).min(SEGMENT.1);
    }
}

fn is_sure(classes: &[Class], state: &Posterior, sure: f64) -> bool {
    if state.misfit() || state.patterns < 4 || certainty(classes, state) < sure {
        return false;
    }
    let best = state.best();
    let shares = |i: usize| classes[i].presets.iter().any(|name| classes[best].presets.contains(name));
    let named = (0..classes.len()).filter(|&i| i == best || shares(i));
    let likelihood = named.map(|i| state.beliefs[i].log_likelihood).fold(f64::MIN, f64::max);
    state.beliefs.iter().all(|belief| belief.log_likelihood <= likelihood + CONTRADICTION)
}

/// The beliefs before the first round: every class agrees with the time of the largest packet.
fn untried(classes: &[Class], mtu: u16, packet_s: f64) -> Posterior {
    let belief = |class: &Class| Belief {
        log_likelihood: 0.0,
        probability: class.prior,
        byte_s: packet_s / class.wire_bytes(mtu),
        byte_error: 1e-2,
    };
    Posterior { beliefs: classes.iter().map(belief).collect(), birge: 1.0, patterns: 0, noise: FIRST_NOISE }
}

/// A size, and the number of packets of the largest size behind each.
type Pattern = (u16, u16);

/// Number of sizes of a round. Where the packets of a train do not suffice for long segments of all
/// sizes, fewer: the error of a pace falls with the length of its segment.
fn sizes(classes: &[Class], state: &Posterior, mtu: u16, bounds: Bounds) -> usize {
    let full = fastest(classes, state, &[mtu]);
    // Segments of small packets need about twice the packets of those of the largest.
    let per_second = (2.0 / full).min(bounds.packets_per_second);
    let segments = bounds.packets as f64 / (per_second * SEGMENT.0);
    ((segments / 2.0) as usize).saturating_sub(1).clamp(SIZES.1, SIZES.0)
}

/// The largest size, and those that tell most. `rate` is the sender's limit in packets per second.
fn patterns(
    classes: &[Class],
    state: &Posterior,
    sizes: (u16, u16),
    rate: f64,
    noise: f64,
    count: usize,
) -> Vec<Pattern> {
    let candidates: Vec<u16> =
        (sizes.0..sizes.1).filter(|size| *size < 420 || size % 7 == 0 || size % 16 == sizes.1 % 16).collect();
    let mut patterns = vec![(sizes.1, 0)];
    let chosen = next_sizes(classes, state, &candidates, noise, count);
    patterns.extend(chosen.into_iter().filter_map(|size| Some((size, filler(classes, state, (size, sizes.1), rate)?))));
    patterns
}

/// Packets of the largest size behind each of `size`, so that a sender of `rate` packets per second
/// overloads the line; `None` if even those of the largest size are too many.
fn filler(classes: &[Class], state: &Posterior, (size, mtu): (u16, u16), rate: f64) -> Option<u16> {
    let shortest = |size: u16| fastest(classes, state, &[size]);
    let least = OVERLOAD / rate;
    let (own, full) = (shortest(size), shortest(mtu));
    if own >= least {
        return Some(0);
    }
    let count = ((least - own) / (full - least)).ceil();
    (full > least && count <= 20.0).then_some(count as u16)
}

/// Mean time per packet of a pattern by the class in question that predicts least.
fn fastest(classes: &[Class], state: &Posterior, pattern: &[u16]) -> f64 {
    let mean = |i: usize| {
        let bytes: f64 = pattern.iter().map(|&size| classes[i].wire_bytes(size)).sum();
        state.beliefs[i].byte_s * bytes / pattern.len() as f64
    };
    (0..classes.len()).filter(|&i| state.beliefs[i].probability > NEGLIGIBLE).map(mean).fold(f64::INFINITY, f64::min)
}

struct Round<'a> {
    classes: &'a [Class],
    posterior: &'a Posterior,
    patterns: &'a [Pattern],
    length: f64,
    mtu: u16,
    rate: f64,
    packets: usize,
}

impl Round<'_> {
    /// The sizes of a pattern in turn, and the time between two departures.
    fn unit(&self, (size, fill): Pattern) -> (Vec<u16>, f64) {
        let mut unit = vec![size];
        unit.resize(1 + usize::from(fill), self.mtu);
        let interval = (fastest(self.classes, self.posterior, &unit) / OVERLOAD).max(1.0 / self.rate);
        (unit, interval)
    }

    /// Sends each pattern twice, and returns the segments that kept the line busy and the number
    /// that were sent.
    fn send(&self, path: &mut dyn Path, way: Way) -> Result<(Vec<Segment>, usize), Error> {
        let mut plan = Plan::default();
        let full = fastest(self.classes, self.posterior, &[self.mtu]);
        // Enough backlog that a late sender does not leave the line idle.
        let ahead = ((0.03 / full) as usize).clamp(4, 2_000);
        (0..ahead).for_each(|_| plan.packet(self.mtu, (full / 2.0).max(1.0 / self.rate)));
        // There and back again: a drift of the rate touches all patterns alike.
        let order: Vec<Pattern> = self.patterns.iter().chain(self.patterns.iter().rev()).copied().collect();
        let units: Vec<(Vec<u16>, f64)> = order.iter().map(|pattern| self.unit(*pattern)).collect();
        let per_second: f64 = units.iter().map(|unit| unit.1.recip()).sum();
        let length = self.length.min(self.packets.saturating_sub(ahead) as f64 / per_second);
        let mut bounds = Vec::new();
        for (unit, interval) in &units {
            let count = ((length / interval) as usize).max(PACKETS).next_multiple_of(unit.len());
            let start = plan.len();
            (0..count).for_each(|i| plan.packet(unit[i % unit.len()], *interval));
            bounds.push(start..plan.len());
        }
        let seen = plan.send(path, way)?;
        let cut = |(pattern, range): (&Pattern, &core::ops::Range<usize>)| segment(*pattern, with_first(&seen, range));
        Ok((order.iter().zip(&bounds).filter_map(cut).collect(), order.len()))
    }
}

/// The packets of a segment and the packet in front of it, whose arrival starts the clock.
fn with_first<'a>(seen: &'a [Seen], range: &core::ops::Range<usize>) -> &'a [Seen] {
    &seen[range.start.saturating_sub(1).min(range.start)..range.end]
}
