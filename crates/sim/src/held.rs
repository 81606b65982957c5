//! ACKs that an edge device holds back, so that the TCP slows down whose packets wait for the rate of a source of ABR.
//!
//! Published: the idea is that of an edge that regulates ACKs (Sun 1998 names it beside UBR with frame discard; Narvaez and Siu 1997 time ACKs by the rate of ABR).
//! Each pure ACK that comes out of the cells at the node where its data become cells waits for a time, fixed or by what waits there; ACKs of a virtual channel keep
//! their order. Cost: a search tree of those held.

use std::collections::BTreeMap;

use lastmile_atm::network::AbrStats;
use lastmile_packet::Meta;
use lastmile_units::{Duration, Instant};

use crate::route::LinkIndex;
use lastmile_model::AckHold;
use lastmile_model::outcome::{Amount, Waits};

/// What is held.
#[derive(Default)]
pub(crate) struct Held {
    /// By release, then by coming.
    waiting: BTreeMap<(Instant, u64), (LinkIndex, Meta)>,
    came: u64,
}

/// ACKs of a virtual channel.
#[derive(Clone, Copy, Default)]
pub(crate) struct HeldOf {
    last: Instant,
    pub(crate) waits: Waits,
}

/// How long an ACK waits.
fn hold_time(hold: &AckHold, edge: &AbrStats) -> Duration {
    match *hold {
        AckHold::Fixed(time) => time,
        AckHold::Dynamic { above, most } => {
            let excess = u128::from(edge.edge_bytes.saturating_sub(above.as_u64()));
            // Bytes go in cells of 48, each of which takes 424 bits.
            let ps = excess * 424 * 1_000_000_000_000 / (48 * u128::from(edge.acr_bps.max(1)));
            most.min(Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX)))
        }
    }
}

impl Held {
    /// Holds an ACK that is at the far end of `link`. False if it need not wait.
    pub(crate) fn hold(
        &mut self,
        (now, hold): (Instant, &AckHold),
        edge: &AbrStats,
        of: &mut HeldOf,
        (link, packet): (LinkIndex, &Meta),
    ) -> bool {
        let release = (now + hold_time(hold, edge)).max(of.last);
        if release <= now {
            return false;
        }
        of.last = release;
        of.waits.add(release.since(now));
        self.waiting.insert((release, self.came), (link, *packet));
        self.came += 1;
        true
    }

    /// When the next is let go.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((release, _), _)| *release)
    }

    /// The next one that is due by `now`, and the link at whose far end it is.
    pub(crate) fn release(&mut self, now: Instant) -> Option<(LinkIndex, Meta)> {
        self.next().filter(|release| *release <= now)?;
        self.waiting.pop_first().map(|(_, held)| held)
    }

    /// All that is held.
    pub(crate) fn amount(&self) -> Amount {
        let mut amount = Amount::default();
        self.waiting.values().for_each(|(_, packet)| amount.add(packet));
        amount
    }
}
