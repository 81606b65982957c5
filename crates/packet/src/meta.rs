//! The metadata of a packet in the datapath, in one cache line.

use core::fmt::Debug;

use lastmile_units::{ByteCount, Instant};

use crate::{
    AckList, FlowDirectory, FlowId, FlowKey, MAX_HEADER_LEN, OptionSet, OptionWords, Options, PureAck, Segment,
    SeqNumber, header_len, icmp, signal, tcp, udp, write_headers,
};

/// The properties and changes of a packet, simulated or real, that queues, schedulers and ACK
/// regulators use.
pub trait Packet: Sized {
    /// The packet's metadata.
    fn meta(&self) -> &Meta;

    /// The packet's metadata, to change fields without a counterpart in the bytes (`arrived`,
    /// `mark`).
    fn meta_mut(&mut self) -> &mut Meta;

    /// The packet as a TCP segment with right checksums, or `None`. A packet with bytes and payload
    /// computes the checksum on each call.
    fn segment(&self) -> Option<Segment<'_>>;

    /// Replaces the fields of this pure ACK by those of `newest`: acknowledgement number, window
    /// and options, the list included. A packet with bytes updates its checksums and, if the
    /// options' size changes, its lengths. A packet that is no [`PureAck`] is unchanged.
    fn rewrite_ack(&mut self, newest: &AckFields);

    /// Sets the window field of this TCP segment, unscaled. A packet with bytes updates its
    /// checksum. A packet that is no TCP segment is unchanged.
    fn set_window(&mut self, window: u16);

    /// Sets the byte of DSCP and ECN field: the IPv4 TOS or IPv6 traffic class. A packet with bytes
    /// updates its checksum. A packet with an unreadable IP header is unchanged.
    fn set_traffic_class(&mut self, traffic_class: u8);

    /// Marks congestion (CE; RFC 3168, section 5) if the sender supports ECN: ECT(0), ECT(1), or CE
    /// already. Returns false for a sender without support: the packet is unchanged, and a drop
    /// must signal congestion.
    fn mark_ce(&mut self) -> bool {
        let meta = self.meta();
        let capable = meta.ecn() != Meta::NOT_ECT;
        if capable && meta.ecn() != Meta::CE {
            self.set_traffic_class(self.meta().traffic_class | Meta::CE);
        }
        capable
    }

    /// Sets the DSCP (RFC 2474), 0 to 63, and leaves the ECN field unchanged.
    fn set_dscp(&mut self, dscp: u8) {
        debug_assert!(dscp < 64, "a DSCP has six bits");
        self.set_traffic_class(dscp << 2 | self.meta().ecn());
    }

    /// True if a list can be inserted into the headers of this pure ACK: no unknown option or
    /// extension occupies its position.
    fn takes_list(&self) -> bool {
        true
    }

    /// A copy of the packet, as a second packet.
    #[must_use]
    fn duplicate(&self) -> Self;

    /// A new packet that carries `list` ahead of this pure ACK ([`Protocol::AckSignal`]) on the
    /// same path.
    #[must_use]
    fn signal(&self, list: &AckList) -> Self;

    /// Addresses, ports and protocol number. `None` for an unreadable packet with bytes. A packet
    /// without bytes is looked up in `flows`.
    fn key(&self, flows: &dyn FlowDirectory) -> Option<FlowKey> {
        let meta = self.meta();
        let addresses = flows.addresses(meta.flow);
        // A signal belongs to the flow of its ACK.
        let protocol = if meta.protocol == Protocol::AckSignal { Protocol::Tcp } else { meta.protocol };
        Some(FlowKey { addresses, protocol: protocol.number(addresses.ip.is_ipv6()) })
    }

    /// A reference to the key stored in the packet, which saves a copy. `None`: only
    /// [`Packet::key`] can answer.
    fn own_key(&self) -> Option<&FlowKey> {
        None
    }

    /// The payload bytes that are known: those of a packet with bytes; for a simulated packet with
    /// payload the flow's first bytes by `flows`, independent of the packet's position in the flow.
    fn payload<'a>(&'a self, flows: &'a dyn FlowDirectory) -> &'a [u8] {
        if self.meta().payload_len() == 0 { &[] } else { flows.first_payload(self.meta().flow) }
    }

    /// The first bytes of the connection's other direction, if known without its packets: for a
    /// simulated flow by `flows`, empty for a packet with bytes.
    fn answer<'a>(&'a self, flows: &'a dyn FlowDirectory) -> &'a [u8] {
        flows.first_payload(self.meta().flow.reversed())
    }

    /// Writes the IP and transport headers, as transmitted, to the start of `out` and returns their
    /// length. Returns 0 for a packet without known headers, which is never compressed. A packet
    /// without bytes has the addresses that `flows` gives.
    fn headers(&self, flows: &dyn FlowDirectory, out: &mut [u8; MAX_HEADER_LEN]) -> usize;
}

/// Transport protocol of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// ICMP echo request (v4 or v6).
    EchoRequest,
    /// ICMP echo reply (v4 or v6).
    EchoReply,
    /// Any other protocol, fragments and unreadable packets included: never regulated.
    Other,
    /// A signal of a Smart ACK Dropper to an ACK regenerator: the list that the next ACK of the
    /// flow replaces.
    AckSignal,
}

impl Protocol {
    /// The IANA protocol number in IPv4 or IPv6 headers. [`Protocol::Other`] and signals have that
    /// for experiments.
    #[must_use]
    pub const fn number(self, ipv6: bool) -> u8 {
        match self {
            Self::Tcp => tcp::PROTOCOL,
            Self::Udp => udp::PROTOCOL,
            Self::EchoRequest | Self::EchoReply if ipv6 => icmp::PROTOCOL_V6,
            Self::EchoRequest | Self::EchoReply => icmp::PROTOCOL_V4,
            Self::Other | Self::AckSignal => signal::PROTOCOL,
        }
    }
}

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

    /// These flags with the lowest three bits of `counter` as ACE field.
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
    /// payload is verified on request ([`Packet::segment`]). A simulated packet is never damaged.
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
    /// TCP window as in the header, unscaled.
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
    /// The TCP options that are present.
    pub option_set: OptionSet,
    /// The values of the TCP options: [`Meta::options`] reads them, [`Meta::set_options`] sets
    /// them.
    pub option_words: OptionWords,
    /// The class that rules or a scheduler assigned in the current queue; `None` outside of queues.
    pub class: Option<u16>,
}

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
        Options { words: self.option_words, set: self.option_set }
    }

    /// Sets the TCP options. The caller keeps the lengths consistent.
    pub const fn set_options(&mut self, options: Options) {
        self.option_words = options.words;
        self.option_set = options.set;
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
            Protocol::AckSignal => self.option_words.list(0),
            _ => self.options().list(),
        }
    }

    /// Turns the metadata of an ACK into those of a signal that carries `list` for the ACK
    /// `self.ack`, with its lengths.
    pub(crate) fn become_signal(&mut self, list: &AckList) {
        self.protocol = Protocol::AckSignal;
        self.option_set = OptionSet::default();
        self.option_words = OptionWords::default().with_list(0, list.as_bytes());
        (self.seq, self.window, self.flags) = (SeqNumber::default(), 0, TcpFlags::NONE);
        self.header_len = header_len(self.protocol, self.mark.ipv6(), &self.options());
        self.ip_len = u16::from(self.header_len);
    }

    /// True for a segment that only acknowledges: no payload, no flag but ACK, no unknown option.
    /// The test uses the fields alone, for classifiers and counters, and includes damaged segments
    /// ([`Meta::pure_ack`] does not).
    #[must_use]
    pub const fn is_pure_ack(&self) -> bool {
        matches!(self.protocol, Protocol::Tcp)
            && self.flags.0 == TcpFlags::ACK.0
            && self.payload_len() == 0
            && !self.options().has_unknown()
    }

    /// This packet as a pure ACK with right checksums, or `None`. ACK regulation may drop, merge or
    /// rewrite no other packet.
    #[inline]
    #[must_use]
    pub const fn pure_ack(&self) -> Option<PureAck<'_>> {
        PureAck::of(self)
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

impl Packet for Meta {
    fn meta(&self) -> &Meta {
        self
    }

    fn meta_mut(&mut self) -> &mut Meta {
        self
    }

    fn segment(&self) -> Option<Segment<'_>> {
        Segment::of(self)
    }

    fn rewrite_ack(&mut self, newest: &AckFields) {
        debug_assert!(self.pure_ack().is_some(), "only a sound pure ACK is rewritten");
        if self.pure_ack().is_none() {
            return;
        }
        let ipv6 = self.mark.ipv6();
        let bytes = |options: &Options| options.header_bytes() + options.list_header_bytes(ipv6);
        self.header_len = self.header_len - bytes(&self.options()) + bytes(&newest.options);
        self.ip_len = u16::from(self.header_len);
        self.ack = newest.ack;
        self.window = newest.window;
        self.set_options(newest.options);
    }

    fn set_window(&mut self, window: u16) {
        if self.protocol == Protocol::Tcp {
            self.window = window;
        }
    }

    fn set_traffic_class(&mut self, traffic_class: u8) {
        self.traffic_class = traffic_class;
    }

    fn duplicate(&self) -> Self {
        *self
    }

    fn signal(&self, list: &AckList) -> Self {
        let mut signal = *self;
        signal.become_signal(list);
        signal
    }

    /// Headers with IPv4 addresses, because RFC 1144 compresses no others.
    fn headers(&self, flows: &dyn FlowDirectory, out: &mut [u8; MAX_HEADER_LEN]) -> usize {
        let addresses = flows.addresses(self.flow);
        if self.mark.ipv6() || addresses.ip.is_ipv6() {
            return 0;
        }
        write_headers(self, &addresses, out)
    }
}
