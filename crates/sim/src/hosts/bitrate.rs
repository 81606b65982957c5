//! The rules by which a video player chooses the bit rate of the next segment.
//!
//! - *Throughput*, as hls.js chooses (its `abr-controller` and `ewma-bandwidth-estimator`, with their defaults): the
//!   highest bit rate below a share of the estimated throughput. The share is 0.95 for the present bit rate and lower
//!   ones, and 0.7 for higher ones.
//! - *BOLA* (Spiteri, Urgaonkar, Sitaraman, "BOLA", INFOCOM 2016), in its form BOLA-BASIC: the bit rate m with the
//!   largest (V (v_m + gp) - Q) / S_m, where Q is the buffer in segments and v_m = ln(S_m / S_1).
//! - *BBA* (Huang et al., "A Buffer-Based Approach to Rate Adaptation", SIGCOMM 2014, algorithm 1, BBA-0): a linear
//!   map from the buffer to a rate, with hysteresis of one step.
//!
//! The throughput is estimated by the smaller of two averages with exponential weights, whose half-lives are 3 s and
//! 9 s of download. A download counts as 50 ms at least. BOLA has gp = 5 and V = (Qmax - 1) / (v_M + gp), with the
//! player's whole buffer as Qmax. BBA has the published shares of its buffer of 240 s, a reservoir of 90 s and the
//! highest bit rate from 216 s on, of the most that a buffer holds at a request: itself less a segment.
//!
//! Differs. hls.js abandons downloads that take too long and accepts no bit rate whose download would drain the
//! buffer; its first segment follows an assumed throughput of 500 kbit/s. Here the first segment has the lowest bit
//! rate under each rule. A throughput is measured from the request to the last byte. BOLA does not pause: the
//! player's limit of the buffer does, at the level at which BOLA-BASIC would.
//!
//! Cost: a pass over the ladder for each segment.

use lastmile_model::{Rule, Video};
use lastmile_units::{BitRate, Duration};

/// Half-lives of the averages of throughput, in seconds of download.
const HALF_LIVES: [f64; 2] = [3.0, 9.0];
/// The least time for which a download counts, in seconds.
const LEAST_SAMPLE: f64 = 0.05;
/// Shares of the estimate that the present bit rate and lower ones, and higher ones, may have.
const KEEP: f64 = 0.95;
const RISE: f64 = 0.7;
/// gp of BOLA.
const GAMMA: f64 = 5.0;
/// The reservoir of BBA, and the end of its cushion, as shares of the buffer: 90 s and 216 s of 240 s.
const RESERVOIR: f64 = 90.0 / 240.0;
const CUSHION_END: f64 = 216.0 / 240.0;

/// An average whose weights halve for each half-life, with the correction for its beginning at zero.
#[derive(Clone, Copy, Debug, Default)]
struct Average {
    value: f64,
    weight: f64,
}

impl Average {
    fn add(&mut self, half_life: f64, seconds: f64, value: f64) {
        let keep = libm::exp2(-seconds / half_life);
        self.value = keep * self.value + (1.0 - keep) * value;
        self.weight += seconds;
    }

    /// 0 without a download.
    fn estimate(&self, half_life: f64) -> f64 {
        if self.weight > 0.0 { self.value / (1.0 - libm::exp2(-self.weight / half_life)) } else { 0.0 }
    }
}

/// The choice of bit rates of one player.
#[derive(Clone, Debug, Default)]
pub(super) struct Choice {
    averages: [Average; 2],
    /// The step of the latest segment.
    latest: Option<usize>,
}

impl Choice {
    /// A segment of `bytes` has arrived after `took`.
    pub(super) fn measured(&mut self, bytes: u64, took: Duration) {
        let seconds = took.as_secs_f64().max(LEAST_SAMPLE);
        let throughput = bytes as f64 * 8.0 / seconds;
        for (average, half_life) in self.averages.iter_mut().zip(HALF_LIVES) {
            average.add(half_life, seconds, throughput);
        }
    }

    /// The step of the next segment, with this much media in the buffer.
    pub(super) fn next(&mut self, video: &Video, buffered: Duration) -> usize {
        let step = match (self.latest, video.rule) {
            (None, _) => 0,
            (Some(latest), Rule::Throughput) => self.by_throughput(&video.ladder, latest),
            (Some(_), Rule::Bola) => bola(video, buffered),
            (Some(latest), Rule::Bba) => bba(video, buffered, latest),
        };
        self.latest = Some(step);
        step
    }

    /// The smaller average, in bit/s.
    fn throughput(&self) -> f64 {
        let estimates = self.averages.iter().zip(HALF_LIVES).map(|(average, half_life)| average.estimate(half_life));
        estimates.fold(f64::INFINITY, f64::min)
    }

    fn by_throughput(&self, ladder: &[BitRate], latest: usize) -> usize {
        let estimate = self.throughput();
        let fits = |step: &usize| bps(ladder[*step]) <= estimate * if *step > latest { RISE } else { KEEP };
        (0..ladder.len()).rev().find(fits).unwrap_or(0)
    }
}

fn bola(video: &Video, buffered: Duration) -> usize {
    let segments = |time: Duration| time.as_secs_f64() / video.segment.as_secs_f64();
    let utility = |rate: BitRate| libm::log(bps(rate) / bps(video.ladder[0]));
    let best = video.ladder.last().map_or(0.0, |rate| utility(*rate));
    let v = (segments(video.buffer) - 1.0) / (best + GAMMA);
    let level = segments(buffered);
    let score = |rate: BitRate| (v * (utility(rate) + GAMMA) - level) / bps(rate);
    let scores = video.ladder.iter().map(|rate| score(*rate)).enumerate();
    scores.reduce(|best, other| if other.1 >= best.1 { other } else { best }).map_or(0, |(step, _)| step)
}

fn bba(video: &Video, buffered: Duration, latest: usize) -> usize {
    let ladder = &video.ladder;
    let last = ladder.len() - 1;
    let (least, most) = (bps(ladder[0]), bps(ladder[last]));
    let most_held = video.buffer.saturating_sub(video.segment);
    let level = buffered.as_secs_f64() / most_held.as_secs_f64();
    let mapped = least + (most - least) * ((level - RESERVOIR) / (CUSHION_END - RESERVOIR)).clamp(0.0, 1.0);
    if level <= RESERVOIR {
        return 0;
    }
    if level >= CUSHION_END {
        return last;
    }
    if mapped >= bps(ladder[(latest + 1).min(last)]) {
        // The highest below the map; the map is at least the next step, so this does not fall.
        (0..=last).rev().find(|step| bps(ladder[*step]) < mapped).unwrap_or(0).max(latest)
    } else if mapped <= bps(ladder[latest.saturating_sub(1)]) {
        (0..=last).find(|step| bps(ladder[*step]) > mapped).unwrap_or(last).min(latest)
    } else {
        latest
    }
}

fn bps(rate: BitRate) -> f64 {
    rate.as_bps() as f64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lastmile_model::Transport;

    use super::*;

    fn video(rule: Rule, ladder: &[u64], segment_s: u64, buffer_s: u64) -> Video {
        Video {
            transport: Transport::Tcp(Arc::new(lastmile_tcp::Config::default())),
            segment: Duration::from_s(segment_s),
            ladder: ladder.iter().map(|kbit| BitRate::from_kbit_per_s(*kbit)).collect(),
            rule,
            startup: Duration::from_s(segment_s),
            buffer: Duration::from_s(buffer_s),
            length: None,
            request: 350,
        }
    }

    /// After 9 s at 4 Mbit/s and 3 s at 1 Mbit/s the average of 3 s is the smaller one: half of its weight is the
    /// newest sample's, 2^-4 its beginning's. (1 x 1/2 + 4 x (1/2 - 1/16)) / (1 - 1/16) = 2.4 Mbit/s.
    #[test]
    fn throughput_is_the_smaller_average() {
        let mut choice = Choice { latest: Some(1), ..Choice::default() };
        choice.measured(4_500_000, Duration::from_s(9));
        choice.measured(375_000, Duration::from_s(3));
        assert!((choice.throughput() / 2.4e6 - 1.0).abs() < 1e-9, "{}", choice.throughput());
        // 0.95 x 2.4 = 2.28 keeps a step, and 0.7 x 2.4 = 1.68 allows a higher one.
        let rates = |kbit: [u64; 3]| kbit.map(BitRate::from_kbit_per_s);
        assert_eq!(choice.by_throughput(&rates([1_000, 2_280, 9_000]), 1), 1);
        assert_eq!(choice.by_throughput(&rates([1_000, 2_281, 9_000]), 1), 0);
        assert_eq!(choice.by_throughput(&rates([1_000, 1_200, 1_680]), 1), 2);
        assert_eq!(choice.by_throughput(&rates([1_000, 1_200, 1_681]), 1), 1);
    }

    #[test]
    fn the_first_segment_has_the_lowest_rate() {
        for rule in [Rule::Throughput, Rule::Bola, Rule::Bba] {
            let video = video(rule, &[500, 1_000, 4_000], 4, 40);
            assert_eq!(Choice::default().next(&video, Duration::from_s(36)), 0, "{rule:?}");
        }
    }

    /// The connection failed before the first segment arrived.
    #[test]
    fn without_a_measured_throughput_the_rate_is_the_lowest() {
        let video = video(Rule::Throughput, &[500, 1_000, 4_000], 4, 40);
        let mut choice = Choice::default();
        assert_eq!([0; 2].map(|_| choice.next(&video, Duration::ZERO)), [0, 0]);
        choice.measured(500_000, Duration::from_s(1));
        assert_eq!(choice.next(&video, Duration::ZERO), 1);
    }

    /// Steps m and n are equal where (V (v_m + gp) - Q) / S_m = (V (v_n + gp) - Q) / S_n. Two rates of 1 and 2 Mbit/s,
    /// ten segments of buffer: V = 9 / (ln 2 + 5) = 1.581, and Q = V (gp - ln 2) = 6.809 segments.
    #[test]
    fn bola_rises_where_the_scores_are_equal() {
        let video = video(Rule::Bola, &[1_000, 2_000], 4, 40);
        let at = |segments: f64| bola(&video, Duration::from_ms((segments * 4_000.0) as u64));
        assert_eq!((at(0.0), at(6.80), at(6.82), at(9.0)), (0, 0, 1, 1));
    }

    /// Of 240 s of buffer at a request and a ladder from 1 to 5 Mbit/s, 153 s map to 3 Mbit/s, the middle of the
    /// cushion.
    #[test]
    fn bba_keeps_its_step_until_the_map_reaches_the_next() {
        let video = video(Rule::Bba, &[1_000, 2_000, 3_000, 4_000, 5_000], 4, 244);
        let at = |seconds: u64, latest: usize| bba(&video, Duration::from_s(seconds), latest);
        assert_eq!((at(90, 4), at(216, 0)), (0, 4), "reservoir and upper end");
        assert_eq!(at(153, 1), 1, "the map equals the next step, and the highest below it is the present one");
        assert_eq!(at(154, 1), 2);
        assert_eq!((at(154, 2), at(154, 3)), (2, 3), "hysteresis");
        assert_eq!(at(121, 3), 1, "the map is below 2 Mbit/s: the lowest above it");
    }
}
