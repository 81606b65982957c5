//! Descriptors for the sockets of a lab: getrlimit(2).

use std::io;

use lastmile_live::error::Context as _;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::Error;

/// Descriptors of a process with a lab in it, next to those of flows.
const OTHER_DESCRIPTORS: u64 = 128;
/// Descriptors that a flow has at a time, at most: an application those of its connections.
const FLOW_DESCRIPTORS: u64 = 4;

/// Raises this process's limit of descriptors to what `sockets` flows and connections need.
///
/// # Errors
/// The process may not have enough.
pub(crate) fn reserve(sockets: u64) -> Result<(), Error> {
    let limit = raise(OTHER_DESCRIPTORS + FLOW_DESCRIPTORS * sockets)
        .context(|| "raising the number of descriptors of this process")?;
    let granted = limit.saturating_sub(OTHER_DESCRIPTORS) / FLOW_DESCRIPTORS;
    if granted < sockets { Err(Error::TooFewDescriptors { wanted: sockets, granted }) } else { Ok(()) }
}

/// Raises the limit of descriptors to at least `wanted`, as far as the process may; returns the new limit.
fn raise(wanted: u64) -> io::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    // `None`: without a limit.
    let (current, maximum) = (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX));
    if current >= wanted {
        return Ok(current);
    }
    let most = Rlimit { current: Some(wanted), maximum: limit.maximum.map(|maximum| maximum.max(wanted)) };
    let allowed = Rlimit { current: Some(wanted.min(maximum)), maximum: limit.maximum };
    // Root may raise the hard limit too, unless it is held in a container.
    let raised = [most, allowed].into_iter().find(|limit| setrlimit(Resource::Nofile, *limit).is_ok());
    Ok(raised.and_then(|limit| limit.current).unwrap_or(current))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_raised_and_never_lowered() {
        let now = raise(0).unwrap();
        assert!(now > 0);
        assert_eq!(raise(now).unwrap(), now);
        assert!(raise(now + 1).unwrap() >= now);
        assert!(raise(1).unwrap() >= now);
    }
}
