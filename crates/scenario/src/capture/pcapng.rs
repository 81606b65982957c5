//! pcapng (IETF draft-ietf-opsawg-pcapng).
//!
//! Of packets only the fixed fields are read, and of an interface those and two options, so that no other option, nor a
//! block that is not needed, can end the reading.

use std::io::Read;

use pcap_file::{DataLink, Endianness};

use super::blocks::{Block, Blocks, SECTION_HEADER, word, words};
use super::frame::{Extent, Frame, Take, broken};
use super::link;

// Block types.
const INTERFACE_DESCRIPTION: u32 = 1;
/// Obsolete.
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// What the description of an interface says of its packets.
#[derive(Debug)]
struct Interface {
    /// The link layer, or why it cannot be read.
    link: Result<DataLink, String>,
    snap: u32,
    unit: Unit,
    /// `if_tsoffset`, in nanoseconds.
    offset_ns: i128,
}

/// The unit of times. Coarse decimal units need no division, which takes as long as the rest of a packet's block.
#[derive(Clone, Copy, Debug)]
enum Unit {
    Nanoseconds(u64),
    PerSecond(u128),
    /// A part of a second that has no number.
    Unknown,
}

impl Unit {
    /// `if_tsresol`: a negative power of ten, or of two where the highest bit is set.
    fn of_resolution(resolution: u8) -> Self {
        const NANOSECONDS: u8 = 9;
        let power = u32::from(resolution & 0x7f);
        if resolution <= NANOSECONDS {
            return Self::Nanoseconds(10_u64.pow(u32::from(NANOSECONDS) - power));
        }
        let base: u128 = if resolution & 0x80 == 0 { 10 } else { 2 };
        base.checked_pow(power).map_or(Self::Unknown, Self::PerSecond)
    }
}

impl Interface {
    /// Options of a description: the unit of times, and seconds to add to them.
    const RESOLUTION: u16 = 9;
    const OFFSET: u16 = 14;

    /// `None` for a description without its fixed fields.
    fn new(description: &Block<'_>) -> Option<(DataLink, Self)> {
        let (first, snap) = description.word(0).zip(description.word(1))?;
        // 16 bits, and 16 without a meaning.
        let link = link::of(if description.order == Endianness::Big { first >> 16 } else { first & 0xffff });
        let (mut resolution, mut offset_s) = (6, 0);
        for (code, value) in description.options(8) {
            match (code, value, description.order) {
                (Self::RESOLUTION, [told, ..], _) => resolution = *told,
                (Self::OFFSET, told, order) => {
                    let told = told.try_into().ok();
                    let read = if order == Endianness::Big { i64::from_be_bytes } else { i64::from_le_bytes };
                    offset_s = told.map_or(offset_s, read);
                }
                _ => {}
            }
        }
        let unit = Unit::of_resolution(resolution);
        let offset_ns = i128::from(offset_s) * 1_000_000_000;
        Some((link, Self { link: link::check(link).map(|()| link), snap, unit, offset_ns }))
    }

    /// A time of this interface in nanoseconds.
    #[inline]
    fn to_ns(&self, raw: u64) -> Option<u64> {
        let ns = match self.unit {
            Unit::Nanoseconds(factor) => u128::from(raw) * u128::from(factor),
            Unit::PerSecond(parts) => u128::from(raw).checked_mul(1_000_000_000)? / parts,
            Unit::Unknown => return None,
        };
        u64::try_from(i128::try_from(ns).ok()? + self.offset_ns).ok()
    }
}

/// A packet as its block gives it.
struct Packet<'a> {
    interface: u32,
    /// In the unit of the interface; `None` for a simple packet.
    time: Option<u64>,
    data: &'a [u8],
    /// Its octets, captured or not.
    length: u32,
}

pub(super) fn read(file: impl Read, take: &mut Take<'_>) -> Result<Extent, String> {
    let mut blocks = Blocks::new(file);
    let mut extent = Extent::default();
    // A packet of a known link layer was read.
    let mut known = false;
    let mut interfaces: Vec<Interface> = Vec::new();
    loop {
        let block = match blocks.next() {
            Ok(Some(block)) => block,
            Ok(None) => return ended(extent, known),
            Err(error) if extent.bytes == 0 => return Err(format!("no pcapng: {}", broken(&error))),
            Err(error) => return ended(Extent { broken: Some(broken(&error)), ..extent }, known),
        };
        let length = block.length();
        match block.kind {
            SECTION_HEADER => interfaces.clear(),
            INTERFACE_DESCRIPTION => {
                let Some((link, interface)) = Interface::new(&block) else {
                    let broken = Some("the description of an interface lacks its fixed fields".to_owned());
                    return ended(Extent { broken, ..extent }, known);
                };
                extent.note(link);
                interfaces.push(interface);
            }
            ENHANCED_PACKET | PACKET | SIMPLE_PACKET => {
                let Some(packet) = packet(&block, &interfaces) else {
                    let broken = Some("the lengths of the next packet contradict each other".to_owned());
                    return ended(Extent { broken, ..extent }, known);
                };
                let frame = frame(&packet, &interfaces);
                known |= frame.is_ok();
                take(frame.unwrap_or_else(|why| {
                    extent.skipped.get_or_insert_with(|| why.to_owned());
                    Frame::unknown(None)
                }))?;
            }
            _ => {}
        }
        extent.bytes += length;
    }
}

/// The end of a file, which is refused if no packet was of a known link layer.
fn ended(extent: Extent, known: bool) -> Result<Extent, String> {
    match extent.skipped {
        Some(why) if !known => Err(why),
        _ => Ok(extent),
    }
}

#[inline]
fn frame<'a, 'i>(packet: &Packet<'a>, interfaces: &'i [Interface]) -> Result<Frame<'a>, &'i str> {
    let number = packet.interface;
    let Some(interface) = interfaces.get(number as usize) else {
        // Of no interface: nobody knows its time or its link layer.
        return Ok(Frame::unknown(Some(&[])));
    };
    let link = *interface.link.as_ref().map_err(String::as_str)?;
    let at_ns = packet.time.and_then(|time| interface.to_ns(time));
    Ok(Frame::new(at_ns, link, number, (packet.data, packet.length)))
}

/// The fixed fields of a packet's block; `None` where it is shorter than they say.
#[inline]
fn packet<'a>(block: &Block<'a>, interfaces: &[Interface]) -> Option<Packet<'a>> {
    let body = block.body;
    if block.kind == SIMPLE_PACKET {
        // It has no time and no length of what was kept, and is of the first interface.
        let snap = interfaces.first().map_or(0, |first| first.snap);
        let length = block.word(0)?;
        let kept = if snap == 0 { length } else { length.min(snap) };
        return Some(Packet { interface: 0, time: None, data: body.get(4..)?.get(..kept as usize)?, length });
    }
    let (fixed, rest) = body.split_first_chunk::<20>()?;
    let [interface, high, low, kept, length] = words(fixed).map(|octets| word(block.order, octets));
    let interface = match (block.kind, block.order) {
        // 16 bits, and 16 of a count of drops.
        (PACKET, Endianness::Big) => interface >> 16,
        (PACKET, Endianness::Little) => interface & 0xffff,
        _ => interface,
    };
    let time = u64::from(high) << 32 | u64::from(low);
    Some(Packet { interface, time: Some(time), data: rest.get(..kept as usize)?, length })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of this type in little-endian order.
    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let length = (12 + body.len() as u32).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &length].concat()
    }

    /// An option, padded.
    fn option(code: u16, value: &[u8]) -> Vec<u8> {
        let mut whole = [code, value.len() as u16].map(u16::to_le_bytes).concat();
        whole.extend(value);
        whole.resize(whole.len().next_multiple_of(4), 0);
        whole
    }

    const SECTION: [u8; 16] = *b"\x4d\x3c\x2b\x1a\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff";

    /// A file of raw IP with a byte each of two packets of 9 at 3 units, whose interface has these options.
    fn file(options: &[u8]) -> Vec<u8> {
        let packet = block(ENHANCED_PACKET, &[0, 0, 3, 1, 9, 0x45].map(u32::to_le_bytes).concat());
        let interface = block(INTERFACE_DESCRIPTION, &[&[101, 0, 0, 0, 0, 0, 0, 0][..], options].concat());
        [block(SECTION_HEADER, &SECTION), interface, packet.clone(), packet].concat()
    }

    /// What was read, and the times of the packets.
    fn times(file: &[u8]) -> (Extent, Vec<Option<u64>>) {
        let mut times = Vec::new();
        let extent = read(file, &mut |frame| {
            assert_eq!((frame.ip, frame.ip_len), (Some(&[0x45][..]), 9));
            times.push(frame.at_ns);
            Ok(())
        });
        (extent.unwrap(), times)
    }

    #[test]
    fn times_of_an_interface_count_in_its_unit() {
        let at = |options: &[Vec<u8>]| times(&file(&options.concat())).1;
        assert_eq!(at(&[]), [Some(3_000); 2], "microseconds where nothing is said");
        assert_eq!(at(&[option(9, &[9])]), [Some(3); 2]);
        let two_s = option(14, &2_i64.to_le_bytes());
        assert_eq!(at(&[option(9, &[9]), two_s]), [Some(2_000_000_003); 2], "seconds are added");
        assert_eq!(at(&[option(9, &[0x80 | 10])]), [Some(3_000_000_000 / 1_024); 2], "1024ths of a second");
    }

    /// The draft, section 3.5: readers must check for the end of the block, where `opt_endofopt` may be missing.
    #[test]
    fn options_of_an_interface_end_no_reading() {
        let nanoseconds = || option(9, &[9]);
        let end = || option(0, &[]);
        let too_long = [2, 0, 100, 0, 1, 2, 3, 4].to_vec();
        for (options, expected) in [
            (vec![option(2, b"eth0")], 3_000),
            (vec![nanoseconds()], 3),
            (vec![option(3, b"R\xe9seau"), nanoseconds(), end()], 3),
            (vec![option(6, &[0; 8]), nanoseconds(), end()], 3),
            (vec![option(10, &[0; 4]), option(14, &[0; 4]), option(9, &[]), nanoseconds()], 3),
            (vec![end(), nanoseconds()], 3_000),
            (vec![nanoseconds(), too_long], 3),
        ] {
            let bytes = file(&options.concat());
            let (extent, times) = times(&bytes);
            assert_eq!((extent.broken, extent.bytes, extent.links), (None, bytes.len() as u64, vec!["RAW".to_owned()]));
            assert_eq!(times, [Some(expected); 2], "{options:?}");
        }
    }

    #[test]
    fn both_byte_orders_and_sections_with_interfaces_of_their_own_are_read() {
        let mut big = Vec::new();
        for (kind, body) in [
            (SECTION_HEADER, [0x1a2b_3c4d, 0x0001_0000, u32::MAX, u32::MAX].to_vec()),
            (INTERFACE_DESCRIPTION, [101 << 16, 0, 9 << 16 | 1, 9 << 24, 14 << 16 | 8, 0, 2].to_vec()),
            (ENHANCED_PACKET, [0, 0, 3, 1, 9, 0x45 << 24].to_vec()),
            (PACKET, [7, 0, 3, 1, 9, 0x45 << 24].to_vec()),
        ] {
            let length = 12 + 4 * body.len() as u32;
            big.extend([[kind, length].as_slice(), &body, &[length]].concat().into_iter().flat_map(u32::to_be_bytes));
        }
        let (extent, seen) = times(&[file(&[]), big, file(&[])].concat());
        assert_eq!(extent.broken, None);
        assert_eq!(seen, [3_000, 3_000, 2_000_000_003, 2_000_000_003, 3_000, 3_000].map(Some));
    }

    #[test]
    fn a_file_is_read_up_to_a_damaged_block() {
        let whole = file(&[]);
        let last = whole.len() - 36;
        let with = |at: usize, octet: u8| {
            let mut bytes = whole.clone();
            bytes[at] = octet;
            bytes
        };
        for (bytes, why) in [
            (whole[..whole.len() - 1].to_vec(), "it ends in the middle of a packet"),
            (whole[..last + 5].to_vec(), "it ends in the middle of a packet"),
            (with(last + 4, 37), "the length of a block"),
            (with(last + 7, 0x7f), "the length of a block"),
            (with(whole.len() - 4, 40), "the two lengths of a block differ"),
            (with(last + 20, 5), "the lengths of the next packet contradict each other"),
        ] {
            let (extent, seen) = times(&bytes);
            assert_eq!((extent.bytes, seen.len()), (last as u64, 1), "{why}");
            assert!(extent.broken.as_ref().is_some_and(|text| text.contains(why)), "{extent:?}");
        }
        let take = &mut |_: Frame<'_>| Ok(());
        assert_eq!(read(&whole[..20], take).unwrap_err(), "no pcapng: it ends in the middle of a packet");
        assert!(read(&with(8, 0)[..], take).unwrap_err().contains("the byte order of a section"));
    }

    /// Hands over a few octets at a time, as a slow pipe.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let most = buffer.len().min(7);
            self.0.read(&mut buffer[..most])
        }
    }

    #[test]
    fn blocks_longer_than_a_buffer_are_read_from_a_pipe() {
        let name = vec![0; 1 << 20];
        let bytes = [file(&[]), block(4, &name), file(&[])].concat();
        let mut packets = 0;
        let extent = read(Slow(&bytes), &mut |_| {
            packets += 1;
            Ok(())
        });
        assert_eq!((extent.unwrap().bytes, packets), (bytes.len() as u64, 4));
    }
}
