//! The frames of a video encoder that follows a target rate.
//!
//! Published: RFC 8593, section 5 (statistical model of a live encoder): frame sizes are Laplacian around the target,
//! with a scale of 15 %; the encoder follows a new target at most every 200 ms; a burst of eight frames begins with a
//! large one (13.5 kB where a frame has 4.17 kB) and has the target rate in the mean.
//!
//! Differs: frames come at equal intervals, and their sizes contain the headers of their packets. The burst
//! is that of a key frame: at the beginning, and on request.
//!
//! Cost: a random number a frame.

use lastmile_queueing::random::Stream;
use lastmile_units::{Duration, Instant};

/// Scale of a frame's deviation from its mean size.
const SCALE: f64 = 0.15;
/// The least time between two changes of the target.
const REACTION: Duration = Duration::from_ms(200);
/// Frames of a burst, and the size of the first of them in mean frames.
const BURST: u32 = 8;
const KEY: f64 = 13.5 / 4.17;
/// A frame has at least this share of its mean.
const LEAST: f64 = 0.1;

/// An encoder.
#[derive(Debug)]
pub(super) struct Encoder {
    frame_rate: f64,
    target: f64,
    changed: Option<Instant>,
    /// Frames of the present burst that are still to come.
    burst: u32,
    key_due: bool,
    random: Stream,
}

/// An encoded frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Frame {
    pub(super) bytes: u64,
    /// True if the frame can be decoded without earlier frames.
    pub(super) key: bool,
}

impl Encoder {
    pub(super) fn new(frame_rate: u32, random: Stream) -> Self {
        Self { frame_rate: frame_rate.into(), target: 0.0, changed: None, burst: 0, key_due: true, random }
    }

    /// The next frame is a key frame.
    pub(super) fn request_key(&mut self) {
        self.key_due = true;
    }

    /// Encodes a frame at `now`, for a target in bit/s.
    pub(super) fn frame(&mut self, now: Instant, target: f64) -> Frame {
        if self.changed.is_none_or(|changed| now.since(changed) >= REACTION) {
            self.target = target;
            self.changed = Some(now);
        }
        let mean = self.target / self.frame_rate / 8.0;
        let key = std::mem::take(&mut self.key_due);
        let share = if key {
            self.burst = BURST - 1;
            KEY
        } else if self.burst > 0 {
            self.burst -= 1;
            (f64::from(BURST) - KEY) / f64::from(BURST - 1)
        } else {
            1.0
        };
        let bytes = mean * share * (1.0 + self.laplace()).max(LEAST);
        Frame { bytes: (bytes as u64).max(1), key }
    }

    /// A Laplacian variable of mean 0: the inverse of its distribution function.
    fn laplace(&mut self) -> f64 {
        let uniform = self.random.uniform() - 0.5;
        -SCALE * uniform.signum() * libm::log((1.0 - 2.0 * uniform.abs()).max(f64::MIN_POSITIVE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: u64) -> Instant {
        Instant::ZERO + Duration::from_us(33_333) * number
    }

    /// 1.2 Mbit/s at 30 frames a second are 5 kB a frame. The mean deviation of a Laplacian variable is its scale.
    #[test]
    fn frames_have_the_target_in_the_mean_and_deviate_by_the_scale() {
        let mut encoder = Encoder::new(30, Stream::new(1, "encoder"));
        let frames: Vec<f64> = (0..20_000).map(|number| encoder.frame(at(number), 1.2e6).bytes as f64).collect();
        let mean = frames.iter().sum::<f64>() / 20_000.0;
        assert!((mean / 5_000.0 - 1.0).abs() < 0.01, "{mean}");
        let apart = frames.iter().map(|bytes| (bytes / 5_000.0 - 1.0).abs()).sum::<f64>() / 20_000.0;
        assert!((apart / 0.15 - 1.0).abs() < 0.05, "{apart}");
    }

    /// Over many bursts: the first of eight frames has 3.24 mean frames, and all eight together eight.
    #[test]
    fn a_key_frame_is_paid_for_by_the_frames_after_it() {
        let mut encoder = Encoder::new(30, Stream::new(2, "encoder"));
        let (mut keys, mut all) = (0.0, 0.0);
        for number in 0..8_000 {
            if number % 8 == 0 {
                encoder.request_key();
            }
            let frame = encoder.frame(at(number), 1.2e6);
            assert_eq!(frame.key, number % 8 == 0);
            all += frame.bytes as f64;
            keys += if frame.key { frame.bytes as f64 } else { 0.0 };
        }
        assert!((keys / 1_000.0 / 5_000.0 - 13.5 / 4.17).abs() < 0.1, "{keys}");
        assert!((all / 8_000.0 / 5_000.0 - 1.0).abs() < 0.01, "{all}");
    }

    #[test]
    fn a_new_target_is_followed_after_200_ms() {
        let mut encoder = Encoder::new(30, Stream::new(3, "encoder"));
        encoder.frame(at(0), 1e6);
        encoder.frame(at(1), 9e6);
        assert!((encoder.target - 1e6).abs() < 1.0);
        encoder.frame(at(7), 9e6);
        assert!((encoder.target - 9e6).abs() < 1.0);
    }
}
