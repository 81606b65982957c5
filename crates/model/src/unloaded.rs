//! The delay of a packet over empty queues, the basis of unloaded round trips and bounds.
//!
//! A link of packets stores and forwards the whole packet. Over links of cells a packet travels
//! cell by cell, and is stored at the end of its virtual channel
//! ([`lastmile_atm::NetworkSpec::unloaded_transit`]).

use lastmile_units::{ByteCount, Duration};

use crate::{Link, Network};

impl Network {
    /// The delay of a packet of traffic number `traffic` along the links `path` over empty queues:
    /// transmission, propagation and processing, without OAM cells. `back` is true for the reverse
    /// direction, such as ACKs. `size` returns the packet's IP bytes on a link, with or without
    /// header compression.
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
                let wire = link.hop.line.link_layer.on_wire(size(link));
                sum += link.hop.line.rate.map_or(Duration::ZERO, |rate| rate.time_for(wire));
                sum += link.hop.line.delay + self.nodes[link.to].processing;
                after
            };
        }
        sum
    }
}
