//! Captures: the packets of an interface, as a pcapng file for Wireshark, tshark and tcptrace.
//!
//! Published: IETF draft-ietf-opsawg-pcapng (section header, interface description and enhanced
//! packet blocks). Packets are raw IP (LINKTYPE_RAW, 101), so that simulated and real packets need
//! no invented link-layer header.
//!
//! Equal packets give equal bytes on every machine: blocks are little-endian, the file does not
//! identify the machine, and times are those of the run, counted from [`EPOCH_UNIX_S`]. Times are
//! truncated to nanoseconds: the format allows picoseconds, but tshark 4.0 misreads them (3.123 s
//! as 3.013 s).
//!
//! Cost: one block of 32 bytes and the captured bytes a packet; no allocation.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use lastmile_packet::{
    FlowAddresses, MAX_HEADER_LEN, Meta, Parsed, Protocol, parse_headers, write_headers, write_packet, written_len,
};
use lastmile_units::Instant;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, Endianness, PcapError};

use crate::atomic::AtomicFile;

/// The calendar time of the start of a run, in seconds since 1970: 2000-01-01 00:00:00 UTC. It is
/// not 0, which tcptrace takes for a missing time.
pub const EPOCH_UNIX_S: u64 = 946_684_800;

/// The stored part of each packet. The true length is always recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Keep {
    /// IP and transport headers: 84 bytes of file for a segment of 1500 bytes instead of 1532.
    /// Checksums cannot be verified.
    #[default]
    Headers,
    /// The whole packet; the payload of simulated packets is zeros.
    Whole,
}

/// An interface of one capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceId(u32);

/// Writes a capture. [`CaptureWriter::create`] writes to a file that gets its name only once it is
/// whole.
pub struct CaptureWriter<W: Write> {
    blocks: PcapNgWriter<W>,
    keep: Keep,
    packet: Vec<u8>,
}

/// Why a capture could not be written.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file or its disk.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The interface belongs to another capture.
    #[error("capture interface {0} is not one of this capture")]
    UnknownInterface(u32),
}

impl CaptureWriter<AtomicFile> {
    /// Begins the capture file `path`.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn create(path: &Path, keep: Keep) -> Result<Self, CaptureError> {
        Self::new(AtomicFile::create(path)?, keep)
    }

    /// Renames the file to its final name. Without this call the capture is removed.
    ///
    /// # Errors
    ///
    /// A write failed; there is then no new file.
    pub fn commit(self) -> Result<(), CaptureError> {
        Ok(self.blocks.into_inner().commit()?)
    }
}

impl<W: Write> CaptureWriter<W> {
    /// Begins a capture.
    ///
    /// # Errors
    ///
    /// The section header cannot be written.
    pub fn new(writer: W, keep: Keep) -> Result<Self, CaptureError> {
        let blocks = PcapNgWriter::with_endianness(writer, Endianness::Little).map_err(capture_error)?;
        Ok(Self { blocks, keep, packet: Vec::new() })
    }

    /// Adds an interface, also between packets. Wireshark shows its name as the packet's interface.
    ///
    /// # Errors
    ///
    /// The description cannot be written.
    pub fn add_interface(&mut self, name: &str) -> Result<InterfaceId, CaptureError> {
        let id = InterfaceId(self.blocks.interfaces().len() as u32);
        let description = InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: match self.keep {
                Keep::Headers => LONGEST_HEADERS as u32,
                Keep::Whole => NO_LIMIT,
            },
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        };
        self.blocks.write_pcapng_block(description).map_err(capture_error)?;
        Ok(id)
    }

    /// Writes a simulated packet of `interface` at `at`. The addresses determine the IP version.
    ///
    /// # Errors
    ///
    /// The packet cannot be written, or `interface` is another capture's.
    pub fn write(
        &mut self,
        interface: InterfaceId,
        at: Instant,
        meta: &Meta,
        addresses: &FlowAddresses,
    ) -> Result<(), CaptureError> {
        match self.keep {
            Keep::Headers => {
                let mut headers = [0; MAX_HEADER_LEN];
                let captured = write_headers(meta, addresses, &mut headers);
                write_block(&mut self.blocks, interface, at, &headers[..captured], written_len(&headers))
            }
            Keep::Whole => {
                write_packet(meta, addresses, &mut self.packet);
                write_block(&mut self.blocks, interface, at, &self.packet, self.packet.len())
            }
        }
    }

    /// Writes a real packet, from its IP header on.
    ///
    /// # Errors
    ///
    /// The packet cannot be written, or `interface` is another capture's.
    pub fn write_bytes(&mut self, interface: InterfaceId, at: Instant, bytes: &[u8]) -> Result<(), CaptureError> {
        let captured = match (self.keep, parse_headers(bytes)) {
            (Keep::Headers, Ok(Parsed { meta, .. })) if meta.protocol != Protocol::Other => {
                usize::from(meta.header_len)
            }
            // The header length of an unreadable packet is unknown.
            (Keep::Headers, _) => bytes.len().min(LONGEST_HEADERS),
            (Keep::Whole, _) => bytes.len(),
        };
        write_block(&mut self.blocks, interface, at, &bytes[..captured], bytes.len())
    }

    /// Ends the capture and returns the writer.
    #[must_use]
    pub fn into_inner(self) -> W {
        self.blocks.into_inner()
    }
}

/// `if_tsresol` of 10^-9 s.
const NANOSECONDS: u8 = 9;
/// The longest headers: `Meta::header_len` has eight bits.
const LONGEST_HEADERS: usize = 255;
/// `SnapLen` 0: packets are stored whole.
const NO_LIMIT: u32 = 0;

fn write_block<W: Write>(
    blocks: &mut PcapNgWriter<W>,
    interface: InterfaceId,
    at: Instant,
    captured: &[u8],
    len: usize,
) -> Result<(), CaptureError> {
    let block = EnhancedPacketBlock {
        interface_id: interface.0,
        timestamp: std::time::Duration::from_secs(EPOCH_UNIX_S) + std::time::Duration::from_nanos(at.as_ps() / 1000),
        original_len: len as u32,
        data: Cow::Borrowed(captured),
        options: Vec::new(),
    };
    blocks.write_pcapng_block(block).map_err(capture_error)?;
    Ok(())
}

fn capture_error(error: PcapError) -> CaptureError {
    match error {
        PcapError::IoError(error) => CaptureError::Io(error),
        PcapError::InvalidInterfaceId(id) => CaptureError::UnknownInterface(id),
        other => CaptureError::Io(io::Error::other(other)),
    }
}

#[cfg(test)]
mod tests;
