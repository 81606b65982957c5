//! TCP headers (RFC 9293, section 3.1) and their options.
//!
//! Known options: maximum segment size, window scale, SACK permitted, SACK, timestamps, and AccECN
//! (RFC 9768) of both orders and every length. The options of a segment count as unknown, so that
//! nothing rewrites it, if there is any other option, a second one of a kind, a malformed one, or a
//! reserved bit in the header other than AE.
//!
//! Written options have the layout of Linux (`tcp_options_write`): MSS; SACK permitted and
//! timestamps, each as the other's padding; window scale after one NOP; SACK after two; AccECN
//! before NOPs.
//! [`Options::header_bytes`] is their size.

use crate::fields::{ParseError, double_word, header, word};
use crate::{
    EcnBytes, EcnLayout, EcnOrder, FlowAddresses, Meta, Options, Protocol, SackBlock, SeqNumber, SynOptions, TcpFlags,
    ipv4,
};

/// Bytes of a header without options.
pub(crate) const HEADER_LEN: usize = 20;
/// Bytes of a header with timestamps.
const STAMPED_LEN: usize = HEADER_LEN + 12;
/// Offset of the checksum.
pub(crate) const CHECKSUM_AT: usize = 16;
/// Offset of the acknowledgement number.
pub(crate) const ACK_AT: usize = 8;
/// Offset of the data offset.
pub(crate) const DATA_OFFSET_AT: usize = 12;
/// Offset of the window.
pub(crate) const WINDOW_AT: usize = 14;

// Option kinds: RFC 9293, section 3.2; RFC 7323; RFC 2018.
const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
// RFC 9768, section 3.2.3: ECT(0) first, and ECT(1) first.
const ACCECN0: u8 = 172;
const ACCECN1: u8 = 174;

/// Reads the header at `offset`; returns the ports.
pub(crate) fn read(packet: &[u8], offset: usize, meta: &mut Meta) -> Result<(u16, u16), ParseError> {
    let fixed: &[u8; HEADER_LEN] = header(packet, offset)?;
    let data_offset = usize::from(fixed[DATA_OFFSET_AT] >> 4);
    let end = offset + 4 * data_offset;
    if 4 * data_offset < HEADER_LEN || end > usize::from(meta.ip_len) {
        return Err(ParseError::Length { offset: offset + DATA_OFFSET_AT, field: "data offset", value: data_offset });
    }
    let Some(options) = packet.get(offset + HEADER_LEN..end) else {
        return Err(ParseError::Truncated { offset: packet.len(), needed: end });
    };
    meta.protocol = Protocol::Tcp;
    meta.header_len = end as u8;
    meta.seq = SeqNumber::new(double_word(fixed, 4));
    meta.ack = SeqNumber::new(double_word(fixed, ACK_AT));
    meta.flags = TcpFlags::from_header(fixed[DATA_OFFSET_AT], fixed[13]);
    meta.window = word(fixed, WINDOW_AT);
    let mut read = read_options(options);
    if fixed[DATA_OFFSET_AT] & 0x0E != 0 {
        read = read.with_unknown();
    }
    meta.set_options(read);
    Ok((word(fixed, 0), word(fixed, 2)))
}

/// A fast path for [`read`]: a segment behind an IPv4 header without options, with timestamps in
/// the usual layout or without options. It overwrites the rest of `meta`, which nothing copies where it is inlined.
#[inline(always)]
pub(crate) fn read_usual(segment: &[u8], meta: &mut Meta) -> Option<(u16, u16)> {
    const PLAIN: u8 = data_offset(HEADER_LEN);
    const STAMPED: u8 = data_offset(STAMPED_LEN);
    let fixed: &[u8; HEADER_LEN] = segment.first_chunk()?;
    let options = match fixed[DATA_OFFSET_AT] {
        STAMPED => stamps(segment.get(HEADER_LEN..STAMPED_LEN)?)?,
        PLAIN => Options::NONE,
        _ => return None,
    };
    *meta = Meta {
        seq: SeqNumber::new(double_word(fixed, 4)),
        ack: SeqNumber::new(double_word(fixed, ACK_AT)),
        flags: TcpFlags::from_bits(fixed[13]),
        window: word(fixed, WINDOW_AT),
        protocol: Protocol::Tcp,
        header_len: ipv4::HEADER_LEN as u8 + (fixed[DATA_OFFSET_AT] >> 4) * 4,
        ..Meta::default()
    };
    meta.set_options(options);
    Some((word(fixed, 0), word(fixed, 2)))
}

/// The layout of nearly every segment of an established connection (RFC 7323, appendix A).
#[inline]
fn stamps(options: &[u8]) -> Option<Options> {
    match options {
        [NOP, NOP, TIMESTAMPS, 10, values @ ..] if values.len() == 8 => {
            Some(Options::NONE.with_timestamps(double_word(values, 0), double_word(values, 4)))
        }
        _ => None,
    }
}

/// Reads the options, which extend to the end of the header.
fn read_options(bytes: &[u8]) -> Options {
    if let Some(stamped) = stamps(bytes) {
        return stamped;
    }
    let mut options = Options::NONE;
    let mut syn = SynOptions::default();
    let mut counters = None;
    let mut rest = bytes;
    let mut known = true;
    while let [kind, tail @ ..] = rest {
        match *kind {
            END => break,
            NOP => {
                rest = tail;
                continue;
            }
            _ => {}
        }
        let Some((value, after)) = split_option(rest) else {
            known = false;
            break;
        };
        rest = after;
        known &= match (*kind, value) {
            (MSS, [high, low]) if syn.mss.is_none() => {
                syn.mss = Some(u16::from_be_bytes([*high, *low]));
                true
            }
            (WINDOW_SCALE, [shift]) if syn.window_scale.is_none() => {
                syn.window_scale = Some(*shift);
                true
            }
            (SACK_PERMITTED, []) if !syn.sack_permitted => {
                syn.sack_permitted = true;
                true
            }
            (TIMESTAMPS, values) if values.len() == 8 && options.timestamps().is_none() => {
                options = options.with_timestamps(double_word(values, 0), double_word(values, 4));
                true
            }
            (SACK, blocks) if !blocks.is_empty() && blocks.len() % 8 == 0 && options.sack_count() == 0 => {
                options = read_sack(options, blocks);
                true
            }
            (ACCECN0 | ACCECN1, values) if counters.is_none() => {
                counters = read_accecn(*kind, values);
                counters.is_some()
            }
            _ => false,
        };
    }
    match counters {
        // Several SACK blocks leave no space for the counters in the metadata.
        Some(_) if options.sack_count() > 1 => join(options, syn, false),
        Some((counters, layout)) => join(options, syn, known).with_accecn_as(counters, layout),
        None => join(options, syn, known),
    }
}

/// The counters of an AccECN option: none to three of three bytes each.
fn read_accecn(kind: u8, bytes: &[u8]) -> Option<(EcnBytes, EcnLayout)> {
    let (counters, []) = bytes.as_chunks::<3>() else { return None };
    let order = if kind == ACCECN0 { EcnOrder::Ect0First } else { EcnOrder::Ect1First };
    let layout = EcnLayout::new(order, u8::try_from(counters.len()).ok()?)?;
    let mut values = [0; 3];
    for (value, [high, middle, low]) in values.iter_mut().zip(counters) {
        *value = u32::from_be_bytes([0, *high, *middle, *low]);
    }
    Some((EcnBytes::from_order(values, order), layout))
}

/// Splits `[kind, length, value.., after..]` into the value and the bytes after it.
fn split_option(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = usize::from(*bytes.get(1)?);
    let (option, after) = bytes.split_at_checked(len)?;
    Some((option.get(2..)?, after))
}

/// Reads SACK blocks. The data offset limits them to four, and to three together with timestamps,
/// so that all fit.
fn read_sack(options: Options, bytes: &[u8]) -> Options {
    let mut blocks = [SackBlock::default(); Options::MAX_SACK_BLOCKS];
    let mut count = 0;
    for (block, values) in blocks.iter_mut().zip(bytes.as_chunks::<8>().0) {
        block.left = SeqNumber::new(double_word(values, 0));
        block.right = SeqNumber::new(double_word(values, 4));
        count += 1;
    }
    options.with_sack(&blocks[..count])
}

/// Combines the options. [`Options`] holds SACK blocks or the values of a SYN, and no valid segment
/// has both: one with both counts as unknown.
fn join(options: Options, syn: SynOptions, known: bool) -> Options {
    let has_sack = options.sack_count() > 0;
    let contradicts = has_sack && syn != SynOptions::default();
    let mut joined = if has_sack { options } else { Options::syn(syn) };
    if let (false, Some((value, echo_reply))) = (has_sack, options.timestamps()) {
        joined = joined.with_timestamps(value, echo_reply);
    }
    if known && !contradicts { joined } else { joined.with_unknown() }
}

/// Writes the header with checksum 0; returns its length.
pub(crate) fn write(out: &mut [u8], meta: &Meta, addresses: &FlowAddresses) -> usize {
    out[0..2].copy_from_slice(&addresses.source_port.to_be_bytes());
    out[2..4].copy_from_slice(&addresses.destination_port.to_be_bytes());
    out[4..8].copy_from_slice(&meta.seq.raw().to_be_bytes());
    out[ACK_AT..12].copy_from_slice(&meta.ack.raw().to_be_bytes());
    let len = HEADER_LEN + write_options(&mut out[HEADER_LEN..], &meta.options());
    out[DATA_OFFSET_AT] = data_offset(len) | meta.flags.offset_bits();
    out[13] = meta.flags.bits();
    out[WINDOW_AT..16].copy_from_slice(&meta.window.to_be_bytes());
    out[16..20].fill(0);
    len
}

/// The header's data-offset byte for a header of `len` bytes, reserved bits 0.
pub(crate) const fn data_offset(len: usize) -> u8 {
    (len as u8 / 4) << 4
}

/// Writes the options and returns their length, [`Options::header_bytes`]. Unknown options are not
/// written.
pub(crate) fn write_options(out: &mut [u8], options: &Options) -> usize {
    let mut writer = Writer { out, len: 0 };
    let syn = options.syn_options();
    if let Some(mss) = syn.mss {
        writer.put(&[MSS, 4]);
        writer.put(&mss.to_be_bytes());
    }
    if let Some((value, echo_reply)) = options.timestamps() {
        writer.put(if syn.sack_permitted { &[SACK_PERMITTED, 2, TIMESTAMPS, 10] } else { &[NOP, NOP, TIMESTAMPS, 10] });
        writer.put(&value.to_be_bytes());
        writer.put(&echo_reply.to_be_bytes());
    } else if syn.sack_permitted {
        writer.put(&[NOP, NOP, SACK_PERMITTED, 2]);
    }
    if let Some(shift) = syn.window_scale {
        writer.put(&[NOP, WINDOW_SCALE, 3, shift]);
    }
    if options.sack_count() > 0 {
        writer.put(&[NOP, NOP, SACK, 2 + 8 * options.sack_count() as u8]);
        for block in options.sack_blocks() {
            writer.put(&block.left.raw().to_be_bytes());
            writer.put(&block.right.raw().to_be_bytes());
        }
    }
    if let Some((counters, layout)) = options.accecn_counters() {
        let kind = if layout.order() == EcnOrder::Ect0First { ACCECN0 } else { ACCECN1 };
        let option_len = 2 + 3 * layout.counters();
        writer.put(&[kind, option_len]);
        for counter in &counters.in_order(layout.order())[..usize::from(layout.counters())] {
            writer.put(&counter.to_be_bytes()[1..]);
        }
        writer.put(&[NOP; 3][..usize::from(layout.header_bytes() - option_len)]);
    }
    debug_assert_eq!(
        writer.len,
        usize::from(options.header_bytes()),
        "the layout has the size that the metadata count"
    );
    writer.len
}

struct Writer<'a> {
    out: &'a mut [u8],
    len: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.out[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}
