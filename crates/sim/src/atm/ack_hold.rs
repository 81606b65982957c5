//! ACKs held by an edge device: a TCP slows down whose packets wait for the rate of an ABR source.
//!
//! An edge device is the node at which data packets become cells. It holds each pure ACK that leaves the
//! cells there, for a fixed time or for a time that grows with the backlog of the ABR source. ACKs of a
//! virtual channel keep their order.
//!
//! Published: Sun 1998 names edges that regulate ACKs next to UBR with frame discard; Narvaez and Siu 1997 time ACKs by
//! the rate of ABR. Cost: O(log n) an ACK, with n the ACKs held.

use std::collections::BTreeMap;

use lastmile_atm::network::AbrStats;
use lastmile_packet::Meta;
use lastmile_queueing::Count;
use lastmile_units::{Duration, Instant};

use crate::network::route::LinkIndex;
use lastmile_model::AckHold;
use lastmile_model::outcome::Waits;

/// The ACKs held by all edge devices.
#[derive(Default)]
pub(super) struct HeldAcks {
    /// By time of release, then in order of arrival.
    acks: BTreeMap<(Instant, u64), (LinkIndex, Meta)>,
    arrived: u64,
}

/// The ACKs for the data of a virtual channel.
#[derive(Clone, Copy, Default)]
pub(super) struct VcHold {
    /// The release of the latest ACK.
    last: Instant,
    pub(super) waits: Waits,
}

/// The time for which an ACK is held.
fn hold_time(hold: &AckHold, edge: &AbrStats) -> Duration {
    match *hold {
        AckHold::Fixed(time) => time,
        AckHold::Dynamic { above, most } => {
            let excess = u128::from(edge.edge_bytes.saturating_sub(above.as_u64()));
            // A cell carries 48 bytes and takes 424 bits.
            let ps = excess * 424 * 1_000_000_000_000 / (48 * u128::from(edge.acr_bps.max(1)));
            most.min(Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX)))
        }
    }
}

impl HeldAcks {
    /// Holds an ACK that is at the far end of `link`. False: the ACK continues at once.
    pub(super) fn hold(
        &mut self,
        (now, hold): (Instant, &AckHold),
        edge: &AbrStats,
        of: &mut VcHold,
        (link, packet): (LinkIndex, &Meta),
    ) -> bool {
        let release = (now + hold_time(hold, edge)).max(of.last);
        if release <= now {
            return false;
        }
        of.last = release;
        of.waits.add(release.since(now));
        self.acks.insert((release, self.arrived), (link, *packet));
        self.arrived += 1;
        true
    }

    /// The time of the next release.
    pub(super) fn next(&self) -> Option<Instant> {
        self.acks.first_key_value().map(|((release, _), _)| *release)
    }

    /// Releases the next ACK that is due by `now`. Returns the link at whose far end it is.
    pub(super) fn release(&mut self, now: Instant) -> Option<(LinkIndex, Meta)> {
        self.next().filter(|release| *release <= now)?;
        self.acks.pop_first().map(|(_, held)| held)
    }

    /// The number and bytes of the ACKs held.
    pub(super) fn amount(&self) -> Count {
        let mut amount = Count::default();
        self.acks.values().for_each(|(_, packet)| amount.add(packet));
        amount
    }
}
