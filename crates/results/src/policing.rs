//! Policers, contracts and shapers as causes: the buckets whose lack of tokens dropped a flow's
//! packets, and the rate to which a queue shapes.

use std::collections::BTreeMap;

use lastmile_atm::CellDrop;
use lastmile_atm::contract::{Contract, Peak, Sustainable};
use lastmile_atm::network::{Upc, VcSpec};
use lastmile_model::outcome::{Loss, LossCause};
use lastmile_model::{Atm, Network};
use lastmile_queueing::meter::policer;
use lastmile_queueing::meter::policer::{Rule, Then};
use lastmile_queueing::spec::{Over, Spec};
use lastmile_queueing::{DropReason, meter};
use lastmile_units::BitRate;

use crate::format;

/// The policers that dropped packets of a flow, the number of packets, and the enforced rates.
/// `None` without such drops.
///
/// `member` is the flow's number within its traffic, which determines its virtual channel.
pub(crate) fn words<'a>(
    network: &Network,
    (traffic, member): (usize, usize),
    losses: impl Iterator<Item = &'a (Loss, u64)>,
) -> Option<String> {
    let mut policed: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (loss, count) in losses {
        if let Some(policer) = policer(network, (traffic, member), loss) {
            policed.entry(policer).or_default()[usize::from(loss.back)] += count;
        }
    }
    let policers: Vec<String> =
        policed.into_iter().map(|(policer, counts)| format!("{policer} drops {}", counted(counts))).collect();
    (!policers.is_empty()).then(|| policers.join("; "))
}

/// Dropped packets of the data and of the receiver of a flow, in words.
pub(crate) fn counted([data, back]: [u64; 2]) -> String {
    let packets = |count: u64| format!("{} packet{}", format::grouped(count), if count == 1 { "" } else { "s" });
    match (data, back) {
        (data, 0) => packets(data),
        (0, back) => format!("{} of its receiver", packets(back)),
        (data, back) => format!("{} and {} of its receiver", packets(data), format::grouped(back)),
    }
}

/// The policer that dropped a packet, with its rates; `None` for any other cause.
fn policer(network: &Network, (traffic, member): (usize, usize), loss: &Loss) -> Option<String> {
    match loss.cause {
        LossCause::Packet(DropReason::Policed) => {
            let link = &network.links[loss.link];
            let rates: Vec<String> =
                rules(&link.hop.queue).filter(|rule| drops(rule)).filter_map(|rule| rate(&rule.meter)).collect();
            let rates = match rates.as_slice() {
                [only] => format!(" ({only})"),
                _ => String::new(),
            };
            Some(format!("the policer of link {}{rates}", link.hop.name))
        }
        LossCause::Edge => {
            let atm = network.atm.as_ref()?;
            let circuit =
                atm.circuits.iter().find(|circuit| (circuit.traffic, circuit.back) == (traffic, loss.back))?;
            let edge = &atm.edges[circuit.edge?];
            let rate =
                edge.conditioner.meter.as_ref().and_then(rate).map_or_else(String::new, |rate| format!(" ({rate})"));
            Some(format!("the meter of edge {}{rate}", edge.name))
        }
        LossCause::Cell(CellDrop::PeakRate | CellDrop::SustainableRate | CellDrop::FrameConformance) => {
            Some(contract(network.atm.as_ref()?, (traffic, member), loss))
        }
        _ => None,
    }
}

/// The contract whose policer dropped a cell, the exceeded rate, and whether the source shapes its
/// cells.
fn contract(atm: &Atm, (traffic, member): (usize, usize), loss: &Loss) -> String {
    let circuits = atm.circuits.iter().filter(|circuit| (circuit.traffic, circuit.back) == (traffic, loss.back));
    // On a path over several VCs the loss is counted at the last link of the VC that lost the cell.
    let vcs = circuits.filter_map(|circuit| circuit.vcs.get(member % circuit.vcs.len().max(1)));
    let vc = vcs
        .map(|vc| &atm.network.vcs[vc.index()])
        .find(|vc| vc.route.last().is_some_and(|last| atm.links[last.index()] == loss.link));
    let Some(vc) = vc else { return "a policer of cells".to_owned() };
    let own = vc.upc.as_ref().map(|upc| (format!("virtual channel {}", vc.name), upc));
    let path = vc.vp.map(|vp| &atm.network.vps[vp.index()]);
    let path = path.and_then(|path| Some((format!("virtual path {}", path.name), path.upc.as_ref()?)));
    let exceeded = |(_, upc): &(String, &Upc)| limit(&upc.contract, loss.cause).is_some();
    let policers: Vec<(String, &Upc)> = own.into_iter().chain(path).filter(exceeded).collect();
    let (of, limit) = match policers.as_slice() {
        [(of, upc)] => (of.clone(), limit(&upc.contract, loss.cause).unwrap_or_default()),
        _ => (format!("virtual channel {}", vc.name), "its rate".to_owned()),
    };
    format!("the policer of {of} (above {limit}{})", shaping(vc))
}

/// Unshaped sources send the cells of a packet back to back, at the rate of their first link.
fn shaping(vc: &VcSpec) -> String {
    match vc.pcr {
        Some(rate) => format!("; its source shapes to {}", of(rate)),
        None => "; its source does not shape its cells".to_owned(),
    }
}

/// The rate of a contract that a drop of this cause enforces.
fn limit(contract: &Contract, cause: LossCause) -> Option<String> {
    let (peak, sustainable): (Option<Peak>, Option<(&str, Sustainable)>) = match *contract {
        Contract::Dbr { peak } => (Some(peak), None),
        Contract::Sbr { peak, sustainable, .. } => (Some(peak), Some(("SCR", sustainable))),
        Contract::Ubr { peak, .. } => (peak, None),
        Contract::Gfr { peak, minimum, .. } => (Some(peak), Some(("MCR", minimum))),
    };
    match cause {
        LossCause::Cell(CellDrop::SustainableRate) => {
            sustainable.map(|(name, rate)| format!("{name} {}, MBS {} cells", of(rate.rate), rate.mbs.as_u64()))
        }
        LossCause::Cell(CellDrop::PeakRate) => {
            peak.map(|peak| format!("PCR {}, CDVT {}", of(peak.rate), format::seconds(peak.cdvt.as_secs_f64())))
        }
        // GFR drops the rest of a frame after a cell that exceeds the peak rate or the longest
        // frame.
        LossCause::Cell(CellDrop::FrameConformance) => {
            let Contract::Gfr { peak, mfs, .. } = contract else { return None };
            Some(format!("PCR {} or MFS {} cells", of(peak.rate), mfs.as_u64()))
        }
        _ => None,
    }
}

/// The rules of the policers above the first scheduler of a queue, and of those below it.
fn rules(queue: &Spec) -> Box<dyn Iterator<Item = &Rule> + '_> {
    let own = match queue {
        Spec::Policer(Over { config: policer::Config { rules, .. }, .. }) => rules.as_slice(),
        _ => &[],
    };
    Box::new(own.iter().chain(queue.below().into_iter().flat_map(rules)))
}

fn drops(rule: &Rule) -> bool {
    [rule.conform, rule.exceed, rule.violate].iter().any(|action| action.then == Then::Drop)
}

/// The rate and the bucket of a meter.
fn rate(meter: &meter::Config) -> Option<String> {
    let bucket = |rate, bytes: u64| format!("{}, bucket of {}", of(rate), format::bytes(bytes));
    match meter {
        meter::Config::TokenBucket { rate, burst } => Some(bucket(*rate, burst.as_u64())),
        meter::Config::Car(car) => Some(bucket(car.rate, car.burst.as_u64())),
        meter::Config::SrTcm(meter) => Some(bucket(meter.cir, meter.cbs.as_u64())),
        meter::Config::TrTcm(meter) => Some(bucket(meter.pir, meter.pbs.as_u64())),
        meter::Config::Gcra(gcra) => {
            Some(format!("{}, tolerance {}", of(gcra.rate), format::seconds(gcra.tolerance.as_secs_f64())))
        }
        meter::Config::Police(police) => Some(bucket(police.rate, police.burst.as_u64())),
    }
}

fn of(rate: BitRate) -> String {
    format::rate(format::to_f64(rate.as_bps()))
}
