//! Points of a space of parameters.
//!
//! A Latin hypercube of n points divides the range of each key into n equal parts and draws one value in each, in an
//! order of its own (McKay, Beckman, Conover 1979, "A comparison of three methods for selecting values of input
//! variables"). Each key is then covered as evenly as n points can.

use std::collections::{BTreeMap, BTreeSet};

use lastmile_units::{BitRate, ByteCount, Duration, Ratio};
use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

use super::cases::{CASE, Cases};
use crate::error::Error;

/// The most points of a study.
const MOST_POINTS: usize = 1_000_000;
/// Digits of a value between two ends.
const DIGITS: i32 = 4;
/// Digits of such values that are equal in fewer.
const MOST_DIGITS: i32 = 12;

/// A point: a value for each key of its space, as `--set` has it.
pub type Point = Vec<String>;

/// Keys, and the points at which a study runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Space {
    /// The keys.
    pub keys: Vec<String>,
    /// The points, each with a value for every key.
    pub points: Vec<Point>,
    /// The settings of the values of the key `case`; empty without it.
    pub cases: Cases,
}

impl Space {
    /// A point for each case.
    ///
    /// # Errors
    /// No cases.
    pub fn of_cases(cases: Cases) -> Result<Self, Error> {
        let names: Vec<String> = cases.all().iter().map(|(name, _)| name.clone()).collect();
        Ok(Self { cases, ..Self::paired(vec![(CASE.to_owned(), names)])? })
    }

    /// Every combination of the values of each key; those of the last change fastest.
    ///
    /// # Errors
    /// A key twice, a key without values or with two equal ones, or too many points.
    pub fn grid(axes: Vec<(String, Vec<String>)>) -> Result<Self, Error> {
        let count = axes.iter().fold(1, |count: usize, (_, values)| count.saturating_mul(values.len()));
        if count > MOST_POINTS {
            return Err(Error::new(format_args!("{count} points; a study has at most {MOST_POINTS}")));
        }
        let mut space = Self { points: vec![Point::new()], ..Self::default() };
        for (key, values) in axes {
            if let Some((_, error)) = twice(&key, &values) {
                return Err(error);
            }
            let with = |point: &Point| {
                let point = point.clone();
                values.iter().map(move |value| [point.as_slice(), std::slice::from_ref(value)].concat())
            };
            space.points = space.points.iter().flat_map(with).collect();
            space.add_key(key, values.len())?;
        }
        Ok(space)
    }

    /// Lists of equal length: the n-th point has the n-th value of each.
    ///
    /// # Errors
    /// A key twice, lists of different lengths, or two equal points.
    pub fn paired(axes: Vec<(String, Vec<String>)>) -> Result<Self, Error> {
        let length = axes.first().map_or(0, |(_, values)| values.len());
        let mut space = Self { points: vec![Point::new(); length], ..Self::default() };
        for (key, values) in axes {
            if values.len() != length {
                let message = format!("{key}: {} values, where the first list has {length}", values.len());
                return Err(Error::new(message).hint("paired lists have the same length"));
            }
            for (point, value) in space.points.iter_mut().zip(&values) {
                point.push(value.clone());
            }
            space.add_key(key, length)?;
        }
        match space.equal_points() {
            Some((one, other)) => {
                let message = format!("the points {} and {} have equal values", one + 1, other + 1);
                Err(Error::new(message).hint("each point once; a number of seeds runs it several times"))
            }
            None => Ok(space),
        }
    }

    /// Two points that are one, by their numbers.
    fn equal_points(&self) -> Option<(usize, usize)> {
        let meaning = |point: &Point| point.iter().map(|value| meaning(value)).collect::<Vec<_>>();
        equal(self.points.iter().map(meaning))
    }

    /// `count` points of a Latin hypercube over ranges, drawn by `seed`.
    ///
    /// # Errors
    /// A key twice, no points, or ranges that have fewer values than there are points.
    pub fn latin(ranges: Vec<(String, Range)>, count: usize, seed: u64) -> Result<Self, Error> {
        if count == 0 || count > MOST_POINTS {
            return Err(Error::new(format_args!("{count} points; a study has 1 to {MOST_POINTS}")));
        }
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut axes: Vec<(String, Range, Vec<f64>)> = Vec::new();
        for (key, range) in ranges {
            // Fisher and Yates: the parts in an order of this key's own.
            let mut parts: Vec<usize> = (0..count).collect();
            for last in (1..count).rev() {
                parts.swap(last, below(&mut random, last + 1));
            }
            #[expect(clippy::cast_precision_loss, reason = "at most a million parts")]
            let share = |part: usize, random: &mut Pcg64Mcg| (part as f64 + unit_interval(random)) / count as f64;
            let shares = parts.into_iter().map(|part| share(part, &mut random)).collect();
            axes.push((key, range, shares));
        }
        let with = |digits: i32| {
            let values = |range: &Range, shares: &[f64]| shares.iter().map(|share| range.at(*share, digits)).collect();
            Self::paired(axes.iter().map(|(key, range, shares)| (key.clone(), values(range, shares))).collect())
        };
        // More digits than usual where points would else be equal. An error of another kind comes with any digits.
        with(DIGITS).or_else(|error| (DIGITS + 1..=MOST_DIGITS).find_map(|digits| with(digits).ok()).ok_or(error))
    }

    /// Each point of this space with each of the other, whose keys change fastest.
    ///
    /// # Errors
    /// A key of both, a key that a case of the other sets, or too many points.
    pub fn times(self, other: &Self) -> Result<Self, Error> {
        let count = self.points.len().saturating_mul(other.points.len());
        if count > MOST_POINTS {
            return Err(Error::new(format_args!("{count} points; a study has at most {MOST_POINTS}")));
        }
        let with =
            |point: &Point| other.points.iter().map(|more| [point.as_slice(), more].concat()).collect::<Vec<_>>();
        let cases = if self.cases == Cases::default() { &other.cases } else { &self.cases };
        for key in self.keys.iter().chain(&other.keys) {
            if let Some(case) = cases.setting(key) {
                let error = Error::new(format_args!("{key} is a key of the study, and case {case:?} sets it"));
                return Err(error.hint("one of them"));
            }
        }
        let points = self.points.iter().flat_map(with).collect();
        let mut space = Self { points, keys: self.keys, cases: cases.clone() };
        for key in &other.keys {
            space.add_key(key.clone(), other.points.len())?;
        }
        Ok(space)
    }

    /// The first points that have between them every value of each key, at most `most`.
    #[must_use]
    pub(super) fn with_every_value(&self, most: usize) -> Self {
        let mut known: Vec<BTreeSet<&str>> = vec![BTreeSet::new(); self.keys.len()];
        let mut points = Vec::new();
        for point in &self.points {
            let mut has_new = self.keys.is_empty();
            for (value, known) in point.iter().zip(&mut known) {
                has_new |= known.insert(value);
            }
            if has_new && points.len() < most {
                points.push(point.clone());
            }
        }
        Self { keys: self.keys.clone(), points, cases: self.cases.clone() }
    }

    fn add_key(&mut self, key: String, values: usize) -> Result<(), Error> {
        if key == "seed" {
            let hint = "a number of seeds runs every point with that many";
            return Err(Error::new("the seed is no key of a study").hint(hint));
        }
        if self.keys.contains(&key) {
            return Err(Error::new(format_args!("{key} twice")).hint("write all values of a key in one list"));
        }
        if values == 0 {
            return Err(Error::new(format_args!("{key}: no values")));
        }
        self.keys.push(key);
        Ok(())
    }
}

/// A number below `end`. The bias of the remainder is below 2^-40 for at most a million.
fn below(random: &mut Pcg64Mcg, end: usize) -> usize {
    usize::try_from(random.next_u64() % end as u64).unwrap_or(0)
}

/// A number from 0 up to, but excluding, 1: 53 random bits.
fn unit_interval(random: &mut Pcg64Mcg) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    let bits = (random.next_u64() >> 11) as f64;
    bits / (1_u64 << 53) as f64
}

/// The unit in which values between two ends are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Rate,
    Time,
    Size,
    Number,
}

/// A range of values between two ends, both of them in it.
#[derive(Clone, PartialEq, Debug)]
pub struct Range {
    kind: Kind,
    low: f64,
    high: f64,
    /// True for values whose ratios, not differences, are even.
    is_log: bool,
}

impl Range {
    /// The range between two texts such as `128 kbit/s` and `2 Mbit/s`, or two numbers.
    ///
    /// # Errors
    /// Texts of different units, ends in the wrong order, and for `is_log` an end that is not above zero.
    pub fn new(low: &str, high: &str, is_log: bool) -> Result<Self, Error> {
        let ends = || format!("{low} to {high}");
        let Some((kind, low_value)) = measure(low) else { return Err(no_quantity(low)) };
        let Some((other, high_value)) = measure(high) else { return Err(no_quantity(high)) };
        if kind != other {
            return Err(Error::new(format_args!("{}: different units", ends())));
        }
        if low_value > high_value {
            return Err(Error::new(format_args!("{}: the first end is the larger one", ends())));
        }
        if is_log && low_value <= 0.0 {
            return Err(Error::new(format_args!("{}: even ratios need ends above 0", ends())));
        }
        Ok(Self { kind, low: low_value, high: high_value, is_log })
    }

    /// `count` values from one end to the other, in even steps; fewer if the range has fewer, such as one of whole
    /// numbers. Each value is there once.
    #[must_use]
    pub fn steps(&self, count: usize) -> Vec<String> {
        #[expect(clippy::cast_precision_loss, reason = "counts of values")]
        let share = |step: usize| if count < 2 { 0.0 } else { step as f64 / (count - 1) as f64 };
        let with = |digits: i32| {
            let mut values: Vec<String> = (0..count).map(|step| self.at(share(step), digits)).collect();
            // They go one way, so equal ones are neighbours.
            values.dedup();
            values
        };
        // Rounding to few digits may put a value of a narrow range beyond an end.
        let is_ordered = |digits: i32| {
            let values: Vec<f64> = (0..count).map(|step| self.rounded_at(share(step), digits)).collect();
            values.is_sorted_by(|one, next| one < next)
        };
        let mut all = (DIGITS..=MOST_DIGITS).filter(|digits| is_ordered(*digits)).map(with);
        all.find(|values| values.len() == count).unwrap_or_else(|| with(MOST_DIGITS))
    }

    /// The value at a share of the way, in some digits, so that files and labels stay readable. The ends are exact.
    fn at(&self, share: f64, digits: i32) -> String {
        self.text(self.rounded_at(share, digits))
    }

    fn rounded_at(&self, share: f64, digits: i32) -> f64 {
        let value = if self.is_log {
            self.low * (self.high / self.low).powf(share)
        } else {
            self.low + (self.high - self.low) * share
        };
        if share <= 0.0 {
            self.low
        } else if share >= 1.0 {
            self.high
        } else {
            rounded(value, digits).clamp(self.low, self.high)
        }
    }

    fn text(&self, value: f64) -> String {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between the ends, which were read"
        )]
        let whole = value.round().max(0.0) as u64;
        match self.kind {
            Kind::Rate => BitRate::from_bps(whole).map_or_else(|| "0 bit/s".to_owned(), |rate| rate.to_string()),
            Kind::Time => Duration::from_ns(whole).to_string(),
            Kind::Size => format!("{whole} B"),
            Kind::Number if self.low.fract() == 0.0 && self.high.fract() == 0.0 && self.high >= 10.0 => {
                whole.to_string()
            }
            Kind::Number => value.to_string(),
        }
    }
}

fn no_quantity(text: &str) -> Error {
    Error::new(format_args!("{text:?} is no number, rate, time or size"))
        .hint("such as 3, \"128 kbit/s\", \"20 ms\" or \"64 kB\"")
}

/// A quantity in bit/s, nanoseconds or bytes.
pub(super) fn measure(text: &str) -> Option<(Kind, f64)> {
    #[expect(clippy::cast_precision_loss, reason = "values of parameters, rounded to four digits")]
    let exact = |value: u64| value as f64;
    if let Ok(number) = text.trim().parse::<f64>() {
        return number.is_finite().then_some((Kind::Number, number));
    }
    let rate = || Some((Kind::Rate, exact(text.parse::<BitRate>().ok()?.as_bps())));
    let time = || Some((Kind::Time, exact(text.parse::<Duration>().ok()?.as_ns())));
    let size = || Some((Kind::Size, exact(text.parse::<ByteCount>().ok()?.as_u64())));
    rate().or_else(time).or_else(size)
}

fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powf(value.abs().log10().floor() - f64::from(digits - 1));
    let rounded = (value / scale).round() * scale;
    // Scales below one leave traces such as 0.30000000000000004. Zero and the smallest numbers have no scale.
    let parsed = format!("{rounded:.*e}", usize::try_from(digits - 1).unwrap_or(0)).parse::<f64>();
    parsed.ok().filter(|number| number.is_finite()).unwrap_or(value)
}

/// The meaning of a value: a quantity in its base unit, whatever unit it is written in, or its text.
pub(super) fn meaning(text: &str) -> String {
    let number = || text.trim().parse::<f64>().ok().map(|number| number.to_string());
    let rate = || text.parse::<BitRate>().ok().map(|rate| format!("{} bit/s", rate.as_bps()));
    let time = || text.parse::<Duration>().ok().map(|time| format!("{} ps", time.as_ps()));
    let size = || text.parse::<ByteCount>().ok().map(|size| format!("{} B", size.as_u64()));
    let share = || text.parse::<Ratio>().ok().map(|share| format!("{} ppb", share.as_parts_per_billion()));
    number().or_else(rate).or_else(time).or_else(size).or_else(share).unwrap_or_else(|| text.to_owned())
}

/// Two equal values, by their numbers.
fn equal<T: Ord>(values: impl Iterator<Item = T>) -> Option<(usize, usize)> {
    let mut known = BTreeMap::new();
    values.enumerate().find_map(|(number, value)| Some((known.insert(value, number)?, number)))
}

/// The number of a value that an earlier one of the list equals, and the error.
pub(super) fn twice(key: &str, values: &[String]) -> Option<(usize, Error)> {
    let (one, other) = equal(values.iter().map(|value| meaning(value)))?;
    Some((other, same(key, &values[one], &values[other])))
}

/// The error for two equal values of a key.
fn same(key: &str, one: &str, other: &str) -> Error {
    let error = if one == other {
        Error::new(format_args!("{key} has {one:?} twice"))
    } else {
        Error::new(format_args!("{key}: {one:?} and {other:?} are equal"))
    };
    error.hint("each value once; a number of seeds runs every point several times")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(key: &str, values: &[&str]) -> (String, Vec<String>) {
        (key.to_owned(), values.iter().map(|value| (*value).to_owned()).collect())
    }

    #[test]
    fn grids_have_every_combination_and_pairs_go_side_by_side() {
        let axes = || vec![axis("a", &["1", "2"]), axis("b", &["x", "y"])];
        let grid = Space::grid(axes()).unwrap();
        assert_eq!(grid.points, [["1", "x"], ["1", "y"], ["2", "x"], ["2", "y"]]);
        assert_eq!(Space::paired(axes()).unwrap().points, [["1", "x"], ["2", "y"]]);
        let odd = Space::paired(vec![axis("a", &["1"]), axis("b", &["x", "y"])]).unwrap_err();
        assert!(odd.to_string().contains("b: 2 values, where the first list has 1"), "{odd}");
        assert!(Space::grid(vec![axis("a", &["1"]), axis("a", &["2"])]).is_err());
        assert!(Space::grid(vec![axis("seed", &["1", "2"])]).is_err(), "seeds of points are equal");
        assert!(Space::grid(vec![axis("a", &[])]).is_err());
        assert_eq!(Space::grid(Vec::new()).unwrap().points, [Point::new()], "a study of seeds alone has one point");
    }

    #[test]
    fn few_points_have_every_value() {
        let grid = Space::grid(vec![axis("a", &["1", "2", "3"]), axis("b", &["x", "y"])]).unwrap();
        let few = grid.with_every_value(10);
        assert_eq!(few.points, [["1", "x"], ["1", "y"], ["2", "x"], ["3", "x"]]);
        assert_eq!((few.keys, grid.with_every_value(2).points), (grid.keys.clone(), grid.points[..2].to_vec()));
        assert_eq!(Space::grid(Vec::new()).unwrap().with_every_value(10).points, [Point::new()]);
    }

    #[test]
    fn a_product_has_each_point_with_each_other() {
        let pairs = Space::paired(vec![axis("a", &["1", "2"]), axis("b", &["x", "y"])]).unwrap();
        let grid = Space::grid(vec![axis("c", &["p", "q"])]).unwrap();
        let product = pairs.clone().times(&grid).unwrap();
        assert_eq!(product.keys, ["a", "b", "c"]);
        assert_eq!(product.points, [["1", "x", "p"], ["1", "x", "q"], ["2", "y", "p"], ["2", "y", "q"]]);
        assert!(pairs.clone().times(&pairs).is_err());
    }

    #[test]
    fn cases_are_values_of_one_key() {
        let case = |name: &str, set: &[&str]| (name.to_owned(), set.iter().map(|one| (*one).into()).collect());
        let space = |cases: Vec<_>| Cases::new(cases).and_then(Space::of_cases);
        let (cubic, bbr) = (case("CUBIC", &[]), case("BBR", &["tcp.variant=bbr", "tcp.pacing=true"]));
        let cases = space(vec![cubic.clone(), bbr.clone()]).unwrap();
        let policies = Space::grid(vec![axis("access.policy", &["none", "cake"])]).unwrap();
        let product = policies.clone().times(&cases).unwrap();
        assert_eq!(product.keys, ["access.policy", "case"]);
        assert_eq!(product.points[..2], [["none", "CUBIC"], ["none", "BBR"]]);
        assert_eq!(product.cases.of("BBR").map(<[_]>::len), Some(2));
        assert_eq!(cases.clone().times(&policies).unwrap().cases, product.cases);

        let refused = |space: Result<Space, Error>| space.unwrap_err().to_string();
        assert_eq!(refused(space(Vec::new())), "error: case: no values");
        assert_eq!(refused(space(vec![cubic.clone(), cubic.clone()])), "error: two cases are called \"CUBIC\"");
        assert!(
            refused(space(vec![cubic, case("a", &[])])).starts_with("error: the cases \"CUBIC\" and \"a\" are equal")
        );
        assert!(refused(space(vec![case("a", &["seed=1"])])).contains("case \"a\": the seed is no key"));
        for key in ["tcp.variant", "tcp"] {
            let wrong = refused(Space::grid(vec![axis(key, &["x"])]).unwrap().times(&cases));
            assert!(wrong.contains(&format!("{key} is a key of the study, and case \"BBR\" sets it")), "{wrong}");
        }
    }

    /// Nine values from 128 kbit/s to 2 Mbit/s: each is the eighth root of 15.625 times the previous one, 1.4101.
    #[test]
    fn even_ratios_go_from_one_end_to_the_other() {
        let steps = Range::new("128 kbit/s", "2 Mbit/s", true).unwrap().steps(9);
        assert_eq!(steps[..3], ["128 kbit/s", "180.5 kbit/s", "254.5 kbit/s"]);
        assert_eq!(steps[8], "2 Mbit/s");
        assert_eq!(Range::new("10 ms", "40 ms", false).unwrap().steps(3), ["10 ms", "25 ms", "40 ms"]);
        assert_eq!(Range::new("1500 B", "3 kB", false).unwrap().steps(2), ["1500 B", "3000 B"]);
        assert_eq!(Range::new("0.1", "0.3", false).unwrap().steps(3), ["0.1", "0.2", "0.3"]);
        assert_eq!(Range::new("1", "100", true).unwrap().steps(3), ["1", "10", "100"]);
        let small = Range::new("1e-14", "1e-13", true).unwrap().steps(3);
        assert_eq!(small, ["0.00000000000001", "0.00000000000003162", "0.0000000000001"]);
        for (low, high, is_log) in [("1 ms", "1 kB", false), ("2", "1", false), ("0", "1", true), ("fast", "1", false)]
        {
            assert!(Range::new(low, high, is_log).is_err(), "{low} {high}");
        }
    }

    /// Equal values would be runs that count twice.
    #[test]
    fn equal_values_are_refused_in_whatever_unit() {
        let refused = |space: Result<Space, Error>| space.unwrap_err().to_string();
        let twice = refused(Space::grid(vec![axis("a", &["1 Mbit/s", "2 Mbit/s", "1 Mbit/s"])]));
        assert!(twice.starts_with("error: a has \"1 Mbit/s\" twice\nhint: "), "{twice}");
        for (one, other) in
            [("1 Mbit/s", "1000 kbit/s"), ("1 s", "1000 ms"), ("64 kB", "64000 B"), ("1", "1.0"), ("1 %", "10000 ppm")]
        {
            let equal = refused(Space::grid(vec![axis("a", &[one, other])]));
            assert!(equal.starts_with(&format!("error: a: {one:?} and {other:?} are equal")), "{equal}");
        }
        let equal = refused(Space::paired(vec![axis("a", &["1", "2", "1"]), axis("b", &["x", "x", "x"])]));
        assert!(equal.starts_with("error: the points 1 and 3 have equal values"), "{equal}");
        assert!(Space::paired(vec![axis("a", &["1", "1"]), axis("b", &["x", "y"])]).is_ok());
        assert!(Space::grid(vec![axis("a", &["1 Mbit/s", "1 MB", "1 ms", "1"])]).is_ok(), "other quantities");
    }

    /// In four digits, six values from 1000 to 1001 kbit/s are 1000, 1000, 1000, 1001, 1001 and 1001.
    #[test]
    fn narrow_ranges_have_as_many_digits_as_keep_values_apart() {
        let steps = |low: &str, high: &str, is_log, count| Range::new(low, high, is_log).unwrap().steps(count);
        let expected = ["1 Mbit/s", "1.0002 Mbit/s", "1.0004 Mbit/s", "1.0006 Mbit/s", "1.0008 Mbit/s", "1.001 Mbit/s"];
        assert_eq!(steps("1000 kbit/s", "1001 kbit/s", true, 6), expected);
        assert_eq!(steps("10", "12", false, 6), ["10", "11", "12"], "whole numbers between whole ends");
        assert_eq!(steps("5 ms", "5 ms", false, 3), ["5 ms"]);
        assert_eq!(steps("10.001 ms", "10.002 ms", false, 3), ["10.001 ms", "10.0015 ms", "10.002 ms"]);
        assert_eq!(steps("9.9991 Mbit/s", "9.9999 Mbit/s", false, 3)[1], "9.9995 Mbit/s");
        assert_eq!(steps("100001", "100003", false, 5), ["100001", "100002", "100003"]);
        let range = || vec![("a".to_owned(), Range::new("1000 kbit/s", "1001 kbit/s", false).unwrap())];
        assert_eq!(Space::latin(range(), 50, 1).unwrap().equal_points(), None);
        let few = Space::latin(vec![("a".to_owned(), Range::new("10", "12", false).unwrap())], 5, 1);
        assert!(few.unwrap_err().to_string().contains("have equal values"));
    }

    #[test]
    fn a_latin_hypercube_has_one_value_in_each_part_of_each_range() {
        let range = |key: &str| (key.to_owned(), Range::new("0", "100", false).unwrap());
        let space = Space::latin(vec![range("a"), range("b")], 50, 7).unwrap();
        assert_eq!(space, Space::latin(vec![range("a"), range("b")], 50, 7).unwrap(), "equal seeds, equal points");
        assert_ne!(space, Space::latin(vec![range("a"), range("b")], 50, 8).unwrap());
        for column in 0..2 {
            let mut values: Vec<f64> = space.points.iter().map(|point| point[column].parse().unwrap()).collect();
            values.sort_by(f64::total_cmp);
            for (part, value) in values.iter().enumerate() {
                #[expect(clippy::cast_precision_loss, reason = "small")]
                let low = part as f64 * 2.0;
                // Whole numbers: half a unit of rounding.
                assert!((low - 0.5..=low + 2.5).contains(value), "{part} {value}");
            }
        }
        let orders = |column: usize| space.points.iter().map(|point| point[column].clone()).collect::<Vec<_>>();
        assert_ne!(orders(0), orders(1), "each key has an order of its own");
    }
}
