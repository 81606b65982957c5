//! Conditions of a policy as branches of a program.

use std::net::IpAddr;

use lastmile_packet::{Protocol, TcpFlags};
use lastmile_queueing::classify::Prefix;
use lastmile_queueing::{End, Match};

use super::assembler::{Assembler, Label, code};
use super::headers::{Field, kind};
use crate::marks::Marks;

/// The offset at which the kernel presents a packet's mark: `SKF_AD_OFF + SKF_AD_MARK`.
const MARK: u32 = 0xffff_f014;

/// TCP options inspected for SACK: two NOPs, timestamps, two NOPs, and a few more.
const OPTIONS: usize = 10;
const OPTION_END: u32 = 0;
const OPTION_NOP: u32 = 1;
const OPTION_SACK: u32 = 5;

/// Why headers and marks cannot decide a condition; `None` if they can.
pub(crate) fn obstacle(condition: &Match, marks: &Marks) -> Option<&'static str> {
    if marks.of(condition).is_some() {
        return None;
    }
    match condition {
        Match::FirstPayload(_) => Some("first payload bytes: tc and nft look at one packet at a time"),
        Match::ConnectionRate(..) => Some("the rate of a connection: the kernel does not measure it"),
        Match::ConnectionBytes(..) => Some("bytes of a connection: no nft mark is available"),
        Match::NewConnections { .. } => Some("new connections of a host: no nft mark is available"),
        Match::FtpData => Some("FTP data: no nft mark is available"),
        Match::Flow(_) => Some("the number of a flow: real packets have none"),
        Match::Class(_) => Some("a class of rules further up"),
        Match::Not(inner) => obstacle(inner, marks),
        Match::All(inner) | Match::OneOf(inner) => inner.iter().find_map(|one| obstacle(one, marks)),
        _ => None,
    }
}

/// Writes conditions into a program.
pub(super) struct Conditions<'a> {
    pub(super) program: &'a mut Assembler,
    /// Bytes in front of the IP header.
    pub(super) base: u32,
    pub(super) marks: &'a Marks,
}

impl Conditions<'_> {
    /// Continues at `yes` if the condition holds, else at `no`.
    pub(super) fn test(&mut self, condition: &Match, yes: Label, no: Label) {
        if let Some(bit) = self.marks.of(condition) {
            self.program.plain(code::LOAD_WORD, MARK);
            return self.program.branch(code::IF_ANY_BIT, bit, yes, no);
        }
        match condition {
            Match::Any => self.program.jump(yes),
            Match::PureAck => self.pure_ack(yes, no),
            Match::SackAck => {
                let sack = self.program.label();
                self.pure_ack(sack, no);
                self.program.place(sack);
                self.sack(yes, no);
            }
            Match::Protocol(protocol) => match known(*protocol) {
                Some(kind) => self.field(Field::Kind, code::IF_EQUAL, kind, yes, no),
                None => self.program.jump(no),
            },
            Match::ProtocolNumber(number) => self.field(Field::Number, code::IF_EQUAL, (*number).into(), yes, no),
            Match::Dscp(dscp) => self.masked(Field::Service, 0xfc, u32::from(*dscp) << 2, yes, no),
            Match::TrafficClass { value, mask } => {
                self.masked(Field::Service, (*mask).into(), (value & mask).into(), yes, no);
            }
            Match::TcpFlags(flags) => self.flags(*flags, *flags, yes, no),
            Match::TcpFlagsOf { set, of } => self.flags(*set, *of, yes, no),
            Match::AtMostBytes(bytes) => self.field(Field::Length, code::IF_ABOVE, (*bytes).into(), no, yes),
            Match::AtLeastBytes(bytes) => self.field(Field::Length, code::IF_AT_LEAST, (*bytes).into(), yes, no),
            Match::Port(end, ports) => {
                let range = (u32::from(*ports.start()), u32::from(*ports.end()));
                let source = |this: &mut Self, yes, no| this.port(Field::SourcePort, range, yes, no);
                let destination = |this: &mut Self, yes, no| this.port(Field::DestinationPort, range, yes, no);
                self.at_end(*end, source, destination, yes, no);
            }
            Match::Address(end, prefix) => {
                let source = |this: &mut Self, yes, no| this.address(12, 8, *prefix, yes, no);
                let destination = |this: &mut Self, yes, no| this.address(16, 24, *prefix, yes, no);
                self.at_end(*end, source, destination, yes, no);
            }
            Match::Not(inner) => self.test(inner, no, yes),
            Match::All(inner) => {
                for one in inner {
                    let next = self.program.label();
                    self.test(one, next, no);
                    self.program.place(next);
                }
                self.program.jump(yes);
            }
            Match::OneOf(inner) => {
                for one in inner {
                    let next = self.program.label();
                    self.test(one, yes, next);
                    self.program.place(next);
                }
                self.program.jump(no);
            }
            // A condition with an obstacle is not compiled.
            _ => self.program.jump(no),
        }
    }

    fn field(&mut self, field: Field, condition: u16, k: u32, yes: Label, no: Label) {
        self.program.plain(code::LOAD_MEMORY, field as u32);
        self.program.branch(condition, k, yes, no);
    }

    fn masked(&mut self, field: Field, mask: u32, value: u32, yes: Label, no: Label) {
        self.program.plain(code::LOAD_MEMORY, field as u32);
        self.program.plain(code::AND, mask);
        self.program.branch(code::IF_EQUAL, value, yes, no);
    }

    fn flags(&mut self, set: TcpFlags, of: TcpFlags, yes: Label, no: Label) {
        let tcp = self.program.label();
        self.field(Field::Kind, code::IF_EQUAL, kind::TCP, tcp, no);
        self.program.place(tcp);
        self.masked(Field::Flags, of.bits().into(), (set.bits() & of.bits()).into(), yes, no);
    }

    /// A payload of zero decides, because timestamps and SACK blocks vary the size of an ACK.
    fn pure_ack(&mut self, yes: Label, no: Label) {
        let (tcp, ack) = (self.program.label(), self.program.label());
        self.field(Field::Kind, code::IF_EQUAL, kind::TCP, tcp, no);
        self.program.place(tcp);
        self.field(Field::Flags, code::IF_EQUAL, TcpFlags::ACK.bits().into(), ack, no);
        self.program.place(ack);
        self.field(Field::Payload, code::IF_EQUAL, 0, yes, no);
    }

    /// Tests for a SACK option among the first [`OPTIONS`].
    fn sack(&mut self, yes: Label, no: Label) {
        self.program.plain(code::LOAD_MEMORY, Field::Transport as u32);
        self.program.plain(code::ADD, 20);
        for _ in 0..OPTIONS {
            let [inside, no_end, no_nop, other, long, one, next] = core::array::from_fn(|_| self.program.label());
            self.program.plain(code::STORE, Field::Option as u32);
            self.program.plain(code::LOAD_INDEX, Field::End as u32);
            self.program.branch(code::IF_AT_LEAST_INDEX, 0, no, inside);
            self.program.place(inside);
            self.program.plain(code::LOAD_INDEX, Field::Option as u32);
            self.program.plain(code::LOAD_BYTE_AT, 0);
            self.program.branch(code::IF_EQUAL, OPTION_END, no, no_end);
            self.program.place(no_end);
            self.program.branch(code::IF_EQUAL, OPTION_NOP, one, no_nop);
            self.program.place(no_nop);
            self.program.branch(code::IF_EQUAL, OPTION_SACK, yes, other);
            self.program.place(other);
            self.program.plain(code::LOAD_BYTE_AT, 1);
            self.program.branch(code::IF_AT_LEAST, 2, long, no);
            self.program.place(one);
            self.program.plain(code::LOAD_IMMEDIATE, 1);
            self.program.jump(next);
            self.program.place(long);
            self.program.jump(next);
            self.program.place(next);
            self.program.plain(code::ADD_INDEX, 0);
        }
        self.program.jump(no);
    }

    fn at_end(
        &mut self,
        end: End,
        source: impl Fn(&mut Self, Label, Label),
        destination: impl Fn(&mut Self, Label, Label),
        yes: Label,
        no: Label,
    ) {
        match end {
            End::Source => source(self, yes, no),
            End::Destination => destination(self, yes, no),
            End::Either => {
                let other = self.program.label();
                source(self, yes, other);
                self.program.place(other);
                destination(self, yes, no);
            }
        }
    }

    fn port(&mut self, field: Field, (first, last): (u32, u32), yes: Label, no: Label) {
        if first == last {
            return self.field(field, code::IF_EQUAL, first, yes, no);
        }
        let above = self.program.label();
        self.field(field, code::IF_AT_LEAST, first, above, no);
        self.program.place(above);
        self.program.branch(code::IF_ABOVE, last, no, yes);
    }

    /// Tests the address at byte `v4` or `v6` of the IP header.
    fn address(&mut self, v4: u32, v6: u32, prefix: Prefix, yes: Label, no: Label) {
        let (family, at, words) = match prefix.network() {
            IpAddr::V4(address) => (4, v4, vec![address.to_bits()]),
            IpAddr::V6(address) => {
                let words = address.octets().as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word)).collect();
                (6, v6, words)
            }
        };
        let mut next = self.program.label();
        self.field(Field::Family, code::IF_EQUAL, family, next, no);
        let mut bits = u32::from(prefix.bits());
        for (word, at) in words.into_iter().zip((self.base + at..).step_by(4)) {
            let counted = bits.min(32);
            if counted == 0 {
                break;
            }
            bits -= counted;
            self.program.place(next);
            next = self.program.label();
            self.program.plain(code::LOAD_WORD, at);
            if counted < 32 {
                self.program.plain(code::AND, u32::MAX << (32 - counted));
            }
            self.program.branch(code::IF_EQUAL, word, next, no);
        }
        self.program.place(next);
        self.program.jump(yes);
    }
}

/// The header value of a protocol; `None` for one that no real packet has.
const fn known(protocol: Protocol) -> Option<u32> {
    match protocol {
        Protocol::Tcp => Some(kind::TCP),
        Protocol::Udp => Some(kind::UDP),
        Protocol::EchoRequest => Some(kind::ECHO_REQUEST),
        Protocol::EchoReply => Some(kind::ECHO_REPLY),
        Protocol::Other => Some(kind::OTHER),
        Protocol::AckSignal => None,
    }
}
