//! The metadata of a packet in the datapath, in 80 bytes.

use core::fmt::Debug;

use lastmile_units::{ByteCount, Instant};

use crate::{AckList, FlowId, Options, Protocol, SeqNumber};

/// TCP control bits (RFC 9293, section 3.1): the header's flag byte, and AE of the byte before it (RFC 9768).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(transparent)]
pub struct TcpFlags(u16);

impl TcpFlags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field is valid.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is valid.
    pub const URG: Self = Self(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);
    /// Accurate ECN (RFC 9768, section 3.2.2), the bit above CWR.
    pub const AE: Self = Self(0x100);
    /// The three bits of the ACE field: AE, CWR, ECE.
    pub const ACE: Self = Self(0x1c0);

    /// Flags from the header's flag byte.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits as u16)
    }

    /// The header's flag byte, which has no AE.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0 as u8
    }

    /// The flags of both bytes of the header: the byte of the data offset, and the flag byte.
    #[must_use]
    pub const fn from_header(offset: u8, bits: u8) -> Self {
        Self((offset as u16 & 1) << 8 | bits as u16)
    }

    /// AE at its position in the byte of the data offset.
    #[must_use]
    pub const fn offset_bits(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// The ACE field as a number: AE is its highest bit, ECE its lowest (RFC 9768, section 3.2.2).
    #[must_use]
    pub const fn ace(self) -> u8 {
        ((self.0 & Self::ACE.0) >> 6) as u8
    }

    /// A copy of the flags with the lowest three bits of `counter` as ACE field.
    #[must_use]
    pub const fn with_ace(self, counter: u8) -> Self {
        Self(self.0 & !Self::ACE.0 | (counter as u16 & 7) << 6)
    }

    /// The flags that are in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The union of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// `self` without `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// True when every bit of `other` is set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// True when any bit of `other` is set.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Marks of a packet inside a network. None of them is in its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Mark(u8);

impl Mark {
    const CLP: u8 = 0x01;
    const IPV6: u8 = 0x02;
    const RETRANSMISSION: u8 = 0x04;
    const UNVERIFIED: u8 = 0x08;

    /// Cell loss priority of the packet's cells.
    #[must_use]
    pub const fn clp(self) -> bool {
        self.0 & Self::CLP != 0
    }

    /// Sets the cell loss priority.
    pub const fn set_clp(&mut self) {
        self.0 |= Self::CLP;
    }

    /// True for an IPv6 packet.
    #[must_use]
    pub const fn ipv6(self) -> bool {
        self.0 & Self::IPV6 != 0
    }

    /// Marks the packet as IPv6.
    pub const fn set_ipv6(&mut self) {
        self.0 |= Self::IPV6;
    }

    /// True for a retransmission, as a simulated sender marks it.
    #[must_use]
    pub const fn retransmission(self) -> bool {
        self.0 & Self::RETRANSMISSION != 0
    }

    /// Marks the packet as a retransmission.
    pub const fn set_retransmission(&mut self) {
        self.0 |= Self::RETRANSMISSION;
    }

    /// True for a TCP segment with bytes whose checksums are wrong or not verified. A segment with
    /// payload is verified on request ([`crate::Packet::segment`]). A simulated packet is never damaged.
    #[must_use]
    pub const fn unverified(self) -> bool {
        self.0 & Self::UNVERIFIED != 0
    }

    /// Marks the checksums as not verified.
    pub const fn set_unverified(&mut self) {
        self.0 |= Self::UNVERIFIED;
    }
}

/// The metadata of a packet. A simulated packet consists of it alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Meta {
    /// Arrival time at the current queue. The queue's owner sets it, AQMs read it.
    pub arrived: Instant,
    /// When a simulated host sent the packet, or the one from which a middlebox made it; when a real packet came to its
    /// first link.
    pub sent: Instant,
    /// The flow.
    pub flow: FlowId,
    /// TCP sequence number; for UDP and ICMP echo the packet's number in its flow.
    pub seq: SeqNumber,
    /// TCP acknowledgement number, valid only with [`TcpFlags::ACK`].
    pub ack: SeqNumber,
    /// Length of the whole IP packet in bytes.
    pub ip_len: u16,
    /// Identification of the IPv4 header.
    pub ip_id: u16,
    /// TCP window as in the header, unscaled; the header of a simulated QUIC packet ([`Meta::set_quic`]).
    pub window: u16,
    /// TCP flags.
    pub flags: TcpFlags,
    /// Transport protocol.
    pub protocol: Protocol,
    /// DSCP (upper six bits) and ECN field (lower two): the IPv4 TOS or IPv6 traffic class byte.
    pub traffic_class: u8,
    /// Bytes of IP and transport headers.
    pub header_len: u8,
    /// Marks inside the network.
    pub mark: Mark,
    /// The TCP options, which [`Meta::options`] reads. An ACK signal has its list here.
    pub tcp_options: Options,
    /// The class that rules or a scheduler assigned in the current queue; `None` outside of queues.
    pub class: Option<u16>,
}

// Rings of packets are most of the memory of a simulation with long queues.
const _: () = assert!(size_of::<Meta>() == 80);

/// The fields of a pure ACK that ACK regulation stores and restores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckFields {
    /// Acknowledgement number.
    pub ack: SeqNumber,
    /// Window as in the header.
    pub window: u16,
    /// Options.
    pub options: Options,
}

impl Meta {
    /// The ECN field of a packet whose sender does not support ECN (RFC 3168, section 5).
    pub const NOT_ECT: u8 = 0;
    /// The ECN field of a sender that responds to each mark (L4S; RFC 9331, section 4.1).
    pub const ECT_1: u8 = 1;
    /// The ECN field of a sender that responds to marks as to losses (RFC 3168, section 5).
    pub const ECT_0: u8 = 2;
    /// The ECN field of a packet that experienced congestion (RFC 3168, section 5).
    pub const CE: u8 = 3;

    /// Assigns the scheduler's class `number`, unless rules or an outer scheduler have assigned
    /// one.
    #[inline]
    pub fn join_class(&mut self, number: usize) {
        if self.class.is_none() {
            self.class = u16::try_from(number).ok();
        }
    }

    /// The TCP options.
    #[must_use]
    pub const fn options(&self) -> Options {
        self.tcp_options
    }

    /// Sets the TCP options. The caller keeps the lengths consistent.
    pub const fn set_options(&mut self, options: Options) {
        self.tcp_options = options;
    }

    /// The length of the IP packet.
    #[must_use]
    pub const fn ip_bytes(&self) -> ByteCount {
        ByteCount::new(self.ip_len as u64)
    }

    /// Bytes of transport payload.
    #[must_use]
    pub const fn payload_len(&self) -> u16 {
        self.ip_len - self.header_len as u16
    }

    /// DSCP (RFC 2474).
    #[must_use]
    pub const fn dscp(&self) -> u8 {
        self.traffic_class >> 2
    }

    /// ECN field: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE (RFC 3168, section 5).
    #[must_use]
    pub const fn ecn(&self) -> u8 {
        self.traffic_class & 3
    }

    /// The list that this packet carries: an ACK for itself, a signal for the ACK behind it, whose
    /// number is [`Meta::ack`]. Empty for all others.
    #[must_use]
    pub fn list(&self) -> AckList {
        match self.protocol {
            Protocol::AckSignal => self.tcp_options.words.list(0),
            _ => self.options().list(),
        }
    }

    /// True for a segment that only acknowledges: no payload, no unknown option, and no flag but ACK and those of ECN
    /// feedback ([`TcpFlags::ACE`]). The test uses the fields alone, for classifiers and counters, and includes damaged
    /// segments ([`Meta::pure_ack`] does not).
    #[must_use]
    pub const fn is_pure_ack(&self) -> bool {
        matches!(self.protocol, Protocol::Tcp)
            && self.flags.0 & !TcpFlags::ACE.0 == TcpFlags::ACK.0
            && self.payload_len() == 0
            && !self.tcp_options.has_unknown()
    }

    /// True for a TCP segment without payload whose checksums are wrong.
    #[must_use]
    pub const fn is_damaged(&self) -> bool {
        matches!(self.protocol, Protocol::Tcp) && self.mark.unverified() && self.payload_len() == 0
    }

    /// The fields of this ACK.
    #[must_use]
    pub(crate) const fn ack_fields(&self) -> AckFields {
        AckFields { ack: self.ack, window: self.window, options: self.options() }
    }
}
