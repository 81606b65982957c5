//! The fair share of each flow: an equal share of the line's best capacity.
//!
//! In each phase of a run, rates grow equally for all flows until a limit holds them (max-min
//! fairness: Bertsekas and Gallager, Data Networks, section 6.5.2). Limits are the receive window,
//! the source, the rate of a link, of its shapers and of its grants for data, the ceiling of a class and the rate of a
//! policer for the data that pass it, and these for ACKs, one for every d
//! segments, or for more by the share of ACKs that was dropped on the way; no rate of ACKs where a
//! discipline on that link or before it thins them. Limits of virtual channels are those of each
//! flow, and of all that share a channel or a path. Sources that do not respond to loss take their
//! mean rate first.
//!
//! A fair share is no bound: a flow exceeds it where another does not use its own. ACKs and data in
//! one queue are not counted against each other (see [`super::two_way`]), losses cost nothing, and
//! slow start takes no time. Connections opened during the run have no fair share, because their
//! number is a result.
//!
//! Cost: sources times links times rounds, at most one round for each source and link; the number
//! of flows does not matter.

use lastmile_model::outcome::Outcome;
use lastmile_model::{Network, Source};

use super::constraint::Constraint;
use super::shape::{Shape, TcpShape};
use super::{Bound, active, by_window};
use crate::format;
use crate::interval::Interval;

/// The fair share of each traffic in a part of the run; `None` for pings, replays, connections
/// opened during the run, and inactive traffic.
pub(crate) fn in_phase(
    network: &Network,
    outcome: &Outcome,
    shapes: &[Option<Shape>],
    part: &Interval,
) -> Vec<Option<Bound>> {
    let mut bounds = vec![None; network.traffic.len()];
    let (mut unused, mut of_some) = (Unused::new(network), Vec::new());
    // Unresponsive sources take their rate first.
    for responsive in [false, true] {
        let mut demands = Vec::new();
        for (index, shape) in shapes.iter().enumerate() {
            let Some(shape) = shape.as_ref().filter(|shape| shape.tcp.is_some() == responsive) else { continue };
            let count = active(network, outcome, index, (part.from, part.to));
            if count > 0 && !shape.many {
                let kept = kept_acks(network, outcome, index);
                demands.push(Demand::new(network, (index, shape), count, part, kept, &mut of_some));
            }
        }
        unused.of_some.resize(of_some.len(), 1.0);
        unused.fill(demands, &mut bounds);
    }
    bounds
}

/// The demand of one traffic's active flows, and the cost of a bit of their payload.
struct Demand {
    traffic: usize,
    count: f64,
    /// The highest rate of a flow apart from links.
    cap: Bound,
    costs: Vec<Cost>,
}

/// The share of a resource that one bit/s of payload takes.
struct Cost {
    resource: Resource,
    share: f64,
    /// The resource in words.
    words: String,
}

/// A link's rate, for data and for ACKs, and the rate of a class or policer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Resource {
    Data(usize),
    Acks(usize),
    /// Of a link: the number of the constraint among all that only some data pass.
    OfSome(usize, usize),
}

impl Resource {
    const fn link(self) -> usize {
        match self {
            Self::Data(link) | Self::Acks(link) | Self::OfSome(link, _) => link,
        }
    }
}

impl Demand {
    /// `of_some` has the constraints that only some data pass.
    fn new(
        network: &Network,
        (traffic, shape): (usize, &Shape),
        count: usize,
        part: &Interval,
        kept: f64,
        of_some: &mut Vec<(usize, Constraint)>,
    ) -> Self {
        let mut costs: Vec<Cost> = Vec::new();
        let mut cap = cap(network, traffic, shape);
        for of in &shape.constraints {
            let (index, constraint) = of;
            let link = &network.links[*index];
            let mut bps = shape.mean_bps(link, constraint, (part.from, part.to));
            if let Constraint::Cells(limit) = constraint {
                if bps < cap.bps {
                    cap = Bound::of_link(*index, bps, limit.words());
                }
                if !limit.is_shared_by(count) {
                    continue;
                }
                bps *= limit.channels();
            }
            let resource = if constraint.is_of_some() {
                let number = of_some.iter().position(|other| other == of).unwrap_or(of_some.len());
                if number == of_some.len() {
                    of_some.push(of.clone());
                }
                Resource::OfSome(*index, number)
            } else {
                Resource::Data(*index)
            };
            let share = bps.recip();
            let cost = Cost { resource, share, words: shape.on_full_packets(link, constraint).words(link) };
            // The strictest of all packets on a link.
            match costs.iter_mut().find(|cost| cost.resource == resource) {
                Some(other) if other.share < share => *other = cost,
                Some(_) => {}
                None => costs.push(cost),
            }
        }
        if let Some(tcp) = &shape.tcp {
            costs.extend(acks(network, shape, *tcp, part, kept));
        }
        Self { traffic, count: format::to_f64(count as u64), cap, costs }
    }

    fn cost(&self, resource: Resource) -> f64 {
        self.costs.iter().filter(|cost| cost.resource == resource).map(|cost| cost.share).sum()
    }
}

/// The share of the ACKs of this traffic that no queue dropped, over the run.
fn kept_acks(network: &Network, outcome: &Outcome, traffic: usize) -> f64 {
    let ends = outcome.flows.iter().filter(|flow| flow.traffic == traffic).filter_map(|flow| flow.tcp.as_ref());
    let sent: u64 = ends.map(|end| end.acks_sent).sum();
    let counts = network.traffic.iter().map(|traffic| traffic.count as usize);
    let first: usize = counts.clone().take(traffic).sum();
    let own = first..first + counts.clone().nth(traffic).unwrap_or(0);
    let lost =
        outcome.losses.iter().filter(|(loss, _)| own.contains(&loss.flow) && loss.back && loss.cause.is_of_queue());
    let lost: u64 = lost.map(|(_, count)| count).sum();
    if lost == 0 { 1.0 } else { format::to_f64(sent.saturating_sub(lost)) / format::to_f64(sent.max(lost)) }
}

/// The cost of a bit of payload in ACKs, on each link of their path before one that thins them. `kept`: the share that
/// arrives of the ACKs of QUIC, which links do not count apart from its data.
fn acks(network: &Network, shape: &Shape, tcp: TcpShape, part: &Interval, kept: f64) -> Vec<Cost> {
    let Some(most) = tcp.most_per_ack else { return Vec::new() };
    let covers = format::to_f64(shape.payload * most) * 8.0;
    let mut sent = if tcp.hidden { kept } else { 1.0 };
    let every = shape.ack_path.iter().take_while(|index| !tcp.is_thinned(&network.links[**index].hop.queue));
    let cost = |index: &usize| {
        if !tcp.hidden {
            sent *= part.kept_acks(*index);
        }
        let link = &network.links[*index];
        let (acks, constraint) = Constraint::least(link, shape.ack_over(link, tcp), (part.from, part.to))?;
        let words = constraint.words_for_acks(link);
        Some(Cost { resource: Resource::Acks(*index), share: sent / (acks * covers), words })
    };
    every.filter_map(cost).collect()
}

/// The highest rate of one flow of `traffic` apart from links.
fn cap(network: &Network, traffic: usize, shape: &Shape) -> Bound {
    let payload_share = format::to_f64(shape.payload) / format::to_f64(shape.data.as_u64());
    let data = |bps: f64| Bound::of_ends(bps, format!("its source, which offers {}", format::rate(bps)));
    let offered = |ip_bps: f64| data(ip_bps * payload_share);
    match (&network.traffic[traffic].source, shape.tcp) {
        (Source::Bulk { .. } | Source::Quic { .. }, Some(tcp)) => by_window(network, shape, &tcp),
        (Source::Writes { rate, .. }, Some(tcp)) => {
            let window = by_window(network, shape, &tcp);
            let source = data(format::to_f64(rate.as_bps()));
            if source.bps < window.bps { source } else { window }
        }
        (Source::Poisson { rate, .. }, _) => offered(format::to_f64(rate.as_bps())),
        (Source::OnOff { peak, on, off, .. }, _) => {
            let (on, off) = (on.as_secs_f64(), off.as_secs_f64());
            offered(format::to_f64(peak.as_bps()) * on / (on + off))
        }
        (Source::Constant { interval, size, .. }, _) => {
            offered(format::to_f64(size.as_u64()) * 8.0 / interval.as_secs_f64())
        }
        (_, _) => Bound::of_ends(0.0, ""),
    }
}

/// The unused share of every resource.
struct Unused {
    data: Vec<f64>,
    acks: Vec<f64>,
    of_some: Vec<f64>,
}

impl Unused {
    fn new(network: &Network) -> Self {
        let links = vec![1.0; network.links.len()];
        Self { data: links.clone(), acks: links, of_some: Vec::new() }
    }

    fn left(&self, resource: Resource) -> f64 {
        match resource {
            Resource::Data(link) => self.data[link],
            Resource::Acks(link) => self.acks[link],
            Resource::OfSome(_, number) => self.of_some[number],
        }
    }

    fn take(&mut self, resource: Resource, share: f64) {
        let left = match resource {
            Resource::Data(link) => &mut self.data[link],
            Resource::Acks(link) => &mut self.acks[link],
            Resource::OfSome(_, number) => &mut self.of_some[number],
        };
        *left = (*left - share).max(0.0);
    }

    /// Raises all of `demands` together, and freezes each at its cap or at an exhausted resource.
    fn fill(&mut self, mut demands: Vec<Demand>, bounds: &mut [Option<Bound>]) {
        while !demands.is_empty() {
            let (level, tight) = self.next_level(&demands);
            let is_held = |demand: &Demand| match tight {
                Some(resource) => demand.cost(resource) > 0.0,
                None => demand.cap.bps <= level,
            };
            let by = tight.map(|resource| Bound::of_link(resource.link(), level, name(resource, &demands)));
            let (frozen, rising): (Vec<Demand>, Vec<Demand>) = demands.into_iter().partition(is_held);
            debug_assert!(!frozen.is_empty(), "every round holds at least one demand");
            for demand in frozen {
                for cost in &demand.costs {
                    self.take(cost.resource, cost.share * level * demand.count);
                }
                bounds[demand.traffic] = Some(by.clone().unwrap_or(Bound { bps: level, ..demand.cap }));
            }
            demands = rising;
        }
    }

    /// The rate at which the first of `demands` is frozen, and the exhausted resource; `None` for a
    /// cap.
    fn next_level(&self, demands: &[Demand]) -> (f64, Option<Resource>) {
        let cap = demands.iter().map(|demand| demand.cap.bps).fold(f64::INFINITY, f64::min);
        let mut least = (cap, None);
        for resource in demands.iter().flat_map(|demand| &demand.costs).map(|cost| cost.resource) {
            let cost: f64 = demands.iter().map(|demand| demand.cost(resource) * demand.count).sum();
            let level = self.left(resource) / cost;
            if level < least.0 {
                least = (level, Some(resource));
            }
        }
        least
    }
}

fn name(resource: Resource, demands: &[Demand]) -> String {
    let sharing: f64 = demands.iter().filter(|demand| demand.cost(resource) > 0.0).map(|demand| demand.count).sum();
    let costs = || demands.iter().flat_map(|demand| &demand.costs).filter(|cost| cost.resource == resource);
    let words = costs().next().map_or("", |cost| cost.words.as_str());
    match (resource, sharing > 1.0) {
        (_, false) => words.to_owned(),
        (Resource::Data(_) | Resource::OfSome(..), true) => format!("{words}, shared by {sharing}"),
        (Resource::Acks(_), true) => format!("{words}, of {sharing} flows"),
    }
}
