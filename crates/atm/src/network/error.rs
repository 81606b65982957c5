//! Errors in the description of a network, and in packets offered to it.

use lastmile_units::{BitRate, ByteCount};
use thiserror::Error;

use crate::abr::AbrError;
use crate::contract::ContractError;
use crate::discard::DiscardError;

/// An error in a network, or in a packet offered to it.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NetworkError {
    /// A VC without a link.
    #[error("VC \"{vc}\" has no route: it needs at least one link")]
    NoRoute {
        /// The VC.
        vc: String,
    },
    /// Two links of a route that do not meet.
    #[error("VC \"{vc}\": the link to \"{to}\" is followed by one from \"{from}\"; a route is links that meet")]
    BrokenRoute {
        /// The VC.
        vc: String,
        /// The end of one link.
        to: String,
        /// The start of the next.
        from: String,
    },
    /// A route that visits a node twice.
    #[error("VC \"{vc}\" comes to \"{node}\" twice; a route has no loop")]
    RouteLoop {
        /// The VC.
        vc: String,
        /// The node.
        node: String,
    },
    /// An unknown index.
    #[error("{whose} refers to {kind} {index}, of which there are {count}")]
    Unknown {
        /// The referring item.
        whose: String,
        /// The kind of item referred to.
        kind: &'static str,
        /// The index.
        index: usize,
        /// The number of such items.
        count: usize,
    },
    /// Two VCs of a link with equal identifiers.
    #[error("VCs \"{one}\" and \"{other}\" both have VPI {vpi}, VCI {vci} on the link from \"{from}\" to \"{to}\"")]
    SameIdentifier {
        /// A VC.
        one: String,
        /// Another.
        other: String,
        /// VPI of both.
        vpi: u16,
        /// VCI of both.
        vci: u16,
        /// The start of the link.
        from: String,
        /// The end of the link.
        to: String,
    },
    /// A VPI or VCI outside its range.
    #[error("VC \"{vc}\": VPI {vpi} must be at most 4095 and VCI {vci} at least 32")]
    Identifier {
        /// The VC.
        vc: String,
        /// The VPI of the channel.
        vpi: u16,
        /// The VCI of the channel.
        vci: u16,
    },
    /// A policer at a link without its cells.
    #[error("{whose} is policed at a link that its cells do not cross")]
    PolicedElsewhere {
        /// VC or VP.
        whose: String,
    },
    /// A contract that contradicts itself.
    #[error("{whose}: {error}")]
    Contract {
        /// VC or VP.
        whose: String,
        /// The error.
        error: ContractError,
    },
    /// GFR for a path.
    #[error("VP \"{vp}\": a GFR contract judges frames, and holds for a VC, not for a path")]
    FramesOfPath {
        /// The VP.
        vp: String,
    },
    /// Wrong discard rules.
    #[error("link from \"{from}\" to \"{to}\": {error}")]
    Queue {
        /// The start of the link.
        from: String,
        /// The end of the link.
        to: String,
        /// The error.
        error: DiscardError,
    },
    /// A port with an empty list of classes.
    #[error("link from \"{from}\" to \"{to}\" has a list of classes without a class")]
    NoClasses {
        /// The start of the link.
        from: String,
        /// The end of the link.
        to: String,
    },
    /// A weight of 0.
    #[error("{whose} has a weight of 0; it must be at least 1")]
    NoWeight {
        /// The VC, or the class.
        whose: String,
    },
    /// Pacing above the rate of the link.
    #[error("{whose} is paced at {pace}, above {rate} of its link")]
    PaceAboveRate {
        /// The link or VC.
        whose: String,
        /// The pace.
        pace: BitRate,
        /// The rate of the link.
        rate: BitRate,
    },
    /// A loss above all cells.
    #[error("{whose} loses {loss_ppb} cells of a billion; at most all of them")]
    LossAboveAll {
        /// The link.
        whose: String,
        /// Cells lost, of a billion.
        loss_ppb: u32,
    },
    /// Wrong parameters of ABR.
    #[error("{whose}: {error}")]
    Abr {
        /// The VC or link.
        whose: String,
        /// The error.
        error: AbrError,
    },
    /// A return route along other nodes.
    #[error("VC \"{vc}\": the RM cells of ABR must go back from \"{from}\" to \"{to}\" by the nodes of its route")]
    AbrBack {
        /// The VC.
        vc: String,
        /// The end of its route.
        from: String,
        /// The start of its route.
        to: String,
    },
    /// More items than a network can have.
    #[error("{count} {kind} are more than a network can have: {most}")]
    TooMany {
        /// Kind of items.
        kind: &'static str,
        /// The number of items.
        count: usize,
        /// The largest number.
        most: usize,
    },
    /// A packet above the largest frame.
    #[error("a packet of {bytes} does not fit a frame of AAL5 with its header: at most 65 527 bytes")]
    PacketTooLarge {
        /// The size of the packet.
        bytes: ByteCount,
    },
}
