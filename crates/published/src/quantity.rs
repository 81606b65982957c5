//! The values of formulas, and the operators between them.

use crate::error::ExperimentError;
use crate::sample::Sample;
use crate::value::Value;

/// An operator between two formulas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Equal,
    Unequal,
}

/// The value of a formula.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Quantity {
    Number(f64),
    /// A figure with each seed.
    Sample(Sample),
    Text(String),
    Truth(bool),
}

/// A formula that gives nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Missing {
    /// No setting, figure or row of this name.
    #[error("nothing is called \"{0}\"")]
    Name(String),
    /// `only` was asked for something that its condition excludes.
    #[error("excluded by its condition")]
    Excluded,
    /// A text where a number is needed, or the reverse.
    #[error("{0} is of a kind that does not fit here")]
    Kind(String),
    /// A run that failed.
    #[error(transparent)]
    Run(ExperimentError),
}

impl Quantity {
    /// As a sample: a number stands for each seed.
    pub(crate) fn sample(&self, asked: &str) -> Result<Sample, Missing> {
        match self {
            Self::Number(number) => Ok(Sample::single(*number)),
            Self::Sample(sample) => Ok(sample.clone()),
            Self::Text(_) | Self::Truth(_) => Err(Missing::Kind(asked.to_owned())),
        }
    }

    pub(crate) fn map(&self, asked: &str, of: impl Fn(f64) -> f64) -> Result<Self, Missing> {
        match self {
            Self::Number(number) => Ok(Self::Number(of(*number))),
            other => Ok(Self::Sample(other.sample(asked)?.map(of))),
        }
    }

    pub(crate) fn combine(&self, asked: &str, other: &Self, of: impl Fn(f64, f64) -> f64) -> Result<Self, Missing> {
        match (self, other) {
            (Self::Number(one), Self::Number(other)) => Ok(Self::Number(of(*one, *other))),
            _ => Ok(Self::Sample(self.sample(asked)?.with(&other.sample(asked)?, of))),
        }
    }

    /// The result of an operator.
    pub(crate) fn with(&self, operator: Operator, other: &Self) -> Result<Self, Missing> {
        let arithmetic = |of: fn(f64, f64) -> f64| self.combine(operator.as_str(), other, of);
        let compared = |of: fn(&f64, &f64) -> bool| match (self, other) {
            (Self::Number(one), Self::Number(other)) => Ok(Self::Truth(of(one, other))),
            _ => Err(Missing::Kind(operator.as_str().to_owned())),
        };
        match operator {
            Operator::Add => arithmetic(|one, other| one + other),
            Operator::Subtract => arithmetic(|one, other| one - other),
            Operator::Multiply => arithmetic(|one, other| one * other),
            Operator::Divide => arithmetic(|one, other| one / other),
            Operator::Less => compared(f64::lt),
            Operator::AtMost => compared(f64::le),
            Operator::Greater => compared(f64::gt),
            Operator::AtLeast => compared(f64::ge),
            Operator::Equal => Ok(Self::Truth(self == other)),
            Operator::Unequal => Ok(Self::Truth(self != other)),
        }
    }
}

impl Operator {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
            Self::Equal => "==",
            Self::Unequal => "!=",
        }
    }
}

impl From<&Value> for Quantity {
    #[expect(clippy::cast_precision_loss, reason = "settings have a few digits")]
    fn from(value: &Value) -> Self {
        match value {
            Value::Bool(truth) => Self::Truth(*truth),
            Value::Integer(integer) => Self::Number(*integer as f64),
            Value::Float(float) => Self::Number(*float),
            Value::Text(_) | Value::List(_) => Self::Text(value.to_string()),
        }
    }
}
