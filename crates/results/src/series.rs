//! Samples over time, the basis of plots and `series.parquet`.

/// Samples of one quantity of one flow, link or probe, in order of time.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// The quantity with its unit: `queue_bytes`, `cwnd_bytes`, `goodput_bps`, `rtt_s`.
    pub name: String,
    /// The flow, link or probe.
    pub entity: String,
    /// Seconds since the start of the run, and the value.
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

/// Adds a sample to the last series of `all` if it has this name and entity, or else to a new one.
pub(crate) fn push(all: &mut Vec<Series>, (name, entity): (&str, &str), sample: (f64, f64)) {
    match all.last_mut() {
        Some(last) if last.name == name && last.entity == entity => last.points.push(sample),
        _ => all.push(Series { name: name.to_owned(), entity: entity.to_owned(), points: vec![sample] }),
    }
}
