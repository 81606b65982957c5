//! Classic pcap (IETF draft-ietf-opsawg-pcap).
//!
//! A record has two lengths: that of the packet and, at most the file's snap length, what was kept of it.

use std::io::Read;

use pcap_file::TsResolution;
use pcap_file::pcap::{PcapReader, RawPcapPacket};

use super::frame::{Extent, Frame, Take, broken};
use super::link;

/// Bytes before the first record, and before the bytes of each packet.
const FILE_HEADER: u64 = 24;
const RECORD_HEADER: u64 = 16;

/// No program keeps more of a packet, whatever its snap length (`MAXIMUM_SNAPLEN` of libpcap).
const MOST_KEPT: u32 = 262_144;

/// The upper half of the link type's field holds the length of frame check sequences.
const LINK_TYPE: u32 = 0xffff;

pub(super) fn read(file: impl Read, take: &mut Take<'_>) -> Result<Extent, String> {
    let mut reader = PcapReader::new(file).map_err(|_| "neither pcap nor pcapng".to_owned())?;
    let header = reader.header();
    let datalink = link::of(u32::from(header.datalink) & LINK_TYPE);
    link::check(datalink)?;
    let most = header.snaplen.max(MOST_KEPT);
    let mut extent = Extent { bytes: FILE_HEADER, ..Extent::default() };
    extent.note(datalink);
    // Its checked packets would be refused where the packet, not what was kept of it, is longer than the snap length.
    while let Some(packet) = reader.next_raw_packet() {
        let packet = match packet {
            Ok(packet) => packet,
            Err(error) => return Ok(Extent { broken: Some(broken(&error)), ..extent }),
        };
        let at_ns = match time(&packet, header.ts_resolution, most) {
            Ok(at_ns) => at_ns,
            Err(why) => return Ok(Extent { broken: Some(why), ..extent }),
        };
        extent.bytes += RECORD_HEADER + u64::from(packet.incl_len);
        take(Frame::new(Some(at_ns), datalink, 0, (&packet.data, packet.orig_len)))?;
    }
    Ok(extent)
}

/// When the packet came, of a record that is none of damage.
fn time(packet: &RawPcapPacket<'_>, resolution: TsResolution, most: u32) -> Result<u64, String> {
    let (kept, whole) = (packet.incl_len, packet.orig_len);
    if kept > most || kept > whole {
        return Err(format!("the next record is damaged: it keeps {kept} bytes of a packet of {whole}"));
    }
    let (unit_ns, units) = match resolution {
        TsResolution::MicroSecond => (1_000, 1_000_000),
        TsResolution::NanoSecond => (1, 1_000_000_000),
    };
    if packet.ts_frac >= units {
        return Err(format!("the next record is damaged: the fraction of its time is {} of {units}", packet.ts_frac));
    }
    Ok(u64::from(packet.ts_sec) * 1_000_000_000 + u64::from(packet.ts_frac) * unit_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_file::pcap::PcapHeader;
    use pcap_file::{DataLink, Endianness};

    /// A file of `link` with a snap length of 60, and its records: kept length, whole length, fraction of the second.
    fn file(link: u32, records: &[(u32, u32, u32)]) -> Vec<u8> {
        let header = PcapHeader {
            snaplen: 60,
            datalink: DataLink::from(link),
            endianness: Endianness::Little,
            ..PcapHeader::default()
        };
        let mut bytes = Vec::new();
        header.write_to(&mut bytes).unwrap();
        for &(kept, whole, fraction) in records {
            for field in [1, fraction, kept, whole] {
                bytes.extend(u32::to_le_bytes(field));
            }
            bytes.resize(bytes.len() + kept as usize, 0x45);
        }
        bytes
    }

    /// What was read, and of each packet its time, and its kept and whole length.
    fn packets(bytes: &[u8]) -> (Extent, Vec<(u64, usize, u32)>) {
        let mut seen = Vec::new();
        let mut note = |frame: Frame<'_>| {
            seen.push((frame.at_ns.unwrap(), frame.ip.map_or(0, <[u8]>::len), frame.ip_len));
            Ok(())
        };
        (read(bytes, &mut note).unwrap(), seen)
    }

    #[test]
    fn packets_longer_than_the_snap_length_are_read_to_the_end() {
        let (extent, seen) = packets(&file(101, &[(40, 40, 5), (60, 1500, 6), (60, 65_535, 7)]));
        assert_eq!(extent, Extent { bytes: 24 + 3 * 16 + 160, links: vec!["RAW".into()], ..Extent::default() });
        assert_eq!(seen, [(1_000_005_000, 40, 40), (1_000_006_000, 60, 1_500), (1_000_007_000, 60, 65_535)]);
    }

    #[test]
    fn a_file_is_read_up_to_the_damage() {
        for (record, why) in [
            ((60, 50, 0), "it keeps 60 bytes of a packet of 50"),
            ((300_000, 300_000, 0), "it keeps 300000 bytes"),
            ((40, 40, 1_000_000), "the fraction of its time is 1000000 of 1000000"),
        ] {
            let (extent, seen) = packets(&file(101, &[(40, 40, 5), record, (40, 40, 6)]));
            assert_eq!((extent.bytes, seen.len()), (24 + 56, 1));
            assert!(extent.broken.as_ref().is_some_and(|text| text.contains(why)), "{extent:?}");
        }
        let whole = file(101, &[(40, 40, 5), (40, 40, 6)]);
        let (extent, seen) = packets(&whole[..whole.len() - 1]);
        assert_eq!((extent.bytes, seen.len()), (24 + 56, 1));
        assert!(extent.broken.unwrap().contains("in the middle of a packet"));
    }

    #[test]
    fn the_length_of_frame_check_sequences_is_no_link_type() {
        assert_eq!(packets(&file(0x0400_0065, &[(40, 40, 5)])).1.len(), 1);
    }
}
