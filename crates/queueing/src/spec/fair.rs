//! Building what is fair to flows.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::WireBytes;

use super::aqm::check_times;
use super::sched::{Built, check_classes, queues};
use super::{Problem, Spec};
use crate::fair::members::{Classes, PerFlow};
use crate::fair::scheduler::{Order, Scheduler};
use crate::fair::{Among, FlowKeys, FqCodel, Sfq, drr, fq_codel, sfq, wf2q_plus, wfq};
use crate::{Environment, Node};

pub(super) fn fq_codel<P: Packet + Send + 'static>(
    config: &fq_codel::Config,
    link_layer: &LinkLayer,
) -> Result<Node<P>, Problem> {
    if config.limit.as_u64() == 0 || config.memory.as_u64() == 0 {
        return Err(Problem::ZeroLimit);
    }
    if config.quantum.as_u64() == 0 {
        return Err(Problem::ZeroQuantum);
    }
    check_keys(config.flows)?;
    check_times(config.target, config.interval)?;
    Ok(Box::new(FqCodel::new(config, link_layer)))
}

pub(super) fn sfq<P: Packet + Send + 'static>(
    config: &sfq::Config,
    link_layer: &LinkLayer,
) -> Result<Node<P>, Problem> {
    if config.limit.as_u64() == 0 || config.depth.as_u64() == 0 {
        return Err(Problem::ZeroLimit);
    }
    if config.quantum.as_u64() == 0 {
        return Err(Problem::ZeroQuantum);
    }
    check_keys(config.flows)?;
    Ok(Box::new(Sfq::new(config, link_layer)))
}

fn check_keys(keys: FlowKeys) -> Result<(), Problem> {
    match keys {
        FlowKeys::Buckets { count, .. } if count.get() > Spec::MAX_BUCKETS => Err(Problem::Buckets(count.get())),
        FlowKeys::Buckets { .. } | FlowKeys::Exact => Ok(()),
    }
}

pub(super) fn check_among<S: Copy>(among: &Among<S>) -> Result<(), Problem> {
    match among {
        Among::Classes(classes) => check_classes(classes.iter().map(|class| &class.class)),
        Among::Flows { limit, .. } if limit.as_u64() == 0 => Err(Problem::ZeroLimit),
        Among::Flows { .. } => Ok(()),
    }
}

pub(super) fn check_drr(config: &drr::Config) -> Result<(), Problem> {
    check_among(config)?;
    let zero = match config {
        Among::Classes(classes) => classes.iter().any(|class| class.share.as_u64() == 0),
        Among::Flows { share, .. } => share.as_u64() == 0,
    };
    if zero { Err(Problem::ZeroQuantum) } else { Ok(()) }
}

pub(super) fn drr<P: Packet + Send + 'static>(
    config: &drr::Config,
    at: &mut Vec<String>,
    environment: &Environment,
) -> Built<P> {
    let order = drr::Drr::new(config.shares(WireBytes::as_u64));
    scheduler("drr", config, order, at, environment)
}

pub(super) fn wfq<P: Packet + Send + 'static>(
    config: &wfq::Config,
    at: &mut Vec<String>,
    environment: &Environment,
) -> Built<P> {
    let order = wfq::Wfq::new(config.shares(|weight| weight.get().into()));
    scheduler("wfq", config, order, at, environment)
}

pub(super) fn wf2q_plus<P: Packet + Send + 'static>(
    config: &wf2q_plus::Config,
    at: &mut Vec<String>,
    environment: &Environment,
) -> Built<P> {
    let order = wf2q_plus::Wf2qPlus::new(config.shares(|weight| weight.get().into()));
    scheduler("wf2q-plus", config, order, at, environment)
}

/// The order over checked members.
fn scheduler<P: Packet + Send + 'static, S: Copy>(
    kind: &'static str,
    among: &Among<S>,
    order: impl Order + Send + 'static,
    at: &mut Vec<String>,
    environment: &Environment,
) -> Built<P> {
    let link_layer = &environment.link_layer;
    Ok(match among {
        Among::Classes(classes) => {
            let (classifier, queues) = queues(classes.iter().map(|class| &class.class), at, environment)?;
            Box::new(Scheduler::new(kind, Classes::new(classifier, queues, link_layer), order))
        }
        Among::Flows { limit, .. } => Box::new(Scheduler::new(kind, PerFlow::new(*limit, link_layer), order)),
    })
}
