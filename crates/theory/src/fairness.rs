//! Fairness of a division: the index of Jain, Chiu and Hawe 1984, which Phanse 2000 (table 5.12)
//! also uses.

/// `(sum x)^2 / (n sum x^2)`, from 1/n (one has all) to 1 (all equal); `None` if all shares are
/// zero.
pub fn jain(shares: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for share in shares {
        count += 1.0;
        sum += share;
        squares += share * share;
    }
    // Rounding leaves the bounds by a last digit.
    (squares > 0.0).then(|| (sum * sum / (count * squares)).clamp(1.0 / count, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_one_for_equal_shares_and_a_share_for_one_of_many() {
        assert_eq!(jain([3.0, 3.0, 3.0, 3.0].into_iter()), Some(1.0));
        assert_eq!(jain([5.0, 0.0, 0.0, 0.0].into_iter()), Some(0.25));
        // (1 + 3)^2 / (2 * (1 + 9))
        assert_eq!(jain([1.0, 3.0].into_iter()), Some(0.8));
        assert_eq!(jain([0.0].into_iter()), None);
        // Without a bound 1.0000000000000002 and 0.19999999999999998.
        assert_eq!(jain([1.3, 1.3, 1.3].into_iter()), Some(1.0));
        assert_eq!(jain([0.7, 0.0, 0.0, 0.0, 0.0].into_iter()), Some(0.2));
    }
}
