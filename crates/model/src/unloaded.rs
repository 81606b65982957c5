//! How long a packet takes that meets nobody: what empty round trips and bounds are made of.
//!
//! Links of packets store a packet and send it on. Over links of cells it goes cell by cell, and is stored where its virtual channel
//! ends ([`lastmile_atm::NetworkSpec::alone`]).

use lastmile_units::{ByteCount, Duration};

use crate::cells::carrier;
use crate::spec::{Link, Network};

impl Network {
    /// The time that a packet of the traffic of index `traffic` takes along `path`, links by their indices, over empty queues:
    /// transmission, propagation and processing; OAM cells left out. `back`: one of those that answer, such as an ACK. `size` tells how
    /// many IP bytes of it a link carries, its header compressed or not.
    ///
    /// # Panics
    /// If the network has no such link.
    #[must_use]
    pub fn crossing(
        &self,
        (traffic, back): (usize, bool),
        path: &[usize],
        size: &dyn Fn(&Link) -> ByteCount,
    ) -> Duration {
        let (mut rest, mut sum) = (path, Duration::ZERO);
        while let Some((first, after)) = rest.split_first() {
            let link = &self.links[*first];
            let over_cells = self.atm.as_ref().and_then(|atm| {
                let (vc, links) = carrier(atm, (traffic, back), rest)?;
                Some((atm.network.alone(vc, size(link))?, links))
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
