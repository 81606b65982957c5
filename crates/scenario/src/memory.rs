//! A lower bound of the memory of a run, as far as it follows from the file.
//!
//! The bound counts what follows from the file alone: samples, flows, the state of each flow and link at each
//! change of the traffic, and packets of sources that do not react. It leaves out the packets of TCP and of
//! random sources in queues, which only the run shows.

use lastmile_model::{Link, Network, Source, Steady, Traffic};
use lastmile_queueing::{Limit, Spec, fifo};
use lastmile_units::{ByteCount, Duration, Instant};

use crate::diagnostics::Place;
use crate::reader::Table;
use crate::topology;

/// A sample of a series: a time and a value.
const SAMPLE: u64 = 16;
/// Series of a link of packets, and of a flow with TCP.
const SERIES: [u64; 2] = [4, 6];
/// A flow: both ends of its connection and its row in the results.
const FLOW: u64 = 800;
/// A packet in a queue or on a wire.
const PACKET: u64 = 36;
/// Bytes recorded for a flow, or for a link, when the traffic changes.
const SNAPSHOT: u64 = 100;

/// A part of what a run will need, and the key that says how much.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Need {
    /// The part of the run, in words: `100000 samples of 804 series`.
    pub what: String,
    /// Bytes.
    pub bytes: u64,
    /// The key, as a path: `record.interval`.
    pub key: String,
    /// Where the key is.
    pub place: Place,
    /// A setting that would need less.
    pub hint: String,
    /// It is kept with the results when the run is over.
    pub is_kept: bool,
}

/// Where the keys of `[record]` are that say how much is recorded.
pub(crate) struct Recorded {
    pub(crate) interval: Place,
    pub(crate) flows: Place,
}

/// The needs of `network`, whose traffic was read from these tables.
pub(crate) fn needs(network: &Network, recorded: &Recorded, tables: &[Table<'_>]) -> Vec<Need> {
    let mut needs: Vec<Need> = samples(network, recorded).into_iter().chain(snapshots(network, recorded)).collect();
    for (traffic, table) in network.traffic.iter().zip(tables) {
        let count = u64::from(traffic.count);
        needs.push(Need {
            what: format!("{count} flows"),
            bytes: count * FLOW,
            key: table.path("count"),
            place: table.place("count"),
            hint: "fewer flows".to_owned(),
            is_kept: false,
        });
        if let Some((key, packets)) = undelivered(network, traffic) {
            needs.push(Need {
                what: format!("{packets} packets in queues and on wires"),
                bytes: packets.saturating_mul(PACKET),
                key: table.path(key),
                place: table.place(key),
                hint: "fewer packets, a shorter delay of the links, or a smaller limit of their queues".to_owned(),
                is_kept: false,
            });
        }
    }
    needs
}

/// The series.
fn samples(network: &Network, recorded: &Recorded) -> Option<Need> {
    let interval = network.record.interval?;
    let samples = network.duration / interval;
    let flows: u64 = network.traffic.iter().map(|traffic| u64::from(traffic.count)).sum();
    let sampled = if flows <= network.record.flow_limit as u64 { flows } else { 0 };
    let cells = network.atm.as_ref().map_or(0, |atm| atm.links.len()) as u64;
    let series = (network.links.len() as u64 - cells) * SERIES[0] + cells + sampled * SERIES[1];
    let bytes = samples.saturating_mul(series).saturating_mul(SAMPLE);
    Some(Need {
        what: format!("{samples} samples of up to {series} series"),
        bytes,
        key: "record.interval".to_owned(),
        place: recorded.interval.clone(),
        hint: "a longer interval, or series = false".to_owned(),
        is_kept: true,
    })
}

/// The records of each flow and link when the traffic changes.
fn snapshots(network: &Network, recorded: &Recorded) -> Option<Need> {
    let flows: u64 = network.traffic.iter().map(|traffic| u64::from(traffic.count)).sum();
    if flows > network.record.flow_limit as u64 {
        return None;
    }
    let end = Instant::ZERO + network.duration;
    let mut changes: Vec<Instant> =
        network.traffic.iter().flat_map(|one| [Some(one.start), one.stop]).flatten().collect();
    changes.retain(|at| *at < end);
    changes.sort_unstable();
    changes.dedup();
    let entries = (changes.len() as u64 + 1) * (flows + network.links.len() as u64);
    Some(Need {
        what: format!("{entries} entries of what flows and links had done when the traffic changed"),
        bytes: entries * SNAPSHOT,
        key: "record.flows".to_owned(),
        place: recorded.flows.clone(),
        hint: "a smaller number of flows up to which each has phases of its own".to_owned(),
        is_kept: false,
    })
}

/// Packets that links hold, at the end or before, of a source that sends at equal intervals whatever becomes
/// of them, as if it were alone on its way; and the key that says how often it sends.
fn undelivered(network: &Network, traffic: &Traffic) -> Option<(&'static str, u64)> {
    let Source::Constant { interval, size, kind } = traffic.source else { return None };
    let end = traffic.stop.unwrap_or(Instant::MAX).min(Instant::ZERO + network.duration);
    let lasts = end.since(traffic.start);
    let sent_in =
        |span: Duration| u128::from(span.as_ps()) * u128::from(traffic.count) / u128::from(interval.as_ps().max(1));
    let mut coming = sent_in(lasts);
    let mut held = 0;
    for link in topology::path(&network.nodes, &network.links, traffic.from, traffic.to)? {
        let link = &network.links[link];
        let carried = carried_in(link, size, lasts).unwrap_or(u128::MAX);
        held += coming.saturating_sub(carried).min(limit(&link.hop.queue, size));
        coming = coming.min(carried);
        let on_wire = carried_in(link, size, link.hop.line.delay).unwrap_or(u128::MAX);
        held += sent_in(link.hop.line.delay).min(on_wire).min(coming);
    }
    Some((if kind == Steady::Blast { "rate" } else { "interval" }, u64::try_from(held).unwrap_or(u64::MAX)))
}

/// Packets of this size that a link sends in a span. `None`: sending takes no time.
fn carried_in(link: &Link, size: ByteCount, span: Duration) -> Option<u128> {
    let each = link.hop.line.rate?.time_for(link.hop.line.link_layer.on_wire(size));
    Some(u128::from(span.as_ps()) / u128::from(each.as_ps().max(1)))
}

/// Packets of this size that a queue holds, where a FIFO says so; what is shared by flows and classes may
/// hold less than it says.
fn limit(queue: &Spec, size: ByteCount) -> u128 {
    match queue {
        Spec::Fifo(fifo::Config { limit: Limit::Packets(packets), .. }) => packets.as_u64().into(),
        Spec::Fifo(fifo::Config { limit: Limit::Bytes(bytes), .. }) => (bytes.as_u64() / size.as_u64().max(1)).into(),
        Spec::Fifo(fifo::Config { limit: Limit::Wire(bytes), .. }) => (bytes.as_u64() / size.as_u64().max(1)).into(),
        _ => 0,
    }
}
