//! Results of each link.

use lastmile_model::Link as LinkSpec;
use lastmile_model::outcome::LinkOutcome;
use lastmile_queueing::{DropReason, Limit, Spec};

use lastmile_units::Instant;

use super::run::Run;
use super::statistics::{delay, grants};
use crate::bounds::Span;
use crate::format::to_f64;
use crate::interval::share_of_wire;
use crate::schema::{ClassDelay, Counter, Disorder, Link, LinkQueue, QueueLimit};

impl Run<'_> {
    pub(super) fn links(&self) -> Vec<Link> {
        let links = self.network.links.iter().zip(&self.outcome.links).enumerate();
        links.map(|(index, (spec, link))| self.link(index, spec, link)).collect()
    }

    /// The most payload that full packets of a source on this link carry in a span.
    pub(super) fn payload_capacity_bps(&self, index: usize, spec: &LinkSpec, span: Span) -> Option<f64> {
        let crossing = self.shapes.iter().flatten().filter(|shape| shape.data_path.contains(&index));
        crossing.filter_map(|shape| shape.capacity_bps(spec, span)).reduce(f64::max)
    }

    fn link(&self, index: usize, spec: &LinkSpec, link: &LinkOutcome) -> Link {
        let node = |node: usize| self.network.nodes[node].name.clone();
        let wire_bits = link.wire_bits;
        let duration = self.outcome.duration;
        let whole = (Instant::ZERO, Instant::ZERO + duration);
        let mean_rate = spec.hop.line.mean_rate(duration);
        let share = |bits: u64| {
            let (bps, seconds) = (to_f64(mean_rate?.as_bps()), duration.as_secs_f64());
            // Bits a second of a rate that changes are whole, too.
            Some(share_of_wire(spec, to_f64(bits), bps * seconds, 1.0 + seconds))
        };
        // The packet on the wire at the end counts as far as it was transmitted.
        let ip_share = |share: f64| share * to_f64(link.stats.transmitted.bytes * 8) / to_f64(link.begun_bits.max(1));
        let drops = DropReason::ALL.iter().map(|reason| (reason.name().to_owned(), link.stats.dropped[reason.index()]));
        Link {
            name: spec.hop.name.clone(),
            from: node(spec.from),
            to: node(spec.to),
            rate_bps: mean_rate.map(|rate| to_f64(rate.as_bps())),
            delay_s: spec.hop.line.delay.as_secs_f64(),
            payload_capacity_bps: self.payload_capacity_bps(index, spec, whole),
            limit: limit(&spec.hop.queue),
            wire_bits,
            ip_bytes: link.stats.transmitted.bytes,
            packets: link.stats.transmitted.packets,
            cells: link.cells.unwrap_or(0),
            utilisation: share(wire_bits).filter(|share| share.is_finite()),
            utilisation_ip: share(wire_bits).map(ip_share).filter(|share| share.is_finite()),
            disorder: Disorder { duplicated: link.stats.duplicated.packets, reordered: link.stats.reordered.packets },
            queue: LinkQueue {
                shaper_rate_bps: spec
                    .hop
                    .queue
                    .shapers()
                    .iter()
                    .map(|shaper| to_f64(shaper.rate.as_bps()))
                    .reduce(f64::min),
                queue_delay_s: delay(&link.queue_delay_ns),
                ack_queue_delay_s: delay(&link.ack_queue_delay_ns),
                class_queue_delays: link
                    .class_queue_delay_ns
                    .iter()
                    .map(|(class, waits)| ClassDelay { class: class.clone(), queue_delay_s: delay(waits) })
                    .collect(),
                max_backlog_packets: link.max_backlog_packets,
                max_backlog_bytes: link.max_backlog_bytes,
                dropped_bytes: drops
                    .clone()
                    .filter(|(_, c)| c.packets > 0)
                    .map(|(name, count)| (name, count.bytes))
                    .collect(),
                drops: drops.map(|(name, count)| (name, count.packets)).collect(),
                counters: link
                    .counters
                    .iter()
                    .map(|(part, kind, name, value)| Counter {
                        part: part.clone(),
                        kind: (*kind).to_owned(),
                        name: (*name).to_owned(),
                        value: *value,
                    })
                    .collect(),
                grants: link.grants.as_ref().map(grants),
            },
        }
    }
}

/// The queue's limit, if it has one.
fn limit(queue: &Spec) -> QueueLimit {
    let mut of = QueueLimit::default();
    match queue.limit() {
        Some(Limit::Bytes(bytes)) => of.queue_limit_bytes = Some(bytes.as_u64()),
        Some(Limit::Packets(packets)) => of.queue_limit_packets = Some(packets.as_u64()),
        Some(Limit::Wire(bytes)) => of.queue_limit_wire_bytes = Some(bytes.as_u64()),
        Some(Limit::Cells(_)) | None => {}
    }
    of
}
