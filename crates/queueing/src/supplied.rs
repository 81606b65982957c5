//! A discipline that the caller supplies as a value, without a name in files: teaching, and first experiments.
//!
//! Cost: none beyond the discipline's own.

use core::any::Any;
use core::fmt;
use std::sync::Arc;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;

use crate::Node;
use crate::catalogue::{Built, Mechanism};
use crate::spec::{Problem, Site};

/// How the caller's discipline is made, for one kind of packet. Equal only to its clones.
#[derive(Clone)]
pub struct Config {
    make: Arc<dyn Fn() -> Box<dyn Any> + Send + Sync>,
    thins_acks: bool,
}

impl Config {
    /// `make` makes a discipline for each queue that is built. `thins_acks`: it drops pure ACKs that newer ones
    /// replace.
    #[must_use]
    pub fn new<P: Packet + 'static>(thins_acks: bool, make: impl Fn() -> Node<P> + Send + Sync + 'static) -> Self {
        Self { make: Arc::new(move || Box::new(make())), thins_acks }
    }
}

impl PartialEq for Config {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.make, &other.make)
    }
}

impl Eq for Config {}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Supplied")
    }
}

impl Mechanism for Config {
    fn check(&self, _link_layer: &LinkLayer) -> Result<(), Problem> {
        Ok(())
    }

    fn thins_acks(&self) -> bool {
        self.thins_acks
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        (self.make)().downcast::<Node<P>>().map(|node| *node).map_err(|_| site.refuse(Problem::OtherPackets))
    }
}

#[cfg(test)]
mod tests {
    use lastmile_linklayer::preset;
    use lastmile_packet::Meta;
    use lastmile_units::{Instant, PacketCount};

    use super::*;
    use crate::{Fifo, Overflow, Spec};

    #[test]
    fn a_supplied_discipline_is_built_for_its_kind_of_packet() {
        let spec = Spec::Supplied(Config::new::<Meta>(false, || {
            Box::new(Fifo::in_packets(PacketCount::new(1), Overflow::Tail))
        }));
        let mut node = spec.build::<Meta>(&preset::IP.link).unwrap();
        let mut dropped = 0;
        for _ in 0..2 {
            node.enqueue(Instant::ZERO, Meta::default(), &mut |_, _, _| dropped += 1);
        }
        assert_eq!((node.backlog().packets, dropped), (PacketCount::new(1), 1));
        assert_eq!(spec, spec.clone());
    }
}
