//! The packets of the closed forms, and their encapsulations.

use clap::Args;
use lastmile_linklayer::{LinkLayer, PRESETS};
use lastmile_units::ByteCount;

use crate::commands::overhead::link_by_name;
use crate::failure::{Failure, Result};

/// The MTU of Ethernet.
const ETHERNET: u64 = 1500;

/// Data packets, and the encapsulations of the lines.
#[derive(Args)]
pub(super) struct Packets {
    /// Encapsulation by its name or an alias [default: all]
    #[arg(long = "link", value_name = "PRESET")]
    links: Vec<String>,

    /// A full data packet in IP bytes, headers included [default: 1500, or the MTU of the link where that is less]
    #[arg(long, value_name = "BYTES", value_parser = crate::bytes::parse)]
    data: Option<u64>,
}

impl Packets {
    /// The link layers with their names; all presets by default.
    pub(super) fn links(&self) -> Result<Vec<(String, LinkLayer)>> {
        if self.links.is_empty() {
            return Ok(PRESETS.iter().map(|preset| (preset.name.to_owned(), preset.link)).collect());
        }
        self.links.iter().map(|name| Ok((name.clone(), link_by_name(name)?))).collect()
    }

    /// The size of a data packet in IP bytes on this link.
    pub(super) fn size(&self, link: LinkLayer) -> Result<ByteCount> {
        let largest = link.mtu().map_or(ETHERNET, |mtu| ETHERNET.min(mtu.get().into()));
        size("--data", self.data.unwrap_or(largest))
    }
}

/// Pure ACKs.
#[derive(Args)]
pub(super) struct Acks {
    /// A pure ACK in IP bytes: with timestamps 52, without them 40
    #[arg(long, value_name = "BYTES", default_value = "52", value_parser = crate::bytes::parse)]
    pub(super) ack: u64,
}

impl Acks {
    /// The size of a pure ACK in IP bytes.
    pub(super) fn size(&self) -> Result<ByteCount> {
        size("--ack", self.ack)
    }
}

/// A size in IP bytes, checked.
fn size(option: &str, bytes: u64) -> Result<ByteCount> {
    if (1..=65_535).contains(&bytes) {
        return Ok(ByteCount::new(bytes));
    }
    Err(Failure::new(format_args!("{option}: a packet of {bytes} bytes; from 1 to 65535 are possible")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 2516, section 7: PPPoE leaves 1492 bytes of 1500.
    #[test]
    fn a_full_packet_is_that_of_the_link_unless_it_is_given() {
        let size = |data, link| Packets { links: Vec::new(), data }.size(link_by_name(link).unwrap()).unwrap().as_u64();
        assert_eq!(["ethernet", "ip", "pppoe-vcmux"].map(|link| size(None, link)), [1500, 1500, 1492]);
        assert_eq!(size(Some(1500), "pppoe-vcmux"), 1500);
    }
}
