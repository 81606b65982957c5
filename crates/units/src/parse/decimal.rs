//! Exact decimal numbers.

use core::fmt;

use super::Problem;

/// `digits / 10^fraction`, without trailing zeros in the fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: u128,
    fraction: u32,
}

/// 10^38 is the largest power of ten that 128 bits hold.
const MAX_FRACTION: u32 = 38;

impl Decimal {
    /// Parses digits with at most one point, which has digits on both sides.
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
            Some(_) => return Err(Problem::Malformed),
            None => (text, ""),
        };
        let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) {
            return Err(Problem::Malformed);
        }
        let fraction = fraction.trim_end_matches('0');
        let whole = append(0, whole).ok_or(Problem::TooLarge)?;
        let places = u32::try_from(fraction.len()).ok().filter(|&places| places <= MAX_FRACTION);
        let digits = append(whole, fraction);
        places.zip(digits).map(|(fraction, digits)| Self { digits, fraction }).ok_or(Problem::TooFine)
    }

    /// The number times `factor / 10^places`; `None` if the result has too many digits.
    pub(super) fn scaled(self, factor: u64, places: u32) -> Option<Self> {
        let mut digits = self.digits.checked_mul(u128::from(factor))?;
        let mut fraction = self.fraction + places;
        while fraction > 0 && digits.is_multiple_of(10) {
            digits /= 10;
            fraction -= 1;
        }
        (fraction <= MAX_FRACTION).then_some(Self { digits, fraction })
    }

    /// The number times `scale`, which must be whole.
    pub(super) fn times(self, scale: u64) -> Result<u64, Problem> {
        let ten = 10_u128.pow(self.fraction);
        // Division by the common factor first keeps `0.000000000931322574615478515625 GiB` (one
        // byte) within 128 bits.
        let shared = gcd(u128::from(scale), ten);
        let (factor, divisor) = (u128::from(scale) / shared, ten / shared);
        if !self.digits.is_multiple_of(divisor) {
            let too_large = self.digits / ten > u128::from(u64::MAX);
            return Err(if too_large { Problem::TooLarge } else { Problem::TooFine });
        }
        let value = (self.digits / divisor).checked_mul(factor).ok_or(Problem::TooLarge)?;
        u64::try_from(value).map_err(|_| Problem::TooLarge)
    }
}

/// Prints without trailing zeros: `0.5`, `512`.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.fraction == 0 {
            return write!(f, "{}", self.digits);
        }
        let ten = 10_u128.pow(self.fraction);
        let places = self.fraction as usize;
        write!(f, "{}.{:0places$}", self.digits / ten, self.digits % ten)
    }
}

/// `number` with `digits` appended.
fn append(number: u128, digits: &str) -> Option<u128> {
    digits.bytes().try_fold(number, |sum, digit| sum.checked_mul(10)?.checked_add(u128::from(digit - b'0')))
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
