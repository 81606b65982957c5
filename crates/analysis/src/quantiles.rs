//! Medians and percentiles of values themselves. An even number of values has two in the middle: [`median`] is their
//! mean, [`upper_median`] the larger one, which is itself one of the values.

fn ascending(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The median: of an even number of values the mean of the two in the middle; 0 of none.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let sorted = ascending(values);
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[count / 2],
        count => f64::midpoint(sorted[count / 2 - 1], sorted[count / 2]),
    }
}

/// The median: of an even number of values the larger of the two in the middle; `None` of none.
#[must_use]
pub fn upper_median(values: &[f64]) -> Option<f64> {
    ascending(values).get(values.len() / 2).copied()
}

/// The smallest value that so many parts of `whole` parts of all do not exceed, of values in ascending order; `None` of
/// none.
#[must_use]
pub fn nearest_rank<T: Copy>(ascending: &[T], parts: usize, whole: usize) -> Option<T> {
    ascending.get((ascending.len() * parts).div_ceil(whole).max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_number_of_values_has_two_medians() {
        assert_eq!((median(&[2.0, 9.0, 1.0]), upper_median(&[2.0, 9.0, 1.0])), (2.0, Some(2.0)));
        assert_eq!((median(&[4.0, 9.0, 2.0, 1.0]), upper_median(&[4.0, 9.0, 2.0, 1.0])), (3.0, Some(4.0)));
        assert_eq!((median(&[]), upper_median(&[])), (0.0, None));
    }

    /// Of 20 values the 5th percentile is the first, the 95th the 19th, the median the tenth.
    #[test]
    fn percentiles_are_nearest_ranks() {
        let values: Vec<u32> = (1..=20).collect();
        let at = |thousandths| nearest_rank(&values, thousandths, 1_000);
        assert_eq!([0, 50, 500, 950, 1000].map(at), [1, 1, 10, 19, 20].map(Some));
        assert_eq!(nearest_rank::<u32>(&[], 500, 1_000), None);
    }
}
