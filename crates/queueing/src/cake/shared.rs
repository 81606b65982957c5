//! The state that all tins of a CAKE share.

use std::collections::BTreeSet;

use lastmile_linklayer::LinkLayer;

use crate::ack::cake::Mode;
use crate::random::Stream;

use super::shaper::Shaper;

/// State shared by all tins.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) link_layer: LinkLayer,
    pub(super) ack_filter: Option<Mode>,
    /// Dropped packets are charged.
    pub(super) ingress: bool,
    pub(super) shaper: Option<Shaper>,
    pub(super) random: Stream,
    pub(super) ledger: Ledger,
}

/// The backlog of all tins, and while memory is short the order of queues by size.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// The queues by their bytes. Kept only from an overflow until half of the memory is free.
    pub(super) by_size: Option<BTreeSet<(u64, u32)>>,
}

impl Ledger {
    /// Adds a packet of `bytes` to a queue that held `before` bytes.
    pub(super) fn add(&mut self, queue: u32, before: u64, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
        self.resize(queue, before, before + bytes);
    }

    /// Removes a packet of `bytes` from a queue that held `before` bytes.
    pub(super) fn remove(&mut self, queue: u32, before: u64, bytes: u64) {
        self.packets -= 1;
        self.bytes -= bytes;
        self.resize(queue, before, before - bytes);
    }

    fn resize(&mut self, queue: u32, before: u64, after: u64) {
        if let Some(by_size) = &mut self.by_size {
            by_size.remove(&(before, queue));
            if after > 0 {
                by_size.insert((after, queue));
            }
        }
    }
}
