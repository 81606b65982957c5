//! Notes above the explanations: the transfers that something else than the access line limits.

use std::collections::BTreeMap;

use lastmile_sim::spec::Source;

use super::Run;
use crate::bounds::Shape;
use crate::format;
use crate::schema::Flow;

/// A bound below this share of what the access line carries is not the line's.
const BELOW: f64 = 0.9;
/// Flows that a note names.
const NAMED: usize = 3;

impl Run<'_> {
    /// A sentence for each cause but the access line that bounds transfers: LAN, aggregation, backbone, a window.
    pub(super) fn notes(&self, flows: &[Flow]) -> Vec<String> {
        let mut causes: BTreeMap<&str, Vec<(&Flow, f64, f64)>> = BTreeMap::new();
        for (flow, outcome) in flows.iter().zip(&self.outcome.flows) {
            let source = &self.network.traffic[outcome.traffic].source;
            let (Source::Bulk { .. }, Some(shape)) = (source, &self.shapes[outcome.traffic]) else { continue };
            let Some(line) = self.line_carries(shape) else { continue };
            let limits = [(flow.bound_bps, &flow.bound_by), (flow.fair_share_bps, &flow.fair_share_by)];
            let elsewhere = limits.into_iter().find_map(|(bps, by)| {
                let (bps, by) = (bps?, by.as_deref()?);
                (bps < BELOW * line && !self.is_of_access(by)).then_some((bps, by))
            });
            if let Some((bps, by)) = elsewhere {
                causes.entry(by).or_default().push((flow, bps, line));
            }
        }
        causes.into_iter().map(|(by, flows)| note(by, &flows)).collect()
    }

    /// Payload, bit/s, that the access line on the way of a flow's data carries. `None` without one.
    fn line_carries(&self, shape: &Shape) -> Option<f64> {
        let of_access = |link: &&usize| self.network.lines.iter().any(|line| line.down == **link || line.up == **link);
        let links = shape.data_path.iter().filter(of_access);
        links.filter_map(|link| shape.capacity_bps(&self.network.links[*link])).reduce(f64::min)
    }

    /// True if the words name a link of an access line, or of the middlebox that stands for it.
    fn is_of_access(&self, by: &str) -> bool {
        // `rate of link down, shared by 4`
        let by = by.split(',').next().unwrap_or(by);
        let named = |link: usize| by.ends_with(&format!("link {}", self.network.links[link].name));
        self.network.lines.iter().any(|line| named(line.down) || named(line.up)) || by.contains("link middlebox")
    }
}

fn note(by: &str, flows: &[(&Flow, f64, f64)]) -> String {
    let names: Vec<&str> = flows.iter().take(NAMED).map(|(flow, ..)| flow.name.as_str()).collect();
    let names = match flows.len() - names.len() {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    };
    let (_, bps, line) = flows[0];
    format!("{names}: the limit is not the access line ({}) but {} by {by}", format::rate(line), format::rate(bps))
}
