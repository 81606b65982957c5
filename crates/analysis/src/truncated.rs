//! Headers as captures have them: a short snap length cuts TCP options in the middle, and a packet before segmentation
//! by a device may lack its length (large send offload of Windows, and BIG TCP of Linux, whose packets exceed 64 kB).
//!
//! Differs from [`lastmile_packet::parse_headers`]: truncated TCP options are omitted, and the
//! packet is kept, with options that are marked as cut. A packet of TCP without a length has that of its frame, up to
//! 65 535 octets.

use lastmile_packet::{ParseError, Parsed, lacks_length, parse_headers};

/// The longest fixed headers: IPv4 at most 60 bytes, IPv6 40, TCP 20 and at most 40 of options.
const LONGEST: usize = 120;
const TCP: u8 = 6;
/// The fixed header of IPv6.
const V6_HEADER: usize = 40;
const TCP_FIXED: usize = 20;
const DATA_OFFSET_AT: usize = 12;

/// Reads the headers of an IP packet that may be truncated, in a frame with `whole` octets from there on.
///
/// # Errors
///
/// The fixed headers are incomplete or contradict themselves.
#[inline]
pub fn parse_captured(bytes: &[u8], whole: u32) -> Result<Parsed, ParseError> {
    parse_headers(bytes).or_else(|error| parse_damaged(bytes, whole, error))
}

/// Reads the headers of a packet with this error.
#[cold]
fn parse_damaged(bytes: &[u8], whole: u32, error: ParseError) -> Result<Parsed, ParseError> {
    if lacks_length(bytes) {
        let mut headers = [0; LONGEST];
        let kept = bytes.len().min(LONGEST);
        headers[..kept].copy_from_slice(&bytes[..kept]);
        let whole = u16::try_from(whole).unwrap_or(u16::MAX);
        let (at, length) = if bytes[0] >> 4 == 4 { (2, whole) } else { (4, whole.saturating_sub(V6_HEADER as u16)) };
        headers[at..at + 2].copy_from_slice(&length.to_be_bytes());
        return parse_cut(&headers[..kept], parse_headers(&headers[..kept]));
    }
    parse_cut(bytes, Err(error))
}

/// Reads the packet without the options that were cut, if this is why it cannot be read.
fn parse_cut(bytes: &[u8], read: Result<Parsed, ParseError>) -> Result<Parsed, ParseError> {
    let Err(error @ ParseError::Truncated { .. }) = read else { return read };
    let (Some(tcp), true) = (tcp_at(bytes), bytes.len() <= LONGEST) else { return Err(error) };
    let there = bytes.len().saturating_sub(tcp) / 4 * 4;
    if there < TCP_FIXED {
        return Err(error);
    }
    let mut short = [0; LONGEST];
    short[..bytes.len()].copy_from_slice(bytes);
    let claimed_len = 4 * (bytes[tcp + DATA_OFFSET_AT] >> 4);
    short[tcp + DATA_OFFSET_AT] = (there as u8 / 4) << 4 | bytes[tcp + DATA_OFFSET_AT] & 0x0f;
    let mut parsed = parse_headers(&short[..tcp + there])?;
    let header_len = tcp + usize::from(claimed_len);
    if header_len > usize::from(parsed.meta.ip_len) {
        return Err(ParseError::Length {
            offset: tcp + DATA_OFFSET_AT,
            field: "data offset",
            value: usize::from(claimed_len / 4),
        });
    }
    parsed.meta.header_len = header_len as u8;
    parsed.meta.set_options(parsed.meta.options().with_cut());
    Ok(parsed)
}

/// True for a fragment of an IP packet, whose ports are in its first one only (RFC 791, section 3.2; RFC 8200,
/// section 4.5).
#[must_use]
pub fn is_fragment(packet: &Parsed, ip: &[u8]) -> bool {
    /// The next header of a fragment.
    const FRAGMENT: u8 = 44;
    /// More fragments, and the offset.
    const IN_IPV4: u16 = 0x3fff;
    if packet.meta.mark.ipv6() {
        return packet.key.protocol == FRAGMENT;
    }
    matches!(ip, [_, _, _, _, _, _, high, low, ..] if u16::from_be_bytes([*high, *low]) & IN_IPV4 != 0)
}

/// Offset of the TCP header, if only IP's own header precedes it.
fn tcp_at(bytes: &[u8]) -> Option<usize> {
    match bytes.first()? >> 4 {
        4 if *bytes.get(9)? == TCP => Some(4 * usize::from(bytes[0] & 0x0f)),
        6 if *bytes.get(6)? == TCP => Some(V6_HEADER),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile_packet::{FlowAddresses, FlowId, Meta, Options, SackBlock, SeqNumber, header_len, write_packet};

    /// 20 bytes of IP, 20 of TCP, 12 of timestamps, 4 + 16 of two SACK blocks. Old versions of
    /// tcpdump kept 68 bytes of a frame, 54 of the packet.
    #[test]
    fn options_that_were_cut_are_left_out_and_the_payload_keeps_its_length() {
        let block = |left| SackBlock { left: SeqNumber::new(left), right: SeqNumber::new(left + 10) };
        let options = Options::NONE.with_timestamps(7, 8).with_sack(&[block(1), block(50)]);
        let mut meta = Meta::default();
        meta.set_options(options);
        meta.header_len = header_len(meta.protocol, false, &options);
        meta.ip_len = u16::from(meta.header_len) + 100;
        let mut bytes = Vec::new();
        write_packet(&meta, &FlowAddresses::of_simulated(FlowId::new(0)), &mut bytes);
        let parsed = parse_captured(&bytes[..54], 172).unwrap();
        assert!(parsed.meta.options().is_cut());
        assert_eq!(parsed.meta.options().timestamps(), Some((7, 8)));
        assert_eq!(parsed.meta.options().sack_count(), 0);
        assert_eq!(parsed.meta.payload_len(), 100);
        assert!(parse_captured(&bytes[..39], 172).is_err());
        assert!(!parse_captured(&bytes[..72], 172).unwrap().meta.options().is_cut());
    }

    #[test]
    fn fragments_of_both_versions_are_known() {
        let ipv4 = |flags: [u8; 2]| {
            let head = [0x45, 0, 0, 28, 0, 1, flags[0], flags[1], 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
            [&head[..], &[0, 9, 0, 9, 0, 8, 0, 0]].concat()
        };
        let ipv6 = |next: u8| [&[0x60, 0, 0, 0, 0, 8, next, 64][..], &[1; 32], &[17, 0, 0, 8, 0, 8, 0, 0]].concat();
        for (ip, expected) in [
            (ipv4([0x40, 0]), false),
            (ipv4([0x20, 0]), true),
            (ipv4([0, 0xb9]), true),
            (ipv6(44), true),
            (ipv6(17), false),
        ] {
            let parsed = parse_captured(&ip, ip.len() as u32).unwrap();
            assert_eq!(is_fragment(&parsed, &ip), expected, "{ip:02x?}");
        }
    }

    /// Large packets before their segmentation, of 14 600 octets of payload and of more than IP has a length for.
    #[test]
    fn packets_of_tcp_without_a_length_have_that_of_their_frame() {
        let mut meta = Meta { header_len: 40, ip_len: 1_040, ..Meta::default() };
        let four = FlowAddresses::of_simulated(FlowId::new(0));
        let mut bytes = Vec::new();
        write_packet(&meta, &four, &mut bytes);
        bytes[2..4].fill(0);
        for (kept, whole, payload) in [(1_040, 14_640, 14_600), (40, 14_640, 14_600), (40, 185_000, 65_495)] {
            let meta = parse_captured(&bytes[..kept], whole).unwrap().meta;
            assert_eq!((meta.payload_len(), meta.options().is_cut()), (payload, false));
        }
        assert!(parse_captured(&bytes, 39).is_err(), "shorter than its headers");
        bytes[9] = 17;
        assert!(parse_captured(&bytes, 1_040).is_err(), "no TCP");
        // An extension of 8 octets for the option.
        let tcp = bytes[20..40].to_vec();
        let jumbo = [TCP, 0, 0xc2, 4, 0, 2, 0xd2, 0xa8];
        for (next, extension, payload) in [(TCP, &[][..], 14_600), (0, &jumbo, 14_592)] {
            let ip = [&[0x60, 0, 0, 0, 0, 0, next, 64][..], &[0x20; 32], extension, &tcp].concat();
            meta = parse_captured(&ip, 14_660).unwrap().meta;
            assert_eq!(meta.payload_len(), payload);
        }
    }
}
