//! Positions for the names of lines: in the margin, at the line's end, if the line reaches the end
//! of the plot; else within the plot, above or below the line where the name covers the fewest
//! lines. A line that rises from the bottom to the top of the plot is named next to it.
//!
//! Cost: columns times lines times candidates for each name within the plot, which is little
//! compared with drawing the lines.

use super::style::{CHARACTER, FONT};

/// The extent of one line in each pixel column of the plot: top and bottom, or `None`.
pub(crate) type Columns = Vec<Option<(f64, f64)>>;

/// A rectangle of the drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Area {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Area {
    pub(crate) fn right(&self) -> f64 {
        self.x + self.width
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.y + self.height
    }

    fn meets(&self, other: &Self) -> bool {
        self.x < other.right() && other.x < self.right() && self.y < other.bottom() && other.y < self.bottom()
    }
}

/// Wraps `text` into at most `most` lines of at most `characters`, at spaces but not at no-break
/// spaces. An ellipsis replaces the excess.
pub(crate) fn wrap(text: &str, characters: usize, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let full = lines.len() == most;
        let line = lines.last_mut().expect("never empty");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= characters {
            line.push(' ');
            line.push_str(word);
        } else if full {
            line.push('…');
            break;
        } else {
            lines.push(word.to_owned());
        }
    }
    for line in &mut lines {
        if line.chars().count() > characters {
            *line = line.chars().take(characters.saturating_sub(1)).chain(['…']).collect();
        }
    }
    lines
}

/// Moves labels of given heights apart, each as near as possible to its preferred position, within
/// `top` to `bottom` and in their order.
///
/// `wishes` holds the preferred middle and the height of each; the result is the middle of each.
/// Labels that do not fit extend below the bottom.
pub(crate) fn spread(wishes: &[(f64, f64)], top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wishes.len()).collect();
    order.sort_by(|a, b| wishes[*a].0.total_cmp(&wishes[*b].0).then(a.cmp(b)));
    // Runs of touching labels; each run has the position with the least mean distance to its
    // members' preferences.
    let mut runs: Vec<Run> = Vec::new();
    for index in order {
        let (middle, height) = wishes[index];
        let mut run = Run { top: middle - height / 2.0, height, members: vec![index], wish: middle - height / 2.0 };
        run.clamp(top, bottom);
        while let Some(before) = runs.last() {
            if before.top + before.height <= run.top {
                break;
            }
            let mut joined = runs.pop().expect("just looked at");
            joined.join(run);
            joined.clamp(top, bottom);
            run = joined;
        }
        runs.push(run);
    }
    let mut places = vec![0.0; wishes.len()];
    for run in runs {
        let mut y = run.top;
        for index in run.members {
            places[index] = y + wishes[index].1 / 2.0;
            y += wishes[index].1;
        }
    }
    places
}

struct Run {
    top: f64,
    height: f64,
    members: Vec<usize>,
    /// Mean of its members' preferred tops of the run.
    wish: f64,
}

impl Run {
    fn join(&mut self, other: Self) {
        let (mine, theirs) = (self.members.len() as f64, other.members.len() as f64);
        self.wish = (self.wish * mine + (other.wish - self.height) * theirs) / (mine + theirs);
        self.height += other.height;
        self.members.extend(other.members);
        self.top = self.wish;
    }

    fn clamp(&mut self, top: f64, bottom: f64) {
        self.top = self.wish.min(bottom - self.height).max(top);
    }
}

/// The area within `plot` for `text`, directly above or below line `own`, that covers the least; next
/// to the line if it leaves no space above and below.
///
/// `span` is the part of the plot, from 0 to 1, in which the line may be named. `lines` are all
/// lines of the panel, `taken` the areas already in use. `None` if the line is outside the plot.
pub(crate) fn near_line(
    text: &str,
    own: usize,
    span: (f64, f64),
    lines: &[Columns],
    plot: Area,
    taken: &[Area],
) -> Option<Area> {
    let width = CHARACTER * text.chars().count() as f64;
    let mut best: Option<(f64, Area)> = None;
    for step in 0..=20_u32 {
        // From the middle outwards: 10, 9, 11, 8, ...
        let place = if step % 2 == 0 { 10 + step / 2 } else { 10 - step.div_ceil(2) };
        let middle = plot.x + plot.width * (span.0 + (span.1 - span.0) * f64::from(place) / 20.0);
        let x = (middle - width / 2.0).clamp(plot.x, (plot.right() - width).max(plot.x));
        let columns = window(x - plot.x, width, lines[own].len());
        let Some((high, low)) = extent(&lines[own], columns.clone()) else { continue };
        // Above, below, and above another name in that position.
        for (y, farther) in [(high - FONT - 5.0, 0.0), (low + 3.0, 0.0), (high - 2.0 * FONT - 7.0, 20.0)] {
            let area = Area { x, y, width, height: FONT + 2.0 };
            if area.y < plot.y || area.bottom() > plot.bottom() {
                continue;
            }
            let cost = f64::from(step) + farther + cost(area, plot, lines, taken);
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, area));
            }
        }
    }
    best.or_else(|| beside_line(width, own, lines, plot, taken)).map(|(_, area)| area)
}

/// The area at the right or left of line `own` that covers the least, with its cost.
fn beside_line(width: f64, own: usize, lines: &[Columns], plot: Area, taken: &[Area]) -> Option<(f64, Area)> {
    const GAP: f64 = 4.0;
    let height = FONT + 2.0;
    let mut best: Option<(f64, Area)> = None;
    for step in 0..=10_u32 {
        // From the middle outwards: 5, 4, 6, 3, ...
        let place = if step % 2 == 0 { 5 + step / 2 } else { 5 - step.div_ceil(2) };
        let y = plot.y + (plot.height - height) * f64::from(place) / 10.0;
        let meets = |column: &Option<(f64, f64)>| column.is_some_and(|(high, low)| high < y + height && low > y);
        let ends = lines[own].iter().position(meets).zip(lines[own].iter().rposition(meets));
        let Some((first, last)) = ends else { continue };
        for x in [plot.x + last as f64 + 1.0 + GAP, plot.x + first as f64 - GAP - width] {
            let area = Area { x, y, width, height };
            if area.x < plot.x || area.right() > plot.right() {
                continue;
            }
            let cost = f64::from(step) + cost(area, plot, lines, taken);
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, area));
            }
        }
    }
    best
}

/// The amount of drawing that `area` covers.
fn cost(area: Area, plot: Area, lines: &[Columns], taken: &[Area]) -> f64 {
    let mut cost = 0.0;
    for line in lines {
        let columns = window(area.x - plot.x, area.width, line.len());
        let met = line[columns].iter().flatten().filter(|(high, low)| *high < area.bottom() && *low > area.y).count();
        cost += met as f64;
    }
    let covered = taken.iter().filter(|other| area.meets(other)).count();
    cost + 1_000.0 * covered as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "columns of a drawing: small and not negative"
)]
fn window(x: f64, width: f64, columns: usize) -> std::ops::Range<usize> {
    let from = (x.max(0.0) as usize).min(columns);
    let to = ((x + width).max(0.0).ceil() as usize).min(columns);
    from..to.max(from)
}

fn extent(line: &Columns, columns: std::ops::Range<usize>) -> Option<(f64, f64)> {
    let present = line[columns].iter().flatten();
    present.copied().reduce(|(high, low), (h, l)| (high.min(h), low.max(l)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_would_overlap_are_moved_apart_and_keep_their_order() {
        assert_eq!(spread(&[(50.0, 10.0), (52.0, 10.0)], 0.0, 100.0), [46.0, 56.0]);
        assert_eq!(spread(&[(52.0, 10.0), (50.0, 10.0), (90.0, 10.0)], 0.0, 100.0), [56.0, 46.0, 90.0]);
    }

    #[test]
    fn labels_stay_within_the_panel() {
        assert_eq!(spread(&[(-20.0, 10.0)], 0.0, 100.0), [5.0]);
        assert_eq!(spread(&[(99.0, 10.0), (99.0, 10.0)], 0.0, 100.0), [85.0, 95.0]);
    }

    #[test]
    fn no_two_labels_overlap_wherever_they_wish_to_be() {
        let wishes: Vec<(f64, f64)> = (0..12).map(|n| (f64::from(n * n % 7) * 9.0, 12.0)).collect();
        let mut places = spread(&wishes, 0.0, 200.0);
        places.sort_by(f64::total_cmp);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 12.0 - 1e-9), "{places:?}");
        assert!(places[0] >= 6.0 - 1e-9 && places[11] <= 194.0 + 1e-9, "{places:?}");
    }

    #[test]
    fn a_name_avoids_the_line_above_its_own() {
        let plot = Area { x: 0.0, y: 0.0, width: 100.0, height: 100.0 };
        let own = vec![Some((50.0, 50.0)); 100];
        let above = vec![Some((40.0, 40.0)); 100];
        let area = near_line("up", 0, (0.0, 1.0), &[own, above], plot, &[]).unwrap();
        assert!(area.y > 50.0, "{area:?}");
    }

    #[test]
    fn a_name_stands_above_another_where_there_is_no_other_room() {
        let plot = Area { x: 0.0, y: 0.0, width: 100.0, height: 100.0 };
        let flat = vec![Some((100.0, 100.0)); 100];
        let first = near_line("the-first-name", 0, (0.4, 0.6), std::slice::from_ref(&flat), plot, &[]).unwrap();
        let second = near_line("the-second", 0, (0.4, 0.6), &[flat], plot, &[first]).unwrap();
        assert!(second.bottom() <= first.y, "{first:?} {second:?}");
    }

    /// The distribution of round trips of an idle line: from 0 to 100 % within four columns.
    #[test]
    fn a_line_over_the_whole_height_is_named_beside_it() {
        let plot = Area { x: 0.0, y: 0.0, width: 100.0, height: 100.0 };
        let mut steep: Columns = vec![None; 101];
        steep[10..14].fill(Some((0.0, 100.0)));
        let mut other: Columns = vec![None; 101];
        other[15..60].fill(Some((30.0, 60.0)));
        let area = near_line("idle", 0, (0.1, 0.13), &[steep.clone(), other], plot, &[]).unwrap();
        assert!(area.x >= 14.0 && (area.bottom() <= 30.0 || area.y >= 60.0), "{area:?}");
        // At the right edge there is space at the left only.
        steep.rotate_right(85);
        let area = near_line("idle", 0, (0.95, 0.98), &[steep], plot, &[]).unwrap();
        assert!(area.right() < 95.0 && area.x >= 0.0, "{area:?}");
    }

    #[test]
    fn a_long_name_takes_no_more_lines_than_it_may() {
        assert_eq!(wrap("capacity of down 1.69\u{a0}Mbit/s", 22, 2), ["capacity of down", "1.69\u{a0}Mbit/s"]);
        assert_eq!(wrap("capacity of down 1.69\u{a0}Mbit/s", 13, 3), ["capacity of", "down", "1.69\u{a0}Mbit/s"]);
        assert_eq!(wrap("one two three four five six", 9, 2), ["one two", "three…"]);
        assert_eq!(wrap("unbroken-name-of-a-flow", 10, 2), ["unbroken-…"]);
    }
}
