//! Errors in the description of a network, and in packets offered to it.

use lastmile_units::{BitRate, ByteCount};
use thiserror::Error;

use crate::abr::AbrError;
use crate::contract::ContractError;
use crate::discard::DiscardError;

/// What is wrong with a network, or with what is offered to it.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NetworkError {
    /// A VC that goes nowhere.
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
        /// Where one link ends.
        to: String,
        /// Where the next begins.
        from: String,
    },
    /// A route that comes back.
    #[error("VC \"{vc}\" comes to \"{node}\" twice; a route has no loop")]
    RouteLoop {
        /// The VC.
        vc: String,
        /// The node.
        node: String,
    },
    /// An index that names nothing.
    #[error("{whose} refers to {kind} {index}, of which there are {count}")]
    Unknown {
        /// Who refers.
        whose: String,
        /// To what kind of thing.
        kind: &'static str,
        /// Which.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// Two VCs of a link that cannot be told apart.
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
        /// Where the link begins.
        from: String,
        /// Where it ends.
        to: String,
    },
    /// A VPI or VCI outside its range.
    #[error("VC \"{vc}\": VPI {vpi} must be at most 4095 and VCI {vci} at least 32")]
    Identifier {
        /// The VC.
        vc: String,
        /// Its VPI.
        vpi: u16,
        /// Its VCI.
        vci: u16,
    },
    /// A policer where its cells never come.
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
        /// What is wrong.
        error: ContractError,
    },
    /// GFR for several VCs together.
    #[error("VP \"{vp}\": a GFR contract judges frames, and holds for a VC, not for a path")]
    FramesOfPath {
        /// The VP.
        vp: String,
    },
    /// A queue that cannot be.
    #[error("link from \"{from}\" to \"{to}\": {error}")]
    Queue {
        /// Where the link begins.
        from: String,
        /// Where it ends.
        to: String,
        /// What is wrong.
        error: DiscardError,
    },
    /// A port with classes, and none given.
    #[error("link from \"{from}\" to \"{to}\" has a list of classes without a class")]
    NoClasses {
        /// Where the link begins.
        from: String,
        /// Where it ends.
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
        /// How fast it would be.
        pace: BitRate,
        /// What the link carries.
        rate: BitRate,
    },
    /// More lost on the wire than there is.
    #[error("{whose} loses {loss_ppb} cells of a billion; at most all of them")]
    LossAboveAll {
        /// The link.
        whose: String,
        /// How many it would lose.
        loss_ppb: u32,
    },
    /// A source or port of ABR that cannot be.
    #[error("{whose}: {error}")]
    Abr {
        /// The VC or link.
        whose: String,
        /// What is wrong.
        error: AbrError,
    },
    /// RM cells that would not come back by the way of their VC.
    #[error("VC \"{vc}\": the RM cells of ABR must go back from \"{from}\" to \"{to}\" by the nodes of its route")]
    AbrBack {
        /// The VC.
        vc: String,
        /// Where it ends.
        from: String,
        /// Where it begins.
        to: String,
    },
    /// More than can be numbered.
    #[error("{count} {kind} are more than a network can have: {most}")]
    TooMany {
        /// Of what.
        kind: &'static str,
        /// How many.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// A packet that no frame holds.
    #[error("a packet of {bytes} does not fit a frame of AAL5 with its header: at most 65 527 bytes")]
    PacketTooLarge {
        /// Its size.
        bytes: ByteCount,
    },
}
