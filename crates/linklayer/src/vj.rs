//! TCP/IP header compression for slow lines: 40 bytes become 3 to 7, with state at both ends.
//!
//! Published: RFC 1144 (Van Jacobson); RFC 1332 negotiates it for PPP. Both ends keep the last
//! header of each connection in a numbered slot. A [`Compressor`] sends a bit mask of the changed
//! fields, the TCP checksum, and the differences in one byte (1 to 255) or three (0, and 256 to
//! 65 535). A [`Decompressor`] adds the differences to its own copy:
//!
//! ```text
//! mask  0 C I P S A W U    connection number if C; TCP checksum, always; then, each if its bit is set,
//!                          urgent pointer, window, ACK number, sequence number and IP ID (unless it grew by one)
//! S W U together: sequence and ACK number both grew by the last packet's data (an echoed keystroke)
//! S A W U together: the sequence number did (bulk data)
//! ```
//!
//! Header sizes, as the tests measure them: bulk data 3 bytes. A pure ACK 4 bytes if it
//! acknowledges at most 255 bytes more than the last, else 6, as every ACK of full-size segments. A
//! change of connection adds one byte, each further changed field one to three. RFC 1144's "3 to 5"
//! assumes the small segments of its day.
//!
//! The RFC sends these packets uncompressed: the first packet of a connection; anything but a plain
//! ACK or data (SYN, FIN, RST, no ACK), and fragments; a number that decreased or grew by more than
//! 65 535 (a retransmission, from which a receiver that lost a packet restores its state); a packet
//! equal to the last (a duplicate ACK, a window probe); **any change of an option**. With TCP
//! timestamps (RFC 7323) nearly every header differs in its options, and compression saves nothing:
//! 52 bytes stay 52. Compression helps only with timestamps off.
//!
//! After a lost compressed packet the decompressor misses its differences, and all further headers
//! are wrong. The decompressor cannot notice. The TCP checksum, carried unchanged, does not match
//! the wrong header, so the receiving TCP discards these packets until a retransmission comes
//! uncompressed. If the line detects the loss (a bad FCS), [`Decompressor::line_error`] tosses
//! every frame that does not name its connection. The checksum misses two errors: the IP ID, which
//! lags by the packets lost, and a lost ACK that changed ACK number and window by opposite amounts,
//! which leaves the sum unchanged.
//!
//! Differs from the code in the RFC, compatibly with the RFC's decompressor: ECE, CWR and the
//! reserved bits, which the RFC's code ignores, must be unchanged (else uncompressed). The forms
//! for echo and bulk data are not used right after a packet with URG, because the RFC's
//! decompressor does not clear that flag.
//!
//! The IP header checksum is recomputed, not carried: compress only what a router would forward.
//!
//! Cost: a search of the slots in order of use, a comparison of the headers, one copy of at most
//! 120 bytes. No allocation after [`Compressor::new`].

mod compress;
mod decompress;
mod header;

pub use compress::{Compressed, Compressor};
pub use decompress::{Decompressor, Restored, Toss};

/// The longest pair of headers: IPv4 and TCP, each with 40 bytes of options.
pub const MAX_HEADER: usize = 120;

/// The longest compressed header: mask, connection, checksum, and four numbers of three bytes. Five
/// numbers cannot occur: urgent pointer, window, ACK and sequence number together are the mask of
/// the special case for data.
pub const MAX_COMPRESSED: usize = 4 + 4 * 3;

/// Default number of slots (RFC 1144 section 3.2.2).
pub const DEFAULT_SLOTS: u16 = 16;

/// The most slots: a slot number has one byte.
pub const MAX_SLOTS: u16 = 256;

/// The content of a frame. The line carries this: SLIP in the first byte (RFC 1144), PPP by its
/// protocol number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// An unchanged IP packet.
    Ip,
    /// An IP packet with the slot number in place of the protocol number.
    UncompressedTcp,
    /// A compressed header and the data.
    CompressedTcp,
}

/// The change mask of RFC 1144, figure 5.
mod mask {
    pub(super) const CONNECTION: u8 = 0x40;
    pub(super) const IP_ID: u8 = 0x20;
    pub(super) const PUSH: u8 = 0x10;
    pub(super) const SEQUENCE: u8 = 0x08;
    pub(super) const ACK: u8 = 0x04;
    pub(super) const WINDOW: u8 = 0x02;
    pub(super) const URGENT: u8 = 0x01;
    pub(super) const SEQUENCE_AND_ACK: u8 = SEQUENCE | ACK;
    /// The four bits that also encode the two special cases.
    pub(super) const SPECIALS: u8 = SEQUENCE | ACK | WINDOW | URGENT;
    /// Echoed interactive traffic.
    pub(super) const ECHO: u8 = SEQUENCE | WINDOW | URGENT;
    /// Unidirectional data.
    pub(super) const DATA: u8 = SPECIALS;
}

#[cfg(test)]
mod tests;
