//! Notes above the explanations: the transfers with another limit than the access line.

use std::collections::BTreeMap;
use std::sync::Arc;

use lastmile_model::Source;

use super::run::Run;
use crate::bounds::{Before, Bound, Shape, Span};
use crate::format;
use crate::schema::Flow;

/// The share of the access line's capacity below which a bound is not the line's.
const BELOW: f64 = 0.9;
/// The most flows that a note names.
const NAMED: usize = 3;

impl Run<'_> {
    /// A sentence for each cause other than the access line that bounds transfers: LAN,
    /// aggregation, backbone, a window; and one where phases are missing.
    pub(super) fn notes(&self, flows: &[Flow]) -> Vec<String> {
        let mut causes: BTreeMap<Arc<str>, Vec<(&Flow, f64, f64)>> = BTreeMap::new();
        for (flow, outcome) in flows.iter().zip(&self.outcome.flows) {
            let source = &self.network.traffic[outcome.traffic].source;
            let (Source::Bulk { .. } | Source::Quic { .. }, Some(shape)) = (source, &self.shapes[outcome.traffic])
            else {
                continue;
            };
            let life = (outcome.start, self.active_until(outcome));
            let Some(line) = self.line_carries(shape, life) else { continue };
            let bound = self.bound(outcome, life, Before::Nothing);
            let limits = [bound, self.fair_share_over_life(outcome)].into_iter().flatten();
            let is_elsewhere = |limit: &Bound| limit.bps < BELOW * line && !self.is_at_the_line(limit);
            if let Some(limit) = limits.into_iter().find(is_elsewhere) {
                causes.entry(limit.by).or_default().push((flow, limit.bps, line));
            }
        }
        let (count, most) = (self.outcome.flows.len(), self.network.record.flow_limit);
        let unphased = (count > most)
            .then(|| format!("no phases and no series of flows: {count} flows, and record.flows is {most}"));
        unphased.into_iter().chain(causes.into_iter().map(|(by, flows)| note(&by, &flows))).collect()
    }

    /// Payload, bit/s, of the access line on the path of a flow's data within `span`. `None` without one.
    fn line_carries(&self, shape: &Shape, span: Span) -> Option<f64> {
        let of_access = |link: &&usize| self.network.lines.iter().any(|line| line.down == **link || line.up == **link);
        let links = shape.data_path.iter().filter(of_access);
        links.filter_map(|link| shape.capacity_bps(&self.network.links[*link], span)).reduce(f64::min)
    }

    /// True for a bound by an access line, or by the middlebox in front of it.
    fn is_at_the_line(&self, bound: &Bound) -> bool {
        let of_line = |link: usize| {
            let names_a_middlebox = self.network.links[link].hop.name.starts_with("middlebox");
            names_a_middlebox || self.network.lines.iter().any(|line| line.down == link || line.up == link)
        };
        bound.link.is_some_and(of_line)
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
