//! One direction of a peer in a swarm: bulk data over several connections that come and go.
//!
//! Published: Cohen 2003, Incentives Build Robustness in BitTorrent. A peer sends to few others at a time (its unchoked ones, four), looks at
//! the rates every ten seconds, drops the worst and gives a chance to another drawn at random (the optimistic unchoke). The other direction,
//! others who send to this peer, looks the same and is a source of its own. Differs: a connection exists while it carries data, where real
//! ones stay open in silence; the rates compared are those of this direction, since no tit-for-tat with peers elsewhere can be told; a drop
//! every rechoke instead of a possible one.
//!
//! Cost: one look at every slot a rechoke.

use std::sync::Arc;

use lastmile_queueing::random::Stream;

use lastmile_model::Swarm as Spec;

use super::Totals;

/// One direction of a peer, apart from what carries its data: connections have numbers, which the caller gives them.
#[derive(Debug)]
pub struct Swarm {
    pub(crate) totals: Totals,
    spec: Arc<Spec>,
    random: Stream,
    slots: Vec<Slot>,
    stopped: bool,
}

/// A peer that is unchoked, and the connection to it.
#[derive(Clone, Copy, Debug)]
struct Slot {
    peer: u32,
    connection: u32,
    /// What the connection had delivered at the last rechoke.
    delivered: u64,
}

impl Swarm {
    /// A peer without connections. Equal streams draw equal peers from equal choices.
    #[must_use]
    pub fn new(spec: &Arc<Spec>, random: Stream) -> Self {
        Self { totals: Totals::default(), spec: Arc::clone(spec), random, slots: Vec::new(), stopped: false }
    }

    pub(crate) fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }

    /// The connection to choke: of full slots, with others to choose from, the one that delivered least since the last time.
    /// `delivered` tells what a connection has delivered in all.
    /// Returns it and the peer that it led to.
    pub fn choke(&mut self, delivered: impl Fn(u32) -> u64) -> Option<(u32, u32)> {
        let full = self.slots.len() >= self.spec.slots as usize;
        let rates = self.slots.iter().map(|slot| delivered(slot.connection).saturating_sub(slot.delivered));
        let worst = rates.enumerate().min_by_key(|(_, rate)| *rate).map(|(place, _)| place);
        for slot in &mut self.slots {
            slot.delivered = delivered(slot.connection);
        }
        let others = self.spec.peers as usize > self.slots.len();
        let worst = worst.filter(|_| full && others && !self.stopped).map(|place| self.slots.remove(place));
        worst.map(|slot| (slot.connection, slot.peer))
    }

    /// A peer to unchoke, drawn from those that are choked; `None` when slots or peers are used up.
    pub fn unchoke(&mut self, except: Option<u32>) -> Option<u32> {
        if self.stopped || self.slots.len() >= self.spec.slots as usize {
            return None;
        }
        let is_free = |peer: &u32| self.slots.iter().all(|slot| slot.peer != *peer) && Some(*peer) != except;
        let free: Vec<u32> = (0..self.spec.peers).filter(is_free).collect();
        if free.is_empty() {
            return None;
        }
        Some(free[self.random.below(free.len() as u64) as usize])
    }

    /// `connection` leads to `peer`, which was unchoked.
    pub fn opened(&mut self, peer: u32, connection: u32) {
        self.slots.push(Slot { peer, connection, delivered: 0 });
    }

    /// `connection` broke.
    pub fn broke(&mut self, connection: u32) {
        self.slots.retain(|slot| slot.connection != connection);
    }

    /// The peer goes: the connections to close.
    pub fn stop(&mut self) -> Vec<u32> {
        self.stopped = true;
        self.slots.drain(..).map(|slot| slot.connection).collect()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile_units::Duration;

    fn swarm(peers: u32, slots: u32) -> Swarm {
        let tcp = Arc::new(lastmile_tcp::Config::default());
        let spec = Spec { tcp, peers, slots, rechoke: Duration::from_s(10) };
        Swarm::new(&Arc::new(spec), Stream::new(1, "swarm"))
    }

    fn fill(swarm: &mut Swarm) {
        let mut connection = 100;
        while let Some(peer) = swarm.unchoke(None) {
            swarm.opened(peer, connection);
            connection += 1;
        }
    }

    #[test]
    fn slots_hold_different_peers_and_the_slowest_goes() {
        let mut swarm = swarm(10, 4);
        fill(&mut swarm);
        let (second, third) = (swarm.slots[1].peer, swarm.slots[2].peer);
        let mut peers: Vec<u32> = swarm.slots.iter().map(|slot| slot.peer).collect();
        peers.sort_unstable();
        peers.dedup();
        assert_eq!(peers.len(), 4);
        assert_eq!(swarm.choke(|connection| if connection == 102 { 5 } else { 50 }), Some((102, third)));
        // Since then 101 delivered 1 and the others 10: what counts is the time since the last look.
        let peer = swarm.unchoke(Some(third)).unwrap();
        assert_ne!(peer, third);
        swarm.opened(peer, 104);
        assert_eq!(swarm.choke(|connection| if connection == 101 { 51 } else { 60 }), Some((101, second)));
    }

    #[test]
    fn who_has_no_other_to_turn_to_drops_nobody() {
        let mut swarm = swarm(3, 4);
        fill(&mut swarm);
        assert_eq!(swarm.slots.len(), 3);
        assert_eq!(swarm.choke(|_| 0), None);
    }

    #[test]
    fn one_who_stops_closes_all_and_opens_none() {
        let mut swarm = swarm(10, 2);
        fill(&mut swarm);
        assert_eq!(swarm.stop(), [100, 101]);
        assert_eq!(swarm.unchoke(None), None);
        assert_eq!(swarm.choke(|_| 0), None);
    }
}
