//! Packets: compact metadata that every layer shares, and the real headers behind it.
//!
//! [`Meta`] is the metadata of a packet in 80 bytes. A simulated packet is only that; a real packet
//! is a [`Frame`], which holds metadata and bytes. The datapath uses only the [`Packet`] trait.
//!
//! | to | use |
//! | --- | --- |
//! | turn a simulated packet into bytes | [`write_headers`], [`write_packet`] |
//! | read a real packet | [`Frame::new`], [`Frame::ethernet`], [`parse`], [`parse_headers`] |
//! | give flows of real packets their [`FlowId`] | [`FlowTable`] |
//! | look up the addresses of simulated flows | [`FlowDirectory`] |
//! | find the IP packet in an Ethernet frame | [`ethernet::locate`] |
//! | compute and update checksums | [`checksum`], [`checksums_hold`] |
//! | read a TCP segment only if its checksums hold | [`Packet::segment`], [`Meta::pure_ack`] |

mod accecn;
pub mod checksum;
mod directory;
pub mod dscp;
pub mod ethernet;
mod fields;
mod flow;
mod frame;
mod icmp;
mod ipv4;
mod ipv6;
mod list;
mod meta;
mod options;
mod packet;
mod parse;
mod protocol;
mod quic;
mod segment;
mod seq;
mod signal;
mod table;
mod tcp;
#[cfg(test)]
mod testing;
mod udp;
mod write;

pub use accecn::{EcnBytes, EcnLayout, EcnOrder};
pub use directory::{FlowDirectory, NumberedFlows};
pub use ethernet::FrameError;
pub use fields::ParseError;
pub use flow::{FlowAddresses, FlowId, FlowKey, IpAddresses};
pub use frame::Frame;
pub use list::AckList;
pub use meta::{AckFields, Mark, Meta, TcpFlags};
pub use options::{Options, SackBlock, SynOptions};
pub use packet::Packet;
pub use parse::{Parsed, checksums_hold, lacks_length, parse, parse_headers};
pub use protocol::Protocol;
pub use quic::QuicHeader;
pub use segment::{PureAck, Segment};
pub use seq::SeqNumber;
pub use table::{FlowTable, HashKey, Interned};
pub use write::{MAX_HEADER_LEN, header_len, write_headers, write_packet, written_len};
