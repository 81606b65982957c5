//! What the datapath knows of a packet, in one cache line.

use core::fmt::Debug;

use lastmile_units::{ByteCount, Instant};

use crate::{
    AckList, FlowDirectory, FlowId, FlowKey, MAX_HEADER_LEN, OptionSet, OptionWords, Options, PureAck, Segment,
    SeqNumber, header_len, icmp, signal, tcp, udp, write_headers,
};

/// What a queue, scheduler or ACK regulator may ask of a packet, simulated or real.
pub trait Packet: Sized {
    /// The packet's metadata.
    fn meta(&self) -> &Meta;

    /// The packet's metadata, to change what has no place in the bytes (`arrived`, `mark`).
    fn meta_mut(&mut self) -> &mut Meta;

    /// What this packet says as a TCP segment, if it is one and its checksums hold. A packet with bytes and payload sums them each time
    /// that it is asked.
    fn segment(&self) -> Option<Segment<'_>>;

    /// Makes this pure ACK say what `newest` says: acknowledgement number, window and options, the list among them. A
    /// packet with bytes mends its checksums and, if the options' size changes, its lengths. Any packet but a [`PureAck`] stays as it is.
    fn rewrite_ack(&mut self, newest: &AckFields);

    /// Sets the window of this TCP segment, as it stands in the header (unscaled). A packet with bytes mends its checksum;
    /// one that is no TCP segment stays as it is.
    fn set_window(&mut self, window: u16);

    /// Sets the byte of DSCP and ECN field: the IPv4 TOS or IPv6 traffic class. A packet with bytes mends its checksum; one
    /// whose IP header could not be read stays as it is.
    fn set_traffic_class(&mut self, traffic_class: u8);

    /// Marks the packet as having met congestion (CE; RFC 3168, section 5) if its sender said that it understands that:
    /// ECT(0), ECT(1), or CE already. False when it did not: the packet stays as it is, and congestion is told by dropping.
    fn mark_ce(&mut self) -> bool {
        let meta = self.meta();
        let capable = meta.ecn() != Meta::NOT_ECT;
        if capable && meta.ecn() != Meta::CE {
            self.set_traffic_class(self.meta().traffic_class | Meta::CE);
        }
        capable
    }

    /// Sets the DSCP (RFC 2474), 0 to 63, and leaves the ECN field alone.
    fn set_dscp(&mut self, dscp: u8) {
        debug_assert!(dscp < 64, "a DSCP has six bits");
        self.set_traffic_class(dscp << 2 | self.meta().ecn());
    }

    /// True when a list can be put into the headers of this pure ACK: nothing that is not understood is in its place.
    fn takes_list(&self) -> bool {
        true
    }

    /// A new packet that is this one over again.
    #[must_use]
    fn duplicate(&self) -> Self;

    /// A new packet that tells `list` ahead of this pure ACK ([`Protocol::AckSignal`]), on the same path.
    #[must_use]
    fn signal(&self, list: &AckList) -> Self;

    /// Addresses, ports and protocol number. `None` for a packet with bytes that cannot be read; a packet without bytes is
    /// looked up in `flows`.
    fn key(&self, flows: &dyn FlowDirectory) -> Option<FlowKey> {
        let meta = self.meta();
        let addresses = flows.addresses(meta.flow);
        // A signal is of the flow of its ACK.
        let protocol = if meta.protocol == Protocol::AckSignal { Protocol::Tcp } else { meta.protocol };
        Some(FlowKey { addresses, protocol: protocol.number(addresses.ip.is_ipv6()) })
    }

    /// The same where the packet itself has it, so that nothing is copied. `None`: only [`Packet::key`] knows.
    fn own_key(&self) -> Option<&FlowKey> {
        None
    }

    /// The payload as far as its bytes are known: those of the packet, or for a simulated packet that has a payload the
    /// first bytes of its flow by `flows`, whichever of its packets it is.
    fn payload<'a>(&'a self, flows: &'a dyn FlowDirectory) -> &'a [u8] {
        if self.meta().payload_len() == 0 { &[] } else { flows.first_payload(self.meta().flow) }
    }

    /// What the other direction of the connection began with, where that is known without seeing its packets: of a simulated
    /// flow by `flows`, never of a packet with bytes.
    fn answer<'a>(&'a self, flows: &'a dyn FlowDirectory) -> &'a [u8] {
        flows.first_payload(self.meta().flow.reversed())
    }

    /// Writes the IP and transport headers, as they go over the line, to the start of `out`; returns their length. Zero for
    /// a packet whose headers cannot be told: such a packet is never compressed. A packet without bytes wears the addresses
    /// that `flows` gives it.
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
    /// Anything else, fragments and unreadable packets included: never regulated.
    Other,
    /// A signal of a Smart ACK Dropper to an ACK regenerator: the list that the next ACK of the flow stands for.
    AckSignal,
}

impl Protocol {
    /// The number that IANA gives it, as it is written in IPv4 or IPv6 headers; for [`Protocol::Other`] and
    /// signals that of experiments.
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

/// TCP control bits (RFC 9293, section 3.1), as in the header's flag byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(transparent)]
pub struct TcpFlags(u8);

impl TcpFlags {
    /// No bit.
    pub const NONE: Self = Self(0);
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field counts.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer counts.
    pub const URG: Self = Self(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// The flags as they stand in the header.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The flags as they stand in the header.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Both sets together.
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

/// Marks that a packet wears inside a network, none of them in its bytes.
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

    /// True for IPv6.
    #[must_use]
    pub const fn ipv6(self) -> bool {
        self.0 & Self::IPV6 != 0
    }

    /// Notes that the packet is IPv6.
    pub const fn set_ipv6(&mut self) {
        self.0 |= Self::IPV6;
    }

    /// True when a simulated sender knows that it sent these bytes before.
    #[must_use]
    pub const fn retransmission(self) -> bool {
        self.0 & Self::RETRANSMISSION != 0
    }

    /// Notes that the sender sent these bytes before.
    pub const fn set_retransmission(&mut self) {
        self.0 |= Self::RETRANSMISSION;
    }

    /// True of a TCP segment with bytes of which nothing has shown that the checksums hold: they do not, or a payload stands behind
    /// the header, which is summed when somebody asks ([`Packet::segment`]). A simulated packet is never damaged.
    #[must_use]
    pub const fn unverified(self) -> bool {
        self.0 & Self::UNVERIFIED != 0
    }

    /// Notes that nothing has shown that the checksums hold.
    pub const fn set_unverified(&mut self) {
        self.0 |= Self::UNVERIFIED;
    }
}

/// What the datapath knows of a packet. A simulated packet is no more than this.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Meta {
    /// When the packet came to the queue that it is in: its owner sets it, AQMs read it.
    pub arrived: Instant,
    /// The flow.
    pub flow: FlowId,
    /// TCP sequence number; for UDP and ICMP echo the packet's number in its flow.
    pub seq: SeqNumber,
    /// TCP acknowledgement number, which counts only with [`TcpFlags::ACK`].
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
    /// Which TCP options there are.
    pub option_set: OptionSet,
    /// The values of the TCP options: [`Meta::options`] reads them, [`Meta::set_options`] sets them.
    pub option_words: OptionWords,
    /// The class that rules or a scheduler gave the packet in the queue that it is in; `None` outside of queues.
    pub class: Option<u16>,
}

/// What a pure ACK says, as ACK regulation stores and restores it.
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
    /// The ECN field of a packet whose sender does not understand congestion marks (RFC 3168, section 5).
    pub const NOT_ECT: u8 = 0;
    /// The ECN field of a packet that met congestion (RFC 3168, section 5).
    pub const CE: u8 = 3;

    /// The scheduler puts the packet into its class of this number. The class that rules or an outer scheduler gave it stays.
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

    /// Sets the TCP options. The lengths stay: they are the caller's to keep true.
    pub const fn set_options(&mut self, options: Options) {
        self.option_words = options.words;
        self.option_set = options.set;
    }

    /// The length of the IP packet.
    #[must_use]
    pub const fn ip_bytes(&self) -> ByteCount {
        ByteCount::new(self.ip_len as u64)
    }

    /// Bytes that the transport protocol carries.
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

    /// The list that this packet tells: an ACK of itself, a signal of the ACK behind it, which has the number
    /// [`Meta::ack`]. Empty for all others.
    #[must_use]
    pub fn list(&self) -> AckList {
        match self.protocol {
            Protocol::AckSignal => self.option_words.list(0),
            _ => self.options().list(),
        }
    }

    /// Makes this a signal that tells `list` ahead of the ACK `self.ack`; sets its lengths.
    pub(crate) fn become_signal(&mut self, list: &AckList) {
        self.protocol = Protocol::AckSignal;
        self.option_set = OptionSet::default();
        self.option_words = OptionWords::default().with_list(0, list.as_bytes());
        (self.seq, self.window, self.flags) = (SeqNumber::default(), 0, TcpFlags::NONE);
        self.header_len = header_len(self.protocol, self.mark.ipv6(), &self.options());
        self.ip_len = u16::from(self.header_len);
    }

    /// True for a segment that acknowledges and does nothing else: no payload, no flag but ACK, no option unknown. By its fields alone,
    /// as classifiers and counters read it: a damaged one may be among them ([`Meta::pure_ack`]).
    #[must_use]
    pub const fn is_pure_ack(&self) -> bool {
        matches!(self.protocol, Protocol::Tcp)
            && self.flags.bits() == TcpFlags::ACK.bits()
            && self.payload_len() == 0
            && !self.options().has_unknown()
    }

    /// The pure ACK that this is, if its checksums hold. Only such a packet may be dropped, merged or rewritten by ACK regulation.
    #[inline]
    #[must_use]
    pub const fn pure_ack(&self) -> Option<PureAck<'_>> {
        PureAck::of(self)
    }

    /// True of a TCP segment without payload whose checksums do not hold.
    #[must_use]
    pub const fn is_damaged(&self) -> bool {
        matches!(self.protocol, Protocol::Tcp) && self.mark.unverified() && self.payload_len() == 0
    }

    /// What this ACK says.
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

    /// Those of IPv4, since RFC 1144 compresses no others.
    fn headers(&self, flows: &dyn FlowDirectory, out: &mut [u8; MAX_HEADER_LEN]) -> usize {
        let addresses = flows.addresses(self.flow);
        if self.mark.ipv6() || addresses.ip.is_ipv6() {
            return 0;
        }
        write_headers(self, &addresses, out)
    }
}
