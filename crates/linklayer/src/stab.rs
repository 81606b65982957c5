//! The size table of `tc-stab(8)`: the size a kernel with `stab` charges, which only approximates
//! the bytes in cells.
//!
//! Published: iproute2 `tc/tc_core.c` (`tc_calc_size_table`) fills the table, the kernel's
//! `__qdisc_calculate_pkt_len` reads it. Both are repeated here step by step, shifts and
//! truncations included. A slot covers `2^cell_log` sizes and holds the wire size of the largest.
//! Sizes above the last slot are sums of slots. With the usual `mtu 2047` the table equals
//! `ceil(n/48) * 53` up to 2048 bytes and mostly charges too much above (super-packets of GSO).
//! With `mtu 65535` it is wrong for small packets instead.
//!
//! The overhead of `stab` counts from the device's frame, which includes 14 bytes of Ethernet;
//! `tc-cake(8)` and this crate count from the IP packet. [`StabSpec::for_link`] converts. Cost: a
//! table look-up a packet.

use core::fmt;

use lastmile_units::WireBytes;

use crate::{Framing, LinkLayer, aal5, ethernet};

/// The function that fills the slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StabLinkLayer {
    /// Unchanged sizes, at least `mpu`.
    Ethernet,
    /// Whole ATM cells; `adsl` is a synonym.
    Atm,
}

impl fmt::Display for StabLinkLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ethernet => "ethernet",
            Self::Atm => "atm",
        })
    }
}

/// The device on which `stab` counts, by the bytes in front of the IP packet that it includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    /// `eth0` and similar: 14 bytes of Ethernet header.
    Ethernet,
    /// The parent of a VLAN interface, whose frames include the tag: 18 bytes.
    TaggedEthernet,
    /// `ppp0`, `tun0`: no bytes in front of the IP packet.
    Ip,
}

impl Device {
    /// Bytes in front of the IP packet.
    #[must_use]
    pub const fn header(self) -> u32 {
        match self {
            Self::Ethernet => ethernet::MAC_HEADER,
            Self::TaggedEthernet => ethernet::MAC_HEADER + ethernet::VLAN_TAG,
            Self::Ip => 0,
        }
    }

    /// The overhead for `stab` that equals `from_ip` for CAKE: 28 becomes 14 on Ethernet.
    #[must_use]
    pub const fn stab_overhead(self, from_ip: i32) -> i32 {
        from_ip - self.header() as i32
    }
}

/// The parameters of `tc qdisc ... stab`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StabSpec {
    /// The largest size in the table; 0 means 2047.
    pub mtu: u32,
    /// Number of slots; 0 means 512.
    pub tsize: u32,
    /// The least size, overhead included.
    pub mpu: u32,
    /// Bytes added to the device's frame; may be negative.
    pub overhead: i32,
    /// The function that fills the slots.
    pub linklayer: StabLinkLayer,
}

/// A table that cannot be built, or a line that no table can describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StabError {
    /// More slots than a netlink attribute carries.
    TooManySlots(u32),
    /// An `mtu` or `mpu` above [`StabSpec::MAX_SIZE`].
    TooLarge(u32),
    /// A framing that `stab` does not support.
    Framing(Framing),
}

impl core::error::Error for StabError {}

impl fmt::Display for StabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManySlots(given) => {
                write!(f, "tsize {given}: a netlink attribute carries at most {} slots", StabSpec::MAX_SLOTS)
            }
            Self::TooLarge(given) => write!(f, "a size of {given} bytes; it is at most {}", StabSpec::MAX_SIZE),
            Self::Framing(framing) => {
                write!(f, "stab cannot count framing \"{framing}\"; use cake, or lower the rate by the framing's share")
            }
        }
    }
}

impl StabSpec {
    /// Slots of 2 bytes in a netlink attribute: its length field has 16 bits and counts the 4 bytes
    /// of the header.
    pub const MAX_SLOTS: u32 = 32_765;
    /// The largest size that does not overflow iproute2's 32-bit arithmetic.
    pub const MAX_SIZE: u32 = 1 << 24;

    /// `mtu 2047 tsize 512`, the defaults of `tc(8)`.
    #[must_use]
    pub const fn new(linklayer: StabLinkLayer, overhead: i32) -> Self {
        Self { mtu: 2047, tsize: 512, mpu: 0, overhead, linklayer }
    }

    /// The parameters of `stab` on `device` that count like `link`, as far as a table can.
    ///
    /// # Errors
    /// PTM, which `stab` does not support.
    pub const fn for_link(link: LinkLayer, device: Device) -> Result<Self, StabError> {
        let linklayer = match link.framing() {
            Framing::None => StabLinkLayer::Ethernet,
            Framing::Atm => StabLinkLayer::Atm,
            framing @ Framing::Ptm => return Err(StabError::Framing(framing)),
        };
        // Overhead and mpu apply to the same sum in both: frame + overhead in `stab`, packet +
        // overhead here.
        let spec = Self::new(linklayer, device.stab_overhead(link.overhead()));
        Ok(Self { mpu: link.min_frame(), ..spec })
    }
}

/// The options in the form of `tc(8)`: `stab mtu 2047 tsize 512 mpu 0 overhead 14 linklayer atm`.
impl fmt::Display for StabSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mtu, tsize, mpu, overhead, linklayer } = self;
        write!(f, "stab mtu {mtu} tsize {tsize} mpu {mpu} overhead {overhead} linklayer {linklayer}")
    }
}

/// The table as the kernel stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StabTable {
    /// Wire sizes, shifted right by `size_log`. Empty for Ethernet without `mpu`, which needs no
    /// table.
    slots: Box<[u16]>,
    overhead: i32,
    cell_log: u32,
    size_log: u32,
}

impl StabTable {
    /// Fills the table as iproute2 does.
    ///
    /// # Errors
    /// More slots or larger sizes than a table can have.
    pub fn new(spec: StabSpec) -> Result<Self, StabError> {
        if spec.linklayer == StabLinkLayer::Ethernet && spec.mpu == 0 {
            return Ok(Self { slots: Box::new([]), overhead: spec.overhead, cell_log: 0, size_log: 0 });
        }
        let mtu = if spec.mtu == 0 { 2047 } else { spec.mtu };
        let tsize = if spec.tsize == 0 { 512 } else { spec.tsize };
        if tsize > StabSpec::MAX_SLOTS {
            return Err(StabError::TooManySlots(tsize));
        }
        if let Some(&size) = [mtu, spec.mpu].iter().find(|&&size| size > StabSpec::MAX_SIZE) {
            return Err(StabError::TooLarge(size));
        }
        let mut cell_log = 0;
        while (mtu >> cell_log) > tsize - 1 {
            cell_log += 1;
        }
        let sizes = || (1..=tsize).map(|slot| adjusted(slot << cell_log, spec.mpu, spec.linklayer));
        let mut size_log = 0;
        while sizes().any(|size| size >> size_log > u32::from(u16::MAX)) {
            size_log += 1;
        }
        let slots = sizes().map(|size| u16::try_from(size >> size_log).expect("shifted until it fits")).collect();
        Ok(Self { slots, overhead: spec.overhead, cell_log, size_log })
    }

    /// The bytes charged for a frame of `length` bytes as the device counts it. At least 1.
    #[must_use]
    pub fn charge(&self, length: u32) -> WireBytes {
        let adjusted = i64::from(length) + i64::from(self.overhead);
        let charge = if self.slots.is_empty() { adjusted } else { self.look_up(adjusted) };
        WireBytes::new(u64::try_from(charge.max(1)).expect("at least 1"))
    }

    /// The kernel's `cell_align` is -1: the slot index uses size minus one, so that a slot covers
    /// (lower, upper].
    fn look_up(&self, length: i64) -> i64 {
        let slot = usize::try_from((length - 1).max(0) >> self.cell_log).unwrap_or(usize::MAX);
        let slots = self.slots.len();
        let at = |slot: usize| i64::from(self.slots[slot]);
        let sum = if slot < slots { at(slot) } else { at(slots - 1) * (slot / slots) as i64 + at(slot % slots) };
        sum << self.size_log
    }
}

/// iproute2's `tc_adjust_size`: at least `mpu`, then whole cells.
const fn adjusted(size: u32, mpu: u32, linklayer: StabLinkLayer) -> u32 {
    let size = if size < mpu { mpu } else { size };
    match linklayer {
        StabLinkLayer::Ethernet => size,
        StabLinkLayer::Atm => (aal5::cells(size as u64) * aal5::CELL_BYTES) as u32,
    }
}

#[cfg(test)]
mod tests;
