//! A packet of a capture, and the extent that was read.

use pcap_file::{DataLink, PcapError};

use super::link::{self, Sighting};

/// A packet of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// Nanoseconds since 1970; `None` for a packet without a time.
    pub at_ns: Option<u64>,
    /// Where it was seen.
    pub sighting: Sighting,
    /// The captured part of its IP packet; `None` where there is none.
    pub ip: Option<&'a [u8]>,
    /// Octets of the frame from the IP packet on, captured or not.
    pub ip_len: u32,
}

impl<'a> Frame<'a> {
    /// A frame of `length` octets, of which `data` were captured.
    #[inline]
    pub(super) fn new(at_ns: Option<u64>, link: DataLink, interface: u32, (data, length): (&'a [u8], u32)) -> Self {
        let ip = link::ip_of(link, data);
        let header = data.len() - ip.map_or(0, <[u8]>::len);
        let ip_len = length.saturating_sub(u32::try_from(header).unwrap_or(u32::MAX));
        Self { at_ns, sighting: link::sighting(link, interface, data), ip, ip_len }
    }

    /// A frame of which nothing is known.
    pub(super) fn unknown(ip: Option<&'a [u8]>) -> Self {
        Self { at_ns: None, sighting: Sighting::default(), ip, ip_len: 0 }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_packet_is_that_of_its_frame_behind_the_link_layer() {
        let data = [&[0; 12][..], &[0x08, 0x00], &[0x45; 40]].concat();
        let frame = Frame::new(None, DataLink::ETHERNET, 0, (&data, 1_514));
        assert_eq!((frame.ip.map(<[u8]>::len), frame.ip_len), (Some(40), 1_500));
        assert_eq!(Frame::new(None, DataLink::ETHERNET, 0, (&data[..10], 60)).ip, None);
    }
}
