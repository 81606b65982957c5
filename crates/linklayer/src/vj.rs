//! TCP/IP header compression for slow lines: 40 bytes become 3 to 7, with real state at both ends.
//!
//! Published: RFC 1144 (Van Jacobson); RFC 1332 negotiates it for PPP. Both ends keep the last header of each connection in
//! a numbered slot. A [`Compressor`] sends a bit mask of what changed, the TCP checksum, and the differences in one byte
//! (1 to 255) or three (0, and 256 to 65 535); a [`Decompressor`] adds them to its own copy:
//!
//! ```text
//! mask  0 C I P S A W U    connection number if C; TCP checksum, always; then, each if its bit is set,
//!                          urgent pointer, window, ACK number, sequence number and IP ID (where it did not grow by one)
//! S W U together: sequence and ACK number both grew by the last packet's data (an echoed keystroke)
//! S A W U together: the sequence number did (bulk data)
//! ```
//!
//! What that makes of a header, measured by the tests here: bulk data 3 bytes; a pure ACK 4 bytes when it acknowledges up to
//! 255 bytes more than the last and 6 when more, as any does that counts full-size segments; one byte more when the
//! connection is not the one of the packet before, one to three for each further field that changes. RFC 1144's "3 to 5"
//! counts the small segments of its day.
//!
//! What is sent uncompressed, by the rules of the RFC: the first packet of a connection; anything but a plain ACK or data
//! (SYN, FIN, RST, no ACK), and fragments; a number that went back or jumped past 65 535 (a retransmission, which is
//! how a receiver that lost a packet gets its state back); a packet that repeats the last (a duplicate ACK, a window
//! probe); **any change of an option**. With TCP timestamps (RFC 7323) nearly every header differs in its options, and
//! compression saves nothing: 52 bytes stay 52. Turn timestamps off where this is to help.
//!
//! A lost compressed packet leaves the decompressor behind, and the headers it makes from then on are wrong by what was
//! lost. Nothing here notices: the TCP checksum of the packet, carried through unchanged, does not match the wrong header,
//! and the receiving TCP throws it away, until a retransmission comes uncompressed. If the line itself knows of the
//! loss (a bad FCS), [`Decompressor::line_error`] has everything tossed that does not name its connection. Two things
//! escape the checksum: the IP ID, which lags by the packets lost, and an ACK lost that moved ACK number and window by
//! opposite amounts, whose sum is the same.
//!
//! Differs from the code in the RFC, without a difference to a decompressor that follows it: ECE, CWR and the reserved
//! bits, which it does not look at, must be unchanged (else uncompressed); the forms for echo and bulk data are not used
//! right after a packet with URG, since the RFC's decompressor leaves that flag standing.
//!
//! The IP header checksum is recomputed, not carried: compress only what a router would forward.
//!
//! Cost: a search of the slots in order of use, a comparison of the headers, one copy of at most 120 bytes. No allocation
//! after [`Compressor::new`].

mod compress;
mod decompress;
mod header;

pub use compress::{Compressed, Compressor};
pub use decompress::{Decompressor, Restored, Toss};

/// The longest pair of headers: IPv4 and TCP, each with 40 bytes of options.
pub const MAX_HEADER: usize = 120;

/// The longest compressed header: mask, connection, checksum, and four numbers of three bytes. Never five: urgent pointer,
/// window, ACK and sequence number together would read as the special case for data.
pub const MAX_COMPRESSED: usize = 4 + 4 * 3;

/// Slots unless told otherwise (RFC 1144 section 3.2.2).
pub const DEFAULT_SLOTS: u16 = 16;

/// The most slots: their number is one byte.
pub const MAX_SLOTS: u16 = 256;

/// What a frame holds. The line must tell: SLIP in the first byte (RFC 1144), PPP by its protocol number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// An IP packet as it was.
    Ip,
    /// An IP packet with the slot number where the protocol number was.
    UncompressedTcp,
    /// A compressed header and the data.
    CompressedTcp,
}

impl FrameKind {
    /// PPP protocol number (RFC 1332 section 4): the PPP header is as long for one as for the other.
    #[must_use]
    pub const fn ppp_protocol(self) -> u16 {
        match self {
            Self::Ip => 0x0021,
            Self::CompressedTcp => 0x002d,
            Self::UncompressedTcp => 0x002f,
        }
    }
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
