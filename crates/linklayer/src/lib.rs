//! The bytes on the wire of an IP packet: encapsulations, cell and block framing, header
//! compression.
//!
//! ```text
//! IP bytes -> header compression -> fixed headers and trailer -> minimum frame -> framing -> bytes on the wire
//!             vj, fixed_ratio       preset, l2tp, multilink      ethernet         aal5, ptm    (+ oam)
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | [`link`] | [`LinkLayer`], the value that a line carries: headers, minimum frame, framing, and the inverse |
//! | [`preset`] | the encapsulations in use by name, with every header of each |
//! | [`aal5`], [`ptm`], [`ethernet`] | the framings and the minimum frame |
//! | [`oam`], `meter` | one cell in 27 belongs to operation and maintenance; wire bytes of consecutive packets |
//! | [`l2tp`] | tunnels between LAC and LNS |
//! | [`multilink`], `fragments` | fragments between which small packets pass; their bytes on the wire |
//! | [`interleave`], `pieces` | where a packet in transmission may be interrupted; the pieces between |
//! | [`vj`], [`fixed_ratio`] | RFC 1144 header compression with real state; a model without any |
//!
//! The crate knows nothing of queues, TCP or time. IP bytes ([`lastmile_units::ByteCount`]) go in
//! and wire bytes ([`lastmile_units::WireBytes`]) come out; the two never mix.

pub mod aal5;
pub mod ethernet;
pub mod fixed_ratio;
mod fragments;
pub mod interleave;
pub mod l2tp;
pub mod link;
mod meter;
pub mod multilink;
pub mod oam;
mod pieces;
pub mod preset;
pub mod ptm;
pub mod vj;

pub use interleave::Interleave;
pub use link::{Framing, LinkError, LinkLayer, Ppp};
pub use meter::WireMeter;
pub use oam::{OamCounter, OamShare};
pub use pieces::Pieces;
pub use preset::{PRESETS, Preset};
