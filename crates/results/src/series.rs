//! Samples over time: what the plots and `series.parquet` are made of.

/// Samples of one quantity of one thing, in order of time.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// What is sampled, with its unit: `queue_bytes`, `cwnd_bytes`, `goodput_bps`, `rtt_s`.
    pub name: String,
    /// The flow, link or probe that it is sampled of.
    pub entity: String,
    /// Seconds since the begin of the run, and the value.
    pub points: Vec<(f64, f64)>,
}

impl From<&lastmile_model::outcome::Series> for Series {
    fn from(series: &lastmile_model::outcome::Series) -> Self {
        Self {
            name: series.name.to_owned(),
            entity: series.entity.clone(),
            points: series.points.iter().map(|(at, value)| (at.as_secs_f64(), *value)).collect(),
        }
    }
}

/// Adds a sample to the series of this name and entity, which is the last of `all` or else a new one.
pub(crate) fn push(all: &mut Vec<Series>, (name, entity): (&str, &str), sample: (f64, f64)) {
    match all.last_mut() {
        Some(last) if last.name == name && last.entity == entity => last.points.push(sample),
        _ => all.push(Series { name: name.to_owned(), entity: entity.to_owned(), points: vec![sample] }),
    }
}
