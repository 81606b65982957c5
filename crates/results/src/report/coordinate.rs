//! Coordinates of drawings, as short texts.

/// A coordinate with at most one decimal.
pub(crate) fn coordinate(value: f64) -> String {
    let mut text = String::new();
    write_coordinate(&mut text, value);
    text
}

/// Appends a coordinate with at most one decimal.
///
/// Tenths are rounded as an integer, which takes a tenth of the time of exact decimal digits. Values that
/// are too near to the middle of two tenths take the exact way, so that the text is that of `{:.1}`.
pub(crate) fn write_coordinate(text: &mut String, value: f64) {
    const LARGEST: f64 = 1e6;
    let tenths = value * 10.0;
    #[expect(clippy::cast_possible_truncation, reason = "it is not used beyond the largest coordinate")]
    let nearest = (tenths + 0.5_f64.copysign(tenths)) as i32;
    if !(value.abs() < LARGEST && (tenths - f64::from(nearest)).abs() < 0.499_999) {
        let exact = format!("{value:.1}");
        let short = exact.strip_suffix(".0").unwrap_or(&exact);
        text.push_str(if short == "-0" { "0" } else { short });
        return;
    }
    if nearest < 0 {
        text.push('-');
    }
    let (whole, tenth) = (nearest.unsigned_abs() / 10, nearest.unsigned_abs() % 10);
    let mut digits = [b'0'; 7];
    let mut from = digits.len();
    let mut rest = whole;
    loop {
        from -= 1;
        digits[from] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    text.extend(digits[from..].iter().map(|digit| char::from(*digit)));
    if tenth > 0 {
        text.push('.');
        text.push(char::from(b'0' + tenth as u8));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_have_the_digits_of_exact_rounding() {
        let exact = |value: f64| {
            let text = format!("{value:.1}").trim_end_matches(".0").to_owned();
            if text == "-0" { "0".to_owned() } else { text }
        };
        // Quarters are ties; steps of 0.05 are nearly ties; others from a multiplicative sequence.
        let ties = (-4_000..4_000).map(|n| f64::from(n) * 0.25).chain((-40_000..40_000).map(|n| f64::from(n) * 0.05));
        let others = (1..50_000_u32).map(|n| f64::from(n.wrapping_mul(2_654_435_761)) / 3e6 - 700.0);
        for value in ties.chain(others).chain([999_999.96, 1e6, 123_456_789.25, 1e15]) {
            assert_eq!(coordinate(value), exact(value), "{value:?}");
        }
    }

    #[test]
    fn coordinates_are_short_and_never_minus_zero() {
        assert_eq!(coordinate(-0.04), "0");
        assert_eq!(coordinate(12.0), "12");
        assert_eq!(coordinate(12.345), "12.3");
    }
}
