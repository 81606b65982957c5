//! A tree of disciplines as plain data, and how it is built.
//!
//! A configuration describes a tree with [`Spec`]; [`Spec::build`] makes it for any kind of packet and any line. Both
//! clocks build theirs from the same value. The disciplines stand in one table, [`mod@crate::catalogue`].

use std::sync::Arc;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{BitRate, PacketCount, WireBytes};

use crate::catalogue::{Built, Mechanism};
use crate::classify::Packets;
use crate::{Environment, Limit, Node, Overflow, fifo};

mod classes;
mod error;
mod policy;
mod site;

pub use classes::ClassSpec;
pub(crate) use classes::{check_classes, numbered, shapers_of_class};
pub use error::{BuildError, Problem};
pub(crate) use policy::shaper_over;
pub use site::Site;

/// A mechanism, and the queue below it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Over<C> {
    /// The mechanism.
    pub config: C,
    /// The queue below.
    pub queue: Box<Spec>,
}

impl<C> Over<C> {
    /// `config` over `queue`.
    #[must_use]
    pub fn new(config: C, queue: Spec) -> Self {
        Self { config, queue: Box::new(queue) }
    }
}

/// Makes [`Spec`] from the table of disciplines.
macro_rules! spec {
    (
        kinds { $($(#[$kind_doc:meta])* $name:literal => $kind:ident($kind_config:ty),)* }
        parts { $($(#[$part_doc:meta])* $part:ident($part_config:ty),)* }
    ) => {
        /// A discipline and those below it.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Spec {
            $($(#[$kind_doc])* $kind($kind_config),)*
            $($(#[$part_doc])* $part($part_config),)*
        }

        impl Spec {
            /// The mechanism of the variant.
            fn mechanism(&self) -> &dyn Mechanism {
                match self {
                    $(Self::$kind(config) => config,)*
                    $(Self::$part(config) => config,)*
                }
            }

            /// Builds what [`Spec::check`] has accepted.
            fn build_at<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
                match self {
                    $(Self::$kind(config) => Mechanism::build(config, site),)*
                    $(Self::$part(config) => Mechanism::build(config, site),)*
                }
            }
        }
    };
}

crate::catalogue!(spec);

/// A rate that packets of a queue do not exceed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shaper {
    /// The rate on the wire.
    pub rate: BitRate,
    /// The encapsulation by which it counts bytes. `None`: that of the line.
    pub layer: Option<LinkLayer>,
    /// The most bytes on the wire that pass in a span of time beyond the rate. `None`: urgent traffic passes in
    /// addition.
    pub burst: Option<WireBytes>,
    /// True for a limit that later makes up for time in which other traffic held its packets back, since the
    /// beginning of the clock.
    pub saves: bool,
    /// The mechanism that has the rate.
    pub by: Limiter,
}

/// A mechanism with a rate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Limiter {
    /// A shaper of all packets.
    Shaper,
    /// The ceiling of a class with this name, of a scheduler.
    Class(Arc<str>),
    /// A policer, in front of the queue.
    Policer,
}

impl Shaper {
    /// At least a full Ethernet frame on any wire.
    pub(crate) const PACKET: WireBytes = WireBytes::new(2_000);

    /// A shaper of all packets.
    pub(crate) const fn of_all(rate: BitRate, burst: Option<WireBytes>) -> Self {
        Self { rate, layer: None, burst, saves: false, by: Limiter::Shaper }
    }
}

impl Spec {
    /// As many classes as tc-prio(8) has bands at most.
    pub const MAX_CLASSES: usize = 16;
    /// Rules of a policer.
    pub const MAX_RULES: usize = 64;
    /// Buckets of a hash of flows: as many as tc-fq_codel(8) and tc-sfq(8) take.
    pub const MAX_BUCKETS: u32 = 65_536;
    /// Disciplines above one another.
    pub const MAX_DEPTH: usize = 16;

    /// A FIFO of at most `packets` packets that drops the packet that arrives.
    #[must_use]
    pub const fn fifo(packets: u64) -> Self {
        Self::Fifo(fifo::Config { limit: Limit::Packets(PacketCount::new(packets)), drop: Overflow::Tail })
    }

    /// The name of the class that packets carry in this queue ([`lastmile_packet::Meta::class`]): of the
    /// outermost rules, or without rules of the outermost scheduler. `None`: there is no such class.
    #[must_use]
    pub fn class_name(&self, class: u16) -> Option<String> {
        self.mechanism().class_name(class)
    }

    /// True if this discipline, or one below, drops pure ACKs on purpose.
    #[must_use]
    pub fn thins_acks(&self) -> bool {
        self.mechanism().thins_acks()
    }

    /// The capacity, if it is one number.
    #[must_use]
    pub fn limit(&self) -> Option<Limit> {
        self.mechanism().limit()
    }

    /// The shapers that every packet passes, the outermost first, on any line: token buckets, drains, CAKE, an HTB, the
    /// upper limit of an HFSC.
    #[must_use]
    pub fn shapers(&self) -> Vec<Shaper> {
        let mut shapers = self.shapers_of(&Packets::default());
        shapers.retain(|shaper| shaper.by != Limiter::Policer);
        shapers
    }

    /// The shapers, ceilings of classes and policers that each of `packets` passes for certain, the outermost first.
    #[must_use]
    pub fn shapers_of(&self, packets: &Packets) -> Vec<Shaper> {
        self.mechanism().shapers_of(packets)
    }

    /// True if this discipline, or one below, sets code points of differentiated services.
    #[must_use]
    pub fn sets_dscp(&self) -> bool {
        self.mechanism().sets_dscp()
    }

    /// The disciplines right below this one, in the order of the configuration.
    #[must_use]
    pub fn below(&self) -> Vec<&Self> {
        self.mechanism().below()
    }

    /// Refuses what cannot be built on a line, apart from the disciplines below.
    ///
    /// # Errors
    /// The problem of this discipline.
    pub fn check(&self, link_layer: &LinkLayer) -> Result<(), Problem> {
        self.mechanism().check(link_layer)
    }

    /// Refuses guarantees of this discipline that a link of this rate cannot keep.
    ///
    /// # Errors
    /// The guarantees and the rate.
    pub fn check_link(&self, available: BitRate) -> Result<(), Problem> {
        self.mechanism().check_link(available)
    }

    /// Builds the tree for a line whose packets take what `link_layer` says, and whose flows are known by
    /// their number alone.
    ///
    /// # Errors
    /// The first discipline that cannot be built, from the root down.
    pub fn build<P: Packet + Send + 'static>(&self, link_layer: &LinkLayer) -> Result<Node<P>, BuildError> {
        self.build_in(&Environment::new(*link_layer))
    }

    /// Builds the tree for its surroundings.
    ///
    /// # Errors
    /// The first discipline that cannot be built, from the root down.
    pub fn build_in<P: Packet + Send + 'static>(&self, environment: &Environment) -> Result<Node<P>, BuildError> {
        Site::new(environment).build(self)
    }
}

#[cfg(test)]
mod tests;
