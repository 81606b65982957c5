//! Random packets for the property tests of this crate.

use core::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use crate::{
    AckList, FlowAddresses, IpAddresses, Meta, Options, Protocol, SackBlock, SeqNumber, SynOptions, TcpFlags,
    header_len,
};

pub(crate) fn ip_addresses() -> impl Strategy<Value = IpAddresses> {
    prop_oneof![
        any::<[u32; 2]>().prop_map(|[source, destination]| IpAddresses::V4 {
            source: Ipv4Addr::from(source),
            destination: Ipv4Addr::from(destination)
        }),
        any::<[u128; 2]>().prop_map(|[source, destination]| IpAddresses::V6 {
            source: Ipv6Addr::from(source),
            destination: Ipv6Addr::from(destination)
        }),
    ]
}

fn sack_block() -> impl Strategy<Value = SackBlock> {
    any::<[u32; 2]>().prop_map(|[left, right]| SackBlock { left: SeqNumber::new(left), right: SeqNumber::new(right) })
}

/// Options of a SYN or of a later segment.
pub(crate) fn options() -> impl Strategy<Value = Options> {
    let syn = (any::<Option<u16>>(), any::<Option<u8>>(), any::<bool>())
        .prop_map(|(mss, window_scale, sack_permitted)| Options::syn(SynOptions { mss, window_scale, sack_permitted }));
    let sack = prop::collection::vec(sack_block(), 0..=Options::MAX_SACK_BLOCKS)
        .prop_map(|blocks| Options::NONE.with_sack(&blocks));
    (prop_oneof![syn, sack], any::<Option<(u32, u32)>>()).prop_map(|(options, timestamps)| match timestamps {
        Some((value, echo_reply)) => options.with_timestamps(value, echo_reply),
        None => options,
    })
}

/// A list of at most `capacity` bytes, possibly empty.
pub(crate) fn ack_list(capacity: usize) -> impl Strategy<Value = AckList> {
    let step = prop_oneof![Just(0_u32), Just(1460), Just(2920), 0..100_000_u32];
    prop::collection::vec(step, 0..40).prop_map(move |steps| {
        let mut list = AckList::EMPTY;
        for step in steps {
            // A step that does not fit is omitted.
            let _ = list.push(step, capacity);
        }
        list
    })
}

/// Options of a pure ACK, possibly with a list.
pub(crate) fn ack_options() -> impl Strategy<Value = Options> {
    (options(), ack_list(AckList::MAX_OPTION_BYTES))
        .prop_map(|(options, list)| if options.may_have_list() { options.with_list(&list) } else { options })
}

pub(crate) fn protocol() -> impl Strategy<Value = Protocol> {
    prop_oneof![
        5 => Just(Protocol::Tcp),
        2 => Just(Protocol::Udp),
        1 => Just(Protocol::EchoRequest),
        1 => Just(Protocol::EchoReply),
        1 => Just(Protocol::Other),
    ]
}

/// A packet whose metadata can all be recovered from its bytes.
pub(crate) fn packet() -> impl Strategy<Value = (Meta, FlowAddresses)> {
    let numbers = any::<(u32, u32, u16, u16, u8, u8)>();
    (ip_addresses(), any::<[u16; 2]>(), protocol(), numbers, options(), 0..3000u16).prop_map(
        |(ip, ports, protocol, (seq, ack, ip_id, window, flags, traffic_class), options, payload_len)| {
            let tcp = protocol == Protocol::Tcp;
            let mut meta = Meta { protocol, traffic_class, ..Meta::default() };
            if ip.is_ipv6() {
                meta.mark.set_ipv6();
            } else {
                meta.ip_id = ip_id;
            }
            meta.seq = match protocol {
                Protocol::Tcp => SeqNumber::new(seq),
                Protocol::EchoRequest | Protocol::EchoReply => SeqNumber::new(seq & 0xFFFF),
                _ => SeqNumber::new(0),
            };
            if tcp {
                meta.ack = SeqNumber::new(ack);
                meta.window = window;
                meta.flags = TcpFlags::from_bits(flags);
                meta.set_options(options);
            }
            meta.header_len = header_len(protocol, ip.is_ipv6(), &meta.options());
            meta.ip_len = u16::from(meta.header_len) + payload_len;
            let [source_port, destination_port] = match protocol {
                Protocol::EchoRequest => [ports[0], 0],
                Protocol::EchoReply => [0, ports[1]],
                Protocol::Other | Protocol::AckSignal => [0, 0],
                Protocol::Tcp | Protocol::Udp => ports,
            };
            (meta, FlowAddresses { ip, source_port, destination_port })
        },
    )
}

/// A pure ACK.
pub(crate) fn pure_ack() -> impl Strategy<Value = (Meta, FlowAddresses)> {
    (packet(), ack_options()).prop_map(|((mut meta, addresses), options)| {
        meta.protocol = Protocol::Tcp;
        meta.flags = TcpFlags::ACK;
        meta.set_options(options);
        meta.header_len = header_len(Protocol::Tcp, addresses.ip.is_ipv6(), &options);
        meta.ip_len = u16::from(meta.header_len);
        (meta, addresses)
    })
}
