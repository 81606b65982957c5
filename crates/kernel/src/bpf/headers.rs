//! The first part of a program: reads the headers once, and stores the fields for conditions in the
//! scratch memory.
//!
//! The program reads the fields of [`lastmile_packet::parse`], with two differences. It does not
//! walk IPv6 extension headers, so a packet with any has no transport protocol. It does not check
//! TCP options. Truncated headers end the program without a result, so that the packet belongs to
//! the scheduler's default class.

use lastmile_linklayer::stab::Device;

use super::assembler::{Assembler, Label, code};

/// Slots of the scratch memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(super) enum Field {
    /// Bytes of the IP packet.
    Length = 0,
    /// The protocol number of the IP header.
    Number = 1,
    /// The kind of the transport header: see [`kind`].
    Kind = 2,
    /// Offset of the transport header in the frame.
    Transport = 3,
    /// TOS or traffic class.
    Service = 4,
    /// 4 or 6.
    Family = 5,
    /// TCP flags.
    Flags = 6,
    /// Payload bytes of a TCP segment.
    Payload = 7,
    /// Source port; [`NO_PORT`] for a packet without ports.
    SourcePort = 8,
    /// Destination port; [`NO_PORT`] for a packet without ports.
    DestinationPort = 9,
    /// Offset of the end of the TCP header in the frame.
    End = 10,
    /// Offset of the option under inspection.
    Option = 11,
}

/// A value above all ports.
pub(super) const NO_PORT: u32 = 0x1_0000;

/// The kind of transport header.
pub(super) mod kind {
    pub(in crate::bpf) const OTHER: u32 = 0;
    pub(in crate::bpf) const TCP: u32 = 1;
    pub(in crate::bpf) const UDP: u32 = 2;
    pub(in crate::bpf) const ECHO_REQUEST: u32 = 3;
    pub(in crate::bpf) const ECHO_REPLY: u32 = 4;
}

const ETHERTYPE_IPV4: u32 = 0x0800;
const ETHERTYPE_IPV6: u32 = 0x86dd;
/// More-fragments flag and fragment offset.
const FRAGMENT: u32 = 0x3fff;

/// Reads the headers of a frame on `device`. A frame without IP continues at `other`.
pub(super) fn read(program: &mut Assembler, device: Device, other: Label) {
    let base = device.header();
    // The kernel requires a write before every read of a slot, on every path.
    program.plain(code::LOAD_IMMEDIATE, 0);
    for field in [Field::Kind, Field::Flags, Field::Payload, Field::End] {
        program.plain(code::STORE, field as u32);
    }
    program.plain(code::LOAD_IMMEDIATE, NO_PORT);
    program.plain(code::STORE, Field::SourcePort as u32);
    program.plain(code::STORE, Field::DestinationPort as u32);
    let (ipv4, ipv6, not_ipv4, transport, done) =
        (program.label(), program.label(), program.label(), program.label(), program.label());
    let (four, six) = match device {
        Device::Ip => {
            program.plain(code::LOAD_BYTE, base);
            program.plain(code::RIGHT, 4);
            (4, 6)
        }
        Device::Ethernet | Device::TaggedEthernet => {
            program.plain(code::LOAD_HALF, base - 2);
            (ETHERTYPE_IPV4, ETHERTYPE_IPV6)
        }
    };
    program.branch(code::IF_EQUAL, four, ipv4, not_ipv4);
    program.place(not_ipv4);
    program.branch(code::IF_EQUAL, six, ipv6, other);
    program.place(ipv4);
    read_ipv4(program, base, transport, done);
    program.place(ipv6);
    read_ipv6(program, base);
    program.place(transport);
    read_transport(program, base, done);
    program.place(done);
}

fn store(program: &mut Assembler, field: Field) {
    program.plain(code::STORE, field as u32);
}

fn read_ipv4(program: &mut Assembler, base: u32, transport: Label, done: Label) {
    program.plain(code::LOAD_IMMEDIATE, 4);
    store(program, Field::Family);
    program.plain(code::LOAD_HALF, base + 2);
    store(program, Field::Length);
    program.plain(code::LOAD_BYTE, base + 1);
    store(program, Field::Service);
    program.plain(code::LOAD_BYTE, base + 9);
    store(program, Field::Number);
    program.plain(code::LOAD_BYTE, base);
    program.plain(code::AND, 0x0f);
    program.plain(code::LEFT, 2);
    program.plain(code::ADD, base);
    store(program, Field::Transport);
    program.plain(code::LOAD_HALF, base + 6);
    program.branch(code::IF_ANY_BIT, FRAGMENT, done, transport);
}

fn read_ipv6(program: &mut Assembler, base: u32) {
    program.plain(code::LOAD_IMMEDIATE, 6);
    store(program, Field::Family);
    program.plain(code::LOAD_HALF, base + 4);
    program.plain(code::ADD, 40);
    store(program, Field::Length);
    program.plain(code::LOAD_HALF, base);
    program.plain(code::RIGHT, 4);
    program.plain(code::AND, 0xff);
    store(program, Field::Service);
    program.plain(code::LOAD_BYTE, base + 6);
    store(program, Field::Number);
    program.plain(code::LOAD_IMMEDIATE, base + 40);
    store(program, Field::Transport);
}

fn read_transport(program: &mut Assembler, base: u32, done: Label) {
    let [tcp, not_tcp, udp, not_udp, icmp, not_icmp, icmp_v6, ports] = core::array::from_fn(|_| program.label());
    program.plain(code::LOAD_INDEX, Field::Transport as u32);
    program.plain(code::LOAD_MEMORY, Field::Number as u32);
    program.branch(code::IF_EQUAL, 6, tcp, not_tcp);
    program.place(not_tcp);
    program.branch(code::IF_EQUAL, 17, udp, not_udp);
    program.place(not_udp);
    program.branch(code::IF_EQUAL, 1, icmp, not_icmp);
    program.place(not_icmp);
    program.branch(code::IF_EQUAL, 58, icmp_v6, done);

    program.place(icmp);
    read_echo(program, 4, (8, 0), done);
    program.place(icmp_v6);
    read_echo(program, 6, (128, 129), done);

    program.place(tcp);
    program.plain(code::LOAD_BYTE_AT, 13);
    store(program, Field::Flags);
    // The end of the header, and the packet's bytes after it.
    program.plain(code::LOAD_BYTE_AT, 12);
    program.plain(code::RIGHT, 4);
    program.plain(code::LEFT, 2);
    program.plain(code::ADD_INDEX, 0);
    store(program, Field::End);
    program.plain(code::TO_INDEX, 0);
    program.plain(code::LOAD_MEMORY, Field::Length as u32);
    program.plain(code::ADD, base);
    program.plain(code::SUBTRACT_INDEX, 0);
    store(program, Field::Payload);
    program.plain(code::LOAD_IMMEDIATE, kind::TCP);
    store(program, Field::Kind);
    program.jump(ports);

    program.place(udp);
    program.plain(code::LOAD_IMMEDIATE, kind::UDP);
    store(program, Field::Kind);

    program.place(ports);
    program.plain(code::LOAD_INDEX, Field::Transport as u32);
    program.plain(code::LOAD_HALF_AT, 0);
    store(program, Field::SourcePort);
    program.plain(code::LOAD_HALF_AT, 2);
    store(program, Field::DestinationPort);
}

/// Recognises echo request and reply of this family; other messages have no kind. Continues at
/// `done`.
fn read_echo(program: &mut Assembler, family: u32, (request, reply): (u32, u32), done: Label) {
    let [of_family, is_request, no_request, is_reply, known] = core::array::from_fn(|_| program.label());
    program.plain(code::LOAD_MEMORY, Field::Family as u32);
    program.branch(code::IF_EQUAL, family, of_family, done);
    program.place(of_family);
    program.plain(code::LOAD_BYTE_AT, 0);
    program.branch(code::IF_EQUAL, request, is_request, no_request);
    program.place(no_request);
    program.branch(code::IF_EQUAL, reply, is_reply, done);
    program.place(is_request);
    program.plain(code::LOAD_IMMEDIATE, kind::ECHO_REQUEST);
    program.jump(known);
    program.place(is_reply);
    program.plain(code::LOAD_IMMEDIATE, kind::ECHO_REPLY);
    program.place(known);
    store(program, Field::Kind);
    program.jump(done);
}
