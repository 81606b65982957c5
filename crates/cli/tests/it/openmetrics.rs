//! A strict parser of the text format of OpenMetrics 1.0.0: a page that a scraper would refuse
//! fails a test.

use std::collections::{BTreeMap, BTreeSet};

/// The samples of a page: name and labels as text, and the value.
#[derive(Debug)]
pub(crate) struct Page {
    samples: BTreeMap<String, f64>,
}

impl Page {
    /// The value of a sample such as `name{label="value"}`.
    pub(crate) fn get(&self, sample: &str) -> f64 {
        *self.samples.get(sample).unwrap_or_else(|| panic!("no {sample} in {:#?}", self.samples.keys()))
    }

    /// Parses a page, or panics with the error.
    pub(crate) fn read(text: &str) -> Self {
        let body = text.strip_suffix("# EOF\n").expect("the last line is # EOF");
        let (mut samples, mut kinds) = (BTreeMap::new(), BTreeMap::new());
        let mut family: Option<(String, String)> = None;
        let mut buckets: Vec<(String, f64, f64)> = Vec::new();
        for line in body.lines() {
            assert!(!line.is_empty() && line.trim() == line, "{line:?}");
            if let Some(about) = line.strip_prefix("# ") {
                let [word, name, rest] = about.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line:?}") };
                match word {
                    "TYPE" => {
                        assert!(["counter", "gauge", "histogram"].contains(&rest), "{line:?}");
                        assert!(kinds.insert(name.to_owned(), rest.to_owned()).is_none(), "{name} twice");
                        family = Some((name.to_owned(), rest.to_owned()));
                    }
                    "HELP" => assert!(!rest.is_empty(), "{line:?}"),
                    _ => panic!("{line:?}"),
                }
                continue;
            }
            let (series, value) = line.rsplit_once(' ').unwrap();
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line:?}"));
            let (name, labels) = series.split_once('{').map_or((series, ""), |(name, labels)| (name, labels));
            let labels = pairs(labels, line);
            let (family, kind) = family.as_ref().expect("TYPE comes before samples");
            let suffix = name.strip_prefix(family.as_str()).unwrap_or_else(|| panic!("{name} in the family {family}"));
            let allowed: &[&str] = match kind.as_str() {
                "counter" => &["_total"],
                "gauge" => &[""],
                _ => &["_bucket", "_sum", "_count"],
            };
            assert!(allowed.contains(&suffix), "{line:?} in a {kind}");
            assert!(kind != "counter" || value >= 0.0, "{line:?}");
            if suffix == "_bucket" {
                let bound = &labels.iter().find(|(key, _)| key == "le").expect("a bucket has its bound").1;
                let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().unwrap() };
                let others: Vec<String> =
                    labels.iter().filter(|(key, _)| key != "le").map(|(key, value)| format!("{key}={value}")).collect();
                buckets.push((format!("{family} {}", others.join(",")), bound, value));
            }
            assert!(samples.insert(series.to_owned(), value).is_none(), "{series} twice");
        }
        check_buckets(&buckets);
        Self { samples }
    }
}

/// Bounds increase, counts do not decrease, and the last bound is infinite.
fn check_buckets(buckets: &[(String, f64, f64)]) {
    for series in buckets.iter().map(|(series, ..)| series).collect::<BTreeSet<_>>() {
        let of: Vec<_> = buckets.iter().filter(|(other, ..)| other == series).collect();
        assert!(of.windows(2).all(|pair| pair[0].1 < pair[1].1 && pair[0].2 <= pair[1].2), "{of:?}");
        assert!(of.last().is_some_and(|last| last.1.is_infinite()), "{of:?}");
    }
}

/// `a="1",b="2"}` as pairs, without escapes, which do not occur.
fn pairs(labels: &str, line: &str) -> Vec<(String, String)> {
    let Some(inner) = labels.strip_suffix('}') else {
        assert!(labels.is_empty(), "{line:?}");
        return Vec::new();
    };
    let pair = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap_or_else(|| panic!("{line:?}"));
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        let value = value.filter(|value| !value.contains(['"', '\\'])).unwrap_or_else(|| panic!("{line:?}"));
        assert!(key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{line:?}");
        (key.to_owned(), value.to_owned())
    };
    inner.split(',').map(pair).collect()
}

#[test]
fn a_page_is_read_and_a_wrong_one_is_refused() {
    let page = "# HELP a_seconds What it took.\n# TYPE a_seconds histogram\na_seconds_sum{of=\"x\"} 3.5\n\
                a_seconds_count{of=\"x\"} 2\na_seconds_bucket{le=\"1.0\",of=\"x\"} 1\n\
                a_seconds_bucket{le=\"+Inf\",of=\"x\"} 2\n# EOF\n";
    assert!((Page::read(page).get("a_seconds_sum{of=\"x\"}") - 3.5).abs() < 1e-9);
    for wrong in [
        page.replace("# EOF\n", ""),
        page.replace("+Inf\",of=\"x\"} 2", "+Inf\",of=\"x\"} 0"),
        page.replace("le=\"+Inf\"", "le=\"9.0\""),
        page.replace("_sum", "_total"),
        page.replace("a_seconds_count{of=\"x\"}", "a_seconds_sum{of=\"x\"}"),
        page.replace("} 3.5", "} three"),
        page.replace("of=\"x\"} 3.5", "of=x} 3.5"),
    ] {
        assert!(std::panic::catch_unwind(|| Page::read(&wrong)).is_err(), "{wrong}");
    }
}
