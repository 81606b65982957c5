//! One direction of a peer in a swarm: bulk data over several connections that open and close.
//!
//! Published: Cohen 2003, Incentives Build Robustness in BitTorrent. A peer sends to a few others at a time (four
//! unchoked peers). Every ten seconds it chooses them anew by the rates at which they send to it. One of them, the
//! optimistic unchoke, is chosen without regard to its rate, and changes every third time, after 30 s.
//!
//! Here each rechoke drops the slowest peer and unchokes another one at random, by default every ten seconds: three
//! times as often as the published optimistic unchoke changes, which is `rechoke = "30 s"`. The opposite direction, in
//! which others send to this peer, is a source of its own.
//!
//! Differs: a connection exists only while it carries data, where real ones stay open and idle. The rates compared are
//! those of this direction, because the rates between other peers are unknown. Every rechoke drops a peer, where a real
//! client may keep all.
//!
//! Cost: one comparison for each slot and rechoke.

use std::sync::Arc;

use lastmile_queueing::random::Stream;

use lastmile_model::Swarm as Spec;

use super::Totals;

/// One direction of a peer, without its connections: the caller opens them and gives them numbers.
#[derive(Debug)]
pub struct Swarm {
    pub(crate) totals: Totals,
    spec: Arc<Spec>,
    random: Stream,
    slots: Vec<Slot>,
    stopped: bool,
}

/// An unchoked peer, and the connection to it.
#[derive(Clone, Copy, Debug)]
struct Slot {
    peer: u32,
    connection: u32,
    /// Bytes that the connection had delivered at the latest rechoke.
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

    /// Chokes a peer if all slots are full and there are other peers: the one whose connection has delivered
    /// least since the latest call. `delivered` returns the bytes that a connection has delivered so far.
    /// Returns the connection and its peer.
    pub fn choke(&mut self, delivered: impl Fn(u32) -> u64) -> Option<(u32, u32)> {
        let full = self.slots.len() >= self.spec.slots as usize;
        let rates = self.slots.iter().map(|slot| delivered(slot.connection).saturating_sub(slot.delivered));
        let worst = rates.enumerate().min_by_key(|(_, rate)| *rate).map(|(index, _)| index);
        for slot in &mut self.slots {
            slot.delivered = delivered(slot.connection);
        }
        let others = self.spec.peers as usize > self.slots.len();
        let worst = worst.filter(|_| full && others && !self.stopped).map(|index| self.slots.remove(index));
        worst.map(|slot| (slot.connection, slot.peer))
    }

    /// Draws a peer to unchoke from the choked ones. `None`: all slots are full, or no peer is choked.
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

    /// `connection` to the unchoked `peer` is open.
    pub fn opened(&mut self, peer: u32, connection: u32) {
        self.slots.push(Slot { peer, connection, delivered: 0 });
    }

    /// `connection` has failed.
    pub fn broke(&mut self, connection: u32) {
        self.slots.retain(|slot| slot.connection != connection);
    }

    /// Stops the peer. Returns the connections to close.
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
    fn slots_hold_different_peers_and_the_slowest_is_choked() {
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
    fn a_peer_without_alternatives_chokes_nobody() {
        let mut swarm = swarm(3, 4);
        fill(&mut swarm);
        assert_eq!(swarm.slots.len(), 3);
        assert_eq!(swarm.choke(|_| 0), None);
    }

    #[test]
    fn a_stopped_peer_closes_all_connections_and_opens_none() {
        let mut swarm = swarm(10, 2);
        fill(&mut swarm);
        assert_eq!(swarm.stop(), [100, 101]);
        assert_eq!(swarm.unchoke(None), None);
        assert_eq!(swarm.choke(|_| 0), None);
    }
}
