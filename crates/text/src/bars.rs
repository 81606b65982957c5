//! Numbers as one line of block characters, for a terminal.

/// Heights of an eighth to a whole line.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One character for each of `values`, its height the share of `largest`; a blank for `None`. Zero has the lowest bar,
/// which is no blank.
#[must_use]
pub fn line(values: impl IntoIterator<Item = Option<f64>>, largest: f64) -> String {
    values.into_iter().map(|value| value.map_or(' ', |value| bar(value, largest))).collect()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 7")]
fn bar(value: f64, largest: f64) -> char {
    let share = if largest > 0.0 { (value / largest).clamp(0.0, 1.0) } else { 0.0 };
    // A share that was computed exceeds an eighth by the error of its sums.
    BARS[((share * 8.0 - 1e-9).ceil() as usize).clamp(1, 8) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_has_the_highest_bar_and_nothing_has_none() {
        let values = [Some(0.0), Some(0.125), Some(0.13), None, Some(0.5), Some(1.0), Some(7.0)];
        assert_eq!(line(values, 1.0), "▁▁▂ ▄██");
        // A quarter, with the error of a sum of ten numbers.
        let quarter = [0.025; 10].iter().sum::<f64>() * 1.000_000_000_000_1;
        assert!(quarter > 0.25);
        assert_eq!(line([Some(0.25), Some(quarter), Some(0.251)], 1.0), "▂▂▃");
        assert_eq!(line([Some(0.0), Some(3.0), Some(f64::NAN)], 0.0), "▁▁▁");
    }
}
