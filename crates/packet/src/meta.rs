//! What the datapath knows of a packet, in one cache line.

use lastmile_units::{ByteCount, Instant};

use crate::{
    AckList, FlowDirectory, FlowId, FlowKey, MAX_HEADER_LEN, SeqNumber, header_len, icmp, list, signal, tcp, udp,
    write_headers,
};

/// What a queue, scheduler or ACK regulator may ask of a packet, simulated or real.
pub trait Packet {
    /// The packet's metadata.
    fn meta(&self) -> &Meta;

    /// The packet's metadata, to change what has no place in the bytes (`arrived`, `mark`).
    fn meta_mut(&mut self) -> &mut Meta;

    /// Makes this pure ACK say what `newest` says: acknowledgement number, window and options, the list among them. A
    /// packet with bytes mends its checksums and, if the options' size changes, its lengths.
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
    fn duplicate(&self) -> Self
    where
        Self: Sized;

    /// A new packet that tells `list` ahead of this pure ACK ([`Protocol::AckSignal`]), on the same path.
    #[must_use]
    fn signal(&self, list: &AckList) -> Self
    where
        Self: Sized;

    /// Addresses, ports and protocol number. `None` for a packet with bytes that cannot be read; a packet without bytes is
    /// looked up in `flows`.
    fn key(&self, flows: &dyn FlowDirectory) -> Option<FlowKey> {
        let meta = self.meta();
        let addresses = flows.addresses(meta.flow);
        // A signal is of the flow of its ACK.
        let protocol = if meta.protocol == Protocol::AckSignal { Protocol::Tcp } else { meta.protocol };
        Some(FlowKey { addresses, protocol: protocol.number(addresses.ip.is_ipv6()) })
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

/// A selective acknowledgement (RFC 2018): bytes `left..right` have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SackBlock {
    /// First byte of the block.
    pub left: SeqNumber,
    /// First byte after it.
    pub right: SeqNumber,
}

/// Which TCP options a segment carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(transparent)]
pub struct OptionSet(u8);

impl OptionSet {
    const TIMESTAMPS: u8 = 0x01;
    const SACK_COUNT: u8 = 0x06;
    const MSS: u8 = 0x08;
    const WINDOW_SCALE: u8 = 0x10;
    const SACK_PERMITTED: u8 = 0x20;
    const UNKNOWN: u8 = 0x40;
    const LIST: u8 = 0x80;
}

/// Options that a SYN carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SynOptions {
    /// Maximum segment size (RFC 9293, section 3.7.1).
    pub mss: Option<u16>,
    /// Window scale shift (RFC 7323, section 2).
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018, section 2).
    pub sack_permitted: bool,
}

/// The TCP options of a segment: timestamps beside SACK blocks (at most three), beside the options of a SYN, or beside the
/// list of acknowledgement numbers that the segment's IP header carries, which has no room of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Options {
    words: OptionWords,
    set: OptionSet,
}

/// The values of TCP options, apart from the [`OptionSet`] that says which there are, so that both pack into [`Meta`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct OptionWords {
    /// Timestamp value and echo reply (RFC 7323, section 3).
    timestamps: (u32, u32),
    /// SACK blocks; a SYN keeps MSS and window scale in the first words instead; a list its length in the first byte, then
    /// its bytes. The list of a signal begins in the timestamps.
    sack: [u32; 6],
}

impl OptionWords {
    const BYTES: usize = size_of::<Self>();
    /// Where the words of SACK begin.
    const SACK_AT: usize = 8;

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let words = [self.timestamps.0, self.timestamps.1].into_iter().chain(self.sack);
        for (out, word) in bytes.chunks_exact_mut(4).zip(words) {
            out.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Self { timestamps: (word(0), word(4)), sack: [8, 12, 16, 20, 24, 28].map(word) }
    }

    /// The words with a list from byte `at` on.
    fn with_list(self, at: usize, list: &[u8]) -> Self {
        let mut bytes = self.to_bytes();
        bytes[at..].fill(0);
        bytes[at] = list.len() as u8;
        bytes[at + 1..=at + list.len()].copy_from_slice(list);
        Self::from_bytes(&bytes)
    }

    fn list(self, at: usize) -> AckList {
        let bytes = self.to_bytes();
        let list = bytes.get(at + 1..=at + usize::from(bytes[at])).unwrap_or_default();
        AckList::read(list).unwrap_or(AckList::EMPTY)
    }
}

impl Options {
    /// No options.
    pub const NONE: Self = Self { words: OptionWords { timestamps: (0, 0), sack: [0; 6] }, set: OptionSet(0) };
    /// The most SACK blocks that a segment carries here, as many as fit beside timestamps.
    pub const MAX_SACK_BLOCKS: usize = 3;
    /// The most bytes that options can take: the data offset counts to 15 words, of which the header has five (RFC 9293,
    /// section 3.1).
    pub const MAX_BYTES: usize = 40;

    /// The options of a SYN.
    #[must_use]
    pub const fn syn(options: SynOptions) -> Self {
        let mut this = Self::NONE;
        if let Some(mss) = options.mss {
            this.set.0 |= OptionSet::MSS;
            this.words.sack[0] = mss as u32;
        }
        if let Some(shift) = options.window_scale {
            this.set.0 |= OptionSet::WINDOW_SCALE;
            this.words.sack[1] = shift as u32;
        }
        if options.sack_permitted {
            this.set.0 |= OptionSet::SACK_PERMITTED;
        }
        this
    }

    /// The same options with timestamps.
    #[must_use]
    pub const fn with_timestamps(mut self, value: u32, echo_reply: u32) -> Self {
        self.words.timestamps = (value, echo_reply);
        self.set.0 |= OptionSet::TIMESTAMPS;
        self
    }

    /// The same options with these SACK blocks; only the first three count. A SYN has nothing to acknowledge selectively:
    /// blocks take the place of its options.
    #[must_use]
    pub fn with_sack(mut self, blocks: &[SackBlock]) -> Self {
        const SYN: u8 = OptionSet::MSS | OptionSet::WINDOW_SCALE | OptionSet::SACK_PERMITTED;
        let count = blocks.len().min(Self::MAX_SACK_BLOCKS);
        if count > 0 && self.has_list() {
            self = self.without_list();
        }
        if count > 0 || self.sack_count() > 0 {
            self.words.sack = [0; 6];
            self.set.0 &= !SYN;
        }
        for (words, block) in self.words.sack.chunks_exact_mut(2).zip(&blocks[..count]) {
            words.copy_from_slice(&[block.left.raw(), block.right.raw()]);
        }
        self.set.0 = (self.set.0 & !OptionSet::SACK_COUNT) | ((count as u8) << 1);
        self
    }

    /// The same options, marked as standing beside others that are not understood: such a segment is never regulated.
    #[must_use]
    pub const fn with_unknown(mut self) -> Self {
        self.set.0 |= OptionSet::UNKNOWN;
        self
    }

    /// The same options beside this list, which takes the place of an earlier one. Only an ACK without SACK blocks
    /// ([`Options::may_have_list`]) has one; an empty list, or one of more than [`AckList::MAX_OPTION_BYTES`], is none.
    #[must_use]
    pub fn with_list(mut self, list: &AckList) -> Self {
        debug_assert!(self.may_have_list(), "SACK blocks and the options of a SYN are in the list's place");
        self = self.without_list();
        if !list.is_empty() && list.as_bytes().len() <= AckList::MAX_OPTION_BYTES && self.may_have_list() {
            self.words = self.words.with_list(OptionWords::SACK_AT, list.as_bytes());
            self.set.0 |= OptionSet::LIST;
        }
        self
    }

    /// The same options without a list.
    #[must_use]
    pub const fn without_list(mut self) -> Self {
        if self.has_list() {
            self.words.sack = [0; 6];
            self.set.0 &= !OptionSet::LIST;
        }
        self
    }

    /// True when there is a list.
    #[must_use]
    pub const fn has_list(&self) -> bool {
        self.set.0 & OptionSet::LIST != 0
    }

    /// True for options beside which a list has room: no SACK blocks, none of a SYN.
    #[must_use]
    pub const fn may_have_list(&self) -> bool {
        self.set.0 & !(OptionSet::TIMESTAMPS | OptionSet::LIST) == 0
    }

    /// The list; empty if there is none.
    #[must_use]
    pub fn list(&self) -> AckList {
        if self.has_list() { self.words.list(OptionWords::SACK_AT) } else { AckList::EMPTY }
    }

    /// Bytes that the list takes in the IP header, 0 for none.
    #[must_use]
    pub const fn list_header_bytes(&self, ipv6: bool) -> u8 {
        let len = if self.has_list() { (self.words.sack[0] >> 24) as usize } else { 0 };
        list::header_bytes(len, ipv6) as u8
    }

    /// Bytes of the list of a signal.
    pub(crate) const fn signal_list_len(&self) -> usize {
        (self.words.timestamps.0 >> 24) as usize
    }

    /// Timestamp value and echo reply.
    #[must_use]
    pub const fn timestamps(&self) -> Option<(u32, u32)> {
        if self.set.0 & OptionSet::TIMESTAMPS != 0 { Some(self.words.timestamps) } else { None }
    }

    /// How many SACK blocks there are.
    #[must_use]
    pub const fn sack_count(&self) -> usize {
        ((self.set.0 & OptionSet::SACK_COUNT) >> 1) as usize
    }

    /// The SACK blocks, in the order of the header.
    pub fn sack_blocks(&self) -> impl Iterator<Item = SackBlock> + '_ {
        self.words
            .sack
            .chunks_exact(2)
            .take(self.sack_count())
            .map(|w| SackBlock { left: SeqNumber::new(w[0]), right: SeqNumber::new(w[1]) })
    }

    /// The options that only a SYN carries.
    #[must_use]
    pub const fn syn_options(&self) -> SynOptions {
        SynOptions {
            mss: if self.set.0 & OptionSet::MSS != 0 { Some(self.words.sack[0] as u16) } else { None },
            window_scale: if self.set.0 & OptionSet::WINDOW_SCALE != 0 { Some(self.words.sack[1] as u8) } else { None },
            sack_permitted: self.set.0 & OptionSet::SACK_PERMITTED != 0,
        }
    }

    /// True when the segment carries options that are not understood.
    #[must_use]
    pub const fn has_unknown(&self) -> bool {
        self.set.0 & OptionSet::UNKNOWN != 0
    }

    /// Bytes that the options take in the header, padded to a multiple of four as real stacks lay them out: timestamps 12,
    /// n SACK blocks 4 + 8n, MSS 4, window scale 4; SACK permitted 4, or 0 beside timestamps, whose padding it fills.
    #[must_use]
    pub const fn header_bytes(&self) -> u8 {
        let set = self.set.0;
        let mut bytes = 0;
        if set & OptionSet::TIMESTAMPS != 0 {
            bytes += 12;
        } else if set & OptionSet::SACK_PERMITTED != 0 {
            bytes += 4;
        }
        if set & OptionSet::MSS != 0 {
            bytes += 4;
        }
        if set & OptionSet::WINDOW_SCALE != 0 {
            bytes += 4;
        }
        let blocks = self.sack_count() as u8;
        if blocks > 0 {
            bytes += 4 + 8 * blocks;
        }
        bytes
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
    /// The values of the TCP options: [`Meta::options`] reads them, [`Meta::set_options`] sets them.
    pub option_words: OptionWords,
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
}

const _: () = assert!(size_of::<Meta>() == 64, "a packet fits a cache line");

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

    /// True for a segment that acknowledges and does nothing else: no payload, no flag but ACK, no option unknown. Only
    /// such a packet may be dropped, merged or rewritten by ACK regulation.
    #[must_use]
    pub const fn is_pure_ack(&self) -> bool {
        matches!(self.protocol, Protocol::Tcp)
            && self.flags.bits() == TcpFlags::ACK.bits()
            && self.payload_len() == 0
            && !self.options().has_unknown()
    }

    /// What this ACK says.
    #[must_use]
    pub const fn ack_fields(&self) -> AckFields {
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

    fn rewrite_ack(&mut self, newest: &AckFields) {
        debug_assert!(self.is_pure_ack(), "only a pure ACK is rewritten");
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
