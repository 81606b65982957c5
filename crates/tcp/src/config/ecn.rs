//! Explicit congestion notification.

/// The explicit congestion notification that an endpoint offers and accepts, and what both ends have agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ecn {
    /// No notification.
    #[default]
    Off,
    /// One signal a round trip (RFC 3168). A receiver of [`Variant::Dctcp`](super::Variant::Dctcp) reports each change
    /// of the mark instead (RFC 8257, section 3.2).
    Classic,
    /// Counters of the marked packets and octets (RFC 9768); with a peer without it as [`Ecn::Classic`].
    Accurate,
}
