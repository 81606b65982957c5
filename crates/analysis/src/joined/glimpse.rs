//! What a comparison of two captures keeps of each packet.

use std::hash::{BuildHasher as _, Hasher as _};

use lastmile_packet::{HashKey, Parsed, Protocol, TcpFlags};

/// A packet, as it is recognised in the other capture.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Glimpse {
    pub(super) hash: u64,
    pub(super) at_ns: i64,
    /// A hash of its flow in either direction.
    pub(super) flow: u32,
    /// Of TCP a hash of the fields that the parts of a divided segment share; without payload, of all but the window.
    /// Otherwise zero.
    pub(super) burst: u32,
    /// The TCP sequence number.
    pub(super) seq: u32,
    /// Octets of payload.
    pub(super) payload: u16,
    /// True for the direction of the lesser key.
    pub(super) forward: bool,
    /// True for payload, SYN or FIN, which are retransmitted if they are lost.
    pub(super) retains: bool,
}

/// The packets of one capture, for their comparison with another.
#[derive(Clone, Debug, Default)]
pub struct Glimpses {
    pub(super) all: Vec<Glimpse>,
    pub(super) key: HashKey,
}

impl Glimpses {
    /// Adds a packet captured at this time since 1970, by the clock of its capture.
    pub fn packet(&mut self, at_ns: u64, packet: &Parsed) {
        let meta = &packet.meta;
        let payload = meta.payload_len();
        let mut hasher = self.key.build_hasher();
        hasher.write_u64(self.key.hash_one(packet.key));
        hasher.write_u32(u32::from(meta.ip_len) << 16 | u32::from(meta.ip_id));
        let mut burst = 0;
        if meta.protocol == Protocol::Tcp {
            hasher.write_u64(u64::from(meta.seq.raw()) << 32 | u64::from(meta.ack.raw()));
            hasher.write_u32(u32::from(meta.window) << 8 | u32::from(meta.flags.bits()));
            let (value, echo) = meta.options().timestamps().unwrap_or_default();
            hasher.write_u64(u64::from(value) << 32 | u64::from(echo));
            let octets = (meta.ack.raw(), value, echo);
            let whole = (meta.seq.raw(), meta.ip_len, meta.ip_id, meta.flags.bits());
            let shared = if payload > 0 { self.key.hash_one(octets) } else { self.key.hash_one((octets, whole)) };
            burst = shared as u32 | 1;
        }
        self.all.push(Glimpse {
            hash: hasher.finish(),
            at_ns: i64::try_from(at_ns).unwrap_or(i64::MAX),
            flow: self.key.hash_one(packet.key.min(packet.key.reversed())) as u32,
            burst,
            seq: meta.seq.raw(),
            payload,
            forward: packet.key <= packet.key.reversed(),
            retains: payload > 0 || meta.flags.intersects(TcpFlags::SYN.with(TcpFlags::FIN)),
        });
    }
}
