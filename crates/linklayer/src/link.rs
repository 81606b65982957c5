//! [`LinkLayer`]: the bytes on the wire of an IP packet, and the inverse.
//!
//! The frame is `n + overhead`, at least the minimum frame. Framing makes `x` bytes of frame into
//! `x`, ATM cells `ceil(x/48) * 53`, or PTM `ceil(x*65/64)`. The order and the rounding are those
//! of CAKE (`tc-cake(8)`, OVERHEAD COMPENSATION), whose numbers the tests repeat for every preset
//! and every size. Cost: an addition, a comparison, a division by a constant.

use core::fmt;
use core::num::NonZeroU16;

use lastmile_units::{ByteCount, CellCount, WireBytes};

use crate::interleave::Interleave;
use crate::{OamShare, aal5, ptm};

/// Bytes of the PPP protocol field (RFC 1661, section 2).
const PPP_PROTOCOL: i32 = 2;

/// The division of a frame into cells or coded blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Framing {
    /// The frame is transmitted unchanged.
    None,
    /// ATM cells ([`aal5`]).
    Atm,
    /// 64b/65b blocks ([`ptm`]).
    Ptm,
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Atm => "atm",
            Self::Ptm => "ptm",
        })
    }
}

/// Whether a packet's encapsulation includes PPP, which multilink fragments need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Ppp {
    /// The encapsulation includes PPP.
    Inside,
    /// The encapsulation has no PPP.
    Absent,
    /// Unknown: the overhead was given as a number.
    #[default]
    Unknown,
}

/// How a line carries IP packets. Small and `Copy`, because it is read for every packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkLayer {
    overhead: i16,
    min_frame: u16,
    framing: Framing,
    ppp: Ppp,
    oam: Option<OamShare>,
    interleave: Interleave,
    mtu: Option<NonZeroU16>,
}

/// A link layer that cannot exist, with the value at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkError {
    /// Overhead outside [`LinkLayer::MIN_OVERHEAD`] to [`LinkLayer::MAX_OVERHEAD`].
    Overhead(i32),
    /// A minimum frame above [`LinkLayer::MAX_MIN_FRAME`].
    MinFrame(u32),
    /// OAM cells on a line without cells.
    OamWithoutCells(Framing),
    /// Fragments on an encapsulation without PPP.
    FragmentsWithoutPpp,
    /// Fragments with less overhead than the 2 bytes of the PPP protocol field.
    FragmentsWithoutRoom(i32),
    /// Packets interrupted between cells on a line without cells.
    InterleaveWithoutCells(Framing),
}

impl core::error::Error for LinkError {}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overhead(given) => write!(
                f,
                "an overhead of {given} bytes; it is from {} to {} bytes a packet",
                LinkLayer::MIN_OVERHEAD,
                LinkLayer::MAX_OVERHEAD
            ),
            Self::MinFrame(given) => {
                write!(f, "a minimum frame of {given} bytes; it is at most {} bytes", LinkLayer::MAX_MIN_FRAME)
            }
            Self::OamWithoutCells(framing) => {
                write!(f, "an OAM share with framing \"{framing}\"; OAM cells need framing \"atm\"")
            }
            Self::FragmentsWithoutPpp => {
                f.write_str("fragments are PPP frames (RFC 1990), and this encapsulation has no PPP")
            }
            Self::FragmentsWithoutRoom(overhead) => {
                write!(f, "PPP fragments with {overhead} bytes around each; the PPP protocol alone is 2")
            }
            Self::InterleaveWithoutCells(framing) => {
                write!(f, "packets interrupted between cells with framing \"{framing}\"; that needs framing \"atm\"")
            }
        }
    }
}

impl LinkLayer {
    /// The lowest overhead, that of `tc-cake(8)`. It is negative for devices that report more bytes
    /// than the line carries.
    pub const MIN_OVERHEAD: i32 = -64;
    /// The highest overhead, above any stack of headers and tunnels in use.
    pub const MAX_OVERHEAD: i32 = 512;
    /// The largest minimum frame, above the 520 bytes of half-duplex gigabit Ethernet.
    pub const MAX_MIN_FRAME: u32 = 1024;

    /// A link layer with `overhead` bytes around each IP packet (AAL5 trailer included for
    /// [`Framing::Atm`]), then `framing`.
    ///
    /// # Errors
    /// An overhead out of range.
    pub const fn new(overhead: i32, framing: Framing) -> Result<Self, LinkError> {
        if overhead < Self::MIN_OVERHEAD || overhead > Self::MAX_OVERHEAD {
            return Err(LinkError::Overhead(overhead));
        }
        Ok(Self {
            overhead: overhead as i16,
            min_frame: 0,
            framing,
            ppp: Ppp::Unknown,
            oam: None,
            interleave: Interleave::Never,
            mtu: None,
        })
    }

    /// A copy that states whether the encapsulation includes PPP.
    #[must_use]
    pub const fn with_ppp(self, ppp: Ppp) -> Self {
        Self { ppp, ..self }
    }

    /// A copy with a minimum frame: packet and overhead together are padded to at least `bytes`
    /// before framing (`mpu` in `tc-cake(8)`).
    ///
    /// # Errors
    /// A minimum above [`LinkLayer::MAX_MIN_FRAME`].
    pub const fn with_min_frame(self, bytes: u32) -> Result<Self, LinkError> {
        if bytes > Self::MAX_MIN_FRAME {
            return Err(LinkError::MinFrame(bytes));
        }
        Ok(Self { min_frame: bytes as u16, ..self })
    }

    /// This layer without cells of OAM.
    #[must_use]
    pub const fn without_oam(self) -> Self {
        Self { oam: None, ..self }
    }

    /// A copy with OAM cells among the user's cells. [`crate::WireMeter`] counts them,
    /// [`LinkLayer::on_wire`] does not.
    ///
    /// # Errors
    /// A framing without cells.
    pub const fn with_oam(self, share: OamShare) -> Result<Self, LinkError> {
        match self.framing {
            Framing::Atm => Ok(Self { oam: Some(share), ..self }),
            framing => Err(LinkError::OamWithoutCells(framing)),
        }
    }

    /// A copy whose packets may be interrupted. Fragments are PPP frames and need PPP, or for an
    /// unknown encapsulation at least the 2 bytes of the PPP protocol field.
    ///
    /// # Errors
    /// Interruption between cells on a framing without cells; fragments on an encapsulation without
    /// PPP.
    pub const fn with_interleave(self, interleave: Interleave) -> Result<Self, LinkError> {
        match (interleave, self.framing) {
            (Interleave::Cells, framing @ (Framing::None | Framing::Ptm)) => {
                Err(LinkError::InterleaveWithoutCells(framing))
            }
            (Interleave::Fragments(_), _) => match self.ppp {
                Ppp::Absent => Err(LinkError::FragmentsWithoutPpp),
                Ppp::Unknown if self.overhead() < PPP_PROTOCOL => Err(LinkError::FragmentsWithoutRoom(self.overhead())),
                Ppp::Inside | Ppp::Unknown => Ok(Self { interleave, ..self }),
            },
            _ => Ok(Self { interleave, ..self }),
        }
    }

    /// A copy with `bytes` more of headers, such as a tag or a tunnel. They count towards the
    /// minimum frame as payload does.
    ///
    /// # Errors
    /// An overhead out of range.
    pub const fn with_more_overhead(self, bytes: i32) -> Result<Self, LinkError> {
        match self.overhead().checked_add(bytes) {
            Some(sum @ Self::MIN_OVERHEAD..=Self::MAX_OVERHEAD) => Ok(Self { overhead: sum as i16, ..self }),
            Some(sum) => Err(LinkError::Overhead(sum)),
            None => Err(LinkError::Overhead(bytes)),
        }
    }

    /// A copy with an MTU: the largest IP packet carried without IP fragmentation.
    #[must_use]
    pub const fn with_mtu(self, mtu: Option<NonZeroU16>) -> Self {
        Self { mtu, ..self }
    }

    /// The largest IP packet carried without IP fragmentation: 1500 bytes over Ethernet, 1492 over
    /// PPPoE. `None`: only the limit of IP itself applies.
    #[must_use]
    pub const fn mtu(self) -> Option<NonZeroU16> {
        self.mtu
    }

    /// Bytes around each IP packet.
    #[must_use]
    pub const fn overhead(self) -> i32 {
        self.overhead as i32
    }

    /// The least bytes of packet and overhead together, before framing; 0 for no minimum.
    #[must_use]
    pub const fn min_frame(self) -> u32 {
        self.min_frame as u32
    }

    /// The division of a frame into cells or coded blocks.
    #[must_use]
    pub const fn framing(self) -> Framing {
        self.framing
    }

    /// Whether the encapsulation includes PPP.
    #[must_use]
    pub const fn ppp(self) -> Ppp {
        self.ppp
    }

    /// The share of OAM cells, if the line has them.
    #[must_use]
    pub const fn oam(self) -> Option<OamShare> {
        self.oam
    }

    /// Where a packet in transmission may be interrupted.
    #[must_use]
    pub const fn interleave(self) -> Interleave {
        self.interleave
    }

    /// Packet, overhead and padding to the minimum frame: the bytes to which framing applies.
    ///
    /// At least 1 for a packet, however negative the overhead, as Linux counts with `tc-stab(8)`.
    #[inline]
    #[must_use]
    pub const fn frame(&self, ip: ByteCount) -> u64 {
        let frame = ip.as_u64().saturating_add_signed(self.overhead as i64);
        if frame < self.min_frame as u64 {
            self.min_frame as u64
        } else if frame == 0 && ip.as_u64() > 0 {
            1
        } else {
            frame
        }
    }

    /// Bytes on the wire of a packet of `ip` bytes, all its fragments included. Saturates at the
    /// largest count.
    #[inline]
    #[must_use]
    pub const fn on_wire(&self, ip: ByteCount) -> WireBytes {
        match self.interleave {
            Interleave::Fragments(multilink) => multilink.on_wire(*self, ip),
            Interleave::Never | Interleave::Cells => self.frame_on_wire(ip),
        }
    }

    /// Bytes on the wire of a packet of `ip` bytes in one frame, without fragments.
    #[inline]
    pub(crate) const fn frame_on_wire(&self, ip: ByteCount) -> WireBytes {
        let frame = self.frame(ip);
        WireBytes::new(match self.framing {
            Framing::None => frame,
            Framing::Atm => aal5::cells(frame).saturating_mul(aal5::CELL_BYTES),
            Framing::Ptm => ptm::on_wire(frame),
        })
    }

    /// Cells of a packet of `ip` bytes, all its fragments included; `None` on a line without cells.
    #[inline]
    #[must_use]
    pub const fn cells(self, ip: ByteCount) -> Option<CellCount> {
        match self.framing {
            Framing::Atm => Some(CellCount::new(match self.interleave {
                Interleave::Fragments(_) => self.on_wire(ip).as_u64() / aal5::CELL_BYTES,
                Interleave::Never | Interleave::Cells => aal5::cells(self.frame(ip)),
            })),
            Framing::None | Framing::Ptm => None,
        }
    }

    /// IP bytes per byte on the wire, OAM cells not counted; 0 for an empty packet. For printing
    /// and bounds.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for printing")]
    pub fn efficiency(self, ip: ByteCount) -> f64 {
        match self.on_wire(ip).as_u64() {
            0 => 0.0,
            wire => ip.as_u64() as f64 / wire as f64,
        }
    }

    /// The largest IP packet that takes at most `cells` cells; `None` if one byte takes more, or on
    /// a line without cells.
    #[must_use]
    pub const fn largest_ip_in_cells(self, cells: CellCount) -> Option<ByteCount> {
        match self.framing {
            Framing::Atm => match self.interleave {
                Interleave::Fragments(_) => {
                    self.largest_ip_in(WireBytes::new(cells.as_u64().saturating_mul(aal5::CELL_BYTES)))
                }
                _ => self.largest_ip_in_frame(cells.as_u64().saturating_mul(aal5::CELL_PAYLOAD)),
            },
            Framing::None | Framing::Ptm => None,
        }
    }

    /// The largest IP packet that takes at most `wire` bytes on the wire; `None` if one byte takes
    /// more.
    #[must_use]
    pub const fn largest_ip_in(self, wire: WireBytes) -> Option<ByteCount> {
        if let Interleave::Fragments(multilink) = self.interleave {
            return multilink.largest_ip_in(self, wire);
        }
        let wire = wire.as_u64();
        self.largest_ip_in_frame(match self.framing {
            Framing::None => wire,
            Framing::Atm => wire / aal5::CELL_BYTES * aal5::CELL_PAYLOAD,
            Framing::Ptm => ptm::largest_frame(wire),
        })
    }

    const fn largest_ip_in_frame(self, frame: u64) -> Option<ByteCount> {
        if frame < self.min_frame as u64 || frame == 0 {
            return None;
        }
        match frame.checked_add_signed(-(self.overhead as i64)) {
            Some(0) => None,
            Some(ip) => Some(ByteCount::new(ip)),
            None if self.overhead < 0 => Some(ByteCount::MAX),
            None => None,
        }
    }
}

/// The accounting in words, for example `28 bytes a packet, at least 74, in ATM cells`.
impl fmt::Display for LinkLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes a packet", self.overhead)?;
        if self.min_frame > 0 {
            write!(f, ", at least {}", self.min_frame)?;
        }
        f.write_str(match self.framing {
            Framing::None => "",
            Framing::Atm => ", in ATM cells",
            Framing::Ptm => ", in 64/65 PTM blocks",
        })?;
        match self.interleave {
            Interleave::Never => {}
            Interleave::Cells => f.write_str(", interrupted between cells")?,
            Interleave::Fragments(multilink) => {
                write!(f, ", in fragments of {} bytes", multilink.fragment().as_u64())?;
            }
        }
        match self.oam {
            Some(share) => write!(f, ", one cell in {} for OAM", u32::from(share.user_cells()) + 1),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
