//! A real packet: its bytes and the metadata read from them.

use core::ops::Range;

use crate::checksum::{Sum, mend};
use crate::ethernet::{self, FrameError, Located, Prefix};
use crate::fields::ParseError;
use crate::parse;
use crate::{
    AckFields, AckList, FlowDirectory, FlowKey, MAX_HEADER_LEN, Meta, Options, Packet, Protocol, Segment, protocol,
};
use crate::{ipv4, ipv6, list, tcp, write_packet};

/// An IP packet with its bytes, optionally in an Ethernet frame, as the live programs carry it
/// through the datapath.
///
/// Only methods of [`Packet`] change the bytes. They update checksums for the changed bytes
/// (RFC 1624) and never recompute them, so that a damaged packet stays detectable by its receiver.
/// The checksums of a TCP segment without payload are verified when it is read; those of a segment
/// with payload when [`Packet::segment`] is called.
///
/// The bytes behind the IP packet in its frame ([`Frame::trailer`]) follow the packet unchanged. If
/// a rewritten ACK is longer or shorter, the PPPoE length changes by the difference. No length
/// counts a trailer, and a checksum in it is not updated.
///
/// Bytes and metadata are boxed together, so that passing a packet on moves one pointer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    body: Box<Body>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Body {
    meta: Meta,
    /// The headers in front of the packet, the packet, and its trailer.
    bytes: Vec<u8>,
    /// Offset of the trailer.
    end: usize,
    /// The flow that the bytes identify; `None` if they are unreadable.
    key: Option<FlowKey>,
    prefix: Prefix,
    /// Offset of the transport header from the IP header.
    transport_offset: u8,
}

impl Frame {
    /// A frame of the bytes of an IP packet, and the flow that they identify.
    ///
    /// No packet is refused: an unreadable one becomes [`Protocol::Other`], which passes unchanged,
    /// and the error gives the reason. Bytes behind a readable packet are its trailer. The caller
    /// sets `meta.flow` and `meta.arrived`.
    pub fn new(bytes: Vec<u8>) -> (Self, Result<FlowKey, ParseError>) {
        let mut body = Box::new(Body { bytes, ..Body::default() });
        let read = body.read_packet();
        let key = read.map(|()| body.key.expect("what was read has a flow"));
        (Self { body }, key)
    }

    /// A frame of the bytes of an Ethernet frame, without its FCS, and the flow of the IP packet in
    /// it.
    ///
    /// No frame is refused, as in [`Frame::new`]. A frame without an IP packet (ARP, PPPoE
    /// discovery) passes unchanged; its length counts from behind its Ethernet header and tags.
    pub fn ethernet(bytes: Vec<u8>) -> (Self, Result<FlowKey, FrameError>) {
        let mut body = Box::new(Body { bytes, ..Body::default() });
        let read = body.read_ethernet();
        let key = read.map(|()| body.key.expect("what was read has a flow"));
        (Self { body }, key)
    }

    /// Replaces this packet by another in the memory of this one, with the result of
    /// [`Frame::new`].
    ///
    /// # Errors
    /// The bytes are unreadable: the packet passes unchanged.
    pub fn refill(&mut self, bytes: &[u8]) -> Result<(), ParseError> {
        self.body.refill(bytes);
        self.body.read_packet()
    }

    /// Replaces this frame by another in the memory of this one, with the result of
    /// [`Frame::ethernet`].
    ///
    /// # Errors
    /// The bytes are unreadable: the frame passes unchanged.
    pub fn refill_ethernet(&mut self, bytes: &[u8]) -> Result<(), FrameError> {
        self.body.refill(bytes);
        self.body.read_ethernet()
    }

    /// The flow that the bytes identify; `None` if they are unreadable.
    #[must_use]
    pub fn flow_key(&self) -> Option<&FlowKey> {
        self.body.key.as_ref()
    }

    /// All bytes, as a port transmits them: from the Ethernet header on if the packet arrived in an
    /// Ethernet frame.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.body.bytes
    }

    /// The bytes of the IP packet, or of a frame without IP those behind the Ethernet header and
    /// its tags.
    #[must_use]
    pub fn packet_bytes(&self) -> &[u8] {
        self.body.packet()
    }

    /// The bytes behind a readable IP packet: the padding of Ethernet or PPP, an FCS, a vendor's
    /// trailer.
    #[must_use]
    pub fn trailer(&self) -> &[u8] {
        &self.body.bytes[self.body.end..]
    }

    /// Returns the bytes, so that their memory can serve the next packet.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.body.bytes
    }

    /// Replaces the options of a packet without payload, and its data offset. The caller updates IP
    /// lengths and checksums.
    fn replace_options(&mut self, newest: &Options) {
        let transport = usize::from(self.body.transport_offset);
        let mut options = [0; Options::MAX_BYTES];
        let options_len = tcp::write_options(&mut options, newest);
        let start = usize::from(self.body.prefix.len) + transport + tcp::HEADER_LEN;
        self.replace(start..self.body.end, &options[..options_len]);
        let offset = tcp::data_offset(tcp::HEADER_LEN + options_len) | self.body.meta.flags.offset_bits();
        self.packet_mut()[transport + tcp::DATA_OFFSET_AT] = offset;
    }

    /// Replaces the list in the IP header. The caller updates the IP header's length.
    fn replace_list(&mut self, newest: &AckList) {
        let mut written = [0; list::MAX_HEADER_BYTES];
        let ip = usize::from(self.body.prefix.len);
        let old_end = usize::from(self.body.transport_offset);
        let (fixed, len) = if self.body.meta.mark.ipv6() {
            let has_one = old_end > ipv6::HEADER_LEN;
            let next_header = self.packet_bytes()[if has_one { ipv6::HEADER_LEN } else { NEXT_HEADER_AT }];
            let len = list::write_ipv6(&mut written, next_header, newest.as_bytes());
            self.packet_mut()[NEXT_HEADER_AT] = if len > 0 { ipv6::DESTINATION_OPTIONS } else { next_header };
            (ipv6::HEADER_LEN, len)
        } else {
            let packet = self.packet_bytes();
            let removed = Sum::ZERO.bytes(&packet[..2]).bytes(&packet[ipv4::HEADER_LEN..old_end]);
            let len = list::write_ipv4(&mut written, newest.as_bytes());
            self.packet_mut()[0] = ipv4::first_byte(ipv4::HEADER_LEN + len);
            self.mend_ipv4(removed, Sum::ZERO.bytes(&self.packet_bytes()[..2]).bytes(&written[..len]));
            (ipv4::HEADER_LEN, len)
        };
        self.replace(ip + fixed..ip + old_end, &written[..len]);
        self.body.transport_offset = (fixed + len) as u8;
    }

    /// Replaces a range of the bytes.
    fn replace(&mut self, range: Range<usize>, with: &[u8]) {
        self.body.end = self.body.end - range.len() + with.len();
        self.body.bytes.splice(range, with.iter().copied());
    }

    fn mend_ipv4(&mut self, removed: Sum, added: Sum) {
        self.set_word(ipv4::CHECKSUM_AT, mend(self.word(ipv4::CHECKSUM_AT), removed, added));
    }

    /// Sets the length in the IP header to that of the bytes, and changes the PPPoE length by the
    /// difference. The bytes behind the packet stay.
    fn mend_lengths(&mut self) {
        let len = self.packet_bytes().len() as u16;
        if self.body.meta.mark.ipv6() {
            self.set_word(4, len - ipv6::HEADER_LEN as u16);
        } else {
            self.set_summed_word(2, len, ipv4::CHECKSUM_AT);
        }
        self.body.prefix.resize(&mut self.body.bytes, self.body.meta.ip_len, len);
        self.body.meta.ip_len = len;
        self.body.meta.header_len = len as u8;
    }

    /// The sum of all bytes from `changing` on, and of the length from `transport` on.
    fn sum_from(&self, changing: usize, transport: usize) -> Sum {
        let packet = self.packet_bytes();
        Sum::ZERO.bytes(&packet[changing..]).word((packet.len() - transport) as u16)
    }

    fn packet_mut(&mut self) -> &mut [u8] {
        &mut self.body.bytes[usize::from(self.body.prefix.len)..self.body.end]
    }

    /// Two bytes of the packet as a number; `at` counts from its IP header.
    fn word(&self, at: usize) -> u16 {
        let packet = self.packet_bytes();
        u16::from_be_bytes([packet[at], packet[at + 1]])
    }

    fn set_word(&mut self, at: usize, word: u16) {
        self.packet_mut()[at..at + 2].copy_from_slice(&word.to_be_bytes());
    }

    /// Sets a word covered by the checksum at `checksum_at`, and updates that checksum.
    fn set_summed_word(&mut self, at: usize, word: u16, checksum_at: usize) {
        let mended = mend(self.word(checksum_at), Sum::ZERO.word(self.word(at)), Sum::ZERO.word(word));
        self.set_word(checksum_at, mended);
        self.set_word(at, word);
    }
}

impl Body {
    fn refill(&mut self, bytes: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
    }

    fn read_ethernet(&mut self) -> Result<(), FrameError> {
        let Located { prefix, end } = ethernet::locate(&self.bytes);
        match end {
            Ok(end) => self.read_behind(prefix, end).map_err(FrameError::Packet),
            Err(error) => {
                self.set_unreadable(prefix);
                Err(error)
            }
        }
    }

    fn read_packet(&mut self) -> Result<(), ParseError> {
        self.read_behind(Prefix::default(), self.bytes.len())
    }

    /// Reads the packet behind `prefix` that ends before `end`.
    fn read_behind(&mut self, prefix: Prefix, end: usize) -> Result<(), ParseError> {
        let start = usize::from(prefix.len);
        let packet = &self.bytes[start..end];
        if let Some((key, transport_offset)) = parse::read_usual(packet, &mut self.meta) {
            self.set_packet(prefix, key, transport_offset);
            return Ok(());
        }
        match parse::read(packet, &mut self.meta) {
            Ok((key, transport_offset)) => {
                self.set_packet(prefix, key, transport_offset);
                Ok(())
            }
            Err(error) => {
                self.set_unreadable(prefix);
                Err(error)
            }
        }
    }

    #[inline]
    fn set_packet(&mut self, prefix: Prefix, key: FlowKey, transport_offset: u8) {
        self.key = Some(key);
        (self.prefix, self.transport_offset) = (prefix, transport_offset);
        self.end = usize::from(prefix.len) + usize::from(self.meta.ip_len);
        if self.meta.protocol == Protocol::Tcp && (self.meta.payload_len() > 0 || !self.tcp_checksums_hold()) {
            self.meta.mark.set_unverified();
        }
    }

    fn packet(&self) -> &[u8] {
        &self.bytes[usize::from(self.prefix.len)..self.end]
    }

    /// True for a TCP segment with right checksums, including that of the IPv4 header.
    fn tcp_checksums_hold(&self) -> bool {
        let (header, segment) = self.packet().split_at(usize::from(self.transport_offset));
        let ipv6 = self.meta.mark.ipv6();
        let addresses = if ipv6 { &header[ipv6::ADDRESSES] } else { &header[ipv4::ADDRESSES] };
        // The pseudo-header of `Sum::pseudo_header`, with the addresses read in place.
        let pseudo_header = Sum::ZERO.bytes(addresses).word(u16::from(protocol::TCP)).word(segment.len() as u16);
        (ipv6 || Sum::ZERO.bytes(header).checksum() == 0) && pseudo_header.bytes(segment).checksum() == 0
    }

    fn set_unreadable(&mut self, prefix: Prefix) {
        let ip_len = u16::try_from(self.bytes.len() - usize::from(prefix.len)).unwrap_or(u16::MAX);
        self.meta = Meta { ip_len, protocol: Protocol::Other, ..Meta::default() };
        (self.key, self.prefix, self.transport_offset) = (None, prefix, 0);
        self.end = self.bytes.len();
    }
}

impl Packet for Frame {
    fn meta(&self) -> &Meta {
        &self.body.meta
    }

    fn meta_mut(&mut self) -> &mut Meta {
        &mut self.body.meta
    }

    fn segment(&self) -> Option<Segment<'_>> {
        let meta = self.meta();
        if meta.payload_len() == 0 || !meta.mark.unverified() {
            return Segment::of(meta);
        }
        Segment::summed(meta).filter(|_| self.body.tcp_checksums_hold())
    }

    /// Options that equal those of `newest` stay byte for byte; others are written in the usual
    /// layout. A packet that is no pure ACK is unchanged, because truncating it to its header would
    /// lose data.
    fn rewrite_ack(&mut self, newest: &AckFields) {
        debug_assert!(self.body.meta.pure_ack().is_some(), "only a sound pure ACK is rewritten");
        if self.body.meta.pure_ack().is_none() {
            return;
        }
        let before_options = self.body.meta.options();
        let options = if self.takes_list() { newest.options } else { newest.options.without_list() };
        let transport = usize::from(self.body.transport_offset);
        let changing = transport + tcp::ACK_AT;
        let before = self.sum_from(changing, transport);
        self.packet_mut()[changing..changing + 4].copy_from_slice(&newest.ack.raw().to_be_bytes());
        self.set_word(transport + tcp::WINDOW_AT, newest.window);
        self.body.meta.ack = newest.ack;
        self.body.meta.window = newest.window;
        let len_before = self.body.bytes.len();
        if options.without_list() != before_options.without_list() {
            self.replace_options(&options);
        }
        if options.list() != before_options.list() {
            self.replace_list(&options.list());
        }
        self.body.meta.set_options(options);
        if self.body.bytes.len() != len_before {
            self.mend_lengths();
        }
        let transport = usize::from(self.body.transport_offset);
        let changing = transport + tcp::ACK_AT;
        // Both sums include the old checksum, which therefore cancels. The pseudo-header has the
        // length of the TCP packet.
        let after = self.sum_from(changing, transport);
        let checksum_at = transport + tcp::CHECKSUM_AT;
        self.set_word(checksum_at, mend(self.word(checksum_at), before, after));
    }

    fn set_window(&mut self, window: u16) {
        if self.body.meta.protocol != Protocol::Tcp {
            return;
        }
        let transport = usize::from(self.body.transport_offset);
        self.set_summed_word(transport + tcp::WINDOW_AT, window, transport + tcp::CHECKSUM_AT);
        self.body.meta.window = window;
    }

    fn set_traffic_class(&mut self, traffic_class: u8) {
        if self.body.transport_offset == 0 {
            return;
        }
        let first = self.word(0);
        if self.body.meta.mark.ipv6() {
            // Version, traffic class, the upper bits of the flow label (RFC 8200, section 3). No
            // checksum covers them.
            self.set_word(0, first & 0xF00F | u16::from(traffic_class) << 4);
        } else {
            self.set_summed_word(0, first & 0xFF00 | u16::from(traffic_class), ipv4::CHECKSUM_AT);
        }
        self.body.meta.traffic_class = traffic_class;
    }

    /// A list may be the only bytes between the fixed IP header and TCP.
    fn takes_list(&self) -> bool {
        let ipv6 = self.body.meta.mark.ipv6();
        let fixed = if ipv6 { ipv6::HEADER_LEN } else { ipv4::HEADER_LEN };
        let list = usize::from(self.body.meta.options().list_header_bytes(ipv6));
        usize::from(self.body.transport_offset) == fixed + list
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }

    /// A newly written packet with the addresses, ports, traffic class and identification of this
    /// one, without a trailer.
    fn signal(&self, list: &AckList) -> Self {
        let mut meta = self.body.meta;
        meta.become_signal(list);
        let key = self.body.key.expect("a pure ACK was read from these bytes");
        let mut packet = Vec::new();
        write_packet(&meta, &key.addresses, &mut packet);
        let mut bytes = [&self.body.bytes[..usize::from(self.body.prefix.len)], &packet].concat();
        self.body.prefix.mend(&mut bytes, meta.ip_len);
        let transport_offset = if meta.mark.ipv6() { ipv6::HEADER_LEN } else { ipv4::HEADER_LEN } as u8;
        let body =
            Body { meta, end: bytes.len(), bytes, key: self.body.key, prefix: self.body.prefix, transport_offset };
        Self { body: Box::new(body) }
    }

    fn key(&self, _flows: &dyn FlowDirectory) -> Option<FlowKey> {
        self.body.key
    }

    fn own_key(&self) -> Option<&FlowKey> {
        self.body.key.as_ref()
    }

    fn payload<'a>(&'a self, _flows: &'a dyn FlowDirectory) -> &'a [u8] {
        match self.body.key {
            Some(_) => self.packet_bytes().get(usize::from(self.body.meta.header_len)..).unwrap_or_default(),
            None => &[],
        }
    }

    fn answer<'a>(&'a self, _flows: &'a dyn FlowDirectory) -> &'a [u8] {
        &[]
    }

    fn headers(&self, _flows: &dyn FlowDirectory, out: &mut [u8; MAX_HEADER_LEN]) -> usize {
        let packet = self.packet_bytes();
        let len = usize::from(self.body.meta.header_len).min(packet.len());
        out.get_mut(..len).map_or(0, |out| {
            out.copy_from_slice(&packet[..len]);
            len
        })
    }
}

/// Offset of the next-header field of IPv6.
const NEXT_HEADER_AT: usize = 6;

#[cfg(test)]
mod tests;
