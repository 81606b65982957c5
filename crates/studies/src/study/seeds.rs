//! The seeds of each point: a number, or as many as make an interval narrow.

use crate::error::Error;
use crate::variant::check_seeds;

/// Seeds until half of a measure's 95 % interval is at most a share of its mean.
#[derive(Clone, PartialEq, Debug)]
pub struct Until {
    /// The measure, such as `download_bps`. A point where no run has it keeps its first seeds.
    pub measure: String,
    /// The share of the mean.
    pub share: f64,
    /// The most seeds of a point.
    pub at_most: u64,
}

/// The seeds of each point, from that of the scenario on.
#[derive(Clone, PartialEq, Debug)]
pub enum Seeds {
    /// A number of seeds.
    Count(u64),
    /// Until an interval is narrow enough.
    Until(Until),
}

impl Until {
    /// The measure where none is given, over an access line or over a network without one.
    #[must_use]
    pub fn usual_measure(over_line: bool) -> &'static str {
        if over_line { "download_bps" } else { "goodput_bps" }
    }
}

impl Seeds {
    /// The measure that decides about the number of seeds, if one does.
    pub(super) fn measure(&self) -> Option<&String> {
        match self {
            Self::Count(_) => None,
            Self::Until(until) => Some(&until.measure),
        }
    }

    /// Refuses more seeds from the first on than there are.
    pub(super) fn check(&self, first: u64) -> Result<(), Error> {
        check_seeds(
            first,
            match self {
                Self::Count(count) => *count,
                Self::Until(until) => until.at_most,
            },
        )
    }

    /// In a sentence.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Count(1) => "One seed for each point.".to_owned(),
            Self::Count(count) => format!("Means of {count} seeds, with 95 % intervals."),
            Self::Until(until) => format!(
                "Means with 95 % intervals. A point has seeds until the half-width of {} is at most {} of its mean, \
                 up to {}. Since it stops where the spread looks small, its interval holds the mean in 91 to 93 of 100 \
                 cases.",
                until.measure,
                lastmile_results::format::percent(until.share),
                until.at_most
            ),
        }
    }
}
