//! Where an urgent packet may interrupt one in transmission: nowhere, between cells, or between
//! fragments.
//!
//! Published: ITU-T I.361 (cells of several virtual channels alternate on a link); RFC 1990 with
//! RFC 2686 (PPP multilink fragments whose header has a class, so that fragments of one class pass
//! between those of another). Interruption between cells costs no byte: each class of packets has
//! its own virtual channel, and another VC's cell may follow any cell of an AAL5 frame.
//! Interruption between fragments costs the headers of every fragment, also of packets in one
//! fragment ([`Multilink`]).

use crate::multilink::Multilink;

/// Where a packet in transmission may be interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Interleave {
    /// The packet is never interrupted.
    #[default]
    Never,
    /// After each cell.
    Cells,
    /// After each fragment.
    Fragments(Multilink),
}
