//! Committed access rate (CAR): a token bucket that lends tokens, and lends less the longer it has
//! lent.
//!
//! Published: Cisco IOS Quality of Service Solutions, "Policing and Shaping Overview", section on
//! CAR; Phanse 2000, section 5.5, polices a bursty upstream source with it.
//!
//! A packet that finds too few tokens borrows the missing ones. The *actual debt* is the number of
//! tokens owed after the packet. The *compounded debt* is the sum of the actual debts after each
//! packet that borrowed, since the last packet that exceeded. A packet that would raise the
//! compounded debt above the extended burst exceeds: it takes no token, and the sum restarts at
//! zero. Losses therefore set in one at a time during a burst, not all at once as behind a full
//! bucket, and TCP can respond to the first.
//!
//! Differs: the documentation speaks of dropped packets; here exceeding packets do not add to the
//! debt even if they are marked and transmitted. An extended burst equal to the normal one lends
//! nothing, as there.
//! Cost: a multiplication a packet.

use lastmile_units::{BitRate, Instant, WireBytes};

use super::token_bucket::tokens_for;
use super::{Bucket, Color, MeterError, TokenBucket, fits};

/// Parameters of a committed access rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The rate on the wire, headers and cells included.
    pub rate: BitRate,
    /// The normal burst, on the wire: conforms at once after a pause, without borrowing.
    pub burst: WireBytes,
    /// The extended burst, on the wire: maximum of the compounded debt. Equal to `burst`: nothing
    /// is lent.
    pub extended: WireBytes,
}

impl Config {
    pub(super) fn check(&self, largest: WireBytes) -> Result<(), MeterError> {
        if self.extended < self.burst {
            return Err(MeterError::ExtendedBelowBurst { burst: self.burst, extended: self.extended });
        }
        if self.lends() {
            let most = WireBytes::new(self.burst.as_u64().saturating_add(self.extended.as_u64()));
            return fits(Bucket::Extended, most, largest);
        }
        fits(Bucket::Burst, self.burst, largest)
    }

    fn lends(&self) -> bool {
        self.extended > self.burst
    }
}

/// A committed access rate.
#[derive(Clone, Debug)]
pub struct Car {
    bucket: TokenBucket,
    /// Maximum of the compounded debt, in picobits; zero where nothing is lent.
    extended: u128,
    /// The sum of the debts since the last packet that exceeded.
    compounded: u128,
}

impl Car {
    /// A full bucket at the beginning of the clock.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            bucket: TokenBucket::new(config.rate, config.burst),
            extended: if config.lends() { tokens_for(config.extended) } else { 0 },
            compounded: 0,
        }
    }

    /// Green, or yellow for a packet that exceeds.
    pub fn conform(&mut self, now: Instant, size: WireBytes) -> Color {
        let debt = self.bucket.missing(now, size);
        let compounded = self.compounded.saturating_add(debt);
        // The actual debt is one term of the sum, so this comparison limits it too.
        if compounded > self.extended {
            self.compounded = 0;
            return Color::Yellow;
        }
        self.bucket.charge(size);
        self.compounded = compounded;
        Color::Green
    }
}

#[cfg(test)]
mod tests {
    use lastmile_units::Duration;

    use super::*;

    fn car(burst: u64, extended: u64) -> Car {
        // 8 kbit/s are 1000 bytes a second.
        let rate = BitRate::from_kbit_per_s(8);
        Car::new(&Config { rate, burst: WireBytes::new(burst), extended: WireBytes::new(extended) })
    }

    fn s(count: u64) -> Instant {
        Instant::ZERO + Duration::from_s(count)
    }

    /// Whether each packet of 1000 bytes that arrives at these seconds conforms.
    fn passes(car: &mut Car, seconds: impl IntoIterator<Item = u64>) -> Vec<bool> {
        seconds.into_iter().map(|at| car.conform(s(at), WireBytes::new(1000)) == Color::Green).collect()
    }

    /// The worked example of the documentation: in each unit of time one data unit arrives that the
    /// rate does not cover; the normal burst is two units, the extended one four. Actual and
    /// compounded debt are 0/0, 0/0, 1/1, 2/3, then 3/6 (dropped, 2/0), 3/3, 4/7 (dropped, 3/0).
    /// Here the units that the rate covers are left out: all arrive at once.
    #[test]
    fn the_compounded_debt_of_the_published_example() {
        let mut car = car(2000, 4000);
        assert_eq!(passes(&mut car, [0; 7]), [true, true, true, true, false, true, false]);
        // 3000 are owed. The next packet owes 4000, which does not exceed the extended burst: it is
        // the first of a new sum. The sum is then 4000, and every packet that borrows exceeds.
        assert_eq!(passes(&mut car, [0; 3]), [true, false, false]);
    }

    /// With time, computed by hand: two packets a second, one of them covered by the rate. Tokens,
    /// debt and sum after each packet: 1000, 0 | 0 (1000 earned), 1000/1000 | 1000/2000 (paid to 0,
    /// borrowed again), 2000/4000 | 1000 are owed and the next makes it 2000/6000: it exceeds, the
    /// sum is 0 | 2000/2000 | 2000/4000, and so on.
    #[test]
    fn debt_is_paid_back_at_the_rate() {
        let mut car = car(2000, 4000);
        let outcome = passes(&mut car, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
        assert_eq!(outcome, [true, true, true, true, true, true, false, true, true, false]);
    }

    #[test]
    fn an_extended_burst_equal_to_the_normal_one_lends_nothing() {
        let mut car = car(2000, 2000);
        assert_eq!(
            passes(&mut car, [0, 0, 0, 1, 1, 100, 100, 100]),
            [true, true, false, true, false, true, true, false]
        );
    }

    /// 1250 bytes of burst and 2500 extended (Phanse 2000, table 5.11). A packet of 1500 borrows
    /// 250; one of 2000 makes the debt 2250 and the sum 2500, the maximum.
    #[test]
    fn a_packet_above_the_burst_borrows_the_rest() {
        let mut car = car(1250, 2500);
        assert_eq!(car.conform(s(0), WireBytes::new(1500)), Color::Green);
        assert_eq!(car.conform(s(0), WireBytes::new(2000)), Color::Green);
        assert_eq!(car.conform(s(0), WireBytes::new(1)), Color::Yellow);
    }

    /// After 100 s the bucket holds 2000, not 99 000: two packets, then debts of 1000 and 2000,
    /// which with the earlier 1000 make 4000.
    #[test]
    fn a_debt_that_is_paid_back_leaves_no_more_than_the_burst() {
        let mut car = car(2000, 4000);
        assert_eq!(passes(&mut car, [0, 0, 0]), [true; 3]);
        assert_eq!(passes(&mut car, [100; 5]), [true, true, true, true, false]);
    }

    #[test]
    fn an_earlier_time_earns_nothing() {
        let mut car = car(2000, 2000);
        assert_eq!(passes(&mut car, [10, 10, 5, 10, 11]), [true, true, false, false, true]);
    }
}
