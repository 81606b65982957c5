//! The packet parser, its inverse, and the rewriting of ACKs, alone and in Ethernet frames.
//!
//! The input is an IP packet, or an Ethernet frame. The bytes behind the end of the packet are the
//! new fields of a pure ACK.

use lastmile_packet::{
    AckFields, FlowAddresses, FlowId, FlowKey, Frame, Meta, Options, Packet, Parsed, Protocol, PureAck, SackBlock,
    SeqNumber, SynOptions, TcpFlags, checksums_hold, parse, parse_headers, write_packet,
};
use lastmile_queueing::ack::{collapsing, filter, sad};
use lastmile_queueing::spec::{Over, Spec};
use lastmile_queueing::{Discipline, Environment, Limit, Match, Overflow, ack};
use lastmile_units::{Instant, PacketCount};

/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    let parsed = parse(input);
    if let Ok(parsed) = &parsed {
        check_lengths(input, parsed);
        assert_eq!(parse_headers(input), Ok(*parsed), "a whole packet reads the same without its payload");
        check_round_trip(parsed);
    }
    assert_eq!(checksums_hold(input).is_ok(), parsed.is_ok(), "checksums are checked of what can be read");
    check_headers_alone(input);
    check_packet(input);
    check_ethernet(input);
    check_regulated(input);
}

fn check_lengths(input: &[u8], Parsed { meta, transport_offset, .. }: &Parsed) {
    assert!(transport_offset <= &meta.header_len, "the transport header starts inside the headers");
    assert!(u16::from(meta.header_len) <= meta.ip_len, "headers are part of the packet");
    assert!(usize::from(meta.ip_len) <= input.len(), "the packet is part of the input");
    if meta.protocol == Protocol::Tcp {
        let options = meta.header_len - transport_offset - 20;
        assert!(usize::from(options) <= Options::MAX_BYTES, "options fit the data offset");
    }
}

/// Writing a parsed packet gives a valid packet, which is unchanged by parsing and writing.
fn check_round_trip(Parsed { meta, key, .. }: &Parsed) {
    let mut bytes = Vec::new();
    write_packet(meta, &key.addresses, &mut bytes);
    assert_eq!(checksums_hold(&bytes), Ok(true), "what is written has right checksums");
    let again = parse(&bytes).expect("what is written can be read");
    assert_eq!(without_layout(&again.meta), without_layout(meta), "reading gives back what was written");
    if meta.protocol == Protocol::Other {
        assert_eq!(again.key.addresses.ip, key.addresses.ip);
    } else {
        assert_eq!(again.key, *key);
    }
    let mut twice = Vec::new();
    write_packet(&again.meta, &again.key.addresses, &mut twice);
    assert_eq!(twice, bytes, "writing is idempotent");
    assert_eq!(parse(&twice).map(|parsed| parsed.meta), Ok(again.meta));
}

/// The metadata without lengths and without the mark of unknown options: neither is written.
fn without_layout(meta: &Meta) -> Meta {
    let mut known = Options::syn(meta.options().syn_options());
    if meta.options().sack_count() > 0 {
        known = known.with_sack(&meta.options().sack_blocks().collect::<Vec<_>>());
    }
    if let Some((value, echo_reply)) = meta.options().timestamps() {
        known = known.with_timestamps(value, echo_reply);
    }
    if meta.options().has_list() {
        known = known.with_list(&meta.list());
    }
    let signal = meta.tcp_options;
    let mut meta = Meta { ip_len: 0, header_len: 0, ..*meta };
    meta.set_options(known);
    if meta.protocol == Protocol::AckSignal {
        meta.tcp_options = signal;
    }
    meta
}

/// The known headers suffice for parsing, and all of them are needed. [`Protocol::Other`] may
/// depend on bytes behind the IP header, such as the type of an ICMP message; a truncated signal is
/// such a packet.
fn check_headers_alone(input: &[u8]) {
    if let Ok(parsed) = parse_headers(input)
        && !matches!(parsed.meta.protocol, Protocol::Other | Protocol::AckSignal)
    {
        let headers = &input[..usize::from(parsed.meta.header_len)];
        assert_eq!(parse_headers(headers), Ok(parsed), "headers alone are enough");
        if let Some((_, cut)) = headers.split_last() {
            assert!(parse_headers(cut).is_err(), "all headers are needed");
        }
    }
}

fn check_packet(input: &[u8]) {
    let (mut frame, key) = Frame::new(input.to_vec());
    let Ok(key) = key else {
        assert_eq!(frame.bytes(), input, "what cannot be read stays as it is");
        assert_eq!(frame.meta().protocol, Protocol::Other);
        return;
    };
    let (packet, rest) = input.split_at(usize::from(frame.meta().ip_len));
    assert_eq!((frame.bytes(), frame.packet_bytes(), frame.trailer()), (input, packet, rest));
    check_soundness(&frame);
    if frame.meta().pure_ack().is_some() {
        let mut rest = rest;
        for _ in 0..2 {
            check_rewrite(&mut frame, &key, &newest(&mut rest));
        }
        assert!(input.ends_with(frame.trailer()), "what stands behind the packet stays");
    }
}

/// A segment is readable only if its checksums hold.
fn check_soundness(frame: &Frame) {
    let sound = frame.meta().protocol == Protocol::Tcp && checksums_hold(frame.packet_bytes()) == Ok(true);
    assert_eq!(frame.segment().is_some(), sound, "a segment is read if its checksums hold, and only then");
    assert_eq!(frame.meta().pure_ack().is_some(), sound && frame.meta().is_pure_ack());
}

/// Between two valid ACKs of its flow the input departs from every regulator unchanged, unless it
/// is a valid ACK itself. No undamaged packet departs damaged, and no departing ACK has fields that
/// no valid ACK had.
fn check_regulated(input: &[u8]) {
    let (first, _) = Frame::new(input.to_vec());
    let sound = first.meta().pure_ack().is_some();
    let ack_of_its_flow = |number| {
        let meta = Meta {
            ip_len: 40,
            header_len: 40,
            flags: TcpFlags::ACK,
            ack: first.meta().ack.add(number),
            ..Meta::default()
        };
        let mut bytes = Vec::new();
        write_packet(&meta, &FlowAddresses::of_simulated(FlowId::new(0)), &mut bytes);
        bytes
    };
    let (older, newer) = (ack_of_its_flow(0), ack_of_its_flow(1000));
    let queue = || Box::new(Spec::fifo(9));
    let (limit, drop, exempt) = (Limit::Packets(PacketCount::new(9)), Overflow::Tail, Match::Never);
    let (duplicates, report) = (sad::Duplicates::Count, sad::Report::List);
    for spec in [
        Spec::Sad(Over { config: sad::Config { duplicates, report, exempt: Match::Never }, queue: queue() }),
        Spec::AckFilter(filter::Config { limit, drop, rules: Default::default() }),
        Spec::AckCollapsing(collapsing::Config { limit, drop, exempt }),
        Spec::CakeAckFilter(ack::cake::Config { limit, drop, rules: Default::default() }),
        Spec::AckRegenerator(Over { config: Default::default(), queue: queue() }),
    ] {
        let mut node = spec.build_in(&Environment::default()).expect("a regulator");
        let mut dropped = Vec::new();
        let mut drops = |_, packet: Frame, _| dropped.push(packet.into_bytes());
        for bytes in [&older, input, &newer] {
            node.enqueue(Instant::ZERO, Frame::new(bytes.to_vec()).0, &mut drops);
        }
        let left: Vec<Vec<u8>> =
            std::iter::from_fn(|| node.dequeue(Instant::ZERO, &mut drops).map(Frame::into_bytes)).collect();
        if !sound {
            assert!(left.iter().any(|bytes| bytes == input), "what is no sound ACK leaves as it came");
            let others = left.iter().filter(|bytes| *bytes != input);
            let is_sound = |bytes: &Vec<u8>| Frame::new(bytes.clone()).0.meta().pure_ack().is_some();
            assert!(others.clone().all(is_sound), "a sound ACK stays sound");
            let says_new =
                |bytes: &Vec<u8>| parse(bytes).is_ok_and(|parsed| parsed.meta.ack == first.meta().ack.add(1000));
            assert!(others.clone().any(says_new), "the newest number arrives");
        }
    }
}

/// Any input passes; the packet in a frame changes as it would alone, and the frame stays a frame
/// around it.
fn check_ethernet(input: &[u8]) {
    let (mut frame, key) = Frame::ethernet(input.to_vec());
    assert_eq!(frame.bytes(), input, "what nobody changes stays as it is");
    if key.is_err() {
        assert_eq!(frame.meta().protocol, Protocol::Other);
        return;
    }
    let trailer = frame.trailer().to_vec();
    let prefix_len = frame.bytes().len() - frame.packet_bytes().len() - trailer.len();
    assert_eq!(frame.packet_bytes(), &input[prefix_len..prefix_len + usize::from(frame.meta().ip_len)]);
    let (mut alone, alone_key) = Frame::new(frame.packet_bytes().to_vec());
    assert_eq!((alone_key.ok(), alone.meta()), (key.ok(), frame.meta()));
    if frame.meta().pure_ack().is_some() {
        let newest = newest(&mut &input[prefix_len..]);
        frame.rewrite_ack(&newest);
        alone.rewrite_ack(&newest);
    }
    assert_eq!((frame.packet_bytes(), frame.meta(), frame.trailer()), (alone.bytes(), alone.meta(), &trailer[..]));
    let (again, _) = Frame::ethernet(frame.bytes().to_vec());
    assert_eq!(again, frame, "a rewritten frame reads as itself");
}

/// After a rewrite the bytes have the new fields and otherwise the old ones, with right checksums.
fn check_rewrite(frame: &mut Frame, key: &FlowKey, newest: &AckFields) {
    let before = *frame.meta();
    frame.rewrite_ack(newest);
    let after = parse(frame.bytes()).expect("a rewritten ACK can be read");
    assert_eq!(after.meta, *frame.meta(), "metadata and bytes agree");
    assert_eq!(after.meta.pure_ack().map(PureAck::fields), Some(*newest));
    assert_eq!(after.key, *key);
    assert_eq!((after.meta.seq, after.meta.flags, after.meta.ip_id), (before.seq, before.flags, before.ip_id));
    assert_eq!(checksums_hold(frame.packet_bytes()), Ok(true), "right stays right");
}

/// The new fields of an ACK, from the next bytes of the input; zeros after its end.
fn newest(rest: &mut &[u8]) -> AckFields {
    let [kinds, mss_high, mss_low, window_scale] = take(rest).to_be_bytes();
    let ack = SeqNumber::new(take(rest));
    let window = take(rest) as u16;
    let mut options = Options::NONE;
    let blocks: Vec<SackBlock> = (0..kinds & 3)
        .map(|_| SackBlock { left: SeqNumber::new(take(rest)), right: SeqNumber::new(take(rest)) })
        .collect();
    if blocks.is_empty() {
        options = Options::syn(SynOptions {
            mss: (kinds & 4 != 0).then_some(u16::from_be_bytes([mss_high, mss_low])),
            window_scale: (kinds & 8 != 0).then_some(window_scale),
            sack_permitted: kinds & 16 != 0,
        });
    } else {
        options = options.with_sack(&blocks);
    }
    if kinds & 32 != 0 {
        options = options.with_timestamps(take(rest), take(rest));
    }
    AckFields { ack, window, options }
}

fn take(rest: &mut &[u8]) -> u32 {
    match rest.split_first_chunk() {
        Some((bytes, after)) => {
            *rest = after;
            u32::from_be_bytes(*bytes)
        }
        None => {
            *rest = &[];
            0
        }
    }
}
