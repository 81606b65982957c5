//! The member that has a share of a fair queue: each flow, or each host.
//!
//! Published: Brouer 2005, chapter 6 (ESFQ: SFQ with a hash of source, of destination, or of both); tc-flow(8),
//! `hash keys`; tc-cake(8), `srchost`, `dsthost` and `hosts`. A host that opens more connections gets no more of the
//! line. Packets without readable addresses share one queue.
//!
//! Differs from ESFQ and tc-flow(8): addresses are hashed to 64 bits with a secret key where strangers choose them,
//! so that no host can choose the queue of another.
//! Cost: O(1); for hosts the addresses are read from the packet and hashed.

use core::fmt;
use core::hash::BuildHasher;
use std::sync::Arc;

use lastmile_packet::{FlowDirectory, HashKey, Packet};

use crate::Environment;

/// The packets that share a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Per {
    /// All of one flow: addresses, ports and protocol.
    #[default]
    Flow,
    /// All from one source address.
    Source,
    /// All to one destination address.
    Destination,
    /// All from one source address to one destination address.
    Hosts,
}

impl Per {
    /// The keys of tc-flow(8), `hash keys`, for hosts. `None`: the flow, which is the default of every discipline.
    #[must_use]
    pub const fn tc_keys(self) -> Option<&'static str> {
        match self {
            Self::Flow => None,
            Self::Source => Some("src"),
            Self::Destination => Some("dst"),
            Self::Hosts => Some("src,dst"),
        }
    }
}

/// Gives each packet the tag of its flow or host: equal for packets that share a queue.
#[derive(Clone)]
pub(crate) struct Tags {
    per: Per,
    directory: Arc<dyn FlowDirectory>,
    hash_key: HashKey,
}

impl Tags {
    pub(crate) fn new(per: Per, environment: &Environment) -> Self {
        Self { per, directory: Arc::clone(&environment.flows), hash_key: environment.hash_key }
    }

    /// The tag of a packet. Flows have their numbers.
    #[inline]
    pub(crate) fn of<P: Packet>(&self, packet: &P) -> u64 {
        match self.per {
            Per::Flow => u64::from(packet.meta().flow.index()),
            Per::Source | Per::Destination | Per::Hosts => self.of_hosts(packet),
        }
    }

    fn of_hosts<P: Packet>(&self, packet: &P) -> u64 {
        let Some(key) = packet.key(&*self.directory) else { return 0 };
        let ip = key.addresses.ip;
        match self.per {
            Per::Source => self.hash_key.hash_one(ip.source()),
            Per::Destination => self.hash_key.hash_one(ip.destination()),
            Per::Hosts | Per::Flow => self.hash_key.hash_one((ip.source(), ip.destination())),
        }
    }
}

impl fmt::Debug for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tags").field("per", &self.per).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
