//! Checks of the description of a network.

use std::collections::BTreeMap;

use lastmile_units::CellCount;

use super::error::NetworkError;
use super::spec::{Abr, AbrPort, LinkId, LinkSpec, NetworkSpec, Queues, Upc, VcSpec};
use crate::contract::Contract;
use crate::discard::DiscardError;

/// An index of a VC, link or VP has 16 bits.
const MOST: usize = 65_535;
const MOST_VPI: u16 = 4095;
const LEAST_VCI: u16 = 32;
const BILLION: u32 = 1_000_000_000;

pub(super) fn check(spec: &NetworkSpec) -> Result<(), NetworkError> {
    // RM cells of ABR go back on VCs of their own.
    let back = spec.vcs.iter().filter(|vc| vc.abr.is_some()).count();
    let counts = [("VCs", spec.vcs.len() + back), ("links", spec.links.len()), ("VPs", spec.vps.len())];
    if let Some(&(kind, count)) = counts.iter().find(|(_, count)| *count > MOST) {
        return Err(NetworkError::TooMany { kind, count, most: MOST });
    }
    for (index, link) in spec.links.iter().enumerate() {
        check_link(spec, index, link)?;
    }
    for vp in &spec.vps {
        if let Some(upc) = &vp.upc {
            check_upc(spec, upc, || format!("VP \"{}\"", vp.name))?;
            if matches!(upc.contract, Contract::Gfr { .. }) {
                return Err(NetworkError::FramesOfPath { vp: vp.name.clone() });
            }
        }
    }
    for vc in &spec.vcs {
        check_vc(spec, vc)?;
    }
    check_identifiers(spec)
}

fn known(whose: impl Fn() -> String, kind: &'static str, index: usize, count: usize) -> Result<(), NetworkError> {
    if index < count { Ok(()) } else { Err(NetworkError::Unknown { whose: whose(), kind, index, count }) }
}

fn ends(spec: &NetworkSpec, link: &LinkSpec) -> [String; 2] {
    [link.from, link.to].map(|node| spec.nodes[node.index()].name.clone())
}

fn check_link(spec: &NetworkSpec, index: usize, link: &LinkSpec) -> Result<(), NetworkError> {
    for node in [link.from, link.to] {
        known(|| format!("link {index}"), "node", node.index(), spec.nodes.len())?;
    }
    let [from, to] = ends(spec, link);
    let whose = format!("link from \"{from}\" to \"{to}\"");
    if let Some(pace) = link.pace
        && pace > link.rate
    {
        return Err(NetworkError::PaceAboveRate { whose, pace, rate: link.rate });
    }
    if link.loss_ppb > BILLION {
        return Err(NetworkError::LossAboveAll { whose, loss_ppb: link.loss_ppb });
    }
    let queues = match &link.queues {
        Queues::Fifo(queue) | Queues::PerVc(queue) => vec![*queue],
        Queues::Classes(classes) => {
            if let Some(class) = classes.iter().position(|class| class.weight == 0) {
                return Err(NetworkError::NoWeight { whose: format!("class {class} of the {whose}") });
            }
            classes.iter().map(|class| class.queue).collect()
        }
    };
    if queues.is_empty() {
        return Err(NetworkError::NoClasses { from, to });
    }
    let wrong = match &link.abr {
        Some(AbrPort::Efci { threshold }) if *threshold == CellCount::ZERO => {
            Err(DiscardError::NoThreshold { threshold: "EFCI threshold" })
        }
        _ => Ok(()),
    };
    if let Err(error) = wrong {
        return Err(NetworkError::Queue { from, to, error });
    }
    if let Some(AbrPort::Erica(config)) = &link.abr {
        config.check().map_err(|error| NetworkError::Abr { whose: whose.clone(), error })?;
    }
    let memory = spec.nodes[link.from.index()].shared_memory.or_else(|| link.queues.hold());
    for queue in queues {
        if let Err(error) = queue.discard.rules(queue.limit, memory) {
            return Err(NetworkError::Queue { from, to, error });
        }
    }
    Ok(())
}

fn check_upc(spec: &NetworkSpec, upc: &Upc, whose: impl Fn() -> String) -> Result<(), NetworkError> {
    known(&whose, "link", upc.at.index(), spec.links.len())?;
    upc.contract.check().map_err(|error| NetworkError::Contract { whose: whose(), error })
}

fn check_vc(spec: &NetworkSpec, vc: &VcSpec) -> Result<(), NetworkError> {
    let name = || vc.name.clone();
    let whose = || format!("VC \"{}\"", vc.name);
    if vc.vpi > MOST_VPI || vc.vci < LEAST_VCI {
        return Err(NetworkError::Identifier { vc: name(), vpi: vc.vpi, vci: vc.vci });
    }
    if vc.weight == 0 {
        return Err(NetworkError::NoWeight { whose: whose() });
    }
    check_route(spec, vc)?;
    let first = &spec.links[vc.route[0].index()];
    if let Some(pace) = vc.pcr
        && pace > first.rate
    {
        return Err(NetworkError::PaceAboveRate { whose: whose(), pace, rate: first.rate });
    }
    if let Some(abr) = &vc.abr {
        check_abr(spec, vc, abr)?;
    }
    for link in &vc.route {
        if let Queues::Classes(classes) = &spec.links[link.index()].queues {
            known(whose, "class", vc.class, classes.len())?;
        }
    }
    if let Some(upc) = &vc.upc {
        check_upc(spec, upc, whose)?;
        if !vc.route.contains(&upc.at) {
            return Err(NetworkError::PolicedElsewhere { whose: whose() });
        }
    }
    if let Some(vp) = vc.vp {
        known(whose, "VP", vp.index(), spec.vps.len())?;
        let vp = &spec.vps[vp.index()];
        if vp.upc.is_some_and(|upc| !vc.route.contains(&upc.at)) {
            return Err(NetworkError::PolicedElsewhere { whose: format!("VC \"{}\" of VP \"{}\"", vc.name, vp.name) });
        }
    }
    Ok(())
}

/// The source makes sense, and RM cells go back node by node.
fn check_abr(spec: &NetworkSpec, vc: &VcSpec, abr: &Abr) -> Result<(), NetworkError> {
    let whose = || format!("VC \"{}\"", vc.name);
    abr.parameters.check().map_err(|error| NetworkError::Abr { whose: whose(), error })?;
    let link = |id: &LinkId| &spec.links[id.index()];
    let first = link(&vc.route[0]);
    if abr.parameters.pcr > first.rate {
        return Err(NetworkError::PaceAboveRate { whose: whose(), pace: abr.parameters.pcr, rate: first.rate });
    }
    for id in &abr.back {
        known(whose, "link", id.index(), spec.links.len())?;
    }
    let there = vc.route.iter().rev().map(|id| (link(id).to, link(id).from));
    if !there.eq(abr.back.iter().map(|id| (link(id).from, link(id).to))) {
        let name = |node: super::NodeId| spec.nodes[node.index()].name.clone();
        let last = link(vc.route.last().expect("checked"));
        return Err(NetworkError::AbrBack { vc: vc.name.clone(), from: name(last.to), to: name(first.from) });
    }
    Ok(())
}

fn check_route(spec: &NetworkSpec, vc: &VcSpec) -> Result<(), NetworkError> {
    let name = || vc.name.clone();
    if vc.route.is_empty() {
        return Err(NetworkError::NoRoute { vc: name() });
    }
    let mut nodes = Vec::new();
    for link in &vc.route {
        known(|| format!("VC \"{}\"", vc.name), "link", link.index(), spec.links.len())?;
        let link = &spec.links[link.index()];
        if let Some(&before) = nodes.last()
            && before != link.from
        {
            let node = |node: super::NodeId| spec.nodes[node.index()].name.clone();
            return Err(NetworkError::BrokenRoute { vc: name(), to: node(before), from: node(link.from) });
        }
        if nodes.is_empty() {
            nodes.push(link.from);
        }
        if nodes.contains(&link.to) {
            return Err(NetworkError::RouteLoop { vc: name(), node: spec.nodes[link.to.index()].name.clone() });
        }
        nodes.push(link.to);
    }
    Ok(())
}

/// No two VCs of a link have the same VPI and VCI.
fn check_identifiers(spec: &NetworkSpec) -> Result<(), NetworkError> {
    let mut taken = BTreeMap::new();
    for vc in &spec.vcs {
        for link in &vc.route {
            if let Some(other) = taken.insert((link.index(), vc.vpi, vc.vci), &vc.name) {
                let [from, to] = ends(spec, &spec.links[link.index()]);
                let (one, other) = (other.clone(), vc.name.clone());
                return Err(NetworkError::SameIdentifier { one, other, vpi: vc.vpi, vci: vc.vci, from, to });
            }
        }
    }
    Ok(())
}
