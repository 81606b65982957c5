//! Which key of a study is the axis, which has a line for each value, and which a figure for each.

use std::collections::{BTreeMap, BTreeSet};

use super::axis::numbers;
use super::model::{Point, Study};

/// The most lines of a figure.
const MOST_LINES: usize = 16;

/// The fewest numbers of an axis that comes before words.
const FEWEST_NUMBERS: usize = 3;

/// The parts of the keys in figures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Design {
    /// The horizontal axis: the first key that varies; if that has words, the first with [`FEWEST_NUMBERS`].
    pub(super) across: usize,
    /// The key with a line for each value.
    pub(super) lines: Option<usize>,
    /// The keys with a figure for each combination of their values.
    pub(super) figures: Vec<usize>,
    /// True if further keys vary with these, as in a Latin hypercube: points are not joined.
    pub(super) is_scattered: bool,
}

impl Design {
    /// The design of a study; `None` without a key that varies.
    pub(super) fn of(study: &Study, points: &[Point<'_>]) -> Option<Self> {
        let keys = varied(study);
        let has_numbers = |key: usize| numbers(&study.keys[key]).is_some();
        let is_axis = |key: &&usize| study.keys[**key].values.len() >= FEWEST_NUMBERS && has_numbers(**key);
        let first = keys.first()?;
        let across = if has_numbers(*first) { first } else { keys.iter().find(is_axis).unwrap_or(first) };
        // Of keys that vary together, one stands for all.
        let is_free = |key: &&usize| {
            let mut before = keys.iter().take_while(|other| other != key).chain([across]);
            is_factor(**key, *across, points) && before.all(|other| !is_tied(**key, *other, points))
        };
        let (mut factors, mut rest): (Vec<usize>, Vec<usize>) =
            keys.iter().filter(|key| *key != across).partition(|key| is_free(key));
        let few = |key: &&usize| study.keys[**key].values.len() <= MOST_LINES;
        // Words before numbers; of numbers those with few values.
        let (mut candidates, words): (Vec<usize>, Vec<usize>) = rest.iter().partition(|key| has_numbers(**key));
        candidates.retain(|key| few(&key));
        candidates.splice(0..0, words);
        while let Some(hidden) = hidden(*across, &factors, &candidates, points) {
            factors.push(hidden);
            rest.retain(|key| *key != hidden);
        }
        factors.sort_unstable();
        let lines = factors.iter().find(few).copied();
        let figures = factors.iter().copied().filter(|key| Some(*key) != lines).collect();
        Some(Self { across: *across, lines, figures, is_scattered: !rest.is_empty() })
    }
}

/// The keys with several values.
pub(super) fn varied(study: &Study) -> Vec<usize> {
    (0..study.keys.len()).filter(|key| study.keys[*key].values.len() > 1).collect()
}

/// The combinations of the values of `keys`, in the order of the points.
pub(super) fn combinations(keys: &[usize], points: &[Point<'_>]) -> Vec<Vec<usize>> {
    let mut seen = BTreeSet::new();
    let of = |point: &Point<'_>| keys.iter().map(|key| point.values[*key]).collect::<Vec<usize>>();
    points.iter().map(of).filter(|values| seen.insert(values.clone())).collect()
}

/// The points at which `keys` have these values.
pub(super) fn at<'a, 's>(keys: &[usize], values: &[usize], points: &'a [Point<'s>]) -> Vec<&'a Point<'s>> {
    let is_here = |point: &&Point<'_>| keys.iter().zip(values).all(|(key, value)| point.values[*key] == *value);
    points.iter().filter(is_here).collect()
}

/// The first candidate that distinguishes points with equal values of the axis and the factors.
fn hidden(across: usize, factors: &[usize], candidates: &[usize], points: &[Point<'_>]) -> Option<usize> {
    let shown = [&[across], factors].concat();
    let drawn = combinations(&shown, points).len();
    let is_hidden = |key: &&usize| combinations(&[shown.as_slice(), &[**key]].concat(), points).len() > drawn;
    candidates.iter().find(is_hidden).copied()
}

/// True if every value of `key` occurs with two values of `across`.
pub(super) fn is_factor(key: usize, across: usize, points: &[Point<'_>]) -> bool {
    let mut met: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for point in points {
        met.entry(point.values[key]).or_default().insert(point.values[across]);
    }
    met.values().all(|values| values.len() > 1)
}

/// True if each value of one key occurs with one value of the other alone.
fn is_tied(key: usize, other: usize, points: &[Point<'_>]) -> bool {
    let single = |from: usize, to: usize| {
        let mut met: BTreeMap<usize, usize> = BTreeMap::new();
        points.iter().all(|point| *met.entry(point.values[from]).or_insert(point.values[to]) == point.values[to])
    };
    single(key, other) && single(other, key)
}
