//! pcapng (IETF draft-ietf-opsawg-pcapng).
//!
//! Of packets only the fixed fields are read, so that no option of a packet, nor a block that is not needed,
//! can end the reading.

use std::io::Read;

use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::{PcapNgReader, RawBlock};
use pcap_file::{DataLink, Endianness};

use super::frame::{Extent, Frame, Take, broken};
use super::link;

// Block types.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
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
    fn new(description: &InterfaceDescriptionBlock<'_>) -> Self {
        let link = link::of(description.linktype.into());
        let (mut resolution, mut offset_s) = (6, 0);
        for option in &description.options {
            match option {
                InterfaceDescriptionOption::IfTsResol(told) => resolution = *told,
                InterfaceDescriptionOption::IfTsOffset(told) => offset_s = told.cast_signed(),
                _ => {}
            }
        }
        Self {
            link: link::check(link).map(|()| link),
            snap: description.snaplen,
            unit: Unit::of_resolution(resolution),
            offset_ns: i128::from(offset_s) * 1_000_000_000,
        }
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
}

pub(super) fn read(mut file: impl Read, take: &mut Take<'_>) -> Result<Extent, String> {
    // The header of the section: its type and its length, in an order that comes after.
    let mut head = [0; 8];
    file.read_exact(&mut head).map_err(|_| "too short for a capture".to_owned())?;
    let length = [head[4], head[5], head[6], head[7]];
    let length = u32::from_le_bytes(length).min(u32::from_be_bytes(length));
    let mut reader =
        PcapNgReader::new(head.as_slice().chain(file)).map_err(|error| format!("no pcapng: {}", broken(&error)))?;
    let mut order = reader.section().endianness;
    let mut extent = Extent { bytes: u64::from(length), ..Extent::default() };
    // A packet of a known link layer was read.
    let mut known = false;
    let mut interfaces: Vec<Interface> = Vec::new();
    loop {
        let block = match reader.next_raw_block() {
            None => return ended(extent, known),
            Some(Err(error)) => return ended(Extent { broken: Some(broken(&error)), ..extent }, known),
            Some(Ok(block)) => block,
        };
        extent.bytes += u64::from(block.initial_len);
        match block.type_ {
            SECTION_HEADER => {
                interfaces.clear();
                order = reader.section().endianness;
            }
            INTERFACE_DESCRIPTION => {
                interfaces = reader.interfaces().iter().map(Interface::new).collect();
                if let Some(last) = reader.interfaces().last() {
                    extent.note(link::of(last.linktype.into()));
                }
            }
            ENHANCED_PACKET | PACKET | SIMPLE_PACKET => {
                let Some(packet) = packet(&block, order, &interfaces) else {
                    extent.bytes -= u64::from(block.initial_len);
                    let broken = Some("the lengths of the next packet contradict each other".to_owned());
                    return ended(Extent { broken, ..extent }, known);
                };
                let frame = frame(&packet, &interfaces);
                known |= frame.is_ok();
                take(frame.unwrap_or_else(|why| {
                    extent.skipped.get_or_insert_with(|| why.to_owned());
                    Frame { at_ns: None, sighting: link::Sighting::default(), ip: None }
                }))?;
            }
            _ => {}
        }
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
        return Ok(Frame { at_ns: None, sighting: link::Sighting::default(), ip: Some(&[]) });
    };
    let link = *interface.link.as_ref().map_err(String::as_str)?;
    let at_ns = packet.time.and_then(|time| interface.to_ns(time));
    Ok(Frame { at_ns, sighting: link::sighting(link, number, packet.data), ip: link::ip_of(link, packet.data) })
}

/// The fixed fields of a packet's block; `None` where it is shorter than they say.
fn packet<'a>(block: &'a RawBlock<'_>, order: Endianness, interfaces: &[Interface]) -> Option<Packet<'a>> {
    let body = &*block.body;
    let word = |number: usize| {
        let bytes = body.get(4 * number..4 * number + 4)?.try_into().ok()?;
        Some(match order {
            Endianness::Big => u32::from_be_bytes(bytes),
            Endianness::Little => u32::from_le_bytes(bytes),
        })
    };
    if block.type_ == SIMPLE_PACKET {
        // It has no time and no length of what was kept, and is of the first interface.
        let snap = interfaces.first().map_or(0, |first| first.snap);
        let kept = if snap == 0 { word(0)? } else { word(0)?.min(snap) };
        return Some(Packet { interface: 0, time: None, data: body.get(4..)?.get(..kept as usize)? });
    }
    let interface = match (block.type_, order) {
        // 16 bits, and 16 of a count of drops.
        (PACKET, Endianness::Big) => word(0)? >> 16,
        (PACKET, Endianness::Little) => word(0)? & 0xffff,
        _ => word(0)?,
    };
    let time = u64::from(word(1)?) << 32 | u64::from(word(2)?);
    let data = body.get(20..)?.get(..word(3)? as usize)?;
    Some(Packet { interface, time: Some(time), data })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_an_interface_count_in_its_unit() {
        let to_ns = |raw, described: &InterfaceDescriptionBlock<'_>| Interface::new(described).to_ns(raw);
        let mut interface = InterfaceDescriptionBlock::new(DataLink::RAW, 0);
        assert_eq!(to_ns(3, &interface), Some(3_000), "microseconds where nothing is said");
        interface.options.push(InterfaceDescriptionOption::IfTsResol(9));
        assert_eq!(to_ns(3, &interface), Some(3));
        interface.options.push(InterfaceDescriptionOption::IfTsOffset(2));
        assert_eq!(to_ns(3, &interface), Some(2_000_000_003), "seconds are added");
        interface.options.pop();
        interface.options[0] = InterfaceDescriptionOption::IfTsResol(0x80 | 10);
        assert_eq!(to_ns(512, &interface), Some(500_000_000), "1024ths of a second");
    }
}
