//! The hosts: transfers over TCP and QUIC, datagram sources, conferences, games, pings, replays, and the applications
//! and swarms that open connections.

mod autorate;
mod backup;
mod bitrate;
mod browse;
mod client;
mod conference;
mod connection_pool;
mod data_counts;
mod datagram;
mod dialogue;
mod end;
mod game;
mod lists;
mod numbered;
mod ping;
mod replay;
mod requests;
mod swarm;
mod totals;
mod transfer;
mod user;
mod video;
mod web;
mod writer;

pub(crate) use autorate::{Autorate, Due};
pub use browse::{Browse, Request};
pub(crate) use client::Client;
pub(crate) use conference::Conference;
pub(crate) use connection_pool::ConnectionPool;
pub use data_counts::DataCounts;
pub(crate) use datagram::Datagrams;
pub use datagram::Departures;
pub use dialogue::Dialogue;
pub(crate) use game::Game;
pub(crate) use lists::{Hosts, NewFlow};
pub(crate) use ping::Ping;
pub(crate) use replay::Replay;
pub use requests::Turns;
pub use swarm::Swarm;
pub(crate) use totals::Totals;
pub(crate) use transfer::{Exchange, Progress, Transfer};
pub use user::{User, UserOutcome};
pub(crate) use video::Player;
pub(crate) use web::Session;
pub(crate) use writer::Writer;

use lastmile_model::IpFields;
use lastmile_packet::{FlowId, Mark, Meta, Protocol, SeqNumber, TcpFlags};
use lastmile_units::ByteCount;

/// Packet `number` of a UDP or ICMP flow.
fn datagram(flow: FlowId, protocol: Protocol, size: ByteCount, number: u64, ip: IpFields) -> Meta {
    let mut mark = Mark::default();
    if ip.ipv6 {
        mark.set_ipv6();
    }
    Meta {
        flow,
        protocol,
        seq: SeqNumber::new(number as u32),
        ip_len: u16::try_from(size.as_u64()).expect("Network::check limits an IP packet to 65 535 bytes"),
        ip_id: number as u16,
        header_len: ip.datagram_headers(),
        traffic_class: ip.dscp << 2,
        flags: TcpFlags::NONE,
        mark,
        ..Meta::default()
    }
}
