//! Constraints that are full in a part of a run.

use lastmile_model::outcome::Outcome;
use lastmile_model::{Link, Network};
use lastmile_queueing::classify::Packets;

use super::constraint::Constraint;
use super::shape::Shape;
use crate::format::{self, to_f64};
use crate::interval::Interval;

/// The used share from which a constraint counts as full.
const FULL: f64 = 0.95;

/// A constraint that is full.
pub(crate) struct Full<'a> {
    /// Number of its link.
    pub(crate) index: usize,
    link: &'a Link,
    constraint: Constraint,
    /// The used share.
    used: f64,
}

/// The data of all traffic in a part of a run.
pub(crate) struct Loads<'a> {
    /// By traffic.
    shapes: &'a [Option<Shape>],
    /// By traffic: delivered payload bytes.
    bytes: Vec<u64>,
    /// By traffic: active flows.
    flows: Vec<usize>,
}

impl<'a> Loads<'a> {
    /// The data of traffic with these shapes, of which so many flows were `active` in `part`.
    pub(crate) fn new(
        outcome: &Outcome,
        shapes: &'a [Option<Shape>],
        part: &Interval,
        active: impl Fn(usize) -> usize,
    ) -> Self {
        let mut bytes = vec![0; shapes.len()];
        for (flow, delivered) in outcome.flows.iter().zip(&part.bytes) {
            bytes[flow.traffic] += delivered;
        }
        Self { shapes, bytes, flows: (0..shapes.len()).map(active).collect() }
    }

    /// Bits on the wire of the delivered data that passes a constraint of link number `index`.
    fn bits(&self, index: usize, link: &Link, constraint: &Constraint) -> f64 {
        let passing = self.shapes.iter().zip(&self.bytes).filter_map(|(shape, bytes)| Some((shape.as_ref()?, *bytes)));
        let passing = passing.filter(|(shape, _)| shape.passes(index, constraint));
        passing.map(|(shape, bytes)| to_f64(bytes) / to_f64(shape.payload) * shape.wire_bits(link)).sum()
    }

    /// The number of active flows whose data cross link number `index`, without connections opened during the run.
    pub(crate) fn flows_over(&self, index: usize) -> usize {
        self.flows(|shape| shape.data_path.contains(&index))
    }

    /// That number for what is full.
    pub(crate) fn flows_through(&self, full: &Full<'_>) -> usize {
        if !full.constraint.is_of_some() {
            return self.flows_over(full.index);
        }
        let flows = self.flows(|shape| shape.passes(full.index, &full.constraint));
        match &full.constraint {
            Constraint::Cells(limit) if !limit.is_shared_by(flows) => 1,
            _ => flows,
        }
    }

    fn flows(&self, counts: impl Fn(&Shape) -> bool) -> usize {
        let of = self.shapes.iter().zip(&self.flows);
        of.filter(|(shape, _)| shape.as_ref().is_some_and(|shape| !shape.many && counts(shape))).map(|(_, n)| n).sum()
    }
}

impl<'a> Full<'a> {
    /// The fullest constraint on each packet of the links of `path` in `part`, if it is full.
    pub(crate) fn of(network: &'a Network, path: &[usize], part: &Interval, data: &Loads<'_>) -> Option<Self> {
        let constraints = Constraint::along(network, path, &Packets::default()).into_iter();
        Self::fullest(network, constraints, part, data)
    }

    /// The fullest constraint on data of this shape in `part`, if it is full.
    pub(crate) fn of_data(network: &'a Network, shape: &Shape, part: &Interval, data: &Loads<'_>) -> Option<Self> {
        Self::fullest(network, shape.constraints.iter().cloned(), part, data)
    }

    fn fullest(
        network: &'a Network,
        constraints: impl Iterator<Item = (usize, Constraint)>,
        part: &Interval,
        data: &Loads<'_>,
    ) -> Option<Self> {
        let all = constraints.map(|(index, constraint)| {
            let link = &network.links[index];
            let used = constraint.used((index, link), part, || data.bits(index, link, &constraint));
            Self { index, link, constraint, used }
        });
        // The data of a class are counted as delivered, and without ACKs: less than what it lets pass.
        let rank = |full: &Self| (full.constraint.is_of_some(), full.used);
        all.filter(|full| full.used >= FULL).reduce(|a, b| if rank(&b) > rank(&a) { b } else { a })
    }

    /// In words, for data.
    pub(crate) fn words(&self) -> String {
        self.constraint.words(self.link)
    }

    /// In words, as what is filled.
    pub(crate) fn filled(&self) -> String {
        self.constraint.filled(self.link)
    }

    /// True where packets wait for it at the source of their virtual channel, in the queue of no link.
    pub(crate) fn holds_at_source(&self) -> bool {
        matches!(&self.constraint, Constraint::Cells(limit) if limit.holds_at_source())
    }

    pub(crate) fn percent(&self) -> String {
        format::percent(self.used.min(1.0))
    }
}
