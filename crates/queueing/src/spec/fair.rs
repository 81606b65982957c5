//! Building what is fair to flows.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;

use super::aqm::check_times;
use super::{Problem, Spec};
use crate::Node;
use crate::fair::{FlowKeys, FqCodel, Sfq, fq_codel, sfq};

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
