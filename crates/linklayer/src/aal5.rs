//! AAL5 over ATM cells: a PDU is padded so that it fills whole cells, each 48 bytes of payload
//! under 5 of header.
//!
//! Published: ITU-T I.363.5 (AAL5), I.361 (cells). Cost: one division by a constant.

/// Bytes of a cell on the wire (ITU-T I.361).
pub const CELL_BYTES: u64 = 53;
/// Bytes of a cell that carry the PDU.
pub const CELL_PAYLOAD: u64 = 48;
/// UU 1, CPI 1, length 2, CRC 4: the last 8 bytes of the last cell (ITU-T I.363.5).
pub const TRAILER: u32 = 8;

/// Cells for a PDU of `bytes` and its 8-byte trailer, which `bytes` includes.
#[inline]
#[must_use]
pub const fn cells(bytes: u64) -> u64 {
    bytes.div_ceil(CELL_PAYLOAD)
}

/// Padding bytes in the last cell of a PDU of `bytes`, trailer included: 0 to 47.
#[must_use]
pub const fn padding(bytes: u64) -> u64 {
    cells(bytes) * CELL_PAYLOAD - bytes
}
