//! A study, its points and its runs.

use lastmile_theory::interval::Mean;

use crate::format::Unit;

/// A study with its runs.
#[derive(Clone, Debug, Default)]
pub struct Study {
    /// The name of the study.
    pub name: String,
    /// Sentences below the name, such as those of seeds and intervals.
    pub lines: Vec<String>,
    /// Runs without a result, in words.
    pub warnings: Vec<String>,
    /// The varied keys.
    pub keys: Vec<Key>,
    /// The measures of the page.
    pub measures: Vec<String>,
    /// Number of measures that the runs have.
    pub known: usize,
    /// Runs with results; those of a point are neighbours.
    pub runs: Vec<Run>,
    /// The text of the study file.
    pub text: Option<String>,
    /// The version of the program.
    pub version: &'static str,
}

/// A key, with its values in the order of their first run.
#[derive(Clone, Debug)]
pub struct Key {
    /// The path of the key.
    pub name: String,
    /// The values of the key.
    pub values: Vec<Value>,
    /// The units of its numbers.
    pub units: &'static [Unit],
}

/// A value of a key.
#[derive(Clone, Debug)]
pub struct Value {
    /// As the study has it.
    pub text: String,
    /// The number in the base unit; `None` for a word.
    pub number: Option<f64>,
}

/// A run with a result.
#[derive(Clone, Debug)]
pub struct Run {
    /// The index of its value of each key.
    pub point: Vec<usize>,
    /// The seed of the run.
    pub seed: u64,
    /// The run's value of each measure.
    pub values: Vec<Option<f64>>,
}

/// A point and its runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point<'a> {
    pub(super) values: &'a [usize],
    pub(super) runs: &'a [Run],
}

impl Study {
    pub(super) fn points(&self) -> Vec<Point<'_>> {
        let same = self.runs.chunk_by(|one, next| one.point == next.point);
        same.map(|runs| Point { values: &runs[0].point, runs }).collect()
    }

    /// The text of a key's value at a point.
    pub(super) fn text(&self, key: usize, value: usize) -> &str {
        &self.keys[key].values[value].text
    }

    /// `key value, key value` of these keys.
    pub(super) fn named(&self, keys: &[usize], values: &[usize]) -> String {
        let pair = |(key, value): (&usize, &usize)| format!("{} {}", self.keys[*key].name, self.text(*key, *value));
        keys.iter().zip(values).map(pair).collect::<Vec<_>>().join(", ")
    }
}

impl Point<'_> {
    /// The mean of a measure over the seeds; `None` if no run has it.
    pub(super) fn mean(&self, measure: usize) -> Option<Mean> {
        let samples: Vec<f64> = self.runs.iter().filter_map(|run| run.values[measure]).collect();
        Mean::of(&samples)
    }

    /// Number of runs that have a measure, and number of all runs.
    pub(super) fn seeds(&self, measure: usize) -> (usize, usize) {
        (self.runs.iter().filter(|run| run.values[measure].is_some()).count(), self.runs.len())
    }
}
