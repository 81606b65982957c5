//! The packet trait of the datapath, and simulated packets, which are only metadata.

use crate::{
    AckFields, AckList, FlowDirectory, FlowKey, MAX_HEADER_LEN, Meta, Options, Protocol, Segment, SeqNumber, TcpFlags,
    header_len, write_headers,
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
    /// options' size changes, its lengths. A packet that is no [`crate::PureAck`] is unchanged.
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

impl Meta {
    /// Turns the metadata of an ACK into those of a signal that carries `list` for the ACK
    /// `self.ack`, with its lengths.
    pub(crate) fn become_signal(&mut self, list: &AckList) {
        self.protocol = Protocol::AckSignal;
        self.tcp_options = Options::NONE;
        self.tcp_options.words = self.tcp_options.words.with_list(0, list.as_bytes());
        (self.seq, self.window, self.flags) = (SeqNumber::default(), 0, TcpFlags::NONE);
        self.header_len = header_len(self.protocol, self.mark.ipv6(), &self.options());
        self.ip_len = u16::from(self.header_len);
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
