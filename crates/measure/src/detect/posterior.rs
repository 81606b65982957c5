//! The sequential test: times per packet, and the probability of each class of hypotheses.
//!
//! Model: a busy line takes `a * w(size)` for a packet, where `w` is the law of the hypothesis and
//! `a` the time of a byte on the wire. Segments of one pattern of sizes are replicates; the noise
//! comes from their scatter (median absolute deviation, pooled over patterns), never from an
//! assumption about the path. `a` is a nuisance parameter: each hypothesis gets its best value. The
//! likelihood of a pattern's median is Student's t with `FREEDOM` degrees, whose heavy tails bound
//! the harm of a pattern that cross traffic has hit. If even the best hypothesis leaves more scatter
//! between patterns than within, the noise is scaled up until it does not (Birge 1932).

use lastmile_analysis::quantiles::median;

use super::hypothesis::Class;

/// Degrees of freedom of the likelihood.
const FREEDOM: f64 = 4.0;
/// Relative error of a time per packet that no average removes: clocks and timers. A decision.
pub(super) const FLOOR: f64 = 2e-5;
/// Replicates within a pattern that the pooled scatter counts for.
const POOL: f64 = 4.0;
/// Scatter between patterns, as a multiple of that within, from which no hypothesis fits.
const MISFIT: f64 = 6.0;

/// Packets of one pattern of sizes that crossed the busy line back to back.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// The pattern: a size, and the number of full-size packets behind each packet of it.
    pub pattern: (u16, u16),
    /// Sizes and their shares of the packets, which sum to one.
    pub mix: Vec<(u16, f64)>,
    /// Mean time per packet in seconds.
    pub seconds: f64,
    /// Expected error of `seconds`, up to a factor common to all segments.
    pub scale: f64,
}

impl Segment {
    /// Mean bytes on the wire per packet by the law of `class`.
    fn wire_bytes(&self, class: &Class) -> f64 {
        self.mix.iter().map(|&(size, share)| share * class.wire_bytes(size)).sum()
    }
}

/// A hypothesis after the observations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Belief {
    /// Logarithm of the likelihood.
    pub log_likelihood: f64,
    /// Posterior probability.
    pub probability: f64,
    /// Time of a byte on the wire in seconds.
    pub byte_s: f64,
    /// Relative standard error of `byte_s`.
    pub byte_error: f64,
}

/// The state of the test.
#[derive(Clone, Debug)]
pub(crate) struct Posterior {
    /// One belief for each class, in the order of the classes.
    pub beliefs: Vec<Belief>,
    /// The factor by which the noise was scaled up, at least 1.
    pub birge: f64,
    /// Number of patterns.
    pub patterns: usize,
    /// Relative standard error of one pattern's median, the median over patterns.
    pub noise: f64,
}

impl Posterior {
    /// No class explains the times.
    pub(crate) fn misfit(&self) -> bool {
        self.birge >= MISFIT
    }

    /// Index of the most probable class.
    pub(crate) fn best(&self) -> usize {
        let best = (0..self.beliefs.len())
            .max_by(|&a, &b| self.beliefs[a].probability.total_cmp(&self.beliefs[b].probability));
        best.unwrap_or(0)
    }
}

/// The median and the relative standard error of one pattern under one class.
struct Group {
    members: Vec<usize>,
}

/// The posterior of `classes` after `segments`.
pub(crate) fn posterior(classes: &[Class], segments: &[Segment]) -> Posterior {
    let groups = groups(segments);
    // The scatter within patterns hardly depends on the class; that of the best fit is taken.
    let plain = vec![1.0; groups.len()];
    let first: Vec<_> = classes.iter().map(|class| fit(class, segments, &groups, &plain, FLOOR)).collect();
    let reference = (0..classes.len()).max_by(|&a, &b| first[a].0.total_cmp(&first[b].0)).unwrap_or(0);
    let errors = errors(&classes[reference], segments, &groups);
    let fits: Vec<_> = classes.iter().map(|class| fit(class, segments, &groups, &errors, 1.0)).collect();
    let best = fits.iter().map(|fit| fit.3).fold(f64::INFINITY, f64::min);
    let freedom = (groups.len() as f64 - 2.0).max(1.0);
    let birge = (best / freedom).sqrt().max(1.0);
    let scored: Vec<_> = classes.iter().map(|class| fit(class, segments, &groups, &errors, birge)).collect();
    let top = scored.iter().zip(classes).map(|(fit, class)| fit.0 + class.prior.ln()).fold(f64::MIN, f64::max);
    let weights: Vec<f64> =
        scored.iter().zip(classes).map(|(fit, class)| (fit.0 + class.prior.ln() - top).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let beliefs = scored.iter().zip(&weights).map(|(&(log_likelihood, location, byte_error, _), weight)| Belief {
        log_likelihood,
        probability: weight / sum,
        byte_s: location.exp(),
        byte_error,
    });
    let beliefs = beliefs.collect();
    Posterior { beliefs, birge, patterns: groups.len(), noise: median(&errors) * birge }
}

fn groups(segments: &[Segment]) -> Vec<Group> {
    let mut patterns: Vec<(u16, u16)> = segments.iter().map(|segment| segment.pattern).collect();
    patterns.sort_unstable();
    patterns.dedup();
    let members = |pattern| (0..segments.len()).filter(|&i| segments[i].pattern == pattern).collect();
    patterns.into_iter().map(|pattern| Group { members: members(pattern) }).collect()
}

fn residuals<'a>(class: &'a Class, segments: &'a [Segment], group: &'a Group) -> Vec<f64> {
    group.members.iter().map(|&i| (segments[i].seconds / segments[i].wire_bytes(class)).ln()).collect()
}

/// Relative standard error of each pattern's median.
fn errors(class: &Class, segments: &[Segment], groups: &[Group]) -> Vec<f64> {
    let mut pooled = Vec::new();
    let mut squares = Vec::new();
    for group in groups {
        let values = residuals(class, segments, group);
        let middle = median(&values);
        let count = values.len() as f64;
        // Deviations from a median of few are too small by the degree of freedom that it takes.
        let correction = if values.len() > 1 { (count / (count - 1.0)).sqrt() } else { continue };
        let scaled = |(value, &i): (&f64, &usize)| (value - middle).abs() / segments[i].scale * correction;
        let deviations: Vec<f64> = values.iter().zip(&group.members).map(scaled).collect();
        squares.extend(deviations.iter().map(|deviation| deviation * deviation));
        pooled.extend(deviations);
    }
    // 1.4826 makes the median absolute deviation of a normal law its standard deviation. The root
    // mean square, bounded, guards against a median of near zero where noise comes in bursts.
    let robust = 1.4826 * median(&pooled);
    let mean = (squares.iter().sum::<f64>() / squares.len().max(1) as f64).sqrt();
    let unit = robust.max(mean.min(3.0 * robust)).max(0.3 * mean);
    let error = |group: &Group| {
        let values = residuals(class, segments, group);
        let count = values.len() as f64;
        let scale = group.members.iter().map(|&i| segments[i].scale).sum::<f64>() / count;
        let middle = median(&values);
        let own: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
        let variance = (POOL * (unit * scale).powi(2) + own) / (POOL + count - 1.0);
        // The standard error of a median of normal values is 1.2533 that of their mean.
        (1.57 * variance / count + FLOOR * FLOOR).sqrt()
    };
    groups.iter().map(error).collect()
}

/// Log-likelihood, logarithm of the time of a byte, its standard error, and the sum of squared
/// standardised residuals, bounded each.
fn fit(class: &Class, segments: &[Segment], groups: &[Group], errors: &[f64], inflate: f64) -> (f64, f64, f64, f64) {
    let points: Vec<(f64, f64)> = groups
        .iter()
        .zip(errors)
        .map(|(group, error)| (median(&residuals(class, segments, group)), error * inflate))
        .collect();
    let mut location = median(&points.iter().map(|point| point.0).collect::<Vec<_>>());
    let mut weight_sum = 0.0;
    for _ in 0..30 {
        let weigh = |&(value, error): &(f64, f64)| {
            let z = (value - location) / error;
            (FREEDOM + 1.0) / (FREEDOM + z * z) / (error * error)
        };
        let weights: Vec<f64> = points.iter().map(weigh).collect();
        weight_sum = weights.iter().sum();
        let next = points.iter().zip(&weights).map(|(point, weight)| point.0 * weight).sum::<f64>() / weight_sum;
        let moved = (next - location).abs();
        location = next;
        if moved < 1e-9 {
            break;
        }
    }
    let z2 = |&(value, error): &(f64, f64)| ((value - location) / error).powi(2);
    let log_likelihood =
        points.iter().map(|point| -(FREEDOM + 1.0) / 2.0 * (z2(point) / FREEDOM).ln_1p() - point.1.ln()).sum();
    let squares = points.iter().map(z2).sum();
    (log_likelihood, location, weight_sum.recip().sqrt(), squares)
}

/// Classes among which sizes are planned: the most probable ones.
const PLANNED: usize = 60;

/// The sizes at which the classes that are left differ most, `count` of them.
///
/// Each choice takes the size with the largest expected evidence summed over pairs of classes. A
/// pair weighs what its probabilities make it, less what earlier choices tell about it: so a size
/// that halves the classes comes before one that excludes a single class.
pub(crate) fn next_sizes(
    classes: &[Class],
    posterior: &Posterior,
    sizes: &[u16],
    noise: f64,
    count: usize,
) -> Vec<u16> {
    let mut likely: Vec<usize> = (0..classes.len()).filter(|&i| posterior.beliefs[i].probability > 1e-9).collect();
    likely.sort_by(|&a, &b| posterior.beliefs[b].probability.total_cmp(&posterior.beliefs[a].probability));
    likely.truncate(PLANNED);
    let predicted = |size: u16| -> Vec<f64> {
        likely.iter().map(|&i| (posterior.beliefs[i].byte_s * classes[i].wire_bytes(size)).ln() / noise).collect()
    };
    let pairs: Vec<(usize, usize)> = (0..likely.len()).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
    let probability = |i: usize| posterior.beliefs[likely[i]].probability;
    let mut weights: Vec<f64> = pairs.iter().map(|&(a, b)| probability(a) * probability(b)).collect();
    // The log-likelihood that the false class of each pair loses.
    let evidence = |size: &u16| -> Vec<f64> {
        let predictions = predicted(*size);
        let of_pair = |&(a, b): &(usize, usize)| {
            let d = predictions[a] - predictions[b];
            (FREEDOM + 1.0) / 2.0 * (d * d / FREEDOM).ln_1p()
        };
        pairs.iter().map(of_pair).collect()
    };
    // A logarithm for each size and pair, and not once more for each size that is chosen.
    let evidence: Vec<Vec<f64>> = sizes.iter().map(evidence).collect();
    let mut chosen: Vec<usize> = Vec::new();
    while chosen.len() < count.min(sizes.len()) {
        // More than certainty about a pair is worth nothing.
        let gain = |at: usize| -> f64 {
            weights.iter().zip(&evidence[at]).map(|(weight, evidence)| weight * evidence.min(10.0)).sum()
        };
        let free = (0..sizes.len()).filter(|at| !chosen.contains(at)).map(|at| (at, gain(at)));
        let Some((at, _)) = free.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))) else { break };
        chosen.push(at);
        weights.iter_mut().zip(&evidence[at]).for_each(|(weight, evidence)| *weight *= (-evidence).exp());
    }
    chosen.into_iter().map(|at| sizes[at]).collect()
}

#[cfg(test)]
mod tests;
