//! The options of the size table of `tc-stab(8)`, by which a kernel charges a packet for its bytes on the wire.
//!
//! The overhead of `stab` counts from the device's frame, which includes 14 bytes of Ethernet; `tc-cake(8)` and
//! [`lastmile_linklayer`] count from the IP packet. A slot of the table covers `2^cell_log` sizes and holds the wire
//! size of the largest, so only a table with a slot for each size is exact.

use core::fmt;

use lastmile_linklayer::ethernet;

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
    /// Frames that include a tag: 18 bytes. A VLAN interface and its parent have none: their queues see the tag beside
    /// the frame (`vlan_dev_hard_start_xmit`), unless `reorder_hdr` is off.
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

    /// The frames in words.
    #[must_use]
    pub const fn frames(self) -> &'static str {
        match self {
            Self::Ethernet => "an Ethernet header",
            Self::TaggedEthernet => "an Ethernet header with a tag",
            Self::Ip => "no header in front of the IP packet",
        }
    }

    /// The value of `--header` for a device whose frames are of the other kind.
    #[must_use]
    pub const fn instead(self) -> &'static str {
        match self {
            Self::Ethernet | Self::TaggedEthernet => "ip",
            Self::Ip => "ethernet",
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
    /// The largest size in the table.
    pub mtu: u32,
    /// Number of slots.
    pub tsize: u32,
    /// The least size, overhead included.
    pub mpu: u32,
    /// Bytes added to the device's frame; may be negative.
    pub overhead: i32,
    /// The function that fills the slots.
    pub linklayer: StabLinkLayer,
}

impl StabSpec {
    /// Slots of 2 bytes in a netlink attribute: its length field has 16 bits and counts the 4 bytes
    /// of the header.
    pub const MAX_SLOTS: u32 = 32_765;
}

/// The options in the form of `tc(8)`: `stab mtu 2047 tsize 512 mpu 0 overhead 14 linklayer atm`.
impl fmt::Display for StabSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mtu, tsize, mpu, overhead, linklayer } = self;
        write!(f, "stab mtu {mtu} tsize {tsize} mpu {mpu} overhead {overhead} linklayer {linklayer}")
    }
}

#[cfg(test)]
pub(crate) mod tests;
