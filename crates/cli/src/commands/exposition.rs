//! Metrics of a running program for Prometheus, in its text format, version 1.0.0 of OpenMetrics.

use std::collections::BTreeMap;
use std::fmt::Error;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// The media type of [`exposition`].
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The labels of a sample: names and values.
pub(super) type Labels = Vec<(&'static str, String)>;

/// The value of a sample.
#[derive(Debug)]
pub(super) enum Value {
    /// Of a counter or a gauge.
    Number(u64),
    /// Of a gauge.
    Seconds(f64),
    /// Of a histogram.
    Times {
        sum_s: f64,
        count: u64,
        /// Bounds in seconds, and the times that exceed the preceding bound and not this one.
        up_to: Vec<(f64, u64)>,
    },
}

/// A metric: name, description, type, samples. One sample without labels is no family.
pub(super) type Family = (&'static str, &'static str, MetricType, Vec<(Labels, Value)>);

/// Counts by reason, and zeros of the known reasons without one: the rate of a counter needs its value before the first
/// event.
pub(super) fn from_the_start<'a>(
    known: impl IntoIterator<Item = &'a str>,
    counted: impl Iterator<Item = (&'a str, u64)>,
) -> BTreeMap<&'a str, u64> {
    known.into_iter().map(|reason| (reason, 0)).chain(counted).collect()
}

/// The text of `families`, whose names get a prefix.
pub(super) fn exposition(prefix: &str, families: Vec<Family>) -> Result<String, Error> {
    let mut registry = Registry::with_prefix(prefix);
    registry.register_collector(Box::new(Page(families)));
    let mut out = String::new();
    text::encode(&mut out, &registry)?;
    Ok(out)
}

#[derive(Debug)]
struct Page(Vec<Family>);

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        for (name, help, kind, samples) in &self.0 {
            let mut family = encoder.encode_descriptor(name, help, None, *kind)?;
            match &samples[..] {
                [(labels, value)] if labels.is_empty() => value.encode(*kind, family)?,
                many => {
                    for (labels, value) in many {
                        value.encode(*kind, family.encode_family(labels)?)?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Value {
    fn encode(&self, kind: MetricType, mut to: MetricEncoder<'_>) -> Result<(), Error> {
        match (self, kind) {
            (Self::Number(count), MetricType::Counter) => ConstCounter::new(*count).encode(to),
            (Self::Number(count), _) => ConstGauge::new(i64::try_from(*count).unwrap_or(i64::MAX)).encode(to),
            (Self::Seconds(s), _) => ConstGauge::new(*s).encode(to),
            (Self::Times { sum_s, count, up_to }, _) => {
                let beyond = count.saturating_sub(up_to.iter().map(|(_, count)| count).sum());
                // The encoder adds the counts up.
                let buckets: Vec<(f64, u64)> = up_to.iter().copied().chain([(f64::INFINITY, beyond)]).collect();
                to.encode_histogram::<NoLabelSet>(*sum_s, *count, &buckets, None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_without_an_event_has_a_zero_and_an_unknown_one_its_count() {
        let counts = from_the_start(["tail", "aqm"], [("tail", 2), ("other", 1)].into_iter());
        assert_eq!(counts, BTreeMap::from([("aqm", 0), ("other", 1), ("tail", 2)]));
    }
}
