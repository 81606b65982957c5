//! Formulas of the experiment files: arithmetic over settings of a run, its metrics, and the figures of rows.
//!
//! A formula has numbers, `'text'`, names with dots, `+ - * /`, comparisons, parentheses and calls.
//! [`FUNCTIONS`] and the metrics of [`metric`](crate::experiments::metric) are all that it can
//! call. A figure is a [`Sample`], so that differences and ratios are taken seed by seed.

mod parse;
#[cfg(test)]
mod tests;

use crate::experiments::metric;
pub(crate) use crate::quantity::{Missing, Operator, Quantity};
use crate::rounding::significant;

/// A formula, read.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Formula {
    Number(f64),
    Text(String),
    Name(String),
    Call { function: String, run: Option<String>, arguments: Vec<Formula> },
    Negative(Box<Formula>),
    Operation(Box<Formula>, Operator, Box<Formula>),
}

/// A claim's condition.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Condition {
    /// Formulas in a row, each compared with the next: `0.9 < share < 1`.
    Compared(Vec<(Formula, Operator, Formula)>),
    /// A difference has the sign of another one, and half of its size at least; of the published one without another.
    As(Formula, Option<Formula>),
    /// `x not < y`: the whole interval of x is not below y.
    NotBelow(Formula, Formula),
}

/// The functions of every formula, with the least and the largest number of arguments. Those after
/// `if` need rows of figures.
pub(crate) const FUNCTIONS: [(&str, usize, usize); 15] = [
    ("abs", 1, 1),
    ("round", 1, 1),
    ("sig", 1, 1),
    ("mean", 1, 1),
    ("most", 1, 1),
    ("min", 2, 4),
    ("max", 2, 4),
    ("or", 2, 4),
    ("draw", 2, 2),
    ("only", 2, 2),
    ("if", 3, 3),
    ("published", 1, 1),
    ("lowest", 1, 1),
    ("highest", 1, 1),
    ("average", 1, 1),
];

/// The values of the names in a formula.
pub(crate) trait Names {
    /// The value called `name`.
    fn value(&self, name: &str) -> Result<Quantity, Missing>;

    /// A function that needs more than its arguments.
    fn call(&self, function: &str, run: Option<&str>, arguments: &[Formula]) -> Result<Quantity, Missing>;
}

impl Formula {
    /// Its value with these names.
    pub(crate) fn of(&self, names: &dyn Names) -> Result<Quantity, Missing> {
        match self {
            Self::Number(number) => Ok(Quantity::Number(*number)),
            Self::Text(text) => Ok(Quantity::Text(text.clone())),
            Self::Name(name) => names.value(name),
            Self::Negative(of) => of.of(names)?.map("-", |value| -value),
            Self::Operation(one, operator, other) => one.of(names)?.with(*operator, &other.of(names)?),
            Self::Call { function, run, arguments } => call(names, function, run.as_deref(), arguments),
        }
    }

    /// A number that it gives.
    pub(crate) fn number(&self, names: &dyn Names) -> Result<f64, Missing> {
        match self.of(names)? {
            Quantity::Number(number) => Ok(number),
            _ => Err(Missing::Kind(format!("{self:?}"))),
        }
    }

    /// A text that it gives.
    pub(crate) fn text(&self, names: &dyn Names) -> Result<String, Missing> {
        match self.of(names)? {
            Quantity::Text(text) => Ok(text),
            _ => Err(Missing::Kind(format!("{self:?}"))),
        }
    }
}

fn call(names: &dyn Names, function: &str, run: Option<&str>, arguments: &[Formula]) -> Result<Quantity, Missing> {
    let fold = |of: fn(f64, f64) -> f64| -> Result<Quantity, Missing> {
        let mut all = arguments.iter().map(|argument| argument.of(names));
        let first = all.next().unwrap_or(Err(Missing::Excluded))?;
        all.try_fold(first, |so_far, next| so_far.combine(function, &next?, of))
    };
    match (function, arguments) {
        ("abs", [of]) => of.of(names)?.map(function, f64::abs),
        ("round", [of]) => of.of(names)?.map(function, f64::round),
        ("sig", [of]) => of.of(names)?.map(function, significant),
        ("mean", [of]) => Ok(Quantity::Number(of.of(names)?.sample(function)?.mean())),
        ("most", [of]) => Ok(Quantity::Number(of.of(names)?.sample(function)?.most())),
        ("min", _) => fold(f64::min),
        ("max", _) => fold(f64::max),
        ("or", [rest @ .., last]) => {
            let known = rest.iter().map(|of| of.of(names)).find(|value| !matches!(value, Err(Missing::Name(_))));
            known.unwrap_or_else(|| last.of(names))
        }
        ("only", [condition, of]) => {
            if condition.holds(names)? {
                of.of(names)
            } else {
                Err(Missing::Excluded)
            }
        }
        ("if", [condition, one, other]) => {
            if condition.holds(names)? {
                one.of(names)
            } else {
                other.of(names)
            }
        }
        _ => names.call(function, run, arguments),
    }
}

impl Formula {
    /// The runs whose metrics it asks for.
    pub(crate) fn runs(&self) -> Vec<&str> {
        match self {
            Self::Number(_) | Self::Text(_) | Self::Name(_) => Vec::new(),
            Self::Negative(of) => of.runs(),
            Self::Operation(one, _, other) => [one.runs(), other.runs()].concat(),
            Self::Call { run, arguments, .. } => {
                run.as_deref().into_iter().chain(arguments.iter().flat_map(Self::runs)).collect()
            }
        }
    }

    fn holds(&self, names: &dyn Names) -> Result<bool, Missing> {
        match self.of(names)? {
            Quantity::Truth(truth) => Ok(truth),
            _ => Err(Missing::Kind(format!("{self:?}"))),
        }
    }
}

/// The least and the largest number of arguments of a function, or of a metric.
fn arity(function: &str) -> Option<(usize, usize)> {
    let of = FUNCTIONS.iter().find(|(name, ..)| *name == function).map(|(_, least, most)| (*least, *most));
    of.or_else(|| metric::arity(function))
}
