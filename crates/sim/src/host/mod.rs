//! What runs on the hosts: TCP transfers, datagram sources, pings; web users and swarms, which open transfers; replays.

mod datagram;
mod ping;
mod replay;
mod swarm;
mod tcp;
mod totals;
mod web;
mod writer;

pub(crate) use datagram::Datagrams;
pub use datagram::Departures;
pub(crate) use ping::Ping;
pub(crate) use replay::Replay;
pub use swarm::Swarm;
pub(crate) use tcp::{Carries, Progress, Transfer};
pub(crate) use totals::Totals;
pub use web::{Request, Session};
pub(crate) use writer::Writer;

use lastmile_packet::{FlowId, Mark, Meta, Protocol, SeqNumber, TcpFlags};
use lastmile_units::ByteCount;

/// IPv4 and UDP or ICMP echo headers together: 20 + 8 bytes.
const DATAGRAM_HEADERS: u8 = 28;

/// A UDP or ICMP packet: the `number`-th of its flow.
fn datagram(flow: FlowId, protocol: Protocol, size: ByteCount, number: u64, dscp: u8) -> Meta {
    Meta {
        flow,
        protocol,
        seq: SeqNumber::new(number as u32),
        ip_len: u16::try_from(size.as_u64()).expect("the network was checked: an IP packet has at most 65 535 bytes"),
        ip_id: number as u16,
        header_len: DATAGRAM_HEADERS,
        traffic_class: dscp << 2,
        flags: TcpFlags::NONE,
        mark: Mark::default(),
        ..Meta::default()
    }
}
