//! A row of a table, reproduced.

use serde::Serialize;

use crate::data::Row;
use crate::rounding::significant;
use crate::sample::Sample;
use crate::value::{Value, Values};

/// A row, reproduced. Values of the same name are the same quantity.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RowResult {
    /// The parameters that the row varies.
    pub params: Values,
    /// The published figures.
    pub published: Values,
    /// The values of the closed form.
    pub theory: Values,
    /// The simulated figures; means over the seeds where there are several.
    pub simulated: Values,
    /// Half the width of the 95 % confidence interval of that mean, by the same names; empty where nothing is random.
    pub ci95: Values,
    /// The figures of a live run; empty where there was none.
    pub live: Values,
    /// The figures of a simulation of the live run: equally short, with equal hosts, and with TCP as the kernel's.
    pub live_simulated: Values,
    /// Simulated minus published, or minus theory where nothing was published, in the unit of the name.
    pub deviation: Values,
    /// The deviation of the live figures.
    pub live_deviation: Values,
    /// True of a row that the publication has not, simulated to see whether its claim goes beyond its own rows.
    pub predicted: bool,
    /// The figures of each seed, by the names of the means.
    #[serde(skip)]
    pub samples: Samples,
}

/// Quantities that were measured with each seed, by their names.
pub type Samples = Vec<(String, Sample)>;

impl RowResult {
    /// A row of the data next to what a simulation of it gave.
    #[must_use]
    pub fn new(row: &Row, simulated: Values) -> Self {
        let mut result = Self {
            params: row.params.clone(),
            published: row.published.clone(),
            theory: row.theory.clone(),
            simulated: Values::new(),
            ci95: Values::new(),
            live: Values::new(),
            live_simulated: Values::new(),
            deviation: Values::new(),
            live_deviation: Values::new(),
            predicted: false,
            samples: Samples::new(),
        };
        result.set_simulated(simulated);
        result
    }

    /// Gives the row what a simulation gave.
    pub fn set_simulated(&mut self, simulated: Values) {
        self.deviation = self.deviation_of(&simulated);
        self.simulated = simulated;
    }

    /// A quantity with each seed; the figure itself where it was measured once.
    #[must_use]
    pub fn sample(&self, name: &str) -> Sample {
        let sampled = self.samples.iter().find(|(known, _)| known == name).map(|(_, sample)| sample.clone());
        sampled.or_else(|| self.simulated.number(name).map(Sample::single)).unwrap_or_default()
    }

    /// Gives the row what a live run gave.
    pub fn set_live(&mut self, live: Values) {
        self.live_deviation = self.deviation_of(&live);
        self.live = live;
    }

    /// A prediction: [`unpublished`](Self::unpublished), and judged next to the table's own rows.
    #[must_use]
    pub fn predicted(params: Values, means: Means) -> Self {
        Self { predicted: true, ..Self::unpublished(params, means) }
    }

    /// A row that the publication does not have, or not here, next to the means over several seeds.
    #[must_use]
    pub fn unpublished(params: Values, means: Means) -> Self {
        let row = Row {
            params,
            published: Values::new(),
            theory: Values::new(),
            theory_printed: Values::new(),
            check: Values::new(),
            note: None,
        };
        Self::of_means(&row, means)
    }

    fn deviation_of(&self, ours: &Values) -> Values {
        let deviation = |(name, value): (_, &Value)| {
            let reference = self.published.number(name).or_else(|| self.theory.number(name))?;
            Some((name, value.as_f64()? - reference))
        };
        ours.iter().filter_map(deviation).collect()
    }

    /// A row next to the means over several seeds.
    #[must_use]
    pub fn of_means(row: &Row, means: Means) -> Self {
        Self { ci95: means.ci95, samples: means.samples, ..Self::new(row, means.mean) }
    }

    /// Sets a figure by its mean, its interval and the figure of each seed.
    pub(crate) fn measure(&mut self, name: &str, sample: Sample) {
        let mut means = Means::default();
        means.push(name, sample);
        let deviation = self.deviation_of(&means.mean);
        for (all, one) in
            [(&mut self.simulated, means.mean), (&mut self.ci95, means.ci95), (&mut self.deviation, deviation)]
        {
            one.iter().for_each(|(name, value)| all.set(name, value.clone()));
        }
        self.samples.extend(means.samples);
    }

    /// A row of printed formulas next to what the same formulas give here; nothing is simulated.
    #[must_use]
    pub fn closed_form(row: &Row, theory: Values) -> Self {
        let deviation = theory
            .iter()
            .filter_map(|(name, value)| Some((name, value.as_f64()? - row.theory_printed.number(name)?)))
            .collect();
        Self {
            params: row.params.clone(),
            published: row.theory_printed.clone(),
            theory,
            simulated: Values::new(),
            ci95: Values::new(),
            live: Values::new(),
            live_simulated: Values::new(),
            deviation,
            live_deviation: Values::new(),
            predicted: false,
            samples: Samples::new(),
        }
    }
}

/// Quantities over several seeds: their means, and half the widths of the 95 % confidence intervals of these.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Means {
    /// The means.
    pub mean: Values,
    /// Half the widths, by the same names.
    pub ci95: Values,
    /// The figures of each seed, by the same names.
    pub samples: Samples,
}

impl Means {
    /// Adds a quantity. Mean and interval have six significant digits.
    pub(crate) fn push(&mut self, name: &str, sample: Sample) {
        let estimate = sample.estimate();
        self.mean.set(name, significant(estimate.mean));
        self.ci95.set(name, significant(estimate.half_width));
        self.samples.push((name.to_owned(), sample));
    }
}
