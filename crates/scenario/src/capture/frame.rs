//! A packet of a capture, and the extent that was read.

use pcap_file::{DataLink, PcapError};

use super::link::Sighting;

/// A packet of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// Nanoseconds since 1970; `None` for a packet without a time.
    pub at_ns: Option<u64>,
    /// Where it was seen.
    pub sighting: Sighting,
    /// The captured part of its IP packet; `None` where there is none.
    pub ip: Option<&'a [u8]>,
}

/// The result of reading a capture: complete, or up to a position.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Extent {
    /// Bytes of the file before compression, up to the end of the last whole packet.
    pub bytes: u64,
    /// Why it could not be read to its end, if so.
    pub broken: Option<String>,
    /// The link types of the interfaces, once each.
    pub links: Vec<String>,
    /// Why the packets of an interface, of an unknown link layer, were left out next to those of others.
    pub skipped: Option<String>,
}

impl Extent {
    /// Records the link type of an interface.
    pub(super) fn note(&mut self, link: DataLink) {
        let name = format!("{link:?}");
        if !self.links.contains(&name) {
            self.links.push(name);
        }
    }
}

/// Takes the packets of a capture, until it refuses one.
pub(super) type Take<'a> = dyn FnMut(Frame<'_>) -> Result<(), String> + 'a;

/// Why a capture is not read further.
pub(super) fn broken(error: &PcapError) -> String {
    match error {
        PcapError::IncompleteBuffer => "it ends in the middle of a packet".to_owned(),
        PcapError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            "it ends in the middle of a packet".to_owned()
        }
        other => other.to_string(),
    }
}
