//! A receive window that grows with what is received: dynamic right-sizing, as Linux does it.
//!
//! Published: M. Fisk and W. Feng, "Dynamic Adjustment of TCP Window Sizes", Los Alamos 2000; thresholds from the behaviour of Linux 6.18.
//! The window begins at 64 KiB. Once a round trip the receiver compares what the application has read with what it read in the
//! best round trip so far. More than that raises the aim: to twice of it, and further by four times its relative growth, so that a sender in slow
//! start, which doubles each round trip, is not held back. Towards the aim the window opens by two segments for each that arrives in order.
//! The aim never falls, and ends at [`Config::receive_window`].
//! Differs: the round trip follows from timestamps alone, or without them from the handshake and from how long a window of data takes; data out of
//! order raise no aim; memory is not counted, so the share of it that headers take is the user's to subtract.
//! Cost: an addition and two comparisons for each data segment, a division for each round trip; 40 bytes, boxed.

use lastmile_units::{Duration, Instant};

use crate::Config;

/// What a connection starts with.
pub(crate) const START: u32 = 65_535;

/// What the receiver has seen of the sender's pace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Autotune {
    /// When this round trip of reading began, and at which octet.
    began: Instant,
    from: u64,
    /// When the window that is now arriving began, and where it ends: without timestamps this measures.
    window_began: Instant,
    window_end: u64,
    /// Eight times the smoothed round trip in microseconds; zero before the first.
    trip8_us: u32,
    /// Octets read in the best round trip.
    best: u32,
    /// What the window grows to.
    aim: u32,
}

/// A data segment in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    /// The next octet that is expected after it.
    pub(crate) next: u64,
    /// The window before it, and the most that it may become.
    pub(crate) window: u32,
    pub(crate) most: u32,
    /// The round trip that its timestamp tells.
    pub(crate) echoed: Option<Duration>,
}

impl Autotune {
    pub(crate) fn new(now: Instant, config: &Config) -> Self {
        let first = u32::from(config.own_mss()) * 10;
        Self { began: now, from: 1, window_began: now, window_end: 1, trip8_us: 0, best: first, aim: START }
    }

    /// The window after a segment in order.
    pub(crate) fn on_data(&mut self, now: Instant, config: &Config, read: Read) -> u32 {
        self.measure(now, read);
        if self.trip8_us > 0 && now.since(self.began) >= Duration::from_us(u64::from(self.trip8_us / 8)) {
            self.judge(read);
            (self.began, self.from) = (now, read.next);
        }
        let opened = read.window.saturating_add(2 * u32::from(config.own_mss()));
        read.window.max(opened.min(self.aim).min(read.most))
    }

    fn measure(&mut self, now: Instant, read: Read) {
        let micros = |span: Duration| (span.as_ps() / 1_000_000).clamp(1, 1 << 28) as u32;
        if let Some(trip) = read.echoed {
            self.trip8_us = match self.trip8_us {
                0 => micros(trip) * 8,
                smoothed => smoothed - smoothed / 8 + micros(trip),
            };
        } else if read.next >= self.window_end {
            // A window takes a round trip, or longer where the sender does not fill it: the least is nearest.
            let trip8 = micros(now.since(self.window_began)).saturating_mul(8);
            if self.window_end > 1 && (self.trip8_us == 0 || trip8 < self.trip8_us) {
                self.trip8_us = trip8;
            }
            (self.window_began, self.window_end) = (now, read.next + u64::from(read.window));
        }
    }

    /// A round trip is over.
    fn judge(&mut self, read: Read) {
        let copied = u32::try_from(read.next - self.from).unwrap_or(u32::MAX);
        if copied <= self.best {
            return;
        }
        let twice = u64::from(copied) * 2;
        let growth = twice * u64::from(copied - self.best) / u64::from(self.best.max(1)) * 2;
        self.best = copied;
        let aim = u32::try_from(twice + growth).unwrap_or(u32::MAX);
        self.aim = self.aim.max(aim).min(read.most.max(START));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1448;

    fn config() -> Config {
        Config { mss: MSS as u16, autotune: true, ..Config::default() }
    }

    /// A receiver whose segments come evenly, each with a timestamp's round trip of 20 ms.
    struct Stream {
        tune: Autotune,
        now: Instant,
        next: u64,
        window: u32,
    }

    impl Stream {
        fn new() -> Self {
            Self { tune: Autotune::new(Instant::ZERO, &config()), now: Instant::ZERO, next: 1, window: START }
        }

        /// So many segments, evenly over 20 ms.
        fn round(&mut self, segments: u32, echoed: bool) {
            for _ in 0..segments {
                self.now += Duration::from_us(20_000 / u64::from(segments));
                self.next += u64::from(MSS);
                let echoed = echoed.then(|| Duration::from_ms(20));
                let read = Read { next: self.next, window: self.window, most: 6_000_000, echoed };
                self.window = self.tune.on_data(self.now, &config(), read);
            }
        }
    }

    /// A first round trip of ten segments raises nothing. A second of twenty: twice 28 960, and by 2 * 57 920 * 14 480 / 14 480 more: 173 760.
    #[test]
    fn doubling_aims_at_six_times_of_what_was_read() {
        let mut stream = Stream::new();
        stream.round(10, true);
        assert_eq!((stream.tune.best, stream.tune.aim), (14_480, START));
        stream.round(20, true);
        assert_eq!((stream.tune.best, stream.tune.aim), (28_960, 173_760));
    }

    /// Two segments of window for each that arrives.
    #[test]
    fn the_window_opens_as_data_arrive() {
        let mut stream = Stream::new();
        stream.round(10, true);
        stream.round(20, true);
        assert_eq!(stream.window, START + 2 * MSS, "by the segment that ended the round");
        stream.round(10, true);
        assert_eq!(stream.window, START + 11 * 2 * MSS);
    }

    /// 100 segments a round trip, each time: the aim stays at twice and four times the growth of the round in which it began.
    #[test]
    fn a_steady_stream_raises_nothing_further() {
        let mut stream = Stream::new();
        for _ in 0..3 {
            stream.round(100, true);
        }
        let (aim, window) = (stream.tune.aim, stream.window);
        for _ in 0..20 {
            stream.round(100, true);
        }
        assert_eq!(stream.tune.aim, aim);
        assert!(stream.window >= window && stream.window <= aim);
        assert!(aim >= 2 * 100 * MSS, "never less than two round trips' worth: {aim}");
    }

    /// A sender that doubles each round trip never meets the window, with timestamps and without.
    #[test]
    fn slow_start_is_not_held_back() {
        for echoed in [true, false] {
            let mut stream = Stream::new();
            let mut segments = 10;
            while segments * MSS < 1_000_000 {
                assert!(segments * MSS <= stream.window, "{segments} segments, window {}", stream.window);
                stream.round(segments, echoed);
                segments *= 2;
            }
        }
    }

    #[test]
    fn the_window_ends_at_the_most() {
        let mut stream = Stream::new();
        for round in 0..12 {
            stream.round(10 << round.min(11), true);
        }
        assert_eq!(stream.window, 6_000_000);
    }
}
