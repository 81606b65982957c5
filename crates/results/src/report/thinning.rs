//! Lines reduced to the resolution of their drawing.

use maud::PreEscaped;

use super::coordinate::write_coordinate;
use super::label::{Area, Columns};

/// An SVG path through `points`, reduced to the resolution of `plot`.
///
/// Columns are `width` pixels wide.
pub(super) fn path(points: &[(f64, f64)], plot: Area, width: usize) -> PreEscaped<String> {
    let mut path = String::new();
    let mut rest = points;
    while let Some((x, _)) = rest.first() {
        let column = column_of(*x, plot) / width;
        let count = rest.iter().take_while(|(x, _)| column_of(*x, plot) / width == column).count();
        let (here, after) = rest.split_at(count);
        for (x, y) in if width > 1 { extremes(here) } else { corners(here) } {
            path.push(if path.is_empty() { 'M' } else { 'L' });
            write_coordinate(&mut path, x);
            path.push(' ');
            write_coordinate(&mut path, y);
        }
        rest = after;
    }
    PreEscaped(path)
}

/// The least and the largest of `points`, in their order.
pub(super) fn extremes(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    chosen(points, extreme_indices(points).into_iter().flatten().collect())
}

/// The first, least, largest and last of `points`, in their order, without repetition.
fn corners(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= 4 {
        return points.to_vec();
    }
    let [least, largest] = extreme_indices(points);
    chosen(points, [least, largest, Some(0), points.len().checked_sub(1)].into_iter().flatten().collect())
}

/// The indices of the least and of the largest point.
fn extreme_indices(points: &[(f64, f64)]) -> [Option<usize>; 2] {
    let by_value = |a: &usize, b: &usize| points[*a].1.total_cmp(&points[*b].1);
    [(0..points.len()).min_by(by_value), (0..points.len()).max_by(by_value)]
}

/// The points with these indices, each once, in their order.
fn chosen(points: &[(f64, f64)], mut indices: Vec<usize>) -> Vec<(f64, f64)> {
    indices.sort_unstable();
    indices.dedup();
    indices.into_iter().map(|index| points[index]).collect()
}

/// The extent of a line in each pixel column, straight between its points.
pub(super) fn columns(points: &[(f64, f64)], plot: Area) -> Columns {
    let mut columns: Columns = vec![None; column_of(plot.right(), plot) + 1];
    let mut widen = |column: usize, y: f64| {
        if let Some(slot) = columns.get_mut(column) {
            *slot = Some(slot.map_or((y, y), |(high, low)| (high.min(y), low.max(y))));
        }
    };
    for pair in points.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let (from, to) = (column_of(x0, plot), column_of(x1, plot));
        for column in from..=to {
            let share = if to > from { (column - from) as f64 / (to - from) as f64 } else { 1.0 };
            widen(column, y0 + (y1 - y0) * share);
        }
        widen(from, y0);
    }
    columns
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "columns of a drawing: small and not negative"
)]
fn column_of(x: f64, plot: Area) -> usize {
    (x - plot.x).max(0.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLOT: Area = Area { x: 0.0, y: 0.0, width: 100.0, height: 100.0 };

    #[test]
    fn a_peak_of_one_sample_survives_the_thinning() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|n| (f64::from(n) / 1_000.0, 90.0)).collect();
        points[54_321].1 = 3.0;
        let path = path(&points, PLOT, 1).0;
        assert!(path.contains(" 3L"), "the peak is gone");
        assert!(path.len() < 10_000, "{} bytes", path.len());
    }

    /// A wide column keeps both extremes, wherever in it they are.
    #[test]
    fn both_extremes_of_a_wide_column_survive() {
        let path = |values: &[f64]| {
            let points: Vec<(f64, f64)> = values.iter().enumerate().map(|(n, y)| (n as f64, *y)).collect();
            path(&points, PLOT, 12).0
        };
        assert_eq!(path(&[50.0, 20.0, 90.0]), "M1 20L2 90");
        assert_eq!(path(&[10.0, 50.0, 60.0, 90.0]), "M0 10L3 90");
        assert_eq!(path(&[40.0, 30.0, 10.0, 50.0, 20.0, 90.0]), "M2 10L5 90");
        assert_eq!(path(&[7.0]), "M0 7");
    }

    #[test]
    fn a_line_covers_the_columns_between_its_points() {
        let columns = columns(&[(10.0, 0.0), (20.0, 100.0)], PLOT);
        assert_eq!(columns[9], None);
        assert_eq!(columns[15], Some((50.0, 50.0)));
        assert_eq!(columns[20], Some((100.0, 100.0)));
    }
}
