//! A receive window that grows with the received data: dynamic right-sizing as in Linux.
//!
//! Published: M. Fisk and W. Feng, "Dynamic Adjustment of TCP Window Sizes", Los Alamos 2000; thresholds
//! from the behaviour of Linux 6.18.
//!
//! The window begins at the whole segments of 64 KiB, and opens to the share of data in the initial memory of 128 KiB
//! (`tcp_rmem`), less the segment that has arrived. Once a round trip the receiver compares the octets that the
//! application has read with those of the best round trip before. If they are more, the target rises to twice that
//! number, and further by four times its relative growth, so that the window does not limit a sender that doubles
//! each round trip in slow start. Data out of order raise it to twice the best round trip and the octets up to
//! the highest one that is held. Towards the target the window opens by two segments for each that arrives in
//! order, with SACK also for each out of order, as far as held data leave memory. The target never falls, and
//! is at most [`Config::receive_window`].
//!
//! Differs: the round trip follows from timestamps alone, or without them from the time that a window of
//! data takes. Memory of headers is not counted, so users subtract the share that they take.
//! Cost: an addition and two comparisons for each data segment, a division for each round trip; 56 bytes, boxed.

use lastmile_units::{Duration, Instant};

use crate::Config;

/// The largest initial window.
const START: u32 = 65_535;
/// The share of data in the initial memory: headers take 3/8 of it.
const FIRST_SHARE: u32 = 81_920;

/// The initial window: whole segments, as `tcp_select_initial_window` of Linux.
pub(super) fn first_window(config: &Config) -> u32 {
    START - START % u32::from(config.own_mss())
}

/// The receiver's measurements of the sender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Autotune {
    /// Time and octet at which the current round trip of reading began.
    began: Instant,
    from: u64,
    /// Start time and end of the window that is arriving; it measures the round trip where there are no timestamps.
    window_began: Instant,
    window_end: u64,
    /// Eight times the smoothed round trip in microseconds.
    trip8_us: Option<u32>,
    /// Octets read in the best round trip.
    best: u32,
    /// The target of the window.
    target: u32,
}

/// A data segment in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    /// The next octet that is expected after it.
    pub(crate) next: u64,
    /// The window before it, and the most that it may become.
    pub(crate) window: u32,
    pub(crate) most: u32,
    /// The round trip by its timestamp.
    pub(crate) echoed: Option<Duration>,
    /// The data out of order after it.
    pub(crate) held: Held,
}

/// The data out of order that the receiver holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Held {
    pub(crate) octets: u64,
    /// From the next expected octet to the end of the highest one that is held.
    pub(crate) span: u64,
}

impl Autotune {
    pub(crate) fn new(now: Instant, config: &Config) -> Self {
        // As `tcp_init_buffer_space` of Linux: no round trip can exceed ten segments that the window does not hold.
        let mss = u32::from(config.own_mss());
        let (best, target) = ((mss * 10).min(START), FIRST_SHARE - mss);
        Self { began: now, from: 1, window_began: now, window_end: 1, trip8_us: None, best, target }
    }

    /// The window after a segment in order.
    pub(crate) fn on_data(&mut self, now: Instant, config: &Config, read: Read) -> u32 {
        self.measure(now, read);
        if self.trip8_us.is_some_and(|trip8| now.since(self.began) >= Duration::from_us(u64::from(trip8 / 8))) {
            self.raise_target(read);
            (self.began, self.from) = (now, read.next);
        }
        self.open(config, read.held, (read.window, read.most))
    }

    /// The window after a segment out of order.
    pub(crate) fn on_early(&mut self, config: &Config, held: Held, (window, most): (u32, u32)) -> u32 {
        self.aim(u64::from(self.best) * 2, held, most);
        self.open(config, held, (window, most))
    }

    /// The window opens by two segments.
    fn open(&self, config: &Config, held: Held, (window, most): (u32, u32)) -> u32 {
        let opened = window.saturating_add(2 * u32::from(config.own_mss()));
        let free = u64::from(self.target).saturating_sub(held.octets);
        window.max(opened.min(u32::try_from(free).unwrap_or(u32::MAX)).min(most))
    }

    /// Raises the target to these octets in order and those up to the end of the data that are held.
    fn aim(&mut self, in_order: u64, held: Held, most: u32) {
        let target = u32::try_from(in_order + held.span).unwrap_or(u32::MAX);
        self.target = self.target.max(target.min(most));
    }

    fn measure(&mut self, now: Instant, read: Read) {
        let micros = |span: Duration| (span.as_ps() / 1_000_000).clamp(1, 1 << 28) as u32;
        if let Some(trip) = read.echoed {
            let first = micros(trip) * 8;
            self.trip8_us = Some(self.trip8_us.map_or(first, |smoothed| smoothed - smoothed / 8 + micros(trip)));
        } else if read.next >= self.window_end {
            // A window takes a round trip, or longer where the sender does not fill it: the shortest is nearest.
            let trip8 = micros(now.since(self.window_began)).saturating_mul(8);
            if self.window_end > 1 {
                self.trip8_us = Some(self.trip8_us.map_or(trip8, |shortest| shortest.min(trip8)));
            }
            (self.window_began, self.window_end) = (now, read.next + u64::from(read.window));
        }
    }

    /// A round trip is over.
    fn raise_target(&mut self, read: Read) {
        let copied = u32::try_from(read.next - self.from).unwrap_or(u32::MAX);
        if copied <= self.best {
            return;
        }
        let twice = u64::from(copied) * 2;
        let growth = twice * u64::from(copied - self.best) / u64::from(self.best.max(1)) * 2;
        self.best = copied;
        self.aim(twice + growth, read.held, read.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1448;

    fn config() -> Config {
        Config { mss: MSS as u16, autotune: true, ..Config::default() }
    }

    /// A receiver whose segments arrive evenly, with a round trip of 20 ms by timestamps.
    struct Stream {
        tune: Autotune,
        now: Instant,
        next: u64,
        window: u32,
    }

    impl Stream {
        fn new() -> Self {
            Self {
                tune: Autotune::new(Instant::ZERO, &config()),
                now: Instant::ZERO,
                next: 1,
                window: first_window(&config()),
            }
        }

        /// Segments arrive evenly over 20 ms.
        fn round(&mut self, segments: u32, echoed: bool) {
            for _ in 0..segments {
                self.now += Duration::from_us(20_000 / u64::from(segments));
                self.next += u64::from(MSS);
                let echoed = echoed.then(|| Duration::from_ms(20));
                let read =
                    Read { next: self.next, window: self.window, most: 6_000_000, echoed, held: Held::default() };
                self.window = self.tune.on_data(self.now, &config(), read);
            }
        }
    }

    /// A first round trip of ten segments does not raise the target. A second one of twenty raises it to
    /// twice 28 960 plus 2 * 57 920 * 14 480 / 14 480, which is 173 760.
    #[test]
    fn doubling_raises_the_target_to_six_times_the_read_octets() {
        let mut stream = Stream::new();
        stream.round(10, true);
        assert_eq!((stream.tune.best, stream.tune.target), (14_480, FIRST_SHARE - MSS));
        stream.round(20, true);
        assert_eq!((stream.tune.best, stream.tune.target), (28_960, 173_760));
    }

    /// Ten segments of 8948 octets are more than the window. Eight in a round trip are 71 584 octets, 6049 more than
    /// the window: twice 71 584 plus 2 * 13 214, which is 143 168 * 6049 / 65 535.
    #[test]
    fn segments_of_which_the_window_holds_less_than_ten_raise_the_target() {
        let config = Config { mss: 8948, ..config() };
        let mut tune = Autotune::new(Instant::ZERO, &config);
        for number in 1..=8 {
            let (window, echoed) = (START, Some(Duration::from_ms(20)));
            let read = Read { next: 1 + number * 8948, window, most: 6_000_000, echoed, held: Held::default() };
            tune.on_data(Instant::ZERO + Duration::from_us(2_500 * number), &config, read);
        }
        assert_eq!((tune.best, tune.target), (71_584, 169_596));
    }

    /// Each segment opens the window by two.
    #[test]
    fn the_window_opens_as_data_arrive() {
        let mut stream = Stream::new();
        stream.round(10, true);
        stream.round(20, true);
        assert_eq!(stream.window, FIRST_SHARE + MSS, "by the segment that ended the round");
        stream.round(10, true);
        assert_eq!(stream.window, FIRST_SHARE + MSS + 10 * 2 * MSS);
    }

    /// 100 segments in each round trip: the target stays at its value after the first one.
    #[test]
    fn a_steady_stream_does_not_raise_the_target() {
        let mut stream = Stream::new();
        for _ in 0..3 {
            stream.round(100, true);
        }
        let (target, window) = (stream.tune.target, stream.window);
        for _ in 0..20 {
            stream.round(100, true);
        }
        assert_eq!(stream.tune.target, target);
        assert!(stream.window >= window && stream.window <= target);
        assert!(target >= 2 * 100 * MSS, "at least two round trips' worth: {target}");
    }

    /// The window never limits a sender that doubles each round trip, with timestamps and without.
    #[test]
    fn the_window_does_not_limit_slow_start() {
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

    /// The first of 40 segments is missing. Those after it raise the target to twice the best round trip, 28 960, and
    /// 40 segments, and open the window by two each, as far as the held ones leave memory.
    #[test]
    fn data_out_of_order_open_the_window() {
        let mut tune = Stream::new().tune;
        let early = |tune: &mut Autotune, segments: u32, window: u32| {
            let octets = u64::from(segments * MSS);
            tune.on_early(&config(), Held { octets, span: octets + u64::from(MSS) }, (window, 6_000_000))
        };
        assert_eq!(early(&mut tune, 1, START), START + 2 * MSS, "the target is above 14 480 * 2 + 2 * 1448");
        assert_eq!(early(&mut tune, 39, START), START, "39 of the 55 segments of the memory are held");
        assert_eq!(tune.target, 28_960 + 40 * MSS);
        tune.target = 200_000;
        assert_eq!(early(&mut tune, 40, START), START + 2 * MSS);
        assert_eq!(early(&mut tune, 92, START), 200_000 - 92 * MSS);
        assert_eq!(early(&mut tune, 93, START), START, "the window never shrinks");
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
