//! The capacity of a queue, in the unit that the device counts.

use core::fmt;

use crate::{ByteCount, CellCount, PacketCount, WireBytes};

/// The most that a queue holds: packets (routers), bytes (modems), cells (ATM switches), or bytes
/// on the wire (a capacity in time).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Packets of any size.
    Packets(PacketCount),
    /// IP bytes.
    Bytes(ByteCount),
    /// ATM cells.
    Cells(CellCount),
    /// Bytes on the wire of the packets: a time at a rate.
    Wire(WireBytes),
}

/// The number with its unit: `100 packets`, `206000 bytes`, `1000 cells`.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(count) => fmt::Display::fmt(count, f),
            Self::Bytes(count) => fmt::Display::fmt(count, f),
            Self::Cells(count) => fmt::Display::fmt(count, f),
            Self::Wire(count) => fmt::Display::fmt(count, f),
        }
    }
}

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<PacketCount> for Limit {
    fn from(count: PacketCount) -> Self {
        Self::Packets(count)
    }
}

impl From<ByteCount> for Limit {
    fn from(count: ByteCount) -> Self {
        Self::Bytes(count)
    }
}

impl From<CellCount> for Limit {
    fn from(count: CellCount) -> Self {
        Self::Cells(count)
    }
}
