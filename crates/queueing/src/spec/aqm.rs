//! Building what manages queues actively.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::Duration;

use super::Problem;
use super::check::check_limit;
use crate::Node;
use crate::aqm::{CoDel, Red, codel, red};

pub(super) fn codel<P: Packet + Send + 'static>(
    config: &codel::Config,
    link_layer: &LinkLayer,
) -> Result<Node<P>, Problem> {
    check_limit(config.limit, link_layer)?;
    check_times(config.target, config.interval)?;
    Ok(Box::new(CoDel::new(config, link_layer).ok_or(Problem::NoCells)?))
}

pub(super) fn red<P: Packet + Send + 'static>(
    config: &red::Config,
    link_layer: &LinkLayer,
) -> Result<Node<P>, Problem> {
    check_limit(config.limit, link_layer)?;
    Ok(Box::new(Red::new(config, link_layer)?.ok_or(Problem::NoCells)?))
}

pub(super) fn check_times(target: Duration, interval: Duration) -> Result<(), Problem> {
    if target < interval { Ok(()) } else { Err(codel::TimesError { target, interval }.into()) }
}
