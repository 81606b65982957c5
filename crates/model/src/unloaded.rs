//! The delay of a packet over empty queues: empty round trips and bounds are made of it.
//!
//! A link of packets stores the whole packet and sends it on. Over links of cells a packet goes cell by cell, and is stored where its virtual
//! channel ends ([`lastmile_atm::NetworkSpec::unloaded_transit`]).

use lastmile_units::{ByteCount, Duration};

use crate::{Link, Network};

impl Network {
    /// The time that a packet of the traffic of index `traffic` takes along `path`, links by their indices, over empty queues:
    /// transmission, propagation and processing; OAM cells left out. `back` is for packets that answer, such as ACKs. `size` says how
    /// many IP bytes of the packet a link carries, its header compressed or not.
    ///
    /// # Panics
    /// If the network has no such link.
    #[must_use]
    pub fn unloaded_delay(
        &self,
        (traffic, back): (usize, bool),
        path: &[usize],
        size: &dyn Fn(&Link) -> ByteCount,
    ) -> Duration {
        let (mut rest, mut sum) = (path, Duration::ZERO);
        while let Some((first, after)) = rest.split_first() {
            let link = &self.links[*first];
            let over_cells = self.atm.as_ref().and_then(|atm| {
                let (vc, links) = atm.carrier((traffic, back), rest)?;
                Some((atm.network.unloaded_transit(vc, size(link))?, links))
            });
            rest = if let Some((time, links)) = over_cells {
                sum += time;
                &rest[links..]
            } else {
                let wire = link.link_layer.on_wire(size(link));
                sum += link.rate.map_or(Duration::ZERO, |rate| rate.time_for(wire));
                sum += link.delay + self.nodes[link.to].processing;
                after
            };
        }
        sum
    }
}
