//! Rates and decimals of the command line.

use lastmile_theory::Fraction;
use lastmile_units::BitRate;

use crate::failure::{Failure, Result};

/// Parses the rate of an option.
pub(super) fn rate(option: &str, text: &str) -> Result<BitRate> {
    text.parse().map_err(|error| Failure::new(format_args!("{option}: {error}")))
}

/// Parses a decimal such as `1.5`, exactly; `None` for any other text, and for more than five
/// digits before the point or three after it.
pub(super) fn decimal(text: &str) -> Option<Fraction> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 5 || decimals.len() > 3 || !digits(whole) || !digits(decimals) {
        return None;
    }
    let numerator: u128 = format!("{whole}{decimals}").parse().ok()?;
    let scale = (0..decimals.len()).fold(1, |scale, _| scale * 10);
    Fraction::new(numerator, scale)
}

/// Parses segments per ACK, a decimal from 1 up.
pub(super) fn factor(text: &str) -> Result<Fraction> {
    decimal(text).filter(|&d| d >= Fraction::ONE).ok_or_else(|| {
        Failure::new(format_args!("--delayed-ack-factor: \"{text}\" is not a number of segments for each ACK"))
            .hint("1 for an ACK of every segment, 2 for delayed ACKs, decimals such as 1.5 of at most three digits")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_decimals_from_one_up_and_exact() {
        assert!(factor("1.5").is_ok_and(|d| d == Fraction::new(3, 2).unwrap()));
        assert!(factor("2").is_ok_and(|d| d == Fraction::whole(2)));
        for wrong in ["", "0", "0.5", "-1", "1e3", "two", "1.", "999999", "1.1234", "1,5"] {
            assert_eq!(factor(wrong).is_ok(), wrong == "1.", "{wrong}");
        }
    }
}
