//! Exact non-negative fractions.

use core::cmp::Ordering;
use core::fmt;

/// A non-negative fraction in lowest terms.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fraction {
    numerator: u128,
    denominator: u128,
}

impl Fraction {
    /// Zero.
    pub const ZERO: Self = Self::whole(0);
    /// One.
    pub const ONE: Self = Self::whole(1);

    /// `numerator / denominator`; `None` for a denominator of zero.
    #[must_use]
    pub const fn new(numerator: u128, denominator: u128) -> Option<Self> {
        if denominator == 0 {
            return None;
        }
        let shared = gcd(numerator, denominator);
        Some(Self { numerator: numerator / shared, denominator: denominator / shared })
    }

    /// `count / 1`.
    #[must_use]
    pub const fn whole(count: u64) -> Self {
        Self { numerator: count as u128, denominator: 1 }
    }

    /// The part above the line.
    #[must_use]
    pub const fn numerator(self) -> u128 {
        self.numerator
    }

    /// The part below the line, never zero.
    #[must_use]
    pub const fn denominator(self) -> u128 {
        self.denominator
    }

    /// The nearest floating-point number, or one of its neighbours.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "rounded here, once")]
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// The fraction rounded up to a whole number.
    #[must_use]
    pub const fn ceil(self) -> u128 {
        self.numerator.div_ceil(self.denominator)
    }

    /// The product; `None` above 128 bits.
    #[must_use]
    pub fn checked_mul(self, other: Self) -> Option<Self> {
        let (left, right) = (gcd(self.numerator, other.denominator), gcd(other.numerator, self.denominator));
        Some(Self {
            numerator: (self.numerator / left).checked_mul(other.numerator / right)?,
            denominator: (self.denominator / right).checked_mul(other.denominator / left)?,
        })
    }

    /// The quotient; `None` for a divisor of zero, or above 128 bits.
    #[must_use]
    pub fn checked_div(self, other: Self) -> Option<Self> {
        self.checked_mul(Self::new(other.denominator, other.numerator)?)
    }

    /// `self - other`, zero if `other` is larger; `None` above 128 bits.
    #[must_use]
    pub fn checked_saturating_sub(self, other: Self) -> Option<Self> {
        if self <= other {
            return Some(Self::ZERO);
        }
        let left = self.numerator.checked_mul(other.denominator)?;
        let right = other.numerator.checked_mul(self.denominator)?;
        Self::new(left - right, self.denominator.checked_mul(other.denominator)?)
    }
}

const fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Ord for Fraction {
    /// Compares whole parts, then the inverses of the remainders, as in Euclid's algorithm: no
    /// product can overflow.
    fn cmp(&self, other: &Self) -> Ordering {
        let (mut a, mut b) = ((self.numerator, self.denominator), (other.numerator, other.denominator));
        let mut flipped = false;
        loop {
            let order = (a.0 / a.1).cmp(&(b.0 / b.1));
            let (rest_a, rest_b) = (a.0 % a.1, b.0 % b.1);
            let order = match (order, rest_a, rest_b) {
                (Ordering::Equal, 0, _) | (Ordering::Equal, _, 0) => rest_a.cmp(&rest_b),
                (Ordering::Equal, ..) => {
                    (a, b) = ((a.1, rest_a), (b.1, rest_b));
                    flipped = !flipped;
                    continue;
                }
                (decided, ..) => decided,
            };
            return if flipped { order.reverse() } else { order };
        }
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            denominator => write!(f, "{}/{denominator}", self.numerator),
        }
    }
}

impl fmt::Debug for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fractions_are_in_lowest_terms() {
        assert_eq!(Fraction::new(6, 4).unwrap().to_string(), "3/2");
        assert_eq!(Fraction::new(0, 7), Some(Fraction::ZERO));
        assert_eq!(Fraction::new(1, 0), None);
        assert_eq!(Fraction::new(7, 2).unwrap().ceil(), 4);
        assert_eq!(Fraction::ONE.checked_div(Fraction::ZERO), None);
    }

    #[test]
    fn what_needs_more_than_128_bits_is_refused() {
        let large = Fraction::new(u128::MAX, 2).unwrap();
        assert_eq!(large.checked_mul(Fraction::whole(3)), None);
        assert_eq!(large.checked_mul(Fraction::whole(2)).map(Fraction::numerator), Some(u128::MAX));
    }

    proptest! {
        #[test]
        fn order_and_arithmetic_agree_with_cross_products(a: u32, b in 1..u32::MAX, c: u32, d in 1..u32::MAX) {
            let [a, b, c, d] = [a, b, c, d].map(u128::from);
            let (x, y) = (Fraction::new(a, b).expect("not zero"), Fraction::new(c, d).expect("not zero"));
            prop_assert_eq!(x.cmp(&y), (a * d).cmp(&(c * b)));
            prop_assert_eq!(x.checked_mul(y), Fraction::new(a * c, b * d));
            prop_assert_eq!(x.checked_div(y), Fraction::new(a * d, b * c));
            prop_assert_eq!(x.checked_saturating_sub(y), Fraction::new((a * d).saturating_sub(c * b), b * d));
        }

        #[test]
        fn order_needs_no_room(a in 1_u128.., b in 1_u128..) {
            let x = Fraction::new(a, b).expect("not zero");
            let inverse = Fraction::new(b, a).expect("not zero");
            prop_assert_eq!(x.cmp(&Fraction::ONE), Fraction::ONE.cmp(&inverse));
            prop_assert_eq!(x.cmp(&inverse), a.cmp(&b));
        }
    }
}
