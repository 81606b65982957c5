//! ERICA (explicit rate indication for congestion avoidance): a switch that measures its load and
//! tells each source its fair share.
//!
//! Published: Kalyanaraman, Jain, Fahmy, Goyal, Vandalore 2000 (IEEE/ACM Transactions on Networking
//! 8(1)); Jain et al. 1995 (ATM Forum/95-0178). Over each averaging interval the port counts
//! arrivals:
//!
//! - ABR capacity = target utilisation * rate - cells of other VCs; load factor z = ABR input / ABR
//!   capacity;
//! - FairShare = ABR capacity / active VCs; MaxAllocPrevious = the largest rate given in the
//!   interval before.
//!
//! For a returning RM cell: VCShare = CCR / z. ER = max(FairShare, VCShare) if z > 1 + delta, else
//! max(MaxAllocPrevious, VCShare). A source below its fair share gets the fair share first. ER is
//! never above the ABR capacity; there is one answer for each VC and interval.
//! Differs: without queue control (ERICA+): the target utilisation is what drains queues. Intervals
//! are of time alone.
//! Cost: two additions a cell, three divisions an RM cell.

use lastmile_units::{BitRate, CellCount, Duration};

use super::AbrError;
use crate::time::{Moment, Spacing};

/// The settings of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Target utilisation of the link, thousandths: 1 to 1000.
    pub target_permille: u32,
    /// Averaging interval.
    pub interval: Duration,
    /// delta, thousandths: overload begins at a load factor of 1 + delta.
    pub delta_permille: u32,
}

impl Config {
    /// 95 % over `interval`, delta 0.1, as in the publication.
    #[must_use]
    pub const fn new(interval: Duration) -> Self {
        Self { target_permille: 950, interval, delta_permille: 100 }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// A target of nothing or above all, an interval of no time.
    pub fn check(&self) -> Result<(), AbrError> {
        if self.target_permille == 0 || self.target_permille > 1000 {
            return Err(AbrError::Target { permille: self.target_permille });
        }
        if self.interval.is_zero() { Err(AbrError::NoInterval) } else { Ok(()) }
    }
}

/// A port that measures.
#[derive(Clone, Debug)]
pub struct Erica {
    /// Target rate, bit/s.
    target: u64,
    delta_permille: u64,
    interval: Spacing,
    /// When this interval ends.
    end: Moment,
    /// The number of this interval, from 1.
    number: u64,
    /// Cells of ABR in this interval, and of others.
    cells: [u64; 2],
    active: u64,
    /// The ABR input of the previous interval, bit/s.
    input: u64,
    capacity: u64,
    fair_share: u64,
    max_previous: u64,
    max_current: u64,
}

/// The state of a VC at the port.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// CCR of its last RM cell, bit/s.
    ccr: u64,
    /// The interval of its last cell.
    active: u64,
    /// The interval of the last answer, and the answer.
    answered: (u64, u64),
}

impl Erica {
    /// A port of a link of `rate` that has seen no cell.
    #[must_use]
    pub fn new(config: &Config, rate: BitRate) -> Self {
        let target = part(rate.as_bps(), u64::from(config.target_permille), 1000);
        let interval = Spacing::of(config.interval);
        Self {
            target,
            delta_permille: config.delta_permille.into(),
            interval,
            end: Moment::from_parts(0, 0).plus(interval),
            number: 1,
            cells: [0; 2],
            active: 0,
            input: 0,
            capacity: target,
            fair_share: target,
            max_previous: target,
            max_current: target,
        }
    }

    /// A cell of a VC of ABR arrives at the port, with its `ccr` if it is a forward RM cell. Times
    /// never go back.
    pub fn cell(&mut self, at: Moment, vc: &mut Seen, ccr: Option<u64>) {
        self.go_on(at);
        self.cells[0] += 1;
        if vc.active != self.number {
            vc.active = self.number;
            self.active += 1;
        }
        vc.ccr = ccr.unwrap_or(vc.ccr);
    }

    /// Cells of other VCs arrive at the port.
    pub fn others(&mut self, at: Moment, cells: u64) {
        self.go_on(at);
        self.cells[1] += cells;
    }

    /// The rate that the port allows a VC, for its returning RM cell, bit/s.
    pub fn allow(&mut self, at: Moment, vc: &mut Seen) -> u64 {
        self.go_on(at);
        if vc.answered.0 == self.number {
            return vc.answered.1;
        }
        // CCR / z; without load, all there is.
        let share = if self.input == 0 { self.capacity } else { part(vc.ccr, self.capacity, self.input) };
        let overload =
            u128::from(self.input) * 1000 > u128::from(self.capacity) * u128::from(1000 + self.delta_permille);
        let mut rate = share.max(if overload { self.fair_share } else { self.max_previous });
        self.max_current = self.max_current.max(rate);
        if rate > self.fair_share && vc.ccr < self.fair_share {
            rate = self.fair_share;
        }
        let rate = rate.min(self.capacity);
        vc.answered = (self.number, rate);
        rate
    }

    /// Load factor of the previous interval. `None`: there was no capacity.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    pub fn load(&self) -> Option<f64> {
        (self.capacity > 0).then(|| self.input as f64 / self.capacity as f64)
    }

    fn go_on(&mut self, at: Moment) {
        if at < self.end {
            return;
        }
        self.close();
        if at < self.end {
            return;
        }
        // Intervals without arrivals are all alike.
        self.close();
        let missed = at.since(self.end).divided_by(self.interval);
        if at >= self.end {
            self.number += missed + 1;
            self.end = self.end.plus(self.interval.times(missed + 1));
        }
    }

    /// The end of an interval.
    fn close(&mut self) {
        let [input, others] = self.cells.map(|cells| rate_of(cells, self.interval));
        (self.input, self.capacity) = (input, self.target.saturating_sub(others));
        self.fair_share = self.capacity / self.active.max(1);
        (self.max_previous, self.max_current) = (self.max_current, self.fair_share);
        (self.cells, self.active) = ([0; 2], 0);
        self.number += 1;
        self.end = self.end.plus(self.interval);
    }
}

/// `amount` * `of` / `whole`, cut.
fn part(amount: u64, of: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(amount) * u128::from(of) / u128::from(whole)).unwrap_or(u64::MAX)
}

/// Bit/s of a number of cells in a time.
fn rate_of(cells: u64, time: Spacing) -> u64 {
    part(cells * CellCount::new(1).wire_bytes().bits(), 1_000_000_000_000, time.ps())
}

#[cfg(test)]
mod tests {
    use lastmile_units::Instant;

    use super::*;

    /// A link of 42.4 Mbit/s has 100 000 cells a second; at a target of 100 % 100 cells in 1 ms.
    fn port(target_permille: u32) -> Erica {
        let config = Config { target_permille, ..Config::new(Duration::from_ms(1)) };
        Erica::new(&config, BitRate::from_kbit_per_s(42_400))
    }

    fn us(count: u64) -> Moment {
        Moment::at(Instant::ZERO + Duration::from_us(count))
    }

    const UNIT: u64 = 424_000; // a cell a millisecond

    fn cells(port: &mut Erica, at: u64, vc: &mut Seen, count: u64, ccr: u64) {
        for _ in 0..count {
            port.cell(us(at), vc, Some(ccr * UNIT));
        }
    }

    /// By hand: capacity 100, input 120 + 30 = 150: z = 1.5 > 1.1; FairShare 50. VCShares 120/1.5 =
    /// 80 and 30/1.5 = 20. So the first gets max(50, 80) = 80, the second max(50, 20) = 50.
    #[test]
    fn an_overloaded_port_scales_down_to_the_fair_share_at_least() {
        let (mut port, mut one, mut two) = (port(1000), Seen::default(), Seen::default());
        cells(&mut port, 100, &mut one, 120, 120);
        cells(&mut port, 200, &mut two, 30, 30);
        assert_eq!(port.allow(us(1100), &mut one), 80 * UNIT);
        assert_eq!(port.allow(us(1100), &mut two), 50 * UNIT);
        assert_eq!(port.load(), Some(1.5));
    }

    /// By hand: input 40 + 20 = 60, z = 0.6, FairShare 50; the largest rate given in the interval
    /// before is that of the start, 100. First: max(100, 40/0.6) = 100, but it is below its fair
    /// share, so 50. Next interval: 60 + 20 = 80; MaxAllocPrevious 100; CCR 60 is above 50: 100.
    #[test]
    fn below_load_a_source_comes_to_its_fair_share_before_it_goes_on() {
        let (mut port, mut one, mut two) = (port(1000), Seen::default(), Seen::default());
        cells(&mut port, 100, &mut one, 40, 40);
        cells(&mut port, 200, &mut two, 20, 20);
        assert_eq!(port.allow(us(1100), &mut one), 50 * UNIT);
        cells(&mut port, 1200, &mut one, 60, 60);
        cells(&mut port, 1300, &mut two, 20, 20);
        assert_eq!(port.allow(us(2100), &mut one), 100 * UNIT);
    }

    /// Others take 30 of the target of 90: 60 are left.
    #[test]
    fn what_others_send_is_taken_off_the_target() {
        let (mut port, mut one) = (port(900), Seen::default());
        port.others(us(10), 30);
        cells(&mut port, 100, &mut one, 100, 100);
        assert_eq!(port.allow(us(1100), &mut one), 60 * UNIT);
    }

    /// The interval after, the first is alone with a tenth of the load: all is its own.
    #[test]
    fn a_vc_is_answered_once_an_interval() {
        let (mut port, mut one, mut two) = (port(1000), Seen::default(), Seen::default());
        cells(&mut port, 100, &mut one, 120, 120);
        cells(&mut port, 200, &mut two, 30, 30);
        assert_eq!(port.allow(us(1100), &mut one), 80 * UNIT);
        cells(&mut port, 1200, &mut one, 10, 10);
        assert_eq!(port.allow(us(1900), &mut one), 80 * UNIT);
        assert_eq!(port.allow(us(2100), &mut one), 100 * UNIT);
    }

    /// Ten seconds of silence are closed at once, on the same grid of intervals.
    #[test]
    fn silence_is_many_intervals_of_nothing() {
        let (mut port, mut one) = (port(1000), Seen::default());
        cells(&mut port, 100, &mut one, 200, 200);
        assert_eq!(port.allow(us(10_000_300), &mut one), 100 * UNIT);
        assert_eq!(port.number, 10_001);
        assert_eq!(port.end, us(10_001_000));
        assert_eq!(port.load(), Some(0.0));
    }

    #[test]
    fn targets_out_of_range() {
        let config = Config::new(Duration::from_ms(1));
        assert_eq!(config.check(), Ok(()));
        assert_eq!(Config { target_permille: 0, ..config }.check(), Err(AbrError::Target { permille: 0 }));
        assert_eq!(Config { interval: Duration::ZERO, ..config }.check(), Err(AbrError::NoInterval));
    }
}
