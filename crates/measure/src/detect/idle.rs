//! Cells read off an idle line: round-trip times of echoes against their size.
//!
//! No server of our own is needed. The idea is that of the ATM overhead detector (Moeller): the
//! round-trip time of an echo grows by the time of a whole cell, both ways together, wherever one
//! byte more needs another cell. Sizes in steps of 7 bytes meet every offset within a cell once in
//! 48 sizes. Differs: each hypothesis is a whole fit, the estimator of a size's round-trip time is
//! the quantile that repeats best, and echoes end as soon as one hypothesis is sure.
//!
//! Echoes do not show rates of each way, overhead beyond its remainder by 48, and anything of a line
//! without cells, where time is proportional to size at any overhead. The detector assumes that both
//! ways have one encapsulation.

use lastmile_analysis::quantiles::median;
use serde::{Deserialize, Serialize};

use lastmile_linklayer::{Framing, PRESETS, aal5};
use lastmile_units::ByteCount;

use super::{Options, Verdict};
use crate::error::Error;
use crate::report::Estimate;
use crate::train::{Departure, Path};

use super::train::span;

/// Sizes of echoes: every offset within a cell once, above all minimum frames.
const SIZES: usize = 48;
const SMALLEST: u16 = 64;
const STEP: u16 = 7;
/// Rounds between two looks at the posterior.
const LOOK: usize = 8;
/// Quantiles among which the best repeated one is chosen.
const QUANTILES: [f64; 4] = [0.0, 0.1, 0.25, 0.5];
/// Prior probability of a line without cells, and of all overheads that no preset has.
const PRIOR: (f64, f64) = (0.5, 0.05);
/// Degrees of freedom of the likelihood.
const FREEDOM: f64 = 4.0;

/// Framing as far as an idle line shows it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Idle {
    /// How sure the first candidate is.
    pub verdict: Verdict,
    /// Candidates by falling probability, 99.9 % together.
    pub candidates: Vec<Cells>,
    /// Time of a byte on the wire, both ways together, in seconds, by the first candidate.
    pub byte_s: Estimate,
    /// Echoes sent.
    pub echoes: usize,
    /// Time that it took, in seconds.
    pub took_s: f64,
}

/// A hypothesis about cells.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cells {
    /// Overhead modulo 48 in cells; `None` for a line without cells.
    pub offset_bytes: Option<u8>,
    /// Presets with this offset.
    pub presets: Vec<String>,
    /// Probability.
    pub probability: f64,
}

impl Cells {
    fn all() -> Vec<Self> {
        let mut all = vec![Self { offset_bytes: None, presets: Vec::new(), probability: PRIOR.0 }];
        let offset = |overhead: i32| u8::try_from(overhead.rem_euclid(48)).unwrap_or(0);
        let atm: Vec<_> = PRESETS.iter().filter(|preset| preset.link.framing() == Framing::Atm).collect();
        for at in 0..48 {
            let presets: Vec<String> = atm
                .iter()
                .filter(|preset| offset(preset.link.overhead()) == at)
                .map(|preset| preset.name.to_owned())
                .collect();
            let named = (1.0 - PRIOR.0 - PRIOR.1) * presets.len() as f64 / atm.len() as f64;
            all.push(Self { offset_bytes: Some(at), presets, probability: named + PRIOR.1 / 48.0 });
        }
        all
    }

    /// Bytes that grow with the size of the packet; a constant belongs to the delay.
    fn bytes(&self, size: u16) -> f64 {
        match self.offset_bytes {
            None => f64::from(size),
            Some(offset) => (aal5::cells(u64::from(size) + u64::from(offset)) * aal5::CELL_BYTES) as f64,
        }
    }
}

/// Detects cells by echoes.
///
/// # Errors
/// The path carries no echoes, or answers too few of them.
pub fn detect(path: &mut dyn Path, options: &Options) -> Result<Idle, Error> {
    let start = path.elapsed().as_secs_f64();
    let sizes: Vec<u16> = (0..SIZES as u16).map(|i| SMALLEST + STEP * i).collect();
    let interval = interval(path, &sizes)?;
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); SIZES];
    let mut echoes = 0;
    loop {
        let mut requests = Vec::new();
        for round in 0..LOOK {
            for i in 0..SIZES {
                // 29 is coprime to 48: neighbours in time are no neighbours in size.
                let size = sizes[(i * 29 + round * 5) % SIZES];
                let at = span(requests.len() as f64 * interval);
                requests.push(Departure { at, ip_len: ByteCount::new(u64::from(size)) });
            }
        }
        let answers = path.echoes(&requests)?;
        echoes += answers.len();
        for echo in &answers {
            let at = sizes.iter().position(|size| u64::from(*size) == echo.ip_len.as_u64());
            if let (Some(at), Some(time)) = (at, echo.round_trip) {
                times[at].push(time.as_secs_f64());
            }
        }
        let fewest = times.iter().map(Vec::len).min().unwrap_or(0);
        let elapsed = path.elapsed().as_secs_f64() - start;
        let over = elapsed + requests.len() as f64 * interval > options.allowance.as_secs_f64();
        if fewest < LOOK {
            if over || echoes > 4 * LOOK * SIZES {
                return Err(Error::Unsupported(format!("of {echoes} echoes too few were answered")));
            }
            continue;
        }
        let idle = judge(&sizes, &times, fewest, options.sure, echoes, elapsed);
        if over || idle.verdict == Verdict::Sure {
            return Ok(idle);
        }
    }
}

/// Time between echoes at which the longest leaves the line before the next one comes.
fn interval(path: &mut dyn Path, sizes: &[u16]) -> Result<f64, Error> {
    let (small, large) = (sizes[0], sizes[sizes.len() - 1]);
    let request = |i: u64| Departure {
        at: span(i as f64 * 0.2),
        ip_len: ByteCount::new(u64::from(if i.is_multiple_of(2) { small } else { large })),
    };
    let answers = path.echoes(&(0..20).map(request).collect::<Vec<_>>())?;
    let typical = |size: u16| {
        let of = answers.iter().filter(|echo| echo.ip_len.as_u64() == u64::from(size));
        median(&of.filter_map(|echo| Some(echo.round_trip?.as_secs_f64())).collect::<Vec<_>>())
    };
    let byte_s = ((typical(large) - typical(small)) / f64::from(large - small)).max(0.0);
    // The longest takes 393 bytes, and up to a cell and its headers more.
    Ok((1.5 * byte_s * (f64::from(large) + 96.0)).clamp(0.01, 0.5))
}

/// The sample at or below which this share of them is.
fn lower_quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

/// Round-trip time of each size and its standard error, by the quantile that repeats best. All
/// sizes have equally many times, so that the bias of a quantile is common to them.
fn locations(times: &[Vec<f64>], count: usize) -> Vec<(f64, f64)> {
    let estimate = |share: f64| -> (Vec<f64>, f64) {
        let of = |times: &[f64]| {
            let mut sorted = times.to_vec();
            sorted.sort_by(f64::total_cmp);
            lower_quantile(&sorted, share)
        };
        let whole = times.iter().map(|times| of(&times[..count])).collect();
        // Two halves differ by twice the error of the whole, in the mean square.
        let half = |times: &Vec<f64>| {
            let (odd, even): (Vec<_>, Vec<_>) = times[..count].iter().enumerate().partition(|(i, _)| i % 2 == 1);
            let only = |half: Vec<(usize, &f64)>| half.into_iter().map(|each| *each.1).collect::<Vec<_>>();
            ((of(&only(odd)) - of(&only(even))) / 2.0).powi(2)
        };
        let squares: Vec<f64> = times.iter().map(half).collect();
        (whole, (squares.iter().sum::<f64>() / squares.len() as f64).sqrt())
    };
    let best = QUANTILES.iter().map(|share| estimate(*share)).min_by(|a, b| a.1.total_cmp(&b.1));
    let (values, error) = best.unwrap_or_default();
    values.into_iter().map(|value| (value, error.max(1e-6))).collect()
}

fn judge(sizes: &[u16], times: &[Vec<f64>], count: usize, sure: f64, echoes: usize, took_s: f64) -> Idle {
    let points = locations(times, count);
    let mut all = Cells::all();
    let fits: Vec<Fit> = all.iter().map(|cells| Fit::new(cells, sizes, &points, 1.0)).collect();
    let least = fits.iter().map(|fit| fit.squares).fold(f64::INFINITY, f64::min);
    let birge = (least / (SIZES as f64 - 3.0)).sqrt().max(1.0);
    let fits: Vec<Fit> = all.iter().map(|cells| Fit::new(cells, sizes, &points, birge)).collect();
    let score = |(cells, fit): (&Cells, &Fit)| cells.probability.ln() + fit.log_likelihood;
    let scores: Vec<f64> = all.iter().zip(&fits).map(score).collect();
    let top = scores.iter().copied().fold(f64::MIN, f64::max);
    let sum: f64 = scores.iter().map(|score| (score - top).exp()).sum();
    all.iter_mut().zip(&scores).for_each(|(cells, score)| cells.probability = (score - top).exp() / sum);
    let best = (0..all.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap_or(0);
    let (slope, error) = (fits[best].slope, fits[best].slope_error);
    // Cells are named only where the line is slow enough to show that size matters at all, and the
    // absence of cells only where their steps would show.
    let shows = slope > 5.0 * error && all[best].probability >= sure && birge < 4.0;
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&a, &b| all[b].probability.total_cmp(&all[a].probability));
    let mut covered = 0.0;
    let mut candidates = Vec::new();
    for i in order {
        covered += all[i].probability;
        candidates.push(all[i].clone());
        if covered > 0.999 {
            break;
        }
    }
    let verdict = if shows { Verdict::Sure } else { Verdict::NotSure };
    let byte_s = Estimate { value: slope, low: slope - 1.96 * error, high: slope + 1.96 * error };
    Idle { verdict, candidates, byte_s, echoes, took_s }
}

/// A straight line of time against the bytes of a hypothesis.
struct Fit {
    log_likelihood: f64,
    slope: f64,
    slope_error: f64,
    squares: f64,
}

impl Fit {
    fn new(cells: &Cells, sizes: &[u16], points: &[(f64, f64)], inflate: f64) -> Self {
        let data: Vec<(f64, f64)> =
            sizes.iter().zip(points).map(|(&size, point)| (cells.bytes(size), point.0)).collect();
        let error = points[0].1 * inflate;
        let (mut offset, mut slope) = (0.0, 0.0);
        let mut sxx = 1.0;
        let mut weights = vec![1.0; data.len()];
        for _ in 0..8 {
            let total: f64 = weights.iter().sum();
            let mean = |f: &dyn Fn(&(f64, f64)) -> f64| {
                data.iter().zip(&weights).map(|(point, weight)| f(point) * weight).sum::<f64>() / total
            };
            let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
            sxx = mean(&|point| (point.0 - x).powi(2)) * total;
            slope = (mean(&|point| (point.0 - x) * (point.1 - y)) * total / sxx).max(0.0);
            offset = y - slope * x;
            for (weight, point) in weights.iter_mut().zip(&data) {
                let z = (point.1 - offset - slope * point.0) / error;
                *weight = (FREEDOM + 1.0) / (FREEDOM + z * z);
            }
        }
        let z2 = |point: &(f64, f64)| ((point.1 - offset - slope * point.0) / error).powi(2);
        let log_likelihood = data.iter().map(|point| -(FREEDOM + 1.0) / 2.0 * (z2(point) / FREEDOM).ln_1p()).sum();
        let squares = data.iter().map(z2).sum();
        Self { log_likelihood, slope, slope_error: error / sxx.sqrt(), squares }
    }
}
