//! Packets: compact metadata that every layer shares, and the real headers behind it.
//!
//! [`Meta`] is what the datapath knows of a packet: 64 bytes, whether the packet is simulated (then it is all there is) or
//! real (then it sits beside the bytes). The datapath asks for no more than the [`Packet`] trait.

mod flow;
mod meta;
mod seq;

pub use flow::FlowId;
pub use meta::{
    AckFields, Mark, Meta, OptionSet, OptionWords, Options, Packet, Protocol, SackBlock, SynOptions, TcpFlags,
};
pub use seq::SeqNumber;
